//! Real bash is the judge of the printed command: for any words it starts exactly these.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::common::{Preview, Started, Test};

/// Characters that a shell, a terminal or a parser of options might take for something else.
const SPECIAL: &[char] = &[
    '\'', '"', '\\', '$', '`', '!', '*', '?', '[', ']', '{', '}', '(', ')', '<', '>', '|', '&',
    ';', '#', '~', '^', '%', '=', ',', ' ', '\t', '\n', '\r', '\u{1}', '\u{7f}', '\u{1b}', '-',
    'a', 'é', '漢', '\u{202e}', '\u{feff}', '😀',
];

/// Words that were somebody's trouble.
const KNOWN: &[&str] = &[
    "",
    " ",
    "-",
    "--",
    "---",
    "-n",
    "--help",
    "--dry-run",
    "it's",
    "$HOME",
    "$(id)",
    "`id`",
    "!!",
    "*",
    "~",
    "#a",
    "a=b",
    "\n",
    "\\",
    "'\\''",
    "{\"a\": [1, \"b c\"]}",
    "$'\\n'",
    "[1,2,4]",
    "{a,b}",
    "a\nb",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => prop::sample::select(KNOWN).prop_map(str::to_owned),
        3 => prop::collection::vec(
            prop_oneof![4 => prop::sample::select(SPECIAL), 1 => any::<char>()],
            0..10,
        )
        .prop_map(|chars| chars.into_iter().filter(|c| *c != '\0').collect::<String>()),
    ]
    // What looks like a password is masked in a preview on purpose.
    .prop_filter("no URL, no secret flag", |word| {
        !word.contains("://") && !word.to_lowercase().contains("key")
    })
}

#[derive(Debug)]
struct Words {
    args: Vec<String>,
    values: Vec<String>,
    path: String,
}

fn words() -> impl Strategy<Value = Words> {
    let args = prop::collection::vec(word(), 0..60);
    let values = prop::collection::vec(word(), 0..12);
    let path = word().prop_filter("a path", |word| !word.trim().is_empty());
    (args, values, path).prop_map(|(args, values, path)| Words { args, values, path })
}

/// The program with the words after `--`, the values as `--env`, and the path as the model's.
fn test(words: &Words, format: &str) -> Test {
    let values = words.values.iter().enumerate();
    Test::new("--quiet --no-check --model M --dry-run --format")
        .args([format])
        .models("M: {}")
        .args([format!("--model-path={}", words.path)])
        .args(values.map(|(number, value)| format!("--env=V{number}={value}")))
        .args(["--"])
        .args(&words.args)
        .any_stdout()
        .any_stderr()
}

/// What bash makes of a text.
fn pasted(text: &str) -> Started {
    let test = Test::new("").server("");
    let mut bash = test.process();
    let environment: Vec<_> = bash
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.unwrap().to_owned()))
        .collect();
    bash = std::process::Command::new("bash");
    let output = bash
        .args(["-c", text])
        .env_clear()
        .envs(environment)
        .current_dir(test.path(""))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Started::read(&test.path(""))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bash_starts_exactly_the_words_that_were_given(words in words()) {
        let json = Preview::of_json(&test(&words, "json").run().stdout);
        let tail = &json.argv[json.argv.len() - words.args.len()..];
        prop_assert_eq!(tail, &words.args);
        prop_assert_eq!(&json.argv[4], &words.path);
        for (number, value) in words.values.iter().enumerate() {
            prop_assert_eq!(&json.env[&format!("V{number}")], value);
        }

        let nul: String = json.argv.iter().fold(String::new(), |mut text, word| {
            let _ = write!(text, "{word}\0");
            text
        });
        prop_assert_eq!(test(&words, "nul").run().stdout, nul);

        let started = pasted(&test(&words, "shell").run().stdout);
        prop_assert_eq!(&started.argv, &json.argv[1..]);
        for (name, value) in &json.env {
            prop_assert_eq!(&started.environ[name], value);
        }
    }
}

#[test]
fn a_program_with_a_blank_in_its_path_can_be_pasted() {
    let test = Test::new("--quiet --model M --model-path /m --dry-run")
        .models("M: {}")
        .program("my tools/python3", crate::common::stand_in());
    let python = test.path("my tools/python3");
    let run = test
        .args(["--python".as_ref(), python.as_os_str()])
        .any_stdout()
        .run();
    let text = run
        .stdout
        .replace("[DIR]", run.folder.path().to_str().unwrap());
    assert!(pasted(&text).argv.starts_with(&["-m".to_owned()]));
}

#[test]
fn the_shell_form_has_one_flag_a_line() {
    Test::new("--quiet --model M --dry-run --model-path /m")
        .models("M: {flags: [--served-model-name, \"it's mine\"]}")
        .args([
            "--env",
            "A=$HOME",
            "--env",
            "LD_LIBRARY_PATH=",
            "--env",
            "IBDEVICES=",
            "--no-check",
        ])
        .stdout(
            r"env \
  A='$HOME' \
  AITER_LOG_LEVEL=WARNING \
  ATOM_LOG_LEVEL=WARNING \
  IBDEVICES='' \
  LD_LIBRARY_PATH='' \
  LOGLEVEL=WARNING \
  LOG_LEVEL=WARNING \
  PYTHONDONTWRITEBYTECODE=1 \
  PYTHONUNBUFFERED=1 \
  SAFETENSORS_FAST_GPU=1 \
  VLLM_LOG_LEVEL=WARNING \
  python3 -m atom.entrypoints.openai_server \
  --model /m \
  --host 0.0.0.0 \
  --server-port 8000 \
  --trust-remote-code \
  -tp 8 \
  --served-model-name 'it'\''s mine' \
  --block-size 16 \
  --gpu-memory-utilization 0.85 \
  --max-num-seqs 256
",
        )
        .run();
}
