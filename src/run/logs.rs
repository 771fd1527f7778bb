//! What a child prints: all of it into its log file, its lines to our stderr, its last lines kept for the failure report.
//!
//! One thread reads one pipe and does nothing that can wait for anybody but the disk: a slow reader of our stderr is the
//! console's business. A log file that cannot be written is given up, once and aloud; the child goes on.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::console::{Manner, stderr, stdout};
use super::lines::{Line, Splitter, show_into, shown};

/// So many lines are kept for a failure report.
const TAIL_LINES: usize = 50;
/// So many bytes of each.
const TAIL_WIDTH: usize = 2000;
/// A progress bar shows at most once in this time.
const BAR_PAUSE: Duration = Duration::from_secs(5);
/// Room that a pipe gets, so that a burst does not wait for our thread.
const PIPE_ROOM: i32 = 1 << 20;

/// Where a child's output goes besides its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Line by line with the child's name before it, to our stderr.
    Prefixed,
    /// Nowhere but into the file.
    FileOnly,
    /// As it is, to our stdout.
    Stdout,
    /// As it is, to our stderr.
    Stderr,
}

/// The log of one child.
#[derive(Debug)]
pub struct Log {
    /// Its file.
    pub path: PathBuf,
    file: Arc<Mutex<Option<File>>>,
    tail: Arc<Mutex<Tail>>,
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    pipe: OwnedFd,
    /// Whether the pipe has ended. Held while bytes are taken out of it and dealt with.
    ended: Arc<Mutex<bool>>,
}

/// The last lines, as bytes: most of them are never shown.
#[derive(Debug)]
struct Tail {
    lines: VecDeque<(Vec<u8>, u64)>,
    last_output: Instant,
}

impl Tail {
    fn keep(&mut self, line: &Line<'_>) {
        let mut kept = match self.lines.len() {
            TAIL_LINES => self.lines.pop_front().unwrap_or_default().0,
            _ => Vec::new(),
        };
        let width = line.bytes.len().min(TAIL_WIDTH);
        kept.clear();
        kept.extend_from_slice(&line.bytes[..width]);
        let cut = line.cut + (line.bytes.len() - width) as u64;
        self.lines.push_back((kept, cut));
    }

    fn shown(&self) -> Vec<String> {
        let line = |(bytes, cut): &(Vec<u8>, u64)| {
            shown(&Line {
                bytes,
                cut: *cut,
                passing: false,
            })
        };
        self.lines.iter().map(line).collect()
    }
}

impl Log {
    /// Begin a log file; one that cannot be made is said to be missing and the child is heard all the same.
    pub fn create(path: &Path) -> Self {
        let file = File::create(path)
            .inspect_err(|error| {
                tracing::warn!(
                    "cannot write {}: {error}; its output is only shown here",
                    path.display()
                );
            })
            .ok();
        Self {
            path: path.to_owned(),
            file: Arc::new(Mutex::new(file)),
            tail: Arc::new(Mutex::new(Tail {
                lines: VecDeque::new(),
                last_output: Instant::now(),
            })),
            streams: Vec::new(),
        }
    }

    /// Follow one pipe of the child on a thread of its own.
    pub fn follow(&mut self, name: &str, pipe: OwnedFd, passage: Passage) -> std::io::Result<()> {
        // A smaller pipe than wished for still works.
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE_ROOM));
        let ended = Arc::new(Mutex::new(false));
        let reader = Reader {
            pipe: File::from(pipe.try_clone()?),
            ended: Arc::clone(&ended),
            file: Arc::clone(&self.file),
            tail: Arc::clone(&self.tail),
            path: self.path.clone(),
            prefix: format!("[{name}] "),
            passage,
            splitter: Splitter::default(),
            last_bar: None,
            batch: Vec::new(),
        };
        std::thread::Builder::new()
            .name(format!("log {name}"))
            .stack_size(256 << 10)
            .spawn(move || reader.run())?;
        self.streams.push(Stream { pipe, ended });
        Ok(())
    }

    /// Time since the last output, or since the start.
    pub fn silent_for(&self) -> Duration {
        lock(&self.tail).last_output.elapsed()
    }

    /// The last lines, oldest first, once all that is in the pipes has been read (or the time is over).
    pub fn tail(&self, limit: Duration) -> Vec<String> {
        let end = Instant::now() + limit;
        while !self.streams.iter().all(Stream::is_drained) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        lock(&self.tail).shown()
    }

    /// Wait until every pipe has ended, or the time is over.
    pub fn finish(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.streams.iter().all(Stream::has_ended) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Stream {
    /// Whether the pipe has ended; `None` while something of it is being dealt with. Never waits: the reader may be
    /// waiting for whoever reads the workload's output.
    fn ended(&self) -> Option<bool> {
        match self.ended.try_lock() {
            Ok(ended) => Some(*ended),
            Err(TryLockError::Poisoned(_)) => Some(true),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn has_ended(&self) -> bool {
        self.ended() == Some(true)
    }

    /// Whether nothing waits in the pipe and nothing of it is being dealt with.
    fn is_drained(&self) -> bool {
        let Some(ended) = self.ended() else {
            return false;
        };
        let mut waits = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        ended
            || poll(&mut waits, PollTimeout::ZERO).is_err()
            || !waits[0]
                .revents()
                .is_some_and(|events| events.contains(PollFlags::POLLIN))
    }
}

struct Reader {
    pipe: File,
    ended: Arc<Mutex<bool>>,
    file: Arc<Mutex<Option<File>>>,
    tail: Arc<Mutex<Tail>>,
    path: PathBuf,
    prefix: String,
    passage: Passage,
    splitter: Splitter,
    last_bar: Option<Instant>,
    batch: Vec<u8>,
}

impl Reader {
    fn run(mut self) {
        let busy = Arc::clone(&self.ended);
        let mut buffer = vec![0; 64 << 10];
        loop {
            // Wait outside the lock, so that the lock says whether something is being dealt with.
            let mut waits = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut waits, PollTimeout::NONE);
            let mut ended = lock(&busy);
            let count = match self.pipe.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if count == 0 {
                self.take_lines(None);
                *ended = true;
                return;
            }
            self.take(&buffer[..count]);
        }
    }

    fn take(&mut self, data: &[u8]) {
        self.write_file(data);
        match self.passage {
            Passage::Prefixed | Passage::FileOnly => {}
            Passage::Stdout => stdout().push(data, Manner::Wait),
            Passage::Stderr => stderr().push(data, Manner::Wait),
        }
        self.take_lines(Some(data));
    }

    fn write_file(&mut self, data: &[u8]) {
        let mut file = lock(&self.file);
        if let Some(Err(error)) = file.as_mut().map(|file| file.write_all(data)) {
            *file = None;
            drop(file);
            tracing::warn!(
                "cannot write {} any more: {error}; further output is only shown here",
                self.path.display()
            );
        }
    }

    /// Keep and show the lines that these bytes complete; `None` stands for the end. One lock and one push for all of them.
    fn take_lines(&mut self, data: Option<&[u8]>) {
        let mut tail = lock(&self.tail);
        let (prefix, last_bar, batch) = (&self.prefix, &mut self.last_bar, &mut self.batch);
        let prefixed = self.passage == Passage::Prefixed;
        let mut count = 0;
        let each = |line: Line<'_>| {
            if line.passing {
                if last_bar.is_some_and(|last| last.elapsed() < BAR_PAUSE) {
                    return;
                }
                *last_bar = Some(Instant::now());
            } else {
                tail.keep(&line);
            }
            if prefixed {
                batch.extend_from_slice(prefix.as_bytes());
                show_into(batch, &line);
                batch.push(b'\n');
                count += 1;
            }
        };
        match data {
            Some(data) => self.splitter.feed(data, each),
            None => self.splitter.finish(each),
        }
        if data.is_some() {
            tail.last_output = Instant::now();
        }
        drop(tail);
        if count > 0 {
            stderr().push_lines(batch, count, Manner::Drop);
            batch.clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(path: &Path) -> (Log, std::io::PipeWriter) {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut log = Log::create(path);
        log.follow("prefill-0", OwnedFd::from(reader), Passage::Prefixed)
            .unwrap();
        (log, writer)
    }

    #[test]
    fn the_file_has_every_byte_and_the_tail_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prefill-0.log");
        let (log, mut writer) = log(&path);
        let mut all = Vec::new();
        for number in 1..=200 {
            all.extend_from_slice(format!("line {number}\n").as_bytes());
        }
        all.extend_from_slice(b"\xff\x00no newline");
        writer.write_all(&all).unwrap();
        assert_eq!(log.tail(Duration::from_mins(2)).last().unwrap(), "line 200");
        drop(writer);
        log.finish(Duration::from_mins(2));
        let tail = log.tail(Duration::ZERO);
        assert_eq!(tail.len(), TAIL_LINES);
        assert_eq!(tail[0], "line 152");
        assert_eq!(tail[TAIL_LINES - 1], "\u{fffd}\\u{0}no newline");
        assert_eq!(std::fs::read(&path).unwrap(), all);
    }

    #[test]
    fn a_log_that_cannot_be_written_does_not_stop_the_child() {
        for path in ["/nowhere/prefill-0.log", "/dev/full"] {
            let (log, mut writer) = log(Path::new(path));
            // Far more than a pipe holds: it ends only because somebody reads.
            for _ in 0..64 {
                writer.write_all(&vec![b'x'; 1 << 16]).unwrap();
            }
            writer.write_all(b"\nlast\n").unwrap();
            drop(writer);
            log.finish(Duration::from_mins(2));
            assert_eq!(log.tail(Duration::ZERO).last().unwrap(), "last", "{path}");
        }
    }
}
