//! What a rehearsal needs of the machine: a private folder, an address a rank, free ports, programs, a model folder.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{CHECK, PYTHON, ROUTER, WORKLOAD};
use crate::resolve::topology::DP_MASTER;

/// Ports below this one are used by common services.
const FIRST_PORT: u16 = 10_000;
/// Tries to find a span of free ports.
const TRIES: u32 = 200;
/// Most ranks: addresses of a block, without the first two and the last.
const MOST_RANKS: u32 = 253;

/// Beginning of a folder's name; the process id and a random number follow.
const PREFIX: &str = "atom-rehearse-";
/// In a folder that was to be kept.
const KEPT: &str = "kept";

/// A private folder, removed at the end unless it is to be kept.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) keep: bool,
    /// Locked while this process lives, however that ends.
    _lock: File,
}

impl Folder {
    pub(super) fn create(keep: bool) -> anyhow::Result<Self> {
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), random() >> 32);
        let path = std::env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        builder
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make the folder {}", path.display()))?;
        let lock = File::open(&path).and_then(|folder| folder.lock().map(|()| folder));
        let lock = lock.with_context(|| format!("cannot lock {}", path.display()))?;
        if keep {
            fs::write(path.join(KEPT), "")
                .with_context(|| format!("cannot write in {}", path.display()))?;
        }
        Ok(Self {
            path,
            keep,
            _lock: lock,
        })
    }

    /// Our program under its other names; the folder of them.
    pub(super) fn programs(&self) -> anyhow::Result<PathBuf> {
        let folder = self.path.join("bin");
        let own = std::env::current_exe().context("cannot find the own program")?;
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for name in [PYTHON, ROUTER, CHECK, WORKLOAD] {
            symlink(&own, folder.join(name)).with_context(|| format!("cannot link {name}"))?;
        }
        Ok(folder)
    }

    /// A model folder that passes for one: a configuration and empty weights.
    pub(super) fn model(&self, like: &str) -> anyhow::Result<String> {
        let name = Path::new(like)
            .file_name()
            .unwrap_or_else(|| "model".as_ref());
        let folder = self.path.join("models").join(name);
        let write = |name: &str, data: &[u8]| fs::write(folder.join(name), data);
        // An empty safetensors file: the length of its header, and the header.
        let weights = [&2_u64.to_le_bytes()[..], b"{}"].concat();
        fs::create_dir_all(&folder)
            .and_then(|()| write("config.json", b"{\"model_type\": \"rehearsal\"}\n"))
            .and_then(|()| write("model.safetensors", &weights))
            .with_context(|| format!("cannot make the model folder {}", folder.display()))?;
        folder
            .into_os_string()
            .into_string()
            .map_err(|path| anyhow::anyhow!("{} is not UTF-8", path.display()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.keep {
            let _ = fs::write(self.path.join(KEPT), "");
        } else {
            // Whatever a workload made unremovable in it stays in the system's folder for such things.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Remove the folders of rehearsals that were killed before they could do so, and say which.
pub(super) fn remove_left_behind(say: impl Fn(&str)) {
    let entries = fs::read_dir(std::env::temp_dir());
    for path in entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
    {
        if is_left_behind(&path) && fs::remove_dir_all(&path).is_ok() {
            let path = path.display();
            say(&format!(
                "rehearsal: removed {path}, which a killed rehearsal had left behind"
            ));
        }
    }
}

/// A folder of ours that nobody is to keep, and whose rehearsal has ended: neither its process nor its lock is there.
fn is_left_behind(path: &Path) -> bool {
    let pid = path
        .file_name()
        .and_then(|name| name.to_str()?.strip_prefix(PREFIX)?.split_once('-'))
        .and_then(|(pid, _)| pid.parse().ok());
    let Some(pid) = pid else {
        return false;
    };
    let own = fs::metadata("/proc/self").ok();
    let ours = fs::symlink_metadata(path)
        .is_ok_and(|data| data.is_dir() && own.is_some_and(|own| own.uid() == data.uid()));
    ours && !path.join(KEPT).exists()
        && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)
        // In another container the process may live all the same.
        && File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
}

/// A block of loopback addresses that is ours while this lives.
#[derive(Debug)]
pub(super) struct Block {
    third: u8,
    _claim: UnixListener,
}

impl Block {
    /// Claim a block: `127.1.0`, or the next one that no other rehearsal has and in which the rendezvous port is free. Whoever
    /// starts ranks by hand takes `127.0.0`, and would meet our rendezvous port there.
    pub(super) fn claim() -> anyhow::Result<Self> {
        let mut second_best = None;
        for third in 0..=u8::MAX {
            // The name ends with this process, however that ends.
            let name =
                SocketAddr::from_abstract_name(format!("atom-launch-rehearse-127.1.{third}"))?;
            let Ok(claim) = UnixListener::bind_addr(&name) else {
                continue;
            };
            let block = Self {
                third,
                _claim: claim,
            };
            if TcpListener::bind((block.address(0), DP_MASTER)).is_ok() {
                return Ok(block);
            }
            second_best.get_or_insert(block);
            if third >= 15 {
                break;
            }
        }
        // Somebody holds the port everywhere: the ranks' preflight names him where it matters.
        second_best.context("no block of loopback addresses is free: 256 rehearsals run already")
    }

    fn address(&self, rank: u32) -> String {
        format!("127.1.{}.{}", self.third, rank + 2)
    }

    /// An address for each rank.
    pub(super) fn addresses(&self, ranks: u32) -> anyhow::Result<Vec<String>> {
        if ranks > MOST_RANKS {
            bail!("a rehearsal has at most {MOST_RANKS} ranks, not {ranks}");
        }
        Ok((0..ranks).map(|rank| self.address(rank)).collect())
    }
}

/// The first of so many ports in a row that are free at each of these addresses, outside the range from which the system takes ports
/// of its own. Nobody else's addresses are touched: a port that is tried is held for a moment.
pub(super) fn free_ports(addresses: &[String], count: u16) -> anyhow::Result<u16> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let low: u16 = range
        .split_whitespace()
        .next()
        .and_then(|low| low.parse().ok())
        .unwrap_or(32_768);
    let last = low.saturating_sub(count);
    let (first, last) = if last > FIRST_PORT {
        (FIRST_PORT, last)
    } else {
        (FIRST_PORT, u16::MAX - count)
    };
    for _ in 0..TRIES {
        let start = first + u16::try_from(random() % u64::from(last - first)).unwrap_or(0);
        let is_free = |port| {
            let mut all = addresses.iter();
            all.all(|address| TcpListener::bind((address.as_str(), port)).is_ok())
        };
        if (start..start + count).all(is_free) {
            return Ok(start);
        }
    }
    bail!("no {count} free ports in a row from {first} to {last}")
}

/// A random number: a new hasher has random keys.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rehearsals_never_share_addresses() {
        let (one, other) = (Block::claim().unwrap(), Block::claim().unwrap());
        assert_ne!(one.address(0), other.address(0));
        assert_eq!(one.addresses(3).unwrap().len(), 3);
        assert!(one.addresses(254).is_err());
    }

    #[test]
    fn the_folder_is_private_and_goes_away() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::create(false).unwrap();
        let path = folder.path.clone();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let model = folder.model("/models/org/M").unwrap();
        assert!(model.ends_with("/models/M"));
        assert!(Path::new(&model).join("config.json").is_file());
        assert!(folder.programs().unwrap().join(PYTHON).exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn free_ports_can_be_bound_in_a_row() {
        let block = Block::claim().unwrap();
        let addresses = block.addresses(2).unwrap();
        let first = free_ports(&addresses, 20).unwrap();
        assert!(first >= FIRST_PORT);
        let bound: Vec<_> = (first..first + 20)
            .map(|port| TcpListener::bind((addresses[1].as_str(), port)))
            .collect();
        assert!(bound.iter().all(Result::is_ok));
    }
}
