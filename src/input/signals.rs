//! Which signals this process is to take, as it was started.

use std::fs;

use nix::libc::{SIGALRM, SIGIO, SIGPROF, SIGPWR, SIGSTKFLT, SIGVTALRM};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

/// Requests to end that are always heard.
const ENDS: [i32; 3] = [SIGTERM, SIGINT, SIGQUIT];
/// Others whose default is to kill us on the spot, so that engines would be left behind: SLURM sends some of them before a job's time
/// is up (`sbatch --signal=USR1@60`). One that was ignored when we started (`nohup`) stays ignored.
const DEADLY: [i32; 10] = [
    SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT,
];

/// All signals that we take: the children's, and every one that would end us and can be caught, but for those that tell of a crash.
pub fn wanted() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let heard = DEADLY
        .into_iter()
        .filter(|number| !ignores(&status, *number));
    ENDS.into_iter().chain([SIGCHLD]).chain(heard).collect()
}

fn ignores(status: &str, number: i32) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_signal_is_read_from_the_mask() {
        let status = "Name:\tx\nSigIgn:\t0000000000000001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM));
        assert!(!ignores("", SIGHUP));
    }
}
