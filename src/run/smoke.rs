//! One token from the router: the proof that prefill, transfer and decode work, which no health page gives.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::health::Target;

/// An answer longer than this is none to a request for one token.
const ANSWER_LIMIT: usize = 4 << 20;

/// Ask for the model's id, then for one token of it.
pub fn one_token(base: &str, limit: Duration) -> Result<(), String> {
    let end = Instant::now() + limit;
    let (status, body) = ask(base, "/v1/models", None, end)?;
    if status != 200 {
        return Err(format!(
            "/v1/models answered HTTP {status}: {}",
            excerpt(&body)
        ));
    }
    let models: Value =
        serde_json::from_slice(&body).map_err(|_| "/v1/models answered no JSON".to_owned())?;
    let model = models["data"][0]["id"]
        .as_str()
        .ok_or("/v1/models names no model")?;
    let request = json!({"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0});
    let (status, body) = ask(base, "/v1/completions", Some(&request), end)?;
    if status != 200 {
        return Err(format!(
            "/v1/completions answered HTTP {status}: {}",
            excerpt(&body)
        ));
    }
    let answer: Value =
        serde_json::from_slice(&body).map_err(|_| "/v1/completions answered no JSON".to_owned())?;
    if answer["choices"][0]["text"].is_string() {
        Ok(())
    } else {
        Err(format!(
            "/v1/completions answered without a completion: {}",
            excerpt(&body)
        ))
    }
}

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().filter(|c| !c.is_control()).take(300).collect();
    crate::domain::secret::hide_inside(&text).into_owned()
}

fn ask(
    base: &str,
    path: &str,
    body: Option<&Value>,
    end: Instant,
) -> Result<(u16, Vec<u8>), String> {
    let target = Target::parse(&format!("{base}{path}"))?;
    let whole = exchange(&target, body, end).map_err(|error| format!("{path}: {error}"))?;
    parse(&whole).ok_or_else(|| format!("{path}: the answer is no whole HTTP answer"))
}

fn exchange(target: &Target, body: Option<&Value>, end: Instant) -> io::Result<Vec<u8>> {
    let mut last = io::Error::other("the name has no address");
    for place in (target.host.as_str(), target.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, left(end)?) {
            Ok(stream) => return talk(stream, target, body, end),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn talk(
    mut stream: TcpStream,
    target: &Target,
    body: Option<&Value>,
    end: Instant,
) -> io::Result<Vec<u8>> {
    let text = body.map(Value::to_string).unwrap_or_default();
    let method = if body.is_some() { "POST" } else { "GET" };
    let mut request = target.request(false);
    request.drain(..b"GET".len());
    request.truncate(request.len() - b"\r\n".len());
    let head = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    stream.set_write_timeout(Some(left(end)?))?;
    stream.write_all(
        &[
            method.as_bytes(),
            &request,
            head.as_bytes(),
            text.as_bytes(),
        ]
        .concat(),
    )?;
    let mut answer = Vec::new();
    let mut chunk = [0; 8192];
    loop {
        stream.set_read_timeout(Some(left(end)?))?;
        let count = match stream.read(&mut chunk) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        };
        answer.extend_from_slice(&chunk[..count]);
        if count == 0 || answer.len() > ANSWER_LIMIT || parse(&answer).is_some() {
            return Ok(answer);
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer in time")
}

fn left(end: Instant) -> io::Result<Duration> {
    end.checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
        .ok_or_else(late)
}

/// Status and body of an answer, once it is whole.
fn parse(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let mut headers = [httparse::EMPTY_HEADER; 96];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = response.parse(bytes).ok()? else {
        return None;
    };
    let status = response.code?;
    let header = |name: &str| {
        let found = response
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let body = bytes.get(start..)?;
    if header("transfer-encoding")
        .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
    {
        return Some((status, unchunk(body)?));
    }
    match header("content-length").and_then(|value| value.trim().parse::<usize>().ok()) {
        Some(length) => Some((status, body.get(..length)?.to_vec())),
        // Ended by the end of the connection; a JSON document says itself whether it is whole.
        None => serde_json::from_slice::<Value>(body)
            .is_ok()
            .then(|| (status, body.to_vec())),
    }
}

fn unchunk(mut body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let httparse::Status::Complete((start, size)) = httparse::parse_chunk_size(body).ok()?
        else {
            return None;
        };
        if size == 0 {
            return Some(out);
        }
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        out.extend_from_slice(body.get(start..end)?);
        body = body.get(end.checked_add(2)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers each request with the text that belongs to its page.
    fn server(pages: &'static [(&'static str, &'static str)]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = Vec::new();
                let mut chunk = [0; 4096];
                while !request.windows(4).any(|four| four == b"\r\n\r\n") {
                    let count = stream.read(&mut chunk).unwrap();
                    request.extend_from_slice(&chunk[..count]);
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let page = pages.iter().find(|(name, _)| text.starts_with(name));
                let _ = stream.write_all(
                    page.map_or("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", |page| {
                        page.1
                    })
                    .as_bytes(),
                );
            }
        });
        base
    }

    /// Longer than an answer takes on a busy machine.
    const LONG: Duration = Duration::from_mins(2);
    const MODELS: (&str, &str) = (
        "GET /v1/models ",
        "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{\"data\":[{\"id\":\"m\"}]}",
    );

    #[test]
    fn a_completion_counts_whether_it_comes_whole_or_in_chunks() {
        let whole = server(&[
            MODELS,
            (
                "POST /v1/completions ",
                "HTTP/1.1 200 OK\r\n\r\n{\"choices\":[{\"text\":\" I\"}]}",
            ),
        ]);
        assert_eq!(one_token(&whole, LONG), Ok(()));
        let chunks = server(&[
            MODELS,
            (
                "POST /v1/completions ",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"choices\":[{\"te\r\nb\r\nxt\":\" I\"}]}\r\n0\r\n\r\n",
            ),
        ]);
        assert_eq!(one_token(&chunks, LONG), Ok(()));
    }

    #[test]
    fn an_error_an_empty_answer_and_silence_are_told_apart() {
        let bad = server(&[
            MODELS,
            (
                "POST /v1/completions ",
                "HTTP/1.1 503 No\r\nContent-Length: 18\r\n\r\nno_decode_workers\n",
            ),
        ]);
        let why = one_token(&bad, LONG).unwrap_err();
        assert_eq!(why, "/v1/completions answered HTTP 503: no_decode_workers");
        let empty = server(&[
            MODELS,
            (
                "POST /v1/completions ",
                "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            ),
        ]);
        assert!(
            one_token(&empty, LONG)
                .unwrap_err()
                .contains("without a completion")
        );
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", silent.local_addr().unwrap());
        assert!(
            one_token(&base, Duration::from_millis(100))
                .unwrap_err()
                .contains("no answer in time")
        );
    }
}
