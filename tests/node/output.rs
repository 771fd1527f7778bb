//! Logs: nothing lost in the files, nothing that stops a server.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Rank, launcher};

#[test]
fn a_flood_and_junk_reach_the_log_whole_and_cost_little_memory() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": rank.file("flooded"), "flooded": rank.file("flooded"), "flood_mb": 64, "bytes": "00ff1b5b31"}));
    rank.start();
    let mut peak = 0;
    while !rank.ended() {
        let status = fs::read_to_string(format!("/proc/{}/status", rank.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(now.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    let log = fs::read(rank.path("logs/prefill-0.log")).unwrap();
    assert!(log.starts_with(&[0, 255, 27, 91, 49]));
    assert_eq!(log.len(), 5 + (64 << 20));
    assert!(peak > 0 && peak < 64 << 10, "{peak} kB");
}

#[test]
fn a_reader_of_stderr_that_does_not_read_or_goes_away_stops_nothing() {
    for goes in [false, true] {
        let mut rank = Rank::leader();
        rank.server(&json!({"ready": rank.file("flooded"), "flooded": rank.file("flooded"), "flood_mb": 20}),
        );
        let (reader, writer) = std::io::pipe().unwrap();
        rank.start_below(&[launcher().to_string_lossy().into_owned()], |command| {
            command.stderr(Stdio::from(writer));
        });
        let reader = if goes { None } else { Some(reader) };
        let end = rank.end();
        assert_eq!(end.code, 0, "gone: {goes}");
        assert_eq!(
            fs::metadata(rank.path("logs/prefill-0.log")).unwrap().len(),
            20 << 20
        );
        drop(reader);
    }
}

#[test]
fn closed_streams_cost_their_output_and_nothing_else() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let mut rank = Rank::leader();
        rank.server(&json!({"ready": "", "lines": 3}));
        rank.spec["workload"] = json!(["sh", "-c", "echo data; echo talk >&2; exit 6"]);
        let launcher = launcher().to_string_lossy().into_owned();
        let line = format!("exec \"$0\" \"$@\" {closed}");
        let words = ["sh", "-c", &line, &launcher].map(str::to_owned);
        rank.start_below(&words, |_| ());
        let end = rank.end();
        assert_eq!(end.code, 6, "{closed}: {}", end.stderr);
        let data = if closed.contains(" >") || closed.starts_with('>') {
            ""
        } else {
            "data\n"
        };
        assert_eq!(end.stdout, data, "{closed}");
        assert_eq!(end.stderr.is_empty(), closed.contains("2>"), "{closed}");
        // No log and no record went to a stream that was closed.
        let log = fs::read_to_string(rank.path("logs/prefill-0.log")).unwrap();
        assert_eq!(log, "line 1\nline 2\nline 3\n", "{closed}");
        let log = fs::read_to_string(rank.path("logs/workload-0.log")).unwrap();
        assert!(
            log.contains("data\n") && log.contains("talk\n"),
            "{closed}: {log}"
        );
        assert_eq!(end.manifest["exit_code"], 6, "{closed}");
    }
}

#[test]
fn a_reader_of_stdout_that_goes_away_does_not_end_the_workload() {
    let mut rank = Rank::leader();
    rank.spec["workload"] = json!(["sh", "-c", "yes 0123456 | head -c 3000000; exit 4"]);
    let (reader, writer) = std::io::pipe().unwrap();
    rank.start_below(&[launcher().to_string_lossy().into_owned()], |command| {
        command.stdout(Stdio::from(writer));
    });
    drop(reader);
    let end = rank.end();
    assert_eq!(end.code, 4, "{}", end.stderr);
    let log = fs::metadata(rank.path("logs/workload-0.log")).unwrap();
    assert_eq!(log.len(), 3_000_000);
}

#[test]
fn standard_input_is_left_to_whoever_started_the_launcher() {
    use std::io::Seek as _;
    let mut rank = Rank::leader();
    fs::write(rank.path("input"), "line 1\nline 2\n").unwrap();
    let mut input = fs::File::open(rank.path("input")).unwrap();
    let same = input.try_clone().unwrap();
    rank.server(&json!({"ready": rank.file("flooded"), "flooded": rank.file("flooded"), "reads_stdin": true}));
    rank.spec["workload"] = json!(["cat"]);
    rank.start_below(&[launcher().to_string_lossy().into_owned()], |command| {
        command.stdin(Stdio::from(same));
    });
    let end = rank.end();
    assert_eq!((end.code, end.stdout.as_str()), (0, ""));
    assert!(end.stderr.contains("stdin has 0 bytes"), "{}", end.stderr);
    assert_eq!(input.stream_position().unwrap(), 0);
}

#[test]
fn lines_are_shown_whole_with_their_prefix_however_they_are_written() {
    let mut rank = Rank::leader();
    let (server, router) = (rank.file("server-said"), rank.file("router-said"));
    rank.server(&json!({"ready": server, "flooded": server, "chatter": [2000, 300, 7]}));
    rank.router(&json!({"ready": router, "flooded": router, "chatter": [2000, 300, 11]}));
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    for name in ["prefill-0", "router"] {
        let start = format!("[{name}] chatter ");
        let whole = end
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix(&start));
        let numbers = whole.map(|rest| {
            let (number, rest) = rest.split_once(' ').unwrap();
            assert!(
                rest.len() == 285 && rest.bytes().all(|byte| byte == b'z'),
                "{name}: {rest}"
            );
            number.parse::<u32>().unwrap()
        });
        assert!(numbers.eq(0..2000), "{name}");
    }
}

#[test]
fn the_last_fifty_lines_of_a_server_that_failed_are_shown_and_all_are_in_its_log() {
    let mut rank = Rank::leader();
    rank.server(&json!({"lines": 200, "fault": "exit:4", "when": ""}));
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 4, "{}", end.stderr);
    let shown: Vec<String> = end
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("[prefill-0] | "))
        .map(str::to_owned)
        .collect();
    let last: Vec<String> = (151..=200).map(|number| format!("line {number}")).collect();
    assert_eq!(shown, last);
    let log = fs::read_to_string(rank.path("logs/prefill-0.log")).unwrap();
    assert_eq!(log.lines().count(), 200);
}

#[test]
fn waiting_makes_few_lines() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": rank.file("go")}));
    rank.start();
    rank.await_file("server");
    let begun = std::time::Instant::now();
    // Sixty polls.
    rank.until("some polls", || begun.elapsed().as_secs() >= 3);
    rank.make_file("go");
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    let own = end
        .stderr
        .lines()
        .filter(|line| line.starts_with("atom-launch "))
        .count();
    assert!(own <= 25, "{own} lines:\n{}", end.stderr);
}

#[test]
fn logs_are_collected_from_a_run_that_was_cancelled() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": rank.file("never"), "lines": 1}));
    rank.spec["collect_logs"] = json!(rank.file("collected"));
    rank.start();
    rank.await_stderr("[prefill-0] line 1");
    rank.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(rank.end().code, 143);
    let log = fs::read_to_string(rank.path("collected/prefill-0.log")).unwrap();
    assert_eq!(log, "line 1\n");
    let record = fs::read_to_string(rank.path("collected/launch-rank0.json")).unwrap();
    assert!(record.contains("\"exit_code\": 143"), "{record}");
}

#[test]
fn a_folder_that_cannot_be_collected_into_does_not_change_the_code() {
    let mut rank = Rank::leader();
    fs::write(rank.path("blocked"), "").unwrap();
    rank.spec["collect_logs"] = json!(rank.file("blocked/out"));
    rank.spec["workload"] = json!(["sh", "-c", "exit 6"]);
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 6, "{}", end.stderr);
    assert!(end.stderr.contains("blocked/out"), "{}", end.stderr);
}

#[test]
fn what_the_workload_writes_to_stdout_arrives_whole_at_a_slow_reader() {
    let mut rank = Rank::leader();
    rank.spec["workload"] = json!(["sh", "-c", "yes 0123456 | head -c 16000000"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    rank.start_below(&[launcher().to_string_lossy().into_owned()], |command| {
        command.stdout(Stdio::from(writer));
    });
    rank.await_stderr("starting the workload");
    let mut whole = Vec::new();
    let mut chunk = vec![0; 300_000];
    loop {
        let count = reader.read(&mut chunk).unwrap();
        if count == 0 {
            break;
        }
        whole.extend_from_slice(&chunk[..count]);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(rank.end().code, 0);
    assert_eq!(whole.len(), 16_000_000);
    assert_eq!(
        fs::metadata(rank.path("logs/workload-0.log"))
            .unwrap()
            .len(),
        16_000_000
    );
}

#[test]
fn a_full_disk_costs_the_log_and_not_the_job() {
    let mut rank = Rank::leader();
    rank.server(&json!({"ready": rank.file("flooded"), "flooded": rank.file("flooded"), "lines": 100, "flood_mb": 2}));
    fs::create_dir(rank.path("logs")).unwrap();
    std::os::unix::fs::symlink("/dev/full", rank.path("logs/prefill-0.log")).unwrap();
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 0, "{}", end.stderr);
    assert_eq!(
        end.stderr.matches("prefill-0.log any more").count(),
        1,
        "said once"
    );
    assert!(end.stderr.contains("[prefill-0] line 100"));
}

#[test]
fn a_log_folder_that_cannot_be_written_is_found_before_the_start() {
    let mut rank = Rank::leader();
    fs::write(rank.path("blocked"), "").unwrap();
    rank.spec["log_dir"] = json!(rank.file("blocked/logs"));
    rank.start();
    let end = rank.end();
    assert_eq!(end.code, 2, "{}", end.stderr);
    assert!(end.stderr.contains("blocked/logs"), "{}", end.stderr);
    assert!(!rank.path("server").exists());
}

#[test]
fn every_process_event_signal_and_answer_is_told_where_it_is_asked_for() {
    let mut rank = Rank::leader();
    rank.workload(&json!({}));
    let command = [launcher().to_string_lossy().into_owned()];
    rank.start_below(&command, |command| {
        command.env("ATOM_LAUNCH_LOG", "trace");
    });
    rank.await_stderr("phase workload");
    rank.signal(Signal::SIGTERM);
    let end = rank.end();
    // `atom-launch 10:44:00.123Z rank 0: …`, the process ids left out.
    let said: Vec<String> = end
        .stderr
        .lines()
        .filter_map(|line| {
            let (head, text) = line.split_once(" rank 0: ")?;
            assert_eq!(head.len(), "atom-launch 10:44:00.123Z".len(), "{line}");
            let pid = text.split(['(', ')']).nth(1).unwrap_or_default();
            let is_pid = pid.starts_with("process ");
            Some(if is_pid {
                text.replace(pid, "process N")
            } else {
                text.to_owned()
            })
        })
        .collect();
    let place = &rank.spec["workers"][0];
    let address = format!("{}:{}", place["address"].as_str().unwrap(), place["port"]);
    for line in [
        "debug: phase servers".to_owned(),
        format!("trace: prefill-0 at {address}: ready"),
        "debug: received SIGTERM".to_owned(),
        "debug: phase teardown".to_owned(),
        "debug: SIGTERM to the group of workload (process N)".to_owned(),
        "debug: SIGTERM to prefill-0 (process N)".to_owned(),
        "debug: prefill-0 (process N): ended with code 0".to_owned(),
    ] {
        assert!(said.contains(&line), "{line}\n{}", end.stderr);
    }
}
