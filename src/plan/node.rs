//! What one rank has to do, as plain data. Whoever resolves the settings fills it in; nothing here decides anything.
//!
//! The types can be read from JSON, which is how a rank is driven without the resolver (`examples/node_spec.rs`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::domain::command::{ArgGroup, Command, EnvVar};
use crate::domain::environment::Environment;
use crate::domain::provenance::Source;
use crate::domain::topology::{self, Port, Role};

/// A rank's whole life as data.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    /// Index of this node in the job.
    pub rank: usize,
    /// Facts about the whole job.
    pub job: JobSpec,
    /// The servers this rank starts.
    #[serde(default)]
    pub workers: Vec<WorkerSpec>,
    /// Every server of the job, this rank's own included (by the same name). The leading rank waits for all of them.
    #[serde(default)]
    pub all_workers: Vec<Endpoint>,
    /// The router, on the rank that starts it.
    #[serde(default)]
    pub router: Option<RouterSpec>,
    /// Where the router will be, on the ranks that do not start it. A rank without this leads: it runs the workload.
    #[serde(default)]
    pub router_address: Option<RouterAddress>,
    /// The words after `--`; none means: serve until a signal.
    #[serde(default, deserialize_with = "os_words")]
    pub workload: Vec<OsString>,
    /// Variables of the workload on top of what is inherited (`IS_MTP`, GPU counts, the job's own).
    /// `ROUTER_URL`, `ROUTER_PORT` and `MODEL_PATH` are set before these.
    #[serde(default)]
    pub workload_env: Vec<(String, String)>,
    /// Folder of the logs and of the manifest.
    pub log_dir: PathBuf,
    /// Folder into which this rank's logs are copied at the end.
    #[serde(default)]
    pub collect_logs: Option<PathBuf>,
    /// How long things may take.
    #[serde(default)]
    pub limits: Limits,
    /// Ask for one token before the workload starts.
    #[serde(default)]
    pub smoke: bool,
    /// Name of this host, for the record.
    #[serde(default)]
    pub host: String,
    /// The variables that all processes inherit. They are inherited in any case; here is what is asked of them.
    #[serde(default, deserialize_with = "environment")]
    pub environment: Environment,
    /// Whether only warnings and errors are shown, of the launcher's own lines and of what processes write.
    #[serde(default)]
    pub quiet: bool,
    /// Seconds since 1970 at which the surrounding job ends (`SLURM_JOB_END_TIME`).
    #[serde(default)]
    pub job_end: Option<u64>,
}

impl NodeSpec {
    /// Whether this rank waits for the servers, starts the router and runs the workload.
    pub fn leads(&self) -> bool {
        self.router_address.is_none()
    }

    /// The SLURM job that this is a part of, by its id.
    pub fn slurm_job(&self) -> Option<&str> {
        self.job.slurm.as_ref().map(|job| job.id.as_str())
    }

    /// URL that clients use: the router's, or without a router the first server's.
    pub fn client_url(&self) -> Option<String> {
        let (host, port) = if let Some(router) = &self.router {
            (&router.address, router.port)
        } else if let Some(address) = &self.router_address {
            (&address.address, address.port)
        } else {
            let worker = self.workers.first()?;
            (&worker.address, worker.port)
        };
        Some(http_url(host, port))
    }
}

/// Facts about the whole job, for the workload, the manifest and the checks.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Model name as the models file has it.
    pub model: String,
    /// What the servers get after `--model`: a folder or a hub id.
    pub model_path: String,
    /// How many ranks the job has.
    pub ranks: usize,
    /// The SLURM job that this is, where it is one.
    #[serde(default)]
    pub slurm: Option<SlurmJob>,
    /// Models file that was read: path or `built-in`.
    #[serde(default)]
    pub models_file: String,
    /// Its SHA-256.
    #[serde(default)]
    pub models_sha256: String,
    /// Models that must be there: the main one, and a draft model where there is one.
    #[serde(default)]
    pub model_checks: Vec<ModelCheck>,
    /// Set when hub ids cannot be fetched (`HF_HUB_OFFLINE=1`): the hub cache folder to look into.
    #[serde(default)]
    pub offline_hub_cache: Option<PathBuf>,
}

/// A SLURM job, and which attempt at it this is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmJob {
    /// SLURM_JOB_ID.
    pub id: String,
    /// SLURM_RESTART_COUNT: 0 for the first attempt.
    #[serde(default)]
    pub restart: u32,
}

/// A model that the preflight looks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCheck {
    /// `model`, `draft model`.
    pub what: String,
    /// Folder or hub id.
    pub path: String,
    /// Setting that named it, such as `MODEL_DIR` or `--model-path`.
    #[serde(default)]
    pub from: String,
}

/// One server of this rank.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// `<role>-<rank>`, with several on the node `<role>-<rank>-<worker>`: name of the log and prefix of its lines.
    pub name: String,
    /// What it does in the job.
    #[serde(deserialize_with = "role")]
    pub role: Role,
    /// The rank's own address.
    pub address: String,
    /// HTTP port.
    pub port: u16,
    /// What to run.
    #[serde(deserialize_with = "command")]
    pub command: Command,
    /// Where its health is asked.
    pub health_url: String,
    /// Side-channel ports that it binds (producers only), first to one past the last.
    #[serde(default)]
    pub handshake_ports: Option<Range<u16>>,
    /// Rendezvous port of data-parallel ranks, where there is more than one.
    #[serde(default)]
    pub dp_master_port: Option<u16>,
}

/// Any server of the job, as the leading rank sees it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Name as in [`WorkerSpec::name`].
    pub name: String,
    /// What it does.
    #[serde(deserialize_with = "role")]
    pub role: Role,
    /// Rank that starts it.
    pub rank: usize,
    /// Where its health is asked.
    pub health_url: String,
}

/// The router, on the rank that starts it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterSpec {
    /// What to run.
    #[serde(deserialize_with = "command")]
    pub command: Command,
    /// Address under which it is reached.
    pub address: String,
    /// HTTP port.
    pub port: u16,
    /// Port of its metrics, bound at once.
    #[serde(default)]
    pub prometheus_port: Option<u16>,
    /// Page that says it is ready; where that is 404, `/v1/models` is asked.
    #[serde(default = "readiness_path")]
    pub readiness: String,
}

/// The router as the other ranks see it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterAddress {
    /// Address of the leading rank.
    pub address: String,
    /// The router's HTTP port.
    pub port: u16,
}

/// How long things may take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The leading rank's wait for all servers.
    #[serde(deserialize_with = "seconds")]
    pub wait_server: Duration,
    /// The leading rank's wait for the router.
    #[serde(deserialize_with = "seconds")]
    pub wait_router: Duration,
    /// From TERM to KILL.
    #[serde(deserialize_with = "seconds")]
    pub grace: Duration,
    /// From the death of an engine process to giving up on its server.
    #[serde(deserialize_with = "seconds")]
    pub engine_death_grace: Duration,
    /// The workload's time limit.
    #[serde(deserialize_with = "some_seconds")]
    pub workload_timeout: Option<Duration>,
    /// Pause between the workload's end and the teardown.
    #[serde(deserialize_with = "seconds")]
    pub linger: Duration,
    /// Time between two health checks of one endpoint.
    #[serde(deserialize_with = "seconds")]
    pub poll_interval: Duration,
    /// Time after which one health check counts as unanswered.
    #[serde(deserialize_with = "seconds")]
    pub probe_timeout: Duration,
    /// Time for the one token of `--smoke`; the first request may compile kernels.
    #[serde(deserialize_with = "seconds")]
    pub smoke: Duration,
    /// Time between two lines that say what is being waited for.
    #[serde(deserialize_with = "seconds")]
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wait_server: Duration::from_secs(2500),
            wait_router: Duration::from_mins(5),
            grace: Duration::from_secs(20),
            engine_death_grace: Duration::from_mins(1),
            workload_timeout: None,
            linger: Duration::ZERO,
            poll_interval: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(10),
            smoke: Duration::from_mins(5),
            heartbeat: Duration::from_secs(30),
        }
    }
}

/// `http://host:port` of a number that was read as a port before.
pub fn http_url(host: &str, port: u16) -> String {
    topology::http_url(host, Port::new(port))
}

fn readiness_path() -> String {
    "/readiness".to_owned()
}

fn os_words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    Ok(words.into_iter().map(OsString::from).collect())
}

fn environment<'de, D: Deserializer<'de>>(from: D) -> Result<Environment, D::Error> {
    let vars = BTreeMap::<String, String>::deserialize(from)?;
    let vars = vars
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    Ok(Environment::new(vars))
}

fn role<'de, D: Deserializer<'de>>(from: D) -> Result<Role, D::Error> {
    let name = String::deserialize(from)?;
    Role::ALL
        .into_iter()
        .find(|role| role.name() == name)
        .ok_or_else(|| serde::de::Error::custom(format!("unknown role `{name}`")))
}

fn duration<E: serde::de::Error>(seconds: f64) -> Result<Duration, E> {
    Duration::try_from_secs_f64(seconds).map_err(E::custom)
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    duration(f64::deserialize(from)?)
}

fn some_seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Option::<f64>::deserialize(from)?.map(duration).transpose()
}

/// `{"argv": [...], "env": {...}}`: the origins of words and variables are not in the JSON form.
fn command<'de, D: Deserializer<'de>>(from: D) -> Result<Command, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Plain {
        argv: Vec<String>,
        #[serde(default)]
        env: BTreeMap<String, String>,
    }
    let origin = || Source::Derived("the node's specification".to_owned());
    let Plain { argv, env } = Plain::deserialize(from)?;
    let mut words = argv.into_iter();
    let program = words
        .next()
        .ok_or_else(|| serde::de::Error::custom("`argv` is empty"))?;
    Ok(Command {
        program,
        args: words
            .map(|word| ArgGroup::new(vec![word], origin()))
            .collect(),
        env: env
            .into_iter()
            .map(|(name, value)| EnvVar {
                name,
                value,
                source: origin(),
                shadowed: Vec::new(),
            })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_specification_is_read_with_the_documented_limits() {
        let spec: NodeSpec = serde_json::from_str(
            r#"{"rank": 0, "job": {"model": "M", "model_path": "/m", "ranks": 1}, "log_dir": "logs",
                "workload": ["true"], "limits": {"grace": 0.5},
                "workers": [{"name": "standalone-0", "role": "standalone", "address": "::1", "port": 8000,
                             "health_url": "http://[::1]:8000/health", "command": {"argv": ["python3", "-m", "x"]}}]}"#,
        )
        .unwrap();
        assert!(spec.leads());
        assert_eq!(spec.client_url().as_deref(), Some("http://[::1]:8000"));
        assert_eq!(spec.limits.grace, Duration::from_millis(500));
        assert_eq!(spec.limits.wait_server, Duration::from_secs(2500));
        assert_eq!(spec.workers[0].command.argv(), ["python3", "-m", "x"]);
    }

    #[test]
    fn a_misspelt_field_or_role_is_refused() {
        let bad = r#"{"rank": 0, "job": {"model": "M", "model_path": "/m", "ranks": 1}, "log_dir": "l", "worker": []}"#;
        assert!(serde_json::from_str::<NodeSpec>(bad).is_err());
        let role = r#"{"name": "x", "role": "router", "rank": 0, "health_url": "http://h/"}"#;
        assert!(serde_json::from_str::<Endpoint>(role).is_err());
    }
}
