//! What the host says: addresses, devices, folders. Looked up only when asked, and never an error: a laptop has none of it.

use std::ffi::OsStr;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::program::{Lookup, look_up};
use crate::domain::environment::{Environment, HostFacts, ModelFolder, RankFacts};

/// Look at this host; `address` says whether the address of the route out is wanted.
pub fn facts(python: &str, environment: &Environment, address: bool) -> HostFacts {
    let rocm = "/opt/rocm/lib";
    HostFacts {
        route_address: address.then(route_address).flatten(),
        mooncake_dir: mooncake_dir(python, environment),
        rocm_lib: Path::new(rocm).is_dir().then(|| rocm.to_owned()),
        rdma_devices: rdma_devices(),
    }
}

/// Look at this host for a rank that begins now.
pub fn of_rank() -> RankFacts {
    let name = nix::unistd::gethostname().unwrap_or_default();
    RankFacts {
        host: name.to_string_lossy().into_owned(),
        run_logs: Path::new("/run_logs").is_dir(),
        now: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
    }
}

/// Source address that the kernel would choose for a packet to the outside. No packet is sent.
fn route_address() -> Option<String> {
    let outside = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    outside.iter().find_map(|(any, target)| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(target).ok()?;
        let address = socket.local_addr().ok()?.ip();
        (!address.is_unspecified() && !address.is_loopback()).then(|| address.to_string())
    })
}

/// The mooncake package next to the interpreter in use, found without running it.
///
/// A virtual environment's `bin/python3` is a link to another prefix, so its own prefix is looked at first, then the link's target.
fn mooncake_dir(python: &str, environment: &Environment) -> Option<String> {
    let program = match look_up(OsStr::new(python), environment.raw("PATH")) {
        // It may be marked executable on the compute nodes only.
        Lookup::Found(program) | Lookup::Unusable(program, _) => program,
        Lookup::Missing(_) => return None,
    };
    let real = fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
    let version = real
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.strip_prefix("python"))
        .filter(|version| version.contains('.'))
        .map(|version| format!("python{version}"));
    let prefixes = [&program, &real]
        .into_iter()
        .filter_map(|path| path.parent()?.parent().map(Path::to_path_buf));
    for prefix in prefixes {
        let mut found: Vec<PathBuf> = Vec::new();
        for library in [prefix.join("lib"), prefix.join("local/lib")] {
            for entry in fs::read_dir(library).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                let fits = version
                    .as_deref()
                    .map_or(name.starts_with("python3"), |version| {
                        name == version || name == "python3"
                    });
                if fits {
                    for packages in ["site-packages", "dist-packages"] {
                        found.push(entry.path().join(packages).join("mooncake"));
                    }
                }
            }
        }
        found.retain(|folder| folder.is_dir());
        found.sort();
        if let Some(folder) = found.first() {
            return folder.to_str().map(str::to_owned);
        }
    }
    None
}

/// Names of the RDMA devices, as `ibv_devinfo` lists them.
fn rdma_devices() -> Vec<String> {
    names_in(Path::new("/sys/class/infiniband"))
}

/// What is in a folder, sorted; nothing where it cannot be read.
fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Whether a folder is a hub cache folder, and which snapshot it means: the one `refs/main` names, else the only one.
pub fn model_folder(path: &str) -> ModelFolder {
    let folder = Path::new(path);
    let is_hub = folder
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("models--"));
    let snapshots = folder.join("snapshots");
    if !is_hub || !snapshots.is_dir() {
        return ModelFolder::Plain;
    }
    let snapshot = |name: &str| {
        ModelFolder::Snapshot(format!("{}/snapshots/{name}", path.trim_end_matches('/')))
    };
    if let Ok(main) = fs::read_to_string(folder.join("refs/main")) {
        let name = main.trim();
        if !name.is_empty() && !name.contains('/') && snapshots.join(name).is_dir() {
            return snapshot(name);
        }
        return ModelFolder::Unclear(format!(
            "refs/main names the snapshot `{}`, which is not there",
            name.escape_debug()
        ));
    }
    match names_in(&snapshots).as_slice() {
        [only] => snapshot(only),
        [] => ModelFolder::Unclear("it holds no snapshot".into()),
        several => ModelFolder::Unclear(format!(
            "there is no refs/main, and several snapshots: {}",
            several.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hub_folders_resolve_to_one_snapshot_or_say_why_not() {
        let home = tempfile::tempdir().unwrap();
        let hub = home.path().join("models--org--M");
        let path = hub.to_str().unwrap();
        assert_eq!(model_folder(path), ModelFolder::Plain);
        fs::create_dir_all(hub.join("snapshots/abc")).unwrap();
        assert_eq!(
            model_folder(path),
            ModelFolder::Snapshot(format!("{path}/snapshots/abc"))
        );
        fs::create_dir_all(hub.join("snapshots/old")).unwrap();
        assert!(
            matches!(model_folder(path), ModelFolder::Unclear(reason) if reason.contains("abc, old"))
        );
        fs::create_dir_all(hub.join("refs")).unwrap();
        fs::write(hub.join("refs/main"), "old\n").unwrap();
        assert_eq!(
            model_folder(path),
            ModelFolder::Snapshot(format!("{path}/snapshots/old"))
        );
        fs::write(hub.join("refs/main"), "gone").unwrap();
        assert!(
            matches!(model_folder(path), ModelFolder::Unclear(reason) if reason.contains("gone"))
        );
    }

    #[test]
    fn mooncake_is_found_in_the_interpreters_own_prefix() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        fs::create_dir_all(at("bin")).unwrap();
        fs::create_dir_all(at("lib/python3.12/site-packages/mooncake")).unwrap();
        fs::create_dir_all(at("lib/python3.10/site-packages/mooncake")).unwrap();
        fs::write(at("bin/python3.12"), "").unwrap();
        std::os::unix::fs::symlink("python3.12", at("bin/python3")).unwrap();
        let python = at("bin/python3");
        let found = mooncake_dir(python.to_str().unwrap(), &Environment::default());
        assert!(
            found
                .unwrap()
                .ends_with("lib/python3.12/site-packages/mooncake")
        );
    }
}
