//! Role × fault × phase: the exit code, the reason, the record, and that nothing is left.

use serde_json::{Value, json};

use crate::harness::{End, Rank, alive};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The server of rank 0.
    Prefill,
    /// The server of another rank.
    Decode,
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
        add(
            Role::Decode,
            When::Teardown,
            (name, 0, "the router is gone"),
            None,
        );
    }
    for leaves in ["orphan", "setsid"] {
        for role in [Role::Prefill, Role::Decode, Role::Router, Role::Workload] {
            add(role, When::Serving, FAULTS[0], Some(leaves));
        }
    }
    cases
}

impl Case {
    fn run(self) -> End {
        let mut rank = if self.role == Role::Decode {
            Rank::follower()
        } else {
            Rank::leader()
        };
        let never = json!({"ready": rank.file("never")});
        let when = match self.when {
            When::Starting => String::new(),
            When::Teardown => "term".to_owned(),
            When::Waiting | When::Router | When::Serving => rank.file("go"),
        };
        let mut faulty = json!({"ready": "", "fault": self.fault, "when": when, "lines": 2});
        if let Some(kind) = self.leaves {
            faulty[kind] = json!(2);
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
            Role::Prefill | Role::Decode => rank.server(&faulty),
            Role::Router => rank.router(&faulty),
            Role::Workload => rank.workload(&faulty),
        }
        if self.role == Role::Prefill && self.when == When::Waiting {
            rank.missing_server();
        }
        // Another rank's router is one of the test's own.
        let router = (self.role == Role::Decode
            && matches!(self.when, When::Serving | When::Teardown))
        .then(|| far_router(&rank.address));
        rank.start();
        match (self.role, self.when) {
            (Role::Decode, When::Serving) => rank.await_stderr("the router is up"),
            (Role::Decode, When::Teardown) => {
                rank.await_stderr("the router is up");
                rank.await_file("server");
            }
            (Role::Prefill | Role::Decode, When::Waiting) => rank.await_stderr("is ready after"),
            (_, When::Router) => _ = rank.await_file("router"),
            (_, When::Serving) => _ = rank.await_file("workload"),
            (_, When::Starting | When::Waiting | When::Teardown) => {}
        }
        if self.when == When::Teardown {
            drop(router);
        } else {
            rank.make_file("go");
            rank.until("the end", || !alive(rank.pid()));
            drop(router);
        }
        rank.end()
    }

    fn check(self, end: &End) {
        let case = format!("{self:?}; stderr:\n{}", end.stderr);
        assert_eq!(end.code, self.code, "{case}");
        assert!(end.stderr.contains(self.says), "{case}");
        assert_eq!(end.manifest["exit_code"], self.code, "{case}");
        let good = self.code == 0;
        assert_eq!(
            end.manifest["outcome"],
            if good { "done" } else { "failed" },
            "{case}"
        );
        let phase = match (self.role, self.when) {
            _ if good => Value::Null,
            (Role::Workload, _) => json!("workload"),
            // Another rank waits for the router from the start.
            (Role::Decode, When::Starting | When::Waiting) => json!("router"),
            (Role::Decode, _) => json!("serving"),
            (Role::Router, When::Starting) | (_, When::Router) => json!("router"),
            (_, When::Serving) => json!("workload"),
            _ => json!("servers"),
        };
        assert_eq!(end.manifest["failed_phase"], phase, "{case}");
        let shows = end.stderr.contains("| line 2");
        let own_log = !good && self.role != Role::Workload;
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
    assert!(cases.len() >= 60, "{}", cases.len());
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
