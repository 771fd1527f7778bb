//! HTTP/1.1 as far as the stand-ins need it: one thread a connection, bodies with a length or in chunks, answers whole or streamed.
//!
//! Written for a rehearsal on one machine: no TLS, no HTTP/2, no limits against an enemy beyond sizes.

mod body;
pub mod client;
mod serve;

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

pub use body::Body;
pub use serve::{Gate, Site, Stop, listen, serve};

/// Longest head of a request or answer.
const HEAD_LIMIT: u64 = 64 << 10;
/// Longest body of a request.
const BODY_LIMIT: u64 = 64 << 20;
/// Most headers.
const HEADERS: usize = 128;

/// Headers in the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first header of a name, in any case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        all.find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Whether a header lists a word, such as `close` of `Connection`.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        let value = self.get(name).unwrap_or_default();
        value
            .split(',')
            .any(|item| item.trim().eq_ignore_ascii_case(word))
    }

    fn of(headers: &[httparse::Header<'_>]) -> Self {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Self(
            headers
                .iter()
                .map(|header| (header.name.to_owned(), text(header.value)))
                .collect(),
        )
    }
}

fn invalid(text: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_string())
}

/// All bytes up to the empty line; nothing when the connection ended before the first.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut limited = reader.take(HEAD_LIMIT);
    loop {
        let before = head.len();
        limited.read_until(b'\n', &mut head)?;
        let line = &head[before..];
        match line {
            [] if head.is_empty() => return Ok(None),
            [.., b'\n'] => {}
            _ => return Err(invalid("the head ends early or is too long")),
        }
        // Empty lines before a request are left over from the last one.
        match line {
            b"\r\n" | b"\n" if before == 0 => head.clear(),
            b"\r\n" | b"\n" => return Ok(Some(head)),
            _ => {}
        }
    }
}

/// One request, its body included.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Headers.
    pub headers: Headers,
    /// Body.
    pub body: Vec<u8>,
    /// Whether the client understands HTTP/1.1.
    modern: bool,
}

impl Request {
    /// Read the next request of a connection; nothing when the client is done.
    fn read(reader: &mut impl BufRead, writer: &mut impl Write) -> io::Result<Option<Self>> {
        let Some(bytes) = read_head(reader)? else {
            return Ok(None);
        };
        let mut space = [httparse::EMPTY_HEADER; HEADERS];
        let mut head = httparse::Request::new(&mut space);
        head.parse(&bytes).map_err(invalid)?;
        let headers = Headers::of(head.headers);
        let mut request = Self {
            method: head.method.unwrap_or_default().to_owned(),
            path: head
                .path
                .unwrap_or_default()
                .split('?')
                .next()
                .unwrap_or_default()
                .to_owned(),
            modern: head.version == Some(1),
            headers,
            body: Vec::new(),
        };
        if request.headers.lists("expect", "100-continue") {
            writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = Body::of_request(reader, &request.headers)?.take(BODY_LIMIT + 1);
        body.read_to_end(&mut request.body)?;
        if request.body.len() as u64 > BODY_LIMIT {
            return Err(invalid("the body is too long"));
        }
        Ok(Some(request))
    }

    fn keeps_alive(&self) -> bool {
        if self.modern {
            !self.headers.lists("connection", "close")
        } else {
            self.headers.lists("connection", "keep-alive")
        }
    }
}

/// Where an answer goes.
#[derive(Debug)]
pub struct Exchange<'a, W: Write> {
    writer: &'a mut W,
    request: &'a Request,
    keep_alive: bool,
}

impl<W: Write> Exchange<'_, W> {
    fn head(&mut self, status: u16, kind: &str, framing: &str) -> io::Result<()> {
        let connection = if self.keep_alive {
            "keep-alive"
        } else {
            "close"
        };
        let reason = reason(status);
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nServer: atom-rehearse\r\nContent-Type: {kind}\r\nConnection: {connection}\r\n{framing}\r\n"
        );
        self.writer.write_all(head.as_bytes())
    }

    /// A whole answer.
    pub fn bytes(&mut self, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
        let length = format!("Content-Length: {}\r\n", body.len());
        self.head(status, kind, &length)?;
        if self.request.method != "HEAD" {
            self.writer.write_all(body)?;
        }
        self.writer.flush()
    }

    /// A whole answer in JSON.
    pub fn json(&mut self, status: u16, body: &Value) -> io::Result<()> {
        self.bytes(status, "application/json", body.to_string().as_bytes())
    }

    /// An error in OpenAI's form.
    pub fn error(&mut self, status: u16, code: &str, message: &str) -> io::Result<()> {
        self.json(status, &error_body(status, code, message))
    }

    /// Begin an answer of unknown length; `part` and `finish` go on.
    pub fn start(&mut self, status: u16, kind: &str) -> io::Result<()> {
        if self.request.modern {
            self.head(status, kind, "Transfer-Encoding: chunked\r\n")?;
        } else {
            self.keep_alive = false;
            self.head(status, kind, "")?;
        }
        self.writer.flush()
    }

    /// The next piece of a started answer.
    pub fn part(&mut self, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        if self.request.modern {
            let size = format!("{:x}\r\n", data.len());
            let whole = [size.as_bytes(), data, b"\r\n"].concat();
            self.writer.write_all(&whole)?;
        } else {
            self.writer.write_all(data)?;
        }
        self.writer.flush()
    }

    /// The end of a started answer.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.request.modern {
            self.writer.write_all(b"0\r\n\r\n")?;
        }
        self.writer.flush()
    }
}

/// OpenAI's form of an error.
pub fn error_body(status: u16, code: &str, message: &str) -> Value {
    serde_json::json!({"error": {"message": message, "type": error_type(status), "param": null, "code": code}})
}

fn error_type(status: u16) -> &'static str {
    match status {
        404 => "NotFoundError",
        400..=499 => "BadRequestError",
        _ => "InternalServerError",
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Answer",
    }
}

#[cfg(test)]
mod tests;
