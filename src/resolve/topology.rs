//! Who runs where: rank → role, workers on nodes, ports and devices of each.
//!
//! Layouts and spacings are those of ATOM's own PD launcher: HTTP port + 1, handshake + tp and rendezvous + 200 per worker of a node.

use super::{CONTRADICTION, named};
use crate::domain::diagnostic::{Code, Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::{Layout, Settings, WorkerCounts};
use crate::domain::topology::{Port, Role};

const BAD_RANK: Code = Code("rank-outside-topology");
const TOO_FEW_NODES: Code = Code("too-few-nodes");
const TOO_MANY_NODES: Code = Code("too-many-nodes");
const TP_TOO_LARGE: Code = Code("tensor-parallel-too-large");
const PORT_TWICE: Code = Code("port-used-twice");
const LOOPBACK: Code = Code("loopback-address");
const NO_ADDRESSES: Code = Code("no-addresses");
const TOO_FEW_GPUS: Code = Code("too-few-gpus");

/// Largest tensor-parallel size: ATOM asserts 1..8, a worker cannot span nodes.
pub const MAX_TP: u32 = 8;
/// First data-parallel rendezvous port (ATOM's default), and first pinned group rendezvous port.
pub const DP_MASTER: u16 = 29500;
const DP_BASE: u16 = 29600;
/// Distance between the rendezvous ports of two workers of a node.
const DP_STEP: u32 = 200;

/// One worker's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Node.
    pub rank: u32,
    /// Index on the node.
    pub slot: u32,
    /// Role.
    pub role: Role,
    /// Index within the role.
    pub index: u32,
    /// Log and display name.
    pub name: String,
    /// HTTP port.
    pub port: Sourced<Port>,
    /// First handshake port.
    pub handshake: Port,
    /// Rendezvous port, by slot.
    pub dp_master: Port,
    /// Pinned group rendezvous port, where the node is shared.
    pub dp_base: Option<Port>,
    /// Devices, where the node is shared.
    pub gpus: Option<Vec<String>>,
}

/// All workers of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// By rank and slot.
    pub slots: Vec<Slot>,
    /// Number of nodes.
    pub ranks: u32,
    /// Address or name of each node; empty when none is given.
    pub nodes: Vec<String>,
    /// Where the addresses come from.
    pub nodes_source: Source,
    /// Rank of this process, where it is known.
    pub rank: Option<u32>,
    /// Whether a topology was given, so that there is a router.
    pub has_router: bool,
}

impl Placement {
    /// Address of a node.
    pub fn node(&self, rank: u32) -> Option<&str> {
        self.nodes.get(rank as usize).map(String::as_str)
    }

    /// Address or, where none is given, a stand-in name for previews.
    pub fn node_or_name(&self, rank: u32) -> String {
        self.node(rank)
            .map_or_else(|| format!("node{rank}"), str::to_owned)
    }
}

/// Place all workers; every topology error at once.
pub fn place(settings: &Settings, environment: &Environment, found: &mut Diagnostics) -> Placement {
    let alone = settings
        .role
        .as_ref()
        .filter(|role| role.value == Role::Standalone || settings.workers.is_none());
    let counts = settings.workers.as_ref().filter(|_| alone.is_none());
    let shapes = counts.map_or_else(
        || {
            vec![(
                settings.rank.as_ref().map_or(0, |rank| rank.value),
                alone.map_or(Role::Standalone, |role| role.value),
                0,
            )]
        },
        |counts| spread(counts, settings.layout.value),
    );
    let ranks = counts.map_or(1, |_| {
        shapes.iter().map(|(rank, ..)| rank + 1).max().unwrap_or(1)
    });
    let nodes = settings
        .nodes
        .clone()
        .map_or((Vec::new(), Source::Default), |nodes| {
            (nodes.value, nodes.source)
        });
    let mut placement = Placement {
        slots: Vec::new(),
        ranks,
        nodes: nodes.0,
        nodes_source: nodes.1,
        rank: settings.rank.as_ref().map(|rank| rank.value),
        has_router: counts.is_some(),
    };
    check_tp(settings, &shapes, found);
    placement.slots = slots(settings, environment, &shapes, found);
    if let Some(counts) = counts {
        check_nodes(&mut placement, counts, found);
        check_rank(settings, &mut placement, counts, found);
    }
    check_ports(settings, &placement, found);
    placement
}

/// `(rank, role, index)` of every worker.
fn spread(counts: &WorkerCounts, layout: Layout) -> Vec<(u32, Role, u32)> {
    let (x, y) = (counts.prefill.value, counts.decode.value);
    let prefill = (0..x).map(|index| match layout {
        Layout::Spread | Layout::DecodePacked => (index, Role::Prefill, index),
        Layout::PrefillPacked | Layout::Packed => (0, Role::Prefill, index),
    });
    let decode = (0..y).map(|index| match layout {
        Layout::Spread => (x + index, Role::Decode, index),
        Layout::PrefillPacked => (1 + index, Role::Decode, index),
        Layout::DecodePacked => (x, Role::Decode, index),
        Layout::Packed => (0, Role::Decode, index),
    });
    prefill.chain(decode).collect()
}

fn check_tp(settings: &Settings, shapes: &[(u32, Role, u32)], found: &mut Diagnostics) {
    let gpus = &settings.gpus_per_node;
    for role in Role::ALL {
        if !shapes.iter().any(|(_, of, _)| *of == role) {
            continue;
        }
        let tp = settings.tp.get(role);
        let option = format!("--{role}-tp");
        let given = named(
            &tp.source,
            if role == Role::Standalone {
                "--tp"
            } else {
                &option
            },
            tp.value,
        );
        let input = match &tp.source {
            Source::CommandLine(name) | Source::Environment(name) => name.clone(),
            _ => "--tp".into(),
        };
        if tp.value > MAX_TP {
            found.push(
                Diagnostic::error(
                    TP_TOO_LARGE,
                    Place::Input(input),
                    format!("{given} is above {MAX_TP}: a worker cannot span nodes, and ATOM refuses more"),
                )
                .help("use more workers, each of one node"),
            );
        } else if tp.value > gpus.value {
            let per_node = named(&gpus.source, "--gpus-per-node", gpus.value);
            found.push(Diagnostic::error(
                TP_TOO_LARGE,
                Place::Input(input),
                format!("{given} is above the GPUs of a node, {per_node}"),
            ));
        }
    }
}

fn slots(
    settings: &Settings,
    environment: &Environment,
    shapes: &[(u32, Role, u32)],
    found: &mut Diagnostics,
) -> Vec<Slot> {
    let mut made: Vec<Slot> = Vec::with_capacity(shapes.len());
    for &(rank, role, index) in shapes {
        let mates: Vec<&Slot> = made.iter().filter(|slot| slot.rank == rank).collect();
        let shared = shapes.iter().filter(|(of, ..)| *of == rank).count() > 1;
        let slot = u32::try_from(mates.len()).unwrap_or(u32::MAX);
        let same_role =
            u32::try_from(mates.iter().filter(|mate| mate.role == role).count()).unwrap_or(0);
        let first_gpu: u32 = mates
            .iter()
            .map(|mate| settings.tp.get(mate.role).value)
            .sum();
        let name = if shared {
            format!("{role}-{rank}-{slot}")
        } else {
            format!("{role}-{rank}")
        };
        let base = settings.ports.server.get(role).clone();
        let moved = |port: Port, by: u32, found: &mut Diagnostics| offset(port, by, &name, found);
        let mut port = base.clone();
        port.value = moved(base.value, same_role, found);
        if same_role > 0 {
            port.source = Source::Derived(format!(
                "{} + {same_role} for the node's next {role} worker",
                base.value
            ));
        }
        let gpus = if shared {
            devices(settings, environment, role, first_gpu, &name, found)
        } else {
            None
        };
        let offset_if_shared = |by: u32| if shared { by } else { 0 };
        made.push(Slot {
            rank,
            slot,
            role,
            index,
            port,
            handshake: moved(
                settings.ports.handshake.value,
                offset_if_shared(first_gpu),
                found,
            ),
            dp_master: moved(
                Port::new(DP_MASTER),
                offset_if_shared(DP_STEP * slot),
                found,
            ),
            dp_base: shared.then(|| moved(Port::new(DP_BASE), DP_STEP * slot, found)),
            gpus,
            name,
        });
    }
    made
}

/// A port moved up, within range.
fn offset(port: Port, by: u32, worker: &str, found: &mut Diagnostics) -> Port {
    match u16::try_from(u32::from(port.get()).saturating_add(by)) {
        Ok(number) => Port::new(number),
        Err(_) => {
            found.push(Diagnostic::error(
                PORT_TWICE,
                Place::Whole,
                format!(
                    "worker {worker} would need port {} + {by}, above 65535",
                    port.get()
                ),
            ));
            port
        }
    }
}

/// The worker's slice of the node's devices: of the inherited HIP_VISIBLE_DEVICES where that is set.
fn devices(
    settings: &Settings,
    environment: &Environment,
    role: Role,
    first: u32,
    worker: &str,
    found: &mut Diagnostics,
) -> Option<Vec<String>> {
    let tp = settings.tp.get(role).value;
    let all: Vec<String> = environment.get("HIP_VISIBLE_DEVICES").map_or_else(
        || {
            (0..settings.gpus_per_node.value)
                .map(|gpu| gpu.to_string())
                .collect()
        },
        |list| {
            list.split(',')
                .map(|device| device.trim().to_owned())
                .collect()
        },
    );
    let range = first as usize..(first + tp) as usize;
    let slice = all.get(range).map(<[String]>::to_vec);
    if slice.is_none() {
        let from = if environment.is_set("HIP_VISIBLE_DEVICES") {
            "HIP_VISIBLE_DEVICES"
        } else {
            "--gpus-per-node"
        };
        found.push(
            Diagnostic::error(
                TOO_FEW_GPUS,
                Place::Input(from.into()),
                format!(
                    "worker {worker} needs GPUs {first} to {} of its node, but {from} gives {}",
                    first + tp - 1,
                    all.len()
                ),
            )
            .help("use smaller tensor-parallel sizes, fewer workers, or `--layout spread`"),
        );
    }
    slice
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

fn check_nodes(placement: &mut Placement, counts: &WorkerCounts, found: &mut Diagnostics) {
    let (ranks, given) = (placement.ranks as usize, placement.nodes.len());
    let input = match &placement.nodes_source {
        Source::CommandLine(name) | Source::Environment(name) => name.clone(),
        _ => "--nodes".into(),
    };
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
                .help("set IPADDRS or `--nodes`: the router and the other ranks need them"),
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
    let is_loopback = |node: &String| {
        node.parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
    };
    if !placement.nodes.iter().all(is_loopback) {
        for node in placement.nodes.iter().filter(|node| is_loopback(node)) {
            found.push(
                Diagnostic::warning(LOOPBACK, place.clone(), format!("{input} has the loopback address {node} among addresses of other machines: no other rank can reach it"))
                    .help("the node's name resolves to itself in /etc/hosts; give the address of its network interface"),
            );
        }
    }
    for (rank, node) in placement.nodes.iter().enumerate() {
        if placement.nodes[..rank].contains(node) {
            found.push(
                Diagnostic::error(
                    PORT_TWICE,
                    place.clone(),
                    format!("{input} names {node} for two ranks"),
                )
                .help("several workers on one node are a packed layout: see `--layout`"),
            );
        }
    }
}

/// The process's own rank must be one of the job's; with `--role` it may be left out where it is clear.
fn check_rank(
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
        return;
    };
    let given = named(&rank.source, "--rank", rank.value);
    let input = match &rank.source {
        Source::CommandLine(name) | Source::Environment(name) => name.clone(),
        _ => "--rank".into(),
    };
    if rank.value > last {
        found.push(
            Diagnostic::error(
                BAD_RANK,
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

/// Which ports each node binds; no port twice on one node.
fn check_ports(settings: &Settings, placement: &Placement, found: &mut Diagnostics) {
    struct Use {
        first: u32,
        count: u32,
        what: String,
    }
    let ports = &settings.ports;
    for rank in 0..placement.ranks {
        let mut uses = Vec::new();
        if rank == 0 && placement.has_router {
            for (port, option, what) in [
                (&ports.router, "--router-port or ROUTER_PORT", "the router"),
                (
                    &ports.prometheus,
                    "--prometheus-port or PROMETHEUS_PORT",
                    "its metrics",
                ),
            ] {
                uses.push(Use {
                    first: port.value.get().into(),
                    count: 1,
                    what: format!("{} ({what})", named(&port.source, option, port.value)),
                });
            }
        }
        for slot in placement
            .slots
            .iter()
            .filter(|slot| slot.rank == rank || !placement.has_router)
        {
            let option = match slot.role {
                Role::Prefill => "--prefill-port or PREFILL_PORT",
                Role::Decode => "--decode-port or DECODE_PORT",
                Role::Standalone => "--server-port",
            };
            uses.push(Use {
                first: slot.port.value.get().into(),
                count: 1,
                what: format!(
                    "{} ({})",
                    named(&slot.port.source, option, slot.port.value),
                    slot.name
                ),
            });
            let tp = settings.tp.get(slot.role).value;
            if slot.role == Role::Prefill && settings.kv_transfer.prefill.is_none() {
                let what = named(
                    &ports.handshake.source,
                    "--handshake-port or HANDSHAKE_PORT",
                    slot.handshake,
                );
                uses.push(Use {
                    first: slot.handshake.get().into(),
                    count: tp,
                    what: format!(
                        "{what} and the {} after it (KV transfer of {})",
                        tp - 1,
                        slot.name
                    ),
                });
            }
            if settings.mode.get(slot.role).value.dp_attention() {
                uses.push(Use {
                    first: slot.dp_master.get().into(),
                    count: 1,
                    what: format!(
                        "ATOM_DP_MASTER_PORT {} (rendezvous of {})",
                        slot.dp_master, slot.name
                    ),
                });
            }
        }
        for (position, one) in uses.iter().enumerate() {
            if one.first + one.count > 65536 {
                found.push(Diagnostic::error(
                    PORT_TWICE,
                    Place::Whole,
                    format!("{} runs past port 65535", one.what),
                ));
            }
            for other in &uses[..position] {
                let first = one.first.max(other.first);
                if first < (one.first + one.count).min(other.first + other.count) {
                    found.push(
                        Diagnostic::error(
                            PORT_TWICE,
                            Place::Whole,
                            format!(
                                "port {first} is used twice on rank {rank}: {} and {}",
                                other.what, one.what
                            ),
                        )
                        .help("give one of them another port"),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::settings;

    fn placed(env: &[(&str, &str)], args: &crate::cli::JobArgs) -> (Placement, Diagnostics) {
        let env = Environment::new(
            env.iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let (settings, mut found) = settings::read(args, &env);
        (place(&settings, &env, &mut found), found)
    }

    fn layout(layout: Layout) -> crate::cli::JobArgs {
        crate::cli::JobArgs {
            layout: Some(layout),
            ..Default::default()
        }
    }

    fn roles(placement: &Placement) -> Vec<String> {
        placement
            .slots
            .iter()
            .map(|slot| slot.name.clone())
            .collect()
    }

    #[test]
    fn prefill_ranks_come_first() {
        let (placement, found) = placed(
            &[("xP", "2"), ("yD", "1"), ("IPADDRS", "a,b,c")],
            &Default::default(),
        );
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(roles(&placement), ["prefill-0", "prefill-1", "decode-2"]);
        assert_eq!(placement.ranks, 3);
    }

    #[test]
    fn packed_workers_share_nothing() {
        let env = [
            ("xP", "2"),
            ("yD", "1"),
            ("PREFILL_TP_SIZE", "2"),
            ("DECODE_TP_SIZE", "4"),
            ("IPADDRS", "a"),
        ];
        let (placement, found) = placed(&env, &layout(Layout::Packed));
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(
            roles(&placement),
            ["prefill-0-0", "prefill-0-1", "decode-0-2"]
        );
        let gpus: Vec<String> = placement
            .slots
            .iter()
            .map(|slot| slot.gpus.as_ref().unwrap().join(","))
            .collect();
        assert_eq!(gpus, ["0,1", "2,3", "4,5,6,7"]);
        let ports: Vec<u16> = placement
            .slots
            .iter()
            .map(|slot| slot.port.value.get())
            .collect();
        assert_eq!(ports, [8010, 8011, 8020]);
        let handshakes: Vec<u16> = placement
            .slots
            .iter()
            .map(|slot| slot.handshake.get())
            .collect();
        assert_eq!(handshakes, [6301, 6303, 6305]);
        let masters: Vec<u16> = placement
            .slots
            .iter()
            .map(|slot| slot.dp_master.get())
            .collect();
        assert_eq!(masters, [29500, 29700, 29900]);
    }

    #[test]
    fn half_packed_layouts_count_their_nodes() {
        let env = [
            ("xP", "2"),
            ("yD", "2"),
            ("PREFILL_TP_SIZE", "4"),
            ("DECODE_TP_SIZE", "4"),
            ("IPADDRS", "a,b,c"),
        ];
        let (placement, found) = placed(&env, &layout(Layout::PrefillPacked));
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(
            roles(&placement),
            ["prefill-0-0", "prefill-0-1", "decode-1", "decode-2"]
        );
        let (placement, found) = placed(&env, &layout(Layout::DecodePacked));
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(
            roles(&placement),
            ["prefill-0", "prefill-1", "decode-2-0", "decode-2-1"]
        );
    }

    #[test]
    fn a_node_gives_no_more_gpus_than_it_has() {
        let (_, found) = placed(
            &[("xP", "1"), ("yD", "1"), ("IPADDRS", "a")],
            &layout(Layout::Packed),
        );
        assert!(found.0.iter().any(|finding| finding.code == TOO_FEW_GPUS));
        let env = [
            ("xP", "1"),
            ("yD", "1"),
            ("IPADDRS", "a"),
            ("PREFILL_TP_SIZE", "1"),
            ("DECODE_TP_SIZE", "1"),
            ("HIP_VISIBLE_DEVICES", "5,7"),
        ];
        let (placement, found) = placed(&env, &layout(Layout::Packed));
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(placement.slots[1].gpus, Some(vec!["7".to_owned()]));
    }

    #[test]
    fn all_topology_errors_come_at_once() {
        let env = [
            ("xP", "1"),
            ("yD", "1"),
            ("NODE_RANK", "5"),
            ("IPADDRS", "a"),
            ("PREFILL_TP_SIZE", "16"),
            ("ROUTER_PORT", "8010"),
        ];
        let (_, found) = placed(&env, &Default::default());
        let codes: Vec<&str> = found.0.iter().map(|finding| finding.code.0).collect();
        for code in [TP_TOO_LARGE, TOO_FEW_NODES, BAD_RANK, PORT_TWICE] {
            assert!(codes.contains(&code.0), "{codes:?}");
        }
    }

    #[test]
    fn without_a_topology_the_worker_stands_alone() {
        let (placement, found) = placed(&[("SLURM_PROCID", "3")], &Default::default());
        assert!(found.0.is_empty());
        assert_eq!(roles(&placement), ["standalone-0"]);
        assert!(!placement.has_router);
    }
}
