//! What `explain`, `models` and `diff` print, whole.

use serde_json::{Value, json};

use crate::common::Test;

const TABLE: &str = r#"Demo-8B:
  env: "DEMO_FLAG=1 HF_TOKEN=hf_X"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  mtp_flags: "--method mtp --num-speculative-tokens"
  block_size: "128"
Other-9B: {}
"#;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn sha256(text: &str) -> String {
    use atom_launch::domain::models::Origin;
    atom_launch::input::models_file::load("t", text.to_owned(), Origin::BuiltIn)
        .models
        .sha256
}

fn explain(words: &str) -> Test {
    Test::new(&format!("explain {words}")).models(TABLE).envs([
        ("MODEL_NAME", "Demo-8B"),
        ("MODEL_DIR", "/models"),
        ("BLOCK_SIZE", "64"),
        ("ATOM_LOG_LEVEL", "DEBUG"),
        ("IBDEVICES", "mlx5_0"),
    ])
}

#[test]
fn explain_shows_every_argument_and_variable_with_its_origin() {
    explain("--role decode --host-ip 10.0.0.1 --mtp 2 --mode tp-dp --max-concurrency 8x64 --env LD_LIBRARY_PATH=/x --env DEMO_FLAG=2").stdout(r#"NAME                        VALUE                                                         FROM
-m                          atom.entrypoints.openai_server                                default
--model                     /models/Demo-8B                                               environment MODEL_DIR
--host                      0.0.0.0                                                       default
--server-port               8020                                                          default
--trust-remote-code                                                                       default
-tp                         8                                                             default
--enable-dp-attention                                                                     models_atom.yaml:4:16 tp_dp_flags
--method                    mtp                                                           models_atom.yaml:5:14 mtp_flags
--num-speculative-tokens    2                                                             command line --mtp
--kv_cache_dtype            fp8                                                           models_atom.yaml:3:19 kv_cache_flags
--block-size                128                                                           models_atom.yaml:6:15 block_size
  instead of                64                                                            environment BLOCK_SIZE
  instead of                16                                                            default
--gpu-memory-utilization    0.85                                                          default
--max-num-seqs              64                                                            largest level of --max-concurrency
  instead of                256                                                           default
--no-enable_prefix_caching                                                                default
--kv-transfer-config        {"kv_role":"kv_consumer","kv_connector":"mooncake","proxy_i…  role decode; handshake port: --handshake-port (default 6301)
--cudagraph-capture-sizes   [1,2,4,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,1…  default
AITER_LOG_LEVEL             WARNING                                                       default
ATOM_HOST_IP                10.0.0.1                                                      command line --host-ip
DEMO_FLAG                   2                                                             command line --env
  instead of                1                                                             models_atom.yaml:2:9 env
HF_TOKEN                    ***                                                           models_atom.yaml:2:21 env
LD_LIBRARY_PATH             /x                                                            command line --env
LOGLEVEL                    WARNING                                                       default
LOG_LEVEL                   WARNING                                                       default
PYTHONDONTWRITEBYTECODE     1                                                             default
PYTHONUNBUFFERED            1                                                             default
SAFETENSORS_FAST_GPU        1                                                             default
VLLM_LOG_LEVEL              WARNING                                                       default
"#).run();
}

#[test]
fn explain_answers_for_one_flag_option_or_variable() {
    explain("--block-size")
        .stdout(
            "NAME          VALUE  FROM
--block-size  128    models_atom.yaml:6:15 block_size
  instead of  64     environment BLOCK_SIZE
  instead of  16     default
",
        )
        .run();
    explain("BLOCK_SIZE")
        .stdout(
            "NAME          VALUE  FROM
--block-size  128    models_atom.yaml:6:15 block_size
  instead of  64     environment BLOCK_SIZE
  instead of  16     default
",
        )
        .run();
    explain("block_size")
        .stdout(
            "NAME          VALUE  FROM
--block-size  128    models_atom.yaml:6:15 block_size
  instead of  64     environment BLOCK_SIZE
  instead of  16     default
",
        )
        .run();
    explain("--block_size --block-size 32")
        .stdout(
            "NAME          VALUE  FROM
--block-size  32     command line --block-size
  instead of  128    models_atom.yaml:6:15 block_size
  instead of  64     environment BLOCK_SIZE
  instead of  16     default
",
        )
        .run();
    explain("--kv-cache-dtype")
        .stdout(
            "NAME              VALUE  FROM
--kv_cache_dtype  fp8    models_atom.yaml:3:19 kv_cache_flags
",
        )
        .run();
    explain("HF_TOKEN")
        .stdout(
            "NAME      VALUE  FROM
HF_TOKEN  ***    models_atom.yaml:2:21 env
",
        )
        .run();
}

#[test]
fn explain_of_something_that_is_not_passed_names_the_nearest() {
    explain("--max-num-seq").status(2).stderr("error: `--max-num-seq` is neither passed to standalone-0 nor set for it; did you mean --max-num-seqs?
  = help: `atom-launch explain` without a name lists what is
").run();
    explain("DEMO_FLAGS").status(2).stderr("error: `DEMO_FLAGS` is neither passed to standalone-0 nor set for it; did you mean DEMO_FLAG?
  = help: `atom-launch explain` without a name lists what is
").run();
}

#[test]
fn explain_as_json_has_whole_values() {
    let run = explain("--format json --block-size").any_stdout().run();
    assert_eq!(
        parsed(&run.stdout),
        json!({
            "schema": 1,
            "worker": "standalone-0",
            "models_file": {"name": "models_atom.yaml", "sha256": sha256(TABLE)},
            "arguments": [{
                "name": "--block-size",
                "value": "128",
                "source": {"kind": "models-file", "name": "block_size", "line": 6, "column": 15},
                "shadowed": [
                    {"value": "64", "source": {"kind": "environment", "name": "BLOCK_SIZE"}},
                    {"value": "16", "source": {"kind": "default"}},
                ],
            }],
            "variables": [],
        })
    );
}

#[test]
fn models_lists_modes_and_methods() {
    Test::new("models")
        .stdout(
            "MODEL             MODES           SPECULATIVE  KV CACHE
DeepSeek-V4-Pro   tp tp-dp ep-dp  mtp          fp8
MiniMax-M3-MXFP4  tp tp-dp ep-dp  eagle3       fp8
MiniMax-M3-MXFP8  tp tp-dp ep-dp  eagle3       fp8
Kimi-K2.5-MXFP4   tp              -            fp8
",
        )
        .run();
    Test::new("models").models("M: {}\n漢字: {kv_cache_flags: --kv-cache-dtype=fp8}\nA-long-name: {tp_dp_flags: --enable-dp-attention, ep_dp_flags: --enable-dp-attention}\n").stdout("MODEL        MODES     SPECULATIVE  KV CACHE
M            tp        -            -
漢字         tp        -            fp8
A-long-name  tp tp-dp  -            -
").run();
}

#[test]
fn models_as_json() {
    let run = Test::new("models --format json")
        .models(TABLE)
        .any_stdout()
        .run();
    assert_eq!(
        parsed(&run.stdout),
        json!({
            "schema": 1,
            "models_file": {"name": "models_atom.yaml", "sha256": sha256(TABLE)},
            "models": [
                {"name": "Demo-8B", "line": 1, "modes": ["tp", "tp-dp"], "method": "mtp", "kv_cache_dtype": "fp8"},
                {"name": "Other-9B", "line": 7, "modes": ["tp"], "method": null, "kv_cache_dtype": null},
            ],
        })
    );
}

#[test]
fn models_of_a_broken_file_is_an_error() {
    Test::new("models")
        .models("M: {blok_size: 1}")
        .status(2)
        .stderr(
            "error[unknown-field]: unknown field `blok_size` in model `M`
 --> models_atom.yaml:1:5
  |
1 | M: {blok_size: 1}
  |     ^^^^^^^^^
  |
  = help: did you mean `block_size`?
atom-launch: 1 error; no list
",
        )
        .run();
}

const NEW: &str = r#"Demo-8B:
  env: "DEMO_FLAG=1 HF_TOKEN=hf_Y"
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention --enable-tbo"
  decode_flags: "--level 3"
  mtp_flags: "--method mtp --num-speculative-tokens"
  block_size: 64
New-1B:
  flags: "--enforce-eager"
"#;

fn diff(words: &str, new: &str) -> Test {
    Test::new(&format!("diff {words}"))
        .file("old.yaml", TABLE)
        .file("new.yaml", new)
}

#[test]
fn diff_groups_changes_by_the_commands_that_have_them() {
    diff("old.yaml new.yaml", NEW).stdout(r#"Demo-8B
  mode tp, tp-dp:
    - --block-size 128
    + --block-size 64
    - env HF_TOKEN='***'
    + env HF_TOKEN='***' (another value)
  mode tp-dp · role prefill, standalone:
    + --enable-tbo
  mode tp · role decode:
    + --level 3
  mode tp-dp · role decode:
    + --enable-tbo
    + --level 3

Other-9B (removed)

New-1B (new model)
  mode tp · role prefill, decode · MTP 0:
    + env AITER_LOG_LEVEL=WARNING
    + env ATOM_HOST_IP=HOST_IP
    + env ATOM_LOG_LEVEL=WARNING
    + env LOGLEVEL=WARNING
    + env LOG_LEVEL=WARNING
    + env PYTHONDONTWRITEBYTECODE=1
    + env PYTHONUNBUFFERED=1
    + env SAFETENSORS_FAST_GPU=1
    + env VLLM_LOG_LEVEL=WARNING
  mode tp · role prefill · MTP 0:
    + -m atom.entrypoints.openai_server
    + --model MODEL_DIR/New-1B
    + --host 0.0.0.0
    + --server-port 8010
    + --trust-remote-code
    + -tp 8
    + --enforce-eager
    + --block-size 16
    + --gpu-memory-utilization 0.85
    + --max-num-seqs 256
    + --no-enable_prefix_caching
    + --kv-transfer-config '{"kv_role":"kv_producer","kv_connector":"mooncake","proxy_ip":"HOST_IP","handshake_port":6301}'
  mode tp · role decode · MTP 0:
    + -m atom.entrypoints.openai_server
    + --model MODEL_DIR/New-1B
    + --host 0.0.0.0
    + --server-port 8020
    + --trust-remote-code
    + -tp 8
    + --enforce-eager
    + --block-size 16
    + --gpu-memory-utilization 0.85
    + --max-num-seqs 256
    + --no-enable_prefix_caching
    + --kv-transfer-config '{"kv_role":"kv_consumer","kv_connector":"mooncake","proxy_ip":"HOST_IP","handshake_port":6301}'
    + --cudagraph-capture-sizes '[1,2,4,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144,152,160,168,176,184,192,200,208,216,224,232,240,248,256]'
  mode tp · role standalone · MTP 0:
    + -m atom.entrypoints.openai_server
    + --model MODEL_DIR/New-1B
    + --host 0.0.0.0
    + --server-port 8000
    + --trust-remote-code
    + -tp 8
    + --enforce-eager
    + --block-size 16
    + --gpu-memory-utilization 0.85
    + --max-num-seqs 256
    + env AITER_LOG_LEVEL=WARNING
    + env ATOM_LOG_LEVEL=WARNING
    + env LOGLEVEL=WARNING
    + env LOG_LEVEL=WARNING
    + env PYTHONDONTWRITEBYTECODE=1
    + env PYTHONUNBUFFERED=1
    + env SAFETENSORS_FAST_GPU=1
    + env VLLM_LOG_LEVEL=WARNING

3 of 3 models with changed commands
"#).run();
}

#[test]
fn diff_for_a_pull_request() {
    diff("old.yaml new.yaml --format markdown", "Demo-8B:\n  flags: \"--served-model-name '```'\"\nOther-9B: {mem_frac_static: 0.9}\n").stdout("## Resolved commands

### `Demo-8B`

mode tp · MTP 0

````diff
- --kv_cache_dtype fp8
- --block-size 128
+ --served-model-name '```'
+ --block-size 16
- env DEMO_FLAG=1
- env HF_TOKEN='***'
````

mode tp · MTP 1

```diff
+ no longer possible: `--mtp 1` asks for speculative decoding, but model `Demo-8B` has no `mtp_flags`
```

mode tp-dp · MTP 0

```diff
+ no longer possible: model `Demo-8B` has no `tp_dp_flags`, so it cannot run in mode tp-dp (asked for by `--mode tp-dp`)
```

mode tp-dp · MTP 1

```diff
+ no longer possible: model `Demo-8B` has no `tp_dp_flags`, so it cannot run in mode tp-dp (asked for by `--mode tp-dp`)
+ no longer possible: `--mtp 1` asks for speculative decoding, but model `Demo-8B` has no `mtp_flags`
```

mode ep-dp · MTP 1

```diff
+ still not possible: `--mtp 1` asks for speculative decoding, but model `Demo-8B` has no `mtp_flags`
```

### `Other-9B`

mode tp · MTP 0

```diff
- --gpu-memory-utilization 0.85
+ --gpu-memory-utilization 0.9
```

2 of 2 models with changed commands
").run();
}

#[test]
fn diff_for_programs() {
    let new = "Demo-8B: {}\nOther-9B: {max_num_seqs: 1}\n";
    let run = diff("old.yaml new.yaml --format json", new)
        .any_stdout()
        .run();
    let commands: Vec<Value> = ["prefill", "decode", "standalone"]
        .into_iter()
        .map(|role| json!({"mode": "tp", "role": role, "mtp": 0}))
        .collect();
    let mut answer = parsed(&run.stdout);
    let models = answer["models"].take();
    assert_eq!(
        answer,
        json!({
            "schema": 1,
            "compared": 2,
            "models": null,
            "old": {"name": "old.yaml", "sha256": sha256(TABLE)},
            "new": {"name": "new.yaml", "sha256": sha256(new)},
        })
    );
    assert_eq!(
        models[1],
        json!({
            "model": "Other-9B",
            "status": "changed",
            "changes": [{
                "commands": commands,
                "arguments": [{"op": "-", "text": "--max-num-seqs 256"}, {"op": "+", "text": "--max-num-seqs 1"}],
                "variables": [],
                "problems": [],
            }],
        })
    );
}

#[test]
fn diff_exit_code_is_1_only_where_a_command_changes() {
    diff("old.yaml new.yaml --exit-code", NEW)
        .status(1)
        .any_stdout()
        .run();
    diff("old.yaml new.yaml", NEW).any_stdout().run();
    // Comments, order of fields and spelling of words change no command.
    let same = r#"# reordered
Other-9B:
Demo-8B:
  block_size: 128
  mtp_flags: [--method, mtp, --num-speculative-tokens]
  tp_dp_flags: "--enable-dp-attention"
  kv_cache_flags: " --kv_cache_dtype 'fp8' "
  env: {HF_TOKEN: hf_X, DEMO_FLAG: 1}
"#;
    diff("old.yaml new.yaml --exit-code", same)
        .stdout("no resolved command changes (2 models compared)\n")
        .run();
}

#[test]
fn diff_shows_a_change_of_order() {
    Test::new("diff old.yaml new.yaml")
        .file("old.yaml", "M: {flags: --level 1 --enforce-eager}")
        .file("new.yaml", "M: {flags: --enforce-eager --level 1}")
        .stdout(
            "M
  mode tp · MTP 0:
    - --level 1
    + --level 1

1 of 1 model with changed commands
",
        )
        .run();
}

#[test]
fn diff_reads_one_side_from_standard_input() {
    Test::new("diff - new.yaml --exit-code")
        .file("new.yaml", TABLE)
        .stdin(TABLE)
        .stdout("no resolved command changes (2 models compared)\n")
        .run();
    Test::new("diff new.yaml - --exit-code")
        .file("new.yaml", TABLE)
        .stdin("M: {")
        .status(2)
        .stderr(
            "error[yaml-syntax]: not readable as YAML: unclosed bracket '{'
 --> <stdin>:1:4
  |
1 | M: {
  |    ^
atom-launch: 1 error; nothing was compared
",
        )
        .run();
    Test::new("diff - -")
        .status(2)
        .stderr("error: only one of the two files can be standard input\n")
        .run();
    Test::new("diff missing.yaml new.yaml").file("new.yaml", TABLE).status(2).stderr("error[unreadable-file]: cannot read the models file missing.yaml: there is no such file
atom-launch: 1 error; nothing was compared
").run();
}
