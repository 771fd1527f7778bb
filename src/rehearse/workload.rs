//! Notes that the workload has started, for faults that wait for it, and becomes the workload: same process, no shell.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::acting::say;
use super::scene;
use crate::exit;
use crate::input;
use crate::input::program::Failure;

/// Note and become.
pub(super) fn run(words: &[OsString]) -> u8 {
    let [program, rest @ ..] = words else {
        return exit::USAGE;
    };
    let environment = input::environment();
    let folder = environment
        .get(scene::SCENE)
        .and_then(|path| Path::new(path).parent());
    if let Some(folder) = folder
        && let Err(error) = std::fs::write(scene::Scene::workload_mark(folder), "")
    {
        say(&format!(
            "rehearsal: cannot note the start of the workload: {error}"
        ));
    }
    let error = Command::new(program).args(rest).exec();
    let why = Failure::of_error(program, environment.raw("PATH"), &error);
    say(&format!(
        "cannot execute {}: {}",
        program.to_string_lossy(),
        why.why
    ));
    why.code
}
