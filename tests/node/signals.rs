//! Signals: to the launcher, to its group, twice, hard, and as process 1.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{NEVER, Rank, alive, launcher, with_limit};

/// The phases that a signal cuts short.
const PHASES: [&str; 5] = ["servers", "router", "smoke", "workload", "serving"];

/// A rank in one of its phases, with stubborn processes everywhere.
fn in_phase(phase: &str) -> Rank {
    let mut rank = Rank::leader();
    let never = rank.file("never");
    rank.server(&json!({"ready": "", "orphan": 1, "setsid": 1}));
    rank.workload(&json!({}));
    match phase {
        "servers" => rank.missing_server(),
        "router" => rank.router(&json!({"ready": never})),
        "serving" => rank.spec["workload"] = json!([]),
        "smoke" => {
            rank.spec["smoke"] = json!(true);
            rank.router(&json!({"ready": "", "pages": {"/v1/completions": "hang"}}));
        }
        "linger" => {
            rank.spec["workload"] = json!(["true"]);
            rank.limit("linger", NEVER);
        }
        "teardown" => {
            rank.spec["workload"] = json!(["true"]);
            rank.server(&json!({"ready": "", "on_term": "ignore", "orphan": 1, "setsid": 1}));
            rank.limit("grace", NEVER);
        }
        _ => {}
    }
    rank.start();
    rank.until(phase, || {
        let text = std::fs::read_to_string(rank.path("logs/launch-rank0.json")).unwrap_or_default();
        let text: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let last = text["phases"].as_array().and_then(|phases| phases.last());
        last.is_some_and(|last| last["phase"] == phase)
    });
    rank.await_file("server");
    rank
}

#[test]
fn a_signal_in_any_phase_ends_everything_with_its_code() {
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
    ] {
        for phase in PHASES {
            let mut rank = in_phase(phase);
            rank.signal(signal);
            let end = rank.end();
            assert_eq!(end.code, code, "{phase} {signal}: {}", end.stderr);
            assert_eq!(end.manifest["outcome"], "stopped");
            assert_eq!(end.manifest["failed_phase"], phase);
        }
    }
}

/// SLURM signals every process of a job, one after the other: a server's end may be seen first.
#[test]
fn a_signal_that_follows_the_ends_it_has_caused_is_the_cause() {
    let mut rank = Rank::leader();
    let word = rank.file("word");
    rank.server(&json!({"ready": "", "fault": "exit:0", "when": word}));
    rank.workload(&json!({}));
    rank.start();
    rank.await_file("workload");
    rank.make_file("word");
    rank.until("the server's end", || {
        !alive(rank.await_file("server").trim().parse().unwrap())
    });
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    assert_eq!(end.code, 143, "{}", end.stderr);
    assert_eq!(end.manifest["reason"], "stopped by SIGTERM");
}

/// Left alone each of them would kill the launcher on the spot, and with it all that could end the engines.
#[test]
fn every_signal_that_would_kill_the_launcher_ends_everything_instead() {
    for signal in [
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGXCPU,
        Signal::SIGALRM,
        Signal::SIGVTALRM,
        Signal::SIGPROF,
        Signal::SIGIO,
        Signal::SIGPWR,
    ] {
        let mut rank = in_phase("serving");
        rank.signal(signal);
        let end = rank.end();
        assert_eq!(end.code, 128 + signal as i32, "{signal}: {}", end.stderr);
        assert_eq!(end.manifest["reason"], format!("stopped by {signal}"));
    }
}

#[test]
fn a_signal_while_lingering_ends_the_pause_and_not_the_success() {
    let mut rank = in_phase("linger");
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    assert_eq!((end.code, &end.manifest["outcome"]), (0, &json!("done")));
}

#[test]
fn a_signal_to_the_launchers_group_reaches_only_the_launcher() {
    for phase in PHASES {
        let mut rank = in_phase(phase);
        killpg(Pid::from_raw(rank.pid()), Signal::SIGINT).unwrap();
        let end = rank.end();
        assert_eq!(end.code, 130, "{phase}: {}", end.stderr);
        assert!(
            end.stderr.contains("SIGINT: ending everything"),
            "{phase}: {}",
            end.stderr
        );
    }
}

#[test]
fn a_second_signal_ends_every_phase_at_once() {
    for phase in [
        "servers", "router", "smoke", "workload", "serving", "linger", "teardown",
    ] {
        let mut rank = in_phase(phase);
        rank.signal(Signal::SIGTERM);
        rank.await_stderr("SIGTERM");
        rank.signal(Signal::SIGINT);
        let end = rank.end();
        // Only the way down is cut short where the job had succeeded already.
        let code = if matches!(phase, "linger" | "teardown") {
            0
        } else {
            143
        };
        assert_eq!(end.code, code, "{phase}: {}", end.stderr);
        assert!(end.took.as_secs_f64() < NEVER, "{phase}: {:?}", end.took);
    }
}

#[test]
fn a_signal_to_another_rank_ends_it_in_both_of_its_phases() {
    let mut rank = Rank::follower();
    rank.server(&json!({"ready": "", "orphan": 1}));
    rank.start();
    rank.await_stderr("is ready after");
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    assert_eq!(
        (end.code, &end.manifest["failed_phase"]),
        (143, &json!("router"))
    );

    let mut first = Rank::leader();
    first.spec["workload"] = json!([]);
    first.start();
    let mut second = Rank::follower();
    second.spec["router_address"]["address"] = json!(first.address);
    second.start();
    second.await_stderr("the router is up");
    second.signal(Signal::SIGTERM);
    let end = second.end();
    assert_eq!(
        (end.code, &end.manifest["failed_phase"]),
        (143, &json!("serving"))
    );
    first.signal(Signal::SIGTERM);
    assert_eq!(first.end().code, 143);
}

#[test]
fn a_signal_at_the_very_start_leaves_nothing() {
    for millis in [0, 1, 2, 4, 8, 16, 32, 64, 128] {
        let mut rank = Rank::leader();
        rank.workload(&json!({}));
        rank.start();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        rank.signal(Signal::SIGTERM);
        // Before it listens to signals it dies of this one, which a shell shows by the same code.
        assert_eq!(rank.end().code, 143, "after {millis} ms");
    }
}

#[test]
fn a_second_signal_kills_what_ignores_the_first() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": "", "on_term": "ignore", "orphan": 2}));
    rank.workload(&json!({"on_term": "ignore"}));
    rank.limit("grace", NEVER);
    rank.start();
    rank.await_file("workload");
    rank.signal(Signal::SIGINT);
    rank.await_stderr("ending everything");
    // Another signal: the same one a moment later could be an echo of the first.
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    assert_eq!(end.code, 130, "{}", end.stderr);
    assert!(end.took.as_secs_f64() < NEVER, "{:?}", end.took);
}

#[test]
fn a_server_that_ignores_term_is_killed_with_its_group_after_the_grace() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": "", "on_term": "ignore", "orphan": 3, "setsid": 2}));
    rank.limit("grace", 0.3);
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    assert!(
        end.stderr.contains("sending KILL to its group"),
        "{}",
        end.stderr
    );
}

#[test]
fn children_die_with_a_launcher_that_is_killed_hard() {
    let rank = in_phase("workload");
    let pids: Vec<i32> = ["server", "router", "workload"]
        .map(|name| rank.await_file(name).parse().unwrap())
        .to_vec();
    rank.signal(Signal::SIGKILL);
    rank.until("their end", || pids.iter().all(|pid| !alive(*pid)));
    // Its record says that it never came to an end.
    let text = std::fs::read_to_string(rank.path("logs/launch-rank0.json")).unwrap();
    assert!(text.contains("\"outcome\": \"running\""), "{text}");
    rank.until("the end", || !alive(rank.pid()));
}

#[test]
fn control_c_on_a_terminal_reaches_everything_once_and_waiting_is_shown_live() {
    let mut rank = Rank::leader();
    let list = |rank: &Rank, who: &str| rank.file(&format!("signals-{who}"));
    rank.server(&json!({"ready": "", "signals": list(&rank, "server")}));
    rank.router(&json!({"ready": "", "signals": list(&rank, "router")}));
    rank.workload(&json!({"signals": list(&rank, "workload")}));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/terminal.py");
    let program = launcher().to_string_lossy().into_owned();
    let words = ["python3", "-ISu", script, &rank.file("workload"), &program].map(str::to_owned);
    rank.start_below(&words, |_| ());
    let end = rank.end();
    assert_eq!(end.code, 130, "{}", end.stdout);
    assert!(
        end.stdout.contains("\u{1b}[?7lwaiting for 1 of 1 servers"),
        "{}",
        end.stdout
    );
    for who in ["server", "router", "workload"] {
        let seen = std::fs::read_to_string(list(&rank, who)).unwrap();
        assert_eq!(seen, "15 ", "{who}");
    }
}

#[test]
fn a_launcher_that_is_stopped_sees_what_happened_meanwhile_when_it_goes_on() {
    let mut rank = Rank::leader();
    rank.workload(&json!({"fault": "exit:7", "when": rank.file("go")}));
    rank.start();
    let workload: i32 = rank.await_file("workload").parse().unwrap();
    rank.signal(Signal::SIGSTOP);
    rank.make_file("go");
    rank.until("the workload's end", || !alive(workload));
    assert!(!rank.ended());
    rank.signal(Signal::SIGCONT);
    assert_eq!(rank.end().code, 7);
}

#[test]
fn time_in_which_the_launcher_is_stopped_is_not_waiting_time() {
    let run = |limit: f64| {
        // A shorter stop counts as a slow machine.
        let limit = limit + 5.0;
        let mut rank = Rank::leader();
        rank.server(&json!({"ready": rank.file("go")}));
        rank.limit("wait_server", limit);
        rank.start();
        let started = rank.path("server");
        rank.until("the server or the limit", || {
            started.exists() || !alive(rank.pid())
        });
        rank.signal(Signal::SIGSTOP);
        let begun = std::time::Instant::now();
        rank.until("more than the limit", || {
            begun.elapsed().as_secs_f64() > limit + 0.5
        });
        rank.make_file("go");
        rank.signal(Signal::SIGCONT);
        rank.end()
    };
    // Before and after the stop it needs some of the time.
    let end = with_limit(run, |end| end.code == 0);
    assert_eq!(end.code, 0, "{}", end.stderr);
}

#[test]
fn as_process_1_it_ends_on_term_and_leaves_no_zombies() {
    let unshare = ["unshare", "--pid", "--fork", "--mount-proc"];
    let can = std::process::Command::new(unshare[0])
        .args(&unshare[1..])
        .arg("true")
        .output();
    if !can.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no PID namespaces here");
        return;
    }
    let mut rank = Rank::leader();
    rank.spec["workload"] = json!([]);
    rank.server(&json!({"ready": "", "setsid": 3}));
    let mut words: Vec<String> = unshare.map(str::to_owned).to_vec();
    words.push(launcher().to_string_lossy().into_owned());
    rank.start_below(&words, |_| ());
    rank.await_stderr("serving until a signal");
    let outer = format!("/proc/{}/task/{}/children", rank.pid(), rank.pid());
    let inner = || {
        let known = std::fs::read_to_string(&outer)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        known.or_else(|| children(rank.pid()).first().copied())
    };
    let launcher: i32 = inner().expect("unshare has a child");
    rank.until("no zombies", || {
        children(launcher).iter().all(|pid| alive(*pid))
    });
    nix::sys::signal::kill(Pid::from_raw(launcher), Signal::SIGTERM).unwrap();
    let end = rank.end();
    assert!(
        end.stderr.contains("stopped by SIGTERM; exit code 143"),
        "{}",
        end.stderr
    );
}

fn children(of: i32) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let rest = text.rsplit_once(") ").map_or("", |(_, rest)| rest);
            rest.split(' ').nth(1) == Some(&of.to_string())
        })
        .collect()
}
