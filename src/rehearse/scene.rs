//! What a stand-in must know besides its arguments: whose part it plays, where it listens, how long it loads, what goes wrong.
//!
//! Written by the rehearsal into one file; the stand-ins find it, and their rank, by variables that every rank hands down.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::faults::{Fault, Kind};
use crate::domain::environment::Environment;

/// Variable that holds the path of the scene.
pub const SCENE: &str = "ATOM_REHEARSE_SCENE";
/// Variable that holds the rank of a process.
pub const RANK: &str = "ATOM_REHEARSE_RANK";

/// Load time of a stand-in server that is started without a scene.
const PLAIN_LOAD: Duration = Duration::from_millis(200);
/// File whose presence says that the workload has started.
const WORKLOAD: &str = "workload-started";

/// The whole rehearsal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// Folder of the rehearsal.
    pub folder: PathBuf,
    /// Load time of servers.
    pub load_ms: u64,
    /// Address of each rank.
    pub addresses: Vec<String>,
    /// Servers and router.
    pub parts: Vec<Part>,
}

/// One process of the rehearsal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Rank.
    pub rank: u32,
    /// HTTP port: with the rank it tells the process.
    pub port: u16,
    /// `decode-1`, `router`.
    pub name: String,
    /// Its faults as text.
    pub faults: Vec<String>,
}

impl Scene {
    /// File of the scene in a folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join("scene.json")
    }

    /// Write it.
    pub fn write(&self) -> anyhow::Result<()> {
        let path = Self::path(&self.folder);
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Ask for the stranger who takes a port: what is written, and what the rehearsal answers.
    pub fn stranger(folder: &Path, rank: u32, port: u16) -> (PathBuf, PathBuf) {
        let name = format!("stranger-{rank}-{port}");
        (
            folder.join(format!("{name}.wanted")),
            folder.join(format!("{name}.there")),
        )
    }

    /// File whose presence says that a fault has happened to somebody.
    pub fn fault_mark(folder: &Path, fault: &Fault) -> PathBuf {
        folder.join(format!("happened: {fault}"))
    }

    /// File whose presence says that the workload has started.
    pub fn workload_mark(folder: &Path) -> PathBuf {
        folder.join(WORKLOAD)
    }
}

/// The part that this process plays.
#[derive(Debug, Clone)]
pub struct Own {
    /// Folder of the rehearsal; none for a stand-in that is started by hand.
    pub folder: Option<PathBuf>,
    /// Rank.
    pub rank: u32,
    /// Port.
    pub port: u16,
    /// Address to listen at where the arguments say all addresses.
    pub address: Option<String>,
    /// Load time.
    pub load: Duration,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Own {
    /// Look up the process with this port.
    pub fn find(environment: &Environment, port: u16) -> anyhow::Result<Self> {
        let mut own = Self {
            folder: None,
            rank: 0,
            port,
            address: None,
            load: PLAIN_LOAD,
            faults: Vec::new(),
        };
        let Some(path) = environment.get(SCENE) else {
            return Ok(own);
        };
        let text = fs::read(path).with_context(|| format!("cannot read {path} ({SCENE})"))?;
        let scene: Scene = serde_json::from_slice(&text)
            .with_context(|| format!("{path} ({SCENE}) is no scene"))?;
        let rank = environment.get(RANK).unwrap_or("0");
        own.rank = rank
            .parse()
            .with_context(|| format!("{RANK}={rank} is no rank"))?;
        own.address = scene.addresses.get(own.rank as usize).cloned();
        own.load = Duration::from_millis(scene.load_ms);
        let mine = scene
            .parts
            .iter()
            .find(|part| part.rank == own.rank && part.port == port);
        for text in mine.map_or(&[][..], |part| &part.faults) {
            let fault = Fault::parse(text)
                .map_err(|problems| anyhow::anyhow!("fault `{text}`: {}", problems.join("; ")))?;
            own.faults.push(fault);
        }
        own.folder = Some(scene.folder);
        Ok(own)
    }

    /// Where to listen: its own address where the arguments say all of them.
    pub fn listen_at<'a>(&'a self, host: &'a str) -> &'a str {
        match &self.address {
            Some(address) if matches!(host, "0.0.0.0" | "::") => address,
            _ => host,
        }
    }

    /// Whether it has a fault of a kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::new(
            pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        )
    }

    #[test]
    fn a_process_finds_its_part_by_rank_and_port() {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene {
            folder: folder.path().to_owned(),
            load_ms: 30,
            addresses: vec!["127.0.0.2".into(), "127.0.0.3".into()],
            parts: vec![Part {
                rank: 1,
                port: 8020,
                name: "decode-1".into(),
                faults: vec!["rank=1 kind=hang".into()],
            }],
        };
        scene.write().unwrap();
        let path = Scene::path(folder.path());
        let path = path.to_str().unwrap();
        let own = Own::find(&environment(&[(SCENE, path), (RANK, "1")]), 8020).unwrap();
        assert!(own.has(Kind::Hang));
        assert_eq!(own.load, Duration::from_millis(30));
        assert_eq!(own.listen_at("0.0.0.0"), "127.0.0.3");
        assert_eq!(own.listen_at("127.0.0.9"), "127.0.0.9");
        let other = Own::find(&environment(&[(SCENE, path), (RANK, "0")]), 8020).unwrap();
        assert!(other.faults.is_empty());
        assert!(Own::find(&environment(&[(SCENE, path), (RANK, "x")]), 1).is_err());
        assert!(Own::find(&environment(&[(SCENE, "/nowhere")]), 1).is_err());
        let plain = Own::find(&environment(&[]), 1).unwrap();
        assert_eq!(plain.listen_at("0.0.0.0"), "0.0.0.0");
    }
}
