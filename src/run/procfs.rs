//! What `/proc` says of processes and sockets. Reads only; a process that is gone is simply not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// One line of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Process id.
    pub pid: i32,
    /// Its parent.
    pub parent: i32,
    /// Its group.
    pub group: i32,
    /// `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    /// Start time in ticks since boot: with the id, never used twice.
    pub start: u64,
    /// Ticks computed so far.
    pub ticks: u64,
    /// Wait status of a dead one.
    pub status: i32,
}

impl Stat {
    /// Whether it still runs.
    pub fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        // The name may hold blanks and brackets; the last bracket ends it.
        let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            pid: pid.parse().ok()?,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            ticks: number(11)? + number(12)?,
            start: number(19)?,
            status: fields
                .get(49)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
        })
    }
}

/// One process.
pub fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Stat::parse(&String::from_utf8_lossy(&text))
}

/// All processes that can be seen.
pub fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .collect()
}

/// All descendants of a process, dead ones that nobody collected included.
pub fn descendants(of: i32, all: &[Stat]) -> Vec<Stat> {
    let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
    for one in all {
        children.entry(one.parent).or_default().push(*one);
    }
    let mut found = Vec::new();
    let mut queue = vec![of];
    while let Some(parent) = queue.pop() {
        // Taken out, so that a parent that changed meanwhile cannot make a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            queue.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// The program that a process runs.
pub fn executable(pid: i32) -> Option<std::path::PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The command line of a process.
pub fn command_line(pid: i32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .split('\0')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Bytes that a process has read, by calls or by page faults.
pub fn bytes_read(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| matches!(*name, "rchar" | "read_bytes"))
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok())
        .sum()
}

/// Kernel ticks as a time: `USER_HZ` is 100 on every Linux that these machines run.
pub fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(10))
}

/// A row of `/proc/net/tcp` or `tcp6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// Local address; a mapped IPv4 address stands as IPv4.
    pub address: IpAddr,
    /// Local port.
    pub port: u16,
    /// Whether it listens.
    pub listens: bool,
    /// Its owner's user id.
    pub uid: u32,
    /// Its inode, by which file descriptors name it.
    pub inode: u64,
}

impl Socket {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.split_once(':')?;
        Some(Self {
            address: hex_address(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            listens: *fields.get(3)? == "0A",
            uid: fields.get(7)?.parse().ok()?,
            inode: fields.get(9)?.parse().ok()?,
        })
    }
}

/// Addresses stand there as 32-bit words in the machine's own byte order.
fn hex_address(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::with_capacity(16);
    for start in (0..text.len()).step_by(8) {
        let word = u32::from_str_radix(text.get(start..start + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            Some(address.to_canonical())
        }
        _ => None,
    }
}

/// All sockets with this local port. `None` when `/proc` cannot tell.
pub fn sockets_on(port: u16) -> Option<Vec<Socket>> {
    let tables: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect();
    if tables.is_empty() {
        return None;
    }
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    Some(
        rows.filter_map(Socket::parse)
            .filter(|socket| socket.port == port)
            .collect(),
    )
}

/// Sockets that stand in the way of (or answer for) one of these addresses: an exact address beats a wildcard.
pub fn relevant<'a>(sockets: &'a [Socket], addresses: &[IpAddr]) -> Vec<&'a Socket> {
    let exact: Vec<&Socket> = sockets
        .iter()
        .filter(|socket| addresses.contains(&socket.address))
        .collect();
    if !exact.is_empty() {
        return exact;
    }
    sockets
        .iter()
        .filter(|socket| {
            socket.address.is_unspecified() || addresses.iter().all(IpAddr::is_unspecified)
        })
        .collect()
}

/// Which of these sockets a process holds. `None` when its descriptors may not be read.
pub fn holds(pid: i32, inodes: &BTreeSet<u64>) -> Option<bool> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let held = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| {
            socket_inode(&link.to_string_lossy()).is_some_and(|inode| inodes.contains(&inode))
        });
    Some(held)
}

fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The first process that holds one of these sockets, as far as it can be seen.
pub fn holder(inodes: &BTreeSet<u64>) -> Option<i32> {
    all()
        .into_iter()
        .map(|one| one.pid)
        .find(|pid| holds(*pid, inodes) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let mut text = "42 (a b) c) S 7 42 42 0 -1 0 0 0 0 0 30 12 0 0 20 0 1 0 999".to_owned();
        text.push_str(&" 0".repeat(29));
        text.push_str(" 9");
        let stat = Stat::parse(&text).unwrap();
        assert_eq!((stat.pid, stat.parent, stat.state), (42, 7, 'S'));
        assert_eq!((stat.ticks, stat.start, stat.status), (42, 999, 9));
    }

    #[test]
    fn our_own_listener_is_found_and_is_ours() {
        for address in ["127.0.0.1", "127.0.0.9", "::1", "::"] {
            let Ok(listener) = TcpListener::bind((address, 0)) else {
                continue; // a machine without IPv6
            };
            let port = listener.local_addr().unwrap().port();
            let sockets = sockets_on(port).unwrap();
            let asked: IpAddr = address.parse().unwrap();
            let ours: BTreeSet<u64> = relevant(&sockets, &[asked])
                .iter()
                .filter(|socket| socket.listens)
                .map(|socket| socket.inode)
                .collect();
            let me = i32::try_from(std::process::id()).unwrap();
            assert_eq!(ours.len(), 1, "{address}: {sockets:?}");
            assert_eq!(holds(me, &ours), Some(true), "{address}");
            assert_eq!(holder(&ours), Some(me), "{address}");
        }
    }

    #[test]
    fn an_exact_address_beats_a_wildcard() {
        let socket = |address: &str, inode| Socket {
            address: address.parse().unwrap(),
            port: 80,
            listens: true,
            uid: 0,
            inode,
        };
        let all = [
            socket("0.0.0.0", 1),
            socket("127.0.0.2", 2),
            socket("127.0.0.3", 3),
        ];
        let of = |address: &str| relevant(&all, &[address.parse().unwrap()])[0].inode;
        assert_eq!(of("127.0.0.3"), 3);
        assert_eq!(of("127.0.0.4"), 1);
    }

    #[test]
    fn this_test_descends_from_its_parent() {
        let me = i32::try_from(std::process::id()).unwrap();
        let mine = stat(me).unwrap();
        assert!(
            descendants(mine.parent, &all())
                .iter()
                .any(|one| one.pid == me)
        );
        assert!(!descendants(me, &all()).iter().any(|one| one.pid == me));
    }
}
