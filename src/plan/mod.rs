//! The plan: what every worker and the router of a job will run. Plain data; nothing here decides anything.

pub mod node;

use crate::domain::command::Command;
use crate::domain::models::Origin;
use crate::domain::provenance::Sourced;
use crate::domain::settings::Layout;
use crate::domain::topology::{Mode, Port, Role, http_url};

/// Version of the plan's JSON form; raised when a key changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// Which models file the plan was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelsOrigin {
    /// Path or built-in.
    pub origin: Origin,
    /// Name that messages use.
    pub name: String,
    /// SHA-256 of the file's bytes, lower-case hexadecimal.
    pub sha256: String,
}

/// Speculative decoding as the server will read it from its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speculation {
    /// Value of `--method`.
    pub method: String,
    /// Tokens a step.
    pub tokens: u32,
}

/// One server and the GPUs it owns.
#[derive(Debug, Clone)]
pub struct WorkerPlan {
    /// Index of its node in the job.
    pub rank: u32,
    /// Index on its node; 0 unless a packed layout puts several there.
    pub slot: u32,
    /// Role.
    pub role: Role,
    /// Index among the workers of its role.
    pub index: u32,
    /// `prefill-0`: role and rank; `prefill-0-1` for the second worker of a node.
    pub name: String,
    /// Address or name of its node, where the topology gives one.
    pub node: Option<String>,
    /// Parallel mode.
    pub mode: Sourced<Mode>,
    /// Tensor-parallel size: the GPUs of the worker, also where data-parallel attention makes ranks of them.
    pub tp: Sourced<u32>,
    /// HTTP port.
    pub port: Sourced<Port>,
    /// KV-transfer ports that it binds: first and how many. Consumers over mooncake bind none.
    pub handshake: Option<(Port, u32)>,
    /// Port of the data-parallel rendezvous, with data-parallel attention.
    pub dp_master: Option<Port>,
    /// Pinned port of the group rendezvous, where several workers share a node.
    pub dp_base: Option<Port>,
    /// Devices it is confined to, where several workers share a node: entries of HIP_VISIBLE_DEVICES, else numbers from 0. `None`: it sees all.
    pub gpus: Option<Vec<String>>,
    /// Address that it announces for KV transfer.
    pub host_ip: Option<Sourced<String>>,
    /// `--model`: a folder, the snapshot of a hub cache folder, or a hub id.
    pub model_path: Sourced<String>,
    /// Speculative decoding.
    pub speculation: Option<Speculation>,
    /// What runs.
    pub command: Command,
}

impl WorkerPlan {
    /// Address or name under which it is reached; a stand-in name where a preview knows none.
    pub fn address(&self) -> String {
        match (&self.node, self.role) {
            (Some(node), _) => node.clone(),
            (None, Role::Standalone) => "127.0.0.1".into(),
            (None, _) => format!("node{}", self.rank),
        }
    }

    /// Where it says that it is well.
    pub fn health_url(&self) -> String {
        format!("{}/health", http_url(&self.address(), self.port.value))
    }
}

/// The router on rank 0.
#[derive(Debug, Clone)]
pub struct RouterPlan {
    /// Address of rank 0.
    pub node: String,
    /// HTTP port.
    pub port: Sourced<Port>,
    /// Metrics port.
    pub prometheus: Sourced<Port>,
    /// What runs.
    pub command: Command,
}

/// A whole job.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// The model as asked for.
    pub model: String,
    /// Its entry; a variant's name may differ from the model's.
    pub entry: String,
    /// The models file.
    pub models: ModelsOrigin,
    /// Placement.
    pub layout: Layout,
    /// Number of nodes.
    pub ranks: u32,
    /// All workers by rank and slot.
    pub workers: Vec<WorkerPlan>,
    /// The router, when a topology is given.
    pub router: Option<RouterPlan>,
}

impl JobPlan {
    /// Workers of one rank.
    pub fn workers_of(&self, rank: u32) -> impl Iterator<Item = &WorkerPlan> {
        self.workers
            .iter()
            .filter(move |worker| worker.rank == rank)
    }
}
