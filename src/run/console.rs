//! Standard error and standard output as queues with a thread of their own.
//!
//! A reader that is slow or gone must cost neither the supervision nor a server anything, so nobody but these threads
//! ever waits for it. Lines of servers are dropped when the queue is full, and counted: their log files have them. Our own
//! lines have room kept for them. The workload's output is data for somebody: it waits for its reader, as in any pipe.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes that may wait for a reader.
const ROOM: usize = 4 << 20;
/// Of these, so many are kept for our own lines.
const OWN_ROOM: usize = 256 << 10;

/// How a text is treated when the reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Our own words: dropped last.
    Own,
    /// A server's line: dropped and counted.
    Drop,
    /// The workload's output: the caller waits.
    Wait,
}

/// A standard stream with a queue before it.
#[derive(Debug, Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    terminal: bool,
}

#[derive(Debug, Default)]
struct State {
    queue: Vec<u8>,
    dropped: u64,
    /// The stream cannot be written any more.
    gone: bool,
    writing: bool,
    /// Live line at the foot of a terminal.
    status: String,
    status_changed: bool,
}

/// The queue before standard error.
pub fn stderr() -> &'static Console {
    static STDERR: OnceLock<Console> = OnceLock::new();
    STDERR.get_or_init(|| Console::start("stderr", io::stderr().as_fd()))
}

/// The queue before standard output.
pub fn stdout() -> &'static Console {
    static STDOUT: OnceLock<Console> = OnceLock::new();
    STDOUT.get_or_init(|| Console::start("stdout", io::stdout().as_fd()))
}

impl Console {
    fn start(name: &str, stream: impl AsFd) -> Self {
        let file = stream.as_fd().try_clone_to_owned().map(File::from);
        Self::over(name, file.ok())
    }

    /// A queue before a file; `None` stands for a stream that is closed.
    fn over(name: &str, file: Option<File>) -> Self {
        use std::io::IsTerminal as _;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
            terminal: file.as_ref().is_some_and(File::is_terminal),
        });
        let worker = Arc::clone(&shared);
        let started = file.is_some_and(|file| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .stack_size(128 << 10)
                .spawn(move || worker.run(file))
                .is_ok()
        });
        if !started {
            shared.lock().gone = true;
        }
        Self { shared }
    }

    /// Whether a person looks at it.
    pub fn is_terminal(&self) -> bool {
        self.shared.terminal
    }

    /// Queue a text. Whole lines should come in one call: nothing is put between.
    pub fn push(&self, text: &[u8], manner: Manner) {
        self.push_lines(text, 1, manner);
    }

    /// Queue several lines at once; all of them or none.
    pub fn push_lines(&self, text: &[u8], lines: u64, manner: Manner) {
        let mut state = self.shared.lock();
        let room = match manner {
            Manner::Own => ROOM,
            Manner::Drop | Manner::Wait => ROOM - OWN_ROOM,
        };
        let full = |state: &State| !state.queue.is_empty() && state.queue.len() + text.len() > room;
        while manner == Manner::Wait && full(&state) && !state.gone {
            state = self.shared.wait(state, Duration::from_secs(1));
        }
        if state.gone {
            return;
        }
        if full(&state) {
            state.dropped += lines;
        } else {
            state.queue.extend_from_slice(text);
        }
        self.shared.changed.notify_all();
    }

    /// Show a live line below all others; empty takes it away. Does nothing unless it is a terminal.
    pub fn status(&self, text: &str) {
        if self.shared.terminal {
            let mut state = self.shared.lock();
            if state.status != text {
                text.clone_into(&mut state.status);
                state.status_changed = true;
                self.shared.changed.notify_all();
            }
        }
    }

    /// Wait until everything queued is written, the stream is gone, or the time is over.
    pub fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        while !state.gone && (!state.queue.is_empty() || state.writing || state.status_changed) {
            let Some(left) = end.checked_duration_since(Instant::now()) else {
                return;
            };
            state = self.shared.wait(state, left);
        }
    }
}

impl Write for &Console {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.push(text, Manner::Own);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, limit: Duration) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn run(&self, mut file: File) {
        let mut shown = String::new();
        let mut batch = Vec::new();
        loop {
            let mut state = self.lock();
            while state.queue.is_empty() && !state.status_changed {
                state = self.wait(state, Duration::from_hours(1));
            }
            std::mem::swap(&mut batch, &mut state.queue);
            let dropped = std::mem::take(&mut state.dropped);
            let status = state.status.clone();
            state.status_changed = false;
            state.writing = true;
            self.changed.notify_all();
            drop(state);

            let mut result = Ok(());
            if !shown.is_empty() {
                result = write_all(&mut file, b"\r\x1b[2K");
            }
            result = result.and_then(|()| write_all(&mut file, &batch));
            if dropped > 0 {
                let note = format!(
                    "atom-launch: {dropped} lines are not shown here, the reader is slow; the log files have them\n"
                );
                result = result.and_then(|()| write_all(&mut file, note.as_bytes()));
            }
            if !status.is_empty() {
                result = result.and_then(|()| write_all(&mut file, status.as_bytes()));
            }
            shown = status;
            // Do not keep what one flood has needed.
            if batch.capacity() > 1 << 20 {
                batch = Vec::new();
            }
            batch.clear();
            let mut state = self.lock();
            state.writing = false;
            // A full disk may have room again; a closed pipe never has a reader again.
            let lost = result.err().and_then(|error| error.raw_os_error());
            if lost.is_some_and(|code| code != nix::libc::ENOSPC && code != nix::libc::EDQUOT) {
                state.gone = true;
                state.queue = Vec::new();
            }
            self.changed.notify_all();
            if state.gone {
                return;
            }
        }
    }
}

/// Like [`Write::write_all`], for a stream that somebody has made non-blocking as well.
fn write_all(file: &mut File, mut text: &[u8]) -> io::Result<()> {
    while !text.is_empty() {
        match file.write(text) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => text = &text[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut waits = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
                // A failed wait shows at the next write.
                let _ = poll(&mut waits, PollTimeout::from(1000_u16));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn pipe() -> (Console, io::PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        (Console::over("test", Some(file)), reader)
    }

    #[test]
    fn a_reader_that_does_not_read_blocks_nobody_and_is_told_what_it_missed() {
        let (console, mut reader) = pipe();
        let line = [b'x'; 1023];
        let line = [&line[..], b"\n"].concat();
        for _ in 0..10_000 {
            console.push(&line, Manner::Drop);
        }
        console.push(b"own words\n", Manner::Own);
        console.flush(Duration::from_millis(10));
        let mut text = Vec::new();
        let mut chunk = vec![0; 65536];
        let whole = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            text.contains("lines are not shown here") && text.contains("own words\n")
        };
        while !whole(&text) {
            let count = reader.read(&mut chunk).unwrap();
            text.extend_from_slice(&chunk[..count]);
        }
        let text = String::from_utf8_lossy(&text);
        assert!(text.len() < 2 * ROOM);
    }

    #[test]
    fn a_reader_that_is_gone_is_forgotten() {
        let (console, reader) = pipe();
        drop(reader);
        console.push(b"nobody reads this\n", Manner::Own);
        console.flush(Duration::from_secs(10));
        for _ in 0..100 {
            console.push(&vec![b'x'; 1 << 20], Manner::Wait);
        }
        assert!(console.shared.lock().queue.is_empty());
    }

    #[test]
    fn what_waits_arrives_whole_and_in_order() {
        let (console, mut reader) = pipe();
        let writer = std::thread::spawn(move || {
            for number in 0..200_000_u32 {
                console.push(
                    format!("line {number} {}\n", "y".repeat(60)).as_bytes(),
                    Manner::Wait,
                );
            }
            console.push(b"end\n", Manner::Wait);
        });
        let mut text = Vec::new();
        let mut chunk = vec![0; 65536];
        while !text.ends_with(b"end\n") {
            let count = reader.read(&mut chunk).unwrap();
            text.extend_from_slice(&chunk[..count]);
        }
        writer.join().unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), 200_001);
        let numbers = text
            .lines()
            .filter_map(|line| line.split(' ').nth(1)?.parse::<u32>().ok());
        assert!(numbers.eq(0..200_000));
    }
}
