//! The plan of a job → the specification of one rank: what it starts, what it waits for, where its logs go, what its workload is told.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::command::last_value;
use crate::domain::date::date;
use crate::domain::environment::{Environment, RankFacts};
use crate::domain::settings::{LifeSettings, Settings};
use crate::domain::topology::{Port, Role};
use crate::plan::node::{
    Endpoint, JobSpec, Limits, ModelCheck, NodeSpec, RouterAddress, RouterSpec, SlurmJob,
    WorkerSpec,
};
use crate::plan::{JobPlan, WorkerPlan};

fn seconds(time: f64) -> Duration {
    Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
}

/// All that one rank's specification is made from.
#[derive(Debug, Clone, Copy)]
pub struct Rank<'a> {
    /// The whole job.
    pub plan: &'a JobPlan,
    /// Which rank of it.
    pub rank: u32,
    /// Settings of the job.
    pub settings: &'a Settings,
    /// How the rank lives.
    pub life: &'a LifeSettings,
    /// What its processes inherit.
    pub environment: &'a Environment,
    /// Host and moment.
    pub facts: &'a RankFacts,
}

/// What the engine needs to know of one rank. Whether one token is asked for and what the workload is stays open.
pub fn spec(of: Rank<'_>) -> NodeSpec {
    let Rank { plan, rank, .. } = of;
    let leads = rank == 0 || plan.router.is_none();
    let router = plan.router.as_ref();
    NodeSpec {
        rank: rank as usize,
        job: job_spec(plan, rank, of.environment),
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
        workload_env: workload_env(plan, of.environment),
        log_dir: of_attempt(log_dir(of), of.environment),
        collect_logs: of
            .life
            .collect_logs
            .as_ref()
            .map(|folder| of_attempt(PathBuf::from(&folder.value), of.environment)),
        limits: limits(of.settings, of.life),
        smoke: false,
        quiet: false,
        host: of.facts.host.clone(),
        environment: of.environment.clone(),
        job_end: of
            .environment
            .get("SLURM_JOB_END_TIME")
            .and_then(|time| time.parse().ok()),
    }
}

fn limits(settings: &Settings, life: &LifeSettings) -> Limits {
    let timeout = life.workload_timeout.as_ref();
    Limits {
        wait_server: Duration::from_secs(settings.wait_server.value),
        wait_router: Duration::from_secs(settings.wait_router.value),
        grace: seconds(life.grace.value),
        engine_death_grace: seconds(life.engine_death_grace.value),
        workload_timeout: timeout.map(|limit| seconds(limit.value)),
        linger: seconds(life.linger.value),
        smoke: seconds(life.smoke_timeout.value),
        poll_interval: seconds(life.poll_interval.value),
        ..Limits::default()
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
        dp_master_port: worker.dp_master.map(Port::get),
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
fn workload_env(plan: &JobPlan, environment: &Environment) -> Vec<(String, String)> {
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
    // A MODEL_DIR that was overruled would lead the workload to another model than the servers'.
    let path = plan
        .workers
        .first()
        .map_or(Path::new(""), |worker| Path::new(&worker.model_path.value));
    if let (Some(given), Some(own)) = (environment.get("MODEL_DIR"), path.parent())
        && path.is_absolute()
        && !path.starts_with(given)
    {
        env.push(("MODEL_DIR".to_owned(), own.to_string_lossy().into_owned()));
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
fn log_dir(of: Rank<'_>) -> PathBuf {
    if let Some(folder) = &of.life.log_dir {
        return PathBuf::from(&folder.value);
    }
    let job = of.environment.get("SLURM_JOB_ID");
    let job = job.filter(|id| !id.contains('/'));
    match job.map(|id| format!("slurm_job-{id}")) {
        Some(job) if of.facts.run_logs => Path::new("/run_logs").join(job),
        Some(job) => Path::new("atom-launch-logs").join(job),
        None => Path::new("atom-launch-logs").join(date(of.facts.now).replace(':', "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{JobArgs, LifeArgs};
    use crate::domain::environment::{HostFacts, ModelFolder};
    use crate::domain::models::Origin;
    use crate::input::{models_file, settings};
    use crate::resolve::{self, Inputs, topology};

    /// The specification of a rank of a job of two workers, with more variables.
    fn rank(rank: u32, more: &[(&str, &str)], facts: &RankFacts) -> NodeSpec {
        let job = [
            ("MODEL_NAME", "M"),
            ("MODEL_DIR", "/models"),
            ("xP", "1"),
            ("yD", "1"),
            ("IPADDRS", "10.0.0.1,10.0.0.2"),
            ("PREFILL_TP_SIZE", "4"),
            ("DECODE_MTP_SIZE", "1"),
        ];
        let vars = job.iter().chain(more);
        let environment =
            Environment::new(vars.map(|(name, value)| ((*name).into(), (*value).into())));
        let text = "M:\n  mtp_flags: --method mtp --num-speculative-tokens\n";
        let models = models_file::load("models.yaml", text.to_owned(), Origin::BuiltIn).models;
        let (settings, mut found) = settings::read(&JobArgs::default(), &environment);
        let (life, _) = settings::read_life(&LifeArgs::default(), &environment);
        let placement = topology::place(&settings, &environment, &mut found);
        let inputs = Inputs {
            settings: &settings,
            models: &models,
            entry: &models.entries[0],
            environment: &environment,
            host: &HostFacts::default(),
            folder: &ModelFolder::Plain,
        };
        let plan = resolve::job(inputs, &placement, &mut found);
        let errors: Vec<_> = found.0.iter().filter(|one| one.is_error()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        spec(Rank {
            plan: &plan,
            rank,
            settings: &settings,
            life: &life,
            environment: &environment,
            facts,
        })
    }

    #[test]
    fn rank_0_leads_and_the_others_know_where_its_router_is() {
        let leader = rank(0, &[], &RankFacts::default());
        assert!(leader.leads() && leader.router.is_some());
        let names: Vec<_> = leader.all_workers.iter().map(|one| &one.name).collect();
        assert_eq!(names, ["prefill-0", "decode-1"]);
        let other = rank(1, &[], &RankFacts::default());
        assert!(!other.leads() && other.router.is_none());
        assert_eq!(other.router_address.unwrap().address, "10.0.0.1");
        assert_eq!(other.workers.len(), 1);
    }

    #[test]
    fn the_workload_is_told_the_jobs_gpus_and_whether_it_speculates() {
        let told = rank(0, &[], &RankFacts::default()).workload_env;
        let told: Vec<_> = told
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("MODEL_NAME", "M"),
                ("IS_MTP", "true"),
                ("TOTAL_GPUS", "12"),
                ("PREFILL_GPUS", "4"),
                ("DECODE_GPUS", "8"),
            ]
        );
    }

    #[test]
    fn logs_go_where_the_cluster_keeps_them_else_below_the_working_directory() {
        let of = |more: &[(&str, &str)], run_logs| {
            let facts = RankFacts {
                run_logs,
                now: Duration::from_hours(264_384),
                ..RankFacts::default()
            };
            rank(0, more, &facts).log_dir
        };
        let job = ("SLURM_JOB_ID", "7");
        let again = ("SLURM_RESTART_COUNT", "1");
        assert_eq!(of(&[job], true), Path::new("/run_logs/slurm_job-7"));
        assert_eq!(
            of(&[job, again], true),
            Path::new("/run_logs/slurm_job-7-restart1")
        );
        assert_eq!(of(&[job], false), Path::new("atom-launch-logs/slurm_job-7"));
        let by_date = Path::new("atom-launch-logs/2000-02-29T000000Z");
        assert_eq!(of(&[], true), by_date);
        assert_eq!(of(&[("SLURM_JOB_ID", "../7")], true), by_date);
    }

    #[test]
    fn the_hub_cache_is_looked_at_only_offline() {
        let of = |more: &[(&str, &str)]| rank(0, more, &RankFacts::default()).job.offline_hub_cache;
        let offline = ("HF_HUB_OFFLINE", "True");
        assert_eq!(of(&[("HF_HUB_CACHE", "/c")]), None);
        assert_eq!(of(&[offline, ("HF_HUB_CACHE", "/c")]), Some("/c".into()));
        assert_eq!(of(&[offline, ("HF_HOME", "/h")]), Some("/h/hub".into()));
        assert_eq!(
            of(&[offline, ("HOME", "/home/me")]),
            Some("/home/me/.cache/huggingface/hub".into())
        );
    }

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
