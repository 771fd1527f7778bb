//! Asking another server: no proxy, no redirect, no reuse of connections.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde_json::Value;

use super::{Body, HEADERS, Headers, invalid, read_head};

/// Longest answer that is read whole.
const WHOLE_LIMIT: u64 = 64 << 20;

/// Time limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For the connection.
    pub connect: Duration,
    /// Without a byte of the answer.
    pub silence: Duration,
}

/// An answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: Headers,
    reader: BufReader<TcpStream>,
}

impl Answer {
    /// The body, piece by piece.
    pub fn body(&mut self) -> io::Result<Body<'_, BufReader<TcpStream>>> {
        Body::of_answer(&mut self.reader, &self.headers)
    }

    /// The body at once.
    pub fn whole(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.body()?.take(WHOLE_LIMIT).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The body as JSON.
    pub fn json(&mut self) -> io::Result<Value> {
        serde_json::from_slice(&self.whole()?).map_err(invalid)
    }
}

/// Host, port and path prefix of an `http://` URL.
pub fn split(url: &str) -> Result<(String, u16, String), String> {
    let rest = url
        .strip_prefix("http://")
        .ok_or_else(|| format!("`{url}` does not start with http://"))?;
    let (place, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let wrong = || format!("`{url}` has no host and port");
    let (host, port) = if let Some(inner) = place.strip_prefix('[') {
        let (host, port) = inner.split_once(']').ok_or_else(wrong)?;
        (host, port.strip_prefix(':').unwrap_or("80"))
    } else {
        place.split_once(':').unwrap_or((place, "80"))
    };
    let port = port.parse().map_err(|_| wrong())?;
    if host.is_empty() {
        return Err(wrong());
    }
    Ok((host.to_owned(), port, path.trim_end_matches('/').to_owned()))
}

/// Send a request to `base` + `path`: a POST when there is a body.
pub fn ask(base: &str, path: &str, body: Option<&[u8]>, limits: Limits) -> io::Result<Answer> {
    let (host, port, prefix) = split(base).map_err(io::Error::other)?;
    let places: Vec<SocketAddr> = (host.as_str(), port).to_socket_addrs()?.collect();
    let mut stream = connect(&places, limits.connect)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limits.silence))?;
    stream.set_write_timeout(Some(limits.silence))?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let authority = if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    };
    let mut request = format!(
        "{method} {prefix}{path} HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\nConnection: close\r\n"
    )
    .into_bytes();
    if let Some(body) = body {
        let head = format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        request.extend_from_slice(head.as_bytes());
    }
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body.unwrap_or_default());
    stream.write_all(&request)?;
    let mut reader = BufReader::new(stream);
    loop {
        let head = read_head(&mut reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut space = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Response::new(&mut space);
        parsed.parse(&head).map_err(invalid)?;
        let status = parsed.code.unwrap_or_default();
        let headers = Headers::of(parsed.headers);
        // 1xx is only a preface.
        if status >= 200 {
            return Ok(Answer {
                status,
                headers,
                reader,
            });
        }
    }
}

fn connect(places: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for place in places {
        match TcpStream::connect_timeout(place, limit) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
