//! Become the server: same process id, no shell, nothing in between.

use std::os::unix::process::CommandExt as _;
use std::process;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::domain::command::Command;
use crate::domain::environment::Environment;
use crate::exit;
use crate::input::host;

/// Open files that the server should be able to have.
const WANTED_FILES: u64 = 65_536;

/// Raise the soft limit of open files to the wanted number, or as far as the hard limit allows; never lower either.
pub fn raise_open_files() -> Result<(), nix::Error> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let target = WANTED_FILES.min(hard);
    if soft < target {
        setrlimit(Resource::RLIMIT_NOFILE, target, hard)?;
    }
    Ok(())
}

/// Why a program could not be executed: exit code and sentence.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// 126 or 127.
    pub code: u8,
    /// What went wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// Replace this process by the command. Returns only when that fails.
pub fn replace(command: &Command, environment: &Environment) -> Failure {
    if let Err(error) = raise_open_files() {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
    let error = process::Command::new(&command.program)
        .args(command.words())
        .envs(command.env.iter().map(|var| (&var.name, &var.value)))
        .exec();
    explain(&command.program, &error, environment)
}

/// What an error of `execve` means for a program.
pub fn explain(program: &str, error: &std::io::Error, environment: &Environment) -> Failure {
    let path = environment.get("PATH").unwrap_or("(unset)");
    let option = "name another with `--python PATH` or ATOM_PYTHON";
    if error.kind() == std::io::ErrorKind::NotFound {
        if program.contains('/') && std::path::Path::new(program).exists() {
            return Failure {
                code: exit::CANNOT_EXECUTE,
                message: format!(
                    "cannot execute {program}: the interpreter that its first line names does not exist"
                ),
                help: option.into(),
            };
        }
        let message = if program.contains('/') {
            format!("cannot execute {program}: there is no such file")
        } else {
            format!("cannot execute {program}: it is not on PATH ({path})")
        };
        return Failure {
            code: exit::NOT_FOUND,
            message,
            help: option.into(),
        };
    }
    let help = match (
        error.raw_os_error(),
        host::find_program(program, environment),
    ) {
        (Some(nix::libc::ENOEXEC), _) => {
            "it is neither a program nor a script with `#!` in its first line".to_owned()
        }
        (Some(nix::libc::E2BIG), _) => {
            "arguments and environment together are larger than the system allows".to_owned()
        }
        (_, Some(found)) if !host::is_executable(&found) => format!(
            "{} is not executable: chmod +x, or {option}",
            found.display()
        ),
        _ => option.to_owned(),
    };
    Failure {
        code: exit::CANNOT_EXECUTE,
        message: format!("cannot execute {program}: {error}"),
        help,
    }
}
