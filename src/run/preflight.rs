//! Looks for everything that would stop a rank, before anything is started: all problems at once.

mod address;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::diagnostic::{Code, Diagnostic, Place};
use crate::exit;

use super::event::spoken;
use super::ports::{self, Port};
use super::program::{Fault, Lookup, look_up};
use super::spec::{ModelCheck, NodeSpec};

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
/// A port is held by somebody.
pub const PORT_IN_USE: Code = Code("port-in-use");
/// The rank's address is none of this machine's.
pub const ADDRESS: Code = Code("address-elsewhere");
/// The job ends before a wait could.
pub const JOB_ENDS: Code = Code("job-ends-early");

/// More than a file system keeps beside a file's name.
const TRIAL: [u8; 8192] = [b'.'; 8192];

/// Everything that stands against this rank's start.
pub fn preflight(spec: &NodeSpec) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for check in &spec.job.model_checks {
        found.extend(model(check, spec.job.offline_hub_cache.as_deref()));
    }
    programs(spec, &mut found);
    found.extend(log_folder(&spec.log_dir));
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
    let mut names: Vec<(&str, &OsStr)> = spec
        .workers
        .iter()
        .map(|worker| ("interpreter", OsStr::new(&worker.command.program)))
        .collect();
    names.dedup();
    names.extend(
        spec.router
            .iter()
            .map(|router| ("router", OsStr::new(&router.command.program))),
    );
    names.extend(
        spec.workload
            .first()
            .map(|word| ("workload", word.as_os_str())),
    );
    for (what, name) in names {
        // The workload's PATH is its own when the job sets one.
        let own = spec
            .workload_env
            .iter()
            .find(|(name, _)| what == "workload" && name == "PATH");
        let path = own.map_or_else(|| std::env::var_os("PATH"), |(_, value)| Some(value.into()));
        let shown = name.to_string_lossy();
        let place = Place::Input(what.to_owned());
        match look_up(name, path.as_deref()) {
            Lookup::Found => {}
            Lookup::Missing(more) => {
                let why = more.as_ref().map(|fault| format!(": {}", fault.why));
                let text = format!("{what} `{shown}` not found{}", why.unwrap_or_default());
                let help = more.and_then(|fault| fault.help);
                found.push(Diagnostic::error(PROGRAM_MISSING, place, text).help_if(help));
            }
            Lookup::Unusable(Fault { why, help }) => {
                let text = format!("{what} `{shown}` cannot be executed: {why}");
                found.push(Diagnostic::error(PROGRAM_UNUSABLE, place, text).help_if(help));
            }
        }
    }
}

/// Whether logs can be written: by writing one, since a full disk takes a file without content.
fn log_folder(folder: &Path) -> Option<Diagnostic> {
    let trial = folder.join(format!(".atom-launch-{}", std::process::id()));
    let result = fs::create_dir_all(folder).and_then(|()| fs::write(&trial, TRIAL));
    let _ = fs::remove_file(&trial);
    let (why, help) = cannot_log(folder, &result.err()?);
    let text = format!(
        "log folder {} (--log-dir) cannot be written: {why}",
        folder.display()
    );
    let place = Place::Input("--log-dir".into());
    Some(Diagnostic::error(LOG_FOLDER, place, text).help(help))
}

/// Why a log folder takes nothing, and what to do.
fn cannot_log(folder: &Path, error: &io::Error) -> (String, &'static str) {
    let another = "give a folder with `--log-dir`";
    // The first that is there and no folder stands in the way of all below it.
    let in_the_way = folder
        .ancestors()
        .filter(|above| fs::symlink_metadata(above).is_ok())
        .find(|above| !above.is_dir());
    if let Some(other) = in_the_way {
        let what = match fs::metadata(other) {
            Ok(data) if data.is_file() => "a file",
            Ok(_) => "no folder",
            Err(_) => "a link that leads nowhere",
        };
        let name = if other == folder {
            "it".to_owned()
        } else {
            other.display().to_string()
        };
        return (format!("{name} is {what}"), another);
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => (
            error.to_string(),
            "make room, or give a folder elsewhere with `--log-dir`",
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => (
            error.to_string(),
            "make it writable for this user, or give a folder elsewhere with `--log-dir`",
        ),
        _ => (error.to_string(), another),
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
        let text = match ports::probe(address, port) {
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
