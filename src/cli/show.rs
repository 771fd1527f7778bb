//! What only prints: a plan, where its values come from, what a job did, help for shells.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::job::{EnvFileArgs, JobArgs, ModelsFileArgs};

/// Text for people or JSON for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TextFormat {
    /// An aligned table.
    #[default]
    Text,
    /// JSON.
    Json,
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
