//! `node`: the plan of one rank → what the engine needs. Also `wait` and `report`, which share its prober and its records.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::job::Job;
use super::print;
use crate::cli::{NodeArgs, ReportArgs, ReportFormat, WaitArgs};
use crate::domain::codes::{NO_ADDRESSES, WHICH_WORKER};
use crate::domain::command::last_value;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::settings::{LifeSettings, Settings};
use crate::domain::topology::Role;
use crate::exit;
use crate::input;
use crate::plan::{JobPlan, WorkerPlan};
use crate::render;
use crate::report;
use crate::run::event::{Outcome, Phase, Verdict};
use crate::run::manifest::Manifest;
use crate::run::records::Records;
use crate::run::spec::{
    Endpoint, JobSpec, Limits, ModelCheck, NodeSpec, RouterAddress, RouterSpec, SlurmJob,
    WorkerSpec,
};
use crate::run::wait::{Failed, Patience, wait_for};
use crate::run::{self, manifest, talk};

/// `atom-launch node`
pub(super) fn node_command(args: &NodeArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &[], None) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (life, problems) = input::settings::read_life(&args.life, &job.environment);
    job.findings.extend(problems);
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let rank = if plan.ranks == 1 {
        Some(plan.workers[0].rank)
    } else {
        placement.rank
    };
    match rank {
        None => job.findings.push(
            Diagnostic::error(
                WHICH_WORKER,
                Place::Input("--rank".into()),
                format!("which of the {} ranks is this?", plan.ranks),
            )
            .help(if input::settings::is_batch_step(&job.environment) {
                "this is the batch script itself: start the ranks with `srun --ntasks-per-node=1 atom-launch node …`"
            } else {
                "set NODE_RANK or `--rank N`; inside srun, SLURM_PROCID is taken"
            }),
        ),
        Some(_) if plan.ranks > 1 && placement.nodes.is_empty() => job.findings.push(
            Diagnostic::error(
                NO_ADDRESSES,
                Place::Input("--nodes".into()),
                format!("the addresses of the {} nodes are not known", plan.ranks),
            )
            .help("set IPADDRS or `--nodes`, one address a rank"),
        ),
        Some(_) => {}
    }
    let rank = rank.unwrap_or_default();
    job.check(&args.job, &plan, Some(rank));
    if job.refuses("nothing was started") {
        if !args.dry_run && placement.rank == Some(rank) {
            let spec = spec(&plan, rank, &job.settings, &life, &job.environment);
            leave_word(&spec, &job.findings);
        }
        return Ok(exit::USAGE);
    }
    if args.dry_run || job.settings.dry_run.value {
        return print(&render::plan::shell(&plan, Some(rank)));
    }
    if !args.job.quiet {
        for worker in plan.workers_of(rank) {
            render::to_stderr(&render::banner::text(&plan, worker));
        }
    }
    let mut spec = spec(&plan, rank, &job.settings, &life, &job.environment);
    spec.smoke = args.life.smoke;
    spec.workload.clone_from(&args.workload);
    talk::to_stderr(spec.rank);
    Ok(run::run(&spec))
}

/// A record of a rank that was refused, for the other ranks and `report`. Only where the job has made the log folder: one
/// mistyped option on a laptop leaves nothing behind.
fn leave_word(spec: &NodeSpec, findings: &Diagnostics) {
    if !spec.log_dir.is_dir() {
        return;
    }
    let first = findings.0.iter().find(|finding| finding.is_error());
    let mut record = Manifest::begin(spec);
    record.enter(Phase::Preflight, Duration::ZERO);
    record.enter(Phase::Done, Duration::ZERO);
    record.decide(&Outcome {
        code: exit::USAGE,
        verdict: Verdict::Failed,
        phase: Phase::Preflight,
        reason: first.map_or_else(String::new, |finding| finding.message.clone()),
        culprit: None,
    });
    // It was said on stderr already; nobody is worse off without the record.
    let _ = record.write(&spec.log_dir);
}

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
}

/// What the engine needs to know of one rank.
fn spec(
    plan: &JobPlan,
    rank: u32,
    settings: &Settings,
    life: &LifeSettings,
    environment: &Environment,
) -> NodeSpec {
    let leads = rank == 0 || plan.router.is_none();
    let limits = Limits {
        wait_server: Duration::from_secs(settings.wait_server.value),
        wait_router: Duration::from_secs(settings.wait_router.value),
        grace: seconds(life.grace.value),
        engine_death_grace: seconds(life.engine_death_grace.value),
        workload_timeout: life
            .workload_timeout
            .as_ref()
            .map(|limit| seconds(limit.value)),
        linger: seconds(life.linger.value),
        poll_interval: seconds(life.poll_interval.value),
        ..Limits::default()
    };
    let router = plan.router.as_ref();
    NodeSpec {
        rank: rank as usize,
        job: job_spec(plan, rank, environment),
        workers: plan.workers_of(rank).map(worker_spec).collect(),
        all_workers: plan.workers.iter().map(endpoint).collect(),
        router: router.filter(|_| leads).map(|router| RouterSpec {
            command: router.command.clone(),
            address: router.node.clone(),
            port: router.port.value.get(),
            prometheus_port: Some(router.prometheus.value.get()),
            readiness: "/readiness".into(),
        }),
        router_address: router.filter(|_| !leads).map(|router| RouterAddress {
            address: router.node.clone(),
            port: router.port.value.get(),
        }),
        workload: Vec::new(),
        workload_env: workload_env(plan),
        log_dir: of_attempt(log_dir(life, environment), environment),
        collect_logs: life
            .collect_logs
            .as_ref()
            .map(|folder| of_attempt(PathBuf::from(&folder.value), environment)),
        limits,
        smoke: false,
        job_end: environment
            .get("SLURM_JOB_END_TIME")
            .and_then(|time| time.parse().ok()),
    }
}

fn worker_spec(worker: &WorkerPlan) -> WorkerSpec {
    WorkerSpec {
        name: worker.name.clone(),
        role: worker.role,
        address: worker.address(),
        port: worker.port.value.get(),
        command: worker.command.clone(),
        health_url: worker.health_url(),
        handshake_ports: worker.handshake.map(|(first, count)| {
            let count = u16::try_from(count).unwrap_or(u16::MAX);
            first.get()..first.get().saturating_add(count)
        }),
        dp_master_port: worker.dp_master.map(crate::domain::topology::Port::get),
    }
}

fn endpoint(worker: &WorkerPlan) -> Endpoint {
    Endpoint {
        name: worker.name.clone(),
        role: worker.role,
        rank: worker.rank as usize,
        health_url: worker.health_url(),
    }
}

fn job_spec(plan: &JobPlan, rank: u32, environment: &Environment) -> JobSpec {
    let own = plan.workers_of(rank).next().or(plan.workers.first());
    let path = own.map(|worker| worker.model_path.clone());
    let from = path.as_ref().and_then(|path| path.source.input());
    let from = from.unwrap_or_default().to_owned();
    let model_path = path.map_or_else(String::new, |path| path.value);
    let mut model_checks = vec![ModelCheck {
        what: "model".into(),
        path: model_path.clone(),
        from,
    }];
    let draft = own.and_then(|worker| last_value(&worker.command.args, "--draft-model").flatten());
    model_checks.extend(draft.map(|draft| ModelCheck {
        what: "draft model".into(),
        path: draft.to_owned(),
        from: "--draft-model".into(),
    }));
    let offline = environment.get("HF_HUB_OFFLINE").is_some_and(|value| {
        matches!(
            value.to_ascii_lowercase().as_str(),
            "1" | "true" | "yes" | "on"
        )
    });
    JobSpec {
        model: plan.model.clone(),
        model_path,
        ranks: plan.ranks as usize,
        slurm: environment.get("SLURM_JOB_ID").map(|id| SlurmJob {
            id: id.to_owned(),
            restart: restarts(environment),
        }),
        models_file: plan.models.name.clone(),
        models_sha256: plan.models.sha256.clone(),
        model_checks,
        offline_hub_cache: offline.then(|| hub_cache(environment)),
    }
}

/// Where the hub library keeps what it has fetched.
fn hub_cache(environment: &Environment) -> PathBuf {
    if let Some(folder) = environment.get("HF_HUB_CACHE") {
        return folder.into();
    }
    let home = environment.get("HF_HOME").map_or_else(
        || PathBuf::from(environment.get("HOME").unwrap_or("/root")).join(".cache/huggingface"),
        PathBuf::from,
    );
    home.join("hub")
}

/// What the workload is told about the job, besides the variables that the job has itself.
fn workload_env(plan: &JobPlan) -> Vec<(String, String)> {
    let gpus = |role: Role| -> u32 {
        plan.workers
            .iter()
            .filter(|worker| worker.role == role)
            .map(|worker| worker.tp.value)
            .sum()
    };
    let speculates = plan
        .workers
        .iter()
        .any(|worker| worker.speculation.is_some());
    let (prefill, decode) = (gpus(Role::Prefill), gpus(Role::Decode));
    let mut env = vec![
        ("MODEL_NAME".to_owned(), plan.model.clone()),
        ("IS_MTP".to_owned(), speculates.to_string()),
        (
            "TOTAL_GPUS".to_owned(),
            (prefill + decode + gpus(Role::Standalone)).to_string(),
        ),
    ];
    if plan.router.is_some() {
        env.push(("PREFILL_GPUS".to_owned(), prefill.to_string()));
        env.push(("DECODE_GPUS".to_owned(), decode.to_string()));
    }
    env
}

/// How often SLURM has started this job again.
fn restarts(environment: &Environment) -> u32 {
    let count = environment.get("SLURM_RESTART_COUNT");
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// A folder for this attempt at the job alone: one that was requeued must not write over what the one before has left.
fn of_attempt(folder: PathBuf, environment: &Environment) -> PathBuf {
    let suffix = match restarts(environment) {
        0 => return folder,
        count => format!("-restart{count}"),
    };
    // The job script may have said so already.
    if folder
        .to_string_lossy()
        .trim_end_matches('/')
        .ends_with(&suffix)
    {
        return folder;
    }
    let mut name = folder.components().as_path().as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// `--log-dir`, else the job's folder below /run_logs where that exists, else one below the working directory.
fn log_dir(life: &LifeSettings, environment: &Environment) -> PathBuf {
    if let Some(folder) = &life.log_dir {
        return PathBuf::from(&folder.value);
    }
    let job = environment
        .get("SLURM_JOB_ID")
        .filter(|id| !id.contains('/'))
        .map(|id| format!("slurm_job-{id}"));
    let shared = std::path::Path::new("/run_logs");
    match job {
        Some(job) if shared.is_dir() => shared.join(job),
        Some(job) => PathBuf::from("atom-launch-logs").join(job),
        None => {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            PathBuf::from("atom-launch-logs").join(manifest::date(now).replace(':', ""))
        }
    }
}

/// `atom-launch wait`
pub(super) fn wait_command(args: &WaitArgs) -> u8 {
    let time = |name: &str, text: &str| {
        let time = input::settings::interval(text);
        time.map(seconds)
            .map_err(|why| format!("`{name}` {why}, found `{}`", text.escape_debug()))
    };
    let times = (
        time("--timeout", &args.timeout),
        time("--poll-interval", &args.poll_interval),
    );
    let (Ok(timeout), Ok(interval)) = (&times.0, &times.1) else {
        for problem in [times.0.err(), times.1.err()].into_iter().flatten() {
            render::to_stderr(&format!("error: {problem}\n"));
        }
        return exit::USAGE;
    };
    let patience = Patience {
        timeout: *timeout,
        interval: *interval,
        probe_timeout: Duration::from_secs(10),
        heartbeat: Duration::from_secs(30),
    };
    let quiet = args.quiet;
    match wait_for(&args.urls, patience, |line| {
        if !quiet {
            render::to_stderr(&format!("atom-launch: {line}\n"));
        }
    }) {
        Ok(()) => exit::OK,
        Err(failed) => {
            let (lines, code) = match failed {
                Failed::Usage(lines) => (lines, exit::USAGE),
                Failed::Missing(lines) => (lines, exit::UNAVAILABLE),
            };
            for line in &lines {
                render::to_stderr(&format!("error: {}\n", render::diagnostic::printable(line)));
            }
            code
        }
    }
}

/// `atom-launch report`
pub(super) fn report_command(args: &ReportArgs) -> anyhow::Result<u8> {
    let records = match Records::read(&args.folder) {
        Ok(records) => records,
        Err(problem) => {
            render::to_stderr(&format!("error: {problem}\n"));
            return Ok(exit::USAGE);
        }
    };
    let text = match args.format {
        ReportFormat::Text => report::text(&records),
        ReportFormat::Html => report::html(&records),
    };
    render::to_stdout(text.as_bytes())?;
    Ok(if args.exit_code {
        records.exit_code()
    } else {
        exit::OK
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attempt_has_a_folder_of_its_own() {
        let attempt = |count: &str, folder: &str| {
            let environment = Environment::new([("SLURM_RESTART_COUNT".into(), count.into())]);
            let folder = of_attempt(folder.into(), &environment);
            folder.to_string_lossy().into_owned()
        };
        assert_eq!(attempt("", "/logs/7"), "/logs/7");
        assert_eq!(attempt("0", "/logs/7/"), "/logs/7/");
        assert_eq!(attempt("2", "/logs/7/"), "/logs/7-restart2");
        assert_eq!(attempt("2", "/logs/7-restart2"), "/logs/7-restart2");
    }
}
