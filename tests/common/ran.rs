//! A run of the program whose output is looked at as a whole.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::allow_attributes,
    reason = "a test may fail, and each of those that share this looks at its part of it"
)]

use std::path::Path;
use std::process::Command;

/// What a run left.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// The program in a folder, with this environment and no other.
pub(crate) fn run<'a>(
    folder: impl AsRef<Path>,
    args: impl IntoIterator<Item = &'a str>,
    env: &[(&str, &str)],
) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_atom-launch"))
        .args(args)
        .env_clear()
        .envs(env.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code(),
    }
}
