//! Input that cannot be used: everything wrong is named at once, with its place, and nothing is started.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;

use proptest::prelude::*;

use atom_launch::domain::diagnostic::Place;
use atom_launch::domain::models::Origin;
use atom_launch::input::models_file;

use crate::common::Test;

/// A dry run with a models file; refused with this text, nothing on stdout.
#[track_caller]
fn refused(yaml: impl AsRef<[u8]>, stderr: &str) {
    Test::new("--dry-run --model Demo-8B --model-dir /models")
        .models(yaml)
        .status(2)
        .stderr(stderr)
        .run();
}

/// The same where the file's name is not the usual one.
#[track_caller]
fn unreadable(words: &str, make: impl Fn(Test) -> Test, stderr: &str) {
    make(Test::new("--dry-run --model Demo-8B --model-dir /models").args(words.split_whitespace()))
        .status(2)
        .stderr(stderr)
        .run();
}

#[test]
fn a_file_that_cannot_be_read_is_named_for_what_it_is() {
    let same = |test| test;
    unreadable(
        "--models-file nowhere/models_atom.yaml",
        same,
        "error[unreadable-file]: cannot read the models file nowhere/models_atom.yaml: there is no such file (--models-file)\natom-launch: 1 error; nothing was started\n",
    );
    unreadable(
        "",
        |test| {
            test.file("confdir/x", "")
                .env("ATOM_MODELS_FILE", "confdir")
        },
        "error[unreadable-file]: cannot read the models file confdir: it is a directory, not a file (ATOM_MODELS_FILE)\natom-launch: 1 error; nothing was started\n",
    );
    unreadable(
        "--models-file=",
        same,
        "error[unreadable-file]: --models-file is empty\natom-launch: 1 error; nothing was started\n",
    );
    unreadable(
        "",
        |test| {
            test.file("ws/models_atom.yaml/x", "")
                .env("ATOM_WS_PATH", "ws")
        },
        "error[unreadable-file]: cannot read the models file ws/models_atom.yaml: it is a directory, not a file (ATOM_WS_PATH)\natom-launch: 1 error; nothing was started\n",
    );
    // Root reads everything; the message is then another one.
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        unreadable(
            "--models-file secret.yaml",
            |test| test.file("secret.yaml", "M: {}").mode("secret.yaml", 0o000),
            "error[unreadable-file]: cannot read the models file secret.yaml: Permission denied (os error 13) (--models-file)\natom-launch: 1 error; nothing was started\n",
        );
    }
}

#[test]
fn a_file_without_models_says_so() {
    let nothing = "error[no-models]: models_atom.yaml holds no model
  = help: write `Model-Name:` and its fields indented below
atom-launch: 1 error; nothing was started
";
    refused("", nothing);
    refused("# nothing yet\n", nothing);
    refused("---\n", nothing);
    refused("\u{feff}", nothing);
    refused(".base: &base {block_size: 1}\nx-other: {}\n", nothing);
    refused("- Demo-8B\n", "error[wrong-type]: models_atom.yaml must be a mapping from model names to entries, found a list
 --> models_atom.yaml:1:1
  |
1 | - Demo-8B
  | ^
  |
  = help: write `Model-Name:` and its fields indented below
atom-launch: 1 error; nothing was started
");
    refused("Demo-8B\n", "error[wrong-type]: models_atom.yaml must be a mapping from model names to entries, found a string
 --> models_atom.yaml:1:1
  |
1 | Demo-8B
  | ^^^^^^^
  |
  = help: write `Model-Name:` and its fields indented below
atom-launch: 1 error; nothing was started
");
}

#[test]
fn a_file_that_is_no_utf8_is_named_with_the_place() {
    refused(
        b"Demo-8B:\n  env: \"A=\xe9\"\n",
        "error[unreadable-file]: models_atom.yaml:2:11: not UTF-8 (byte 0xe9) (--models-file)\n  = help: save it as UTF-8\natom-launch: 1 error; nothing was started\n",
    );
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain("Demo-8B: {}\n".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    refused(
        utf16,
        "error[unreadable-file]: models_atom.yaml:1:1: not UTF-8 (byte 0xff) (--models-file)\n  = help: it looks like UTF-16: save it as UTF-8\natom-launch: 1 error; nothing was started\n",
    );
}

#[test]
fn a_file_without_end_is_not_read_to_its_end() {
    refused(
        vec![b'#'; 4 * 1024 * 1024 + 1],
        "error[unreadable-file]: cannot read the models file models_atom.yaml: it is larger than 4 MiB (--models-file)\natom-launch: 1 error; nothing was started\n",
    );
    unreadable(
        "--models-file /dev/zero",
        |test| test,
        "error[unreadable-file]: cannot read the models file /dev/zero: it is larger than 4 MiB (--models-file)\natom-launch: 1 error; nothing was started\n",
    );
}

#[test]
fn crlf_a_bom_and_a_missing_line_end_change_nothing() {
    let with = |yaml: &str| {
        Test::new("--model Demo-8B --model-dir /models")
            .models(yaml)
            .preview()
    };
    let plain =
        with("Demo-8B:\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\n  block_size: \"128\"\n");
    assert!(
        plain
            .argv
            .windows(2)
            .any(|pair| pair == ["--block-size", "128"])
    );
    for other in [
        "Demo-8B:\r\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\r\n  block_size: \"128\"\r\n",
        "\u{feff}Demo-8B:\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\n  block_size: \"128\"\n",
        "Demo-8B:\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\n  block_size: \"128\"",
        "# comment\n---\nDemo-8B: {kv_cache_flags: [--kv_cache_dtype, fp8], block_size: 128}\n...\n",
    ] {
        assert_eq!(with(other), plain, "{other:?}");
    }
}

#[test]
fn a_file_on_standard_input_is_one_like_any_other() {
    let preview = Test::new("--model M --model-path /m --models-file -")
        .stdin("M: {block_size: 64}")
        .preview();
    assert!(
        preview
            .argv
            .windows(2)
            .any(|pair| pair == ["--block-size", "64"])
    );
    Test::new("--dry-run --model M --models-file -")
        .stdin("M: {blok_size: 64}")
        .status(2)
        .stderr(
            "error[unknown-field]: unknown field `blok_size` in model `M`
 --> <stdin>:1:5
  |
1 | M: {blok_size: 64}
  |     ^^^^^^^^^
  |
  = help: did you mean `block_size`?
atom-launch: 1 error; nothing was started
",
        )
        .run();
}

#[test]
fn depth_and_aliases_are_bounded() {
    let deep = format!(
        "Demo-8B:\n  hf_overrides: {}1{}\n",
        "{a: ".repeat(200),
        "}".repeat(200)
    );
    refused(deep, "error[yaml-syntax]: not readable as YAML: nested deeper than 48 levels
 --> models_atom.yaml:2:201
  |
2 | ...{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a...
  |                                                                    ^
atom-launch: 1 error; nothing was started
");
    let mut bomb = String::from(".a0: &a0 {k: v}\n");
    for level in 1..=9 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            ".a{level}: &a{level} [{}]\n",
            vec![before; 10].join(", ")
        ));
    }
    bomb.push_str("Demo-8B:\n  hf_overrides: {x: *a9}\n");
    refused(
        bomb,
        "error[yaml-syntax]: not readable as YAML: too large once every alias is written out
 --> models_atom.yaml:6:26
  |
6 | .a5: &a5 [*a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4, *a4]
  |                          ^
atom-launch: 1 error; nothing was started
",
    );
}

#[test]
fn yaml_that_is_none_is_placed() {
    refused(
        "Demo-8B:\n\tblock_size: \"128\"\n",
        r#"error[yaml-syntax]: not readable as YAML: tabs disallowed within this context (block indentation)
 --> models_atom.yaml:2:2
  |
2 |     block_size: "128"
  |     ^
  |
  = help: indent with spaces; YAML allows no tabs there
atom-launch: 1 error; nothing was started
"#,
    );
    refused(
        "Demo-8B:\n  max_num_seqs: \"256\"Other-9B:\n  block_size: \"16\"\n",
        r#"error[yaml-syntax]: not readable as YAML: invalid trailing content after double-quoted scalar
 --> models_atom.yaml:2:22
  |
2 |   max_num_seqs: "256"Other-9B:
  |                      ^
  |
  = help: is a line break missing here?
atom-launch: 1 error; nothing was started
"#,
    );
    refused(
        "Demo-8B: {}\n---\nOther-9B: {}\n",
        "error[yaml-syntax]: more than one YAML document in the file
 --> models_atom.yaml:3:1
  |
3 | Other-9B: {}
  | ^
  |
  = help: a models file is one document: remove the `---` line
atom-launch: 1 error; nothing was started
",
    );
    refused(
        "Demo-8B:\n  env: \"A=1\n",
        r#"error[yaml-syntax]: not readable as YAML: unclosed quote
 --> models_atom.yaml:2:8
  |
2 |   env: "A=1
  |        ^
atom-launch: 1 error; nothing was started
"#,
    );
    refused(
        "Demo-8B:\n  <<: *nowhere\n",
        "error[yaml-syntax]: not readable as YAML: alias references unknown anchor
 --> models_atom.yaml:2:7
  |
2 |   <<: *nowhere
  |       ^
  |
  = help: no `&name` above goes by this name; a value that only starts with `*` needs quotes
atom-launch: 1 error; nothing was started
",
    );
}

#[test]
fn yaml_that_trips_the_reader_elsewhere_says_where_to_look() {
    let above = "the line above lacks its `:` or is indented less, or a value with `: ` in it lacks its quotes";
    for (yaml, help) in [
        ("Demo-8B:\n  env \"A=1\"\n  block_size: 16\n", above),
        ("Demo-8B:\n  flags: --a: 1\n", above),
        ("Demo-8B:\n  env: A=1\n   block_size: 16\n", above),
        (
            "Demo-8B:\n   env: \"A=1\"\n  block_size: 16\n",
            "all fields of a model start in the same column",
        ),
        (
            "Demo-8B:\n  flags: @all\n",
            "a value that starts with this character needs quotes",
        ),
        (
            "Demo-8B:\n  block_size:16\n",
            "write the model's fields indented below its name, each as `field: value`; \
             a name that starts with `.` or `x-` is a template",
        ),
    ] {
        let run = Test::new("check models_atom.yaml")
            .file("models_atom.yaml", yaml)
            .status(1)
            .any_stdout()
            .run();
        let said: Vec<&str> = run
            .stdout
            .lines()
            .filter_map(|line| line.split_once("= help: ").map(|(_, help)| help))
            .collect();
        assert_eq!(said, [help], "{}", run.stdout);
    }
}

#[test]
fn every_mistake_of_a_file_is_reported_at_once() {
    refused(
        r#"Demo-8B:
  prefil_tp_dp_flags: "--enable-dp-attention"
  hf_overrides: '{\"num_hidden_layers\":4}'
  online_quant_config: "3"
  kv_cache_flags: "--kv_cache_dtype fp8 # default for all"
  env: "DEMO_A=1 DEMO_FORCE"
  decode_env: "NOTE=it's; touch pwned #"
  prefill_env: {1A: x, B: [1], C: ~}
  block_size: yes
  max_num_seqs: [256]
  tp_dp_flags: {enable-dp-attention: true}
  mem_frac_static: 85
  max_model_len: -1
  max_num_batched_tokens: 1e3
  scheduler_delay_factor: 0x10
  cudagraph_capture_sizes: [1, two, 08]
  hf_dir: [a]
Other-9B:
  block_size: 0100
  block_size: 64
  hf_overrides: "{architectures:[DemoForCausalLM]}"
  online_quant_dpa_config: {a: 1, a: 2, b: .inf}
Demo-8B: {}
block_size: 16
"#,
        r#"error[unknown-field]: unknown field `prefil_tp_dp_flags` in model `Demo-8B`
 --> models_atom.yaml:2:3
  |
2 |   prefil_tp_dp_flags: "--enable-dp-attention"
  |   ^^^^^^^^^^^^^^^^^^
  |
  = help: did you mean `prefill_tp_dp_flags`?
error[bad-json]: `hf_overrides` is not valid JSON: key must be a string
 --> models_atom.yaml:3:19
  |
3 |   hf_overrides: '{\"num_hidden_layers\":4}'
  |                   ^
  |
  = help: the quotes are escaped twice: write plain double quotes, `'{"key": 1}'` inside YAML's single quotes
error[bad-json]: `online_quant_config` must be a JSON object, found a number
 --> models_atom.yaml:4:25
  |
4 |   online_quant_config: "3"
  |                         ^
  |
  = help: write `{"key": value}`
error[bad-words]: `kv_cache_flags` has a `#` that would start a comment, so all after it would be lost
 --> models_atom.yaml:5:41
  |
5 |   kv_cache_flags: "--kv_cache_dtype fp8 # default for all"
  |                                         ^
  |
  = help: quote the word (`'#…'`) or put the comment on a YAML line of its own
error[bad-pair]: `DEMO_FORCE` in `env` is no `NAME=VALUE`
 --> models_atom.yaml:6:18
  |
6 |   env: "DEMO_A=1 DEMO_FORCE"
  |                  ^^^^^^^^^^ no `=`
  |
  = help: write `NAME=VALUE`; a value with blanks needs quotes
error[bad-words]: `decode_env` has a quote that is never closed: '
 --> models_atom.yaml:7:23
  |
7 |   decode_env: "NOTE=it's; touch pwned #"
  |                       ^
  |
  = help: words are split as a POSIX shell would: close the quote, or escape it with a backslash
error[bad-pair]: `1A` in `prefill_env` is no name of a variable
 --> models_atom.yaml:8:17
  |
8 |   prefill_env: {1A: x, B: [1], C: ~}
  |                 ^^
  |
  = help: letters, digits and `_`, and no digit first
error[wrong-type]: `B` in `prefill_env` must have a string as its value, found a list
 --> models_atom.yaml:8:24
  |
8 |   prefill_env: {1A: x, B: [1], C: ~}
  |                        ^
error[wrong-type]: `C` in `prefill_env` must have a string as its value, found nothing
 --> models_atom.yaml:8:32
  |
8 |   prefill_env: {1A: x, B: [1], C: ~}
  |                                ^
  |
  = help: write `""` for an empty value
error[bad-number]: `block_size` must be a whole decimal number, found `yes`
 --> models_atom.yaml:9:15
  |
9 |   block_size: yes
  |               ^^^
error[wrong-type]: `max_num_seqs` must be a number, found a list
  --> models_atom.yaml:10:17
   |
10 |   max_num_seqs: [256]
   |                 ^^^^^
error[wrong-type]: `tp_dp_flags` must be a string of words or a list of them, found a mapping
  --> models_atom.yaml:11:16
   |
11 |   tp_dp_flags: {enable-dp-attention: true}
   |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^
error[bad-number]: `mem_frac_static` must be a fraction above 0 and at most 1 (0.85 for 85 percent), found `85`
  --> models_atom.yaml:12:20
   |
12 |   mem_frac_static: 85
   |                    ^^
error[bad-number]: `max_model_len` must be a whole decimal number, found `-1`
  --> models_atom.yaml:13:18
   |
13 |   max_model_len: -1
   |                  ^^
error[bad-number]: `max_num_batched_tokens` must be a whole decimal number, found `1e3`
  --> models_atom.yaml:14:27
   |
14 |   max_num_batched_tokens: 1e3
   |                           ^^^
error[bad-number]: `scheduler_delay_factor` must be a decimal number, found `0x10`
  --> models_atom.yaml:15:27
   |
15 |   scheduler_delay_factor: 0x10
   |                           ^^^^
error[bad-number]: `cudagraph_capture_sizes` must be a whole decimal number, found `two`
  --> models_atom.yaml:16:32
   |
16 |   cudagraph_capture_sizes: [1, two, 08]
   |                                ^^^
error[bad-number]: `cudagraph_capture_sizes` must not start with 0 (some readers take that for an octal number), found `08`
  --> models_atom.yaml:16:37
   |
16 |   cudagraph_capture_sizes: [1, two, 08]
   |                                     ^^
error[wrong-type]: `hf_dir` must be a string, found a list
  --> models_atom.yaml:17:11
   |
17 |   hf_dir: [a]
   |           ^^^
error[bad-number]: `block_size` must not start with 0 (some readers take that for an octal number), found `0100`
  --> models_atom.yaml:19:15
   |
19 |   block_size: 0100
   |               ^^^^
error[duplicate-key]: field `block_size` is there twice; it stands first at models_atom.yaml:19:3
  --> models_atom.yaml:20:3
   |
19 |   block_size: 0100
   |   ---------- first time
20 |   block_size: 64
   |   ^^^^^^^^^^ second time
   |
   = help: keep one of them: other YAML readers silently take the last
error[bad-json]: `hf_overrides` is not valid JSON: key must be a string
  --> models_atom.yaml:21:19
   |
21 |   hf_overrides: "{architectures:[DemoForCausalLM]}"
   |                   ^
   |
   = help: JSON wants double quotes around every key and every text: `{"key": "value"}`; or write a YAML mapping
error[duplicate-key]: key `a` is there twice; it stands first at models_atom.yaml:22:29
  --> models_atom.yaml:22:35
   |
22 |   online_quant_dpa_config: {a: 1, a: 2, b: .inf}
   |                             -     ^ second time
   |                             |
   |                             first time
   |
   = help: keep one of them: other YAML readers silently take the last
error[bad-json]: `online_quant_dpa_config` holds `.inf`, which is no JSON number
  --> models_atom.yaml:22:44
   |
22 |   online_quant_dpa_config: {a: 1, a: 2, b: .inf}
   |                                            ^^^^
   |
   = help: write a decimal number, or quote it to make it a string
error[duplicate-model]: model `Demo-8B` is there twice; it stands first at models_atom.yaml:1:1
  --> models_atom.yaml:23:1
   |
 1 | Demo-8B:
   | ------- first time
...
23 | Demo-8B: {}
   | ^^^^^^^ second time
   |
   = help: keep one of them: other YAML readers silently take the last
error[wrong-type]: entry `block_size` must be a mapping of fields, found a number
  --> models_atom.yaml:24:1
   |
24 | block_size: 16
   | ^^^^^^^^^^
   |
   = help: `block_size` is a field: indent it below its model
atom-launch: 26 errors; nothing was started
"#,
    );
}

#[test]
fn a_model_that_is_there_twice_is_shown_at_both_places() {
    refused("Demo-8B:\n  block_size: \"64\"\nOther-9B:\n  block_size: \"16\"\nDemo-8B:\n  block_size: \"128\"\n", "error[duplicate-model]: model `Demo-8B` is there twice; it stands first at models_atom.yaml:1:1
 --> models_atom.yaml:5:1
  |
1 | Demo-8B:
  | ------- first time
...
5 | Demo-8B:
  | ^^^^^^^ second time
  |
  = help: keep one of them: other YAML readers silently take the last
atom-launch: 1 error; nothing was started
");
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    refused(
        "Demo-8B:\n  \"bad\\e[31m\\u202e\": 1\n  flags: \"--a \\x1b[2J'\"\n",
        r#"error[unknown-field]: unknown field `bad\u{1b}[31m\u{202e}` in model `Demo-8B`
 --> models_atom.yaml:2:3
  |
2 |   "bad\e[31m\u202e": 1
  |   ^^^^^^^^^^^^^^^^^
  |
  = help: the fields are listed at the head of models_atom.yaml
error[bad-words]: `flags` has a quote that is never closed: '
 --> models_atom.yaml:3:10
  |
3 |   flags: "--a \x1b[2J'"
  |          ^^^^^^^^^^^^^^
  |
  = help: words are split as a POSIX shell would: close the quote, or escape it with a backslash
atom-launch: 2 errors; nothing was started
"#,
    );
}

#[test]
fn what_is_shown_of_a_command_stays_in_its_lines_and_off_the_terminal() {
    let yaml =
        "M:\n  hf_dir: \"d\\e[2J\\n+ x\"\n  env: {X: \"a\\n- forged\\u202e\", Y: \"'\\t\"}\n";
    let run = Test::new("--model M --model-dir /m --dry-run")
        .models(yaml)
        .any_stdout()
        .any_stderr()
        .run();
    assert!(
        run.stdout
            .contains("  X=$'a\\n- forged\\xe2\\x80\\xae' \\\n  Y=$'\\'\\t' \\\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stderr
            .contains("  model        M at /m/d\\u{1b}[2J\\n+ x\n"),
        "{}",
        run.stderr
    );
    Test::new("diff old.yaml new.yaml")
        .file("old.yaml", "M: {}")
        .file("new.yaml", "M:\n  env: {X: \"a\\n    + forged\"}\n")
        .stdout("M\n  mode tp · MTP 0:\n    + env X=$'a\\n    + forged'\n\n1 of 1 model with changed commands\n")
        .run();
    for name in ["a\\u202eb", " a", "a ", "\\0", "a\\u2028b"] {
        refused(
            format!("\"{name}\": {{}}\nM: {{}}\n"),
            &format!(
                "error[wrong-type]: a model's name must not be empty, begin or end with a blank, or hold characters that are not seen\n --> models_atom.yaml:1:1\n  |\n1 | \"{name}\": {{}}\n  | {}\natom-launch: 1 error; nothing was started\n",
                "^".repeat(name.len() + 2)
            ),
        );
    }
}

#[test]
fn a_key_twice_in_a_template_is_found_where_it_stands() {
    refused(
        ".base: &base\n  block_size: 16\n  block_size: 32\n  env: {A: 1, A: 2}\nM:\n  <<: *base\n",
        r"error[duplicate-key]: key `block_size` is there twice; it stands first at models_atom.yaml:2:3
 --> models_atom.yaml:3:3
  |
2 |   block_size: 16
  |   ---------- first time
3 |   block_size: 32
  |   ^^^^^^^^^^ second time
  |
  = help: keep one of them: other YAML readers silently take the last
error[duplicate-key]: key `A` is there twice; it stands first at models_atom.yaml:4:9
 --> models_atom.yaml:4:15
  |
4 |   env: {A: 1, A: 2}
  |         -     ^ second time
  |         |
  |         first time
  |
  = help: keep one of them: other YAML readers silently take the last
atom-launch: 2 errors; nothing was started
",
    );
}

#[test]
fn a_key_that_is_no_name_is_told_in_the_words_of_yaml() {
    for (key, found) in [
        ("null", "null"),
        ("~", "null"),
        ("[a]", "a list or a mapping"),
    ] {
        let run = Test::new("--dry-run --model M")
            .models(format!("M:\n  {key}: 1\n"))
            .status(2)
            .any_stderr()
            .run();
        let headline = format!(
            "error[yaml-syntax]: not readable as YAML: a key must be a name, found {found}\n"
        );
        assert!(run.stderr.starts_with(&headline), "{}", run.stderr);
    }
}

#[test]
fn json_is_told_all_that_is_wrong_and_only_what_helps() {
    refused(
        "M:\n  hf_overrides: {a: 0x10, b: [.5, 1_0], c: 1}\n",
        r"error[bad-json]: `hf_overrides` holds `0x10`, which is no JSON number
 --> models_atom.yaml:2:21
  |
2 |   hf_overrides: {a: 0x10, b: [.5, 1_0], c: 1}
  |                     ^^^^
  |
  = help: write a decimal number, or quote it to make it a string
error[bad-json]: `hf_overrides` holds `.5`, which is no JSON number
 --> models_atom.yaml:2:31
  |
2 |   hf_overrides: {a: 0x10, b: [.5, 1_0], c: 1}
  |                               ^^
  |
  = help: write a decimal number, or quote it to make it a string
error[bad-json]: `hf_overrides` holds `1_0`, which is no JSON number
 --> models_atom.yaml:2:35
  |
2 |   hf_overrides: {a: 0x10, b: [.5, 1_0], c: 1}
  |                                   ^^^
  |
  = help: write a decimal number, or quote it to make it a string
atom-launch: 3 errors; nothing was started
",
    );
    refused(
        "M:\n  hf_overrides: '{\"a\": 1e999}'\nN:\n  hf_overrides: '{\"a\": 1, \"a\": 2, \"b\": \"a\"}'\n",
        r#"error[bad-json]: `hf_overrides` is not valid JSON: number out of range
 --> models_atom.yaml:2:28
  |
2 |   hf_overrides: '{"a": 1e999}'
  |                            ^
error[bad-json]: `hf_overrides` has the JSON key "a" twice; the server would keep the last one
 --> models_atom.yaml:4:27
  |
4 |   hf_overrides: '{"a": 1, "a": 2, "b": "a"}'
  |                           ^
  |
  = help: keep one of them
atom-launch: 2 errors; nothing was started
"#,
    );
    Test::new("--dry-run --model M --model-dir /m --role prefill --prefill-kv-transfer-config x")
        .models("M: {}")
        .status(2)
        .stderr("error[invalid-setting]: `--prefill-kv-transfer-config` is not valid JSON: expected value (JSON wants double quotes around every key and every text: `{\"key\": \"value\"}`), found `x`\natom-launch: 1 error; nothing was started\n")
        .run();
}

#[test]
fn every_mistake_of_the_environment_is_reported_at_once() {
    Test::new("--dry-run")
        .envs([
            ("MODEL_NAME", "DeepSeek-V4-Pro"),
            ("MODEL_DIR", "/models"),
            ("xP", "two"),
            ("yD", "0"),
            ("NODE_RANK", "-1"),
            ("GPUS_PER_NODE", "8 "),
            ("PREFILL_TP_SIZE", "8x"),
            ("DECODE_TP_SIZE", "08"),
            ("PREFILL_ENABLE_DP", "maybe"),
            ("DECODE_MTP_SIZE", "abc"),
            ("BENCH_MAX_CONCURRENCY", "8X16"),
            ("PREFILL_PORT", "0"),
            ("DECODE_PORT", "80a"),
            ("ROUTER_PORT", "70000"),
            ("HANDSHAKE_PORT", "1e3"),
            ("BLOCK_SIZE", "0x10"),
            ("MEM_FRAC_STATIC", "85"),
            ("MAX_MODEL_LEN", "32k"),
            ("SCHEDULER_DELAY_FACTOR", "-0.5"),
            ("EXTRA_SERVER_ARGS", "--tag 'a"),
            ("DECODE_EXTRA_SERVER_ARGS", "--tag a # b"),
            ("PREFILL_KV_TRANSFER_CONFIG", "{'a': 1}"),
            ("IPADDRS", "10.0.0.1,,10.0.0.300"),
            ("WAIT_SERVER_TIMEOUT", "10m"),
            ("IS_AGENTIC", "ja"),
        ])
        .status(2)
        .stderr(r#"error[invalid-setting]: variable xP must be a whole decimal number, found `two`
error[invalid-setting]: variable yD must be from 1 to 4096, found `0`
error[invalid-setting]: variable IPADDRS has an empty entry, found `10.0.0.1,,10.0.0.300`
  = help: give one address a rank, joined by commas: `--nodes 10.0.0.1,10.0.0.2` or IPADDRS; a SLURM list such as `n[01-04]` is expanded
error[invalid-setting]: variable DECODE_MTP_SIZE must be a whole decimal number, found `abc`
error[invalid-setting]: variable IS_AGENTIC must be true/false, 1/0, yes/no or on/off, found `ja`
error[invalid-setting]: variable NODE_RANK must be a whole decimal number, found `-1`
error[invalid-setting]: variable PREFILL_ENABLE_DP must be true/false, 1/0, yes/no or on/off, found `maybe`
error[invalid-setting]: variable PREFILL_TP_SIZE must be a whole decimal number, found `8x`
error[invalid-setting]: variable DECODE_TP_SIZE must not start with 0 (some readers take that for an octal number), found `08`
error[invalid-setting]: variable GPUS_PER_NODE must be a whole decimal number, found `8 `
error[invalid-setting]: variable BENCH_MAX_CONCURRENCY must be whole numbers from 1, joined by `x` or commas: `8x16x32`, found `8X16`
error[invalid-setting]: variable PREFILL_PORT must be a port from 1 to 65535, found `0`
error[invalid-setting]: variable DECODE_PORT must be a whole decimal number, found `80a`
error[invalid-setting]: variable ROUTER_PORT must be a port from 1 to 65535, found `70000`
error[invalid-setting]: variable HANDSHAKE_PORT must be a whole decimal number, found `1e3`
error[invalid-setting]: variable BLOCK_SIZE must be a whole decimal number, found `0x10`
error[invalid-setting]: variable MEM_FRAC_STATIC must be a fraction above 0 and at most 1 (0.85 for 85 percent), found `85`
error[invalid-setting]: variable MAX_MODEL_LEN must be a whole decimal number, found `32k`
error[invalid-setting]: variable SCHEDULER_DELAY_FACTOR must not be negative, found `-0.5`
error[invalid-setting]: variable EXTRA_SERVER_ARGS has a quote that is never closed: ' (words are split as a POSIX shell would: close the quote, or escape it with a backslash), found `--tag 'a`
error[invalid-setting]: variable DECODE_EXTRA_SERVER_ARGS has a `#` that would start a comment, so all after it would be lost (quote the word (`'#…'`) or put the comment on a YAML line of its own), found `--tag a # b`
error[invalid-setting]: variable PREFILL_KV_TRANSFER_CONFIG is not valid JSON: key must be a string (JSON wants double quotes: `{"key": "value"}`, not single ones), found `{'a': 1}`
error[invalid-setting]: variable WAIT_SERVER_TIMEOUT must be a whole decimal number, found `10m`
atom-launch: 23 errors; nothing was started
"#)
        .run();
}

#[test]
fn a_secret_in_a_bad_value_is_not_shown() {
    let run = Test::new(
        "--dry-run --model Demo-8B --env HF_TOKEN=abc --env HF_TOKEN=hf_SECRET --env hf_SECRET",
    )
    .env("EXTRA_SERVER_ARGS", "--api-key sk-SECRET 'open")
    .models("Demo-8B:\n  env: \"HF_TOKEN=hf_SECRET bad\"\n  flags: \"--api-key sk-SECRET 'open\"\n")
    .status(2)
    .any_stderr()
    .run();
    // `--env hf_SECRET` has no name that could say what it is; only the value of a known name is hidden.
    for secret in ["hf_SECRET\"", "sk-SECRET", "=hf_SECRET"] {
        assert!(!run.stderr.contains(secret), "{}", run.stderr);
    }
}

#[test]
fn no_output_shows_a_secret() {
    let long = "SECRET".repeat(80);
    let files = [
        // Cut in the middle of the value, over several lines, in brackets, in quotes inside quotes.
        format!("M:\n  flags: \"--api-key {long} --bogus\"\n"),
        format!("M:\n  env: {{HF_TOKEN: {long}, B: [1]}}\n"),
        "M:\n  env: {HF_TOKEN:\n     SECRET, B: [1]}\n".to_owned(),
        "M:\n  env: {HF_TOKEN: [\"SECRET\"], A_KEY: 'SECRET SECRET', B: [1]}\n".to_owned(),
        "M:\n  hf_overrides: \"{\\\"api_key\\\": \\\"SECRET SECRET\\\",}\"\n".to_owned(),
        "M:\n  env: \"A_KEY='SECRET SECRET' bad\"\n".to_owned(),
    ];
    for yaml in files {
        for words in [
            "--dry-run --model M --models-file m.yaml",
            "check m.yaml --format text",
            "check m.yaml --format json",
            "check m.yaml --format github",
        ] {
            let test = Test::new(words)
                .file("m.yaml", &yaml)
                .any_stdout()
                .any_stderr();
            let status = if words.starts_with("check") { 1 } else { 2 };
            let run = test.status(status).run();
            let shown = run.stdout + &run.stderr;
            assert!(!shown.contains("SECRET"), "{words}: {shown}");
        }
    }
    let url = "http://me:SECRET@h/x";
    let json =
        "--hf-overrides '{\"api_key\": \"SECRET\"}' --hf-overrides={\\\"secret\\\":\\\"SECRET\\\"}";
    for words in [
        "--dry-run",
        "--dry-run --format json",
        "--dry-run --format nul",
        "plan",
        "plan --format json",
        "explain",
        "explain --format json",
    ] {
        let run = Test::new(words)
            .args([
                "--model",
                "M",
                "--model-path",
                url,
                "--no-check",
                "--env",
                "X={\"password\": \"SECRET\"}",
            ])
            .models("M:\n  online_quant_config: {hf_token: SECRET, eos_token: open}\n")
            .env("EXTRA_SERVER_ARGS", json)
            .any_stdout()
            .any_stderr()
            .run();
        let shown = run.stdout + &run.stderr;
        assert!(
            !shown.contains("SECRET") && shown.contains("open"),
            "{words}: {shown}"
        );
    }
    for words in [
        vec!["--dry-run", "--model", url],
        vec!["--dry-run", "--model", "M", "--models-file", url],
        vec!["check", url],
        vec!["wait", url],
    ] {
        let run = Test::new("").args(words).status(2).any_stderr().run();
        assert!(
            !run.stderr.contains("SECRET") && run.stderr.contains("me:***@h"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn what_is_no_url_is_wrong_usage_and_not_an_endpoint_that_never_came() {
    Test::new("wait x")
        .args(["http://h/\u{1b}[2J"])
        .status(2)
        .stderr("error: `x` does not start with http://\nerror: `http://h/\\u{1b}[2J` has blanks or control characters\n")
        .run();
}

#[test]
fn a_job_that_can_never_fit_is_refused_at_once() {
    let began = std::time::Instant::now();
    Test::new("plan --model M --model-dir /m --nodes a --layout packed --prefill-workers 4096 --decode-workers 4096 --tp 1")
        .models("M: {}")
        .status(2)
        .stderr("error[too-few-gpus]: worker prefill-0-8 needs GPU 8 of its node, but --gpus-per-node gives 8\n  = help: use smaller tensor-parallel sizes, fewer workers, or `--layout spread`\natom-launch: 1 error; there is no plan\n")
        .run();
    // It took minutes; on a busy machine and without optimization it takes seconds.
    assert!(began.elapsed().as_secs() < 60);
}

#[test]
fn variables_that_are_no_utf8_are_named() {
    let bytes = std::ffi::OsString::from_vec(vec![b'8', 0xff]);
    Test::new("--dry-run --model Demo-8B --model-dir /models")
        .models("Demo-8B: {}")
        .env("BLOCK_SIZE", bytes)
        .status(2)
        .stderr("error[invalid-setting]: variable BLOCK_SIZE is not UTF-8\natom-launch: 1 error; nothing was started\n")
        .run();
}

#[test]
fn wrong_usage_is_2_with_the_nearest_option() {
    Test::new("--modl x")
        .status(2)
        .stderr(
            "error: `atom-launch` has no option `--modl`
  = help: did you mean `--model`?
  = help: `atom-launch --help` lists all
",
        )
        .run();
    Test::new("--format json --model x")
        .status(2)
        .stderr(
            "error: the following required arguments were not provided:
  --dry-run

Usage: atom-launch --dry-run --format <FORMAT> --model <NAME> [-- <SERVER ARGS>...]

For more information, try '--help'.
",
        )
        .run();
    Test::new("--mode fast --model x")
        .status(2)
        .stderr(
            "error: invalid value 'fast' for '--mode <MODE>'
  [possible values: tp, tp-dp, ep-dp]

For more information, try '--help'.
",
        )
        .run();
}

/// Pieces that a models file is made of, in no good order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(
        &[
            "M",
            ":",
            ": ",
            "\n",
            "\n  ",
            "\r\n",
            "\t",
            "  ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "\"",
            "'",
            "|",
            ">",
            "|2-",
            "&a ",
            "*a",
            "<<",
            "<<: *a",
            "#",
            " #",
            "---\n",
            "...",
            "!!str ",
            "? ",
            "%YAML 1.2\n",
            "\\",
            "\\x1b",
            "\\u00e9",
            "\u{feff}",
            "env",
            "flags: ",
            "block_size: ",
            "hf_overrides: ",
            "cudagraph_capture_sizes: ",
            "A=1",
            "--kv_cache_dtype fp8",
            "{\"a\":1}",
            "0x10",
            "1e3",
            ".inf",
            "~",
            "null",
            "true",
            "é",
            "漢字",
            "😀",
            "\0",
            "\u{85}",
            "\u{2028}",
        ][..],
    );
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn check_loading(text: &str) -> Result<(), TestCaseError> {
    let length = text.len();
    let loaded = models_file::load("t", text.to_owned(), Origin::BuiltIn);
    for finding in &loaded.diagnostics.0 {
        let spans = finding
            .more
            .iter()
            .map(|more| more.span)
            .chain(match finding.place {
                Place::File(span) => Some(span),
                Place::Input(_) | Place::Whole => None,
            });
        for span in spans {
            let range = span.range();
            prop_assert!(
                range.start <= range.end && range.end <= length,
                "{finding:?} in {text:?}"
            );
            prop_assert!(
                text.is_char_boundary(range.start) && text.is_char_boundary(range.end),
                "{finding:?} in {text:?}"
            );
        }
    }
    let shown = atom_launch::render::diagnostic::list(
        &loaded.diagnostics,
        Some(&loaded.models.file),
        false,
        "x",
    );
    prop_assert!(loaded.diagnostics.0.is_empty() == shown.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_reported_inside_itself(text in pieces()) {
        check_loading(&text)?;
    }

    #[test]
    fn any_characters_load_or_are_reported_inside_themselves(text in "\\PC{0,80}", more in "(?s).{0,40}") {
        check_loading(&text)?;
        check_loading(&format!("M:\n  flags: {more}\n  env: {text}\n"))?;
    }

    #[test]
    fn any_bytes_of_a_file_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let text = models_file::read_text(file.path().to_str().unwrap(), "models file");
        prop_assert_eq!(text.is_ok(), std::str::from_utf8(&bytes).is_ok());
    }
}

#[test]
fn what_other_readers_swallow_is_named() {
    let tag = |tag: &str, line: &str, at: usize| {
        format!(
            "error[yaml-syntax]: tag `{tag}`: a models file has no tags\n --> models_atom.yaml:2:{}\n  |\n2 | {line}\n  | {}{}\n  |\n  = help: take it out; quotes make a value a string\natom-launch: 1 error; nothing was started\n",
            at + 1,
            " ".repeat(at),
            "^".repeat(tag.len())
        )
    };
    for (word, line, at) in [
        ("!foo", "  block_size: !foo 16", 14),
        ("!!int", "  block_size: !!int 16", 14),
        (
            "!!python/object:os.system",
            "  hf_overrides: !!python/object:os.system {}",
            16,
        ),
        ("!", "  hf_dir: ! x", 10),
    ] {
        refused(format!("Demo-8B:\n{line}\n"), &tag(word, line, at));
    }
    refused("Demo-8B:\n  <<: {block_size: 16, block_size: 32}\n", "error[duplicate-key]: key `block_size` is there twice; it stands first at models_atom.yaml:2:8
 --> models_atom.yaml:2:24
  |
2 |   <<: {block_size: 16, block_size: 32}
  |        ----------      ^^^^^^^^^^ second time
  |        |
  |        first time
  |
  = help: keep one of them: other YAML readers silently take the last
atom-launch: 1 error; nothing was started
");
    refused(
        "x-a: &a {block_size: 16}\nDemo-8B:\n  <<: *a\n  <<: *a\n",
        "error[duplicate-key]: key `<<` is there twice; it stands first at models_atom.yaml:3:3
 --> models_atom.yaml:4:3
  |
3 |   <<: *a
  |   -- first time
4 |   <<: *a
  |   ^^ second time
  |
  = help: merge several with one key: `<<: [*one, *other]`
atom-launch: 1 error; nothing was started
",
    );
    for (yaml, message) in [
        (
            "Demo-8B: &a\n  hf_overrides: {x: *a}\n",
            "an alias stands inside what it names",
        ),
        (
            "Demo-8B:\n  <<: 5\n",
            "`<<` takes a mapping, or a list of mappings",
        ),
        (
            &format!(
                "Demo-8B:\n  hf_overrides: {{a: {}{}}}\n",
                "[".repeat(500),
                "]".repeat(500)
            ),
            "nested deeper than 48 levels",
        ),
    ] {
        let run = Test::new("check models_atom.yaml")
            .file("models_atom.yaml", yaml)
            .status(1)
            .any_stdout()
            .run();
        let first = run.stdout.lines().next().unwrap();
        assert_eq!(
            first,
            format!("error[yaml-syntax]: not readable as YAML: {message}")
        );
    }
}
