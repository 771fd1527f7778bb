//! The subcommands: each strings input → resolve → render or run together. Holds no rule.

mod check;
mod files;
mod job;
mod node;
mod rehearse;
mod report;
mod sbatch;
mod shell;
mod talk;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::check::{job as check_job, worker as check_worker};
use crate::cli::{Cli, Command, ExplainArgs, LaunchArgs, PlanArgs, PlanFormat, TextFormat};
use crate::domain::diagnostic::{Diagnostics, nearest};
use crate::domain::environment::Environment;
use crate::domain::source::SourceFile;
use crate::exit;
use crate::explain;
use crate::rehearse::stand_in;
use crate::render;
use crate::resolve::own::own_worker;
use crate::run::exec;
use check::check_command;
use job::Job;
use talk::talk_as_asked;

/// Nothing happened before this failure.
const NOTHING_STARTED: &str = "nothing was started";

/// Run the command line and give the process's exit code.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let words = match stand_in(words) {
        Ok(words) => words,
        Err(code) => return ExitCode::from(code),
    };
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(message) => {
            let code = if message.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            };
            return ended(
                render::answer(&message).map_or_else(|error| Err(error.into()), |()| Ok(code)),
            );
        }
    };
    talk_as_asked(&cli);
    let outcome = match cli.command {
        None => launch(&cli.launch),
        Some(Command::Node(args)) => node::node_command(&args),
        Some(Command::Plan(args)) => plan_command(&args),
        Some(Command::Explain(args)) => explain_command(&args),
        Some(Command::Check(args)) => check_command(&args),
        Some(Command::Models(args)) => files::models_command(&args),
        Some(Command::Diff(args)) => files::diff_command(&args),
        Some(Command::Wait(args)) => Ok(wait::wait_command(&args)),
        Some(Command::Report(args)) => report::report_command(&args),
        Some(Command::Rehearse(args)) => rehearse::rehearse_command(&args, &words),
        Some(Command::Sbatch(args)) => sbatch::sbatch_command(&args, &words),
        Some(Command::Schema) => print(&render::pretty(&render::schema::schema())),
        Some(Command::Completions(args)) => shell::completions_command(&args),
        Some(Command::Man(args)) => shell::man_command(&args),
    };
    ended(outcome)
}

/// The exit code of a command; a failure of the system is said.
fn ended(outcome: anyhow::Result<u8>) -> ExitCode {
    ExitCode::from(outcome.unwrap_or_else(|error| {
        render::to_stderr(&format!("error: {error:#}\n"));
        if error.is::<render::Unwritable>() {
            exit::CANNOT_WRITE
        } else {
            exit::BUG
        }
    }))
}

/// Print findings; `true` when the command must stop.
fn report(
    findings: &Diagnostics,
    file: Option<&SourceFile>,
    environment: &Environment,
    consequence: &str,
) -> bool {
    if !findings.0.is_empty() {
        let colour = render::stderr_colour(environment.is_set("NO_COLOR"));
        render::to_stderr(&render::diagnostic::list(
            findings,
            file,
            colour,
            consequence,
        ));
    }
    findings.has_errors()
}

/// `atom-launch [options] [-- ARGS…]`
fn launch(args: &LaunchArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &args.trailing, None, NOTHING_STARTED) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let worker = match own_worker(&plan, &placement, &job.settings, &job.environment) {
        Ok(worker) => worker,
        Err(problem) => {
            // Where the topology is wrong, that there is no worker only follows from it.
            if !job.findings.has_errors() {
                job.findings.push(problem);
            }
            return Ok(job.stop());
        }
    };
    if !args.job.no_check {
        let gpus = job.settings.gpus_per_node.value;
        job.findings.extend(check_worker(worker, gpus));
        let devices = job.environment.get("HIP_VISIBLE_DEVICES");
        let more = check_job(&plan, devices);
        job.findings.extend(more);
    }
    if job.refuses() {
        return Ok(exit::USAGE);
    }
    if !args.job.quiet {
        render::to_stderr(&render::banner::text(&plan, worker));
    }
    talk::tell_origins(worker, &job.loaded.models.file.name);
    if args.dry_run || job.settings.dry_run.value {
        let text = render::command::text(&worker.command, args.format);
        render::to_stdout(text.as_bytes())?;
        return Ok(exit::OK);
    }
    let failure = exec::replace(&worker.command, &job.environment);
    let another = "name another with `--python PATH` or ATOM_PYTHON";
    render::to_stderr(&format!(
        "error: cannot execute {}: {}\n  = help: {}\n",
        worker.command.program,
        failure.why,
        failure.help.as_deref().unwrap_or(another)
    ));
    Ok(failure.code)
}

/// Data on stdout.
fn print(text: &str) -> anyhow::Result<u8> {
    render::to_stdout(text.as_bytes())?;
    Ok(exit::OK)
}

/// `atom-launch plan`
fn plan_command(args: &PlanArgs) -> anyhow::Result<u8> {
    let env_file = args.env_file.env_file.as_deref();
    let mut job = match Job::read(&args.job, &[], env_file, "there is no plan") {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    job.from_elsewhere = args.job.rank.is_some();
    let (plan, _) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    job.check(&args.job, &plan, None);
    if job.refuses() {
        return Ok(exit::USAGE);
    }
    // Only an option narrows the plan: NODE_RANK is in every job's environment.
    let only = args
        .job
        .rank
        .as_ref()
        .and(job.settings.rank.as_ref())
        .map(|rank| rank.value);
    let shown = plan.workers.iter();
    for worker in shown.filter(|worker| only.is_none_or(|rank| rank == worker.rank)) {
        talk::tell_origins(worker, &job.loaded.models.file.name);
    }
    print(&match args.format {
        PlanFormat::Text => render::plan::text(&plan, only),
        PlanFormat::Json => render::pretty(&render::plan::as_json(&plan, only)),
        PlanFormat::Shell => render::plan::shell(&plan, only),
    })
}

/// `atom-launch explain`
fn explain_command(args: &ExplainArgs) -> anyhow::Result<u8> {
    let env_file = args.env_file.env_file.as_deref();
    let mut job = match Job::read(&args.job, &[], env_file, "nothing can be explained") {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    job.from_elsewhere = args.job.rank.is_some();
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    if job.refuses() {
        return Ok(exit::USAGE);
    }
    let worker =
        own_worker(&plan, &placement, &job.settings, &job.environment).unwrap_or(&plan.workers[0]);
    let mut rows = explain::rows(&worker.command);
    let file = &job.loaded.models.file.name;
    if let Some(subject) = &args.subject {
        let known: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        rows = explain::about(rows, subject);
        if rows.is_empty() {
            let near = nearest(subject, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            render::to_stderr(&format!(
                "error: `{}` is neither passed to {} nor set for it{near}\n  = help: `atom-launch explain` without a name lists what is\n",
                subject.escape_debug(),
                worker.name
            ));
            return Ok(exit::USAGE);
        }
    }
    let text = match args.format {
        TextFormat::Text => render::explain::text(&rows, file),
        TextFormat::Json => render::pretty(&render::explain::as_json(
            &rows,
            &worker.name,
            file,
            &job.loaded.models.sha256,
        )),
    };
    if plan.workers.len() > 1 && !args.job.quiet {
        render::to_stderr(&format!("atom-launch: {} of {}\n", worker.name, plan.model));
    }
    render::to_stdout(text.as_bytes())?;
    Ok(exit::OK)
}
