use super::client::{Limits, ask, split};
use super::*;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

fn requests(text: &[u8]) -> Vec<Request> {
    let mut reader = text;
    let mut sink = Vec::new();
    let mut found = Vec::new();
    while let Some(request) = Request::read(&mut reader, &mut sink).unwrap() {
        found.push(request);
    }
    found
}

#[test]
fn requests_follow_each_other_with_bodies_of_either_kind() {
    let found = requests(
        b"POST /a?x=1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\r\n\
          POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1;x=y\r\nf\r\n0\r\nTrailer: t\r\n\r\n\
          GET /c HTTP/1.0\r\n\r\n",
    );
    let seen: Vec<(&str, &[u8], bool)> = found
        .iter()
        .map(|one| (one.path.as_str(), one.body.as_slice(), one.keeps_alive()))
        .collect();
    assert_eq!(
        seen,
        [
            ("/a", b"abc".as_slice(), true),
            ("/b", b"def", true),
            ("/c", b"", false)
        ]
    );
}

#[test]
fn a_broken_request_is_an_error_and_no_panic() {
    for text in [
        "GET\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET / HTTP/1.1\r\n",
    ] {
        let mut reader = text.as_bytes();
        assert!(
            Request::read(&mut reader, &mut Vec::new()).is_err(),
            "{text:?}"
        );
    }
}

#[test]
fn urls_are_split_with_brackets_and_without() {
    let place = |url: &str| split(url).unwrap();
    assert_eq!(
        place("http://127.0.0.2:8010/"),
        ("127.0.0.2".to_owned(), 8010, String::new())
    );
    assert_eq!(
        place("http://[fd00::1]:80/x"),
        ("fd00::1".to_owned(), 80, "/x".to_owned())
    );
    assert_eq!(place("http://n1").1, 80);
    for wrong in ["https://n1", "n1:80", "http://:80", "http://n1:port"] {
        assert!(split(wrong).is_err(), "{wrong}");
    }
}

struct Echo;

impl Site for Echo {
    fn answer(
        &self,
        request: &Request,
        exchange: &mut Exchange<'_, std::io::BufWriter<TcpStream>>,
    ) -> io::Result<()> {
        if request.path == "/stream" {
            exchange.start(200, "text/plain")?;
            for piece in request.body.chunks(2) {
                exchange.part(piece)?;
            }
            return exchange.finish();
        }
        exchange.bytes(200, "text/plain", &request.body)
    }
}

#[test]
fn the_client_reads_what_the_server_writes_whole_and_streamed() {
    // A signal that nothing in this test process uses.
    let stop = Stop::on(&[signal_hook::consts::SIGUSR2]).unwrap();
    let listener = listen("127.0.0.1", 0).unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let gate = Arc::new(Gate::default());
    let inner = Arc::clone(&gate);
    let thread = std::thread::spawn(move || serve(listener, &Arc::new(Echo), &inner, &stop));
    let limits = Limits {
        connect: Duration::from_secs(5),
        silence: Duration::from_secs(5),
    };
    for path in ["/whole", "/stream"] {
        let mut answer = ask(&base, path, Some(b"hello"), limits).unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.whole().unwrap(), b"hello", "{path}");
    }
    signal_hook::low_level::raise(signal_hook::consts::SIGUSR2).unwrap();
    thread.join().unwrap().unwrap();
    assert!(gate.drain(Some(Duration::from_secs(5))));
    assert!(ask(&base, "/whole", None, limits).is_err());
}
