//! The address that a rank was given, against those that its machine has.

use std::net::{IpAddr, ToSocketAddrs as _};

use crate::domain::command::last_value;
use crate::domain::diagnostic::{Diagnostic, Place};

use super::super::health::Target;
use super::super::{ports, procfs};
use super::ADDRESS;
use crate::plan::node::NodeSpec;

/// So many addresses are listed.
const SHOWN: usize = 8;

/// What stands against an address of this rank that no port of this machine can be bound to.
pub(super) fn elsewhere(spec: &NodeSpec, address: &str) -> Option<Diagnostic> {
    let place = Place::Input("address".into());
    let rank = spec.rank;
    let given = format!("{address}, the address of rank {rank}");
    let own = procfs::own_addresses();
    if let Err(error) = (address, 0).to_socket_addrs() {
        let text = format!("{given}, is a name that this machine cannot resolve: {error}");
        return Some(Diagnostic::error(ADDRESS, place, text).help(has(&own)));
    }
    let port = spec.workers.first().map_or(0, |worker| worker.port);
    match ports::arrives_here(address, port) {
        // Some translation on the way: its ports were free when they were tried.
        Some(true) => None,
        Some(false) => {
            let text = format!(
                "{given}, is none of this machine's, and what is sent there does not arrive here"
            );
            let finding = Diagnostic::error(ADDRESS, place, text).help(has(&own));
            Some(finding.help_if(mixed_up(spec, &own)))
        }
        None => {
            let text = format!("{given}, is none of this machine's: its ports cannot be checked");
            Some(Diagnostic::warning(ADDRESS, place, text).help(has(&own)))
        }
    }
}

/// Processes that listen where nobody asks: at all addresses of the other kind, or at another one.
pub(super) fn deaf(spec: &NodeSpec, found: &mut Vec<Diagnostic>) {
    let workers = spec.workers.iter();
    let workers = workers.map(|one| (one.name.as_str(), &one.command, &one.address, one.port));
    let router = spec.router.iter();
    let router = router.map(|one| ("the router", &one.command, &one.address, one.port));
    for (name, command, address, port) in workers.chain(router) {
        let Some(host) = last_value(&command.args, "--host").flatten() else {
            continue;
        };
        let bare = host.trim_matches(['[', ']']);
        let places = |host: &str| -> Vec<IpAddr> {
            let places = (host, port).to_socket_addrs().into_iter().flatten();
            places.map(|place| place.ip()).collect()
        };
        let (listens, asked) = (places(bare), places(address));
        let meets = |one: &IpAddr| {
            asked.iter().any(|other| {
                one == other || one.is_unspecified() && one.is_ipv4() == other.is_ipv4()
            })
        };
        // What cannot be resolved is said elsewhere.
        if !listens.is_empty() && !asked.is_empty() && !listens.iter().any(meets) {
            let text = format!(
                "{name} listens at {host}, and is asked at {address}: it would never be heard"
            );
            found.push(
                Diagnostic::error(ADDRESS, Place::Input("--host".into()), text)
                    .help("give the nodes by addresses of one kind, IPv4 or IPv6, and no `--host` of your own"),
            );
        }
    }
}

fn has(own: &[IpAddr]) -> String {
    let names: Vec<String> = own.iter().take(SHOWN).map(IpAddr::to_string).collect();
    match own.len() {
        0 => "this machine has no address but its loopback ones".to_owned(),
        count if count > SHOWN => format!(
            "this machine has {} and {} more",
            names.join(", "),
            count - SHOWN
        ),
        _ => format!("this machine has {}", names.join(", ")),
    }
}

/// Another rank's address in the list is ours: then the list has another order than the ranks.
fn mixed_up(spec: &NodeSpec, own: &[IpAddr]) -> Option<String> {
    spec.all_workers.iter().find_map(|worker| {
        let host = Target::parse(&worker.health_url).ok()?.host;
        let places = (host.as_str(), 0).to_socket_addrs().ok()?;
        let is_ours = worker.rank != spec.rank
            && places.map(|place| place.ip()).any(|ip| own.contains(&ip));
        is_ours.then(|| {
            format!(
                "{host} in the list belongs to rank {}: the addresses must stand in the order of the ranks",
                worker.rank
            )
        })
    })
}
