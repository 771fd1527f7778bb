//! The launch: the program becomes the server.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{BINARY, Run, Started, Test, stand_in};

const MODELS: &str = r#"
Demo-8B:
  env: {DEMO_A: no, DEMO_B: off, DEMO_C: yes, DEMO_D: "on", DEMO_OPTS: "--a=b,c=d", DEMO_EMPTY: "", DEMO_LEVEL: 2}
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  tp_dp_env: "GPU_MAX_HW_QUEUES=5"
"#;

/// A launch of the demo model, with nothing on stderr but what the server writes.
fn launch(then: &str) -> Test {
    Test::new("--quiet --model Demo-8B --model-dir /models --mode tp-dp")
        .models(MODELS)
        .server(then)
}

/// The variables that differ between what a caller has and what the server got.
fn changed(
    test: &BTreeMap<String, String>,
    server: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    server
        .iter()
        .filter(|(name, value)| test.get(*name) != Some(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn environment(test: &Test) -> BTreeMap<String, String> {
    let owned = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
    test.process()
        .get_envs()
        .map(|(name, value)| (owned(name), owned(value.unwrap())))
        .collect()
}

#[test]
fn the_server_gets_the_words_and_variables_of_the_preview_and_nothing_else_changes() {
    let with = |test: Test| {
        test.env("PYTHONPATH", "/opt/x")
            .env("VIRTUAL_ENV", "/opt/venv")
            .env("DEMO_LEVEL", "0")
            .env("ATOM_LOG_LEVEL", "DEBUG")
            .args(["--env", "DEMO_LEVEL=3"])
    };
    let preview = with(launch("")).preview();
    let test = with(launch(""));
    let before = environment(&test);
    let started = test.run().started();
    assert_eq!(started.argv, preview.argv[1..]);
    let mut listed = preview.env;
    let mut changed = changed(&before, &started.environ);
    for name in ["LD_LIBRARY_PATH", "IBDEVICES"] {
        listed.remove(name);
        changed.remove(name);
    }
    assert_eq!(changed, listed);
    assert!(before.keys().all(|name| started.environ.contains_key(name)));
    let of_the_model: BTreeMap<&str, &str> = listed
        .iter()
        .filter(|(name, _)| name.starts_with("DEMO") || name.starts_with("GPU"))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        of_the_model.into_iter().collect::<Vec<_>>(),
        [
            ("DEMO_A", "no"),
            ("DEMO_B", "off"),
            ("DEMO_C", "yes"),
            ("DEMO_D", "on"),
            ("DEMO_EMPTY", ""),
            ("DEMO_LEVEL", "3"),
            ("DEMO_OPTS", "--a=b,c=d"),
            ("GPU_MAX_HW_QUEUES", "5"),
        ]
    );
    assert_eq!(started.environ["ATOM_LOG_LEVEL"], "DEBUG");
}

#[test]
fn the_server_is_the_launchers_process_and_has_its_streams() {
    let test = launch("cat; echo error >&2");
    let mut child = test
        .process()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"from stdin").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(Started::read(&test.path("")).pid, pid);
    assert_eq!(
        (output.stdout.as_slice(), output.stderr.as_slice()),
        (&b"from stdin"[..], &b"error\n"[..])
    );
}

#[test]
fn the_exit_code_is_the_servers() {
    for code in [0, 1, 42, 126, 255] {
        launch(&format!("exit {code}")).status(code).run();
    }
    launch("kill -9 $$").status(128 + 9).run();
}

#[test]
fn signal_masks_are_the_callers() {
    let under = [
        "env",
        "--block-signal=USR1",
        "--ignore-signal=USR2",
        "--ignore-signal=HUP",
    ];
    let started = launch("").under(&under).run().started();
    let mut direct = launch("");
    direct = direct.under(&under);
    let mut process = direct.process();
    let words: Vec<_> = process.get_args().map(ToOwned::to_owned).collect();
    let at = words.iter().position(|word| word == BINARY).unwrap();
    process = {
        let mut plain = std::process::Command::new("env");
        plain.args(&words[..at]).arg(direct.path("tools/python3"));
        plain
            .env_clear()
            .envs(environment(&direct))
            .current_dir(direct.path(""));
        plain
    };
    assert!(process.status().unwrap().success());
    let plain = Started::read(&direct.path(""));
    for mask in ["SigBlk", "SigIgn"] {
        assert_eq!(started.mask(mask), plain.mask(mask), "{mask}");
    }
    assert_ne!(plain.mask("SigBlk"), "0000000000000000");
}

#[test]
fn a_signal_reaches_the_server() {
    let test = launch("trap 'exit 7' TERM; touch ready; while :; do sleep 0.02; done");
    let mut child = test.process().stdin(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !test.path("ready").exists() {
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "the server did not start"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(7), None));
}

#[test]
fn the_limit_of_open_files_is_raised_and_never_lowered() {
    let cases = [
        ((256, 1024), "1024 1024"),
        ((1024, 16_000), "16000 16000"),
        ((16_000, 16_000), "16000 16000"),
        ((1024, 65_536), "65536 65536"),
        ((1024, 100_000), "65536 100000"),
        ((80_000, 100_000), "80000 100000"),
    ];
    let can = |(soft, hard): (u32, u32)| {
        let limits = format!("ulimit -Sn 100; ulimit -Hn {hard} && ulimit -Sn {soft}");
        let shell = std::process::Command::new("sh")
            .args(["-c", &limits])
            .stderr(Stdio::null())
            .status();
        shell.unwrap().success()
    };
    let tried: Vec<_> = cases
        .into_iter()
        .filter(|(limits, _)| can(*limits))
        .collect();
    // Where the hard limit cannot be set so high, the unit test of the number has the others.
    assert!(!tried.is_empty());
    for ((soft, hard), wanted) in tried {
        let limits =
            format!("ulimit -Sn 100; ulimit -Hn {hard} && ulimit -Sn {soft} && exec \"$@\"");
        let started = launch("")
            .under(&["sh", "-c", &limits, "sh"])
            .run()
            .started();
        assert_eq!(started.files, wanted, "from {soft} {hard}");
    }
}

#[test]
fn an_interpreter_that_cannot_be_executed_is_126_or_127_with_a_hint() {
    let failing = |python: &str, status: i32, stderr: &str| {
        Test::new("--quiet --model Demo-8B --model-dir /models --python")
            .args([python])
            .models(MODELS)
            .file("plain", "echo no\n")
            .program("no-interpreter", "#!/nowhere/python3\n")
            .program("no-format", "neither\n")
            .program("tools/elsewhere", "#!/bin/sh\n")
            .file("folder/x", "")
            .env("PATH", "/nowhere:tools")
            .status(status)
            .stderr(stderr)
            .run();
    };
    failing(
        "./missing",
        127,
        "error: cannot execute ./missing: there is no such file in [DIR]\n  = help: a relative path starts at the working directory: give the whole path\n",
    );
    failing(
        "python3",
        127,
        "error: cannot execute python3: it is not on PATH (/nowhere:tools)\n  = help: name another with `--python PATH` or ATOM_PYTHON\n",
    );
    failing(
        "./plain",
        126,
        "error: cannot execute ./plain: it is not marked executable\n  = help: chmod +x ./plain\n",
    );
    failing(
        "./no-interpreter",
        126,
        "error: cannot execute ./no-interpreter: its first line names /nowhere/python3, which does not exist\n  = help: mend the first line of ./no-interpreter\n",
    );
    failing(
        "./no-format",
        126,
        "error: cannot execute ./no-format: it is neither a program nor a script with `#!` in its first line\n  = help: a script starts with a line such as `#!/bin/bash`\n",
    );
    failing(
        "./folder",
        126,
        "error: cannot execute ./folder: it is a folder\n  = help: name another with `--python PATH` or ATOM_PYTHON\n",
    );
}

#[test]
fn without_a_path_the_error_says_so() {
    Test::new("--quiet --model Demo-8B --model-dir /models --python nowhere-at-all")
        .models(MODELS)
        .without("PATH")
        .status(127)
        .stderr("error: cannot execute nowhere-at-all: no PATH is set, and it is not in /bin:/usr/bin\n  = help: name another with `--python PATH` or ATOM_PYTHON\n")
        .run();
}

#[test]
fn the_interpreter_is_the_option_then_the_variable_then_python3() {
    let with = |test: Test| test.program("a", stand_in()).program("b", stand_in());
    let program = |test: Test| test.preview().argv[0].clone();
    assert_eq!(program(with(launch(""))), "python3");
    assert_eq!(program(with(launch("")).env("ATOM_PYTHON", "./a")), "./a");
    assert_eq!(
        program(
            with(launch(""))
                .env("ATOM_PYTHON", "./a")
                .args(["--python", "./b"])
        ),
        "./b"
    );
    with(launch("")).env("ATOM_PYTHON", "./a").run().started();
}

#[test]
fn a_closed_or_broken_stdout_is_no_failure() {
    let closed = ["sh", "-c", "exec \"$@\" >&-", "sh"];
    launch("").under(&closed).run().started();
    launch("").args(["--dry-run"]).under(&closed).run();
    launch("")
        .args(["--dry-run"])
        .under(&["sh", "-c", "\"$@\" | true", "sh"])
        .run();
}

#[test]
fn arguments_near_the_systems_limit_arrive_whole() {
    let words: Vec<String> = (0..90)
        .map(|number| format!("{number:05}").repeat(2000))
        .collect();
    let started = launch("")
        .args(["--no-check", "--"])
        .args(&words)
        .any_stderr()
        .run()
        .started();
    assert_eq!(started.argv[started.argv.len() - words.len()..], words);
}

#[test]
fn arguments_beyond_the_systems_limit_are_126() {
    let word = "x".repeat(100_000);
    let flags = vec![word; 40].join(" ");
    launch("")
        .models(format!("Demo-8B:\n  flags: {flags}\n  tp_dp_flags: --enable-dp-attention\n"))
        .args(["--no-check"])
        .status(126)
        .stderr("error: cannot execute python3: Argument list too long (os error 7)\n  = help: arguments and environment together are larger than the system allows\n")
        .run();
}

/// All paths below a folder with their sizes and times of change.
fn listing(folder: &Path) -> BTreeMap<std::path::PathBuf, (u64, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let data = entry.metadata().unwrap();
        found.insert(entry.path(), (data.len(), data.modified().unwrap()));
        if data.is_dir() {
            found.extend(listing(&entry.path()));
        }
    }
    found
}

#[test]
fn a_dry_run_touches_nothing() {
    let test = launch("touch started")
        .args(["--dry-run"])
        .file("1", "")
        .file("a.txt", "")
        .any_stdout();
    let folder = test.path("");
    let before = listing(&folder);
    let run: Run = test.run();
    assert_eq!(listing(run.folder.path()), before);
}

#[test]
fn extra_arguments_are_never_run() {
    let started = launch("")
        .env("EXTRA_SERVER_ARGS", "--served-model-name $(touch pwned)")
        .args(["--no-check"])
        .any_stderr()
        .run();
    assert!(!started.folder.path().join("pwned").exists());
    let argv = started.started().argv;
    assert_eq!(
        argv[argv.len() - 3..],
        ["--served-model-name", "$(touch", "pwned)"]
    );
}

/// The library path that is set for an interpreter, as the dry run shows it; `[DIR]` is the test's folder.
fn library_path(test: Test) -> Option<String> {
    let json = test
        .args(["--dry-run", "--format", "json"])
        .any_stdout()
        .run()
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    json["env"]["LD_LIBRARY_PATH"].as_str().map(str::to_owned)
}

#[test]
fn the_library_path_starts_with_mooncake_and_rocm_and_has_no_empty_element() {
    let with = || {
        launch("")
            .program("venv/bin/python3.12", "")
            .program("venv/bin/python3", "")
            .file("venv/lib/python3.12/site-packages/mooncake/engine.so", "")
            .args(["--python", "venv/bin/python3"])
    };
    let rocm = Path::new("/opt/rocm/lib")
        .is_dir()
        .then_some("/opt/rocm/lib");
    let mooncake = "venv/lib/python3.12/site-packages/mooncake";
    let joined = |more: Option<&str>| {
        [Some(mooncake), rocm, more]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(":")
    };
    let seen = |test: Test| library_path(test).unwrap().replace("[DIR]/", "");
    assert_eq!(seen(with()), joined(None));
    assert_eq!(seen(with().env("LD_LIBRARY_PATH", "")), joined(None));
    assert_eq!(
        seen(with().env("LD_LIBRARY_PATH", "/opt/x")),
        joined(Some("/opt/x"))
    );
}
