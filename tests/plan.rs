//! `plan` through the program: exact output for every layout, and what each form promises. `UPDATE_GOLDEN=1` rewrites the outputs.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

#[path = "common/ran.rs"]
mod ran;

use ran::Ran;

const MODELS: &str = r#"Demo-8B:
  env: "DEMO_NOTE='two words'"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  hf_overrides: '{"a": "it''s"}'
  mtp_flags: "--method mtp --num-speculative-tokens"
"#;

fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let job = [
        ("MODEL_NAME", "Demo-8B"),
        ("MODEL_DIR", "/models"),
        ("ATOM_MODELS_FILE", "models_atom.yaml"),
    ];
    ran::run(folder, args.iter().copied(), &[&job, env].concat())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("models_atom.yaml"), MODELS).unwrap();
    folder
}

fn plan(args: &[&str], env: &[(&str, &str)]) -> Ran {
    let words: Vec<&str> = std::iter::once("plan")
        .chain(args.iter().copied())
        .collect();
    run(folder().path(), &words, env)
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/plans")
        .join(name)
}

/// Compare with the kept output; `UPDATE_GOLDEN=1` rewrites it and fails when it changed.
fn is_as_kept(name: &str, now: &str) {
    let path = kept(name);
    let before = fs::read_to_string(&path).unwrap_or_default();
    if before != now && std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, now).unwrap();
    }
    assert_eq!(before, now, "{name}: UPDATE_GOLDEN=1 rewrites it");
}

/// What stands before the commands fits 100 columns.
fn fits(text: &str) {
    for line in text.lines().take_while(|line| !line.starts_with("# ")) {
        assert!(line.width() <= 100, "{} columns: {line}", line.width());
    }
}

type Variables = &'static [(&'static str, &'static str)];

const TWO: Variables = &[("xP", "1"), ("yD", "1"), ("IPADDRS", "10.0.0.1,10.0.0.2")];

/// Every layout, small and large, with addresses of all kinds.
const JOBS: &[(&str, &[&str], Variables)] = &[
    ("standalone", &[], &[]),
    ("spread-1p1d", &[], TWO),
    (
        "spread-2p2d-dp",
        &["--mode", "tp-dp", "--mtp", "2"],
        &[
            ("xP", "2"),
            ("yD", "2"),
            ("SLURM_JOB_NODELIST", "mi355-[01-02,07],head"),
        ],
    ),
    (
        "prefill-packed",
        &[
            "--layout",
            "prefill-packed",
            "--prefill-tp",
            "4",
            "--mode",
            "tp-dp",
        ],
        &[
            ("xP", "2"),
            ("yD", "2"),
            ("IPADDRS", "10.0.0.1,10.0.0.2,10.0.0.3"),
        ],
    ),
    (
        "decode-packed",
        &["--layout", "decode-packed", "--decode-tp", "4"],
        &[
            ("xP", "2"),
            ("yD", "2"),
            ("IPADDRS", "10.0.0.1,10.0.0.2,10.0.0.3"),
        ],
    ),
    (
        "packed",
        &[
            "--layout",
            "packed",
            "--tp",
            "2",
            "--decode-mode",
            "tp-dp",
            "--worker-cache",
            "/scratch",
        ],
        &[("xP", "2"), ("yD", "2"), ("IPADDRS", "10.0.0.1")],
    ),
    (
        "packed-visible-devices",
        &["--layout", "packed", "--tp", "2", "--rank", "0"],
        &[
            ("xP", "1"),
            ("yD", "1"),
            ("IPADDRS", "10.0.0.1"),
            ("HIP_VISIBLE_DEVICES", "7,5,3,1"),
        ],
    ),
    (
        "ipv6",
        // A warning about KV transfer over IPv6 is another test's.
        &["--mode", "tp-dp", "--no-check"],
        &[
            ("xP", "1"),
            ("yD", "1"),
            ("IPADDRS", "fd00:1234:5678:9abc:def0:1234:5678:9abc,fd00::2"),
        ],
    ),
    ("rank-0", &["--rank", "0"], TWO),
    ("rank-1", &["--rank", "1"], TWO),
    (
        "moriio",
        &[
            "--prefill-kv-transfer-config",
            r#"{"kv_connector":"moriio","kv_role":"kv_producer","handshake_port":7000}"#,
            "--decode-kv-transfer-config",
            r#"{"kv_connector":"moriio","kv_role":"kv_consumer","handshake_port":7100}"#,
        ],
        TWO,
    ),
];

#[test]
fn every_layout_is_shown_as_it_is_kept() {
    let mut changed = String::new();
    for (name, args, env) in JOBS {
        let ran = plan(args, env);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
        fits(&ran.stdout);
        let path = kept(&format!("{name}.txt"));
        if fs::read_to_string(&path).unwrap_or_default() != ran.stdout {
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&path, &ran.stdout).unwrap();
            }
            write!(changed, "--- {name}\n{}", ran.stdout).unwrap();
        }
    }
    assert!(
        changed.is_empty(),
        "outputs changed; UPDATE_GOLDEN=1 rewrites them:\n{changed}"
    );
}

#[test]
fn the_json_of_a_job_is_as_kept() {
    let ran = plan(&["--format", "json", "--mtp", "1"], TWO);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    // The version is the crate's own and no part of the form.
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    is_as_kept(
        "spread-1p1d.json",
        &ran.stdout.replace(&version, "\"version\": \"…\""),
    );
}

#[test]
fn sixty_four_ranks_fit_the_table() {
    let env = [
        ("xP", "32"),
        ("yD", "32"),
        (
            "SLURM_JOB_NODELIST",
            "a-rather-long-host-name-of-a-cluster-[001-064].example.org",
        ),
    ];
    let ran = plan(&["--mode", "tp-dp"], &env);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    fits(&ran.stdout);
    let rows = ran
        .stdout
        .lines()
        .filter(|line| line.contains("prefill-") || line.contains("decode-"));
    assert_eq!(rows.filter(|line| line.contains("tp-dp")).count(), 64);
    assert!(
        ran.stdout.contains(":8020"),
        "the port stays where a name is cut"
    );
}

/// A program that writes its name, its words and one variable.
fn recorder(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    fs::write(
        &path,
        "#!/bin/bash\nprintf '%s\\0' \"${0##*/}\" \"$DEMO_NOTE\" \"$@\"\nprintf '\\n'\n",
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn bash_runs_the_shell_form_word_for_word() {
    let folder = folder();
    let python = recorder(folder.path(), "python");
    let router = recorder(folder.path(), "router");
    let args = ["plan", "--python", &python, "--router-bin", &router];
    let shell = run(
        folder.path(),
        &[&args[..], &["--format", "shell"]].concat(),
        TWO,
    );
    assert_eq!(shell.code, Some(0), "{}", shell.stderr);
    let ran = Command::new("bash")
        .arg("-c")
        .arg(&shell.stdout)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let lines = String::from_utf8(ran.stdout).unwrap();
    let json = run(
        folder.path(),
        &[&args[..], &["--format", "json"]].concat(),
        TWO,
    );
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let mut expected = Vec::new();
    for rank in json["ranks"].as_array().unwrap() {
        for worker in rank["workers"].as_array().unwrap() {
            expected.push((
                "python",
                worker["env"]["DEMO_NOTE"].as_str().unwrap(),
                &worker["argv"],
            ));
        }
    }
    expected.push(("router", "", &json["ranks"][0]["router"]["argv"]));
    let got: Vec<&str> = lines.lines().collect();
    assert_eq!(got.len(), expected.len());
    for (line, (name, note, argv)) in got.iter().zip(expected) {
        let mut words = vec![name, note];
        words.extend(
            argv.as_array().unwrap()[1..]
                .iter()
                .map(|word| word.as_str().unwrap()),
        );
        let line: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
        assert_eq!(line, words);
    }
    let only = run(
        folder.path(),
        &[&args[..], &["--format", "shell", "--rank", "1"]].concat(),
        TWO,
    );
    assert!(
        only.stdout.starts_with("# rank 1: decode-1 on 10.0.0.2\n"),
        "{}",
        only.stdout
    );
    assert!(!only.stdout.contains("router"), "{}", only.stdout);
}

#[test]
fn a_job_script_gives_the_variables() {
    let folder = folder();
    let script = "#!/bin/bash\n#SBATCH -N 3\nexport xP=2\nexport yD=1 # one is enough\nIPADDRS=\"n0,n1,n2\"\nexport PREFILL_TP_SIZE=4 \\\n  ROUTER_PORT=30000\nsrun --ntasks=3 server.sh --x=1\n";
    fs::write(folder.path().join("job.sh"), script).unwrap();
    let from_file = run(
        folder.path(),
        &["plan", "--env-file", "job.sh"],
        &[("xP", "9")],
    );
    assert_eq!((from_file.code, from_file.stderr.as_str()), (Some(0), ""));
    let env = [
        ("xP", "2"),
        ("yD", "1"),
        ("IPADDRS", "n0,n1,n2"),
        ("PREFILL_TP_SIZE", "4"),
        ("ROUTER_PORT", "30000"),
    ];
    assert_eq!(run(folder.path(), &["plan"], &env).stdout, from_file.stdout);
    let option_wins = run(
        folder.path(),
        &["plan", "--env-file", "job.sh", "--router-port", "31000"],
        &[],
    );
    assert!(option_wins.stdout.contains("--port 31000"));
}

#[test]
fn all_mistakes_of_a_topology_come_at_once() {
    let env = [
        ("xP", "1"),
        ("yD", "2"),
        ("IPADDRS", "10.0.0.1,10.0.0.1"),
        ("NODE_RANK", "7"),
        ("PREFILL_TP_SIZE", "16"),
        ("ROUTER_PORT", "8010"),
        ("HANDSHAKE_PORT", "65530"),
    ];
    let ran = plan(&["--role", "standalone", "--decode-port", "70000"], &[]);
    assert_eq!(ran.code, Some(2));
    let ran = plan(&[], &env);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    is_as_kept("all-mistakes.txt", &ran.stderr);
}

#[test]
fn a_packed_layout_starts_one_worker_at_a_time() {
    let folder = folder();
    let python = recorder(folder.path(), "python");
    let env = [
        ("xP", "1"),
        ("yD", "1"),
        ("IPADDRS", "10.0.0.1"),
        ("NODE_RANK", "0"),
    ];
    let args = ["-q", "--layout", "packed", "--tp", "4", "--python", &python];
    let plan = run(
        folder.path(),
        &[&["plan"], &args[1..], &["--format", "json"]].concat(),
        &env,
    );
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    for worker in 0..2 {
        let number = worker.to_string();
        let ran = run(
            folder.path(),
            &[&args[..], &["--worker", &number]].concat(),
            &env,
        );
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let words: Vec<&str> = ran
            .stdout
            .trim_end()
            .trim_end_matches('\0')
            .split('\0')
            .skip(2)
            .collect();
        let planned: Vec<&str> = plan["ranks"][0]["workers"][worker]["argv"]
            .as_array()
            .unwrap()[1..]
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        assert_eq!(words, planned);
    }
}

#[test]
fn a_rank_whose_address_is_not_known_gets_none_of_this_machine() {
    let announced = |args: &[&str], env: &[(&str, &str)]| -> Vec<String> {
        let mut words = vec!["--format", "json"];
        words.extend(args);
        let run = plan(&words, env);
        let plan: Value = serde_json::from_str(&run.stdout).unwrap();
        let ranks = plan["ranks"].as_array().unwrap();
        let workers = ranks
            .iter()
            .flat_map(|rank| rank["workers"].as_array().unwrap());
        workers
            .map(|worker| worker["host_ip"].as_str().unwrap().to_owned())
            .collect()
    };
    let counts = [("xP", "1"), ("yD", "1")];
    let named = ["--nodes", "n0,n1"];
    assert_eq!(
        announced(&[], &counts),
        ["<address of node0>", "<address of node1>"]
    );
    assert_eq!(
        announced(&named, &counts),
        ["<address of n0>", "<address of n1>"]
    );
    let looked_at = ["--nodes", "n0,n1", "--rank", "1"];
    assert_eq!(announced(&looked_at, &counts), ["<address of n1>"]);
    // Inside of the job this machine is that rank.
    let mut inside = counts.to_vec();
    inside.push(("NODE_RANK", "1"));
    let all = announced(&named, &inside);
    assert_eq!(all[0], "<address of n0>");
    assert!(!all[1].starts_with('<'), "{all:?}");
    let run = plan(&["--host-ip", "10.1.1.1"], &counts);
    assert!(
        run.stderr.contains("`--host-ip 10.1.1.1` is the address of one of the 2 ranks\n  = help: say of which one with `--rank N`\n"),
        "{}",
        run.stderr
    );
    assert_eq!(run.code, Some(2));
}
