//! The deliberate differences, each as a function from the recorded outcome to ours.

use serde_json::Value;

use super::cases::Job;
use super::expected::Expected;

/// One deliberate difference.
pub(super) struct Rule {
    /// As in docs/migrating.md.
    pub(super) id: &'static str,
    /// Turn the recorded outcome into ours; leave alone what does not concern it.
    pub(super) apply: fn(&Job<'_>, &mut Expected),
}

pub(super) const CAPTURE: &str = "[1,2,4,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120,128,136,144,152,160,168,176,184,192,200,208,216,224,232,240,248,256]";

/// Settings that the old script left in the server's environment.
pub(super) const OWN_VARIABLES: [&str; 11] = [
    "ATOM_WS_PATH",
    "BLOCK_SIZE",
    "DECODE_MTP_SIZE",
    "DECODE_TP_SIZE",
    "EXTRA_SERVER_ARGS",
    "HANDSHAKE_PORT",
    "MAX_MODEL_LEN",
    "MAX_NUM_BATCHED_TOKENS",
    "MAX_NUM_SEQS",
    "MEM_FRAC_STATIC",
    "PREFILL_TP_SIZE",
];

/// Values that no setting can have, and what the error says of them.
pub(super) const BAD_VALUES: [(&str, &str, &str); 30] = {
    const WHOLE: &str = "must be a whole decimal number";
    const ZERO: &str = "must not start with 0 (some readers take that for an octal number)";
    const LEVELS: &str = "must be whole numbers from 1, joined by `x` or commas: `8x16x32`";
    const WORKERS: &str = "must be from 1 to 4096";
    const SWITCH: &str = "must be true/false, 1/0, yes/no or on/off";
    [
        ("BENCH_MAX_CONCURRENCY", "0x8", LEVELS),
        ("BENCH_MAX_CONCURRENCY", "8 16 32", LEVELS),
        ("BENCH_MAX_CONCURRENCY", "8X16", LEVELS),
        ("BENCH_MAX_CONCURRENCY", "abc", LEVELS),
        ("BLOCK_SIZE", "abc", WHOLE),
        ("DECODE_ENABLE_EP", "8", SWITCH),
        ("DECODE_MTP_SIZE", " 2", WHOLE),
        ("DECODE_MTP_SIZE", "-1", WHOLE),
        ("DECODE_MTP_SIZE", "08", ZERO),
        ("DECODE_MTP_SIZE", "1+1", WHOLE),
        ("DECODE_MTP_SIZE", "1.5", WHOLE),
        ("DECODE_MTP_SIZE", "2 ", WHOLE),
        ("DECODE_MTP_SIZE", "3x", WHOLE),
        ("DECODE_MTP_SIZE", "BLOCK_SIZE", WHOLE),
        ("DECODE_MTP_SIZE", "a[$(touch /tmp/pwned5)]", WHOLE),
        ("DECODE_TP_SIZE", "eight", WHOLE),
        ("GPUS_PER_NODE", "0", "must be from 1 to 256"),
        ("MAX_MODEL_LEN", "1 2", WHOLE),
        ("MAX_MODEL_LEN", "32k", WHOLE),
        (
            "MEM_FRAC_STATIC",
            "85",
            "must be a fraction above 0 and at most 1 (0.85 for 85 percent)",
        ),
        ("NODE_RANK", "08", ZERO),
        ("NODE_RANK", "1.0", WHOLE),
        ("PREFILL_ENABLE_EP", "8", SWITCH),
        ("PREFILL_TP_SIZE", "8x", WHOLE),
        ("WAIT_ROUTER_TIMEOUT", "0900", ZERO),
        ("WAIT_SERVER_TIMEOUT", "10m", WHOLE),
        ("WAIT_SERVER_TIMEOUT", "forever", WHOLE),
        ("xP", "0", WORKERS),
        ("xP", "two", WHOLE),
        ("yD", "0", WORKERS),
    ]
};

/// Extra arguments that the old script gave to a shell once more, and the words that they are.
pub(super) const EXTRA: [(&str, &[&str]); 10] = [
    (
        "--hf-overrides {\"use_index_cache\":true,\"index_topk_freq\":4}",
        &["--hf-overrides", "{use_index_cache:true,index_topk_freq:4}"],
    ),
    ("--sizes {1,2,4}", &["--sizes", "{1,2,4}"]),
    ("--ignore *", &["--ignore", "*"]),
    ("--cache-dir $HOME/cache", &["--cache-dir", "$HOME/cache"]),
    ("--cache-dir $NOPE/cache", &["--cache-dir", "$NOPE/cache"]),
    (
        "--tag $BLOCK_SIZE-$host_ip",
        &["--tag", "$BLOCK_SIZE-$host_ip"],
    ),
    ("--tag a; touch pwned2", &["--tag", "a;", "touch", "pwned2"]),
    (
        "--tag a | cat > pwned4",
        &["--tag", "a", "|", "cat", ">", "pwned4"],
    ),
    ("--tag 2>1", &["--tag", "2>1"]),
    ("--cache-dir ~/cache", &["--cache-dir", "~/cache"]),
];

/// Mistakes of a models file that the old script went on with, by case.
pub(super) const FILE_MISTAKES: [(&str, &str); 12] = [
    (
        "yaml/bool-flags/",
        "wrong-type]: `kv_cache_flags` must be a string of words or a list of them, found a boolean",
    ),
    (
        "yaml/env-space-unquoted/",
        "bad-pair]: `two` in `env` is no `NAME=VALUE`",
    ),
    (
        "yaml/quant-json-single-quotes/",
        "bad-json]: `online_quant_config` is not valid JSON: key must be a string",
    ),
    (
        "yaml/quant-quote-runs-code/",
        "bad-json]: `online_quant_config` is not valid JSON: expected value",
    ),
    (
        "yaml/unknown-key/",
        "unknown-field]: unknown field `blok_size` in model `Case-Model`",
    ),
    (
        "yaml/value-with-space/",
        "bad-number]: `block_size` must be a whole decimal number, found `128 --injected`",
    ),
    (
        "yaml/empty-file/",
        "no-models]: models_atom.yaml holds no model",
    ),
    (
        "yaml/syntax-error/",
        "yaml-syntax]: not readable as YAML: unclosed quote",
    ),
    (
        "yaml/duplicate-model/",
        "duplicate-model]: model `Case-Model` is there twice; it stands first at models_atom.yaml:1:1",
    ),
    (
        "yaml/missing-file/",
        "unreadable-file]: cannot read the models file models_atom.yaml: there is no such file (--models-file)",
    ),
    (
        "extra/unbalanced-quote/",
        "invalid-setting]: variable EXTRA_SERVER_ARGS has a quote that is never closed: ' (words are split as a POSIX shell would: close the quote, or escape it with a backslash), found `--tag 'a`",
    ),
    (
        "extra/comment/",
        "invalid-setting]: variable EXTRA_SERVER_ARGS has a `#` that would start a comment, so all after it would be lost (quote the word (`'#…'`) or put the comment on a YAML line of its own), found `--tag a # --enforce-eager`",
    ),
];

/// All differences that a dry run can show, in the order in which they are applied.
pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "caller-log-levels",
        apply: |job, to| {
            for name in [
                "AITER_LOG_LEVEL",
                "ATOM_LOG_LEVEL",
                "LOGLEVEL",
                "LOG_LEVEL",
                "PYTHONDONTWRITEBYTECODE",
                "PYTHONUNBUFFERED",
                "SAFETENSORS_FAST_GPU",
                "VLLM_LOG_LEVEL",
            ] {
                if !job.var(name).is_empty() {
                    to.env.remove(name);
                }
            }
        },
    },
    Rule {
        id: "base-environment",
        apply: |job, to| {
            if job.is("exit/env-file-missing/") {
                for name in [
                    "AITER_LOG_LEVEL",
                    "ATOM_LOG_LEVEL",
                    "LOGLEVEL",
                    "LOG_LEVEL",
                    "VLLM_LOG_LEVEL",
                ] {
                    to.set(name, "WARNING");
                }
                for name in [
                    "PYTHONDONTWRITEBYTECODE",
                    "PYTHONUNBUFFERED",
                    "SAFETENSORS_FAST_GPU",
                ] {
                    to.set(name, "1");
                }
            }
        },
    },
    Rule {
        id: "dry-run-option",
        apply: |job, to| match job.case.name.as_str() {
            // DRY_RUN=1 printed the command and started nothing.
            "dry-run/prefill0" => to.as_in(job.other("grid/MiniMax-M3-MXFP4/tp-dp/prefill0/mtp1")),
            "dry-run/decode" => {
                to.as_in(job.other("grid/MiniMax-M3-MXFP4/tp-dp/decode/mtp0"));
                to.before(
                    "--kv_cache_dtype",
                    &[
                        "--method",
                        "eagle3",
                        "--draft-model",
                        "Inferact/MiniMax-M3-EAGLE3",
                        "--num-speculative-tokens",
                        "1",
                    ],
                );
                let own = &job
                    .other("spec/SPEC_DECODING=none/DECODE_MTP_SIZE=0/decode")
                    .server
                    .as_ref()
                    .unwrap();
                let at = own
                    .iter()
                    .position(|word| word == "--kv-transfer-config")
                    .unwrap();
                to.value("--kv-transfer-config", &own[at + 1]);
            }
            _ => {}
        },
    },
    Rule {
        id: "no-shell",
        apply: |job, to| {
            let given = job.var("EXTRA_SERVER_ARGS");
            if job.is("extra/parentheses/") {
                to.as_in(job.other("extra/plain/decode"));
                to.tail("--enforce-eager", &["--tag", "f(x)"]);
            }
            if job.is("dry-run/") {
                to.argv.extend(["--tag", "*"].map(str::to_owned));
                return;
            }
            if let Some((_, words)) = EXTRA.iter().find(|(text, _)| *text == given) {
                to.tail(words[0], words);
            }
            if job.is("modeldir/space/") {
                to.replace(
                    &["/my", "models/DeepSeek-V4-Pro"],
                    &["/my models/DeepSeek-V4-Pro"],
                );
            }
            if job.is("yaml/quant-json-apostrophe/") {
                to.before(
                    "--kv-transfer-config",
                    &["--online_quant_config", "{\"note\": \"it's fp8\"}"],
                );
            }
            if job.is("yaml/quant-json-spaces-and-apostrophe-pair/") {
                to.before(
                    "--kv-transfer-config",
                    &["--online_quant_config", "{\"a\": \"x 'y z' w\"}"],
                );
            }
            if job.is("yaml/env-quote-runs-code/") {
                to.set("A", "1; touch /tmp/pwned10; ");
            }
        },
    },
    Rule {
        id: "no-glob",
        apply: |job, to| {
            for (name, seen) in [("cwd/comma/", ","), ("cwd/7/", "7")] {
                if job.is(name) {
                    to.replace(
                        &["--cudagraph-capture-sizes", seen],
                        &["--cudagraph-capture-sizes", CAPTURE],
                    );
                }
            }
            if job.is("yaml/flags-glob/") || job.is("yaml/tp_dp_flags-glob/") {
                to.replace(&["alpha"], &["al*"]);
            }
        },
    },
    Rule {
        id: "words",
        apply: |job, to| {
            if job.is("yaml/env-spaces/") {
                to.set("A", "one two");
            }
            if job.is("yaml/mtp-flags-json/") {
                to.replace(&["a:1", "b:2"], &["{a:1,b:2}"]);
            }
        },
    },
    Rule {
        id: "models-file-types",
        apply: |job, to| {
            // One value that was no string ended the reading: all behind it fell back to the environment.
            let whole = [
                "yaml/int-",
                "yaml/float-",
                "yaml/null-",
                "yaml/list-env/",
                "yaml/map-env/",
                "yaml/map-quant/",
            ];
            if whole.iter().any(|name| job.is(name)) {
                if to.argv.iter().all(|word| word != "--enable-dp-attention") {
                    to.replace(
                        &["-tp", "8"],
                        &[
                            "-tp",
                            "8",
                            "--enable-dp-attention",
                            "--method",
                            "mtp",
                            "--num-speculative-tokens",
                            "1",
                            "--kv_cache_dtype",
                            "fp8",
                        ],
                    );
                    to.set("A", "1");
                    to.set("B", "2");
                }
                to.value(
                    "--block-size",
                    if job.is("yaml/null-") { "16" } else { "128" },
                );
                to.value("--gpu-memory-utilization", "0.8");
                if job.role() == Some("prefill") {
                    to.value("--max-num-seqs", "200");
                }
                for (flag, value) in [
                    ("--max-model-len", "32768"),
                    ("--max-num-batched-tokens", "8192"),
                    ("--scheduler-delay-factor", "0.25"),
                ] {
                    if to.argv.iter().all(|word| word != flag) {
                        to.before("--no-enable_prefix_caching", &[flag, value]);
                    }
                }
            }
            if job.is("yaml/map-quant/") {
                to.before(
                    "--kv-transfer-config",
                    &[
                        "--online_quant_config",
                        "{\"global_quant_config\":\"ptpc_fp8\"}",
                    ],
                );
            }
            if job.is("yaml/numeric-name/") {
                to.set("A", "1");
            }
        },
    },
    Rule {
        id: "models-file-mistakes",
        apply: |job, to| {
            for (name, headline) in FILE_MISTAKES {
                if job.is(name) {
                    to.error(headline);
                }
            }
        },
    },
    Rule {
        id: "environment-is-not-settings",
        apply: |job, to| {
            // `env` overwrote the script's own variables after they were resolved.
            if job.is("yaml/env-sets-script-variable/") {
                to.value("--block-size", "128");
                to.tail("--kv-transfer-config", &["--kv-transfer-config", "{\"kv_role\":\"kv_producer\",\"kv_connector\":\"mooncake\",\"proxy_ip\":\"10.0.0.1\",\"handshake_port\":6301}"]);
                to.set("DRY_RUN", "0");
            }
            if job.is("yaml/env-sets-PATH/") {
                to.as_in(job.other("yaml/env-sets-script-variable/prefill0"));
                to.value("--block-size", "128");
                to.tail("--kv-transfer-config", &["--kv-transfer-config", "{\"kv_role\":\"kv_producer\",\"kv_connector\":\"mooncake\",\"proxy_ip\":\"10.0.0.1\",\"handshake_port\":6301}"]);
                for name in ["BLOCK_SIZE", "EXTRA_SERVER_ARGS", "HANDSHAKE_PORT"] {
                    to.env.remove(name);
                }
                to.set("PATH", "/nowhere");
                to.set("B", "2");
            }
        },
    },
    Rule {
        id: "hf-overrides",
        apply: |job, to| {
            if job.is("yaml/hf_overrides/") {
                to.before(
                    "--kv-transfer-config",
                    &["--hf-overrides", "{\"use_index_cache\":true}"],
                );
            }
            if job.case.first && to.argv.iter().any(|word| word == "--hf-overrides") {
                to.value(
                    "--hf-overrides",
                    "{\"use_index_cache\":true,\"index_topk_freq\":4}",
                );
            }
        },
    },
    Rule {
        id: "no-model-name",
        apply: |job, to| {
            if job.var("MODEL_NAME").is_empty() {
                to.error("no-model]: no model is given");
            }
        },
    },
    Rule {
        id: "unknown-model",
        apply: |job, to| {
            let name = job.var("MODEL_NAME");
            if !name.is_empty()
                && job.case.models_yaml.is_none()
                && !job.has_no_file()
                && job.entry().is_none()
            {
                to.error(format!(
                    "unknown-model]: model `{}` (MODEL_NAME) is not in models_atom.yaml",
                    name.escape_debug()
                ));
            }
        },
    },
    Rule {
        id: "variants",
        apply: |job, to| {
            if job.is("model/variant-DI-only/") {
                to.before("--block-size", &["--kv_cache_dtype", "fp8"]);
                to.set("FROM_DI", "1");
            }
        },
    },
    Rule {
        id: "model-path",
        apply: |job, to| {
            let name = job.var("MODEL_NAME");
            if job.var("MODEL_DIR").is_empty() && !name.is_empty() {
                to.value("--model", name);
                to.warning(format!("no-model-folder]: no folder of models is set: the server gets the bare name `{name}`; set `--model-dir` or MODEL_DIR, or give the model's own path or hub id with `--model-path`"));
            }
            if job.is("model/hf_dir/") {
                to.value("--model", "/models/models--org--case");
            }
            if job.is("modeldir/trailing-slash/") {
                to.value("--model", "/models/DeepSeek-V4-Pro");
            }
        },
    },
    Rule {
        id: "kv-cache-dtype",
        apply: |job, to| {
            // Told only where the table gives another type than the variable; a job that is refused hears it as well.
            if !job.var("KV_CACHE_DTYPE").is_empty()
                && [
                    "model/hf_dir/",
                    "yaml/entry-null/",
                    "yaml/numeric-name/",
                    "yaml/flags-quoted-space/",
                    "yaml/flags-glob/",
                ]
                .iter()
                .any(|name| job.is(name))
            {
                to.warning("kv-cache-dtype-unused]: KV_CACHE_DTYPE=fp8 decides nothing: the KV cache is the server's own default; `--kv-cache-flags '--kv_cache_dtype …'` overrides the model".to_owned());
            }
        },
    },
    Rule {
        id: "numbers-are-checked",
        apply: |job, to| {
            for (name, value, reason) in BAD_VALUES {
                if job.var(name) == value {
                    to.error(format!(
                        "invalid-setting]: variable {name} {reason}, found `{value}`"
                    ));
                }
            }
        },
    },
    Rule {
        id: "ep-without-dp",
        apply: |job, to| {
            for role in ["PREFILL", "DECODE"] {
                let dp = job.var(&format!("{role}_ENABLE_DP"));
                if ["true", "1"].contains(&job.var(&format!("{role}_ENABLE_EP")))
                    && ["", "false"].contains(&dp)
                {
                    let state = if dp.is_empty() { "not set" } else { "off" };
                    to.error(format!("contradiction]: {role}_ENABLE_EP is on but {role}_ENABLE_DP is {state}: expert parallel runs only with data-parallel attention"));
                }
            }
        },
    },
    Rule {
        id: "booleans",
        apply: |job, to| {
            let Some(role) = job.role().filter(|_| !job.case.first) else {
                return;
            };
            let (old, new) = (job.mode(role, true), job.mode(role, false));
            if old != new {
                switch_mode(job, to, role, old, new);
            }
        },
    },
    Rule {
        id: "first-version",
        apply: |job, to| {
            let Some(role) = job.role().filter(|_| job.case.first) else {
                return;
            };
            let (old, new) = (job.mode(role, true), job.mode(role, false));
            if old != new {
                switch_mode(job, to, role, old, new);
            }
            if role == "decode" && !to.argv.is_empty() {
                to.value("--cudagraph-capture-sizes", CAPTURE);
            }
            if job.is("historic/tp/decode/isl-8192") {
                to.value("--max-num-seqs", "2048");
            }
        },
    },
    Rule {
        id: "mode-without-flags",
        apply: |job, to| {
            let no_flags = job.is("yaml/entry-null/");
            if job.entry().is_none() && !no_flags {
                return;
            }
            for role in ["prefill", "decode"] {
                let mode = job.mode(role, false);
                if mode != "tp" && (no_flags || job.mode_flags(role, mode).is_empty()) {
                    let upper = role.to_uppercase();
                    let by = if mode == "ep-dp" {
                        format!("{upper}_ENABLE_EP, {upper}_ENABLE_DP ask")
                    } else {
                        format!("{upper}_ENABLE_DP asks")
                    };
                    let field = format!("{}_flags", mode.replace('-', "_"));
                    to.error(format!("mode-without-flags]: model `{}` has no `{field}`, so it cannot run in mode {mode} ({by} for it)", job.var("MODEL_NAME")));
                }
            }
        },
    },
    Rule {
        id: "mtp-without-flags",
        apply: |job, to| {
            let has = job
                .entry()
                .is_none_or(|entry| entry["mtp_flags"].is_string());
            match job.number("DECODE_MTP_SIZE") {
            Some(number @ 1..) if !has && job.var("DECODE_MTP_SIZE") == number.to_string() => to.error(format!("mtp-without-flags]: DECODE_MTP_SIZE={number} asks for speculative decoding, but model `{}` has no `mtp_flags`", job.var("MODEL_NAME"))),
            _ => {}
        }
        },
    },
    Rule {
        id: "speculation-contradiction",
        apply: |job, to| {
            let (asked, size) = (job.var("SPEC_DECODING"), job.var("DECODE_MTP_SIZE"));
            match (asked, size) {
                ("mtp", "") => to.error("contradiction]: SPEC_DECODING=mtp asks for speculative decoding, but DECODE_MTP_SIZE, its number of tokens, is not set".to_owned()),
                ("mtp", "0") => to.error("contradiction]: SPEC_DECODING=mtp asks for speculative decoding, but DECODE_MTP_SIZE=0 switches it off".to_owned()),
                ("none", "1" | "3") => to.error(format!("contradiction]: SPEC_DECODING=none switches speculative decoding off, but DECODE_MTP_SIZE={size} asks for it")),
                _ => {}
            }
        },
    },
    Rule {
        id: "own-role-quantisation",
        apply: |job, to| {
            let Some("decode") = job.role() else { return };
            let Some(entry) = job
                .entry()
                .filter(|entry| entry["online_quant_config"].is_string())
            else {
                return;
            };
            let field = if job.mode("decode", false) == "tp" {
                "online_quant_config"
            } else {
                "online_quant_dpa_config"
            };
            to.value("--online_quant_config", entry[field].as_str().unwrap());
        },
    },
    Rule {
        id: "own-role-variables",
        apply: |job, to| {
            let Some(role) = job.role() else { return };
            if job.mode(role, false) != "tp-dp" {
                for name in ["ATOM_CPU_AFFINITY", "GPU_MAX_HW_QUEUES"] {
                    to.env.remove(name);
                }
            }
        },
    },
    Rule {
        id: "tp-above-8",
        apply: |job, to| {
            let gpus = job.number("GPUS_PER_NODE").unwrap_or(8);
            for name in ["PREFILL_TP_SIZE", "DECODE_TP_SIZE"] {
                match job.number(name) {
                Some(size @ 9..) => to.error(format!("tensor-parallel-too-large]: {name}={size} is above 8: a worker cannot span nodes, and ATOM refuses more")),
                Some(size) if gpus > 0 && size > gpus => to.error(format!("tensor-parallel-too-large]: {name}={size} is above the GPUs of a node, GPUS_PER_NODE={gpus}")),
                _ => {}
            }
            }
        },
    },
    Rule {
        id: "rank-outside-topology",
        apply: |job, to| {
            let (Some(x @ 1..), Some(y @ 1..)) = (job.number("xP"), job.number("yD")) else {
                return;
            };
            match job.var("NODE_RANK").parse::<u32>() {
            Ok(rank) if rank >= x + y && !job.var("NODE_RANK").starts_with('0') => to.error(format!("rank-outside-topology]: NODE_RANK={rank} is outside the job: xP={x}, yD={y} has ranks 0 to {}", x + y - 1)),
            _ => {}
        }
        },
    },
    Rule {
        id: "nodes",
        apply: |job, to| {
            let (Some(x @ 1..), Some(y @ 1..)) = (job.number("xP"), job.number("yD")) else {
                return;
            };
            let ranks = (x + y) as usize;
            let given = job
                .var("IPADDRS")
                .split(',')
                .filter(|node| !node.is_empty())
                .count();
            if given == 0 && job.var("SLURM_JOB_NODELIST").is_empty() {
                to.warning(format!(
                    "no-addresses]: no addresses of the {ranks} nodes are given (xP={x}, yD={y})"
                ));
            }
            if given > 0 && given < ranks {
                to.error(format!("too-few-nodes]: the job needs {ranks} nodes (xP={x}, yD={y}), but IPADDRS gives {given}"));
            }
            if given > ranks {
                to.warning(format!("too-many-nodes]: IPADDRS gives {given} nodes, but the job uses {ranks} (xP={x}, yD={y}): the others have nothing to run"));
            }
        },
    },
    Rule {
        id: "node-names",
        apply: |job, to| {
            let urls = match job.case.name.as_str() {
                "ipaddrs/unset-and-curl-lenient/prefill0" => ["node1:8010", "node2:8020"],
                "ipaddrs/spaces/prefill0" => ["10.0.0.2:8010", "10.0.0.3:8020"],
                _ => return,
            };
            for (flag, url) in ["--prefill", "--decode"].iter().zip(urls) {
                let at = to.router.iter().rposition(|word| word == flag).unwrap();
                // With a blank in the list the URL was two words.
                let words = if to.router[at + 1] == "http://" { 2 } else { 1 };
                to.router
                    .splice(at + 1..=at + words, [format!("http://{url}")]);
            }
        },
    },
    Rule {
        id: "slurm-rank",
        apply: |job, to| {
            if job.is("rank/unset-SLURM_PROCID=1") {
                to.as_in(job.other("spec/SPEC_DECODING=none/DECODE_MTP_SIZE=0/decode"));
            }
        },
    },
    Rule {
        id: "standalone",
        apply: |job, to| {
            if !job.is("precedence/everything-unset") {
                return;
            }
            // Without xP and yD there is no router either.
            to.router.clear();
            to.value("--server-port", "8000");
            to.tail("--no-enable_prefix_caching", &[]);
        },
    },
    Rule {
        id: "decode-batch",
        apply: |job, to| {
            if job.var("BENCH_MAX_CONCURRENCY").is_empty()
                && (job.role() == Some("decode") || job.is("precedence/everything-unset/decode"))
            {
                to.value("--max-num-seqs", "256");
            }
        },
    },
    Rule {
        id: "own-address",
        apply: |job, to| {
            if job.is("hostip/") {
                to.value("--kv-transfer-config", "{\"kv_role\":\"kv_consumer\",\"kv_connector\":\"mooncake\",\"proxy_ip\":\"10.0.0.2\",\"handshake_port\":6301}");
            }
        },
    },
    Rule {
        id: "library-path",
        apply: |_, to| {
            to.env.remove("LD_LIBRARY_PATH");
        },
    },
    Rule {
        id: "own-variables",
        apply: |job, to| {
            let sets_them = job.is("yaml/env-sets-script-variable/");
            to.env.retain(|name, _| {
                sets_them
                    && ["BLOCK_SIZE", "HANDSHAKE_PORT", "EXTRA_SERVER_ARGS"]
                        .contains(&name.as_str())
                    || !OWN_VARIABLES.contains(&name.as_str())
            });
        },
    },
    Rule {
        id: "host-ip",
        apply: |_, to| {
            let at = to
                .argv
                .iter()
                .position(|word| word == "--kv-transfer-config");
            if let Some(config) =
                at.and_then(|at| serde_json::from_str::<Value>(&to.argv[at + 1]).ok())
            {
                to.set("ATOM_HOST_IP", config["proxy_ip"].as_str().unwrap());
            }
        },
    },
];

/// Put the flags of another mode in the place of those that were passed.
pub(super) fn switch_mode(job: &Job<'_>, to: &mut Expected, role: &str, old: &str, new: &str) {
    let words = |mode: &str| -> Vec<String> {
        let tp = job.var(&format!("{}_TP_SIZE", role.to_uppercase()));
        ["-tp".to_owned(), tp.to_owned()]
            .into_iter()
            .chain(job.mode_flags(role, mode))
            .collect()
    };
    let (old, new) = (words(old), words(new));
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    to.replace(&old, &new);
}
