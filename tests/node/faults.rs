//! Role × fault × phase: the exit code, the reason, the record, and that nothing is left.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{End, Rank, alive, with_limit};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The server of rank 0.
    Prefill,
    /// The decode server of another rank.
    Decode,
    /// A prefill server of another rank.
    Prefill1,
    Router,
    Workload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The moment it starts.
    Starting,
    /// The servers are being waited for.
    Waiting,
    /// The router is being waited for.
    Router,
    /// The workload runs, or on another rank: the router is up.
    Serving,
    /// Told to end.
    Teardown,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    role: Role,
    fault: &'static str,
    when: When,
    /// Exit code of the rank.
    code: i32,
    /// What its last words say.
    says: &'static str,
    /// Stubborn processes that the faulty one leaves behind, in its group or in a session of their own.
    leaves: Option<&'static str>,
}

/// Lives, and its port is open, but no health check is answered.
const HANG: (&str, i32, &str) = ("hang", 69, "no answer in time");
/// Answers 503 for ever.
const NEVER: (&str, i32, &str) = ("never", 69, "HTTP 503");
/// Ignores TERM, as does a process that it has started, when the launcher is told to end.
const DEAF: (&str, i32, &str) = ("deaf", 143, "sending KILL to its group");

const FAULTS: [(&str, i32, &str); 5] = [
    ("exit:3", 3, "ended with code 3"),
    ("exit:0", 1, "ended with code 0"),
    ("kill:9", 137, "was killed by SIGKILL"),
    ("kill:11", 139, "was killed by SIGSEGV"),
    ("exit:2", 2, "ended with code 2"),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |role, when, (fault, code, says), leaves| {
        cases.push(Case {
            role,
            fault,
            when,
            code,
            says,
            leaves,
        });
    };
    for fault in FAULTS {
        for when in [When::Starting, When::Waiting, When::Router, When::Serving] {
            add(Role::Prefill, when, fault, None);
        }
        for when in [When::Starting, When::Waiting, When::Serving] {
            add(Role::Decode, when, fault, None);
            add(Role::Prefill1, when, fault, None);
        }
        for when in [When::Starting, When::Router, When::Serving] {
            add(Role::Router, when, fault, None);
        }
        // The workload's own code is the job's, 0 as well.
        let (name, code, says) = fault;
        let own = if name == "exit:0" { 0 } else { code };
        add(Role::Workload, When::Starting, (name, own, says), None);
        add(Role::Workload, When::Serving, (name, own, says), None);
        // Nothing that happens in the teardown spoils a success.
        for role in [Role::Prefill, Role::Router] {
            add(
                role,
                When::Teardown,
                (name, 0, "the workload ended with code 0"),
                None,
            );
        }
        for role in [Role::Decode, Role::Prefill1] {
            add(role, When::Teardown, (name, 0, "the router is gone"), None);
        }
    }
    for fault in [HANG, NEVER] {
        add(Role::Prefill, When::Waiting, fault, None);
        add(Role::Router, When::Router, fault, None);
    }
    for when in [When::Waiting, When::Router, When::Serving] {
        add(Role::Prefill, when, DEAF, Some("orphan"));
    }
    for when in [When::Waiting, When::Serving] {
        add(Role::Decode, when, DEAF, Some("orphan"));
        add(Role::Prefill1, when, DEAF, Some("orphan"));
    }
    for when in [When::Router, When::Serving] {
        add(Role::Router, when, DEAF, Some("orphan"));
    }
    add(Role::Workload, When::Serving, DEAF, Some("orphan"));
    for leaves in ["orphan", "setsid"] {
        for role in [
            Role::Prefill,
            Role::Decode,
            Role::Prefill1,
            Role::Router,
            Role::Workload,
        ] {
            add(role, When::Serving, FAULTS[0], Some(leaves));
        }
    }
    cases
}

impl Case {
    fn follows(self) -> bool {
        matches!(self.role, Role::Decode | Role::Prefill1)
    }

    fn run(self) -> End {
        if matches!(self.fault, "hang" | "never") {
            return with_limit(
                |limit| self.run_within(limit),
                |end| end.stderr.contains(self.says),
            );
        }
        self.run_within(0.0)
    }

    /// `wait` is the limit of the wait for what never becomes ready.
    fn run_within(self, wait: f64) -> End {
        let mut rank = if self.follows() {
            Rank::follower()
        } else {
            Rank::leader()
        };
        if self.role == Role::Prefill1 {
            rank.name = "prefill-1";
        }
        let never = json!({"ready": rank.file("never")});
        let when = match self.when {
            When::Starting => String::new(),
            When::Teardown => "term".to_owned(),
            When::Waiting | When::Router | When::Serving => rank.file("go"),
        };
        let mut faulty = json!({"ready": "", "fault": self.fault, "when": when, "lines": 2});
        match self.fault {
            "hang" => {
                faulty = json!({"pages": {"/health": "hang", "/readiness": "hang"}, "ready": "", "lines": 2});
            }
            "never" => faulty = json!({"ready": rank.file("never"), "lines": 2}),
            "deaf" => faulty = json!({"ready": "", "on_term": "ignore"}),
            _ => {}
        }
        if let Some(kind) = self.leaves {
            faulty[kind] = json!(2);
        }
        if matches!(self.fault, "hang" | "never") {
            let limit = if self.role == Role::Router {
                "wait_router"
            } else {
                "wait_server"
            };
            rank.limit(limit, wait);
            rank.limit("probe_timeout", 0.2);
        }
        if self.fault == "deaf" {
            rank.limit("grace", 0.3);
        }
        if self.when == When::Serving && self.role != Role::Workload {
            rank.workload(&json!({}));
        }
        match (self.role, self.when) {
            (Role::Prefill, When::Waiting) => rank.missing_server(),
            (Role::Prefill, When::Router) => rank.router(&never),
            (Role::Router, When::Starting | When::Router) => {
                faulty["ready"] = never["ready"].clone();
            }
            _ => {}
        }
        match self.role {
            Role::Prefill | Role::Decode | Role::Prefill1 => rank.server(&faulty),
            Role::Router => rank.router(&faulty),
            Role::Workload => rank.workload(&faulty),
        }
        if self.role == Role::Prefill && self.when == When::Waiting {
            rank.missing_server();
        }
        // Another rank's router is one of the test's own.
        let router = (self.follows() && matches!(self.when, When::Serving | When::Teardown))
            .then(|| far_router(&rank.address));
        rank.start();
        match (self.role, self.when) {
            _ if matches!(self.fault, "hang" | "never") => {}
            (Role::Decode | Role::Prefill1, When::Serving) => rank.await_stderr("the router is up"),
            (Role::Decode | Role::Prefill1, When::Teardown) => {
                rank.await_stderr("the router is up");
                rank.await_file("server");
            }
            (Role::Prefill | Role::Decode | Role::Prefill1, When::Waiting) => {
                rank.await_stderr("is ready after");
            }
            (_, When::Router) => _ = rank.await_file("router"),
            (_, When::Serving) => _ = rank.await_file("workload"),
            (_, When::Starting | When::Waiting | When::Teardown) => {}
        }
        if self.when == When::Teardown {
            drop(router);
        } else {
            rank.make_file("go");
            if self.fault == "deaf" {
                // It ignores TERM by the time it says that it runs.
                for name in ["server", "router", "workload"] {
                    if self.deaf(name) {
                        rank.await_file(name);
                    }
                }
                rank.signal(Signal::SIGTERM);
            }
            rank.until("the end", || !alive(rank.pid()));
            drop(router);
        }
        rank.end()
    }

    /// Whether the process that makes a file of this name is the deaf one.
    fn deaf(self, name: &str) -> bool {
        match self.role {
            Role::Prefill | Role::Decode | Role::Prefill1 => name == "server",
            Role::Router => name == "router",
            Role::Workload => name == "workload",
        }
    }

    fn check(self, end: &End) {
        let case = format!("{self:?}; stderr:\n{}", end.stderr);
        assert_eq!(end.code, self.code, "{case}");
        assert!(end.stderr.contains(self.says), "{case}");
        assert_eq!(end.manifest["exit_code"], self.code, "{case}");
        let good = self.code == 0;
        assert_eq!(
            end.manifest["outcome"],
            match self.code {
                0 => "done",
                143 => "stopped",
                _ => "failed",
            },
            "{case}"
        );
        let phase = match (self.role, self.when) {
            _ if good => Value::Null,
            (Role::Workload, _) => json!("workload"),
            // Another rank waits for the router from the start.
            (Role::Decode | Role::Prefill1, When::Starting | When::Waiting) => json!("router"),
            (Role::Decode | Role::Prefill1, _) => json!("serving"),
            (Role::Router, When::Starting) | (_, When::Router) => json!("router"),
            (_, When::Serving) => json!("workload"),
            _ => json!("servers"),
        };
        assert_eq!(end.manifest["failed_phase"], phase, "{case}");
        let shows = end.stderr.contains("| line 2");
        let own_log = !good && self.role != Role::Workload && self.fault != "deaf";
        assert_eq!(shows, own_log, "last lines: {case}");
        if self.leaves == Some("setsid") {
            assert!(end.stderr.contains("left behind"), "{case}");
        }
    }
}

/// Something that answers HTTP at the router's port until it is dropped.
struct FarRouter {
    listener: std::sync::Arc<std::net::TcpListener>,
    ended: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn far_router(address: &str) -> FarRouter {
    use std::io::{Read as _, Write as _};
    let listener = std::sync::Arc::new(std::net::TcpListener::bind((address, 8000)).unwrap());
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (inner, over) = (
        std::sync::Arc::clone(&listener),
        std::sync::Arc::clone(&ended),
    );
    let thread = std::thread::spawn(move || {
        while let Ok((mut stream, _)) = inner.accept() {
            if over.load(std::sync::atomic::Ordering::SeqCst) {
                return;
            }
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
        }
    });
    FarRouter {
        listener,
        ended,
        thread: Some(thread),
    }
}

impl Drop for FarRouter {
    fn drop(&mut self) {
        self.ended.store(true, std::sync::atomic::Ordering::SeqCst);
        // Wakes the thread, which gives its listener up.
        let _ = std::net::TcpStream::connect(self.listener.local_addr().unwrap());
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn every_fault_in_every_phase_ends_the_rank_rightly() {
    let cases = cases();
    assert!(cases.len() >= 110, "{}", cases.len());
    let queue = std::sync::Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(case) = next else {
                        return;
                    };
                    case.check(&case.run());
                }
            });
        }
    });
}
