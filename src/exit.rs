//! Exit codes: the one list of what the process's status means.

use std::process::ExitStatus;

/// Everything went well.
pub const OK: u8 = 0;
/// `check` found errors, `diff --exit-code` found changes, a fault of a rehearsal never happened, or a server or router ended too early with 0.
pub const FOUND: u8 = 1;
/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// Something never became ready.
pub const UNAVAILABLE: u8 = 69;
/// A bug of ours.
pub const BUG: u8 = 70;
/// Data could not be written to stdout: a full disk, say (`EX_IOERR`).
pub const CANNOT_WRITE: u8 = 74;
/// The workload ran into `--workload-timeout`.
pub const TIMEOUT: u8 = 124;
/// A program was found and cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// A program was not found.
pub const NOT_FOUND: u8 = 127;

/// What each code means, in words for people.
pub const MEANINGS: &[(&str, &str)] = &[
    ("0", "done"),
    (
        "1",
        "check found errors; diff --exit-code found changes; a fault of rehearse never happened; a server or router ended too early with 0, or with 1",
    ),
    (
        "2",
        "usage or configuration, the preflight of node included",
    ),
    (
        "69",
        "a server, the router or the first token did not come in time",
    ),
    ("70", "a bug of atom-launch"),
    (
        "74",
        "stdout cannot be written; a reader that went away is none",
    ),
    ("124", "the workload ran into --workload-timeout"),
    ("126, 127", "a program cannot be executed, was not found"),
    (
        "other",
        "the code of the workload or of the process that failed; 128+n for signal n",
    ),
];

/// Code of an ended process as a shell gives it: its own code, or 128 plus the signal.
pub fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(i32::from(BUG));
    u8::try_from(code & 0xff).unwrap_or(BUG)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    #[test]
    fn a_signal_is_128_and_its_number() {
        assert_eq!(code_of(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code_of(ExitStatus::from_raw(15)), 143);
    }
}
