//! Who plays what: from the job as given to the words, addresses and faults of every rank.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::faults::{Actor, Fault, Since};
use super::scene::{Part, Scene};
use super::stage::{Block, Folder, free_ports};
use super::words::{Given, Words};
use super::{CHECK, PYTHON, ROUTER, WORKLOAD};
use crate::cli::{JobArgs, RehearseArgs};
use crate::domain::codes::BAD_FAULT;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::settings::Settings;
use crate::plan::JobPlan;

/// Seconds between two health checks unless others are given.
const POLL_INTERVAL: &str = "0.25";
/// What a cluster says of a node does not hold for a rank of a rehearsal.
const CLUSTER: [&str; 5] = [
    "NODE_RANK",
    "IPADDRS",
    "NODE0_ADDR",
    "ATOM_HOST_IP",
    "BENCHMARK_LOGS_DIR",
];

/// The eyes of a rehearsal: reads and resolves jobs, and tells people what is wrong with them (`Err` is an exit code).
pub trait Look {
    /// Settings of a job.
    fn settings(&self, job: &JobArgs) -> Settings;
    /// Plan of a job and the environment of its ranks. Warnings are told on the last look only.
    fn plan(&self, job: &JobArgs, last: bool) -> Result<(JobPlan, Environment), u8>;
    /// Tell people why there is no rehearsal; the exit code.
    fn refuse(&self, findings: &Diagnostics) -> u8;
}

/// The environment without what a cluster says of this node.
pub fn environment(inherited: &Environment) -> Environment {
    let foreign = |name: &str| CLUSTER.contains(&name) || name.starts_with("SLURM_");
    Environment::new(
        inherited
            .iter()
            .filter(|(name, _)| !name.to_str().is_some_and(foreign))
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    )
}

/// Faults as given; every problem of all of them at once.
pub(super) fn faults(texts: &[String], job: &JobArgs) -> Result<Vec<Fault>, Diagnostics> {
    let mut findings = Diagnostics::default();
    let mut faults = Vec::new();
    for text in texts {
        match Fault::parse(text) {
            Ok(fault) => {
                let (program, option) = if fault.role == Some(Actor::Router) {
                    (&job.router_bin, "--router-bin")
                } else {
                    (&job.python, "--python")
                };
                if program.is_some() {
                    let problem = format!("only a stand-in can have it, and `{option}` is given");
                    findings.push(bad_fault(text, &problem));
                }
                faults.push(fault);
            }
            Err(problems) => {
                for problem in problems {
                    findings.push(bad_fault(text, &problem));
                }
            }
        }
    }
    if findings.0.is_empty() {
        Ok(faults)
    } else {
        Err(findings)
    }
}

fn bad_fault(text: &str, problem: &str) -> Diagnostic {
    let message = format!("fault `{}`: {problem}", text.escape_debug());
    Diagnostic::error(BAD_FAULT, Place::Input("--fault".into()), message)
}

/// Everything that is started, before it is.
#[derive(Debug)]
pub(super) struct Cast {
    pub(super) plan: JobPlan,
    pub(super) scene: Scene,
    pub(super) environment: Environment,
    pub(super) log_dir: PathBuf,
    /// Whether each rank is told its number.
    numbered: bool,
    words: Vec<OsString>,
    workload: Vec<OsString>,
    /// Whether the logs are in the rehearsal's own folder.
    pub(super) own_logs: bool,
    /// What must stay for as long as the ranks run.
    pub(super) folder: Folder,
    _block: Block,
}

/// Why there is no cast.
#[derive(Debug)]
pub(super) enum NoCast {
    /// People know already; the exit code.
    Told(u8),
    /// They must be told.
    Findings(Diagnostics),
    /// The machine does not give what is needed.
    Machine(anyhow::Error),
}

impl From<u8> for NoCast {
    fn from(code: u8) -> Self {
        Self::Told(code)
    }
}

impl From<anyhow::Error> for NoCast {
    fn from(error: anyhow::Error) -> Self {
        Self::Machine(error)
    }
}

impl Cast {
    /// Resolve the job as given, then again as it can run on this machine.
    pub(super) fn new(
        args: &RehearseArgs,
        given: &Given,
        faults: &[Fault],
        look: &dyn Look,
    ) -> Result<Self, NoCast> {
        let mut words = given.job.clone();
        for id in ["rank", "worker", "host_ip", "nodes", "node0_addr"] {
            words.remove(id);
        }
        let settings = look.settings(&words.job()?);
        if settings.workers.is_none() && settings.role.is_none() {
            words.set("prefill_workers", "1");
            words.set("decode_workers", "1");
        }
        let (first, _) = look.plan(&words.job()?, false)?;
        let block = Block::claim()?;
        let addresses = block.addresses(first.ranks)?;
        let folder = Folder::create(args.keep)?;
        let programs = folder.programs()?;
        let program = |name: &str| programs.join(name).to_string_lossy().into_owned();
        words.set_if_absent("python", &program(PYTHON));
        words.set_if_absent("router_bin", &program(ROUTER));
        words.set_if_absent("worker_cache", &folder.path.join("cache").to_string_lossy());
        ports(&mut words, &first, &addresses)?;
        words.set("nodes", &addresses.join(","));
        words.set("node0_addr", &addresses[0]);
        if let Some(missing) = first
            .workers
            .iter()
            .find(|one| is_missing_folder(&one.model_path.value))
        {
            words.remove("model_dir");
            words.set("model_path", &folder.model(&missing.model_path.value)?);
        }
        let (plan, environment) = look.plan(&words.job()?, true)?;
        let log_dir = match &args.life.log_dir {
            Some(given) => PathBuf::from(given),
            None => folder.path.join("logs"),
        };
        let scene = Scene {
            parts: parts(&plan, faults).map_err(NoCast::Findings)?,
            folder: folder.path.clone(),
            load_ms: args.load_time.0,
            addresses,
        };
        scene.write()?;
        let mut life = given.life.clone();
        life.set("log_dir", &log_dir.to_string_lossy());
        // Nothing is far away here: a job of seconds should not wait for the checks of a cluster.
        life.set_if_absent("poll_interval", POLL_INTERVAL);
        let all = words.all().chain(life.all()).cloned().collect();
        Ok(Self {
            numbered: plan.router.is_some(),
            workload: workload(args, &programs, faults),
            plan,
            scene,
            environment,
            own_logs: args.life.log_dir.is_none(),
            log_dir,
            words: all,
            folder,
            _block: block,
        })
    }

    /// Words of a rank after `atom-launch`.
    pub(super) fn words(&self, rank: u32) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["node".into()];
        words.extend(self.words.iter().cloned());
        if self.numbered {
            words.push(format!("--rank={rank}").into());
        }
        words.push("--".into());
        words.extend(self.workload.iter().cloned());
        words
    }

    /// Roles of a rank's processes.
    pub(super) fn roles(&self, rank: u32) -> String {
        let names: Vec<&str> = self
            .scene
            .parts
            .iter()
            .filter(|part| part.rank == rank)
            .map(|part| part.name.as_str())
            .collect();
        names.join(", ")
    }
}

/// Something that is not there and no id of the hub, which has an owner and a name.
fn is_missing_folder(path: &str) -> bool {
    let is_id = path.matches('/').count() == 1 && !path.starts_with(['/', '.', '~']);
    !is_id && !Path::new(path).exists()
}

/// Free ports for everything that the options do not say.
fn ports(words: &mut Words, plan: &JobPlan, addresses: &[String]) -> anyhow::Result<()> {
    let workers = u16::try_from(plan.workers.len())
        .unwrap_or(u16::MAX)
        .min(512);
    // A producer's block starts after the GPUs of its node's other workers.
    let handshake: u32 = plan.workers.iter().map(|worker| worker.tp.value).sum();
    let handshake = u16::try_from(handshake).unwrap_or(u16::MAX).min(2048);
    let wanted = [
        ("router_port", 1),
        ("prometheus_port", 1),
        ("prefill_port", workers),
        ("decode_port", workers),
        ("server_port", 1),
        ("handshake_port", handshake),
    ];
    let count = wanted.iter().map(|(_, count)| count).sum();
    let mut next = free_ports(addresses, count)?;
    for (id, count) in wanted {
        words.set_if_absent(id, &next.to_string());
        next += count;
    }
    Ok(())
}

/// The processes of a plan, each with the faults that concern it.
fn parts(plan: &JobPlan, faults: &[Fault]) -> Result<Vec<Part>, Diagnostics> {
    let servers = plan.workers.iter().map(|worker| {
        (
            worker.rank,
            worker.port.value.get(),
            worker.name.clone(),
            Actor::Server(worker.role),
        )
    });
    let router = plan.router.iter().map(|router| {
        (
            0,
            router.port.value.get(),
            "router".to_owned(),
            Actor::Router,
        )
    });
    let all: Vec<_> = servers.chain(router).collect();
    let mut findings = Diagnostics::default();
    for fault in faults {
        let concerned = all
            .iter()
            .any(|(rank, _, name, actor)| fault.concerns(*rank, *actor, name));
        if !concerned {
            let names: Vec<String> = all
                .iter()
                .map(|(rank, _, name, _)| format!("{name} (rank {rank})"))
                .collect();
            let problem = format!("concerns no process of this job: {}", names.join(", "));
            findings.push(bad_fault(&fault.to_string(), &problem));
        }
    }
    if !findings.0.is_empty() {
        return Err(findings);
    }
    let part = |(rank, port, name, actor): (u32, u16, String, Actor)| {
        let own = faults
            .iter()
            .filter(|fault| fault.concerns(rank, actor, &name));
        let faults = own.map(ToString::to_string).collect();
        Part {
            rank,
            port,
            name,
            faults,
        }
    };
    Ok(all.into_iter().map(part).collect())
}

/// The workload's words: the built-in check when there are none; noted by a go-between only when a fault waits for its start.
fn workload(args: &RehearseArgs, programs: &Path, faults: &[Fault]) -> Vec<OsString> {
    let mut words = args.workload.clone();
    if words.is_empty() {
        words.push(programs.join(CHECK).into());
    }
    let waits = |fault: &Fault| {
        fault
            .moment()
            .is_some_and(|moment| moment.since == Since::Workload)
    };
    if faults.iter().any(waits) {
        words.insert(0, programs.join(WORKLOAD).into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cluster_says_of_the_node_is_left_out() {
        let pairs = [
            ("SLURM_JOB_ID", "1"),
            ("NODE_RANK", "3"),
            ("xP", "2"),
            ("PATH", "/bin"),
        ];
        let all = Environment::new(pairs.map(|(name, value)| (name.into(), value.into())));
        let left = environment(&all);
        assert_eq!(left.names().collect::<Vec<_>>(), ["PATH", "xP"]);
    }

    #[test]
    fn every_problem_of_every_fault_is_told() {
        let texts = ["rank=x kind=kill", "kind=nothing"].map(str::to_owned);
        let findings = faults(&texts, &JobArgs::default()).unwrap_err();
        assert_eq!(findings.0.len(), 3);
        assert_eq!(
            findings.0[0].message,
            "fault `rank=x kind=kill`: `x` is no rank"
        );
        let real = JobArgs {
            router_bin: Some("atomesh".into()),
            ..JobArgs::default()
        };
        assert!(faults(&["kind=router-crash".to_owned()], &real).is_err());
        assert!(faults(&["rank=0 kind=kill".to_owned()], &real).is_ok());
    }

    #[test]
    fn a_hub_id_is_no_missing_folder() {
        assert!(!is_missing_folder("org/M"));
        assert!(is_missing_folder("DeepSeek-V4-Pro"));
        assert!(is_missing_folder("./M"));
        assert!(is_missing_folder("/nowhere/M"));
        assert!(!is_missing_folder("/"));
    }
}
