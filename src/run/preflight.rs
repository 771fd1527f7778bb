//! Looks for everything that would stop a rank, before anything is started: all problems at once.

mod address;
mod folders;
mod room;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::diagnostic::{Code, Diagnostic, Place};
use crate::exit;
use crate::input::program::Failure;
use crate::plan::node::{ModelCheck, NodeSpec};

use super::event::{Proc, spoken};
use super::launch::path_of;
use super::ports::{self, Port};

/// A model folder is not there.
pub const MODEL_MISSING: Code = Code("model-missing");
/// A model folder has no weights, or a hub id is not in the cache.
pub const MODEL_INCOMPLETE: Code = Code("model-incomplete");
/// A program is not there.
pub const PROGRAM_MISSING: Code = Code("program-missing");
/// A program may not be executed.
pub const PROGRAM_UNUSABLE: Code = Code("program-unusable");
/// The log folder cannot be written.
pub const LOG_FOLDER: Code = Code("log-folder");
/// Words and variables of a process are more than the system takes, or it lets too few files be open.
pub const LIMIT: Code = Code("system-limit");
/// A port is held by somebody.
pub const PORT_IN_USE: Code = Code("port-in-use");
/// The rank's address is none of this machine's.
pub const ADDRESS: Code = Code("address-elsewhere");
/// The job ends before a wait could.
pub const JOB_ENDS: Code = Code("job-ends-early");

/// Everything that stands against this rank's start.
pub fn preflight(spec: &NodeSpec) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for check in &spec.job.model_checks {
        found.extend(model(check, spec.job.offline_hub_cache.as_deref()));
    }
    programs(spec, &mut found);
    room::sizes(spec, &mut found);
    found.extend(room::open_files());
    found.extend(folders::logs(&spec.log_dir));
    found.extend(spec.collect_logs.as_deref().and_then(folders::collected));
    all_ports(spec, &mut found);
    address::deaf(spec, &mut found);
    if let Some(end) = spec.job_end {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        found.extend(job_end(spec, Duration::from_secs(end).saturating_sub(now)));
    }
    found
}

/// The exit code for findings: programs that are missing or unusable have codes of their own.
pub fn exit_code(findings: &[Diagnostic]) -> u8 {
    let errors: Vec<Code> = findings
        .iter()
        .filter(|one| one.is_error())
        .map(|one| one.code)
        .collect();
    let all = |codes: &[Code]| errors.iter().all(|code| codes.contains(code));
    if errors.is_empty() {
        exit::OK
    } else if all(&[PROGRAM_MISSING]) {
        exit::NOT_FOUND
    } else if all(&[PROGRAM_MISSING, PROGRAM_UNUSABLE]) {
        exit::CANNOT_EXECUTE
    } else {
        exit::USAGE
    }
}

fn model(check: &ModelCheck, hub_cache: Option<&Path>) -> Option<Diagnostic> {
    let ModelCheck { what, path, from } = check;
    let place = Place::Input(from.clone());
    let folder = Path::new(path);
    let from = if from.is_empty() {
        String::new()
    } else {
        format!(" (from {from})")
    };
    if folder.is_dir() {
        let lacks = what_folder_lacks(folder)?;
        let text = format!("{what} folder {path}{from} has no {lacks}");
        return Some(Diagnostic::warning(MODEL_INCOMPLETE, place, text));
    }
    if is_hub_id(path) {
        let cache = hub_cache?;
        let entry = cache.join(format!("models--{}", path.replace('/', "--")));
        let text = format!(
            "{what} {path}{from} is no folder, and not in the hub cache {}",
            cache.display()
        );
        return (!entry.is_dir()).then(|| {
            Diagnostic::warning(MODEL_INCOMPLETE, place, text)
                .help("the hub is switched off by `HF_HUB_OFFLINE`: download it first")
        });
    }
    let text = format!("{what} folder {path}{from} does not exist");
    let nearest = folder.ancestors().skip(1).find(|one| one.is_dir());
    let help = nearest.map(|there| {
        format!(
            "{} exists; is the file system mounted here?",
            there.display()
        )
    });
    Some(Diagnostic::error(MODEL_MISSING, place, text).help_if(help))
}

/// `name` or `organisation/name`, as the hub has them.
fn is_hub_id(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    parts.len() <= 2
        && parts
            .iter()
            .all(|part| !part.is_empty() && !part.starts_with('.'))
}

fn what_folder_lacks(folder: &Path) -> Option<&'static str> {
    const WEIGHTS: [&str; 5] = ["safetensors", "bin", "pt", "pth", "gguf"];
    let names: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let has = |wanted: &dyn Fn(&Path) -> bool| names.iter().any(|path| wanted(path));
    let weights = |path: &Path| {
        path.extension()
            .and_then(OsStr::to_str)
            .is_some_and(|end| WEIGHTS.contains(&end))
    };
    if !has(&|path| path.file_name() == Some(OsStr::new("config.json"))) {
        Some("config.json")
    } else if !has(&weights) {
        Some("weights (no file ends in .safetensors or the like)")
    } else {
        None
    }
}

fn programs(spec: &NodeSpec, found: &mut Vec<Diagnostic>) {
    let servers = spec.workers.iter().enumerate().map(|(index, worker)| {
        let program = OsStr::new(&worker.command.program);
        ("interpreter", Proc::Server(index), program)
    });
    let router = spec.router.iter().map(|router| {
        let program = OsStr::new(&router.command.program);
        ("router", Proc::Router, program)
    });
    let workload = spec.workload.first();
    let workload = workload.map(|word| ("workload", Proc::Workload, word.as_os_str()));
    for (what, proc, name) in servers.chain(router).chain(workload) {
        let Some(Failure { code, why, help }) = Failure::foreseen(name, path_of(spec, proc)) else {
            continue;
        };
        let code = if code == exit::NOT_FOUND {
            PROGRAM_MISSING
        } else {
            PROGRAM_UNUSABLE
        };
        let place = Place::Input(what.to_owned());
        let text = format!(
            "{what} `{}` cannot be executed: {why}",
            name.to_string_lossy()
        );
        let problem = Diagnostic::error(code, place, text).help_if(help);
        // Several workers have one interpreter.
        if !found.contains(&problem) {
            found.push(problem);
        }
    }
}

fn all_ports(spec: &NodeSpec, found: &mut Vec<Diagnostic>) {
    let mut wanted: Vec<(&str, u16, String)> = Vec::new();
    for worker in &spec.workers {
        let address = worker.address.as_str();
        wanted.push((address, worker.port, worker.name.clone()));
        for port in worker.handshake_ports.clone().unwrap_or_default() {
            wanted.push((
                address,
                port,
                format!("the KV handshake of {}", worker.name),
            ));
        }
        if let Some(port) = worker.dp_master_port {
            wanted.push((
                address,
                port,
                format!("the data-parallel rendezvous of {}", worker.name),
            ));
        }
    }
    if let Some(router) = &spec.router {
        wanted.push((&router.address, router.port, "the router".to_owned()));
        if let Some(port) = router.prometheus_port {
            wanted.push((&router.address, port, "the router's metrics".to_owned()));
        }
    }
    let mut elsewhere = Vec::new();
    for (address, port, user) in wanted {
        let place = Place::Input(format!("port {port}"));
        let text = match ports::probe(address, port, spec.slurm_job()) {
            Port::Free => continue,
            Port::Held(who) => {
                format!("port {port} at {address}, needed by {user}, is in use by {who}")
            }
            Port::Unusable(why) => {
                format!("port {port} at {address}, needed by {user}, cannot be used: {why}")
            }
            Port::Elsewhere => {
                if !elsewhere.contains(&address) {
                    elsewhere.push(address);
                }
                continue;
            }
        };
        found.push(Diagnostic::error(PORT_IN_USE, place, text));
    }
    found.extend(
        elsewhere
            .into_iter()
            .filter_map(|address| address::elsewhere(spec, address)),
    );
}

fn job_end(spec: &NodeSpec, left: Duration) -> Option<Diagnostic> {
    if !spec.leads() {
        return None;
    }
    let (name, wait) = [
        ("WAIT_SERVER_TIMEOUT", spec.limits.wait_server),
        ("WAIT_ROUTER_TIMEOUT", spec.limits.wait_router),
    ]
    .into_iter()
    .find(|(_, wait)| *wait > left)?;
    let text = format!(
        "{name} is {} s, and the SLURM job ends in {} s ({}): the wait would be cut off without a word",
        wait.as_secs(),
        left.as_secs(),
        spoken(left)
    );
    Some(Diagnostic::warning(
        JOB_ENDS,
        Place::Input(name.into()),
        text,
    ))
}

#[cfg(test)]
mod tests;
