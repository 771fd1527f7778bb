//! How much is said on standard error, and what is said there of a command that was resolved.

use tracing::level_filters::LevelFilter;

use crate::cli::{Cli, Command, JobArgs};
use crate::domain::models::ModelsFile;
use crate::explain;
use crate::input;
use crate::plan::WorkerPlan;
use crate::render;
use crate::run::talk;

/// Speak as options and ATOM_LAUNCH_LOG ask for it.
pub(super) fn talk_as_asked(cli: &Cli) {
    let of_job = |job: &JobArgs| (job.verbose, job.quiet);
    let (verbose, quiet) = match &cli.command {
        None => of_job(&cli.launch.job),
        Some(Command::Node(args)) => of_job(&args.job),
        Some(Command::Plan(args)) => of_job(&args.job),
        Some(Command::Explain(args)) => of_job(&args.job),
        Some(Command::Rehearse(args)) => of_job(&args.job),
        Some(Command::Check(args)) => (args.verbose, false),
        Some(_) => (0, false),
    };
    // A rank's progress is news; of what only computes, nothing is.
    let usual = match &cli.command {
        Some(Command::Node(_)) => LevelFilter::INFO,
        _ => LevelFilter::WARN,
    };
    let wanted = input::log_level();
    let level = match (quiet, verbose, &wanted) {
        (true, ..) => LevelFilter::WARN,
        (false, 0, Ok(level)) => level.unwrap_or(usual),
        (false, 0, Err(_)) => usual,
        (false, 1, _) => LevelFilter::DEBUG,
        (false, ..) => LevelFilter::TRACE,
    };
    // The ranks of a rehearsal say all this themselves; it reads their settings again and again.
    let rehearses = matches!(&cli.command, Some(Command::Rehearse(_)));
    talk::to_stderr(if rehearses { level.min(usual) } else { level });
    if let Err(problem) = wanted {
        // A job that has waited for hours does not end for this.
        tracing::warn!("{problem}");
    }
}

/// Which models file was read, and from where.
pub(super) fn tell_file(models: &ModelsFile) {
    let count = models.entries.len();
    tracing::debug!(
        "models file {}: {}, SHA-256 {}",
        models.origin.in_words(),
        render::count(count, "model"),
        models.sha256
    );
}

/// Where the arguments and variables of a worker come from: those that displaced something, and at the highest level all.
pub(super) fn tell_origins(worker: &WorkerPlan, file: &str) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    for row in explain::rows(&worker.command) {
        let line = render::explain::line(&row, file);
        if row.shadowed.is_empty() {
            tracing::trace!("{}: {line}", worker.name);
        } else {
            tracing::debug!("{}: {line}", worker.name);
        }
    }
}
