//! A secret given in any form is shown nowhere: every command, every format, every message.

use crate::common::Test;

const SECRET: &str = "SEKRET123";

/// Pairs for `--env`, each of which holds the secret.
fn pairs() -> Vec<String> {
    [
        r#"CFG={"api_key":"§"}"#,
        r#"CFG={"a":{"token":"§"}}"#,
        r#"CFG={"api_key":["§"]}"#,
        r#"CFG={"headers":{"Authorization":"Bearer §"}}"#,
        r#"CFG={\"api_key\":\"§\"}"#,
        "CFG={api_key:§}",
        "CFG={'api_key': '§'}",
        "CFG=api_key=§",
        "CFG=--api-key §",
        "CFG=Authorization: Bearer §",
        "CFG=password: §",
        "CFG=x\napi_key: §",
        "CFG=export HF_TOKEN=§",
        "HEADERS=authorization=Bearer%20§",
        "URL=http://u:§@h/x",
        "URL=http://h/?api_key=§",
        "AUTH=§",
        "DB_PASS=§",
        "HFTOKEN=§",
        "hfToken=§",
        "GITHUB_PAT=§",
        "AWS_SECRET_ACCESS_KEY=§",
    ]
    .map(|pair| pair.replace('§', SECRET))
    .to_vec()
}

#[track_caller]
fn hidden(test: &Test) {
    let process = test.process().output().unwrap();
    for stream in [&process.stdout, &process.stderr] {
        let text = String::from_utf8_lossy(stream);
        assert!(!text.contains(SECRET), "{text}");
    }
}

#[test]
fn no_command_shows_what_a_pair_holds() {
    let job = "--model M --models-file m.yaml --model-dir /m";
    for pair in pairs() {
        let (name, value) = pair.split_once('=').unwrap();
        let quoted = serde_json::to_string(value).unwrap();
        let yaml = format!("M:\n  env: {{{name}: {quoted}}}\n");
        let with = |words: &str| Test::new(&format!("{words} {job}")).file("m.yaml", "M: {}");
        for words in [
            "--dry-run",
            "--dry-run --format json",
            "plan",
            "plan --format json",
            "plan --format shell",
            "explain",
            "explain --format json",
            "node --dry-run",
            "sbatch",
        ] {
            hidden(&with(words).args(["--env", &pair]));
        }
        // As an argument, with the findings about it and without.
        hidden(&with("--dry-run").args(["--", &pair]));
        hidden(&with("--dry-run --no-check").args(["--", &pair]));
        // Where a number is wanted.
        hidden(&with("plan").args(["--tp", &pair]));
        hidden(&with("plan").env("BLOCK_SIZE", &pair));
        // In files, right and wrong ones.
        for broken in ["", "  block_size: x\n", "  flags: [\n"] {
            let file = || format!("{yaml}{broken}");
            hidden(&Test::new(&format!("--dry-run {job}")).file("m.yaml", file()));
            for format in ["text", "json", "github"] {
                hidden(
                    &Test::new(&format!("check m.yaml --format {format}")).file("m.yaml", file()),
                );
            }
        }
        let words = serde_json::to_string(&pair).unwrap();
        hidden(&Test::new("check m.yaml").file("m.yaml", format!("M:\n  env: {words}\n")));
        hidden(&with("plan --env-file job.sh").file("job.sh", format!("export {pair}\n")));
    }
}
