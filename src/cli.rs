//! The command line as types. Values stay text here: `input/settings/` reads them together with the environment, so that all
//! mistakes of both come out at once.

#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "in help texts, brackets name the variable that stands behind an option"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::domain::delay::Delay;
use crate::domain::settings::Layout;
use crate::domain::topology::{Mode, Role};

const ABOUT: &str = "Start AMD's ATOM inference server: models_atom.yaml and a job's variables in, one exact command out";

const AFTER: &str = "Examples:
  atom-launch --model DeepSeek-V4-Pro --mode ep-dp --dry-run    print the command, start nothing
  atom-launch --model DeepSeek-V4-Pro --mode ep-dp              become the server
  atom-launch check models_atom.yaml                            find mistakes in a models file
  atom-launch explain --model DeepSeek-V4-Pro --block-size      where does this value come from?

Every option that names a variable in [brackets] takes it from there when it is not given. An empty variable is an unset one.
Exit codes: 0 done, 1 findings, 2 usage or configuration, 69 never ready, 70 a bug of ours, 74 stdout cannot be written,
124 workload timed out, 126/127 cannot execute/not found, otherwise the code of the process that failed.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "atom-launch", version, about = ABOUT, after_help = AFTER, max_term_width = 110,
          args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Cli {
    /// A subcommand; without one the server is started.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the plain launch.
    #[command(flatten)]
    pub launch: LaunchArgs,
}

/// The plain launch alone.
#[derive(Debug, Parser)]
#[command(name = "atom-launch", disable_help_flag = true)]
struct PlainLaunch {
    #[command(flatten)]
    launch: LaunchArgs,
}

impl Cli {
    /// Read a command line.
    ///
    /// The plain launch is read without the subcommands: building their options would cost more than all else that it does. What is
    /// not understood that way (a subcommand, `--help`, a mistake) is read again with all of them.
    pub fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let is_plain = words
            .get(1)
            .is_none_or(|word| word.to_string_lossy().starts_with('-'));
        if is_plain && let Ok(plain) = PlainLaunch::try_parse_from(words) {
            return Ok(Self {
                command: None,
                launch: plain.launch,
            });
        }
        Self::try_parse_from(explain_subject(words.to_vec()))
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Live this rank's whole life: server, health waits, router, workload, teardown.
    Node(NodeArgs),
    /// Show what every rank of a job will run: role, address, GPUs, ports, command.
    Plan(PlanArgs),
    /// Show where each argument and variable comes from, and what it displaced.
    Explain(ExplainArgs),
    /// Find mistakes in models files: all at once, each with its place and a fix.
    Check(CheckArgs),
    /// List the models and which modes and methods each has.
    Models(ModelsArgs),
    /// Show what a change of the models file does to every resolved command.
    Diff(DiffArgs),
    /// Wait until every URL answers; exit 69 when the time is up.
    Wait(WaitArgs),
    /// Show what all ranks of a job did, from the records in its log folder.
    Report(ReportArgs),
    /// Print a SLURM job script for the options given: to read, edit and submit.
    Sbatch(Box<SbatchArgs>),
    /// Try a whole job on this machine: every rank for real, with a stand-in server and router.
    Rehearse(RehearseArgs),
    /// Print the JSON Schema of models files.
    Schema,
    /// Print completions for a shell, with the names of the models.
    Completions(CompletionsArgs),
    /// Print the manual page, or that of a subcommand.
    Man(ManArgs),
}

/// How a command is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CommandFormat {
    /// One line for bash.
    #[default]
    Shell,
    /// JSON with `argv` and `env`.
    Json,
    /// The words of argv, each ended by a NUL.
    Nul,
}

/// Text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TextFormat {
    /// An aligned table.
    #[default]
    Text,
    /// JSON.
    Json,
}

/// `atom-launch [options] [-- ARGS…]`
#[derive(Debug, Args)]
pub struct LaunchArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Print the command instead of running it; touches nothing [DRY_RUN].
    #[arg(long, help_heading = "Launch")]
    pub dry_run: bool,
    /// Form of the dry run.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "shell",
        requires = "dry_run",
        help_heading = "Launch"
    )]
    pub format: CommandFormat,
    /// Extra arguments of the server, after all others.
    #[arg(last = true, value_name = "SERVER ARGS", allow_hyphen_values = true)]
    pub trailing: Vec<String>,
}

/// `atom-launch node [options] [-- WORKLOAD…]`
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// How the rank lives.
    #[command(flatten)]
    pub life: LifeArgs,
    /// Print the commands of this rank instead of running them; touches nothing [DRY_RUN].
    #[arg(long, help_heading = "Launch")]
    pub dry_run: bool,
    /// Program and arguments of the workload, run without a shell once the router is ready; without it, serve until a signal.
    #[arg(last = true, value_name = "WORKLOAD", allow_hyphen_values = true)]
    pub workload: Vec<OsString>,
}

/// How a rank lives; shared by `node` and what starts nodes.
#[derive(Debug, Clone, Default, Args)]
pub struct LifeArgs {
    /// Folder of logs and records [else /run_logs/slurm_job-$SLURM_JOB_ID where /run_logs exists, else below atom-launch-logs].
    #[arg(long, value_name = "DIR", help_heading = "Logs")]
    pub log_dir: Option<String>,
    /// Folder into which this rank's logs are copied at the end, whatever the end [BENCHMARK_LOGS_DIR].
    #[arg(long, value_name = "DIR", help_heading = "Logs")]
    pub collect_logs: Option<String>,
    /// Ask the router for one token before the workload starts; fail when none comes.
    #[arg(long, help_heading = "Waiting")]
    pub smoke: bool,
    /// Seconds between two health checks of one endpoint [else 1].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Waiting",
        allow_hyphen_values = true
    )]
    pub poll_interval: Option<String>,
    /// Seconds without readiness after an engine process died, until the rank gives up [else 60].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Waiting",
        allow_hyphen_values = true
    )]
    pub engine_death_grace: Option<String>,
    /// Seconds that the workload may take; then exit 124 [else no limit].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Ending",
        allow_hyphen_values = true
    )]
    pub workload_timeout: Option<String>,
    /// Seconds to go on serving after the workload [else 0].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Ending",
        allow_hyphen_values = true
    )]
    pub linger: Option<String>,
    /// Seconds from TERM to KILL [else 20].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Ending",
        allow_hyphen_values = true
    )]
    pub grace: Option<String>,
}

/// `atom-launch wait URL…`
#[derive(Debug, Args)]
pub struct WaitArgs {
    /// URLs that must answer with a status from 200 to 299.
    #[arg(value_name = "URL", required = true)]
    pub urls: Vec<String>,
    /// Seconds for all of them together.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "2500",
        allow_hyphen_values = true
    )]
    pub timeout: String,
    /// Seconds between two checks of one URL.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1",
        allow_hyphen_values = true
    )]
    pub poll_interval: String,
    /// No lines on stderr while waiting.
    #[arg(short, long)]
    pub quiet: bool,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// A table.
    #[default]
    Text,
    /// A page that needs nothing else, with the timeline drawn.
    Html,
}

/// `atom-launch report LOG_DIR`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Folder with the records `launch-rank<N>.json`, or with one folder a rank.
    #[arg(value_name = "LOG_DIR")]
    pub folder: PathBuf,
    /// Form of the report.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: ReportFormat,
    /// End with the code of the rank that failed first, which is what a job script should end with.
    #[arg(long)]
    pub exit_code: bool,
}

/// `atom-launch sbatch [options] [-- WORKLOAD…]`
#[derive(Debug, Args)]
pub struct SbatchArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// How each rank lives.
    #[command(flatten)]
    pub life: LifeArgs,
    /// What SLURM is asked for.
    #[command(flatten)]
    pub slurm: SlurmArgs,
    /// Program and arguments of the workload; without it, the job serves until its time is over or `scancel`.
    #[arg(last = true, value_name = "WORKLOAD", allow_hyphen_values = true)]
    pub workload: Vec<String>,
}

/// What the job script asks SLURM for.
#[derive(Debug, Clone, Default, Args)]
pub struct SlurmArgs {
    /// Name of the job [else the model and the counts of workers].
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub job_name: Option<String>,
    /// Nodes to allocate [else as many as the job has ranks].
    #[arg(long, value_name = "N", help_heading = "SLURM", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes_count: Option<u32>,
    /// Partition.
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub partition: Option<String>,
    /// Account.
    #[arg(long, value_name = "NAME", help_heading = "SLURM")]
    pub account: Option<String>,
    /// Time limit of the job, as sbatch takes it [else 02:00:00].
    #[arg(long, value_name = "TIME", help_heading = "SLURM")]
    pub time: Option<String>,
    /// Generic resources of a node, such as `gpu:8`, on clusters that want them asked for.
    #[arg(long, value_name = "LIST", help_heading = "SLURM")]
    pub gres: Option<String>,
    /// A further `#SBATCH` option, such as `--qos=high`; may be repeated.
    #[arg(
        long,
        value_name = "OPTION",
        help_heading = "SLURM",
        allow_hyphen_values = true
    )]
    pub sbatch_option: Vec<String>,
    /// Let SLURM start the job again when a node fails; each attempt has a log folder of its own.
    #[arg(long, help_heading = "SLURM")]
    pub requeue: bool,
    /// Run in this image through pyxis and enroot (`srun --container-image`).
    #[arg(
        long,
        value_name = "IMAGE",
        help_heading = "Container",
        conflicts_with = "docker_image"
    )]
    pub container_image: Option<String>,
    /// Run in this image through `docker run`.
    #[arg(long, value_name = "IMAGE", help_heading = "Container")]
    pub docker_image: Option<String>,
    /// A folder the container must see besides the model folder and the logs, `HOST[:INSIDE]`; may be repeated.
    #[arg(long, value_name = "PATH", help_heading = "Container")]
    pub mount: Vec<String>,
}

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum PlanFormat {
    /// A table of 100 columns.
    #[default]
    Text,
    /// JSON, described in docs/plan.md.
    Json,
    /// The commands for bash.
    Shell,
}

/// `atom-launch plan`; `--rank N` shows that rank alone.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Where the job's variables are, besides the environment.
    #[command(flatten)]
    pub env_file: EnvFileArgs,
    /// Form of the plan.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: PlanFormat,
}

/// A job's variables in a file.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvFileArgs {
    /// Read NAME=VALUE and `export NAME=VALUE` lines of a job script or env file; they win over the environment.
    #[arg(long, value_name = "FILE", help_heading = "Topology")]
    pub env_file: Option<String>,
}

/// `atom-launch rehearse [options] [-- WORKLOAD…]`
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Where the job's variables are, besides the environment.
    #[command(flatten)]
    pub env_file: EnvFileArgs,
    /// How every rank lives; its logs are in the rehearsal's own folder unless another is given.
    #[command(flatten)]
    pub life: LifeArgs,
    /// Time that the stand-in servers take to load.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1s",
        help_heading = "Rehearsal"
    )]
    pub load_time: Delay,
    /// Something that goes wrong on purpose: `rank=2 kind=crash:3 at=2s`; may be repeated.
    ///
    /// Who: rank=N, role=prefill|decode|standalone|router, worker=NAME. What: kind=crash:CODE, kill, hang, never-ready, ignore-term,
    /// fork-orphan, setsid-orphan, engine-death, port-stolen, router-crash, slow-health:SECONDS, slow-load:SECONDS.
    /// When: at=SECONDS since its start, at=ready+SECONDS, at=workload+SECONDS.
    #[arg(long, value_name = "FAULT", help_heading = "Rehearsal")]
    pub fault: Vec<String>,
    /// Keep the rehearsal's folder with its programs, and its logs where --log-dir names no other.
    #[arg(long, help_heading = "Rehearsal")]
    pub keep: bool,
    /// The workload of rank 0, run without a shell; without one a completion is asked for.
    #[arg(last = true, value_name = "WORKLOAD", allow_hyphen_values = true)]
    pub workload: Vec<OsString>,
}

/// `atom-launch completions SHELL`
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
    /// Which models.
    #[command(flatten)]
    pub file: ModelsFileArgs,
}

/// `atom-launch man [SUBCOMMAND]`
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Subcommand; without it the program's own page.
    #[arg(value_name = "SUBCOMMAND")]
    pub subcommand: Option<String>,
}

/// `atom-launch explain [FLAG|VARIABLE]`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// Where the job's variables are, besides the environment.
    #[command(flatten)]
    pub env_file: EnvFileArgs,
    /// Form of the answer.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
    /// Explain only this flag (as it is typed) or variable.
    #[arg(value_name = "FLAG|VARIABLE", allow_hyphen_values = true)]
    pub subject: Option<String>,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CheckFormat {
    /// With the source underlined.
    #[default]
    Text,
    /// JSON.
    Json,
    /// Annotations of a pull request on GitHub.
    Github,
}

/// `atom-launch check [FILE…]`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Models files (`-` reads standard input); without one, the file that a launch would read.
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    /// Form of the findings.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
    /// Do not report this kind of finding; may be repeated.
    #[arg(long, value_name = "CODE")]
    pub allow: Vec<String>,
    /// Make warnings of this kind errors; may be repeated.
    #[arg(long, value_name = "CODE")]
    pub deny: Vec<String>,
    /// Check against the output of `python3 -m atom.entrypoints.openai_server --help` of an image (`-` reads standard input).
    #[arg(long, value_name = "FILE")]
    pub server_help: Option<String>,
    /// Check against ATOM's main branch as of a day, YYYY-MM-DD (UTC), such as an image's date.
    #[arg(long, value_name = "DATE", conflicts_with = "server_help")]
    pub atom_date: Option<String>,
    /// Explain a kind of finding, or list them all.
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "all", conflicts_with_all = ["files", "server_help", "atom_date"])]
    pub explain: Option<String>,
}

/// `atom-launch models`
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Which file.
    #[command(flatten)]
    pub file: ModelsFileArgs,
    /// Form of the list.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: TextFormat,
}

/// Form of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiffFormat {
    /// For a terminal.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
}

/// `atom-launch diff OLD NEW`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The file before (`-` reads standard input).
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The file after (`-` reads standard input).
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Form of the diff.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub format: DiffFormat,
    /// Exit with 1 when anything changes.
    #[arg(long)]
    pub exit_code: bool,
}

/// Which models file.
#[derive(Debug, Clone, Default, Args)]
pub struct ModelsFileArgs {
    /// Models file [ATOM_MODELS_FILE, $ATOM_WS_PATH/models_atom.yaml; else the built-in one]; `-` reads standard input.
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub models_file: Option<String>,
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
    /// Largest batch in sequences [models file, MAX_NUM_SEQS; else 256].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Tuning",
        allow_hyphen_values = true
    )]
    pub max_num_seqs: Option<String>,
    /// The same for decode workers alone [DECODE_MAX_NUM_SEQS; else the largest concurrency; else as for prefill].
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
    /// No configuration banner on stderr.
    #[arg(short, long, help_heading = "Output")]
    pub quiet: bool,
    /// Say more on stderr; twice for details.
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
}

/// Separate the flag that `explain` is asked about from options of the same name.
///
/// `explain --block-size` asks about `--block-size`; `explain --block-size 64` sets it. So an option of ours that takes a value and
/// gets none, and any flag that is not ours, is the subject: it is moved behind `--`.
fn explain_subject(words: Vec<OsString>) -> Vec<OsString> {
    use clap::CommandFactory as _;
    if words.get(1).is_none_or(|word| word != "explain") || words.iter().any(|word| word == "--") {
        return words;
    }
    let command = Cli::command();
    let Some(explain) = command.find_subcommand("explain") else {
        return words;
    };
    let takes_value = |word: &str| {
        explain
            .get_arguments()
            .find(|arg| {
                arg.get_long()
                    .is_some_and(|long| word == format!("--{long}"))
                    || arg
                        .get_short()
                        .is_some_and(|short| word == format!("-{short}"))
            })
            .map(|arg| arg.get_action().takes_values())
    };
    // A value may start with a dash (`--server-args '-tp 4'`), but another option is none.
    let is_option = |word: &str| word.starts_with("--") || takes_value(word).is_some();
    let mut kept = Vec::new();
    let mut subject = None;
    let mut rest = words.into_iter().peekable();
    kept.extend(rest.by_ref().take(2));
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy().into_owned();
        let known = takes_value(text.split('=').next().unwrap_or_default());
        let is_help = matches!(text.as_str(), "-h" | "--help" | "-V" | "--version");
        let bundle =
            text.len() > 1 && text.starts_with("-v") && text[1..].chars().all(|c| c == 'v');
        match known {
            Some(true) if !text.contains('=') => match rest.peek() {
                Some(next) if !is_option(&next.to_string_lossy()) => {
                    kept.push(word);
                    kept.extend(rest.next());
                }
                _ => subject = Some(word),
            },
            None if text.starts_with('-') && text.len() > 1 && !is_help && !bundle => {
                subject = Some(word);
            }
            _ => kept.push(word),
        }
    }
    if let Some(subject) = subject {
        kept.push("--".into());
        kept.push(subject);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn moved(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words: Vec<_> = explain_subject(words)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    #[test]
    fn explain_asks_about_an_option_without_a_value() {
        assert_eq!(
            moved("atom-launch explain --block-size"),
            "atom-launch explain -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain --block-size --format json"),
            "atom-launch explain --format json -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain --block-size 64 --kv_cache_dtype -q"),
            "atom-launch explain --block-size 64 -q -- --kv_cache_dtype"
        );
        assert_eq!(
            moved("atom-launch explain --block-size -q"),
            "atom-launch explain -q -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain -tp"),
            "atom-launch explain -- -tp"
        );
        assert_eq!(moved("atom-launch --dry-run"), "atom-launch --dry-run");
        assert_eq!(
            moved("atom-launch explain BLOCK_SIZE -vv"),
            "atom-launch explain BLOCK_SIZE -vv"
        );
    }
}
