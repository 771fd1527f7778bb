//! `atom-launch rehearse` from outside: whole jobs, with and without faults, and nothing left behind.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use std::io::{BufRead as _, BufReader, Read};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use atom_launch::rehearse::RANK;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Longer than anything here takes on a busy machine; nobody waits for it when all is well.
const LIMIT: Duration = Duration::from_mins(3);
/// What the built-in check prints.
const ANSWER: &str = "this is a rehearsal and no model has been asked for anything\n";

/// What a rehearsal came to.
#[derive(Debug)]
struct Result {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Result {
    /// Outcome of a rank in the table at the end.
    fn outcome(&self, rank: u32) -> String {
        let start = format!("{rank}  ");
        let row = self
            .stderr
            .lines()
            .rfind(|line| line.starts_with(&start))
            .unwrap_or_default();
        let cells: Vec<&str> = row
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        cells
            .get(2)
            .map_or_else(String::new, |cell| (*cell).to_owned())
    }

    /// The rehearsal's folder, as it is told at the start.
    fn folder(&self) -> String {
        folder_in(&self.stderr)
    }

    /// No process that knew the rehearsal's folder is left; the folder is where the job failed, for its logs, and is said.
    fn nothing_is_left(&self) {
        let folder = self.folder();
        assert_eq!(processes_of(&folder), Vec::<i32>::new());
        let last = self.stderr.lines().last().unwrap();
        if self.code == Some(0) {
            assert!(!Path::new(&folder).exists(), "{folder}");
            assert_eq!(last, "logs: deleted; --keep or --log-dir DIR keeps them");
        } else {
            assert_eq!(last, format!("kept, logs included: {folder}"));
            let logs = Path::new(&folder).join("logs");
            assert!(logs.join("launch-rank0.json").is_file(), "{folder}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}

fn folder_in(stderr: &str) -> String {
    let line = stderr
        .lines()
        .find_map(|line| line.strip_prefix("  logs in "))
        .unwrap();
    line.strip_suffix("/logs").unwrap().to_owned()
}

fn processes_of(folder: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ
            .windows(folder.len())
            .any(|part| part == folder.as_bytes())
    })
    .collect()
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atom-launch"));
    command.arg("rehearse").args(["--model", "DeepSeek-V4-Pro"]);
    command
        .args(["--load-time", "300ms", "--poll-interval", "0.2"])
        .args(words);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Read a stream to its end beside the wait for the process.
fn reading(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stream) = stream {
            stream.read_to_string(&mut text).unwrap();
        }
        text
    })
}

/// Read a stream to its end, and tell once a line begins like this.
fn told(
    stream: impl Read + Send + 'static,
    start: &'static str,
) -> (Receiver<()>, JoinHandle<String>) {
    let (sender, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            text += &line;
            text.push('\n');
            if line.starts_with(start) {
                sender.send(()).unwrap();
            }
        }
        text
    });
    (told, reader)
}

/// Wait for the end of a rehearsal; one that takes too long is asked to end, and fails the test by its code.
fn finish(mut child: Child) -> Result {
    let stdout = reading(child.stdout.take());
    let stderr = reading(child.stderr.take());
    let end = Instant::now() + LIMIT;
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if !asked && Instant::now() >= end {
            asked = true;
            signal(&child, Signal::SIGTERM);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Result {
        code: status.code(),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn rehearse(words: &[&str]) -> Result {
    let child = command(words).spawn().unwrap();
    finish(child)
}

/// Run something that must see one thing before another comes, and give it more and more time for that until it does. The last one
/// counts whatever it saw.
fn with_time(run: impl Fn(u32) -> (bool, Result)) -> Result {
    for seconds in [1, 3, 6] {
        let (seen, result) = run(seconds);
        if seen {
            return result;
        }
        result.nothing_is_left();
    }
    run(12).1
}

/// Start one whose workload says that it runs.
fn running(words: &[&str]) -> Child {
    let mut all = words.to_vec();
    all.extend(["--", "sh", "-c", "echo running; exec sleep 500"]);
    command(&all).spawn().unwrap()
}

/// Wait for the workload's first line, and hand the rest of the streams back.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    line
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn all_problems_of_all_faults_are_told_before_anything_starts() {
    let result = rehearse(&["--fault", "rank=x kind=kill", "--fault", "who"]);
    assert_eq!(result.code, Some(2));
    assert_eq!(
        result.stderr.matches("error[bad-fault]: fault").count(),
        4,
        "{}",
        result.stderr
    );
    assert!(
        result.stderr.ends_with("nothing was started\n"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_fault_of_nobody_names_everybody() {
    let result = rehearse(&["--fault", "rank=7 kind=kill"]);
    assert_eq!(result.code, Some(2));
    assert_eq!(
        result.stderr.lines().next(),
        Some(
            "error[bad-fault]: fault `rank=7 kind=kill`: concerns no process of this job: prefill-0 (rank 0), decode-1 (rank 1), router (rank 0)"
        )
    );
}

#[test]
fn a_job_that_cannot_be_is_told_once_and_not_by_every_rank() {
    let result = rehearse(&["--tp", "16"]);
    assert_eq!(result.code, Some(2));
    assert!(!result.stderr.contains("[rank"), "{}", result.stderr);
}

#[test]
fn a_rank_is_this_program_and_starts_only_for_its_parent() {
    let start = |parent: u32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atom-launch"));
        command.arg0(RANK).args([&parent.to_string(), "--version"]);
        command.output().unwrap()
    };
    let own = start(std::process::id());
    assert!(own.stdout.starts_with(b"atom-launch "));
    assert_eq!(start(1).status.code(), Some(70));
}

#[test]
fn a_whole_job_needs_no_more_than_a_model() {
    let result = rehearse(&["--mode", "ep-dp"]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    assert_eq!(result.stdout, ANSWER);
    assert_eq!(
        (result.outcome(0).as_str(), result.outcome(1).as_str()),
        ("done", "done")
    );
    result.nothing_is_left();
}

#[test]
fn every_layout_and_a_lone_server_can_be_rehearsed() {
    let job = [
        "--prefill-workers",
        "2",
        "--decode-workers",
        "2",
        "--tp",
        "2",
        "--layout",
    ];
    for (layout, ranks) in [
        ("spread", 4),
        ("prefill-packed", 3),
        ("decode-packed", 3),
        ("packed", 1),
    ] {
        let mut words = job.to_vec();
        words.push(layout);
        let result = rehearse(&words);
        assert_eq!(result.code, Some(0), "{layout}: {}", result.stderr);
        assert_eq!(result.outcome(ranks - 1), "done", "{layout}");
        assert_eq!(result.outcome(ranks), "", "{layout}");
        result.nothing_is_left();
    }
    let alone = rehearse(&["--role", "standalone", "--mode", "tp-dp"]);
    assert_eq!(
        (alone.code, alone.stdout.as_str()),
        (Some(0), ANSWER),
        "{}",
        alone.stderr
    );
    alone.nothing_is_left();
}

#[test]
fn the_workload_gives_output_and_code() {
    let result = rehearse(&["--", "sh", "-c", "echo data; echo talk >&2; exit 7"]);
    assert_eq!(
        (result.code, result.stdout.as_str()),
        (Some(7), "data\n"),
        "{}",
        result.stderr
    );
    assert!(result.stderr.contains("talk"));
    result.nothing_is_left();
}

#[test]
fn faults_end_the_job_with_the_code_of_the_rank_that_failed() {
    let sleeping = ["--", "sleep", "500"];
    for (fault, rank, code) in [
        ("rank=1 kind=crash:3 at=100ms", 1, 3),
        ("role=prefill kind=crash:4 at=ready+100ms", 0, 4),
        ("role=decode kind=kill at=workload+200ms", 1, 137),
        ("kind=router-crash at=workload", 0, 1),
        ("rank=1 kind=port-stolen", 1, 1),
    ] {
        let mut words = vec!["--fault", fault];
        words.extend(sleeping);
        let result = rehearse(&words);
        assert_eq!(
            (result.code, result.outcome(rank).as_str()),
            (Some(code), "failed"),
            "{fault}: {}",
            result.stderr
        );
        result.nothing_is_left();
    }
}

#[test]
fn a_fault_that_never_happens_fails_a_job_that_is_well_and_no_other() {
    for fault in [
        "rank=1 kind=crash:3 at=500s",
        "kind=router-crash at=workload+500s",
        "role=decode kind=engine-death at=workload+500s",
    ] {
        let result = rehearse(&["--fault", fault]);
        let line = format!("error: the fault `{fault}` never happened: the job was over before");
        let told = result
            .stderr
            .lines()
            .any(|own| own == line.replace("kind=router-crash", "role=router kind=crash:1"));
        assert!(told, "{}", result.stderr);
        assert_eq!((result.code, result.outcome(1).as_str()), (Some(1), "done"));
        result.nothing_is_left();
    }
    let result = rehearse(&[
        "--fault",
        "rank=1 kind=crash:3",
        "--fault",
        "rank=0 kind=hang at=500s",
    ]);
    assert_eq!(result.code, Some(3), "{}", result.stderr);
    assert_eq!(result.stderr.matches("never happened").count(), 1);
    result.nothing_is_left();
}

#[test]
fn quiet_leaves_warnings_and_errors() {
    let well = rehearse(&["--quiet", "--", "sh", "-c", "echo data; echo talk >&2"]);
    assert_eq!(
        (well.code, well.stdout.as_str()),
        (Some(0), "data\n"),
        "{}",
        well.stderr
    );
    assert_eq!(well.stderr, "[rank 0] talk\n");
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().to_str().unwrap();
    let bad = rehearse(&[
        "--quiet",
        "--log-dir",
        logs,
        "--fault",
        "rank=1 kind=crash:3",
    ]);
    assert_eq!((bad.code, bad.outcome(1).as_str()), (Some(3), "failed"));
    assert!(bad.stderr.contains("error: decode-1 ended with code 3"));
    assert!(!bad.stderr.contains("[prefill-0]"), "{}", bad.stderr);
    assert!(bad.stderr.ends_with(&format!("\nlogs: {logs}\n")));
    let log = std::fs::read_to_string(folder.path().join("decode-1.log")).unwrap();
    assert!(log.contains("rehearsal: crash:3"), "{log}");
}

#[test]
fn the_workload_finds_the_model_where_the_servers_do() {
    let mut command = command(&["--", "sh", "-c", "echo $MODEL_DIR/$MODEL_NAME $MODEL_PATH"]);
    let result = finish(command.env("MODEL_DIR", "/nowhere").spawn().unwrap());
    let words: Vec<&str> = result.stdout.split_whitespace().collect();
    assert_eq!(words[0], words[1]);
    assert!(words[0].starts_with(&result.folder()));
}

#[test]
fn what_never_comes_runs_into_the_time_limit() {
    let fault = "rank=1 kind=never-ready";
    let result = rehearse(&["--wait-server-timeout", "2", "--fault", fault]);
    assert_eq!(
        (result.code, result.outcome(0).as_str()),
        (Some(69), "failed"),
        "{}",
        result.stderr
    );
    result.nothing_is_left();
}

#[test]
fn a_dead_engine_fails_the_job_and_a_slow_load_does_not() {
    // It must have been seen for 3 s before it dies, and a busy machine looks late.
    let dead = with_time(|seconds| {
        let fault = format!("rank=1 kind=engine-death at={}s", 2 + 2 * seconds);
        let wait = (20 * seconds).to_string();
        let result = rehearse(&[
            "--engine-death-grace",
            "1",
            "--wait-server-timeout",
            &wait,
            "--fault",
            &fault,
        ]);
        let seen = result.stderr.contains("lost an engine process");
        (seen, result)
    });
    assert_eq!(dead.outcome(1), "failed", "{}", dead.stderr);
    assert_eq!(dead.code, Some(69), "{}", dead.stderr);
    dead.nothing_is_left();
    let slow = rehearse(&[
        "--engine-death-grace",
        "1",
        "--smoke",
        "--fault",
        "role=decode kind=slow-load:3s",
        "--fault",
        "role=prefill kind=slow-health:400ms",
    ]);
    assert_eq!(
        (slow.code, slow.stdout.as_str()),
        (Some(0), ANSWER),
        "{}",
        slow.stderr
    );
    slow.nothing_is_left();
}

#[test]
fn the_first_token_is_not_waited_for_when_an_engine_has_died() {
    let reason = "lost an engine process before the first token (process ";
    for role in ["prefill", "decode"] {
        // It must have been seen while it lived: looks are a second apart, and a busy machine looks late.
        let result = with_time(|seconds| {
            let slow = format!("role={role} kind=slow-load:{}s", 2 * seconds);
            let dead = format!("role={role} kind=engine-death at=ready");
            let limit = (20 * seconds).to_string();
            let mut words = vec!["--smoke", "--smoke-timeout", &limit, "--grace", "1"];
            words.extend(["--fault", &slow, "--fault", &dead]);
            let result = rehearse(&words);
            (result.stderr.contains(reason), result)
        });
        assert_eq!(result.code, Some(69), "{}", result.stderr);
        assert!(result.stderr.contains(reason), "{}", result.stderr);
        result.nothing_is_left();
    }
    // It dies too early to have been seen: then the limit counts.
    let silent = rehearse(&[
        "--smoke",
        "--smoke-timeout",
        "1",
        "--grace",
        "1",
        "--fault",
        "role=decode kind=engine-death at=ready",
    ]);
    assert_eq!(silent.code, Some(69), "{}", silent.stderr);
    silent.nothing_is_left();
}

#[test]
fn orphans_and_the_deaf_do_not_survive() {
    let result = rehearse(&[
        "--grace",
        "1",
        "--fault",
        "role=prefill kind=fork-orphan",
        "--fault",
        "role=decode kind=setsid-orphan",
        "--fault",
        "role=decode kind=ignore-term",
    ]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    result.nothing_is_left();
}

#[test]
fn one_interrupt_ends_it_and_a_second_kills() {
    let mut child = running(&[]);
    assert_eq!(first_line(&mut child), "running\n");
    signal(&child, Signal::SIGINT);
    let result = finish(child);
    assert_eq!(result.code, Some(130), "{}", result.stderr);
    assert_eq!(result.outcome(1), "ended by signal 2");
    result.nothing_is_left();

    let grace = LIMIT.as_secs().to_string();
    let words = ["--grace", &grace, "--fault", "role=decode kind=ignore-term"];
    let mut child = running(&words);
    assert_eq!(first_line(&mut child), "running\n");
    let stderr = child.stderr.take().unwrap();
    let (told, reader) = told(stderr, "rehearsal: signal 15");
    let started = Instant::now();
    signal(&child, Signal::SIGTERM);
    told.recv_timeout(LIMIT).unwrap();
    signal(&child, Signal::SIGINT);
    let mut result = finish(child);
    result.stderr = reader.join().unwrap();
    assert_eq!(result.code, Some(143), "{}", result.stderr);
    assert!(started.elapsed() < LIMIT);
    result.nothing_is_left();
}

#[test]
fn a_rehearsal_obeys_signals_although_nobody_reads_what_it_says() {
    // More than the pipe and all queues hold, so that everybody waits who ever would.
    let flood = "head -c 8000000 /dev/zero | tr '\\0' x >&2; echo running; exec sleep 500";
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = command(&["--grace", "1", "--", "sh", "-c", flood]);
    let child = command.stderr(writer.try_clone().unwrap()).spawn();
    let mut child = child.unwrap();
    let begun = Instant::now();
    let is_full = || {
        let mut waits = [PollFd::new(writer.as_fd(), PollFlags::POLLOUT)];
        poll(&mut waits, PollTimeout::ZERO).unwrap() == 0
    };
    while !is_full() {
        assert!(begun.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, Signal::SIGQUIT);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(131));
    drop((command, writer));
    let mut told = String::new();
    reader.read_to_string(&mut told).unwrap();
    let folder = folder_in(&told);
    assert_eq!(processes_of(&folder), [] as [i32; 0]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_killed_rehearsal_takes_its_ranks_along_and_the_next_one_its_folder() {
    let temp = tempfile::tempdir().unwrap();
    let in_temp = |words: &[&str]| {
        let mut command = command(words);
        command.env("TMPDIR", temp.path());
        command
    };
    let waiting = ["--", "sh", "-c", "echo running; exec sleep 500"];
    let mut kept = vec!["--keep"];
    kept.extend(waiting);
    // Killed as well, but it was to be kept; and one that still lives.
    let mut folders = Vec::new();
    let mut living = None;
    for (words, killed) in [
        (&waiting[..], true),
        (&kept[..], true),
        (&waiting[..], false),
    ] {
        let mut child = in_temp(words).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut told = String::new();
        while !told.contains("  logs in ") {
            errors.read_line(&mut told).unwrap();
        }
        // The ranks must not stop at a full pipe.
        let drain = std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
        assert_eq!(first_line(&mut child), "running\n");
        let folder = folder_in(&told);
        if killed {
            child.kill().unwrap();
            child.wait().unwrap();
            let end = Instant::now() + LIMIT;
            while !processes_of(&folder).is_empty() {
                assert!(Instant::now() < end, "{:?}", processes_of(&folder));
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(Path::new(&folder).exists());
            drain.join().unwrap().unwrap();
            folders.push((folder, told));
        } else {
            living = Some((child, folder, drain, told));
        }
    }
    let (mut child, alive, drain, told) = living.unwrap();
    let removed = |folder: &str| {
        format!("rehearsal: removed {folder}, which a killed rehearsal had left behind\n")
    };
    // Whoever came next has done it, and said so.
    assert!(
        folders[1].1.contains(&removed(&folders[0].0)),
        "{}",
        folders[1].1
    );
    assert!(!told.contains("removed"), "{told}");
    assert!(!Path::new(&folders[0].0).exists());
    // One that failed keeps its folder for whoever asks why.
    signal(&child, Signal::SIGTERM);
    child.wait().unwrap();
    drain.join().unwrap().unwrap();
    let last = finish(in_temp(&["--", "true"]).spawn().unwrap());
    assert_eq!(last.code, Some(0), "{}", last.stderr);
    assert!(!last.stderr.contains("removed"), "{}", last.stderr);
    assert!(Path::new(&folders[1].0).exists() && Path::new(&alive).exists());
}

#[test]
fn the_jobs_variables_and_its_speculation_reach_the_workload() {
    let mut command = command(&[
        "--mtp",
        "2",
        "--",
        "sh",
        "-c",
        "echo $IS_MTP $RESULT_TAG $MODEL_NAME",
    ]);
    let child = command.env("RESULT_TAG", "dep8").spawn().unwrap();
    let result = finish(child);
    assert_eq!(
        (result.code, result.stdout.as_str()),
        (Some(0), "true dep8 DeepSeek-V4-Pro\n"),
        "{}",
        result.stderr
    );
}

#[test]
fn an_unknown_model_is_a_wrong_configuration_on_every_rank() {
    for rank in ["0", "1"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atom-launch"));
        command.args(["node", "--model", "Nope-1B", "--rank", rank]);
        command.args(["--prefill-workers", "1", "--decode-workers", "1"]);
        command.args(["--nodes", "127.0.0.2,127.0.0.3", "--", "true"]);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "rank {rank}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("Nope-1B"), "{stderr}");
    }
}

#[test]
fn random_faults_at_random_moments_hang_nothing_and_leave_nothing() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/rehearse-random");
    let mut command = Command::new("python3");
    command.args([script, "--count", "8", "--seed", "119"]);
    command.args(["--binary", env!("CARGO_BIN_EXE_atom-launch")]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("8 passed, 0 failed\n"), "{text}");
    assert_eq!(output.status.code(), Some(0));
}

const OPERATORS: &str = include_str!("../docs/node.md");

/// All keys of a JSON value, at any depth.
fn keys(value: &serde_json::Value, found: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn the_documentation_names_every_key_and_phase_of_real_records() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().to_str().unwrap();
    let result = rehearse(&["--smoke", "--log-dir", logs]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    let mut found = std::collections::BTreeSet::new();
    for rank in 0..2 {
        let path = folder.path().join(format!("launch-rank{rank}.json"));
        let record: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        keys(&record, &mut found);
        for phase in record["phases"].as_array().unwrap() {
            found.insert(phase["phase"].as_str().unwrap().to_owned());
        }
        found.insert(record["outcome"].as_str().unwrap().to_owned());
    }
    assert!(found.len() > 30, "{found:?}");
    for word in found {
        assert!(OPERATORS.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_documentation_has_every_kind_of_fault_and_its_examples_can_be_typed() {
    use atom_launch::rehearse::faults::Fault;
    let problems = Fault::parse("rank=0 kind=nothing").unwrap_err();
    let (_, kinds) = problems[0].split_once("there are ").unwrap();
    for kind in kinds.split(", ") {
        assert!(OPERATORS.contains(&format!("`{kind}`")), "{kind}");
    }
    let mut examples = 0;
    for line in OPERATORS
        .lines()
        .filter(|line| line.starts_with("atom-launch rehearse"))
    {
        let words = shell_words::split(line).unwrap();
        assert_eq!(words[4], "--fault", "{line}");
        Fault::parse(&words[5]).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_atom-launch"));
        // Everything up to `--help` is read, and nothing is started.
        let own = words.iter().skip(1).take_while(|word| *word != "--");
        let output = command.args(own).arg("--help").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
        examples += 1;
    }
    assert!(examples > 3);
}

#[test]
fn logs_stay_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    let result = rehearse(&["--log-dir", logs.to_str().unwrap()]);
    assert_eq!(result.code, Some(0), "{}", result.stderr);
    for name in [
        "prefill-0.log",
        "decode-1.log",
        "router-0.log",
        "launch-rank0.json",
        "launch-rank1.json",
    ] {
        assert!(logs.join(name).is_file(), "{name}");
    }
}
