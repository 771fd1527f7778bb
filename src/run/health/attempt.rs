//! One check: connect, ask, read the first line of the answer.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Instant;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use super::Answer;

/// A first line is never longer than this.
const FIRST_LINE: usize = 1024;

/// One open connection.
#[derive(Debug)]
pub(super) struct Attempt {
    /// Whose check it is.
    pub(super) watch: usize,
    /// Which of the name's addresses.
    pub(super) address: usize,
    /// Whether the second page is asked.
    pub(super) fallback: bool,
    /// When it counts as unanswered.
    pub(super) deadline: Instant,
    stream: TcpStream,
    connected: bool,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
}

/// Where a check stands.
#[derive(Debug)]
pub(super) enum Progress {
    /// For the network.
    Waits,
    /// It is over.
    Answered(Answer),
    /// The connection cannot be made, or broke.
    Failed(io::Error),
}

impl Attempt {
    pub(super) fn start(
        registry: &Registry,
        token: Token,
        place: SocketAddr,
        request: Vec<u8>,
        deadline: Instant,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect(place)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            watch: 0,
            address: 0,
            fallback: false,
            deadline,
            stream,
            connected: false,
            request,
            sent: 0,
            answer: Vec::new(),
        })
    }

    /// Whether somebody has taken the connection.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Do what can be done without waiting.
    pub(super) fn go_on(&mut self) -> Progress {
        match self.step() {
            Ok(Some(answer)) => Progress::Answered(answer),
            Ok(None) => Progress::Waits,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Progress::Waits,
            Err(error) => Progress::Failed(error),
        }
    }

    fn step(&mut self) -> io::Result<Option<Answer>> {
        if !self.connected {
            if let Some(error) = self.stream.take_error()? {
                return Err(error);
            }
            match self.stream.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut chunk = [0; FIRST_LINE];
        loop {
            let count = match self.stream.read(&mut chunk) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.answer.extend_from_slice(&chunk[..count]);
            if let Some(answer) = verdict(&self.answer, count == 0) {
                return answer.map(Some);
            }
        }
    }
}

/// What the bytes so far say; `None` when more are needed.
fn verdict(bytes: &[u8], ended: bool) -> Option<io::Result<Answer>> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        let hopeless =
            bytes.len() > FIRST_LINE || !b"HTTP/1.".starts_with(&bytes[..bytes.len().min(7)]);
        return match (bytes.is_empty(), ended || hopeless) {
            (true, true) => {
                let error = io::ErrorKind::UnexpectedEof;
                Some(Err(io::Error::new(error, "closed without an answer")))
            }
            (false, true) => Some(Ok(Answer::NotHttp)),
            (_, false) => None,
        };
    };
    let status = bytes[..end]
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| digits.parse::<u16>().ok());
    Some(Ok(match status {
        Some(200..=299) => Answer::Ready,
        Some(status @ 100..=999) => Answer::Status(status),
        Some(_) | None => Answer::NotHttp,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_counts() {
        let of = |text: &[u8], ended| verdict(text, ended).map(Result::ok);
        assert_eq!(of(b"HTTP/1.1 200 OK\r\n", false), Some(Some(Answer::Ready)));
        assert_eq!(of(b"HTTP/1.0 204\n", false), Some(Some(Answer::Ready)));
        assert_eq!(
            of(b"HTTP/1.1 302 Found\r\nLocation: x", false),
            Some(Some(Answer::Status(302)))
        );
        assert_eq!(of(b"HTTP/1.1 503 ", false), None);
        assert_eq!(of(b"", false), None);
        assert_eq!(of(b"", true), Some(None));
        assert_eq!(of(b"SSH-2.0", false), Some(Some(Answer::NotHttp)));
        assert_eq!(of(b"HTTP/1.1 2", true), Some(Some(Answer::NotHttp)));
        assert_eq!(of(&[b'x'; 5000], false), Some(Some(Answer::NotHttp)));
    }
}
