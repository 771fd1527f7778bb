//! Become the server: same process id, no shell, nothing in between.

use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::domain::command::Command;
use crate::domain::environment::Environment;
use crate::input::program::{Failure, candidates};

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

/// Replace this process by the command. Returns only when that fails.
pub fn replace(command: &Command, environment: &Environment) -> Failure {
    if let Err(error) = raise_open_files() {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
    let mut variables = environment.clone();
    for var in &command.env {
        variables.insert(&var.name, &var.value);
    }
    let error = match execute(command, &variables) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let program = OsStr::new(&command.program);
    Failure::of_error(program, variables.raw("PATH"), &error)
}

/// `execve` itself, since the C library's `execvp` gives what is no program (one of another architecture, say) to `/bin/sh`.
fn execute(command: &Command, variables: &Environment) -> io::Result<Infallible> {
    let program = OsStr::new(&command.program);
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
    for candidate in candidates(program, variables.raw("PATH")) {
        tracing::debug!("become {}", candidate.display());
        match nix::unistd::execve(&c_string(candidate)?, &argv, &environ) {
            Ok(never) => return Ok(never),
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(Errno::EACCES) => denied = Some(Errno::EACCES),
            Err(error) => return Err(error.into()),
        }
    }
    Err(denied.unwrap_or(Errno::ENOENT).into())
}

fn c_string(text: impl AsRef<OsStr>) -> io::Result<CString> {
    CString::new(text.as_ref().as_bytes()).map_err(io::Error::from)
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
