//! What contradicts itself in a topology: sizes, addresses, ranks, ports. Every check reports all it finds.

use std::collections::HashSet;

use super::{MAX_TP, Placement, Slot};
use crate::domain::codes::{
    CONTRADICTION, EPHEMERAL_PORT, LOOPBACK_ADDRESS, NO_ADDRESSES, PORT_USED_TWICE,
    RANK_OUTSIDE_TOPOLOGY, TENSOR_PARALLEL_TOO_LARGE, TOO_FEW_NODES, TOO_MANY_NODES, WHICH_WORKER,
};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, NODES, Place};
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::{Settings, WorkerCounts};
use crate::domain::topology::{Port, Role};
use crate::resolve::{named, transfer};

/// Linux's default range of ports for outgoing connections; a server's own random ports come from there as well.
const EPHEMERAL: std::ops::Range<u32> = 32768..61000;

pub(super) fn check_tp(settings: &Settings, shapes: &[(u32, Role, u32)], found: &mut Diagnostics) {
    let gpus = &settings.gpus_per_node;
    for role in Role::ALL {
        if !shapes.iter().any(|(_, of, _)| *of == role) {
            continue;
        }
        let tp = settings.tp.get(role);
        let given = named(&tp.source, &role.option("tp"), tp.value);
        let input = tp.source.input().unwrap_or("--tp").to_owned();
        if tp.value > MAX_TP {
            found.push(
                Diagnostic::error(
                    TENSOR_PARALLEL_TOO_LARGE,
                    Place::Input(input),
                    format!("{given} is above {MAX_TP}: a worker cannot span nodes, and ATOM refuses more"),
                )
                .help("use more workers, each of one node"),
            );
        } else if tp.value > gpus.value {
            let per_node = named(&gpus.source, "--gpus-per-node", gpus.value);
            found.push(Diagnostic::error(
                TENSOR_PARALLEL_TOO_LARGE,
                Place::Input(input),
                format!("{given} is above the GPUs of a node, {per_node}"),
            ));
        }
    }
}

/// The nodes of the job: those of the step, unless it cannot be the job's, as that of a shell on the first node.
pub(super) fn own_nodes(settings: &Settings, ranks: u32) -> Option<&Sourced<Vec<String>>> {
    let step = settings.nodes.as_ref()?;
    let whole = settings.job_nodes.as_ref();
    whole
        .filter(|whole| step.value.len() < ranks as usize && whole.value.len() >= ranks as usize)
        .or(Some(step))
}

fn is_loopback(node: &str) -> bool {
    node.parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_loopback())
}

fn shape_of(counts: &WorkerCounts) -> String {
    let x = named(
        &counts.prefill.source,
        "--prefill-workers",
        counts.prefill.value,
    );
    let y = named(
        &counts.decode.source,
        "--decode-workers",
        counts.decode.value,
    );
    format!("{x}, {y}")
}

pub(super) fn check_nodes(
    placement: &mut Placement,
    counts: &WorkerCounts,
    found: &mut Diagnostics,
) {
    let (ranks, given) = (placement.ranks as usize, placement.nodes.len());
    let input = placement.nodes_source.input().unwrap_or("--nodes");
    let input = input.to_owned();
    let place = Place::Input(input.clone());
    let shape = shape_of(counts);
    if given == 0 {
        if ranks > 1 {
            found.push(
                Diagnostic::warning(
                    NO_ADDRESSES,
                    place,
                    format!("no addresses of the {ranks} nodes are given ({shape})"),
                )
                .help(Help::give(
                    "set ",
                    NODES,
                    ": the router and the other ranks need them",
                )),
            );
        }
        return;
    }
    if given < ranks {
        found.push(
            Diagnostic::error(
                TOO_FEW_NODES,
                place.clone(),
                format!("the job needs {ranks} nodes ({shape}), but {input} gives {given}"),
            )
            .help("give one address a rank"),
        );
    } else if given > ranks {
        found.push(Diagnostic::warning(
            TOO_MANY_NODES,
            place.clone(),
            format!("{input} gives {given} nodes, but the job uses {ranks} ({shape}): the others have nothing to run"),
        ));
        placement.nodes.truncate(ranks);
    }
    if !placement.nodes.iter().all(|node| is_loopback(node)) {
        for node in placement.nodes.iter().filter(|node| is_loopback(node)) {
            found.push(
                Diagnostic::warning(LOOPBACK_ADDRESS, place.clone(), format!("{input} has the loopback address {node} among addresses of other machines: no other rank can reach it"))
                    .help("the node's name resolves to itself in /etc/hosts; give the address of its network interface"),
            );
        }
    }
    let mut seen = HashSet::new();
    for node in &placement.nodes {
        if !seen.insert(node) {
            found.push(
                Diagnostic::error(
                    PORT_USED_TWICE,
                    place.clone(),
                    format!("{input} names {node} for two ranks"),
                )
                .help("several workers on one node are a packed layout: see `--layout`"),
            );
        }
    }
}

/// The process's own rank must be one of the job's; with `--role` it may be left out where it is clear.
pub(super) fn check_rank(
    settings: &Settings,
    placement: &mut Placement,
    counts: &WorkerCounts,
    found: &mut Diagnostics,
) {
    let last = placement.ranks.saturating_sub(1);
    let Some(rank) = &settings.rank else {
        if let Some(role) = &settings.role {
            let mut ranks = placement
                .slots
                .iter()
                .filter(|slot| slot.role == role.value)
                .map(|slot| slot.rank);
            placement.rank = ranks
                .next()
                .filter(|first| ranks.all(|rank| rank == *first));
        }
        if let Some(address) = settings
            .host_ip
            .as_ref()
            .filter(|_| placement.rank.is_none() && placement.ranks > 1)
        {
            let given = named(&address.source, "--host-ip", &address.value);
            found.push(
                Diagnostic::error(
                    WHICH_WORKER,
                    Place::Input("--host-ip".into()),
                    format!(
                        "{given} is the address of one of the {} ranks",
                        placement.ranks
                    ),
                )
                .help("say of which one with `--rank N`"),
            );
        }
        return;
    };
    let given = named(&rank.source, "--rank", rank.value);
    let input = rank.source.input().unwrap_or("--rank").to_owned();
    let placed_by_slurm =
        matches!(&rank.source, Source::Environment(name) if name == "SLURM_PROCID");
    if let Some(node) = settings
        .step_node
        .as_ref()
        .filter(|node| placed_by_slurm && node.value != rank.value)
    {
        found.push(
            Diagnostic::error(
                CONTRADICTION,
                Place::Input("SLURM_NODEID".into()),
                format!(
                    "{given} runs on node {} of the step: a rank is a node, and its number is the node's",
                    node.value
                ),
            )
            .help("start one task a node, `--ntasks-per-node=1`, in SLURM's own order"),
        );
    }
    if rank.value > last {
        found.push(
            Diagnostic::error(
                RANK_OUTSIDE_TOPOLOGY,
                Place::Input(input),
                format!(
                    "{given} is outside the job: {} has ranks 0 to {last}",
                    shape_of(counts)
                ),
            )
            .help("start one launcher a node, with ranks from 0"),
        );
    } else if let Some(role) = &settings.role
        && !placement
            .slots
            .iter()
            .any(|slot| slot.rank == rank.value && slot.role == role.value)
    {
        found.push(Diagnostic::error(
            CONTRADICTION,
            Place::Input("--role".into()),
            format!(
                "`--role {}` contradicts {given}, which has no such worker ({})",
                role.value,
                shape_of(counts)
            ),
        ));
    }
}

/// A block of ports that something binds.
struct Use {
    first: u32,
    count: u32,
    what: String,
    setting: Option<PortSetting>,
}

/// What moves a port: an option, and its variable where there is one.
type PortSetting = (&'static str, Option<&'static str>);

const ROUTER: PortSetting = ("--router-port", Some("ROUTER_PORT"));
const METRICS: PortSetting = ("--prometheus-port", Some("PROMETHEUS_PORT"));
const PREFILL: PortSetting = ("--prefill-port", Some("PREFILL_PORT"));
const DECODE: PortSetting = ("--decode-port", Some("DECODE_PORT"));
const SERVER: PortSetting = ("--server-port", None);
const HANDSHAKE: PortSetting = ("--handshake-port", Some("HANDSHAKE_PORT"));

impl Use {
    fn one(port: Port, what: String, setting: Option<PortSetting>) -> Self {
        Self {
            first: port.get().into(),
            count: 1,
            what,
            setting,
        }
    }

    fn end(&self) -> u32 {
        self.first + self.count
    }
}

/// Which ports each node binds; no port twice on one node.
pub(super) fn check_ports(settings: &Settings, placement: &Placement, found: &mut Diagnostics) {
    // A rehearsal on one machine lives on whatever ports are free.
    let rehearsal =
        !placement.nodes.is_empty() && placement.nodes.iter().all(|node| is_loopback(node));
    let mut rest = placement.slots.as_slice();
    for rank in 0..placement.ranks {
        // Slots are in the order of ranks; one that stands alone may have a rank of its own.
        let here = if placement.has_router {
            let end = rest.iter().take_while(|slot| slot.rank == rank).count();
            let (here, after) = rest.split_at(end);
            rest = after;
            here
        } else {
            rest
        };
        let mut uses = Vec::new();
        if rank == 0 && placement.has_router {
            let ports = &settings.ports;
            for (port, setting, what) in [
                (&ports.router, ROUTER, "the router"),
                (&ports.prometheus, METRICS, "its metrics"),
            ] {
                let name = named(&port.source, setting.0, port.value);
                let what = format!("{name} ({what})");
                uses.push(Use::one(port.value, what, Some(setting)));
            }
        }
        for slot in here {
            uses_of(settings, slot, &mut uses);
        }
        for (position, one) in uses.iter().enumerate() {
            out_of_place(one, rehearsal, found);
            for other in &uses[..position] {
                let first = one.first.max(other.first);
                if first < one.end().min(other.end()) {
                    let message = format!(
                        "port {first} is used twice on rank {rank}: {} and {}",
                        other.what, one.what
                    );
                    let finding = Diagnostic::error(PORT_USED_TWICE, Place::Whole, message);
                    found.push(move_one_of(finding, other.setting, one.setting));
                }
            }
        }
    }
}

/// The ways out where two uses meet. A rendezvous port follows from the worker alone, so it names none.
fn move_one_of(
    mut finding: Diagnostic,
    one: Option<PortSetting>,
    other: Option<PortSetting>,
) -> Diagnostic {
    let other = other.filter(|other| one.is_none_or(|one| one.0 != other.0));
    if one.is_none() && other.is_none() {
        return finding.help("give one of them another port");
    }
    for (option, variable) in one.into_iter().chain(other) {
        finding = finding.help(Help::Give {
            before: "give one of them another port: ",
            option,
            variable,
            after: "",
        });
    }
    finding
}

/// What one worker binds.
fn uses_of(settings: &Settings, slot: &Slot, uses: &mut Vec<Use>) {
    let setting = match slot.role {
        Role::Prefill => PREFILL,
        Role::Decode => DECODE,
        Role::Standalone => SERVER,
    };
    let name = named(&slot.port.source, setting.0, slot.port.value);
    let what = format!("{name} ({})", slot.name);
    uses.push(Use::one(slot.port.value, what, Some(setting)));
    for (first, count) in transfer::side_channels(settings, slot) {
        let (name, setting) = if let Some(config) = settings.kv_transfer.get(slot.role) {
            (named(&config.source, "handshake_port", first), None)
        } else {
            let source = &settings.ports.handshake.source;
            (named(source, HANDSHAKE.0, first), Some(HANDSHAKE))
        };
        let name = match count {
            1 => name,
            _ => format!("{name} and the {} after it", count - 1),
        };
        let what = format!("{name} (KV transfer of {})", slot.name);
        uses.push(Use {
            first,
            count,
            what,
            setting,
        });
    }
    if settings.mode.get(slot.role).value.dp_attention() {
        let port = slot.dp_master;
        let what = format!("ATOM_DP_MASTER_PORT {port} (rendezvous of {})", slot.name);
        uses.push(Use::one(port, what, None));
    }
    if let Some(port) = slot.dp_base {
        let what = format!("ATOM_DP_BASE_PORT {port} (process group of {})", slot.name);
        uses.push(Use::one(port, what, None));
    }
}

/// Ports that do not exist, and ports that somebody else may have by the time the server binds them.
fn out_of_place(one: &Use, rehearsal: bool, found: &mut Diagnostics) {
    if one.end() > 65536 {
        let message = format!("{} runs past port 65535", one.what);
        found.push(Diagnostic::error(PORT_USED_TWICE, Place::Whole, message));
    }
    if !rehearsal && one.end() > EPHEMERAL.start && one.first < EPHEMERAL.end {
        found.push(
            Diagnostic::warning(
                EPHEMERAL_PORT,
                Place::Whole,
                format!(
                    "{} lies where the system takes ports for its connections, {} to {}",
                    one.what,
                    EPHEMERAL.start,
                    EPHEMERAL.end - 1
                ),
            )
            .help("choose ports below, or reserve these with net.ipv4.ip_local_reserved_ports"),
        );
    }
}
