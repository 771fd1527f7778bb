//! Who runs where: rank → role, workers on nodes, ports and devices of each.
//!
//! Layouts and spacings are those of ATOM's own PD launcher: HTTP port + 1, handshake + tp and rendezvous + 200 per worker of a node.

mod checks;
mod devices;

use crate::domain::codes::PORT_USED_TWICE;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::{Layout, Settings, WorkerCounts};
use crate::domain::topology::{Port, Role};
use devices::Devices;

/// Largest tensor-parallel size: ATOM asserts 1..8, a worker cannot span nodes.
pub const MAX_TP: u32 = 8;
/// First data-parallel rendezvous port (ATOM's default).
pub const DP_MASTER: u16 = 29500;
/// First pinned port of a group's rendezvous.
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
    /// Rank whose node this machine is: that of this process, unless a rank is only looked at from elsewhere.
    pub here: Option<u32>,
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

/// Place all workers; every topology error at once. What cannot be placed right is placed all the same, so that the rest can be looked at:
/// the placement counts only while `found` has no error.
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
    let nodes = checks::own_nodes(settings, ranks)
        .cloned()
        .map_or((Vec::new(), Source::Default), |nodes| {
            (nodes.value, nodes.source)
        });
    let mut placement = Placement {
        slots: Vec::new(),
        ranks,
        nodes: nodes.0,
        nodes_source: nodes.1,
        rank: settings.rank.as_ref().map(|rank| rank.value),
        here: None,
        has_router: counts.is_some(),
    };
    checks::check_tp(settings, &shapes, found);
    placement.slots = slots(settings, environment, &shapes, found);
    if let Some(counts) = counts {
        checks::check_nodes(&mut placement, counts, found);
        checks::check_rank(settings, &mut placement, counts, found);
    }
    placement.here = if ranks == 1 {
        shapes.first().map(|(rank, ..)| *rank)
    } else {
        placement.rank
    };
    // Ports only of workers that have their GPUs: without room there may be thousands that can never be.
    let no_room: Vec<Slot> = placement
        .slots
        .extract_if(.., |slot| slot.dp_base.is_some() && slot.gpus.is_none())
        .collect();
    checks::check_ports(settings, &placement, found);
    placement.slots.extend(no_room);
    placement.slots.sort_by_key(|slot| (slot.rank, slot.slot));
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

fn slots(
    settings: &Settings,
    environment: &Environment,
    shapes: &[(u32, Role, u32)],
    found: &mut Diagnostics,
) -> Vec<Slot> {
    let mut made: Vec<Slot> = Vec::with_capacity(shapes.len());
    // Shapes are in the order of ranks, so a node's workers follow each other.
    let (mut slot, mut same_role, mut first_gpu) = (0, 0, 0);
    let mut full = false;
    let devices = Devices::read(settings, environment, found);
    let mut alone = Vec::new();
    // Once a node has no room, whatever else its further workers lack only follows from that.
    let mut unheard = Diagnostics::default();
    for (position, &(rank, role, index)) in shapes.iter().enumerate() {
        let before = position.checked_sub(1).map(|before| shapes[before]);
        let is_mate = |other: Option<(u32, Role, u32)>| other.is_some_and(|(of, ..)| of == rank);
        if is_mate(before) {
            let role_before = before.map_or(role, |(_, role, _)| role);
            slot += 1;
            same_role = if role_before == role {
                same_role + 1
            } else {
                0
            };
            first_gpu += settings.tp.get(role_before).value;
        } else {
            (slot, same_role, first_gpu) = (0, 0, 0);
            full = false;
        }
        let found = if full { &mut unheard } else { &mut *found };
        let shared = slot > 0 || is_mate(shapes.get(position + 1).copied());
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
        let gpus = if shared && !full {
            devices.slice(settings, role, first_gpu, &name, found)
        } else {
            None
        };
        // Workers of a role differ in their node only, and the variables are the same on each.
        if !shared && !alone.contains(&role) {
            devices.check_alone(settings, role, &name, found);
            alone.push(role);
        }
        full = shared && gpus.is_none();
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
    if let Ok(number) = u16::try_from(u32::from(port.get()).saturating_add(by)) {
        return Port::new(number);
    }
    let message = format!("worker {worker} would need port {port} + {by}, above 65535");
    found.push(Diagnostic::error(PORT_USED_TWICE, Place::Whole, message));
    port
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::codes::{
        RANK_OUTSIDE_TOPOLOGY, TENSOR_PARALLEL_TOO_LARGE, TOO_FEW_GPUS, TOO_FEW_NODES,
    };
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
            &crate::cli::JobArgs::default(),
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
        let (_, found) = placed(&env, &crate::cli::JobArgs::default());
        let codes: Vec<&str> = found.0.iter().map(|finding| finding.code.0).collect();
        for code in [
            TENSOR_PARALLEL_TOO_LARGE,
            TOO_FEW_NODES,
            RANK_OUTSIDE_TOPOLOGY,
            PORT_USED_TWICE,
        ] {
            assert!(codes.contains(&code.0), "{codes:?}");
        }
    }

    #[test]
    fn a_step_of_the_right_size_names_the_nodes() {
        let env = |nodes: &'static str, step: &'static str, node: &'static str| {
            vec![
                ("xP", "1"),
                ("yD", "1"),
                ("SLURM_JOB_ID", "7"),
                ("SLURM_STEP_ID", "0"),
                ("SLURM_PROCID", "1"),
                ("SLURM_NODEID", node),
                (nodes, "a[1-3]"),
                ("SLURM_STEP_NODELIST", step),
            ]
        };
        let no_args = crate::cli::JobArgs::default();
        let (placement, found) = placed(&env("SLURM_JOB_NODELIST", "a[2-3]", "1"), &no_args);
        assert!(found.0.is_empty(), "{found:?}");
        assert_eq!(placement.nodes, ["a2", "a3"]);
        // A shell in a step of its own knows nothing of the job's nodes.
        let (placement, _) = placed(&env("SLURM_JOB_NODELIST", "a1", "1"), &no_args);
        assert_eq!(placement.nodes, ["a1", "a2"]);
        let (placement, _) = placed(&env("IPADDRS", "a[2-3]", "1"), &no_args);
        assert_eq!(placement.nodes, ["a1", "a2"]);
        let (_, found) = placed(&env("SLURM_JOB_NODELIST", "a[2-3]", "0"), &no_args);
        assert!(
            found.0[0].message.contains("SLURM_PROCID=1 runs on node 0"),
            "{found:?}"
        );
    }

    #[test]
    fn ports_that_the_system_hands_out_are_named_unless_all_is_loopback() {
        let of = |nodes| {
            let env = [
                ("xP", "1"),
                ("yD", "1"),
                ("PREFILL_PORT", "40000"),
                ("IPADDRS", nodes),
            ];
            placed(&env, &crate::cli::JobArgs::default()).1
        };
        let found = of("10.0.0.1,10.0.0.2");
        assert_eq!(found.0.len(), 1, "{found:?}");
        assert!(!found.has_errors());
        assert!(of("127.0.0.2,127.0.0.3").0.is_empty());
    }

    #[test]
    fn without_a_topology_the_worker_stands_alone() {
        let (placement, found) = placed(&[("SLURM_PROCID", "3")], &crate::cli::JobArgs::default());
        assert!(found.0.is_empty());
        assert_eq!(roles(&placement), ["standalone-0"]);
        assert!(!placement.has_router);
    }
}
