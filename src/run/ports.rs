//! Whose port it is: free before the start, ours when a health check is answered.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{
    IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _,
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::process::describe;
use super::procfs::{self, Socket};

/// Time for a connection to arrive.
const ARRIVAL: Duration = Duration::from_secs(2);
/// So many times a port is tried before it counts as held ...
const TRIES: u32 = 3;
/// ... with this time between: whoever only looks for a free port has it for a moment, as we do.
const AGAIN: Duration = Duration::from_millis(50);

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
pub fn probe(address: &str, port: u16, own_job: Option<&str>) -> Port {
    let places: Vec<SocketAddr> = match (address, port).to_socket_addrs() {
        Ok(places) => places.collect(),
        Err(_) => return Port::Elsewhere,
    };
    let mut elsewhere = true;
    for place in &places {
        match bind(*place, || std::thread::sleep(AGAIN)) {
            Ok(()) => elsewhere = false,
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Port::Held(holder(&[place.ip()], port, own_job));
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

fn bind(place: SocketAddr, mut pause: impl FnMut()) -> io::Result<()> {
    for _ in 1..TRIES {
        match TcpListener::bind(place) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => pause(),
            other => return other.map(drop),
        }
    }
    TcpListener::bind(place).map(drop)
}

/// Whether what is sent to a port of an address that is not ours arrives here all the same, as behind a NAT; `None` when
/// that cannot be tried.
pub fn arrives_here(address: &str, port: u16) -> Option<bool> {
    let place = (address, port).to_socket_addrs().ok()?.next()?;
    let any: IpAddr = if place.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    // Where somebody has the port at another address, any other one tells as much.
    let listener = TcpListener::bind((any, port)).or_else(|_| TcpListener::bind((any, 0)));
    let listener = listener.ok()?;
    let place = SocketAddr::new(place.ip(), listener.local_addr().ok()?.port());
    listener.set_nonblocking(true).ok()?;
    let Ok(mut sender) = TcpStream::connect_timeout(&place, ARRIVAL) else {
        return Some(false);
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let word = format!(
        "{} {}",
        std::process::id(),
        now.unwrap_or_default().as_nanos()
    );
    sender.write_all(word.as_bytes()).ok()?;
    // The other end reads to the end of what was sent.
    drop(sender);
    let end = Instant::now() + ARRIVAL;
    while Instant::now() < end {
        match listener.accept() {
            Ok((stream, _)) => {
                let mut heard = String::new();
                let limited = stream
                    .set_nonblocking(false)
                    .and_then(|()| stream.set_read_timeout(Some(ARRIVAL)));
                let read = limited.and_then(|()| stream.take(100).read_to_string(&mut heard));
                if read.is_ok() && heard == word {
                    return Some(true);
                }
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Some(false)
}

/// Who has a port, in words.
fn holder(addresses: &[IpAddr], port: u16, own_job: Option<&str>) -> String {
    let sockets = procfs::sockets_on(port).unwrap_or_default();
    let mut found = procfs::relevant(&sockets, addresses);
    found.sort_by_key(|socket| !socket.listens);
    let Some(first) = found.first() else {
        return "a process that cannot be seen from here".to_owned();
    };
    let inodes: BTreeSet<u64> = found.iter().map(|socket| socket.inode).collect();
    match procfs::holder(&inodes) {
        Some(pid) => format!("process {pid}: {}", describe(pid, own_job)),
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
pub fn owner(host: &str, port: u16, own_job: Option<&str>) -> Owner {
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
        Owner::Stranger(holder(&addresses, port, own_job))
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
        let Port::Held(who) = probe("127.0.0.2", port, None) else {
            panic!("the port is held");
        };
        assert!(who.starts_with(&me), "{who}");
        assert_eq!(probe("127.0.0.3", port, None), Port::Free);
        drop(listener);
        assert_eq!(probe("127.0.0.2", port, None), Port::Free);
    }

    #[test]
    fn a_port_that_somebody_only_tries_is_free_and_one_that_stays_held_is_not() {
        let mut holder = TcpListener::bind("127.0.0.2:0").ok();
        let place = holder.as_ref().unwrap().local_addr().unwrap();
        assert!(bind(place, || ()).is_err());
        assert!(bind(place, || holder = None).is_ok());
    }

    #[test]
    fn an_address_of_another_machine_is_told() {
        assert_eq!(probe("192.0.2.1", 8000, None), Port::Elsewhere);
        assert_eq!(probe("no-such-host.invalid", 8000, None), Port::Elsewhere);
    }

    #[test]
    fn what_is_sent_to_an_own_address_arrives() {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        drop(first);
        assert_eq!(arrives_here("127.0.0.9", port), Some(true));
        let _held = TcpListener::bind(("127.0.0.8", port)).unwrap();
        assert_eq!(arrives_here("127.0.0.9", port), Some(true));
        assert_eq!(arrives_here("no-such-host.invalid", port), None);
    }

    #[test]
    fn our_own_listener_is_not_below_us() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(matches!(owner("127.0.0.1", port, None), Owner::Stranger(_)));
        drop(listener);
        assert_eq!(owner("127.0.0.1", port, None), Owner::Unknown);
    }
}
