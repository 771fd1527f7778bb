//! Whose port it is: free before the start, ours when a health check is answered.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs as _};

use super::process::describe;
use super::procfs::{self, Socket};

/// State of a port at an address of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Port {
    /// It can be bound.
    Free,
    /// Somebody has it; who, in words.
    Held(String),
    /// The address is none of this machine's.
    Elsewhere,
    /// It cannot be bound for another reason.
    Unusable(String),
}

/// Try to bind a port at the rank's own address, as the server will.
///
/// Not at the wildcard: several ranks may share a machine, each with an address of its own.
pub fn probe(address: &str, port: u16) -> Port {
    let places: Vec<SocketAddr> = match (address, port).to_socket_addrs() {
        Ok(places) => places.collect(),
        Err(_) => return Port::Elsewhere,
    };
    let mut elsewhere = true;
    for place in &places {
        match TcpListener::bind(place) {
            Ok(_) => elsewhere = false,
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Port::Held(holder(&[place.ip()], port));
            }
            Err(error) => return Port::Unusable(error.to_string()),
        }
    }
    if elsewhere {
        Port::Elsewhere
    } else {
        Port::Free
    }
}

/// Who has a port, in words.
fn holder(addresses: &[IpAddr], port: u16) -> String {
    let sockets = procfs::sockets_on(port).unwrap_or_default();
    let mut found = procfs::relevant(&sockets, addresses);
    found.sort_by_key(|socket| !socket.listens);
    let Some(first) = found.first() else {
        return "a process that cannot be seen from here".to_owned();
    };
    let inodes: BTreeSet<u64> = found.iter().map(|socket| socket.inode).collect();
    match procfs::holder(&inodes) {
        Some(pid) => format!("process {pid}: {}", describe(pid)),
        None => format!(
            "a process of user {} that cannot be seen from here",
            first.uid
        ),
    }
}

/// Who answers at a port of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A process below us.
    Ours,
    /// Somebody else; who, in words.
    Stranger(String),
    /// `/proc` cannot tell.
    Unknown,
}

/// Find out whether the listener that answers at an address is one of our own processes.
///
/// A stranger is only called one when all our processes could be looked at and none holds the socket.
pub fn owner(host: &str, port: u16) -> Owner {
    let Ok(places) = (host, port).to_socket_addrs() else {
        return Owner::Unknown;
    };
    let addresses: Vec<IpAddr> = places.map(|place| place.ip()).collect();
    let Some(sockets) = procfs::sockets_on(port) else {
        return Owner::Unknown;
    };
    let listening: Vec<Socket> = sockets
        .into_iter()
        .filter(|socket| socket.listens)
        .collect();
    let inodes: BTreeSet<u64> = procfs::relevant(&listening, &addresses)
        .iter()
        .map(|socket| socket.inode)
        .collect();
    if inodes.is_empty() {
        return Owner::Unknown;
    }
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    let mut all_seen = true;
    for one in procfs::descendants(me, &procfs::all()) {
        match procfs::holds(one.pid, &inodes) {
            Some(true) => return Owner::Ours,
            Some(false) => {}
            // One that just ended has no descriptors, and none that could listen.
            None => all_seen &= procfs::stat(one.pid).is_none_or(|stat| !stat.alive()),
        }
    }
    if all_seen {
        Owner::Stranger(holder(&addresses, port))
    } else {
        Owner::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_at_one_address_and_held_at_another() {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let me = format!("process {}: ", std::process::id());
        let Port::Held(who) = probe("127.0.0.2", port) else {
            panic!("the port is held");
        };
        assert!(who.starts_with(&me), "{who}");
        assert_eq!(probe("127.0.0.3", port), Port::Free);
        drop(listener);
        assert_eq!(probe("127.0.0.2", port), Port::Free);
    }

    #[test]
    fn an_address_of_another_machine_is_told() {
        assert_eq!(probe("192.0.2.1", 8000), Port::Elsewhere);
        assert_eq!(probe("no-such-host.invalid", 8000), Port::Elsewhere);
    }

    #[test]
    fn our_own_listener_is_not_below_us() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(matches!(owner("127.0.0.1", port), Owner::Stranger(_)));
        drop(listener);
        assert_eq!(owner("127.0.0.1", port), Owner::Unknown);
    }
}
