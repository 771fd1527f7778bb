//! Options and variables at their edges: blanks, numbers in odd spellings, what follows from an input that could not be read.

use std::os::unix::ffi::OsStringExt as _;

use crate::common::{Test, headlines};

fn plan(more: &[&str]) -> Test {
    Test::new("plan --model M --models-file m.yaml --quiet")
        .args(more)
        .file("m.yaml", "M: {kv_cache_flags: --kv_cache_dtype fp8}")
        .any_stdout()
        .any_stderr()
}

#[test]
fn words_may_be_none_wherever_they_are_given() {
    let argv = |option: Option<(&str, &str)>, variable: Option<(&str, &str)>| {
        let mut test = Test::new("--model M --models-file m.yaml --model-dir /m")
            .file("m.yaml", "M: {kv_cache_flags: --kv_cache_dtype fp8}");
        if let Some((option, value)) = option {
            test = test.args([option, value]);
        }
        if let Some((name, value)) = variable {
            test = test.env(name, value);
        }
        test.preview().argv
    };
    let plain = argv(None, None);
    for nothing in ["", " ", "\t\n"] {
        for option in ["--server-args", "--router-args", "--prefill-server-args"] {
            assert_eq!(argv(Some((option, nothing)), None), plain, "{option}");
        }
        assert_eq!(argv(None, Some(("EXTRA_SERVER_ARGS", nothing))), plain);
        let without = argv(Some(("--kv-cache-flags", nothing)), None);
        assert_eq!(without.len() + 2, plain.len());
        assert!(!without.contains(&"--kv_cache_dtype".to_owned()));
    }
}

#[test]
fn a_name_of_blanks_is_none() {
    for option in ["--model-dir", "--model-path", "--python", "--router-policy"] {
        for blank in ["", "  "] {
            let run = plan(&["--model-dir", "/m"][usize::from(option == "--model-dir") * 2..])
                .args([option, blank])
                .status(2)
                .run();
            let found = if blank.is_empty() { "" } else { ", found `  `" };
            assert_eq!(
                headlines(&run.stderr),
                [format!(
                    "error[invalid-setting]: `{option}` is empty{found}"
                )]
            );
        }
    }
}

#[test]
fn numbers_in_odd_spellings_are_refused_by_name_and_value() {
    let odd = [
        "-5",
        "1e9",
        "99999999999999999999",
        "+5",
        "5 ",
        "\u{665}",
        "1_000",
        "0x10",
        "5m",
        "inf",
        "nan",
        "05",
    ];
    let whole = [&odd[..], &["", "5.0"]].concat();
    let times = [&odd[..], &["00.5", "."]].concat();
    let options = [
        ("plan", "--tp", &whole[..]),
        ("plan", "--router-port", &whole),
        ("plan", "--max-num-seqs", &whole),
        ("plan", "--wait-server-timeout", &whole),
        ("node", "--grace", &times),
        ("node", "--workload-timeout", &times),
        ("node", "--poll-interval", &times),
    ];
    for (command, option, values) in options {
        for value in values {
            let run = Test::new(command)
                .args([
                    "--model",
                    "M",
                    "--models-file",
                    "m.yaml",
                    "--model-dir",
                    "/m",
                    option,
                    value,
                ])
                .file("m.yaml", "M: {}")
                .status(2)
                .any_stderr()
                .run();
            let lines = headlines(&run.stderr);
            assert_eq!(lines.len(), 1, "{}", run.stderr);
            let start = format!("error[invalid-setting]: `{option}` ");
            let end = format!(", found `{value}`");
            assert!(lines[0].starts_with(&start), "{}", lines[0]);
            assert!(value.is_empty() || lines[0].ends_with(&end), "{}", lines[0]);
        }
    }
    for value in times {
        Test::new("wait http://127.0.0.1:1")
            .args(["--timeout", value])
            .status(2)
            .any_stderr()
            .run();
        // A blank ends a word of a fault.
        if value.contains(' ') {
            continue;
        }
        let run = Test::new("rehearse --model M --models-file m.yaml")
            .file("m.yaml", "M: {}")
            .args(["--fault", &format!("rank=0 kind=crash:{value} at=1s")])
            .status(2)
            .any_stderr()
            .run();
        assert!(
            run.stderr.contains(&format!("`{value}` is no exit code")),
            "{}",
            run.stderr
        );
    }
    let run = plan(&["--model-dir", "/m", "--scheduler-delay-factor", "+0.5"])
        .status(2)
        .run();
    assert_eq!(
        headlines(&run.stderr),
        [
            "error[invalid-setting]: `--scheduler-delay-factor` must be a decimal number, found `+0.5`"
        ]
    );
}

/// One cause, one message: that nothing is given is not said where something unusable is.
#[test]
fn nothing_is_said_to_be_missing_that_could_not_be_read() {
    let not_utf8 = || std::ffi::OsString::from_vec(vec![b'/', 0xff]);
    for name in [
        "MODEL_DIR",
        "MODEL_PATH",
        "IPADDRS",
        "NODE0_ADDR",
        "NODE_RANK",
        "xP",
        "SPEC_DECODING",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "DRY_RUN",
        "KV_CACHE_DTYPE",
        "ROUTER_POLICY",
    ] {
        let folder = if name.starts_with("MODEL_") {
            "HOME"
        } else {
            "MODEL_DIR"
        };
        let nodes = if name == "IPADDRS" { "HOME" } else { "IPADDRS" };
        let run = plan(&["--decode-workers", "1", "--prefill-workers", "1"])
            .env(folder, "/m")
            .env(nodes, "10.0.0.1,10.0.0.2")
            .env(name, not_utf8())
            .status(2)
            .run();
        assert_eq!(
            headlines(&run.stderr),
            [format!(
                "error[invalid-setting]: variable {name} is not UTF-8"
            )]
        );
    }
    for name in ["ATOM_MODELS_FILE", "ATOM_WS_PATH"] {
        let run = Test::new("plan --model DeepSeek-V4-Pro --model-dir /m")
            .env(name, not_utf8())
            .status(2)
            .any_stderr()
            .run();
        assert_eq!(
            headlines(&run.stderr),
            [format!(
                "error[unreadable-file]: variable {name} is not UTF-8"
            )]
        );
    }
    let run = Test::new("plan --model-dir /m")
        .env("MODEL_NAME", not_utf8())
        .status(2)
        .any_stderr()
        .run();
    assert_eq!(
        headlines(&run.stderr),
        ["error[invalid-setting]: variable MODEL_NAME is not UTF-8"]
    );
    let bad = [
        "--model-dir",
        "/m",
        "--decode-workers",
        "1",
        "--prefill-workers",
        "1",
        "--nodes",
        "a,,b",
    ];
    let run = plan(&bad).status(2).run();
    assert_eq!(
        headlines(&run.stderr),
        ["error[invalid-setting]: `--nodes` has an empty entry, found `a,,b`"]
    );
}
