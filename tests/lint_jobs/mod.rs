//! Jobs that are wrong in one way each. What they say is kept in `tests/lint_jobs/NAME.txt`.

use std::fs;
use std::path::Path;

/// One job.
pub(crate) struct Case {
    /// Name of the kept text; the code where there is one case of it.
    pub(crate) name: &'static str,
    /// The kind of finding that it must show.
    pub(crate) code: &'static str,
    /// Words of the command line; `␣` is a blank inside a word.
    pub(crate) args: &'static str,
    /// The environment.
    pub(crate) env: &'static [(&'static str, &'static str)],
}

const MODELS: &str = r#"Demo-8B:
  kv_cache_flags: "--kv_cache_dtype fp8"
  tp_dp_flags: "--enable-dp-attention"
  ep_dp_flags: "--enable-expert-parallel --enable-dp-attention"
  mtp_flags: "--method mtp --num-speculative-tokens"
Plain-7B:
  flags: "--enforce-eager"
Snap-7B:
  hf_dir: models--Org--Snap-7B
"#;

const JOB: &str = "#!/bin/bash\n#SBATCH -N 2\nexport MODEL_NAME=Demo-8B\nexport MODEL_DIR=\"$HOME/models\"\nexport NOTE='open\nsrun server.sh\n";

/// Files that the cases name.
pub(crate) fn write_files(folder: &Path) {
    fs::write(folder.join("models_atom.yaml"), MODELS).unwrap();
    fs::write(folder.join("job.sh"), JOB).unwrap();
    for snapshot in ["aaaa", "bbbb"] {
        fs::create_dir_all(
            folder
                .join("hub/models--Org--Snap-7B/snapshots")
                .join(snapshot),
        )
        .unwrap();
    }
}

const TABLE: (&str, &str) = ("ATOM_MODELS_FILE", "models_atom.yaml");
const DEMO: (&str, &str) = ("MODEL_NAME", "Demo-8B");
const PLAIN: (&str, &str) = ("MODEL_NAME", "Plain-7B");
const DIR: (&str, &str) = ("MODEL_DIR", "/models");
const X1: (&str, &str) = ("xP", "1");
const Y1: (&str, &str) = ("yD", "1");
const TWO: (&str, &str) = ("IPADDRS", "10.0.0.1,10.0.0.2");

/// Every job.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "unreadable-file",
        code: "unreadable-file",
        args: "plan --models-file missing.yaml",
        env: &[DEMO],
    },
    Case {
        name: "tensor-parallel-size",
        code: "tensor-parallel-size",
        args: "-q --dry-run -- -tp 9",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "mode-without-flags",
        code: "mode-without-flags",
        args: "-q --dry-run --mode tp-dp",
        env: &[TABLE, PLAIN, DIR],
    },
    Case {
        name: "mtp-without-flags",
        code: "mtp-without-flags",
        args: "-q --dry-run --mtp 1",
        env: &[TABLE, PLAIN, DIR],
    },
    Case {
        name: "speculative-tokens",
        code: "speculative-tokens",
        args: "-q --dry-run --mtp 5",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "batch-without-graph",
        code: "batch-without-graph",
        args: "plan",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("BENCH_MAX_CONCURRENCY", "64x512"),
        ],
    },
    Case {
        name: "capture-sizes",
        code: "capture-sizes",
        args: "plan --cudagraph-capture-sizes 64,128",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("BENCH_MAX_CONCURRENCY", "32"),
        ],
    },
    Case {
        name: "unknown-flag-extra",
        code: "unknown-flag",
        args: "-q --dry-run -- --enforce-eagre --kv-cache-dtypes fp8",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "launcher-flag-extra",
        code: "launcher-flag",
        args: "-q --dry-run -- --server-port 9000 --max-num-seqs 64",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "repeated-flag-extra",
        code: "repeated-flag",
        args: "-q --dry-run --server-args=--max-num-seqs␣64 -- --max-num-seqs 32 --level 3 --level 2",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "env-option",
        code: "unknown-variable",
        args: "-q --dry-run --env ATOM_NUMA_BINDING=1 --env ATOM_NUMA_BIND=true",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "no-effect-single-gpu",
        code: "no-effect",
        args: "-q --dry-run --tp 1 -- --enable-expert-parallel --all2all-backend low-latency",
        env: &[TABLE, DEMO, DIR],
    },
    Case {
        name: "kv-transfer-role",
        code: "kv-transfer",
        args: r#"plan --prefill-kv-transfer-config {"kv_connector":"mooncake","kv_role":"kv_producter","handshake_port":"6301"}"#,
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "kv-transfer-multi",
        code: "kv-transfer",
        args: r#"plan --decode-kv-transfer-config {"kv_connector":"multi","connectors":[{"kv_connector":"nixl"},{"kv_role":"kv_consumer"},{"kv_connector":"multi"},{"kv_connector":"lmcache_offload","kv_role":"both","offload_layout":"flat","max_pending_saves":"4"}]}"#,
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "kv-transfer-devices",
        code: "kv-transfer",
        args: "plan --tp 2",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("HIP_VISIBLE_DEVICES", "GPU-11aa,GPU-22bb"),
        ],
    },
    Case {
        name: "invalid-setting",
        code: "invalid-setting",
        args: "plan --tp 0",
        env: &[
            TABLE,
            DEMO,
            ("xP", "two"),
            ("yD", "5000"),
            ("ROUTER_PORT", "0"),
            ("MEM_FRAC_STATIC", "85"),
            ("IS_AGENTIC", "maybe"),
        ],
    },
    Case {
        name: "contradiction",
        code: "contradiction",
        args: "plan",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("PREFILL_ENABLE_EP", "true"),
            ("SPEC_DECODING", "mtp"),
            ("DECODE_MTP_SIZE", "0"),
        ],
    },
    Case {
        name: "bad-fault",
        code: "bad-fault",
        args: "rehearse --fault rank=7␣kind=crash:3␣at=2s",
        env: &[TABLE, DEMO, DIR, X1, Y1],
    },
    Case {
        name: "misspelt-variable",
        code: "misspelt-variable",
        args: "plan",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO, ("PREFIL_TP_SIZE", "4")],
    },
    Case {
        name: "env-file",
        code: "env-file",
        args: "plan --env-file job.sh",
        env: &[TABLE],
    },
    Case {
        name: "no-model",
        code: "no-model",
        args: "plan",
        env: &[TABLE],
    },
    Case {
        name: "no-model-folder",
        code: "no-model-folder",
        args: "-q --dry-run",
        env: &[TABLE, DEMO],
    },
    Case {
        name: "unknown-model",
        code: "unknown-model",
        args: "plan --model demo-8b",
        env: &[TABLE],
    },
    Case {
        name: "unknown-model-path",
        code: "unknown-model",
        args: "plan --model /models/Demo-8B",
        env: &[TABLE],
    },
    Case {
        name: "unclear-snapshot",
        code: "unclear-snapshot",
        args: "-q --dry-run --model Snap-7B --model-dir hub",
        env: &[TABLE],
    },
    Case {
        name: "which-worker",
        code: "which-worker",
        args: "-q --dry-run",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "which-worker-packed",
        code: "which-worker",
        args: "-q --dry-run --layout packed --tp 4 --rank 0",
        env: &[TABLE, DEMO, DIR, X1, Y1, ("IPADDRS", "10.0.0.1")],
    },
    Case {
        name: "which-worker-absent",
        code: "which-worker",
        args: "-q --dry-run --layout packed --tp 4 --rank 0 --worker 2",
        env: &[TABLE, DEMO, DIR, X1, Y1, ("IPADDRS", "10.0.0.1")],
    },
    Case {
        name: "rank-outside-topology",
        code: "rank-outside-topology",
        args: "plan",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO, ("NODE_RANK", "2")],
    },
    Case {
        name: "rank-outside-topology-launch",
        code: "rank-outside-topology",
        args: "-q --dry-run",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO, ("NODE_RANK", "2")],
    },
    Case {
        name: "mode-without-flags-by-variable",
        code: "mode-without-flags",
        args: "plan",
        env: &[TABLE, PLAIN, DIR, X1, Y1, TWO, ("DECODE_ENABLE_DP", "true")],
    },
    Case {
        name: "too-few-nodes",
        code: "too-few-nodes",
        args: "plan",
        env: &[TABLE, DEMO, DIR, ("xP", "2"), Y1, TWO],
    },
    Case {
        name: "too-many-nodes",
        code: "too-many-nodes",
        args: "plan",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            ("IPADDRS", "10.0.0.1,10.0.0.2,10.0.0.3"),
        ],
    },
    Case {
        name: "no-addresses",
        code: "no-addresses",
        args: "plan",
        env: &[TABLE, DEMO, DIR, X1, Y1],
    },
    Case {
        name: "loopback-address",
        code: "loopback-address",
        args: "plan",
        env: &[TABLE, DEMO, DIR, X1, Y1, ("IPADDRS", "127.0.1.1,10.0.0.2")],
    },
    Case {
        name: "tensor-parallel-too-large",
        code: "tensor-parallel-too-large",
        args: "plan --decode-tp 8",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("PREFILL_TP_SIZE", "16"),
            ("GPUS_PER_NODE", "4"),
        ],
    },
    Case {
        name: "too-few-gpus",
        code: "too-few-gpus",
        args: "plan --layout packed",
        env: &[TABLE, DEMO, DIR, X1, Y1, ("IPADDRS", "10.0.0.1")],
    },
    Case {
        name: "port-used-twice",
        code: "port-used-twice",
        args: "plan",
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            ("ROUTER_PORT", "8010"),
            ("HANDSHAKE_PORT", "29095"),
        ],
    },
    Case {
        name: "port-used-twice-packed",
        code: "port-used-twice",
        args: "plan --layout packed --tp 4 --router-port 29600",
        env: &[TABLE, DEMO, DIR, X1, Y1, ("IPADDRS", "10.0.0.1")],
    },
    Case {
        name: "ephemeral-port",
        code: "ephemeral-port",
        args: "plan --prefill-port 40000 --handshake-port 32765",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "router-policy",
        code: "router-policy",
        args: "plan --router-policy roundrobin",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "router-policy-alone",
        code: "router-policy",
        args: "plan --router-args=--prefill-policy=power_of_two",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
    Case {
        name: "workers-disagree",
        code: "workers-disagree",
        args: r#"plan --decode-kv-transfer-config {"kv_connector":"moriio","kv_role":"kv_consumer"}"#,
        env: &[
            TABLE,
            DEMO,
            DIR,
            X1,
            Y1,
            TWO,
            (
                "DECODE_EXTRA_SERVER_ARGS",
                "--served-model-name demo --kv_cache_dtype bf16 --method mtp --num-speculative-tokens 2",
            ),
        ],
    },
    Case {
        name: "kv-cache-dtype-unused",
        code: "kv-cache-dtype-unused",
        args: "-q --dry-run",
        env: &[TABLE, DEMO, DIR, ("KV_CACHE_DTYPE", "auto")],
    },
    Case {
        name: "router-flag",
        code: "router-flag",
        args: "plan --router-args=--dp_aware␣--policy␣random␣--queue-size␣many␣--prefil-policy=random␣word␣--json-log=1␣--api-key",
        env: &[TABLE, DEMO, DIR, X1, Y1, TWO],
    },
];
