//! Bodies of requests and answers: of a known length, in chunks, or up to the end of the connection.

use std::io::{self, BufRead, Read};

use super::{Headers, invalid};

/// Longest line that states the size of a chunk.
const SIZE_LINE: u64 = 4096;

#[derive(Debug, Clone, Copy)]
enum Left {
    Bytes(u64),
    /// Bytes of the current chunk; nothing before its size was read.
    Chunk(Option<u64>),
    ToTheEnd,
    Nothing,
}

/// A body that is read piece by piece.
#[derive(Debug)]
pub struct Body<'r, R> {
    reader: &'r mut R,
    left: Left,
}

impl<'r, R: BufRead> Body<'r, R> {
    /// The body of a request: none unless the headers announce one.
    pub(super) fn of_request(reader: &'r mut R, headers: &Headers) -> io::Result<Self> {
        Self::new(reader, headers, Left::Nothing)
    }

    /// The body of an answer: up to the end of the connection unless the headers say otherwise.
    pub(super) fn of_answer(reader: &'r mut R, headers: &Headers) -> io::Result<Self> {
        Self::new(reader, headers, Left::ToTheEnd)
    }

    fn new(reader: &'r mut R, headers: &Headers, otherwise: Left) -> io::Result<Self> {
        let left = if headers.lists("transfer-encoding", "chunked") {
            Left::Chunk(None)
        } else if let Some(length) = headers.get("content-length") {
            let length = length.trim();
            Left::Bytes(
                length
                    .parse()
                    .map_err(|_| invalid(format!("Content-Length: {length}")))?,
            )
        } else {
            otherwise
        };
        Ok(Self { reader, left })
    }

    /// Read the size of the next chunk, after the line end of the last one; the trailer after the last chunk is skipped.
    fn next_chunk(&mut self, first: bool) -> io::Result<()> {
        let mut line = self.line()?;
        if !first && line.trim_ascii().is_empty() {
            line = self.line()?;
        }
        let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(&line) else {
            return Err(invalid("a chunk without a size"));
        };
        if size > 0 {
            self.left = Left::Chunk(Some(size));
            return Ok(());
        }
        while !self.line()?.trim_ascii().is_empty() {}
        self.left = Left::Nothing;
        Ok(())
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut limited = self.reader.by_ref().take(SIZE_LINE);
        limited.read_until(b'\n', &mut line)?;
        if line.ends_with(b"\n") {
            Ok(line)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn some(&mut self, buffer: &mut [u8], most: u64) -> io::Result<usize> {
        let most = usize::try_from(most)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.reader.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(count)
    }
}

impl<R: BufRead> Read for Body<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.left {
                Left::Nothing | Left::Bytes(0) => return Ok(0),
                Left::ToTheEnd => return self.reader.read(buffer),
                Left::Bytes(left) => {
                    let count = self.some(buffer, left)?;
                    self.left = Left::Bytes(left - count as u64);
                    return Ok(count);
                }
                Left::Chunk(None) => self.next_chunk(true)?,
                Left::Chunk(Some(0)) => self.next_chunk(false)?,
                Left::Chunk(Some(left)) => {
                    let count = self.some(buffer, left)?;
                    self.left = Left::Chunk(Some(left - count as u64));
                    return Ok(count);
                }
            }
        }
    }
}
