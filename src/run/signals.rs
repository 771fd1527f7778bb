//! Signals as events: a thread that turns them into messages and kills nothing itself.

use std::fs;
use std::io;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// A request to end.
    End(i32),
    /// Some child has ended (or several: signals do not add up).
    Child,
}

/// Report signals to the sink from now on, until it says `false`.
///
/// A hang-up that was ignored when we started (`nohup`) stays ignored.
pub fn listen(sink: impl Fn(Note) -> bool + Send + 'static) -> io::Result<()> {
    let mut wanted = vec![SIGTERM, SIGINT, SIGQUIT, SIGCHLD];
    if !ignored_at_start(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .stack_size(128 << 10)
        .spawn(move || {
            for number in &mut signals {
                let note = if number == SIGCHLD {
                    Note::Child
                } else {
                    Note::End(number)
                };
                if !sink(note) {
                    return;
                }
            }
        })?;
    Ok(())
}

fn ignored_at_start(number: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, number)
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
