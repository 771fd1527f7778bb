//! The prober against small servers of its own, on loopback.

use super::*;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Receiver;

/// Longer than anything here takes on a busy machine; nobody waits for it when all is well.
const PATIENCE: Duration = Duration::from_mins(2);

/// The same for a single check, in milliseconds.
const LONG: u64 = 120_000;

struct Asked {
    answers: Receiver<(usize, Answer)>,
    prober: Prober,
}

fn prober(interval_ms: u64, timeout_ms: u64) -> Asked {
    let (sender, answers) = channel();
    let sink: Sink = Box::new(move |id, answer| sender.send((id, answer)).is_ok());
    let prober = Prober::start(
        Duration::from_millis(interval_ms),
        Duration::from_millis(timeout_ms),
        sink,
    )
    .unwrap();
    Asked { answers, prober }
}

impl Asked {
    fn first(&self, url: &str) -> Answer {
        self.prober.watch(0, Target::parse(url).unwrap());
        self.next()
    }

    fn next(&self) -> Answer {
        self.answers.recv_timeout(PATIENCE).unwrap().1
    }
}

/// A server that gives each connection to a function.
fn server(address: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Option<u16> {
    let listener = TcpListener::bind((address, 0)).ok()?;
    let port = listener.local_addr().unwrap().port();
    let serve = std::sync::Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = std::sync::Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    Some(port)
}

fn request_of(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut chunk = [0; 1024];
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read(&mut chunk) {
            Ok(count) if count > 0 => text.extend_from_slice(&chunk[..count]),
            _ => break,
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn answering(address: &str, text: &'static str) -> Option<u16> {
    server(address, move |mut stream| {
        request_of(&mut stream);
        let _ = stream.write_all(text.as_bytes());
    })
}

#[test]
fn a_status_is_read_over_ipv4_ipv6_and_names() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (bind, host) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.7", "127.0.0.7"),
        ("::1", "[::1]"),
        ("127.0.0.1", "localhost"),
    ] {
        let Some(port) = answering(bind, ok) else {
            continue; // a machine without IPv6
        };
        let answer = prober(50, LONG).first(&format!("http://{host}:{port}/health"));
        assert_eq!(answer, Answer::Ready, "{host}");
    }
    let port = answering("127.0.0.1", "HTTP/1.1 503 Loading\r\n\r\n").unwrap();
    assert_eq!(
        prober(50, LONG).first(&format!("http://127.0.0.1:{port}/")),
        Answer::Status(503)
    );
}

#[test]
fn a_closed_port_is_refused_at_every_poll() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let asked = prober(20, LONG);
    assert_eq!(
        asked.first(&format!("http://127.0.0.1:{port}/")),
        Answer::Refused
    );
    assert_eq!(asked.next(), Answer::Refused);
    asked.prober.unwatch(0);
    let target = Target::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    asked.prober.watch(1, target);
    // What was under way may still come; once the later order has an answer, only that is asked.
    let id = || asked.answers.recv_timeout(PATIENCE).unwrap().0;
    while id() == 0 {}
    assert!((0..5).all(|_| id() == 1));
}

#[test]
fn a_refused_eager_check_is_repeated_long_before_the_interval() {
    let place = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let asked = prober(600_000, LONG);
    let target = Target::parse(&format!("http://{place}/")).unwrap();
    asked.prober.watch(0, target.eagerly());
    assert_eq!(asked.next(), Answer::Refused);
    assert_eq!(asked.next(), Answer::Refused);
    let listener = TcpListener::bind(place).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        request_of(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    });
    let answer = std::iter::repeat_with(|| asked.next()).find(|one| *one != Answer::Refused);
    assert_eq!(answer, Some(Answer::Ready));
}

#[test]
fn redirects_are_answers_and_not_followed() {
    let good = answering("127.0.0.1", "HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let text: &'static str = Box::leak(
        format!("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{good}/\r\n\r\n")
            .into_boxed_str(),
    );
    let port = answering("127.0.0.1", text).unwrap();
    let asked = prober(20, LONG);
    assert_eq!(
        asked.first(&format!("http://127.0.0.1:{port}/")),
        Answer::Status(302)
    );
    assert_eq!(asked.next(), Answer::Status(302));
}

#[test]
fn a_page_that_is_missing_is_replaced_by_the_other_at_once() {
    let port = server("127.0.0.1", |mut stream| {
        let known = request_of(&mut stream).starts_with("GET /v1/models ");
        let text = if known {
            "HTTP/1.1 200 OK\r\n\r\n"
        } else {
            "HTTP/1.1 404 No\r\n\r\n"
        };
        let _ = stream.write_all(text.as_bytes());
    })
    .unwrap();
    let asked = prober(600_000, LONG);
    let target = Target::parse(&format!("http://127.0.0.1:{port}/readiness")).unwrap();
    asked.prober.watch(0, target.or("/v1/models"));
    assert_eq!(asked.next(), Answer::Ready);
}

#[test]
fn a_server_that_hung_is_seen_ready_while_the_hung_checks_are_still_open() {
    let connections = std::sync::atomic::AtomicUsize::new(0);
    let port = server("127.0.0.1", move |mut stream| {
        let number = connections.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        request_of(&mut stream);
        if number < 3 {
            std::thread::sleep(PATIENCE * 2);
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
    })
    .unwrap();
    // The hung checks are open for longer than the answer is waited for.
    assert_eq!(
        prober(100, 2 * LONG).first(&format!("http://127.0.0.1:{port}/")),
        Answer::Ready
    );
}

#[test]
fn silence_is_a_timeout_and_junk_is_no_http() {
    let hung = server("127.0.0.1", |stream| {
        std::thread::sleep(PATIENCE * 2);
        drop(stream);
    })
    .unwrap();
    assert_eq!(
        prober(600_000, 200).first(&format!("http://127.0.0.1:{hung}/")),
        Answer::Busy
    );
    let junk = answering("127.0.0.1", "SSH-2.0-x\r\n").unwrap();
    assert_eq!(
        prober(50, LONG).first(&format!("http://127.0.0.1:{junk}/")),
        Answer::NotHttp
    );
    let closed = server("127.0.0.1", drop).unwrap();
    let answer = prober(50, LONG).first(&format!("http://127.0.0.1:{closed}/"));
    assert!(matches!(answer, Answer::Broken(_)), "{answer:?}");
}

#[test]
fn a_name_without_an_address_is_said() {
    let answer = prober(50, LONG).first("http://no-such-host.invalid:80/");
    assert!(matches!(answer, Answer::Unresolved(_)), "{answer:?}");
}

#[test]
fn what_is_kept_in_sight_is_asked_rarely_until_it_refuses() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let port = answering("127.0.0.1", ok).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = closed.local_addr().unwrap();
    drop(closed);
    let asked = prober(100, 5000);
    let urls = [
        format!("http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        format!("http://{refusing}/"),
    ];
    for (id, url) in urls.iter().enumerate() {
        asked.prober.watch(id, Target::parse(url).unwrap());
    }
    asked.prober.relax(1);
    asked.prober.relax(2);
    let mut answers = [0; 3];
    while answers[0] < 20 {
        answers[asked.answers.recv_timeout(PATIENCE).unwrap().0] += 1;
    }
    // Two seconds: about 20, 4 and 20.
    assert!((3..=7).contains(&answers[1]), "{answers:?}");
    assert!((12..=28).contains(&answers[2]), "{answers:?}");
}
