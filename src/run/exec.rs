//! Become the server: same process id, no shell, nothing in between.

use std::convert::Infallible;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::domain::command::Command;
use crate::domain::environment::Environment;
use crate::exit;

use super::program::{Lookup, look_up};

/// Open files that the server should be able to have.
const WANTED_FILES: u64 = 65_536;

/// Raise the soft limit of open files to the wanted number, or as far as the hard limit allows; never lower either.
pub fn raise_open_files() -> Result<(), nix::Error> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let target = wanted_soft(soft, hard);
    if soft < target {
        setrlimit(Resource::RLIMIT_NOFILE, target, hard)?;
    }
    Ok(())
}

fn wanted_soft(soft: u64, hard: u64) -> u64 {
    soft.max(WANTED_FILES.min(hard))
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
    let error = match execute(command, environment) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    explain(&command.program, &error, environment)
}

/// `execve` itself, since the C library's `execvp` gives what is no program (one of another architecture, say) to `/bin/sh`.
fn execute(command: &Command, environment: &Environment) -> io::Result<Infallible> {
    let mut variables = environment.clone();
    for var in &command.env {
        variables.insert(&var.name, &var.value);
    }
    let path = variables.iter().find(|(name, _)| *name == "PATH");
    let path = path.map_or(OsString::new(), |(_, value)| value.to_owned());
    let argv = command
        .argv()
        .into_iter()
        .map(c_string)
        .collect::<io::Result<Vec<_>>>()?;
    let environ = variables
        .iter()
        .map(|(name, value)| {
            let mut pair = name.to_owned();
            pair.push("=");
            pair.push(value);
            c_string(pair)
        })
        .collect::<io::Result<Vec<_>>>()?;
    // Rust's start-up ignores SIGPIPE, which the server would inherit; a handler becomes the default again in `execve`.
    signal_hook::flag::register(
        signal_hook::consts::SIGPIPE,
        Arc::new(AtomicBool::new(false)),
    )?;
    let mut denied = None;
    for candidate in candidates(&command.program, &path) {
        match nix::unistd::execve(&c_string(candidate)?, &argv, &environ) {
            Ok(never) => return Ok(never),
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(Errno::EACCES) => denied = Some(Errno::EACCES),
            Err(error) => return Err(error.into()),
        }
    }
    Err(denied.unwrap_or(Errno::ENOENT).into())
}

/// Where a program may be: itself when it holds a slash, else in each folder of the server's PATH.
fn candidates(program: &str, path: &OsStr) -> Vec<PathBuf> {
    if program.contains('/') {
        return vec![PathBuf::from(program)];
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .collect()
}

fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(text.as_ref().as_bytes()).map_err(io::Error::from)
}

/// What an error of `execve` means for a program.
pub fn explain(program: &str, error: &std::io::Error, environment: &Environment) -> Failure {
    let option = "name another with `--python PATH` or ATOM_PYTHON";
    let cannot = |why: &str| format!("cannot execute {program}: {why}");
    let path = environment.get("PATH").unwrap_or_default();
    if let Lookup::Unusable(fault) = look_up(OsStr::new(program), Some(OsStr::new(path))) {
        let help = fault.help.map(|help| format!("{help}, or {option}"));
        return Failure {
            code: exit::CANNOT_EXECUTE,
            message: cannot(&fault.why),
            help: help.unwrap_or_else(|| option.into()),
        };
    }
    if error.kind() == std::io::ErrorKind::NotFound {
        let why = if program.contains('/') {
            "there is no such file".to_owned()
        } else if path.is_empty() {
            "no PATH is set".to_owned()
        } else {
            format!("it is not on PATH ({path})")
        };
        return Failure {
            code: exit::NOT_FOUND,
            message: cannot(&why),
            help: option.into(),
        };
    }
    let help = match error.raw_os_error() {
        Some(nix::libc::E2BIG) => {
            "arguments and environment together are larger than the system allows"
        }
        _ => option,
    };
    Failure {
        code: exit::CANNOT_EXECUTE,
        message: cannot(&error.to_string()),
        help: help.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_as_far_as_wanted_and_allowed() {
        for (soft, hard, wanted) in [
            (256, 1024, 1024),
            (1024, 65_536, 65_536),
            (1024, 1_048_576, 65_536),
            (80_000, 1_048_576, 80_000),
            (1_048_576, 1_048_576, 1_048_576),
        ] {
            assert_eq!(wanted_soft(soft, hard), wanted, "{soft} {hard}");
        }
    }
}
