//! Records in, table and page out.

use std::fs;
use std::path::Path;

use super::*;
use crate::run::records::Records;

fn record(rank: usize, more: &str) -> String {
    format!(
        r#"{{"schema": 1, "version": "0.1.0", "rank": {rank}, "ranks": 3, "host": "node{rank}", "launcher_pid": 1, "model": "Demo <8B>",
            "model_path": "/m", "models_file": "built-in", "models_sha256": "0123456789abcdef", "started_at": "2026-12-01T10:00:00Z",
            "started_unix": 1000.{rank}, "exit_code": null, "failed_phase": null, "decided_s": null, "reason": "", "culprit": null,
            "processes": [], "phases": [], "outcome": "running" {more}}}"#
    )
}

/// Later keys are not allowed twice, so the defaults are replaced in the text.
fn changed(rank: usize, changes: &[(&str, &str)]) -> String {
    let mut value: serde_json::Value = serde_json::from_str(&record(rank, "")).unwrap();
    for (name, text) in changes {
        value[*name] = serde_json::from_str(text).unwrap();
    }
    value.to_string()
}

fn job() -> (tempfile::TempDir, Records) {
    let folder = tempfile::tempdir().unwrap();
    let first = changed(
        0,
        &[
            ("outcome", r#""failed""#),
            ("exit_code", "69"),
            ("failed_phase", r#""servers""#),
            ("decided_s", "9.5"),
            ("reason", r#""decode-1 was ready and is gone""#),
            (
                "phases",
                r#"[{"phase": "servers", "start_s": 0.0, "end_s": 9.5}, {"phase": "teardown", "start_s": 9.5, "end_s": 10.0}]"#,
            ),
        ],
    );
    let second = changed(
        1,
        &[
            ("outcome", r#""failed""#),
            ("exit_code", "139"),
            ("failed_phase", r#""router""#),
            ("decided_s", "7.3"),
            ("reason", r#""decode-1 was killed by SIGSEGV""#),
            ("culprit", r#""decode-1""#),
            (
                "phases",
                r#"[{"phase": "router", "start_s": 0.0, "end_s": 7.3}]"#,
            ),
            (
                "processes",
                r#"[{"name": "decode-1", "argv": ["python3", "-m", "x y"], "env": [{"name": "A", "value": "</pre>", "source": "default"}],
                     "log": "/logs/decode-1.log", "pid": 7, "started_s": 0.1, "ended_s": 7.2, "exit": "was killed by SIGSEGV"}]"#,
            ),
        ],
    );
    fs::write(folder.path().join("launch-rank0.json"), first).unwrap();
    fs::create_dir(folder.path().join("node1")).unwrap();
    fs::write(folder.path().join("node1/launch-rank1.json"), second).unwrap();
    fs::write(folder.path().join("launch-rank9.json"), "{").unwrap();
    fs::write(folder.path().join("launch-rankX.json"), "{").unwrap();
    let report = Records::read(folder.path()).unwrap();
    (folder, report)
}

#[test]
fn the_table_says_who_failed_first_and_who_is_missing() {
    let (folder, report) = job();
    let text = text(&report).replace(&folder.path().to_string_lossy().into_owned(), "DIR");
    assert_eq!(
        text,
        "\
rank  host   ran       servers s  router s  teardown s  code  outcome
   0  node0                  9.5         -         0.5    69  failed in servers
   1  node1  decode-1          -       7.3           -   139  failed in router

first to fail: rank 1 after 7.4 s: decode-1 was killed by SIGSEGV
its log: /logs/decode-1.log
rank 2 has left no record
not readable: DIR/launch-rank9.json: EOF while parsing an object at line 1 column 1
"
    );
}

#[test]
fn the_page_is_whole_by_itself_and_nothing_in_it_is_markup_of_the_records() {
    let (_folder, report) = job();
    let page = html(&report);
    for part in [
        "first to fail: rank 1 after 7.4 s",
        "Demo &lt;8B&gt;",
        "A=&#39;&lt;/pre&gt;&#39;",
        "decode-1: was killed by SIGSEGV",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http://", "https://", "<script", "<8B>", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    let count = |text: &str| page.matches(text).count();
    assert_eq!(count("<svg"), count("</svg>"));
    assert_eq!(count("<details>"), 1);
    assert_eq!(count("<circle"), 2);
}

#[test]
fn a_folder_without_records_is_an_error_and_a_later_run_replaces_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        Records::read(folder.path())
            .unwrap_err()
            .contains("no launch-rank<N>.json here")
    );
    assert!(Records::read(Path::new("/nowhere")).is_err());
    let early = changed(0, &[("started_unix", "1.0"), ("host", r#""old""#)]);
    fs::write(folder.path().join("launch-rank0.json"), early).unwrap();
    fs::create_dir(folder.path().join("again")).unwrap();
    fs::write(folder.path().join("again/launch-rank0.json"), record(0, "")).unwrap();
    let report = Records::read(folder.path()).unwrap();
    assert_eq!(report.ranks.len(), 1);
    assert_eq!(report.ranks[0].host, "node0");
}

#[test]
fn the_job_ends_with_the_code_of_its_first_failure() {
    let (_folder, report) = job();
    assert_eq!(report.exit_code(), 139);
    let folder = tempfile::tempdir().unwrap();
    let write = |rank: usize, changes: &[(&str, &str)]| {
        let path = folder.path().join(format!("launch-rank{rank}.json"));
        fs::write(path, changed(rank, changes)).unwrap();
        Records::read(folder.path()).unwrap()
    };
    let done = write(0, &[("outcome", r#""done""#), ("exit_code", "0")]);
    assert_eq!(done.exit_code(), 0);
    // One that was stopped after the end of the job is no failure; without an end of rank 0 nothing is known.
    let stopped = write(1, &[("outcome", r#""stopped""#), ("exit_code", "143")]);
    assert_eq!(stopped.exit_code(), 0);
}

#[test]
fn a_first_cause_of_an_earlier_run_in_the_same_folder_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let slurm = |id: u32| format!(r#"{{"id": "{id}", "restart": 0}}"#);
    let failed = |rank: usize, id: u32, reason: &str| {
        let text = changed(
            rank,
            &[
                ("outcome", r#""failed""#),
                ("decided_s", "1.0"),
                ("slurm", &slurm(id)),
                ("reason", &format!("\"{reason}\"")),
            ],
        );
        fs::write(folder.path().join(format!("launch-rank{rank}.json")), text).unwrap();
    };
    failed(1, 7, "old");
    failed(2, 8, "new");
    let own: Manifest = serde_json::from_str(&changed(0, &[("slurm", &slurm(8))])).unwrap();
    let report = Records::read(folder.path()).unwrap();
    assert_eq!(report.first_failure_of(&own).unwrap().reason, "new");
    // Without a job's number: by the clock.
    let own = |started: &str| -> Manifest {
        serde_json::from_str(&changed(0, &[("started_unix", started)])).unwrap()
    };
    fs::write(
        folder.path().join("launch-rank1.json"),
        changed(
            1,
            &[
                ("outcome", r#""failed""#),
                ("decided_s", "1.0"),
                ("reason", r#""late""#),
            ],
        ),
    )
    .unwrap();
    let report = Records::read(folder.path()).unwrap();
    assert_eq!(
        report.first_failure_of(&own("1000.5")).unwrap().reason,
        "late"
    );
    assert!(report.first_failure_of(&own("1003.0")).is_none());
}

#[test]
fn a_rank_without_an_end_is_named_once_another_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let write = |rank: usize, changes: &[(&str, &str)]| {
        let path = folder.path().join(format!("launch-rank{rank}.json"));
        fs::write(path, changed(rank, changes)).unwrap();
        text(&Records::read(folder.path()).unwrap())
    };
    let slurm = r#"{"id": "17", "restart": 2}"#;
    assert!(!write(1, &[]).contains("has recorded no end"));
    let text = write(
        0,
        &[
            ("outcome", r#""stopped""#),
            ("exit_code", "143"),
            ("slurm", slurm),
        ],
    );
    assert!(
        text.starts_with("SLURM job 17, started again 2×\n"),
        "{text}"
    );
    assert!(
        text.contains("rank 1 on node1 has recorded no end"),
        "{text}"
    );
}
