//! Logs: nothing lost in the files, nothing that stops a server.

use std::fs;
use std::io::Read as _;
use std::process::Stdio;

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
    assert_eq!(end.code, 0);
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
    assert_eq!(end.code, 2);
    assert!(end.stderr.contains("blocked/logs"), "{}", end.stderr);
    assert!(!rank.path("server").exists());
}
