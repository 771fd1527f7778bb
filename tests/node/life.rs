//! Good days, waits and records.

use std::net::TcpListener;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{End, Rank, alive, launcher, with_limit};

#[test]
fn a_good_job_is_recorded_from_preflight_to_teardown_without_secrets() {
    let mut rank = Rank::leader();
    rank.spec["workload"] = json!([
        "sh",
        "-c",
        "echo $ROUTER_URL $ROUTER_PORT $MODEL_PATH $IS_MTP; echo $NO_PROXY >&2"
    ]);
    rank.spec["workload_env"] = json!([["IS_MTP", "true"], ["WANDB_API_KEY", "wb_s3cret"]]);
    rank.spec["smoke"] = json!(true);
    rank.spec["collect_logs"] = json!(rank.file("collected"));
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    let url = format!("http://{}:8000", rank.address);
    assert_eq!(end.stdout, format!("{url} 8000 /models/Demo true\n"));
    assert!(
        end.stderr
            .contains(&format!("{},127.0.0.1,localhost", rank.address)),
        "{}",
        end.stderr
    );
    let phases: Vec<_> = end.manifest["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["phase"].clone())
        .collect();
    assert_eq!(
        phases,
        [
            "preflight",
            "servers",
            "router",
            "smoke",
            "workload",
            "teardown"
        ]
    );
    let processes = end.manifest["processes"].as_array().unwrap();
    let names: Vec<_> = processes.iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["prefill-0", "router", "workload"]);
    assert!(
        processes
            .iter()
            .all(|one| one["ended_s"].is_number() && one["exit"].is_string())
    );
    let text = end.manifest.to_string() + &end.stderr;
    for secret in ["hf_s3cret", "hf_inherited", "wb_s3cret"] {
        assert!(!text.contains(secret), "{secret} is shown");
    }
    assert!(text.contains("DEMO_FLAG"));
    for name in [
        "prefill-0.log",
        "router-0.log",
        "workload-0.log",
        "launch-rank0.json",
    ] {
        assert!(rank.path("collected").join(name).exists(), "{name}");
    }
    let collected = std::fs::read_to_string(rank.path("collected/launch-rank0.json")).unwrap();
    assert!(collected.contains("\"outcome\": \"done\""), "{collected}");
}

#[test]
fn a_single_server_runs_the_workload_without_a_router() {
    let mut rank = Rank::leader();
    rank.spec["router"] = serde_json::Value::Null;
    rank.spec["workload"] = json!(["sh", "-c", "echo $ROUTER_URL; exit 5"]);
    rank.start();
    let end = rank.end();
    assert_eq!(
        (end.code, end.stdout),
        (5, format!("http://{}:8010\n", rank.address))
    );
}

#[test]
fn a_port_that_isheld_stops_the_rank_and_names_the_holder() {
    let mut rank = Rank::leader();
    let held = TcpListener::bind((rank.address.as_str(), 8010)).unwrap();
    rank.missing_server();
    rank.start();
    let end = {
        rank.until("the end", || !alive(rank.pid()));
        drop(held);
        rank.end()
    };
    assert_eq!(end.code, 2, "{}", end.stderr);
    let holder = format!("is in use by process {}", std::process::id());
    assert!(end.stderr.contains(&holder), "{}", end.stderr);
    assert_eq!(end.manifest["failed_phase"], "preflight");
    assert!(!rank.path("server").exists());
}

#[test]
fn a_stranger_on_our_port_is_not_our_server() {
    let stranger = format!("the port belongs to process {}", std::process::id());
    let (rank, end) = with_limit(beside_a_stranger, |(_, end)| end.stderr.contains(&stranger));
    assert_eq!(end.code, 69, "{}", end.stderr);
    assert!(end.stderr.contains(&stranger), "{}", end.stderr);
    assert!(!rank.path("router").exists());
}

/// A rank whose server has so many seconds to become ready, while somebody else answers at its port.
fn beside_a_stranger(limit: f64) -> (Rank, End) {
    let mut rank = Rank::leader();
    // Ours lives and never listens; the test takes the port once the preflight is over.
    rank.server(&json!({"port": null}));
    rank.limit("wait_server", limit);
    // More answers than their owner can be looked up for.
    rank.limit("poll_interval", 0.01);
    rank.start();
    rank.await_stderr("prefill-0: process");
    let stranger = TcpListener::bind((rank.address.as_str(), 8010)).unwrap();
    let thread = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        while let Ok((mut stream, _)) = stranger.accept() {
            let mut text = [0; 1024];
            let count = stream.read(&mut text).unwrap_or(0);
            if text[..count].starts_with(b"end") {
                return;
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        }
    });
    rank.until("the end", || !alive(rank.pid()));
    let mut last = std::net::TcpStream::connect((rank.address.as_str(), 8010)).unwrap();
    std::io::Write::write_all(&mut last, b"end").unwrap();
    thread.join().unwrap();
    let end = rank.end();
    (rank, end)
}

#[test]
fn what_never_becomes_ready_is_named_with_its_last_answer() {
    let run = |limit| {
        let mut rank = Rank::leader();
        rank.server(&json!({"ready": rank.file("never"), "lines": 3}));
        rank.limit("wait_server", limit);
        rank.limit("heartbeat", 0.3);
        rank.start();
        rank.end()
    };
    let end = with_limit(run, |end| end.stderr.contains("HTTP 503"));
    assert_eq!(end.code, 69, "{}", end.stderr);
    for part in [
        "prefill-0",
        "HTTP 503",
        "waiting for 1 of 1 servers",
        "| line 3",
    ] {
        assert!(end.stderr.contains(part), "{part}: {}", end.stderr);
    }
    assert_eq!(end.manifest["culprit"], "prefill-0");
}

#[test]
fn an_engine_that_dies_before_the_server_is_ready_fails_the_rank() {
    let mut rank = Rank::leader();
    rank.server(&json!({"port": null, "engine": rank.file("engine")}));
    rank.limit("engine_death_grace", 2.0);
    rank.start_below(&[launcher().to_string_lossy().into_owned()], |command| {
        command.env("ATOM_LAUNCH_LOG", "trace");
    });
    let engine = rank.await_file("engine").parse().unwrap();
    // The watch believes in an engine only after it has seen it for 3 s: these looks are half a second apart or more.
    let looks = || rank.stderr().matches(": 1 engine processes").count();
    rank.until("some looks", || looks() >= 8);
    kill(Pid::from_raw(engine), Signal::SIGKILL).unwrap();
    rank.await_stderr("was killed by SIGKILL");
    let end = rank.end();
    assert_eq!(end.code, 69, "{}", end.stderr);
    assert!(
        end.manifest["reason"]
            .as_str()
            .unwrap()
            .contains("lost an engine process"),
        "{}",
        end.manifest
    );
}

#[test]
fn a_workload_that_cannot_run_is_found_before_the_servers_load() {
    for (program, code) in [("./bench-missing.sh", 127), ("/etc/passwd", 126)] {
        let mut rank = Rank::leader();
        rank.spec["workload"] = json!([program]);
        rank.start();
        let end = rank.end();
        assert_eq!(end.code, code, "{}", end.stderr);
        assert!(end.stderr.contains(program), "{}", end.stderr);
        assert!(!rank.path("server").exists());
    }
}

#[test]
fn a_workload_that_hangs_is_ended_with_all_that_it_started() {
    let run = |limit| {
        let mut rank = Rank::leader();
        rank.workload(&json!({"on_term": "ignore", "orphan": 2, "setsid": 1}));
        rank.limit("workload_timeout", limit);
        rank.limit("grace", 0.5);
        rank.start();
        let end = rank.end();
        // It ignores TERM by the time it says that it runs.
        (rank.path("workload").exists(), end)
    };
    let (_, end) = with_limit(run, |(began, _)| *began);
    assert_eq!(end.code, 124, "{}", end.stderr);
    assert!(end.stderr.contains("sending KILL"), "{}", end.stderr);
}

#[test]
fn a_stopped_workload_may_finish_what_its_script_began() {
    let mut rank = Rank::leader();
    let inner = "trap 'sleep 0.3; echo results > \"$0\"; exit 0' TERM; echo > \"$0.ready\"; while :; do sleep 0.01; done";
    let outer = format!(
        "sh -c '{}' {} & wait",
        inner.replace('\'', "'\\''"),
        rank.file("results")
    );
    rank.spec["workload"] = json!(["sh", "-c", outer]);
    rank.start();
    rank.await_file("results.ready");
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    assert_eq!(end.code, 143, "{}", end.stderr);
    assert_eq!(rank.await_file("results"), "results\n");
}

#[test]
fn the_other_ranks_go_when_the_router_goes_and_not_when_it_is_busy() {
    let mut first = Rank::leader();
    first.spec["job"]["ranks"] = json!(2);
    first.workload(&json!({"fault": "exit:0", "when": first.file("go")}));
    let mut second = Rank::follower();
    second.spec["router_address"]["address"] = json!(first.address);
    second.start();
    first.start();
    second.await_stderr("the router is up");
    let router: i32 = first.await_file("router").parse().unwrap();
    let router = Pid::from_raw(router);
    kill(router, Signal::SIGSTOP).unwrap();
    let begun = std::time::Instant::now();
    first.until("some polls", || begun.elapsed().as_millis() > 700);
    assert!(!second.ended());
    kill(router, Signal::SIGCONT).unwrap();
    first.make_file("go");
    assert_eq!(first.end().code, 0);
    let end = second.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    assert!(end.stderr.contains("the router is gone"), "{}", end.stderr);
}

#[test]
fn the_router_starts_only_after_the_last_server_and_the_workload_after_the_router() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": rank.file("first")}));
    let late = json!({"address": rank.address, "port": 8020, "ready": rank.file("second"), "started": rank.file("late")});
    let health = format!("http://{}:8020/health", rank.address);
    let worker = json!({
        "name": "decode-0", "role": "decode", "address": rank.address, "port": 8020,
        "health_url": health, "command": {"argv": Rank::fake(&late)},
    });
    rank.spec["workers"].as_array_mut().unwrap().push(worker);
    let endpoint = json!({"name": "decode-0", "role": "decode", "rank": 0, "health_url": health});
    rank.spec["all_workers"]
        .as_array_mut()
        .unwrap()
        .push(endpoint);
    rank.router(&json!({"ready": rank.file("third")}));
    rank.workload(&json!({"fault": "exit:0", "when": ""}));
    rank.start();
    // Both answer 503 until they are ready.
    rank.await_file("server");
    rank.await_file("late");
    rank.make_file("second");
    rank.await_stderr("decode-0 is ready");
    assert!(!rank.path("router").exists());
    rank.make_file("first");
    rank.await_file("router");
    assert!(rank.stderr().contains("prefill-0 is ready"));
    assert!(!rank.path("workload").exists());
    rank.make_file("third");
    assert_eq!(rank.end().code, 0);
    assert!(rank.path("workload").exists());
}

#[test]
fn a_router_without_a_page_for_readiness_is_up_for_all_ranks() {
    let mut first = Rank::leader();
    first.spec["job"]["ranks"] = json!(2);
    first.router(
        &json!({"ready": first.file("never"), "not_ready": 404, "pages": {"/v1/models": 200}}),
    );
    let mut second = Rank::follower();
    second.spec["router_address"]["address"] = json!(first.address);
    // Its own limit for the router is of no concern: rank 0 may take all its time for the servers first.
    second.limit("wait_router", 0.1);
    first.server(&json!({"ready": first.file("go")}));
    first.workload(&json!({"fault": "exit:0", "when": first.file("over")}));
    second.start();
    first.start();
    second.await_stderr("is ready after");
    let begun = std::time::Instant::now();
    second.until("its limit", || begun.elapsed().as_millis() > 300);
    first.make_file("go");
    second.await_stderr("the router is up");
    first.make_file("over");
    assert_eq!(first.end().code, 0);
    assert_eq!(second.end().code, 0);
}

#[test]
fn nothing_pauses_between_the_workloads_end_and_the_ranks() {
    let teardown = || {
        let mut rank = Rank::leader();
        rank.start();
        let end = rank.end();
        assert_eq!(end.code, 0, "{}", end.stderr);
        let teardown = end.manifest["phases"].as_array().unwrap().last().unwrap();
        assert_eq!(teardown["phase"], "teardown");
        teardown["end_s"].as_f64().unwrap() - teardown["start_s"].as_f64().unwrap()
    };
    // A busy machine delays one of them or another; a pause delays each.
    let mut all = std::iter::repeat_with(teardown).take(10);
    assert!(all.any(|took| took < 1.0), "each took a second or more");
}
