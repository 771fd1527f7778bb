//! KV transfer, prefix caching, quantisation and HF overrides: the arguments that carry JSON or switch a whole feature.

use serde_json::Value;

use super::Inputs;
use super::topology::{Placement, Slot};
use crate::domain::codes::NO_HOST_ADDRESS;
use crate::domain::command::ArgGroup;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, NODES, Place};
use crate::domain::models::JsonText;
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::Settings;
use crate::domain::topology::{Mode, Role};

fn json_group(
    inputs: Inputs<'_>,
    flag: &str,
    field: &'static str,
    json: &JsonText,
) -> Option<ArgGroup> {
    (!json.0.value.is_empty()).then(|| {
        ArgGroup::new(
            vec![flag.to_owned(), json.0.value.clone()],
            inputs.field(field, json.0.span),
        )
    })
}

/// `--online_quant_config`: with data-parallel attention the second field where it is there, even to switch quantisation off.
pub fn quantisation(inputs: Inputs<'_>, mode: Mode) -> Option<ArgGroup> {
    const FLAG: &str = "--online_quant_config";
    let plain = inputs.entry.online_quant_config.as_ref();
    let dpa = inputs
        .entry
        .online_quant_dpa_config
        .as_ref()
        .filter(|_| mode.dp_attention());
    match (dpa, plain) {
        (Some(dpa), plain) => {
            let mut group = json_group(inputs, FLAG, "online_quant_dpa_config", dpa)?;
            group.shadowed.extend(
                plain.map(|lost| {
                    inputs.lost("online_quant_config", lost.0.span, lost.0.value.clone())
                }),
            );
            Some(group)
        }
        (None, Some(plain)) => json_group(inputs, FLAG, "online_quant_config", plain),
        (None, None) => None,
    }
}

/// `--hf-overrides`.
pub fn hf_overrides(inputs: Inputs<'_>) -> Option<ArgGroup> {
    let json = inputs.entry.hf_overrides.as_ref()?;
    json_group(inputs, "--hf-overrides", "hf_overrides", json)
}

/// Prefix caching: off for prefill and decode unless asked for; said aloud, since the server's default has changed between images.
pub fn prefix_caching(inputs: Inputs<'_>, role: Role) -> Option<ArgGroup> {
    let setting = match (&inputs.settings.prefix_caching, role) {
        (Some(given), _) => given.clone(),
        (None, Role::Prefill | Role::Decode) => Sourced::default_of(false),
        (None, Role::Standalone) => return None,
    };
    let flag = if setting.value {
        "--enable_prefix_caching"
    } else {
        "--no-enable_prefix_caching"
    };
    Some(ArgGroup::new(vec![flag.to_owned()], setting.source).instead_of(setting.shadowed))
}

/// Address that a worker announces: `--host-ip`, its node's own address, the address of the route out.
///
/// A node known by name only says where the others find it, not which of its addresses KV transfer should use; the node itself looks.
pub fn host_ip(inputs: Inputs<'_>, placement: &Placement, slot: &Slot) -> Option<Sourced<String>> {
    let here = placement.here == Some(slot.rank);
    let given = inputs
        .settings
        .host_ip
        .clone()
        .filter(|_| here || placement.rank == Some(slot.rank));
    let node = placement.node(slot.rank);
    let is_ip = node.is_some_and(|node| node.parse::<std::net::IpAddr>().is_ok());
    let of_node = |node: &str| {
        let name = placement.nodes_source.input().unwrap_or("the nodes");
        Sourced::new(
            node.to_owned(),
            Source::Derived(format!("entry {} of {name}", slot.rank)),
        )
    };
    let own_entry = node.filter(|_| is_ip).map(of_node);
    let route =
        inputs.host.route_address.clone().map(|address| {
            Sourced::new(address, Source::Derived("address of the route out".into()))
        });
    let looked_up = if here {
        route.or(node.map(of_node))
    } else {
        // What this machine would find is of no use to another rank.
        Some(Sourced::new(
            format!("<address of {}>", placement.node_or_name(slot.rank)),
            Source::Derived("the node looks it up itself".into()),
        ))
    };
    given.or(own_entry).or(looked_up)
}

/// Blocks of side-channel ports that a worker binds, each as its first port and their number.
///
/// Mooncake binds on producers only, one port for each rank of the server; moriio on both roles, with the ranks' own spacing.
pub fn side_channels(settings: &Settings, slot: &Slot) -> Vec<(u32, u32)> {
    let tp = settings.tp.get(slot.role).value;
    let Some(config) = settings.kv_transfer.get(slot.role) else {
        let own = (u32::from(slot.handshake.get()), tp);
        return if slot.role == Role::Prefill {
            vec![own]
        } else {
            Vec::new()
        };
    };
    let config: Value = serde_json::from_str(&config.value).unwrap_or_default();
    let members = match config.get("connectors").and_then(Value::as_array) {
        Some(members) => members.iter().collect(),
        None => vec![&config],
    };
    let mut blocks = Vec::new();
    for member in members {
        let connector = member
            .get("kv_connector")
            .map_or("moriio", |name| name.as_str().unwrap_or(""))
            .to_lowercase();
        let producer = member
            .get("kv_role")
            .is_none_or(|role| role.as_str() == Some("kv_producer"));
        let first = member
            .get("handshake_port")
            .map_or(Some(6301), Value::as_u64)
            .and_then(|port| u32::try_from(port).ok())
            .filter(|port| (1..=65535).contains(port));
        let count = match connector.as_str() {
            "mooncake" if producer => tp,
            // tp + dp - 1 of the sizes that the server sees: one of the two is 1, whether or not attention is data-parallel.
            "moriio" => tp,
            _ => continue,
        };
        blocks.extend(first.map(|first| (first, count)));
    }
    blocks
}

/// `--kv-transfer-config`: the given JSON byte for byte, else the generated one; nothing for a standalone worker.
pub fn kv_transfer(
    inputs: Inputs<'_>,
    slot: &Slot,
    host_ip: Option<&Sourced<String>>,
    found: &mut Diagnostics,
) -> Option<ArgGroup> {
    const FLAG: &str = "--kv-transfer-config";
    let kv_role = match slot.role {
        Role::Prefill => "kv_producer",
        Role::Decode => "kv_consumer",
        Role::Standalone => return None,
    };
    if let Some(given) = inputs.settings.kv_transfer.get(slot.role) {
        return Some(
            ArgGroup::new(vec![FLAG.into(), given.value.clone()], given.source.clone())
                .instead_of(given.shadowed.clone()),
        );
    }
    let Some(host_ip) = host_ip else {
        found.push(
            Diagnostic::error(
                NO_HOST_ADDRESS,
                Place::Input("--host-ip".into()),
                format!("no address for KV transfer: {} is in no list of nodes, and there is no route out", slot.name),
            )
            .help(Help::give("give it with `--host-ip ADDR`, or all nodes with ", NODES, "")),
        );
        return None;
    };
    let config = KvTransfer {
        kv_role,
        kv_connector: "mooncake",
        proxy_ip: &host_ip.value,
        handshake_port: slot.handshake.get(),
    };
    let port = &inputs.settings.ports.handshake;
    let json = serde_json::to_string(&config).unwrap_or_default();
    Some(
        ArgGroup::new(
            vec![FLAG.into(), json],
            Source::Derived(format!(
                "role {}; handshake port: {}",
                slot.role,
                super::named(&port.source, "--handshake-port", slot.handshake)
            )),
        )
        .instead_of(port.shadowed.clone()),
    )
}

/// The generated value, keys in the order that the old script used. `proxy_ip` is read by images before 2026-07-08 only.
#[derive(serde::Serialize)]
struct KvTransfer<'a> {
    kv_role: &'static str,
    kv_connector: &'static str,
    proxy_ip: &'a str,
    handshake_port: u16,
}
