//! `atom-launch sbatch`: the examples are what it prints, bash and shellcheck find nothing wrong, and what cannot stand in a script for
//! all ranks is refused. That SLURM takes and runs them is proved by scripts/test-slurm.

#![expect(clippy::unwrap_used, reason = "what goes wrong here fails a test")]

use std::fs;
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn sbatch(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atom-launch"))
        .arg("sbatch")
        .args(words)
        // None of these may count: the script must mean the same everywhere.
        .env("MODEL_NAME", "Kimi-K2.5-MXFP4")
        .env("xP", "5")
        .env("PREFILL_TP_SIZE", "16")
        .env("SLURM_JOB_NODELIST", "n1")
        .output()
        .unwrap()
}

fn examples() -> Vec<(String, String)> {
    let folder = fs::read_dir(format!("{ROOT}/examples/slurm")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let read = paths.map(|path| {
        (
            path.display().to_string(),
            fs::read_to_string(&path).unwrap(),
        )
    });
    read.collect()
}

#[test]
fn each_example_is_what_the_line_at_its_head_prints() {
    let examples = examples();
    assert_eq!(examples.len(), 3);
    for (path, text) in examples {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("#   atom-launch sbatch "))
            .unwrap();
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = sbatch(&words);
        assert!(
            done.status.success(),
            "{path}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        assert_eq!(String::from_utf8_lossy(&done.stdout), text, "{path}");
    }
}

#[test]
fn scripts_are_clean_in_the_eyes_of_bash_and_shellcheck() {
    let odd = sbatch(&[
        "--model=DeepSeek-V4-Pro",
        "--model-dir=/models",
        "--prefill-workers=2",
        "--decode-workers=1",
        "--server-args=--level 3",
        "--env=A=it's $HOME",
        "--workload-timeout=600",
        "--log-dir=/shared/my logs",
        "--requeue",
        "--docker-image=rocm/atom dev",
        "--mount=/data:/mnt",
        "--",
        "bash",
        "-c",
        "echo \"$ROUTER_URL\"; exit 3",
        "{1..3}",
        "~/results",
        "it's\nexit 1",
    ]);
    assert!(
        odd.status.success(),
        "{}",
        String::from_utf8_lossy(&odd.stderr)
    );
    let odd = String::from_utf8(odd.stdout).unwrap();
    for line in [
        "    '--server-args=--level 3'",
        "    --env 'A=it'\\''s $HOME'",
        "    --workload-timeout 600",
        "log_dir='/shared/my logs'/slurm_job-$SLURM_JOB_ID",
        "    'echo \"$ROUTER_URL\"; exit 3'",
        "    '{1..3}'",
        "    '~/results'",
        "    --volume \"/data:/mnt\"",
        "#SBATCH --requeue",
        "#SBATCH --nodes=3",
    ] {
        assert!(odd.lines().any(|one| one == line), "{line}\n{odd}");
    }
    // A comment ends where its line does.
    let head = odd
        .lines()
        .find(|line| line.starts_with("#   atom-launch"))
        .unwrap();
    assert!(
        head.ends_with(r" '{1..3}' '~/results' $'it\'s\nexit 1'"),
        "{head}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.sbatch");
    fs::write(&path, &odd).unwrap();
    let paths = examples().into_iter().map(|(path, _)| path);
    let paths: Vec<String> = paths.chain([path.display().to_string()]).collect();
    for path in &paths {
        assert!(
            Command::new("bash")
                .arg("-n")
                .arg(path)
                .status()
                .unwrap()
                .success(),
            "{path}"
        );
    }
    match Command::new("shellcheck").args(&paths).output() {
        Ok(done) => assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        ),
        // CI's own step looks at the examples in any case.
        Err(error) => eprintln!("shellcheck was not run: {error}"),
    }
}

#[test]
fn what_cannot_stand_in_a_script_for_all_is_refused_at_once() {
    let done = sbatch(&[
        "--model=DeepSeek-V4-Pro",
        "--prefill-workers=1",
        "--decode-workers=1",
        "--rank=1",
        "--env=HF_TOKEN=hf_abc",
        "--nodes-count=1",
        "--partition=a b",
        "--sbatch-option=qos",
        "--docker-image=i",
        "--mount=/a$b",
    ]);
    assert_eq!(done.status.code(), Some(2));
    assert!(done.stdout.is_empty());
    let text = String::from_utf8(done.stderr).unwrap();
    for part in [
        "`--rank` is about one rank",
        "`--env HF_TOKEN=…` would put a secret into a file",
        "the job has 2 ranks, but `--nodes-count` asks for 1",
        "`--partition` must be one word",
        "`--sbatch-option` must be an option of sbatch",
        "`--mount` cannot be mounted",
        "6 errors; no script was printed",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("hf_abc"));
}

#[test]
fn what_sbatch_would_find_wrong_in_the_queue_is_found_now() {
    let done = sbatch(&[
        "--model=DeepSeek-V4-Pro",
        "--time=2h",
        "--gres=gpu=8",
        "--job-name=a/b",
        "--partition=it's",
        "--grace=soon",
    ]);
    assert_eq!(done.status.code(), Some(2));
    let text = String::from_utf8(done.stderr).unwrap();
    let errors: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("error[invalid-setting]: "))
        .collect();
    assert_eq!(
        errors,
        [
            "`--job-name` must have no slash, found `a/b`",
            "`--partition` must be one word, without quotes, backslashes and `#`, found `it\\'s`",
            "`--time` must be MINUTES, HOURS:MINUTES:SECONDS, DAYS-HOURS or another time of sbatch, found `2h`",
            "`--gres` must be a list such as `gpu:8`, found `gpu=8`",
            "`--grace` must be a number of seconds from 0 to 31536000 (a year), found `soon`",
        ]
    );
}

#[test]
fn no_message_names_a_variable_that_is_not_read() {
    for words in [
        &[][..],
        &["--model=a/b"],
        &["--model=DeepSeek-V4-Pro", "--server-args=-tp 4"],
    ] {
        let done = sbatch(words);
        let text = String::from_utf8(done.stderr).unwrap();
        assert!(text.ends_with("; no script was printed\n"), "{text}");
        for name in atom_launch::input::settings::VARIABLES {
            assert!(
                !text
                    .split(|c: char| !c.is_alphanumeric() && c != '_')
                    .any(|word| word == *name),
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn settings_of_the_submitting_shell_do_not_count_and_all_else_is_inherited() {
    let script = sbatch(&["--model=DeepSeek-V4-Pro"]);
    let script = String::from_utf8(script.stdout).unwrap();
    let start = script.find("unset -v ").unwrap();
    let end = start + script[start..].find("\n\n").unwrap();
    let show = format!("{}\nenv -0", &script[start..end]);
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &show]).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for name in atom_launch::input::settings::VARIABLES {
        command.env(name, "x");
    }
    let out = command.env("HF_TOKEN", "secret").output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    let left: std::collections::BTreeSet<&str> = out
        .split('\0')
        .filter_map(|pair| pair.strip_suffix("=x").or(pair.strip_suffix("=secret")))
        .collect();
    assert_eq!(
        left.into_iter().collect::<Vec<_>>(),
        [
            "ATOMESH_WORKER_CACHE_BASE",
            "ATOM_PYTHON",
            "ATOM_ROUTER",
            "HF_TOKEN",
            "SLURM_JOB_NODELIST",
            "SLURM_NODEID",
            "SLURM_PROCID",
            "SLURM_STEP_NODELIST",
        ]
    );
}
