//! Notes that the workload has started, for faults that wait for it, and becomes the workload: same process, no shell.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use super::acting::say;
use super::scene;
use crate::exit;
use crate::input;

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
    say(&format!(
        "cannot execute {}: {error}",
        program.to_string_lossy()
    ));
    if error.kind() == std::io::ErrorKind::NotFound {
        exit::NOT_FOUND
    } else {
        exit::CANNOT_EXECUTE
    }
}
