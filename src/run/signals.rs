//! Signals as events: a thread that turns them into messages and kills nothing itself.

use std::io;

use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use crate::input::signals;

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// A request to end.
    End(i32),
    /// Some child has ended (or several: signals do not add up).
    Child,
}

/// Report signals to the sink from now on, until it says `false`.
pub fn listen(sink: impl Fn(Note) -> bool + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(signals::wanted())?;
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
