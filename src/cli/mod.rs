//! The command line as types. Values stay text here: `input/settings/` reads them together with the environment, so that all
//! mistakes of both come out at once.
//!
//! One file a subject: `job.rs` the options that describe a job, `start.rs` what starts something, `show.rs` what prints, `files.rs` what looks
//! at models files, `slurm.rs` the job script, `subject.rs` the one word that clap alone cannot place, `misread.rs` what
//! is said of words that no command takes.

mod examples;
mod files;
mod job;
mod misread;
mod show;
mod slurm;
mod start;
mod subject;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

pub use files::{CheckArgs, CheckFormat, DiffArgs, DiffFormat, ModelsArgs};
pub use job::{EnvFileArgs, JobArgs, ModelsFileArgs, Switch};
pub use show::{
    CompletionsArgs, ExplainArgs, ManArgs, PlanArgs, PlanFormat, ReportArgs, ReportFormat,
    TextFormat,
};
pub use slurm::{SbatchArgs, SlurmArgs};
pub use start::{CommandFormat, LaunchArgs, LifeArgs, NodeArgs, RehearseArgs, WaitArgs};
use subject::explain_subject;

const ABOUT: &str = "Start AMD's ATOM inference server: models_atom.yaml and a job's variables in, one exact command out";

const AFTER: &str = "Examples:
  atom-launch --model DeepSeek-V4-Pro --mode ep-dp --dry-run    print the command, start nothing
  atom-launch --model DeepSeek-V4-Pro --mode ep-dp              become the server
  atom-launch check models_atom.yaml                            find mistakes in a models file
  atom-launch explain --model DeepSeek-V4-Pro --block-size      where does this value come from?

An option whose text names a variable in [brackets] takes it from there when it is not given. An empty variable is an unset one.

Exit codes: 0 done, 1 findings, 2 usage or configuration, 69 never ready, 70 a bug of atom-launch, 74 stdout cannot be written, \
124 the workload took too long, 126 and 127 a program cannot be executed or was not found; else the code of the process that failed.";

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
            .map_err(|error| misread::explained(error, words))
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Live this rank's whole life: server, health waits, router, workload, teardown.
    #[command(after_help = examples::NODE)]
    Node(NodeArgs),
    /// Show what every rank of a job will run: role, address, GPUs, ports, command.
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Show where each argument and variable comes from, and what it displaced.
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Find mistakes in models files: all at once, each with its place and a fix.
    #[command(after_help = examples::CHECK)]
    Check(CheckArgs),
    /// List the models and which modes and methods each has.
    #[command(after_help = examples::MODELS)]
    Models(ModelsArgs),
    /// Show what a change of the models file does to every resolved command.
    #[command(after_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Wait until every URL answers; exit 69 when the time is up.
    #[command(after_help = examples::WAIT)]
    Wait(WaitArgs),
    /// Show what all ranks of a job did, from the records in its log folder.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Print a SLURM job script for the options given: to read, edit and submit.
    #[command(after_help = examples::SBATCH)]
    Sbatch(Box<SbatchArgs>),
    /// Try a whole job on this machine: every rank for real, with a stand-in server and router.
    #[command(after_help = examples::REHEARSE)]
    Rehearse(RehearseArgs),
    /// Print the JSON Schema of models files.
    #[command(after_help = examples::SCHEMA)]
    Schema,
    /// Print completions for a shell, with the names of the models.
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Print the manual page, or that of a subcommand.
    #[command(after_help = examples::MAN)]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
