//! What stands against a start is told before anything starts: programs that could not be executed, folders that take no logs.

use std::os::unix::fs::symlink;

use crate::common::Test;

/// A rank with a model, a server that could be executed, and a free port.
fn node(more: &str) -> Test {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    Test::new(&format!(
        "node --model M --models-file m.yaml --model-dir models --quiet --tp 1 --server-port {port} --python /bin/false {more}"
    ))
    .file("m.yaml", "M: {}")
    .file("models/M/config.json", "{}")
    .file("models/M/a.safetensors", "")
}

/// The sentences of the findings: nothing was started.
#[track_caller]
fn findings(test: Test, status: i32) -> Vec<String> {
    let run = test.status(status).any_stderr().run();
    assert!(!run.stderr.contains(": process "), "{}", run.stderr);
    let lines = run
        .stderr
        .lines()
        .filter_map(|line| line.split_once("error: ["));
    lines
        .map(|(_, finding)| finding.split_once("] ").unwrap().1.to_owned())
        .collect()
}

#[test]
fn a_workload_that_cannot_be_executed_is_told_before_the_servers_load() {
    for (content, why) in [
        (
            "#!/nowhere/bash\n",
            "its first line names /nowhere/bash, which does not exist (mend the first line of ./bench)",
        ),
        (
            "#!/etc\n",
            "its first line names /etc, and that cannot be executed: it is a folder (mend the first line of ./bench)",
        ),
        (
            "#!/bin/sh\r\ntrue\r\n",
            "its first line ends in CR LF, and the system takes the CR for a part of the interpreter's name (save it with the line ends of Unix: `sed -i 's/\\r$//' ./bench`)",
        ),
        (
            "#!/usr/bin/env no-such-thing\n",
            "its first line makes env look for `no-such-thing`, which is not on PATH (mend the first line of ./bench)",
        ),
        ("\u{7f}ELF", "it is a program that was cut off"),
        (
            "echo no first line\n",
            "it is neither a program nor a script with `#!` in its first line (a script starts with a line such as `#!/bin/bash`)",
        ),
    ] {
        let test = node("-- ./bench").program("bench", content);
        assert_eq!(
            findings(test, 126),
            [format!("workload `./bench` cannot be executed: {why}")]
        );
    }
    let test = node("-- ./bench").file("bench", "#!/bin/sh\n");
    assert_eq!(
        findings(test, 126),
        ["workload `./bench` cannot be executed: it is not marked executable (chmod +x ./bench)"]
    );
}

#[test]
fn a_workload_that_is_not_there_is_told_with_the_place_looked_at() {
    assert_eq!(
        findings(node("-- ./bench"), 127),
        [
            "workload `./bench` cannot be executed: there is no such file in [DIR] (a relative path starts at the working directory: give the whole path)"
        ]
    );
    let test = node("-- ./bench");
    symlink("gone.sh", test.path("bench")).unwrap();
    assert_eq!(
        findings(test, 127),
        ["workload `./bench` cannot be executed: it is a link to gone.sh, which does not exist"]
    );
}

#[test]
fn a_log_folder_that_takes_nothing_is_named_with_the_option() {
    let at = |folder: &str, make: &dyn Fn(&Test)| {
        let test = node(&format!("--log-dir {folder} -- true")).file("file", "");
        make(&test);
        findings(test, 2)
    };
    let nothing = |_: &Test| ();
    let another = "(give a folder with `--log-dir`)";
    assert_eq!(
        at("file", &nothing),
        [format!(
            "log folder file (--log-dir) cannot be written: it is a file {another}"
        )]
    );
    assert_eq!(
        at("file/logs", &nothing),
        [format!(
            "log folder file/logs (--log-dir) cannot be written: file is a file {another}"
        )]
    );
    let link = |test: &Test| symlink("gone", test.path("link")).unwrap();
    assert_eq!(
        at("link/logs", &link),
        [format!(
            "log folder link/logs (--log-dir) cannot be written: link is a link that leads nowhere {another}"
        )]
    );
    assert_eq!(
        at("/dev/full", &nothing),
        [format!(
            "log folder /dev/full (--log-dir) cannot be written: it is no folder {another}"
        )]
    );
}

#[test]
fn a_folder_of_collected_logs_that_cannot_be_is_told_at_the_start() {
    let test = node("--collect-logs file/logs -- true").file("file", "");
    let run = test.status(1).any_stderr().run();
    let mut lines = run.stderr.lines();
    let warning = "warning: [log-folder] folder of collected logs file/logs (--collect-logs) cannot be written: file is a file (give a folder with `--collect-logs`)";
    let told = lines.position(|line| line.ends_with(warning)).unwrap();
    let ended = run
        .stderr
        .lines()
        .position(|line| line.contains("ended with code 1"));
    assert!(told < ended.unwrap(), "{}", run.stderr);
}

#[test]
fn an_argument_that_the_system_does_not_take_is_told_before_the_servers_load() {
    let long = "x".repeat(140_000);
    let test = node("").file("m.yaml", format!("M: {{hf_overrides: {{a: {long}}}}}"));
    assert_eq!(
        findings(test, 2),
        [
            "standalone-0 cannot be started: an argument has 140008 bytes, and the system takes 131071 at most (put what is so long into a file)"
        ]
    );
}

#[test]
fn few_open_files_are_a_warning() {
    let line = "ulimit -n 64; exec \"$@\"";
    let run = node("-- true")
        .under(&["sh", "-c", line, "sh"])
        .status(1)
        .any_stderr()
        .run();
    let warning = "warning: [system-limit] no process may have more than 64 open files: a server needs thousands";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
}
