//! What is known of the process's surroundings, copied once: variables and the host.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// A copy of the inherited environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    vars: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// From any list of pairs.
    pub fn new(vars: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            vars: vars.into_iter().collect(),
        }
    }

    /// Value of a variable; an empty one is an unset one, and so is one that is not UTF-8 (see [`Self::not_utf8`]).
    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars
            .get(OsStr::new(name))
            .and_then(|value| value.to_str())
            .filter(|value| !value.is_empty())
    }

    /// Value of a variable just as it is inherited, where an empty one is not an unset one: PATH.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Whether a variable is there and not empty, whatever it holds.
    pub fn is_set(&self, name: &str) -> bool {
        self.vars
            .get(OsStr::new(name))
            .is_some_and(|value| !value.is_empty())
    }

    /// Whether a variable holds bytes that are not UTF-8.
    pub fn not_utf8(&self, name: &str) -> bool {
        self.vars
            .get(OsStr::new(name))
            .is_some_and(|value| value.to_str().is_none())
    }

    /// Whether this is the script that sbatch started, not a task of srun. There SLURM_PROCID is 0 whatever the job's shape,
    /// and means no rank. sbatch's own mark is inherited by steps; the step's number is not there before.
    pub fn is_batch_step(&self) -> bool {
        self.get("ENVIRONMENT") == Some("BATCH") && !self.is_set("SLURM_STEP_ID")
    }

    /// Names that are UTF-8, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.vars.keys().filter_map(|name| name.to_str())
    }

    /// All variables, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Set or replace a variable of the copy.
    pub fn insert(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.vars.insert(name.into(), value.into());
    }
}

/// What the host says. Everything is optional: a laptop has none of it.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    /// Source address of the route out.
    pub route_address: Option<String>,
    /// The mooncake package of the interpreter in use.
    pub mooncake_dir: Option<String>,
    /// `/opt/rocm/lib`, where it exists.
    pub rocm_lib: Option<String>,
    /// Names of the RDMA devices, sorted.
    pub rdma_devices: Vec<String>,
}

impl HostFacts {
    /// In words.
    pub fn in_words(&self) -> String {
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".into());
        let devices = match self.rdma_devices.as_slice() {
            [] => "none".to_owned(),
            some => some.join(", "),
        };
        format!(
            "route out {}, mooncake {}, ROCm libraries {}, RDMA devices {devices}",
            or_none(&self.route_address),
            or_none(&self.mooncake_dir),
            or_none(&self.rocm_lib)
        )
    }
}

/// What a rank's record and its log folder need to know of the host and of the moment.
#[derive(Debug, Clone, Default)]
pub struct RankFacts {
    /// The host's own name; empty where the system does not tell.
    pub host: String,
    /// Whether `/run_logs` exists, where clusters of this kind keep the logs of jobs.
    pub run_logs: bool,
    /// Now, since 1970.
    pub now: Duration,
}

/// What a model folder turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFolder {
    /// An ordinary folder, or not there (it may exist on the compute nodes only).
    Plain,
    /// A hub cache folder and its snapshot's path.
    Snapshot(String),
    /// A hub cache folder in which no single snapshot can be chosen; the reason.
    Unclear(String),
}

impl ModelFolder {
    /// In words.
    pub fn in_words(&self) -> String {
        match self {
            Self::Plain => "no hub cache folder".to_owned(),
            Self::Snapshot(path) => format!("a hub cache folder, its snapshot {path}"),
            Self::Unclear(why) => format!("a hub cache folder: {why}"),
        }
    }
}
