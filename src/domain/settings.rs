//! A job's settings, typed, each with its origin.

use super::provenance::Sourced;
use super::topology::{Mode, Port, Role};

/// One value for each role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByRole<T> {
    /// For prefill workers.
    pub prefill: T,
    /// For decode workers.
    pub decode: T,
    /// For a standalone worker.
    pub standalone: T,
}

impl<T> ByRole<T> {
    /// The value of a role.
    pub fn get(&self, role: Role) -> &T {
        match role {
            Role::Prefill => &self.prefill,
            Role::Decode => &self.decode,
            Role::Standalone => &self.standalone,
        }
    }
}

/// A tuning number: command line > models file > environment > default. The order is kept in `resolve/tuning.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tuning {
    /// `--block-size`: tokens in a block of the KV cache.
    BlockSize,
    /// `--gpu-memory-utilization`: fraction of a GPU's memory, above 0 and at most 1.
    MemFracStatic,
    /// `--max-num-seqs`: sequences in a batch.
    MaxNumSeqs,
    /// `--max-model-len`: tokens of a sequence, prompt and answer together.
    MaxModelLen,
    /// `--max-num-batched-tokens`: tokens of all sequences in a step.
    MaxNumBatchedTokens,
    /// `--scheduler-delay-factor`: a plain factor, without a unit.
    SchedulerDelayFactor,
}

/// The names of a tuning number.
#[derive(Debug, Clone, Copy)]
pub struct TuningSpec {
    /// Which one.
    pub tuning: Tuning,
    /// Field of the models file.
    pub field: &'static str,
    /// Our option.
    pub option: &'static str,
    /// Variable of the job.
    pub variable: &'static str,
    /// The server's flag.
    pub flag: &'static str,
    /// What the launcher passes where nobody says otherwise; `None` leaves the flag out, and the server has its own default.
    pub default: Option<&'static str>,
}

/// All tuning numbers in the order of the command.
pub const TUNING: [TuningSpec; 6] = [
    TuningSpec {
        tuning: Tuning::BlockSize,
        field: "block_size",
        option: "--block-size",
        variable: "BLOCK_SIZE",
        flag: "--block-size",
        default: Some("16"),
    },
    TuningSpec {
        tuning: Tuning::MemFracStatic,
        field: "mem_frac_static",
        option: "--mem-frac-static",
        variable: "MEM_FRAC_STATIC",
        flag: "--gpu-memory-utilization",
        default: Some("0.85"),
    },
    TuningSpec {
        tuning: Tuning::MaxNumSeqs,
        field: "max_num_seqs",
        option: "--max-num-seqs",
        variable: "MAX_NUM_SEQS",
        flag: "--max-num-seqs",
        default: Some("256"),
    },
    TuningSpec {
        tuning: Tuning::MaxModelLen,
        field: "max_model_len",
        option: "--max-model-len",
        variable: "MAX_MODEL_LEN",
        flag: "--max-model-len",
        default: None,
    },
    TuningSpec {
        tuning: Tuning::MaxNumBatchedTokens,
        field: "max_num_batched_tokens",
        option: "--max-num-batched-tokens",
        variable: "MAX_NUM_BATCHED_TOKENS",
        flag: "--max-num-batched-tokens",
        default: None,
    },
    TuningSpec {
        tuning: Tuning::SchedulerDelayFactor,
        field: "scheduler_delay_factor",
        option: "--scheduler-delay-factor",
        variable: "SCHEDULER_DELAY_FACTOR",
        flag: "--scheduler-delay-factor",
        default: None,
    },
];

/// What command line and environment say of a tuning number; the models file comes between the two. Both stay text, checked against the
/// number's range: `0.90` reaches the server as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TuningInput {
    /// From the command line.
    pub option: Option<Sourced<String>>,
    /// From the environment.
    pub variable: Option<Sourced<String>>,
}

/// How workers are placed on nodes.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    serde::Serialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// One worker a node.
    #[default]
    Spread,
    /// All prefill workers on node 0, one decode worker on each further node.
    PrefillPacked,
    /// One prefill worker on each node, all decode workers on the node after them.
    DecodePacked,
    /// All workers on node 0.
    Packed,
}

impl Layout {
    /// Name as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Layout::Spread => "spread",
            Layout::PrefillPacked => "prefill-packed",
            Layout::DecodePacked => "decode-packed",
            Layout::Packed => "packed",
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How many workers of each role a job has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCounts {
    /// x of xPyD.
    pub prefill: Sourced<u32>,
    /// y of xPyD.
    pub decode: Sourced<u32>,
}

/// The ports of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports {
    /// Server port by role.
    pub server: ByRole<Sourced<Port>>,
    /// The router's.
    pub router: Sourced<Port>,
    /// First of a producer's KV-transfer handshake ports.
    pub handshake: Sourced<Port>,
    /// The router's metrics port.
    pub prometheus: Sourced<Port>,
}

/// How a rank lives: what `node` needs besides the job. Times are in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct LifeSettings {
    /// `--log-dir`; `None` leaves the choice to the rule in `resolve/node.rs`.
    pub log_dir: Option<Sourced<String>>,
    /// `--collect-logs`: folder into which logs are copied at the end; `None` copies nothing.
    pub collect_logs: Option<Sourced<String>>,
    /// `--poll-interval`
    pub poll_interval: Sourced<f64>,
    /// `--smoke-timeout`
    pub smoke_timeout: Sourced<f64>,
    /// `--engine-death-grace`
    pub engine_death_grace: Sourced<f64>,
    /// `--workload-timeout`; `None` is no limit.
    pub workload_timeout: Option<Sourced<f64>>,
    /// `--linger`
    pub linger: Sourced<f64>,
    /// `--grace`
    pub grace: Sourced<f64>,
}

/// All settings of a job but those of the models file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `--dry-run`
    pub dry_run: Sourced<bool>,
    /// `--model`
    pub model: Option<Sourced<String>>,
    /// IS_AGENTIC: which variant of the model is looked up first.
    pub is_agentic: Sourced<bool>,
    /// `--role`
    pub role: Option<Sourced<Role>>,
    /// `--rank`
    pub rank: Option<Sourced<u32>>,
    /// SLURM_NODEID: which node of the step this is, from 0. Known only in a step of a job with a topology.
    pub step_node: Option<Sourced<u32>>,
    /// `--worker`: which of several workers on this node.
    pub worker: Option<Sourced<u32>>,
    /// xP and yD; `None` when no topology is given.
    pub workers: Option<WorkerCounts>,
    /// `--layout`
    pub layout: Sourced<Layout>,
    /// Parallel mode of each role.
    pub mode: ByRole<Sourced<Mode>>,
    /// Tensor-parallel size of each role: GPUs of a worker.
    pub tp: ByRole<Sourced<u32>>,
    /// `--gpus-per-node`
    pub gpus_per_node: Sourced<u32>,
    /// Addresses or names of the nodes, by rank.
    pub nodes: Option<Sourced<Vec<String>>>,
    /// Nodes of the whole allocation, where `nodes` are those of a step.
    pub job_nodes: Option<Sourced<Vec<String>>>,
    /// `--node0-addr`
    pub node0_addr: Option<Sourced<String>>,
    /// `--host-ip`
    pub host_ip: Option<Sourced<String>>,
    /// `--model-dir`
    pub model_dir: Option<Sourced<String>>,
    /// `--model-path`
    pub model_path: Option<Sourced<String>>,
    /// Speculative tokens a step.
    pub mtp: Sourced<u32>,
    /// Concurrency levels of the benchmark: requests at a time.
    pub concurrency: Option<Sourced<Vec<u64>>>,
    /// Ports.
    pub ports: Ports,
    /// Tuning numbers, in the order of [`TUNING`].
    pub tuning: [TuningInput; 6],
    /// `--kv-cache-flags`
    pub kv_cache_flags: Option<Sourced<Vec<String>>>,
    /// KV_CACHE_DTYPE, which decides nothing.
    pub kv_cache_dtype: Option<Sourced<String>>,
    /// `--cudagraph-capture-sizes`: batch sizes in sequences.
    pub capture_sizes: Option<Sourced<Vec<u64>>>,
    /// `--decode-max-num-seqs`
    pub decode_max_num_seqs: Option<Sourced<String>>,
    /// Extra arguments of every server.
    pub extra_args: Option<Sourced<Vec<String>>>,
    /// Extra arguments by role, after the shared ones.
    pub role_args: ByRole<Option<Sourced<Vec<String>>>>,
    /// Words after `--` of a launch.
    pub trailing_args: Vec<String>,
    /// `--prefix-caching`
    pub prefix_caching: Option<Sourced<bool>>,
    /// KV-transfer configuration in place of the generated one: the text of a JSON object, passed on byte for byte.
    pub kv_transfer: ByRole<Option<Sourced<String>>>,
    /// `--env`: names with values, each name once.
    pub env: Vec<(String, String)>,
    /// `--python`
    pub python: Sourced<String>,
    /// `--router-bin`
    pub router_bin: Sourced<String>,
    /// `--router-policy`
    pub router_policy: Sourced<String>,
    /// `--router-args`
    pub router_args: Option<Sourced<Vec<String>>>,
    /// `--wait-server-timeout`, seconds from the start of the servers.
    pub wait_server: Sourced<u64>,
    /// `--wait-router-timeout`, seconds from the start of the router.
    pub wait_router: Sourced<u64>,
    /// Parent folder of the workers' caches in packed layouts.
    pub worker_cache: Sourced<String>,
}
