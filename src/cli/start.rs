//! What starts processes: the plain launch, a rank, a rehearsal; and `wait`.

#![expect(
    rustdoc::broken_intra_doc_links,
    reason = "in help texts, brackets name the variable that stands behind an option"
)]

use std::ffi::OsString;

use clap::{Args, ValueEnum};

use super::job::{EnvFileArgs, JobArgs};
use crate::domain::delay::Delay;

/// How a command is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CommandFormat {
    /// One command for bash.
    #[default]
    Shell,
    /// JSON with `argv` and `env`.
    Json,
    /// The words of argv, each ended by a NUL.
    Nul,
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
    /// Seconds that the one token of --smoke may take, the compilation of kernels included [else 300].
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Waiting",
        allow_hyphen_values = true
    )]
    pub smoke_timeout: Option<String>,
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
    /// Only warnings and errors on stderr.
    #[arg(short, long)]
    pub quiet: bool,
}
