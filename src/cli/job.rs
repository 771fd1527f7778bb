//! The options that describe a job, and where its files are.

#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "in help texts, brackets name the variable that stands behind an option"
)]

use clap::{Args, ValueEnum};

use crate::domain::settings::Layout;
use crate::domain::topology::{Mode, Role};

/// Which models file.
#[derive(Debug, Clone, Default, Args)]
pub struct ModelsFileArgs {
    /// Models file [ATOM_MODELS_FILE, $ATOM_WS_PATH/models_atom.yaml; else the built-in one]; `-` reads standard input.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub models_file: Option<String>,
}

/// A job's variables in a file.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvFileArgs {
    /// Read NAME=VALUE and `export NAME=VALUE` lines of a job script or env file; they win over the environment.
    #[arg(long, value_name = "FILE", help_heading = "Topology")]
    pub env_file: Option<String>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The options that describe a job; shared by all commands that resolve one.
#[derive(Debug, Clone, Default, Args)]
#[expect(missing_docs, reason = "each option's help is its documentation")]
pub struct JobArgs {
    #[command(flatten)]
    pub file: ModelsFileArgs,
    /// Model to start, by its name in the models file [MODEL_NAME].
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub model: Option<String>,
    /// Folder that holds the model folders [MODEL_DIR].
    #[arg(long, value_name = "DIR", help_heading = "Model")]
    pub model_dir: Option<String>,
    /// The model's own folder or hub id, whatever its name [MODEL_PATH when MODEL_DIR is unset].
    #[arg(long, value_name = "PATH|ID", help_heading = "Model")]
    pub model_path: Option<String>,

    /// Parallel mode of every worker [ENABLE_EP and ENABLE_DP of the role; else tp].
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Parallelism")]
    pub mode: Option<Mode>,
    /// Parallel mode of prefill workers [PREFILL_ENABLE_EP, PREFILL_ENABLE_DP].
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Parallelism")]
    pub prefill_mode: Option<Mode>,
    /// Parallel mode of decode workers [DECODE_ENABLE_EP, DECODE_ENABLE_DP].
    #[arg(long, value_enum, value_name = "MODE", help_heading = "Parallelism")]
    pub decode_mode: Option<Mode>,
    /// Tensor-parallel size of every worker, 1 to 8 [else 8].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Parallelism",
        allow_hyphen_values = true
    )]
    pub tp: Option<String>,
    /// Tensor-parallel size of prefill workers [PREFILL_TP_SIZE].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Parallelism",
        allow_hyphen_values = true
    )]
    pub prefill_tp: Option<String>,
    /// Tensor-parallel size of decode workers [DECODE_TP_SIZE].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Parallelism",
        allow_hyphen_values = true
    )]
    pub decode_tp: Option<String>,
    /// GPUs of a node [GPUS_PER_NODE; else 8].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Parallelism",
        allow_hyphen_values = true
    )]
    pub gpus_per_node: Option<String>,
    /// Speculative tokens a step; 0 is none [DECODE_MTP_SIZE].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Parallelism",
        allow_hyphen_values = true
    )]
    pub mtp: Option<String>,

    /// Role of this worker [by rank when the topology is known; else standalone].
    #[arg(long, value_enum, value_name = "ROLE", help_heading = "Topology")]
    pub role: Option<Role>,
    /// Index of this node in the job, from 0 [NODE_RANK; SLURM_PROCID when a topology is given].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Topology",
        allow_hyphen_values = true
    )]
    pub rank: Option<String>,
    /// Which worker of this node, from 0, where a packed layout puts several there.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Topology",
        allow_hyphen_values = true
    )]
    pub worker: Option<String>,
    /// Number of prefill workers [xP].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Topology",
        allow_hyphen_values = true
    )]
    pub prefill_workers: Option<String>,
    /// Number of decode workers [yD].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Topology",
        allow_hyphen_values = true
    )]
    pub decode_workers: Option<String>,
    /// Placement of workers on nodes [else spread: one worker a node].
    #[arg(long, value_enum, value_name = "LAYOUT", help_heading = "Topology")]
    pub layout: Option<Layout>,
    /// Addresses or names of the nodes in rank order, with commas; or a SLURM list `a[01-04]` [IPADDRS, SLURM_STEP_NODELIST, SLURM_JOB_NODELIST].
    #[arg(long, value_name = "LIST", help_heading = "Topology")]
    pub nodes: Option<String>,
    /// Address of rank 0 [NODE0_ADDR; else the first of the nodes].
    #[arg(long, value_name = "ADDR", help_heading = "Topology")]
    pub node0_addr: Option<String>,
    /// Address that this worker announces for KV transfer [own entry of the nodes; else that of the route out].
    #[arg(long, value_name = "ADDR", help_heading = "Topology")]
    pub host_ip: Option<String>,

    /// Server port of prefill workers [PREFILL_PORT; else 8010].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub prefill_port: Option<String>,
    /// Server port of decode workers [DECODE_PORT; else 8020].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub decode_port: Option<String>,
    /// Server port of a standalone worker [else 8000].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub server_port: Option<String>,
    /// Port of the router [ROUTER_PORT; else 8000].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub router_port: Option<String>,
    /// First KV-transfer handshake port [HANDSHAKE_PORT; else 6301].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub handshake_port: Option<String>,
    /// Metrics port of the router [PROMETHEUS_PORT; else 29100].
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "Ports",
        allow_hyphen_values = true
    )]
    pub prometheus_port: Option<String>,

    /// KV-cache block size in tokens [models file, BLOCK_SIZE; else 16].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub block_size: Option<String>,
    /// Fraction of GPU memory, as --gpu-memory-utilization [models file, MEM_FRAC_STATIC; else 0.85].
    #[arg(
        long,
        value_name = "FRACTION",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub mem_frac_static: Option<String>,
    /// Longest sequence in tokens [models file, MAX_MODEL_LEN].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub max_model_len: Option<String>,
    /// Largest batch in sequences; on the command line for decode as well, whatever the concurrency [models file, MAX_NUM_SEQS; else 256].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub max_num_seqs: Option<String>,
    /// The same for decode workers alone [DECODE_MAX_NUM_SEQS; else --max-num-seqs; else the largest concurrency; else as for prefill].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub decode_max_num_seqs: Option<String>,
    /// Concurrency levels of the benchmark, `8x16x32` or `8,16,32` [BENCH_MAX_CONCURRENCY].
    #[arg(
        long,
        value_name = "LIST",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub max_concurrency: Option<String>,
    /// Most tokens a step [models file, MAX_NUM_BATCHED_TOKENS].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub max_num_batched_tokens: Option<String>,
    /// Scheduler delay factor [models file, SCHEDULER_DELAY_FACTOR].
    #[arg(
        long,
        value_name = "FACTOR",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub scheduler_delay_factor: Option<String>,
    /// CUDA-graph batch sizes of decode and standalone workers, `[1,2,4]` or `1,2,4` [models file; decode else 1,2,4,8,16,24…256].
    #[arg(
        long,
        value_name = "LIST",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub cudagraph_capture_sizes: Option<String>,
    /// KV-cache arguments in place of the model's.
    #[arg(
        long,
        value_name = "WORDS",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub kv_cache_flags: Option<String>,
    /// Prefix caching [ENABLE_PREFIX_CACHING; else off for prefill and decode, the server's own default for standalone].
    #[arg(long, value_enum, value_name = "on|off", help_heading = "Tuning")]
    pub prefix_caching: Option<Switch>,

    /// Extra arguments of every server, one quoted string [EXTRA_SERVER_ARGS].
    #[arg(
        long,
        value_name = "WORDS",
        help_heading = "Server and router",
        allow_hyphen_values = true
    )]
    pub server_args: Option<String>,
    /// Extra arguments of prefill workers, after the shared ones [PREFILL_EXTRA_SERVER_ARGS].
    #[arg(
        long,
        value_name = "WORDS",
        help_heading = "Server and router",
        allow_hyphen_values = true
    )]
    pub prefill_server_args: Option<String>,
    /// Extra arguments of decode workers, after the shared ones [DECODE_EXTRA_SERVER_ARGS].
    #[arg(
        long,
        value_name = "WORDS",
        help_heading = "Server and router",
        allow_hyphen_values = true
    )]
    pub decode_server_args: Option<String>,
    /// KV-transfer configuration of prefill workers, in place of the generated one [PREFILL_KV_TRANSFER_CONFIG].
    #[arg(long, value_name = "JSON", help_heading = "Server and router")]
    pub prefill_kv_transfer_config: Option<String>,
    /// KV-transfer configuration of decode workers, in place of the generated one [DECODE_KV_TRANSFER_CONFIG].
    #[arg(long, value_name = "JSON", help_heading = "Server and router")]
    pub decode_kv_transfer_config: Option<String>,
    /// Variable for the server, over everything else; may be repeated.
    #[arg(
        long = "env",
        value_name = "KEY=VALUE",
        help_heading = "Server and router",
        allow_hyphen_values = true
    )]
    pub env: Vec<String>,
    /// Python interpreter of the server [ATOM_PYTHON; else python3].
    #[arg(long, value_name = "PATH", help_heading = "Server and router")]
    pub python: Option<String>,
    /// The router [ATOM_ROUTER; else /usr/local/bin/atomesh].
    #[arg(long, value_name = "PATH", help_heading = "Server and router")]
    pub router_bin: Option<String>,
    /// Routing policy [ROUTER_POLICY; else random].
    #[arg(long, value_name = "POLICY", help_heading = "Server and router")]
    pub router_policy: Option<String>,
    /// Extra arguments of the router, one quoted string.
    #[arg(
        long,
        value_name = "WORDS",
        help_heading = "Server and router",
        allow_hyphen_values = true
    )]
    pub router_args: Option<String>,
    /// Parent folder of the workers' own caches in packed layouts [ATOMESH_WORKER_CACHE_BASE; else in TMPDIR].
    #[arg(long, value_name = "DIR", help_heading = "Server and router")]
    pub worker_cache: Option<String>,

    /// Seconds that rank 0 waits for the servers [WAIT_SERVER_TIMEOUT; else 2500].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Waiting",
        allow_hyphen_values = true
    )]
    pub wait_server_timeout: Option<String>,
    /// Seconds that rank 0 waits for the router [WAIT_ROUTER_TIMEOUT; else 300].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Waiting",
        allow_hyphen_values = true
    )]
    pub wait_router_timeout: Option<String>,

    /// Start although the checks of the command found errors.
    #[arg(long, help_heading = "Output")]
    pub no_check: bool,
    /// Only warnings and errors on stderr.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Say on stderr what was read, where settings come from, which lost, what happens to processes; twice: everything [ATOM_LAUNCH_LOG].
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
}
