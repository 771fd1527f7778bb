//! Inputs that once broke something, and the seeds of the fuzz targets, through the same functions as in `fuzz/`.
//!
//! `cargo +nightly fuzz run TARGET` (cargo-fuzz from crates.io) looks for more; what it finds goes to `tests/fuzz-regressions/TARGET/`.

#![expect(
    clippy::print_stderr,
    reason = "the name of a file that breaks something"
)]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/targets.rs"]
mod targets;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    found.sort();
    found
}

/// Run a target on every file; the name of the file is on stderr where it breaks.
fn replay(target: fn(&[u8]), files: Vec<PathBuf>) {
    assert!(!files.is_empty());
    for file in files {
        eprintln!("{}", file.display());
        target(&fs::read(&file).unwrap_or_default());
    }
}

#[test]
fn models_files() {
    let mut files_ = files("tests/fuzz-regressions/models_file");
    for folder in files("tests/lints") {
        files_.push(folder.join("bad.yaml"));
        files_.push(folder.join("good.yaml"));
    }
    files_.push(Path::new(env!("CARGO_MANIFEST_DIR")).join("models_atom.yaml"));
    replay(targets::models_file, files_);
}

#[test]
fn flag_strings() {
    replay(
        targets::flag_strings,
        files("tests/fuzz-regressions/flag_strings"),
    );
}

#[test]
fn environments() {
    replay(
        targets::environment,
        files("tests/fuzz-regressions/environment"),
    );
}

#[test]
fn help_texts() {
    let mut files_ = files("tests/fuzz-regressions/server_help");
    files_.extend(files("tests/help"));
    replay(targets::server_help, files_);
}
