//! Streams that take nothing: data that could not be written is an error of its own, a reader that went away is none.

use crate::common::{Test, project};

const JOB: &str = "--model DeepSeek-V4-Pro --model-dir /models --quiet";

/// Every command that prints data.
fn commands() -> Vec<String> {
    let table = project("models_atom.yaml");
    let table = table.to_str().unwrap();
    let mut all: Vec<String> = [
        "--dry-run",
        "--dry-run --format json",
        "--dry-run --format nul",
    ]
    .iter()
    .map(|more| format!("{JOB} {more}"))
    .collect();
    all.extend(
        ["plan", "explain", "sbatch", "node --dry-run"].map(|command| format!("{command} {JOB}")),
    );
    all.extend(
        [
            "--help",
            "-h",
            "--version",
            "node --help",
            "plan -h",
            "models",
            "models --format json",
            "schema",
            "man",
            "man node",
            "completions bash",
            "completions fish",
            "check --explain no-effect",
            "report .",
        ]
        .map(str::to_owned),
    );
    all.push(format!("check {table}"));
    all.push(format!("diff {table} {table} --format json"));
    all
}

fn into(command: &str, redirection: &str) -> Test {
    let line = format!("exec \"$@\" {redirection}");
    Test::new(command)
        .under(&["sh", "-c", &line, "sh"])
        // What `report` reads.
        .file("launch-rank0.json", "{}")
}

#[test]
fn data_that_cannot_be_written_ends_with_74() {
    for command in commands() {
        into(&command, ">/dev/full")
            .status(74)
            .stderr("error: cannot write to stdout: No space left on device (os error 28)\n")
            .run();
    }
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    for command in commands() {
        let test = Test::new(&command).file("launch-rank0.json", "{}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = test.process().stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(!output.stderr.starts_with(b"error"), "{command}");
    }
}
