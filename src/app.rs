//! The subcommands: each strings input → resolve → render or run together. Holds no rule.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};

use crate::atom::table::Table;
use crate::check;
use crate::cli::{
    CheckArgs, CheckFormat, Cli, Command, CompletionsArgs, DiffArgs, DiffFormat, ExplainArgs,
    JobArgs, LaunchArgs, ManArgs, ModelsArgs, PlanArgs, PlanFormat, TextFormat, explain_subject,
};
use crate::domain::codes;
use crate::domain::codes::WHICH_WORKER;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::{ModelEntry, Origin};
use crate::domain::settings::Settings;
use crate::domain::source::SourceFile;
use crate::exit;
use crate::explain;
use crate::input::models_file::Loaded;
use crate::input::{self, host, models_file};
use crate::plan::{JobPlan, WorkerPlan};
use crate::render;
use crate::resolve::{self, Inputs, model, topology};
use crate::run::exec;

/// Nothing happened before this failure.
const NOTHING_STARTED: &str = "nothing was started";

/// Run the command line and give the process's exit code.
pub fn run(words: Vec<OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(explain_subject(words)) {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version go to stdout with 0, mistakes to stderr with 2; a closed pipe is no error.
            let _ = message.print();
            return ExitCode::from(if message.use_stderr() {
                exit::USAGE
            } else {
                exit::OK
            });
        }
    };
    let outcome = match cli.command {
        None => launch(&cli.launch),
        Some(Command::Plan(args)) => plan_command(&args),
        Some(Command::Explain(args)) => explain_command(&args),
        Some(Command::Check(args)) => check_command(&args),
        Some(Command::Models(args)) => models_command(&args),
        Some(Command::Diff(args)) => diff_command(&args),
        Some(Command::Schema) => print(&render::pretty(&render::schema::schema())),
        Some(Command::Completions(args)) => completions_command(&args),
        Some(Command::Man(args)) => man_command(&args),
    };
    ExitCode::from(outcome.unwrap_or_else(|error| {
        render::to_stderr(&format!("error: {error:#}\n"));
        exit::BUG
    }))
}

/// Events of `tracing` on stderr, one short line each.
fn talk(verbose: u8, quiet: bool) {
    let level = match (quiet, verbose) {
        (true, _) => tracing::Level::ERROR,
        (false, 0) => tracing::Level::WARN,
        (false, 1) => tracing::Level::INFO,
        (false, _) => tracing::Level::DEBUG,
    };
    // A second subscriber can only come from a test that runs two commands in one process.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .try_init();
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

/// Everything that was read for a job.
struct Job {
    environment: Environment,
    settings: Settings,
    loaded: Loaded,
    findings: Diagnostics,
}

impl Job {
    /// Read environment, settings and models file; `Err` is an exit code after the findings were printed.
    fn read(args: &JobArgs, trailing: &[String], env_file: Option<&str>) -> Result<Self, u8> {
        talk(args.verbose, args.quiet);
        let mut environment = input::environment();
        let mut findings = Diagnostics::default();
        if let Some(path) = env_file {
            match models_file::read_text(path, "env file") {
                Ok(text) => input::env_file::overlay(path, &text, &mut environment, &mut findings),
                Err(problem) => findings.push(problem),
            }
        }
        let (mut settings, more) = input::settings::read(args, &environment);
        findings.extend(more);
        settings.trailing_args = trailing.to_vec();
        let loaded = match input::models(args.file.models_file.as_deref(), &environment) {
            Ok(loaded) => loaded,
            Err(problems) => {
                findings.extend(problems);
                report(&findings, None, &environment, NOTHING_STARTED);
                return Err(exit::USAGE);
            }
        };
        tracing::debug!(file = %loaded.models.file.name, models = loaded.models.entries.len(), "models file read");
        findings.extend(loaded.diagnostics.clone());
        Ok(Self {
            environment,
            settings,
            loaded,
            findings,
        })
    }

    /// Print the findings of a job that is otherwise ready: errors with their snippets, warnings one line each.
    fn refuses(&self, consequence: &str) -> bool {
        if self.findings.has_errors() {
            return report(
                &self.findings,
                Some(&self.loaded.models.file),
                &self.environment,
                consequence,
            );
        }
        let warnings = self.findings.0.iter();
        let text: String = warnings
            .map(|finding| render::diagnostic::line(finding, Some(&self.loaded.models.file)))
            .collect();
        render::to_stderr(&text);
        false
    }

    fn stop(&self) -> u8 {
        report(
            &self.findings,
            Some(&self.loaded.models.file),
            &self.environment,
            NOTHING_STARTED,
        );
        exit::USAGE
    }

    /// The job's entry, unless the file cannot be trusted or lacks it.
    fn entry(&mut self) -> Result<&ModelEntry, u8> {
        if self.loaded.diagnostics.has_errors() {
            return Err(self.stop());
        }
        match model::entry(&self.loaded.models, &self.settings) {
            Ok(_) => {}
            Err(problem) => {
                self.findings.push(problem);
                return Err(self.stop());
            }
        }
        model::entry(&self.loaded.models, &self.settings).map_err(|_| exit::BUG)
    }

    /// Resolve the whole job; findings are kept for the caller to report.
    fn plan(&mut self) -> Result<(JobPlan, topology::Placement), u8> {
        let entry = self.entry()?.clone();
        let path = model::path(&self.settings, &entry);
        let folder: ModelFolder = host::model_folder(&path.value);
        let needs_address = self.settings.host_ip.is_none();
        let facts: HostFacts = host::facts(
            &self.settings.python.value,
            &self.environment,
            needs_address,
        );
        let placement = topology::place(&self.settings, &self.environment, &mut self.findings);
        let inputs = Inputs {
            settings: &self.settings,
            models: &self.loaded.models,
            entry: &entry,
            environment: &self.environment,
            host: &facts,
            folder: &folder,
        };
        let plan = resolve::job(inputs, &placement, &mut self.findings);
        Ok((plan, placement))
    }
}

/// The worker that this process is: by rank, role and `--worker`.
fn own_worker<'a>(
    plan: &'a JobPlan,
    placement: &topology::Placement,
    settings: &Settings,
) -> Result<&'a WorkerPlan, Diagnostic> {
    let rank = match placement.rank {
        _ if plan.workers.len() == 1 => plan.workers[0].rank,
        Some(rank) => rank,
        None => {
            return Err(Diagnostic::error(
                WHICH_WORKER,
                Place::Input("--rank".into()),
                format!("which of the {} ranks is this?", plan.ranks),
            )
            .help("set NODE_RANK or `--rank N`; inside srun, SLURM_PROCID is taken"));
        }
    };
    let here: Vec<&WorkerPlan> = plan
        .workers_of(rank)
        .filter(|worker| {
            settings
                .role
                .as_ref()
                .is_none_or(|role| role.value == worker.role)
        })
        .collect();
    match (here.as_slice(), &settings.worker) {
        ([], _) => Err(Diagnostic::error(
            WHICH_WORKER,
            Place::Input("--rank".into()),
            format!("rank {rank} has no worker"),
        )),
        (several, Some(wanted)) => several
            .iter()
            .find(|worker| worker.slot == wanted.value)
            .copied()
            .ok_or_else(|| {
                Diagnostic::error(
                    WHICH_WORKER,
                    Place::Input("--worker".into()),
                    format!("rank {rank} has no worker {}", wanted.value),
                )
                .help(format!("its workers: {}", names(several)))
            }),
        ([only], None) => Ok(only),
        (several, None) => Err(Diagnostic::error(
            WHICH_WORKER,
            Place::Input("--worker".into()),
            format!(
                "rank {rank} has {} workers; which is to be started?",
                several.len()
            ),
        )
        .help(format!("`--worker N`: {}", names(several)))
        .help("`atom-launch node` starts all of them")),
    }
}

fn names(workers: &[&WorkerPlan]) -> String {
    let names: Vec<String> = workers
        .iter()
        .map(|worker| format!("{} = {}", worker.slot, worker.name))
        .collect();
    names.join(", ")
}

/// `atom-launch [options] [-- ARGS…]`
fn launch(args: &LaunchArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &args.trailing, None) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let worker = match own_worker(&plan, &placement, &job.settings) {
        Ok(worker) => worker,
        Err(problem) => {
            job.findings.push(problem);
            return Ok(job.stop());
        }
    };
    if !args.job.no_check {
        let gpus = job.settings.gpus_per_node.value;
        job.findings.extend(check::worker(worker, gpus));
    }
    if job.refuses(NOTHING_STARTED) {
        return Ok(exit::USAGE);
    }
    if !args.job.quiet {
        render::to_stderr(&render::banner::text(&plan, worker));
    }
    if args.dry_run {
        let text = render::command::text(&worker.command, args.format);
        render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
        return Ok(exit::OK);
    }
    let failure = exec::replace(&worker.command, &job.environment);
    render::to_stderr(&format!(
        "error: {}\n  = help: {}\n",
        failure.message, failure.help
    ));
    Ok(failure.code)
}

/// Data on stdout.
fn print(text: &str) -> anyhow::Result<u8> {
    render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
    Ok(exit::OK)
}

/// `atom-launch plan`
fn plan_command(args: &PlanArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &[], args.env_file.env_file.as_deref()) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (plan, _) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    if !args.job.no_check {
        for worker in &plan.workers {
            let gpus = job.settings.gpus_per_node.value;
            job.findings.extend(check::worker(worker, gpus));
        }
    }
    if job.refuses("there is no plan") {
        return Ok(exit::USAGE);
    }
    // Only an option narrows the plan: NODE_RANK is in every job's environment.
    let only = args
        .job
        .rank
        .as_ref()
        .and(job.settings.rank.as_ref())
        .map(|rank| rank.value);
    print(&match args.format {
        PlanFormat::Text => render::plan::text(&plan, only),
        PlanFormat::Json => render::pretty(&render::plan::as_json(&plan, only)),
        PlanFormat::Shell => render::plan::shell(&plan, only),
    })
}

/// `atom-launch completions SHELL`
fn completions_command(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut command = Cli::command();
    // A models file that cannot be read takes nothing from the rest.
    let names: Vec<String> = input::models(args.file.models_file.as_deref(), &input::environment())
        .map(|loaded| loaded.models.names().map(str::to_owned).collect())
        .unwrap_or_default();
    command = with_models(command, &names);
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "atom-launch", &mut script);
    render::to_stdout(&script).context("cannot write to stdout")?;
    Ok(exit::OK)
}

/// `--model` with the known names as its values, here and in every subcommand.
fn with_models(command: clap::Command, names: &[String]) -> clap::Command {
    let has_model = command.get_arguments().any(|arg| arg.get_id() == "model");
    let command = if has_model && !names.is_empty() {
        let values = clap::builder::PossibleValuesParser::new(names.to_vec());
        command.mut_arg("model", |arg| arg.value_parser(values))
    } else {
        command
    };
    command.mut_subcommands(|subcommand| with_models(subcommand, names))
}

/// `atom-launch man`
fn man_command(args: &ManArgs) -> anyhow::Result<u8> {
    let mut command = Cli::command();
    command.build();
    let page = match &args.subcommand {
        None => command,
        Some(name) => {
            let Some(found) = command.find_subcommand(name) else {
                let known: Vec<&str> = command
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect();
                render::to_stderr(&format!(
                    "error: no subcommand `{}`; there are {}\n",
                    name.escape_debug(),
                    known.join(", ")
                ));
                return Ok(exit::USAGE);
            };
            found.clone()
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut text)
        .context("cannot render the manual page")?;
    render::to_stdout(&text).context("cannot write to stdout")?;
    Ok(exit::OK)
}

/// `atom-launch explain`
fn explain_command(args: &ExplainArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &[], args.env_file.env_file.as_deref()) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    if report(
        &job.findings,
        Some(&job.loaded.models.file),
        &job.environment,
        "nothing can be explained",
    ) {
        return Ok(exit::USAGE);
    }
    let worker = own_worker(&plan, &placement, &job.settings).unwrap_or(&plan.workers[0]);
    let mut rows = explain::rows(&worker.command);
    let file = &job.loaded.models.file.name;
    if let Some(subject) = &args.subject {
        let known: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        rows = explain::about(rows, subject);
        if rows.is_empty() {
            let near = nearest(subject, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
            render::to_stderr(&format!(
                "error: `{}` is neither passed to {} nor set for it{near}\n",
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
    render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
    Ok(exit::OK)
}

/// `atom-launch check`
fn check_command(args: &CheckArgs) -> anyhow::Result<u8> {
    if let Some(code) = &args.explain {
        return explain_code(code);
    }
    let filter = check::Filter {
        allow: args.allow.clone(),
        deny: args.deny.clone(),
    };
    let mut usage: Vec<String> = filter.unknown().map(unknown_code).collect();
    let table = server_table(args).unwrap_or_else(|message| {
        usage.push(message);
        Table::builtin()
    });
    let environment = input::environment();
    let mut sides = Vec::new();
    if args.files.is_empty() {
        match input::models(None, &environment) {
            Ok(loaded) => sides.push(loaded),
            Err(problems) => usage.extend(problems.0.into_iter().map(|problem| problem.message)),
        }
    }
    for path in &args.files {
        match load_file(path, "check") {
            Ok(loaded) => sides.push(loaded),
            Err(problem) => usage.push(problem.message),
        }
    }
    if !usage.is_empty() {
        render::to_stderr(&format!("error: {}\n", usage.join("\nerror: ")));
        return Ok(exit::USAGE);
    }
    let checked: Vec<render::check::Checked> = sides
        .into_iter()
        .map(|side| {
            let found = check::file(&side.models, side.diagnostics, side.notes, &table, &filter);
            render::check::Checked {
                file: side.models.file,
                models: side.models.entries.len(),
                found,
            }
        })
        .collect();
    let colour = render::stdout_colour(environment.is_set("NO_COLOR"));
    let text = match args.format {
        CheckFormat::Text => render::check::text(&checked, colour),
        CheckFormat::Json => render::pretty(&render::check::as_json(&checked)),
        CheckFormat::Github => render::check::github(&checked),
    };
    render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
    let errors = checked.iter().any(|side| side.found.has_errors());
    Ok(if errors { exit::FOUND } else { exit::OK })
}

/// The server's options to check against.
fn server_table(args: &CheckArgs) -> Result<Table, String> {
    if let Some(date) = &args.atom_date {
        let date = date
            .parse()
            .map_err(|reason| format!("`--atom-date`: {reason}"))?;
        return Ok(Table::as_of(date));
    }
    match &args.server_help {
        None => Ok(Table::builtin()),
        Some(path) => {
            let text =
                models_file::read_text(path, "help text").map_err(|problem| problem.message)?;
            Table::from_help(&text).map_err(|error| {
                let line = error
                    .line
                    .map_or(String::new(), |line| format!(", line {line}"));
                format!("`--server-help {path}`{line}: {}", error.message)
            })
        }
    }
}

fn unknown_code(name: &str) -> String {
    let near = nearest(name, codes::names())
        .map_or(String::new(), |near| format!("; did you mean {near}?"));
    format!(
        "no kind of finding is called `{}`{near} (`atom-launch check --explain` lists them)",
        name.escape_debug()
    )
}

/// `check --explain [CODE]`
fn explain_code(name: &str) -> anyhow::Result<u8> {
    if name == "all" {
        let rows: Vec<Vec<String>> = codes::ALL
            .iter()
            .map(|description| {
                vec![
                    description.code.0.to_owned(),
                    description.summary.to_owned(),
                ]
            })
            .collect();
        return print(&render::table::aligned(&rows));
    }
    let Some(description) = codes::describe(name) else {
        render::to_stderr(&format!("error: {}\n", unknown_code(name)));
        return Ok(exit::USAGE);
    };
    print(&format!(
        "{name}: {}\n\n{}\n",
        description.summary, description.explanation
    ))
}

/// A models file named on the command line.
fn load_file(path: &str, named_by: &str) -> Result<Loaded, Diagnostic> {
    let text = models_file::read_text(path, "models file")?;
    let name = if path == "-" { "<stdin>" } else { path };
    let origin = Origin::Path {
        path: path.to_owned(),
        named_by: named_by.to_owned(),
    };
    Ok(models_file::load(name, text, origin))
}

/// `atom-launch models`
fn models_command(args: &ModelsArgs) -> anyhow::Result<u8> {
    let environment = input::environment();
    let loaded = match input::models(args.file.models_file.as_deref(), &environment) {
        Ok(loaded) => loaded,
        Err(problems) => {
            report(&problems, None, &environment, "no list");
            return Ok(exit::USAGE);
        }
    };
    if report(
        &loaded.diagnostics,
        Some(&loaded.models.file),
        &environment,
        "no list",
    ) {
        return Ok(exit::USAGE);
    }
    let summaries = model::summaries(&loaded.models);
    let text = match args.format {
        TextFormat::Text => render::models::text(&summaries),
        TextFormat::Json => render::pretty(&render::models::as_json(&loaded.models, &summaries)),
    };
    render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
    Ok(exit::OK)
}

/// `atom-launch diff OLD NEW`
fn diff_command(args: &DiffArgs) -> anyhow::Result<u8> {
    let environment = input::environment();
    if args.old == "-" && args.new == "-" {
        render::to_stderr("error: only one of the two files can be standard input\n");
        return Ok(exit::USAGE);
    }
    let load = |path: &str| {
        load_file(path, "diff")
            .map_err(|problem| {
                report(
                    &Diagnostics(vec![problem]),
                    None,
                    &environment,
                    "nothing was compared",
                )
            })
            .ok()
    };
    let (old, new) = (load(&args.old), load(&args.new));
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(exit::USAGE);
    };
    let broken = [&old, &new].map(|side| {
        report(
            &side.diagnostics,
            Some(&side.models.file),
            &environment,
            "nothing was compared",
        )
    });
    if broken.contains(&true) {
        return Ok(exit::USAGE);
    }
    let comparison = crate::diff::compare(&old.models, &new.models);
    let text = match args.format {
        DiffFormat::Text => render::diff::text(&comparison),
        DiffFormat::Json => render::pretty(&render::diff::as_json(
            &comparison,
            &old.models,
            &new.models,
        )),
        DiffFormat::Markdown => render::diff::markdown(&comparison),
    };
    render::to_stdout(text.as_bytes()).context("cannot write to stdout")?;
    let changed = args.exit_code && !comparison.models.is_empty();
    Ok(if changed { exit::FOUND } else { exit::OK })
}
