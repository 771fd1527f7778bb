//! The drop-in of examples/inferencex without SLURM: what follows the benchmark, exit codes, a dry run. That it executes what the old
//! script executed is compared with recorded jobs on a real SLURM, in tests/slurm/cases_inferencex.py.
//!
//! Every rank is the real drop-in on a loopback address of its own; server, router and benchmark are stand-ins.

#![expect(clippy::unwrap_used, reason = "what goes wrong here fails a test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const PATIENCE: Duration = Duration::from_mins(2);

/// One job in a folder of its own.
struct Job {
    folder: tempfile::TempDir,
    net: String,
    env: BTreeMap<String, String>,
}

impl Job {
    fn new(base: &Value, changes: &Value) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let pid = std::process::id();
        let folder = tempfile::tempdir().unwrap();
        let mut env: BTreeMap<String, String> = serde_json::from_value(base.clone()).unwrap();
        for (name, value) in changes.as_object().unwrap() {
            match value.as_str() {
                Some(value) => env.insert(name.clone(), value.to_owned()),
                None => env.remove(name),
            };
        }
        let net = format!("127.{}.{}", 192 + pid % 60, (pid / 60 + number * 7) % 256);
        let job = Self { folder, net, env };
        for name in [
            "bin",
            "ws",
            "run_logs",
            "standin",
            "workspace/benchmarks",
            "logs",
            "models",
        ] {
            fs::create_dir_all(job.path(name)).unwrap();
        }
        let model = job.env.get("MODEL_NAME").cloned().unwrap_or_default();
        fs::create_dir_all(job.path("models").join(&model)).unwrap();
        for name in ["config.json", "model.safetensors"] {
            fs::write(job.path("models").join(&model).join(name), "").unwrap();
        }
        let python = which("python3");
        let standin = format!(
            "#!/bin/sh\nexec {} {ROOT}/tests/slurm/standin.py \"$@\"\n",
            python.display()
        );
        job.program("bin/python3", &standin);
        job.program("bin/atomesh", &standin);
        job.program(
            "ws/bench.sh",
            "#!/bin/bash\nprintf '%s\\0' bench \"$@\" >>\"$STANDIN_DIR/steps\"\nprintf '\\n' >>\"$STANDIN_DIR/steps\"\n\
             echo \"$ROUTER_PORT $MODEL_PATH $IS_MTP\" >\"$7/result.json\"\nexit \"${BENCH_CODE:-0}\"\n",
        );
        job.program(
            "workspace/benchmarks/benchmark_lib.sh",
            "run_eval() { printf '%s\\0' eval \"$MODEL_NAME\" \"$EVAL_CONCURRENT_REQUESTS\" \"$PWD\" \"$@\" >>\"$STANDIN_DIR/steps\"; \
             printf '\\n' >>\"$STANDIN_DIR/steps\"; echo '{}' >results_a.json; echo '{}' >sample_a.jsonl; return \"${EVAL_CODE:-0}\"; }\n\
             append_lm_eval_summary() { printf '%s\\0' summary \"$TP\" \"$CONC\" \"$ISL\" \"$OSL\" \"$PREFILL_NUM_WORKERS\" >>\"$STANDIN_DIR/steps\"; \
             printf '\\n' >>\"$STANDIN_DIR/steps\"; echo '{}' >meta_env.json; }\n",
        );
        // The old server.sh: it sources the engine's script.
        job.program(
            "server.sh",
            &format!("source {ROOT}/examples/inferencex/server_atom.sh\n"),
        );
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn start(&self, rank: usize, sourced: bool) -> Child {
        let path = format!(
            "{}:{}",
            self.path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let script = if sourced {
            self.path("server.sh")
        } else {
            Path::new(ROOT).join("examples/inferencex/server_atom.sh")
        };
        let mut command = Command::new("bash");
        command.arg(script).env_clear().stdin(Stdio::null());
        for (name, value) in &self.env {
            command.env(name, self.here(value));
        }
        let file = |kind: &str| fs::File::create(self.path(&format!("{kind}-{rank}"))).unwrap();
        command
            .env("PATH", path)
            .env("HOME", self.folder.path())
            .env("NODE_RANK", rank.to_string())
            .env("ATOM_WS_PATH", self.path("ws"))
            .env("ATOM_ROUTER", self.path("bin/atomesh"))
            .env("ATOM_LAUNCH", env!("CARGO_BIN_EXE_atom-launch"))
            .env("BENCHMARK_LOGS_DIR", self.path("logs"))
            .env("RUN_LOGS", self.path("run_logs"))
            .env("WORKSPACE", self.path("workspace"))
            .env("STANDIN_DIR", self.path("standin"))
            .stdout(file("stdout"))
            .stderr(file("stderr"));
        command.spawn().unwrap()
    }

    /// A recorded word as it must be on this machine.
    fn here(&self, word: &str) -> String {
        let models = self.path("models").display().to_string();
        word.replace("10.0.0.", &format!("{}.", self.net))
            .replace("/models", &models)
    }

    /// Run all ranks to their ends; exit codes by rank.
    fn run(&self, ranks: usize) -> Vec<i32> {
        let mut children: Vec<Child> = (0..ranks)
            .map(|rank| self.start(rank, rank % 2 == 0))
            .collect();
        let end = Instant::now() + PATIENCE;
        let mut codes = vec![None; ranks];
        // As srun does with --kill-on-bad-exit.
        while codes.iter().any(Option::is_none) && Instant::now() < end {
            for (code, child) in codes.iter_mut().zip(&mut children) {
                if code.is_none() {
                    *code = child
                        .try_wait()
                        .unwrap()
                        .map(|status| status.code().unwrap_or(-1));
                }
            }
            if codes.iter().flatten().any(|code| *code != 0) {
                for (_, child) in codes
                    .iter()
                    .zip(&children)
                    .filter(|(code, _)| code.is_none())
                {
                    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let codes: Vec<i32> = codes.into_iter().map(|code| code.unwrap_or(-2)).collect();
        for child in &mut children {
            let _ = child.kill();
            let _ = child.wait();
        }
        codes
    }

    fn stderr(&self, rank: usize) -> String {
        String::from_utf8_lossy(&fs::read(self.path(&format!("stderr-{rank}"))).unwrap_or_default())
            .into_owned()
    }

    /// What benchmark and evaluation were called with, in order.
    fn steps(&self) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.path("standin/steps")).unwrap_or_default();
        let words = |line: &str| {
            line.trim_end_matches('\0')
                .split('\0')
                .map(str::to_owned)
                .collect()
        };
        text.lines().map(words).collect()
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.into_iter().find(|file| file.is_file()).unwrap()
}

fn base() -> Value {
    let text = fs::read_to_string(format!("{ROOT}/tests/data/inferencex-jobs.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["base"].clone()
}

#[test]
fn the_evaluation_follows_the_benchmark_and_leaves_its_results() {
    let job = Job::new(
        &base(),
        &json!({"RUN_EVAL": "true", "BENCH_MAX_CONCURRENCY": "4x2048x64"}),
    );
    assert_eq!(job.run(2), [0, 0], "{}", job.stderr(0));
    let steps = job.steps();
    let names: Vec<&str> = steps.iter().map(|words| words[0].as_str()).collect();
    assert_eq!(names, ["bench", "eval", "summary"]);
    let model = job.path("models/DeepSeek-V4-Pro").display().to_string();
    let workspace = job.path("workspace").display().to_string();
    assert_eq!(
        steps[1][1..],
        [
            model.as_str(),
            "2048",
            &workspace,
            "--framework",
            "lm-eval",
            "--port",
            "30000"
        ]
    );
    assert_eq!(steps[2][1..], ["8", "2048", "1024", "1024", "1"]);
    for file in ["results_a.json", "sample_a.jsonl", "meta_env.json"] {
        let path = job.path("logs/logs/slurm_job-4242/eval_results").join(file);
        assert!(path.is_file(), "{}", path.display());
    }
}

#[test]
fn an_evaluation_alone_runs_no_benchmark_and_its_failure_is_the_jobs() {
    let job = Job::new(
        &base(),
        &json!({"RUN_EVAL": "1", "EVAL_ONLY": "True", "EVAL_CONC": "16", "EVAL_CODE": "9"}),
    );
    let codes = job.run(2);
    assert_eq!(codes[0], 9, "{}", job.stderr(0));
    let steps = job.steps();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0][2], "16");
}

#[test]
fn a_benchmark_that_fails_gives_the_job_its_code_and_its_results() {
    let job = Job::new(&base(), &json!({"BENCH_CODE": "7"}));
    assert_eq!(job.run(2)[0], 7, "{}", job.stderr(0));
    assert!(job.path("logs/logs/slurm_job-4242/result.json").is_file());
}

#[test]
fn a_dry_run_prints_every_rank_and_leaves_nothing() {
    let job = Job::new(&base(), &json!({"DRY_RUN": "1"}));
    assert_eq!(job.run(2), [0, 0], "{}", job.stderr(0));
    for (rank, port) in [(0, "8010"), (1, "8020")] {
        let text = fs::read_to_string(job.path(&format!("stdout-{rank}"))).unwrap();
        assert!(text.contains(&format!("--server-port {port}")), "{text}");
    }
    for folder in ["standin", "run_logs", "logs"] {
        assert_eq!(
            fs::read_dir(job.path(folder)).unwrap().count(),
            0,
            "{folder}"
        );
    }
}

/// job.slurm mounts this folder, and nothing need be put into the image.
#[test]
fn a_program_beside_the_drop_in_is_taken_and_one_that_is_named_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let drop_in = Path::new(ROOT).join("examples/inferencex/server_atom.sh");
    let script = place("ws/server_atom.sh", &fs::read_to_string(drop_in).unwrap());
    for name in ["bin/atom-launch", "ws/atom-launch", "named"] {
        place(name, &format!("#!/bin/sh\necho {name} \"$ATOM_LAUNCH\"\n"));
    }
    let said = |named: Option<&Path>| {
        let path = format!("{}:/usr/bin:/bin", folder.path().join("bin").display());
        let mut command = Command::new("bash");
        command.arg(&script).env_clear().env("PATH", path);
        if let Some(named) = named {
            command.env("ATOM_LAUNCH", named);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let beside = folder.path().join("ws/atom-launch");
    let named = folder.path().join("named");
    assert_eq!(said(Some(&named)), format!("named {}\n", named.display()));
    // The workload, too, is told which one it is.
    assert_eq!(said(None), format!("ws/atom-launch {}\n", beside.display()));
    fs::remove_file(beside).unwrap();
    assert_eq!(said(None), "bin/atom-launch atom-launch\n");
}
