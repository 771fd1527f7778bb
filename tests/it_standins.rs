//! The stand-in server and router as processes of their own: what clients, the launcher and the shell see of them.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use atom_launch::rehearse::scene::{self, Part, Scene};
use atom_launch::rehearse::{PYTHON, ROUTER};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine; nobody waits for it when all is well.
const LIMIT: Duration = Duration::from_mins(2);

/// A stand-in that is killed when the test ends.
struct StandIn(Child);

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl StandIn {
    fn command(name: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atom-launch"));
        command.arg0(name).args(words).stdin(Stdio::null());
        command.env_remove(scene::SCENE).env_remove(scene::RANK);
        command.stderr(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn server(more: &[&str], port: u16) -> Command {
        let port = port.to_string();
        let mut words = vec!["-m", "atom.entrypoints.openai_server", "--host", host()];
        words.extend(["--server-port", &port]);
        words.extend(more);
        Self::command(PYTHON, &words)
    }

    fn router(more: &[&str], ports: [u16; 2]) -> Command {
        let [port, metrics] = ports.map(|port| port.to_string());
        let mut words = vec!["launch", "--host", host(), "--port", &port];
        words.extend(["--prometheus-host", host(), "--prometheus-port", &metrics]);
        words.extend(["--pd-disaggregation", "--backend", "atom"]);
        words.extend(more);
        Self::command(ROUTER, &words)
    }

    fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.0.id()).unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        wait_until("the process to end", || self.0.try_wait().unwrap())
    }
}

fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An address that no other test process has, so that no port of it is anybody else's.
fn host() -> &'static str {
    static HOST: LazyLock<String> = LazyLock::new(|| {
        let pid = std::process::id() % 32_768;
        format!("127.{}.{}.{}", 32 + pid / 1024, pid / 4 % 256, 2 + pid % 4)
    });
    &HOST
}

/// A free port; each call gets another.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(10_000);
    wait_until("a free port", || {
        let port = NEXT.fetch_add(1, Ordering::SeqCst);
        TcpListener::bind((host(), port)).ok().map(|_| port)
    })
}

/// Status and body of a request; nothing when nobody listens.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    ask_at(host(), port, method, path, body)
}

fn ask_at(host: &str, port: u16, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect((host, port)).ok()?;
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

fn get(port: u16, path: &str) -> (u16, String) {
    wait_until(path, || ask(port, "GET", path, ""))
}

fn get_json(port: u16, path: &str) -> Value {
    let (status, body) = get(port, path);
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn post(port: u16, path: &str, body: &Value) -> (u16, Value) {
    let (status, text) = ask(port, "POST", path, &body.to_string()).unwrap();
    (
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    )
}

fn children(pid: Pid) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

/// Whether TERM has no effect on a process.
fn ignores_term(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap())
    };
    (mask("SigIgn:") | mask("SigCgt:")) >> (Signal::SIGTERM as i32 - 1) & 1 == 1
}

fn kv(role: &str, handshake: u16) -> String {
    json!({"kv_role": role, "kv_connector": "mooncake", "handshake_port": handshake}).to_string()
}

/// A prefill and a decode server.
struct Pair {
    prefill: StandIn,
    decode: StandIn,
    urls: [String; 2],
}

impl Pair {
    fn start() -> Self {
        let (one, other) = (free_port(), free_port());
        let (producer, consumer) = (kv("kv_producer", free_port()), kv("kv_consumer", 1));
        Self {
            prefill: StandIn::start(StandIn::server(
                &["--model", "m", "--kv-transfer-config", &producer],
                one,
            )),
            decode: StandIn::start(StandIn::server(
                &["--model", "m", "--kv-transfer-config", &consumer],
                other,
            )),
            urls: [one, other].map(|port| format!("http://{}:{port}", host())),
        }
    }

    fn words(&self) -> Vec<&str> {
        vec!["--prefill", &self.urls[0], "--decode", &self.urls[1]]
    }
}

fn ready(port: u16) {
    let ready = || ask(port, "GET", "/health", "").filter(|(status, _)| *status == 200);
    wait_until("health", ready);
}

#[test]
fn the_server_tells_what_it_is() {
    let port = free_port();
    let handshake = (0..2).map(|_| free_port()).max().unwrap();
    let config = kv("kv_producer", handshake);
    let words = [
        "--model",
        "/models/M/",
        "-tp",
        "4",
        "--kv-transfer-config",
        &config,
    ];
    let server = StandIn::start(StandIn::server(&words, port));
    ready(port);
    assert_eq!(get_json(port, "/v1/models")["data"][0]["id"], "/models/M/");
    assert_eq!(
        get_json(port, "/kv_transfer_info"),
        json!({"tp_size": 4, "dp_size": 1, "kv_role": "kv_producer", "handshake_port": handshake})
    );
    assert_eq!(get_json(port, "/server_info")["dp_size"], 1);
    assert!(get(port, "/metrics").1.contains("atom:requests_total 0"));
    for port in handshake..handshake + 4 {
        assert!(TcpStream::connect((host(), port)).is_ok(), "{port}");
    }
    assert_eq!(children(server.pid()).len(), 1);
}

#[test]
fn completions_have_openais_form() {
    let port = free_port();
    let _server = StandIn::start(StandIn::server(&["--model", "/models/M/"], port));
    ready(port);
    let (status, answer) = post(
        port,
        "/v1/completions",
        &json!({"model": "/models/M", "prompt": "one two three", "max_tokens": 4}),
    );
    assert_eq!(status, 200);
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["choices"][0]["text"], " this is a rehearsal");
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7})
    );
    let (status, answer) = post(
        port,
        "/v1/chat/completions",
        &json!({"model": "/models/M/", "messages": [{"role": "user", "content": [{"type": "text", "text": "a b"}]}], "n": 2}),
    );
    assert_eq!(status, 200);
    assert_eq!(answer["choices"][1]["message"]["role"], "assistant");
    assert_eq!(answer["usage"]["prompt_tokens"], 2);
    for (body, status, code) in [
        (
            json!({"model": "other", "prompt": "x"}),
            404,
            "model_not_found",
        ),
        (json!({"prompt": "x"}), 400, "bad_request"),
        (json!({"model": "/models/M/"}), 400, "bad_request"),
        (
            json!({"model": "/models/M/", "prompt": "x", "max_tokens": 0}),
            400,
            "bad_request",
        ),
        (json!([1]), 400, "bad_request"),
    ] {
        let (found, answer) = post(port, "/v1/completions", &body);
        assert_eq!(
            (found, &answer["error"]["code"]),
            (status, &json!(code)),
            "{body}"
        );
    }
    assert_eq!(get(port, "/nowhere").0, 404);
    assert_eq!(get(port, "/v1/completions").0, 405);
}

#[test]
fn common_clients_can_talk_to_it() {
    let port = free_port();
    let _server = StandIn::start(StandIn::server(&["--model", "m"], port));
    ready(port);
    let script = r#"
import http.client, json, sys, urllib.request
host, port = sys.argv[1], int(sys.argv[2])
line = http.client.HTTPConnection(host, port, timeout=120)
for number in range(3):
    line.request("POST", "/v1/completions", json.dumps({"model": "m", "prompt": [1, 2], "max_tokens": 2}))
    answer = line.getresponse()
    assert answer.status == 200 and answer.getheader("Connection") == "keep-alive"
    assert json.load(answer)["usage"]["total_tokens"] == 4
def pieces():
    yield b'{"model": "m", "max_tokens": 3, "stream": true, "stream_options": {"include_usage": true},'
    yield b'"messages": [{"role": "user", "content": "hi"}]}'
request = urllib.request.Request(f"http://{host}:{port}/v1/chat/completions", data=pieces(), headers={"Content-Type": "application/json"})
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
    events = [part for part in answer.read().decode().split("\n\n") if part]
assert events[-1] == "data: [DONE]"
chunks = [json.loads(event[len("data: "):]) for event in events[:-1]]
assert "".join(c["choices"][0]["delta"]["content"] for c in chunks[:3]) == "this is a", chunks
assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
assert chunks[2]["choices"][0]["finish_reason"] == "length" and chunks[3]["usage"]["completion_tokens"] == 3
line = http.client.HTTPConnection(host, port, timeout=120)
line.putrequest("POST", "/v1/completions")
line.putheader("Expect", "100-continue")
line.putheader("Content-Length", "2")
line.endheaders()
line.send(b"{}")
assert line.getresponse().status == 400
"#;
    let status = Command::new("python3")
        .args(["-c", script, host(), &port.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new("curl")
        .args(["-sS", "--noproxy", "*", "-0", "-d"])
        .arg(r#"{"model": "m", "prompt": "x", "max_tokens": 2, "stream": true}"#)
        .arg(format!("http://{}:{port}/v1/completions", host()))
        .output();
    // Not every machine has curl.
    if let Ok(output) = output {
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .ends_with("data: [DONE]\n\n")
        );
    }
}

#[test]
fn bad_words_end_with_argparses_message() {
    let run = |words: &[&str]| {
        let mut all = vec!["-m", "atom.entrypoints.openai_server"];
        all.extend(words);
        let mut command = StandIn::command(PYTHON, &all);
        command.stderr(Stdio::piped()).stdout(Stdio::piped());
        command.output().unwrap()
    };
    let refused = run(&["--model", "m", "--block-siz=x"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text.starts_with("usage: openai_server.py "), "{text}");
    assert!(
        text.ends_with(
            "openai_server.py: error: argument --block-size/--block_size: invalid int value: 'x'\n"
        ),
        "{text}"
    );
    assert_eq!(run(&["--model", "m", "-tp", "9"]).status.code(), Some(1));
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(
        String::from_utf8(help.stdout)
            .unwrap()
            .contains("--tensor-parallel-size")
    );
}

#[test]
fn it_ends_as_the_real_server_does() {
    for (signal, ends) in [(Signal::SIGTERM, Err(15)), (Signal::SIGINT, Ok(0))] {
        let port = free_port();
        let mut server = StandIn::start(StandIn::server(&["--model", "m"], port));
        ready(port);
        let engine = children(server.pid())[0];
        // A stream in flight is finished first.
        let mut stream = TcpStream::connect((host(), port)).unwrap();
        let body =
            json!({"model": "m", "prompt": "x", "max_tokens": 200, "stream": true}).to_string();
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 16];
        stream.read_exact(&mut first).unwrap();
        server.signal(signal);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("data: [DONE]"), "{rest}");
        let status = server.end();
        assert_eq!(status.code().ok_or(status.signal().unwrap_or(0)), ends);
        assert!(!alive(engine));
    }
}

#[test]
fn a_killed_server_takes_its_engine_along() {
    let port = free_port();
    let mut server = StandIn::start(StandIn::server(&["--model", "m"], port));
    ready(port);
    let engine = children(server.pid())[0];
    server.signal(Signal::SIGKILL);
    server.end();
    wait_until("the engine's end", || (!alive(engine)).then_some(()));
}

#[test]
fn a_taken_port_ends_it_after_the_load_and_a_taken_handshake_port_does_not() {
    let taken = TcpListener::bind((host(), 0)).unwrap();
    let number = taken.local_addr().unwrap().port();
    let mut server = StandIn::start(StandIn::server(&["--model", "m"], number));
    assert_eq!(server.end().code(), Some(1));
    let port = free_port();
    let config = kv("kv_producer", number);
    let words = ["--model", "m", "--kv-transfer-config", &config];
    let _server = StandIn::start(StandIn::server(&words, port));
    ready(port);
}

/// Start a server with faults.
fn faulty(folder: &Path, faults: &[&str]) -> (StandIn, u16) {
    let port = free_port();
    let scene = Scene {
        folder: folder.to_owned(),
        load_ms: 50,
        addresses: vec![host().into()],
        parts: vec![Part {
            rank: 0,
            port,
            name: "standalone-0".into(),
            faults: faults
                .iter()
                .map(|fault| format!("rank=0 {fault}"))
                .collect(),
        }],
    };
    scene.write().unwrap();
    let mut command = StandIn::server(&["--model", "m"], port);
    command
        .env(scene::SCENE, Scene::path(folder))
        .env(scene::RANK, "0");
    (StandIn::start(command), port)
}

#[test]
fn crashes_come_at_their_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, _) = faulty(folder.path(), &["kind=crash:3"]);
    assert_eq!(server.end().code(), Some(3));
    let (mut server, _) = faulty(folder.path(), &["kind=kill at=ready+50ms"]);
    assert_eq!(server.end().signal(), Some(9));
    let (mut server, port) = faulty(folder.path(), &["kind=crash:4 at=workload"]);
    ready(port);
    std::fs::write(Scene::workload_mark(folder.path()), "").unwrap();
    assert_eq!(server.end().code(), Some(4));
}

#[test]
fn a_server_can_hang_be_slow_or_never_come() {
    let folder = tempfile::tempdir().unwrap();
    let silent = |port: u16| {
        let mut stream = TcpStream::connect((host(), port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\n\r\n").unwrap();
        stream.read(&mut [0; 1]).is_err()
    };
    let (_hangs, port) = faulty(folder.path(), &["kind=hang"]);
    wait_until("silence", || {
        TcpStream::connect((host(), port))
            .is_ok()
            .then(|| silent(port))
            .filter(|silent| *silent)
    });
    let (_slow, port) = faulty(folder.path(), &["kind=slow-health:700ms"]);
    let started = Instant::now();
    ready(port);
    assert!(started.elapsed() >= Duration::from_millis(700));
    let (mut never, port) = faulty(folder.path(), &["kind=never-ready", "kind=ignore-term"]);
    wait_until("an engine", || {
        (!children(never.pid()).is_empty()).then_some(())
    });
    assert!(ignores_term(never.pid().as_raw()));
    never.signal(Signal::SIGTERM);
    assert!(never.0.try_wait().unwrap().is_none());
    assert!(TcpStream::connect((host(), port)).is_err());
}

#[test]
fn a_dead_engine_stays_a_zombie_and_the_server_waits() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, port) = faulty(folder.path(), &["kind=engine-death at=100ms"]);
    let engine = wait_until("an engine", || children(server.pid()).first().copied());
    wait_until("its death", || (!alive(engine)).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(children(server.pid()), [engine]);
    assert!(server.0.try_wait().unwrap().is_none());
    assert!(TcpStream::connect((host(), port)).is_err());
}

/// Processes whose command line has a word.
fn named(name: &str, folder: &Path) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        let environ = read("environ");
        let needle = folder.to_str().unwrap().as_bytes();
        let ours = environ.windows(needle.len()).any(|part| part == needle);
        if ours && read("cmdline").starts_with(name.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

#[test]
fn orphans_outlive_their_server() {
    for (kind, own_session) in [("fork-orphan", false), ("setsid-orphan", true)] {
        let folder = tempfile::tempdir().unwrap();
        let (mut server, port) = faulty(folder.path(), &[&format!("kind={kind}")]);
        ready(port);
        let orphan = wait_until("the orphan", || {
            let found = named("atom-rehearse-orphan\0child", folder.path());
            found.first().copied().filter(|pid| {
                let session = nix::unistd::getsid(Some(Pid::from_raw(*pid)));
                !own_session || session == Ok(Pid::from_raw(*pid))
            })
        });
        server.signal(Signal::SIGTERM);
        server.end();
        // It ignores the signal from some moment on, and one that is ignored is gone once it is sent.
        wait_until("its deafness", || ignores_term(orphan).then_some(()));
        kill(Pid::from_raw(orphan), Signal::SIGTERM).unwrap();
        assert!(alive(orphan), "{kind}");
        kill(Pid::from_raw(orphan), Signal::SIGKILL).unwrap();
    }
}

#[test]
fn the_router_opens_when_all_workers_are_there_and_forwards() {
    let pair = Pair::start();
    let ports = [free_port(), free_port()];
    let mut words = pair.words();
    words.push("--disable-health-check");
    let mut router = StandIn::start(StandIn::router(&words, ports));
    ready(ports[0]);
    assert_eq!(get(ports[1], "/metrics").0, 200);
    assert_eq!(get(ports[0], "/readiness").0, 200);
    assert_eq!(get_json(ports[0], "/v1/models")["data"][0]["id"], "m");
    let order = json!({"model": "m", "prompt": "x", "max_tokens": 3});
    let (status, answer) = post(ports[0], "/v1/completions", &order);
    assert_eq!(
        (status, &answer["choices"][0]["text"]),
        (200, &json!(" this is a"))
    );
    let order = json!({"model": "m", "prompt": "x", "max_tokens": 3, "stream": true});
    let (status, stream) = post(ports[0], "/v1/completions", &order);
    assert_eq!(status, 200);
    assert!(
        stream.as_str().unwrap().contains("data: [DONE]"),
        "{stream}"
    );
    let (status, answer) = post(
        ports[0],
        "/v1/completions",
        &json!({"model": "m/", "prompt": "x"}),
    );
    assert_eq!(
        (status, &answer["error"]["code"]),
        (503, &json!("model_not_found"))
    );
    router.signal(Signal::SIGTERM);
    assert_eq!(router.end().code(), Some(0));
    drop(pair);
}

#[test]
fn dead_workers_change_readiness_alone_and_only_with_health_checks() {
    let mut pair = Pair::start();
    let (plain, checking) = ([free_port(), free_port()], [free_port(), free_port()]);
    let mut words = pair.words();
    words.push("--disable-health-check");
    let _plain = StandIn::start(StandIn::router(&words, plain));
    let mut words = pair.words();
    words.extend([
        "--health-check-interval-secs",
        "0",
        "--health-failure-threshold",
        "2",
    ]);
    let _checking = StandIn::start(StandIn::router(&words, checking));
    ready(plain[0]);
    ready(checking[0]);
    pair.decode.0.kill().unwrap();
    pair.decode.end();
    wait_until("readiness to go", || {
        (get(checking[0], "/readiness").0 == 503).then_some(())
    });
    let order = json!({"model": "m", "prompt": "x"});
    let (status, answer) = post(checking[0], "/v1/completions", &order);
    assert_eq!(
        (status, &answer["error"]["code"]),
        (503, &json!("no_decode_workers"))
    );
    for path in ["/health", "/v1/models", "/liveness"] {
        assert_eq!(get(checking[0], path).0, 200, "{path}");
    }
    assert_eq!(get(plain[0], "/readiness").0, 200);
    let (status, answer) = post(plain[0], "/v1/completions", &order);
    assert_eq!(
        (status, &answer["error"]["code"]),
        (502, &json!("decode_server_error"))
    );
    pair.prefill.0.kill().unwrap();
    pair.prefill.end();
    assert_eq!(post(plain[0], "/v1/completions", &order).0, 502);
}

#[test]
fn the_router_refuses_what_the_real_one_refuses() {
    let pair = Pair::start();
    let wait = |urls: &[&str], ports: [u16; 2]| {
        let mut router = StandIn::start(StandIn::router(urls, ports));
        router.end().code()
    };
    let [prefill, decode] = [pair.urls[0].as_str(), pair.urls[1].as_str()];
    // A consumer in the place of a producer.
    let swapped = ["--prefill", decode, "--decode", decode];
    assert_eq!(wait(&swapped, [free_port(), free_port()]), Some(1));
    let right = ["--prefill", prefill, "--decode", decode];
    let taken = TcpListener::bind((host(), 0)).unwrap();
    let number = taken.local_addr().unwrap().port();
    assert_eq!(wait(&right, [number, free_port()]), Some(1));
    assert_eq!(wait(&right, [free_port(), number]), Some(101));
    assert_eq!(
        wait(&["--no-such-option"], [free_port(), free_port()]),
        Some(2)
    );
}

#[test]
fn before_its_port_is_open_the_router_dies_of_a_signal() {
    for (signal, number) in [(Signal::SIGTERM, 15), (Signal::SIGINT, 2)] {
        let ports = [free_port(), free_port()];
        let nobody = format!("http://{}:{}", host(), free_port());
        let words = ["--prefill", &nobody, "--decode", &nobody];
        let mut router = StandIn::start(StandIn::router(&words, ports));
        wait_until("the metrics port", || ask(ports[1], "GET", "/metrics", ""));
        assert!(ask(ports[0], "GET", "/health", "").is_none());
        router.signal(signal);
        assert_eq!(router.end().signal(), Some(number));
    }
}
