//! What a job's variables, its options and the models file come to. Each test shows how the whole command differs from that of a plain job.

use crate::common::{Preview, Test};

const BASIC: &str = r#"
Demo-8B:
  env: "DEMO_FLAG=1"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  tp_dp_env: "GPU_MAX_HW_QUEUES=5"
  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"
  mtp_flags: "--method mtp --num-speculative-tokens"
"#;

const JOB: [(&str, &str); 7] = [
    ("MODEL_NAME", "Demo-8B"),
    ("MODEL_DIR", "/models"),
    ("xP", "1"),
    ("yD", "1"),
    ("IPADDRS", "10.0.0.1,10.0.0.2"),
    ("NODE_RANK", "0"),
    ("GPUS_PER_NODE", "8"),
];

/// Rank 0 of a job with one prefill and one decode worker.
fn job(yaml: &str) -> Test {
    Test::new("").models(yaml).envs(JOB)
}

/// Rank 1 of it.
fn decode(yaml: &str) -> Test {
    job(yaml).env("NODE_RANK", "1")
}

fn alone(yaml: &str) -> Test {
    Test::new("--model Demo-8B --model-dir /models").models(yaml)
}

/// What a table brings into the command of an entry without fields.
#[track_caller]
fn brings(yaml: &str, lines: &[&str]) {
    assert_eq!(
        job(yaml)
            .preview()
            .changes_from(&job("Demo-8B: {}").preview()),
        lines
    );
}

/// What a change of the job does to its command.
#[track_caller]
fn does(change: impl Fn(Test) -> Test, lines: &[&str]) {
    assert_eq!(
        change(job(BASIC))
            .preview()
            .changes_from(&job(BASIC).preview()),
        lines
    );
}

/// The job is refused with this.
#[track_caller]
fn refuses(test: Test, stderr: &str) {
    test.first(&["--dry-run"]).status(2).stderr(stderr).run();
}

fn word_after<'a>(preview: &'a Preview, flag: &str) -> Option<&'a str> {
    let at = preview.argv.iter().position(|word| word == flag)?;
    preview.argv.get(at + 1).map(String::as_str)
}

#[test]
fn the_plain_job_is_this_command() {
    assert_eq!(
        job(BASIC).preview().lines().join("\n"),
        r#"AITER_LOG_LEVEL=WARNING
ATOM_HOST_IP=10.0.0.1
ATOM_LOG_LEVEL=WARNING
DEMO_FLAG=1
LOGLEVEL=WARNING
LOG_LEVEL=WARNING
PYTHONDONTWRITEBYTECODE=1
PYTHONUNBUFFERED=1
SAFETENSORS_FAST_GPU=1
VLLM_LOG_LEVEL=WARNING

python3
-m atom.entrypoints.openai_server
--model /models/Demo-8B
--host 0.0.0.0
--server-port 8010
--trust-remote-code
-tp 8
--kv_cache_dtype fp8
--block-size 16
--gpu-memory-utilization 0.85
--max-num-seqs 256
--no-enable_prefix_caching
--kv-transfer-config {"kv_role":"kv_producer","kv_connector":"mooncake","proxy_ip":"10.0.0.1","handshake_port":6301}"#
    );
}

#[test]
fn json_reaches_the_server_byte_for_byte() {
    brings(
        "Demo-8B:\n  hf_overrides: '{\"architectures\": [\"DemoForCausalLM\"], \"use_index_cache\": true}'\n",
        &[
            "+ --hf-overrides \"{\\\"architectures\\\": [\\\"DemoForCausalLM\\\"], \\\"use_index_cache\\\": true}\"",
        ],
    );
    let text =
        "{\n  \"global_quant_config\": \"ptpc_fp8\",\n  \"exclude_layer\": [\"lm_head\"]\n}\n";
    let block = text.replace('\n', "\n    ");
    let preview = job(&format!(
        "Demo-8B:\n  online_quant_config: |\n    {}\n",
        block.trim_end()
    ))
    .preview();
    assert_eq!(word_after(&preview, "--online_quant_config"), Some(text));
}

#[test]
fn a_yaml_mapping_becomes_json() {
    brings(
        "Demo-8B:\n  online_quant_config:\n    global_quant_config: ptpc_fp8\n    exclude_layer: [lm_head, \"*block_sparse_moe\"]\n",
        &[
            "+ --online_quant_config {\"global_quant_config\":\"ptpc_fp8\",\"exclude_layer\":[\"lm_head\",\"*block_sparse_moe\"]}",
        ],
    );
    brings(
        "Demo-8B:\n  hf_overrides: {a: {b: [1, 2.50, true, ~, \"1\", yes]}, \"c\\\"d\": é}\n",
        &[r#"+ --hf-overrides {"a":{"b":[1,2.50,true,null,"1","yes"]},"c\"d":"é"}"#],
    );
}

#[test]
fn an_empty_field_is_an_absent_one() {
    brings(
        "Demo-8B:\n  online_quant_config: \"\"\n  hf_overrides: \"   \"\n  env:\n  flags: \"\"\n  block_size: ~\n  max_model_len: \"\"\n  hf_dir: \"\"\n",
        &[],
    );
    brings("Demo-8B:\n", &[]);
}

#[test]
fn numbers_keep_their_spelling_whether_quoted_or_not() {
    let expected = [
        "- --block-size 16",
        "- --gpu-memory-utilization 0.85",
        "- --max-num-seqs 256",
        "+ --block-size 128",
        "+ --gpu-memory-utilization 0.80",
        "+ --max-num-seqs 96",
        "+ --max-model-len 32768",
        "+ --max-num-batched-tokens 8192",
        "+ --scheduler-delay-factor 0.5",
    ];
    brings(
        "Demo-8B: {block_size: 128, mem_frac_static: 0.80, max_num_seqs: 96, max_model_len: 32768, max_num_batched_tokens: 8192, scheduler_delay_factor: 0.5}",
        &expected,
    );
    brings(
        "Demo-8B: {block_size: \"128\", mem_frac_static: \"0.80\", max_num_seqs: \"96\", max_model_len: '32768', max_num_batched_tokens: '8192', scheduler_delay_factor: '0.5'}",
        &expected,
    );
}

#[test]
fn templates_and_merge_keys_are_no_models() {
    brings(
        ".base: &base\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\n  block_size: \"128\"\nDemo-8B:\n  <<: *base\n  block_size: \"64\"\n",
        &[
            "- --block-size 16",
            "+ --kv_cache_dtype fp8",
            "+ --block-size 64",
        ],
    );
    brings(
        "x-a: &a {block_size: 32, max_num_seqs: 1}\nx-b: &b {block_size: 64, max_model_len: 2}\nDemo-8B:\n  <<: [*a, *b]\n",
        &[
            "- --block-size 16",
            "+ --block-size 32",
            "- --max-num-seqs 256",
            "+ --max-num-seqs 1",
            "+ --max-model-len 2",
        ],
    );
}

#[test]
fn words_are_split_as_a_shell_would_and_never_expanded() {
    let with = |yaml: &str| {
        job(yaml)
            .args(["--no-check"])
            .preview()
            .changes_from(&job("Demo-8B: {}").preview())
    };
    assert_eq!(
        with("Demo-8B:\n  flags: \"--served-model-name 'a b' --log-level $HOME\"\n"),
        ["+ --served-model-name \"a b\"", "+ --log-level $HOME"]
    );
    assert_eq!(
        with("Demo-8B:\n  flags: [--served-model-name, \"a b\", --x, \"*\"]\n"),
        ["+ --served-model-name \"a b\"", "+ --x *"]
    );
    // A line continuation is neither a word nor a part of one.
    let dp = "Demo-8B:\n  tp_dp_flags: |\n    --enable-dp-attention \\\n    --enable-tbo all\n";
    let preview = job(dp).env("PREFILL_ENABLE_DP", "true").preview();
    assert_eq!(
        preview.argv[12..16],
        [
            "--enable-dp-attention",
            "--enable-tbo",
            "all",
            "--block-size"
        ]
    );
}

#[test]
fn pairs_may_be_words_a_list_or_a_mapping() {
    let expected = ["+ A=b c", "+ B=--a=b,c=d", "+ C="].map(|line| {
        if line == "+ A=b c" {
            "+ A=\"b c\""
        } else if line == "+ C=" {
            "+ C=\"\""
        } else {
            line
        }
    });
    brings("Demo-8B:\n  env: \"A='b c' B=--a=b,c=d C=\"\n", &expected);
    brings("Demo-8B:\n  env: [A=b c, \"B=--a=b,c=d\", C=]\n", &expected);
    brings(
        "Demo-8B:\n  env: {A: b c, B: \"--a=b,c=d\", C: \"\"}\n",
        &expected,
    );
    brings(
        "Demo-8B:\n  env: {A: no, B: 010, C: 1.50}\n",
        &["+ A=no", "+ B=010", "+ C=1.50"],
    );
}

#[test]
fn blanks_and_globs_in_a_jobs_variables_stay_what_they_are() {
    does(
        |test| test.env("MODEL_DIR", "/data/my models"),
        &[
            "- --model /models/Demo-8B",
            "+ --model \"/data/my models/Demo-8B\"",
        ],
    );
    does(
        |test| {
            test.file("a.txt", "")
                .file("b.txt", "")
                .env("EXTRA_SERVER_ARGS", "--served-model-name *.txt")
        },
        &["+ --served-model-name *.txt"],
    );
}

#[test]
fn extra_arguments_are_shared_then_the_roles_then_those_after_the_dashes() {
    does(
        |test| {
            test.env("EXTRA_SERVER_ARGS", "--level 1")
                .env("PREFILL_EXTRA_SERVER_ARGS", "--enforce-eager")
                .env("DECODE_EXTRA_SERVER_ARGS", "--mark-trace")
                .args(["--", "--served-model-name", "a b"])
        },
        &[
            "+ --level 1",
            "+ --enforce-eager",
            "+ --served-model-name \"a b\"",
        ],
    );
}

#[test]
fn a_shared_argument_that_is_given_again_wins_with_a_warning() {
    let test = job(BASIC).env("EXTRA_SERVER_ARGS", "--gpu-memory-utilization 0.92").stderr("warning[repeated-flag]: `--gpu-memory-utilization` in EXTRA_SERVER_ARGS is passed twice: 0.92 replaces 0.85; extra arguments come last and win
");
    let preview = test.preview();
    assert_eq!(
        preview.argv[preview.argv.len() - 2..],
        ["--gpu-memory-utilization", "0.92"]
    );
}

#[test]
fn two_words_in_one_after_the_dashes_are_refused() {
    refuses(alone(BASIC).args(["--", "--max-num-seqs 64"]), "error[flag-with-blank]: `--max-num-seqs 64` after `--` is one word: a flag and its value must be two
  = help: write `--max-num-seqs` and `64` as two words or list items
atom-launch: 1 error; nothing was started
");
}

#[test]
fn a_flag_of_another_spelling_or_engine_is_named() {
    refuses(
        alone(BASIC).env("EXTRA_SERVER_ARGS", "--disable-log-requests"),
        "error[unknown-flag]: unknown flag `--disable-log-requests` in EXTRA_SERVER_ARGS
atom-launch: 1 error; nothing was started
",
    );
    alone(BASIC).env("EXTRA_SERVER_ARGS", "--port 9000").stderr("warning[port-flag]: `--port` in EXTRA_SERVER_ARGS does not move the server: nothing listens there; the HTTP port is `--server-port`, which the launcher sets from its own options and variables
").preview();
}

#[test]
fn a_role_has_its_own_flags_in_place_of_the_shared_ones() {
    let yaml = r#"
Demo-8B:
  flags: "--enforce-eager"
  decode_flags: ""
  tp_dp_flags: "--enable-dp-attention"
  prefill_tp_dp_flags: "--enable-dp-attention --enable-tbo prefill"
"#;
    let prefill = job(yaml).env("PREFILL_ENABLE_DP", "true").preview();
    assert_eq!(
        prefill.argv[12..17],
        [
            "--enable-dp-attention",
            "--enable-tbo",
            "prefill",
            "--enforce-eager",
            "--block-size"
        ]
    );
    let decode = decode(yaml).env("DECODE_ENABLE_DP", "true").preview();
    assert_eq!(
        decode.argv[12..14],
        ["--enable-dp-attention", "--block-size"]
    );
    refuses(
        self::decode(
            "Demo-8B:\n  tp_dp_flags: \"--enable-dp-attention\"\n  decode_tp_dp_flags: \"\"\n",
        )
        .env("DECODE_ENABLE_DP", "true"),
        r#"error[mode-not-switched-on]: `decode_tp_dp_flags` of model `Demo-8B` is empty and replaces the shared field: it lacks --enable-dp-attention, which mode tp-dp means (DECODE_ENABLE_DP asks for it)
 --> models_atom.yaml:3:23
  |
3 |   decode_tp_dp_flags: ""
  |                       ^^
  |
  = help: add --enable-dp-attention
atom-launch: 1 error; nothing was started
"#,
    );
}

#[test]
fn each_role_has_its_own_mode() {
    let built_in = |rank: &str| {
        Test::new("")
            .envs(JOB)
            .env("MODEL_NAME", "MiniMax-M3-MXFP4")
            .env("PREFILL_ENABLE_DP", "true")
            .env("DECODE_ENABLE_DP", "true")
            .env("PREFILL_TP_SIZE", "4")
            .env("NODE_RANK", rank)
            .preview()
    };
    assert_eq!(
        built_in("0").argv[10..15],
        [
            "-tp",
            "4",
            "--enable-dp-attention",
            "--enable-tbo",
            "prefill"
        ]
    );
    assert_eq!(
        built_in("1").argv[10..14],
        ["-tp", "8", "--enable-dp-attention", "--kv_cache_dtype"]
    );
}

#[test]
fn booleans_have_many_spellings() {
    for on in ["true", "1", "True", "yes", "ON"] {
        does(
            |test| test.env("PREFILL_ENABLE_DP", on),
            &["+ GPU_MAX_HW_QUEUES=5", "+ --enable-dp-attention"],
        );
    }
    for off in ["false", "0", "No", "off", ""] {
        does(|test| test.env("PREFILL_ENABLE_DP", off), &[]);
    }
}

#[test]
fn variables_of_one_mode_do_not_leak_into_another() {
    let yaml = r#"
Demo-8B:
  tp_dp_env: "GPU_MAX_HW_QUEUES=5"
  ep_dp_env: "DEMO_EP=1"
  decode_env: "DEMO_DECODE=1"
  prefill_env: "DEMO_PREFILL=1"
  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"
Other-9B:
  env: "ATOM_MOE_GU_ITLV=1"
"#;
    let preview = job(yaml)
        .env("PREFILL_ENABLE_DP", "true")
        .env("PREFILL_ENABLE_EP", "true")
        .preview();
    assert_eq!(
        preview.changes_from(&job("Demo-8B: {}").preview()),
        [
            "+ DEMO_EP=1",
            "+ DEMO_PREFILL=1",
            "+ --enable-expert-parallel",
            "+ --enable-dp-attention"
        ]
    );
}

#[test]
fn contradictions_about_modes_are_errors() {
    refuses(job(BASIC).env("PREFILL_ENABLE_EP", "true"), "error[contradiction]: PREFILL_ENABLE_EP is on but PREFILL_ENABLE_DP is not set: expert parallel runs only with data-parallel attention
  = help: set PREFILL_ENABLE_DP=true for mode ep-dp, or PREFILL_ENABLE_EP=false for mode tp
atom-launch: 1 error; nothing was started
");
    refuses(
        job("Demo-8B:\n  kv_cache_flags: \"--kv_cache_dtype fp8\"\n")
            .env("PREFILL_ENABLE_DP", "true"),
        r#"error[mode-without-flags]: model `Demo-8B` has no `tp_dp_flags`, so it cannot run in mode tp-dp (PREFILL_ENABLE_DP asks for it)
 --> models_atom.yaml:1:1
  |
1 | Demo-8B:
  | ^^^^^^^
  |
  = help: use another mode, or add `tp_dp_flags: "--enable-dp-attention"`
atom-launch: 1 error; nothing was started
"#,
    );
    refuses(
        job("Demo-8B:\n  tp_dp_flags: \"--enable-tbo prefill\"\n").args(["--mode", "tp-dp"]),
        r#"error[mode-not-switched-on]: `tp_dp_flags` of model `Demo-8B` lacks --enable-dp-attention, which mode tp-dp means (asked for by `--mode tp-dp`)
 --> models_atom.yaml:2:16
  |
2 |   tp_dp_flags: "--enable-tbo prefill"
  |                ^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: add --enable-dp-attention
atom-launch: 1 error; nothing was started
"#,
    );
}

#[test]
fn a_variable_with_two_values_that_apply_together_is_an_error() {
    let yaml = "Demo-8B:\n  env: \"DEMO_A=1 DEMO_B=1\"\n  tp_dp_env: \"DEMO_A=2 DEMO_B=1\"\n  tp_dp_flags: \"--enable-dp-attention\"\n";
    refuses(
        job(yaml).env("PREFILL_ENABLE_DP", "true"),
        r#"error[env-conflict]: DEMO_A is set to 2 by `tp_dp_env` and to 1 by `env` of model `Demo-8B`, which apply together
 --> models_atom.yaml:3:15
  |
2 |   env: "DEMO_A=1 DEMO_B=1"
  |         -------- other value
3 |   tp_dp_env: "DEMO_A=2 DEMO_B=1"
  |               ^^^^^^^^
  |
  = help: keep one, or move it into the role's or mode's own field
atom-launch: 1 error; nothing was started
"#,
    );
    // Where the second field does not apply, nothing contradicts.
    assert_eq!(job(yaml).preview().env["DEMO_A"], "1");
}

#[test]
fn the_command_line_beats_the_file_which_beats_the_environment() {
    let block = |test: Test| {
        word_after(&test.preview(), "--block-size")
            .unwrap()
            .to_owned()
    };
    let file = "Demo-8B: {block_size: 128}";
    assert_eq!(block(job("Demo-8B: {}")), "16");
    assert_eq!(block(job("Demo-8B: {}").env("BLOCK_SIZE", "64")), "64");
    assert_eq!(block(job(file).env("BLOCK_SIZE", "64")), "128");
    let preview = job(file)
        .env("BLOCK_SIZE", "64")
        .args(["--block-size", "32"])
        .preview();
    assert_eq!(word_after(&preview, "--block-size"), Some("32"));
    assert_eq!(
        preview
            .argv
            .iter()
            .filter(|word| *word == "--block-size")
            .count(),
        1
    );
}

#[test]
fn every_single_option_overrides_one_thing() {
    let both = |words: &str| -> Vec<String> {
        let preview = decode(BASIC)
            .args(words.split_whitespace())
            .stderr("")
            .any_stderr()
            .preview();
        preview.changes_from(&decode(BASIC).preview())
    };
    for (words, change) in [
        (
            "--mem-frac-static 0.9",
            [
                "- --gpu-memory-utilization 0.85",
                "+ --gpu-memory-utilization 0.9",
            ]
            .as_slice(),
        ),
        ("--max-model-len 4096", &["+ --max-model-len 4096"]),
        (
            "--max-num-seqs 64",
            &["- --max-num-seqs 256", "+ --max-num-seqs 64"],
        ),
        (
            "--decode-max-num-seqs 65",
            &["- --max-num-seqs 256", "+ --max-num-seqs 65"],
        ),
        (
            "--max-num-batched-tokens 99",
            &["+ --max-num-batched-tokens 99"],
        ),
        (
            "--scheduler-delay-factor 0.5",
            &["+ --scheduler-delay-factor 0.5"],
        ),
        (
            "--mtp 2",
            &["+ --method mtp", "+ --num-speculative-tokens 2"],
        ),
        ("--decode-tp 4", &["- -tp 8", "+ -tp 4"]),
        ("--prefill-tp 4", &[]),
        ("--tp 2", &["- -tp 8", "+ -tp 2"]),
        (
            "--decode-port 9000",
            &["- --server-port 8020", "+ --server-port 9000"],
        ),
        (
            "--model-path /x/y",
            &["- --model /models/Demo-8B", "+ --model /x/y"],
        ),
        (
            "--prefix-caching on",
            &["- --no-enable_prefix_caching", "+ --enable_prefix_caching"],
        ),
        (
            "--decode-mode ep-dp",
            &["+ --enable-expert-parallel", "+ --enable-dp-attention"],
        ),
        ("--python /opt/python", &["- python3", "+ /opt/python"]),
    ] {
        assert_eq!(both(words), change, "{words}");
    }
    let sizes = decode(BASIC)
        .args(["--cudagraph-capture-sizes", "1,2"])
        .any_stderr()
        .preview();
    assert_eq!(
        word_after(&sizes, "--cudagraph-capture-sizes"),
        Some("[1,2]")
    );
    let kv = decode(BASIC)
        .args([
            "--decode-kv-transfer-config",
            "{\"kv_role\": \"kv_consumer\", \"kv_connector\": \"mooncake\"}",
        ])
        .any_stderr()
        .preview();
    assert_eq!(
        word_after(&kv, "--kv-transfer-config"),
        Some("{\"kv_role\": \"kv_consumer\", \"kv_connector\": \"mooncake\"}")
    );
    let ip = decode(BASIC)
        .args(["--host-ip", "192.168.0.9", "--handshake-port", "6400"])
        .preview();
    assert_eq!(
        word_after(&ip, "--kv-transfer-config"),
        Some(
            "{\"kv_role\":\"kv_consumer\",\"kv_connector\":\"mooncake\",\"proxy_ip\":\"192.168.0.9\",\"handshake_port\":6400}"
        )
    );
    assert_eq!(ip.env["ATOM_HOST_IP"], "192.168.0.9");
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let names = [
        "BLOCK_SIZE",
        "PREFILL_PORT",
        "DECODE_MTP_SIZE",
        "PREFILL_ENABLE_DP",
        "WAIT_SERVER_TIMEOUT",
        "EXTRA_SERVER_ARGS",
        "ATOM_PYTHON",
        "ATOM_MODELS_FILE",
        "SPEC_DECODING",
    ];
    does(
        |test| names.iter().fold(test, |test, name| test.env(name, "")),
        &[],
    );
}

#[test]
fn decode_batches_follow_the_largest_concurrency_when_there_is_one() {
    let batch = |test: Test| {
        word_after(&test.any_stderr().preview(), "--max-num-seqs")
            .unwrap()
            .to_owned()
    };
    let yaml = "Demo-8B: {max_num_seqs: 96}";
    assert_eq!(batch(decode(yaml)), "96");
    assert_eq!(
        batch(decode(yaml).env("BENCH_MAX_CONCURRENCY", "4x2048x64")),
        "2048"
    );
    assert_eq!(
        batch(decode(yaml).env("BENCH_MAX_CONCURRENCY", "8,16,32")),
        "32"
    );
    assert_eq!(
        batch(
            decode(yaml)
                .env("BENCH_MAX_CONCURRENCY", "8x16")
                .env("DECODE_MAX_NUM_SEQS", "7")
        ),
        "7"
    );
    assert_eq!(batch(job(yaml).env("BENCH_MAX_CONCURRENCY", "8x16")), "96");
}

#[test]
fn capture_sizes_are_one_word() {
    let sizes = word_after(&decode(BASIC).preview(), "--cudagraph-capture-sizes")
        .unwrap()
        .to_owned();
    let sizes: Vec<u32> = serde_json::from_str(&sizes).unwrap();
    let expected: Vec<u32> = [1, 2, 4].into_iter().chain((8..=256).step_by(8)).collect();
    assert_eq!(sizes, expected);
    let own = decode("Demo-8B: {cudagraph_capture_sizes: [1, 2, \"3\"]}")
        .any_stderr()
        .preview();
    assert_eq!(
        word_after(&own, "--cudagraph-capture-sizes"),
        Some("[1,2,3]")
    );
}

#[test]
fn parallel_speculative_and_cache_flags_stand_in_this_order() {
    let preview = Test::new("")
        .envs(JOB)
        .envs([
            ("MODEL_NAME", "DeepSeek-V4-Pro"),
            ("NODE_RANK", "1"),
            ("DECODE_MTP_SIZE", "2"),
            ("DECODE_ENABLE_DP", "true"),
            ("DECODE_ENABLE_EP", "1"),
        ])
        .preview();
    assert_eq!(
        preview.argv[10..20],
        [
            "-tp",
            "8",
            "--enable-expert-parallel",
            "--enable-dp-attention",
            "--method",
            "mtp",
            "--num-speculative-tokens",
            "2",
            "--kv_cache_dtype",
            "fp8"
        ]
    );
}

#[test]
fn speculation_is_asked_for_in_one_voice() {
    does(|test| test.env("DECODE_MTP_SIZE", "0"), &[]);
    does(
        |test| test.env("DECODE_MTP_SIZE", "3").env("SPEC_DECODING", "mtp"),
        &["+ --method mtp", "+ --num-speculative-tokens 3"],
    );
    does(
        |test| test.env("SPEC_DECODING", "none").args(["--mtp", "1"]),
        &["+ --method mtp", "+ --num-speculative-tokens 1"],
    );
    refuses(job(BASIC).env("SPEC_DECODING", "none").env("DECODE_MTP_SIZE", "3"), "error[contradiction]: SPEC_DECODING=none switches speculative decoding off, but DECODE_MTP_SIZE=3 asks for it
  = help: make the two agree, or settle it with `--mtp N`
atom-launch: 1 error; nothing was started
");
    refuses(job(BASIC).env("DECODE_MTP_SIZE", "-1"), "error[invalid-setting]: variable DECODE_MTP_SIZE must be a whole decimal number, found `-1`
atom-launch: 1 error; nothing was started
");
    refuses(alone("Demo-8B: {}").args(["--mtp", "1"]), "error[mtp-without-flags]: `--mtp 1` asks for speculative decoding, but model `Demo-8B` has no `mtp_flags`
 --> models_atom.yaml:1:1
  |
1 | Demo-8B: {}
  | ^^^^^^^
  |
  = help: set it to 0, or add `mtp_flags` to the entry
atom-launch: 1 error; nothing was started
");
}

#[test]
fn a_model_that_is_not_there_is_an_error_with_the_nearest_names() {
    refuses(
        job(BASIC).env("MODEL_NAME", "Demo-8b-Instruct"),
        "error[unknown-model]: model `Demo-8b-Instruct` (MODEL_NAME) is not in models_atom.yaml
  = help: did you mean `Demo-8B`?
  = help: models there: Demo-8B
atom-launch: 1 error; nothing was started
",
    );
    refuses(job(BASIC).env("MODEL_NAME", "demo-org/Demo-8B"), "error[unknown-model]: model `demo-org/Demo-8B` (MODEL_NAME) is not in models_atom.yaml
  = help: MODEL_NAME names an entry of the models file, here `Demo-8B`; a path or hub id goes into `--model-path`, the folder of all models into `--model-dir`
  = help: models there: Demo-8B
atom-launch: 1 error; nothing was started
");
    refuses(job(BASIC).env("MODEL_NAME", "/models/Demo-8B/"), "error[unknown-model]: model `/models/Demo-8B/` (MODEL_NAME) is not in models_atom.yaml
  = help: MODEL_NAME names an entry of the models file, here `Demo-8B`; a path or hub id goes into `--model-path`, the folder of all models into `--model-dir`
  = help: models there: Demo-8B
atom-launch: 1 error; nothing was started
");
    refuses(
        Test::new("").models(BASIC),
        "error[no-model]: no model is given
  = help: name one with `--model NAME` or MODEL_NAME
  = help: models there: Demo-8B
atom-launch: 1 error; nothing was started
",
    );
    refuses(Test::new("--model DeepSeek-V3-Pro"), "error[unknown-model]: model `DeepSeek-V3-Pro` (--model) is not in built-in models_atom.yaml
  = help: did you mean `DeepSeek-V4-Pro`?
  = help: models there: DeepSeek-V4-Pro, MiniMax-M3-MXFP4, MiniMax-M3-MXFP8, Kimi-K2.5-MXFP4
atom-launch: 1 error; nothing was started
");
}

#[test]
fn variants_of_a_model_are_looked_up_first() {
    let yaml = "Demo-8B: {block_size: 16}\nDemo-8B-DI: {block_size: 32}\nDemo-8B-AgentX: {block_size: 64}\n";
    let block = |test: Test| {
        word_after(&test.preview(), "--block-size")
            .unwrap()
            .to_owned()
    };
    assert_eq!(block(job(yaml)), "32");
    assert_eq!(block(job(yaml).env("IS_AGENTIC", "true")), "64");
    assert_eq!(
        block(
            job("Demo-8B: {block_size: 16}\nDemo-8B-DI: {block_size: 32}\n").env("IS_AGENTIC", "1")
        ),
        "16"
    );
}

#[test]
fn the_model_is_a_folder_a_snapshot_or_a_hub_id() {
    let path = |test: Test| {
        word_after(&test.any_stderr().preview(), "--model")
            .unwrap()
            .to_owned()
    };

    let bare = |yaml: &str| Test::new("--model Demo-8B").models(yaml);
    bare("Demo-8B: {}")
        .stderr("warning[no-model-folder]: no folder of models is set: the server gets the bare name `Demo-8B`; set `--model-dir` or MODEL_DIR, or give the model's own path or hub id with `--model-path`\n")
        .preview();
    assert_eq!(path(bare("Demo-8B: {}")), "Demo-8B");
    assert_eq!(
        path(bare("Demo-8B: {hf_dir: models--demo-org--Demo-8B}")),
        "demo-org/Demo-8B"
    );
    assert_eq!(path(bare("Demo-8B: {}").env("MODEL_PATH", "/p")), "/p");
    assert_eq!(
        path(
            bare("Demo-8B: {}")
                .env("MODEL_PATH", "/p")
                .env("MODEL_DIR", "/d")
        ),
        "/d/Demo-8B"
    );
    assert_eq!(
        path(bare("Demo-8B: {}").args(["--model-path", "demo-org/Demo-8B"])),
        "demo-org/Demo-8B"
    );
    let there = bare("Demo-8B: {hf_dir: models--demo-org--Demo-8B}")
        .file(
            "hub/models--demo-org--Demo-8B/snapshots/0123abcd/config.json",
            "{}",
        )
        .file("hub/models--demo-org--Demo-8B/refs/main", "0123abcd")
        .env("MODEL_DIR", "hub");
    assert_eq!(
        path(there),
        "hub/models--demo-org--Demo-8B/snapshots/0123abcd"
    );
}

#[test]
fn a_rank_has_a_role_and_a_place() {
    refuses(
        job(BASIC).env("NODE_RANK", "5"),
        "error[rank-outside-topology]: NODE_RANK=5 is outside the job: xP=1, yD=1 has ranks 0 to 1
  = help: start one launcher a node, with ranks from 0
atom-launch: 1 error; nothing was started
",
    );
    refuses(
        job(BASIC).without("NODE_RANK"),
        "error[which-worker]: which of the 2 ranks is this?
  = help: set `--rank N` or NODE_RANK; inside srun, SLURM_PROCID is taken
atom-launch: 1 error; nothing was started
",
    );
    // A job of one node has no rank to ask for.
    refuses(
        job(BASIC)
            .without("NODE_RANK")
            .env("IPADDRS", "10.0.0.1")
            .env("PREFILL_TP_SIZE", "4")
            .env("DECODE_TP_SIZE", "4")
            .args(["--layout", "packed"]),
        "error[which-worker]: rank 0 has 2 workers; which is to be started?
  = help: `--worker N`: 0 = prefill-0-0, 1 = decode-0-1
  = help: `atom-launch node` starts all of them
atom-launch: 1 error; nothing was started
",
    );
    refuses(
        job(BASIC).env("IPADDRS", "10.0.0.1"),
        "error[too-few-nodes]: the job needs 2 nodes (xP=1, yD=1), but IPADDRS gives 1
  = help: give one address a rank
atom-launch: 1 error; nothing was started
",
    );
    refuses(
        job(BASIC).env("IPADDRS", "10.0.0.1,10.0.0.1"),
        "error[port-used-twice]: IPADDRS names 10.0.0.1 for two ranks
  = help: several workers on one node are a packed layout: see `--layout`
atom-launch: 1 error; nothing was started
",
    );
    refuses(job(BASIC).env("PREFILL_TP_SIZE", "16").args(["--no-check"]), "error[tensor-parallel-too-large]: PREFILL_TP_SIZE=16 is above 8: a worker cannot span nodes, and ATOM refuses more
  = help: use more workers, each of one node
atom-launch: 1 error; nothing was started
");
    refuses(job(BASIC).env("GPUS_PER_NODE", "4"), "error[tensor-parallel-too-large]: --prefill-tp (default 8) is above the GPUs of a node, GPUS_PER_NODE=4
error[tensor-parallel-too-large]: --decode-tp (default 8) is above the GPUs of a node, GPUS_PER_NODE=4
atom-launch: 2 errors; nothing was started
");
    refuses(job(BASIC).args(["--role", "decode"]), "error[contradiction]: `--role decode` contradicts NODE_RANK=0, which has no such worker (xP=1, yD=1)
atom-launch: 1 error; nothing was started
");
    for (name, most) in [
        ("xP", 4096),
        ("PREFILL_TP_SIZE", 100_000),
        ("GPUS_PER_NODE", 256),
    ] {
        let run = job(BASIC)
            .env(name, "0")
            .args(["--dry-run"])
            .status(2)
            .any_stderr()
            .run();
        assert_eq!(
            run.stderr.lines().next().unwrap(),
            format!("error[invalid-setting]: variable {name} must be from 1 to {most}, found `0`")
        );
    }
    job(BASIC).env("IPADDRS", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4").stderr("warning[too-many-nodes]: IPADDRS gives 4 nodes, but the job uses 2 (xP=1, yD=1): the others have nothing to run
").preview();
    does(
        |test| {
            test.without("IPADDRS")
                .env("SLURM_JOB_NODELIST", "mi[01-02]")
                .args(["--host-ip", "10.0.0.1"])
        },
        &[],
    );
    does(
        |test| test.without("NODE_RANK").env("SLURM_PROCID", "0"),
        &[],
    );
}

#[test]
fn a_worker_without_a_topology_stands_alone() {
    assert_eq!(
        alone(BASIC)
            .env("SLURM_PROCID", "3")
            .preview()
            .changes_from(&job(BASIC).preview()),
        [
            "- ATOM_HOST_IP=10.0.0.1",
            "- --server-port 8010",
            "+ --server-port 8000",
            "- --no-enable_prefix_caching",
            "- --kv-transfer-config {\"kv_role\":\"kv_producer\",\"kv_connector\":\"mooncake\",\"proxy_ip\":\"10.0.0.1\",\"handshake_port\":6301}",
        ]
    );
}

#[test]
fn a_port_is_used_once_and_in_range() {
    refuses(job(BASIC).env("ROUTER_PORT", "8010"), "error[port-used-twice]: port 8010 is used twice on rank 0: ROUTER_PORT=8010 (the router) and --prefill-port (default 8010) (prefill-0)
  = help: give one of them another port: `--router-port` or ROUTER_PORT
  = help: give one of them another port: `--prefill-port` or PREFILL_PORT
atom-launch: 1 error; nothing was started
");
    refuses(job(BASIC).args(["--handshake-port", "8003"]), "error[port-used-twice]: port 8010 is used twice on rank 0: --prefill-port (default 8010) (prefill-0) and `--handshake-port 8003` and the 7 after it (KV transfer of prefill-0)
  = help: give one of them another port: `--prefill-port` or PREFILL_PORT
  = help: give one of them another port: `--handshake-port` or HANDSHAKE_PORT
atom-launch: 1 error; nothing was started
");
    for bad in ["70000", "0"] {
        refuses(
            job(BASIC).env("ROUTER_PORT", bad),
            &format!(
                "error[invalid-setting]: variable ROUTER_PORT must be a port from 1 to 65535, found `{bad}`\natom-launch: 1 error; nothing was started\n"
            ),
        );
    }
}

#[test]
fn variables_that_do_nothing_are_named() {
    job(BASIC).env("PREFIL_PORT", "8110").env("DECODE_MTP_SIZES", "3").stderr("warning[misspelt-variable]: variable DECODE_MTP_SIZES is not read; did you mean DECODE_MTP_SIZE?
warning[misspelt-variable]: variable PREFIL_PORT is not read; did you mean PREFILL_PORT?
").preview();
    job(BASIC).env("KV_CACHE_DTYPE", "auto").stderr("warning[kv-cache-dtype-unused]: KV_CACHE_DTYPE=auto decides nothing: the KV cache is fp8, from the model's `kv_cache_flags`; `--kv-cache-flags '--kv_cache_dtype …'` overrides the model
").preview();
    does(|test| test.env("KV_CACHE_DTYPE", "fp8"), &[]);
}

#[test]
fn what_the_caller_exported_is_kept_where_the_launcher_only_has_defaults() {
    does(
        |test| {
            test.env("ATOM_LOG_LEVEL", "DEBUG")
                .env("PYTHONUNBUFFERED", "0")
                .env("IBDEVICES", "mlx5_0")
                .env("ATOM_HOST_IP", "10.9.9.9")
        },
        &[
            "- ATOM_HOST_IP=10.0.0.1",
            "- ATOM_LOG_LEVEL=WARNING",
            "- PYTHONUNBUFFERED=1",
        ],
    );
}

#[test]
fn secrets_are_masked_in_every_view_and_reach_the_server() {
    let job = || {
        job("Demo-8B:\n  env: {HF_TOKEN: hf_X1, DEMO_URL: \"http://me:pw-X2@collector:4317/x\", TOKENIZERS_PARALLELISM: \"false\"}\n")
            .args(["--no-check", "--env", "WANDB_API_KEY=wk-X3"])
            .env("EXTRA_SERVER_ARGS", "--api-key sk-X4")
            .env("MODAL_TOKEN_ID", "ak-X5")
    };
    let preview = job().preview();
    let shown = |name: &str| preview.env[name].as_str();
    assert_eq!(
        [
            "HF_TOKEN",
            "WANDB_API_KEY",
            "DEMO_URL",
            "TOKENIZERS_PARALLELISM"
        ]
        .map(shown),
        ["***", "***", "http://me:***@collector:4317/x", "false"]
    );
    assert_eq!(preview.argv[preview.argv.len() - 2..], ["--api-key", "***"]);
    for words in ["--dry-run", "--dry-run --format nul", "-vv --dry-run"] {
        let run = job().args(words.split(' ')).any_stdout().any_stderr().run();
        for part in ["X1", "X2", "X3", "X4", "X5"] {
            assert!(
                !run.stdout.contains(part) && !run.stderr.contains(part),
                "{words} {part}"
            );
        }
    }
    let started = job().args(["--quiet"]).server("").run().started();
    assert_eq!(started.environ["HF_TOKEN"], "hf_X1");
    assert_eq!(
        started.environ["DEMO_URL"],
        "http://me:pw-X2@collector:4317/x"
    );
    assert_eq!(started.argv.last().unwrap(), "sk-X4");
}

#[test]
fn the_models_file_is_the_option_then_the_variable_then_the_workspace_then_the_built_in() {
    let name = |test: Test| {
        let run = test.args(["--dry-run"]).any_stdout().any_stderr().run();
        let line = run
            .stderr
            .lines()
            .find(|line| line.contains("models file"))
            .unwrap()
            .to_owned();
        line.split_once("models file")
            .unwrap()
            .1
            .trim()
            .split(',')
            .next()
            .unwrap()
            .to_owned()
    };
    let with = || {
        Test::new("--model DeepSeek-V4-Pro")
            .file("a.yaml", "DeepSeek-V4-Pro: {}")
            .file("b.yaml", "DeepSeek-V4-Pro: {}")
            .file("ws/models_atom.yaml", "DeepSeek-V4-Pro: {}")
    };
    assert_eq!(name(with()), "built-in models_atom.yaml");
    assert_eq!(
        name(with().env("ATOM_WS_PATH", "nowhere")),
        "built-in models_atom.yaml"
    );
    assert_eq!(
        name(with().env("ATOM_WS_PATH", "ws")),
        "ws/models_atom.yaml"
    );
    assert_eq!(
        name(
            with()
                .env("ATOM_WS_PATH", "ws")
                .env("ATOM_MODELS_FILE", "b.yaml")
        ),
        "b.yaml"
    );
    let all = with()
        .env("ATOM_WS_PATH", "ws")
        .env("ATOM_MODELS_FILE", "b.yaml")
        .args(["--models-file", "a.yaml"]);
    assert_eq!(name(all), "a.yaml");
}

#[test]
fn the_banner_says_what_is_really_passed() {
    let hash = |text: &str| {
        let loaded = atom_launch::input::models_file::load(
            "t",
            text.to_owned(),
            atom_launch::domain::models::Origin::BuiltIn,
        );
        loaded.models.sha256[..12].to_owned()
    };
    Test::new("--model MiniMax-M3-MXFP4 --dry-run --mtp 3 --mode ep-dp --role decode --host-ip 10.0.0.1 --model-dir /models")
        .any_stdout()
        .stderr(format!(
            "atom-launch {}
  model        MiniMax-M3-MXFP4 at /models/MiniMax-M3-MXFP4
  models file  built-in models_atom.yaml, sha256 {}
  worker       decode, rank 0, port 8020
  parallel     ep-dp, tensor parallel 8
  speculative  eagle3, 3 tokens a step
  kv cache     fp8, blocks of 128
  limits       0.8 of GPU memory, 256 sequences, longest 32768
",
            env!("CARGO_PKG_VERSION"),
            hash(atom_launch::input::models_file::BUILT_IN)
        ))
        .run();
    // Not what the table says, but what the server will read.
    alone(BASIC)
        .args([
            "--dry-run",
            "--no-check",
            "--",
            "--method",
            "eagle3",
            "--kv-cache-dtype=bf16",
        ])
        .any_stdout()
        .stderr(format!(
            "atom-launch {}
  model        Demo-8B at /models/Demo-8B
  models file  models_atom.yaml, sha256 {}
  worker       standalone, port 8000
  parallel     tp, tensor parallel 8
  speculative  eagle3, 1 token a step
  kv cache     bf16, blocks of 16
  limits       0.85 of GPU memory, 256 sequences, longest server's default
",
            env!("CARGO_PKG_VERSION"),
            hash(BASIC)
        ))
        .run();
}
