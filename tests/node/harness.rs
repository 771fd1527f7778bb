//! A rank as a real process, on a loopback address of its own, with fakes for server, router and workload.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy machine; nobody waits for it when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);
/// A time limit of a rank that must not be met.
pub(crate) const NEVER: f64 = 200.0;

/// One rank of a made-up job.
pub(crate) struct Rank {
    /// Folder of its own.
    pub(crate) folder: tempfile::TempDir,
    /// Its specification, to be changed before the start.
    pub(crate) spec: Value,
    /// Address of its own.
    pub(crate) address: String,
    /// Name of its server.
    pub(crate) name: &'static str,
    mark: String,
    child: Option<Child>,
    began: Instant,
}

/// What is left to look at once a rank has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) manifest: Value,
    pub(crate) took: Duration,
}

impl Rank {
    /// Rank 0 of a job with one server and a router; the workload ends at once with 0.
    pub(crate) fn leader() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let pid = std::process::id();
        let address = format!(
            "127.{}.{}.{}",
            64 + pid % 128,
            pid / 128 % 256,
            1 + number % 250
        );
        let folder = tempfile::tempdir().unwrap();
        let mut rank = Self {
            mark: format!("{pid}-{number}"),
            folder,
            spec: Value::Null,
            address,
            name: "prefill-0",
            child: None,
            began: Instant::now(),
        };
        rank.spec = json!({
            "rank": 0,
            "job": {"model": "Demo", "model_path": "/models/Demo", "ranks": 1, "models_sha256": "abc"},
            "log_dir": rank.path("logs"),
            "limits": {"poll_interval": 0.05, "grace": 30.0, "wait_server": NEVER, "wait_router": NEVER},
            "workload": ["true"],
        });
        rank.server(&json!({"ready": ""}));
        rank.router(&json!({"ready": ""}));
        rank
    }

    /// Rank 1, which waits for a router at port 8000 of the same address.
    pub(crate) fn follower() -> Self {
        let mut rank = Self::leader();
        rank.name = "decode-1";
        rank.spec["rank"] = json!(1);
        rank.spec["job"]["ranks"] = json!(2);
        rank.spec["router"] = Value::Null;
        rank.spec["workload"] = json!([]);
        rank.spec["router_address"] = json!({"address": rank.address, "port": 8000});
        rank.server(&json!({"ready": ""}));
        rank
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    /// The words of a fake with this behaviour.
    pub(crate) fn fake(more: &Value) -> Value {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes/fake.py");
        json!(["python3", "-ISu", script, more.to_string()])
    }

    /// Set the behaviour of the server.
    pub(crate) fn server(&mut self, more: &Value) {
        let behaviour = with(
            json!({"address": self.address, "port": 8010, "started": self.file("server")}),
            more,
        );
        let name = self.name;
        let health = format!("http://{}:8010/health", self.address);
        self.spec["workers"] = json!([{
            "name": name, "role": name.split('-').next(), "address": self.address, "port": 8010,
            "health_url": health, "command": {"argv": Self::fake(&behaviour), "env": {"DEMO_FLAG": "1", "DEMO_TOKEN": "hf_s3cret"}},
        }]);
        self.spec["all_workers"] = json!([
            {"name": name, "role": name.split('-').next(), "rank": self.spec["rank"], "health_url": health}
        ]);
    }

    /// A server of another rank that never comes: nobody listens there.
    pub(crate) fn missing_server(&mut self) {
        let url = format!("http://{}:8020/health", self.address);
        let others = self.spec["all_workers"].as_array_mut().unwrap();
        others.push(json!({"name": "decode-1", "role": "decode", "rank": 1, "health_url": url}));
    }

    /// Set the behaviour of the router.
    pub(crate) fn router(&mut self, more: &Value) {
        let behaviour = with(
            json!({"address": self.address, "port": 8000, "started": self.file("router")}),
            more,
        );
        self.spec["router"] = json!({"address": self.address, "port": 8000, "command": {"argv": Self::fake(&behaviour)}});
    }

    /// Make the workload a fake as well.
    pub(crate) fn workload(&mut self, more: &Value) {
        let behaviour = with(json!({"started": self.file("workload")}), more);
        self.spec["workload"] = Self::fake(&behaviour);
    }

    pub(crate) fn limit(&mut self, name: &str, seconds: f64) {
        self.spec["limits"][name] = json!(seconds);
    }

    pub(crate) fn start(&mut self) {
        let command = vec![launcher().to_string_lossy().into_owned()];
        self.start_below(&command, |_| ());
    }

    /// Start it as the last words of another command.
    pub(crate) fn start_below(&mut self, words: &[String], change: impl FnOnce(&mut Command)) {
        fs::write(self.path("spec.json"), self.spec.to_string()).unwrap();
        let out = |name: &str| Stdio::from(fs::File::create(self.path(name)).unwrap());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(self.path("spec.json"));
        command
            .stdin(Stdio::null())
            .stdout(out("stdout"))
            .stderr(out("stderr"));
        command
            .env("ATOM_TEST_MARK", &self.mark)
            .env("HTTP_PROXY", "http://:")
            .env("http_proxy", "http://:");
        command
            .env("SECRET_TOKEN", "hf_inherited")
            .env_remove("NO_PROXY")
            .env_remove("no_proxy");
        command.process_group(0);
        change(&mut command);
        self.began = Instant::now();
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.as_ref().unwrap().id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Wait for a file that a fake makes, and read it.
    pub(crate) fn await_file(&self, name: &str) -> String {
        let path = self.path(name);
        self.until(name, || path.exists());
        fs::read_to_string(path).unwrap()
    }

    pub(crate) fn await_stderr(&self, part: &str) {
        self.until(part, || self.stderr().contains(part));
    }

    /// Wait for a condition; what stderr says is shown when it does not come.
    pub(crate) fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !condition() {
            assert!(
                Instant::now() < end,
                "{what} does not come; stderr:\n{}",
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn make_file(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.path("stderr")).unwrap_or_default()).into_owned()
    }

    pub(crate) fn ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Wait for the end, and check what holds for every end: nothing lives and nobody listens.
    pub(crate) fn end(&mut self) -> End {
        let end = Instant::now() + PATIENCE;
        let status: ExitStatus = loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < end,
                "the rank does not end; stderr:\n{}",
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = self.began.elapsed();
        self.nothing_is_left();
        let manifest = fs::read_to_string(self.path("logs/launch-rank0.json"))
            .or_else(|_| fs::read_to_string(self.path("logs/launch-rank1.json")))
            .map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
        End {
            code: status
                .code()
                .unwrap_or_else(|| 128 + status.signal().unwrap()),
            stdout: fs::read_to_string(self.path("stdout")).unwrap(),
            stderr: self.stderr(),
            manifest,
            took,
        }
    }

    /// No process that inherited this rank's mark lives, and no port of its address is listened on.
    pub(crate) fn nothing_is_left(&self) {
        let living = self.living();
        assert!(
            living.is_empty(),
            "left behind: {living:?}; stderr:\n{}",
            self.stderr()
        );
        for port in [8000, 8010] {
            let listens = std::net::TcpStream::connect((self.address.as_str(), port)).is_ok();
            assert!(!listens, "port {port} is still open");
        }
    }

    /// Living processes with this rank's mark, the launcher excepted.
    pub(crate) fn living(&self) -> Vec<i32> {
        let mark = format!("ATOM_TEST_MARK={}", self.mark);
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                *pid != self
                    .child
                    .as_ref()
                    .map_or(0, |child| child.id().cast_signed())
            })
            .filter(|pid| {
                let text = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                text.split(|byte| *byte == 0)
                    .any(|pair| pair == mark.as_bytes())
            })
            .filter(|pid| alive(*pid))
            .collect()
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        // A rank that a failed test left running, and its processes, by their ids.
        let Some(mut child) = self.child.take() else {
            return;
        };
        let _ = child.kill();
        let _ = child.wait();
        for pid in self.living() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

pub(crate) fn alive(pid: i32) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = text
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Run something whose time limit is meant to pass, until it had time for what comes before: how long a process takes to start
/// is the machine's business. The last one counts whatever it had.
pub(crate) fn with_limit<T>(mut run: impl FnMut(f64) -> T, had_time: impl Fn(&T) -> bool) -> T {
    for limit in [1.0, 3.0, 9.0] {
        let end = run(limit);
        if had_time(&end) {
            return end;
        }
    }
    run(27.0)
}

fn with(mut base: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    base.as_object_mut().unwrap().extend(more);
    base
}

/// The engine's own small program, built beside this test: by a run of all tests, or by `cargo build --examples`.
pub(crate) fn launcher() -> PathBuf {
    let mut folder: &Path = &std::env::current_exe().unwrap();
    while !folder.join("examples").is_dir() {
        folder = folder
            .parent()
            .expect("`cargo test` builds the examples first");
    }
    folder.join("examples/node_spec")
}
