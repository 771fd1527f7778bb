//! The KV-transfer configuration: connectors, roles, and what their own code refuses after the weights are loaded.

use serde_json::{Map, Value};

use super::json_values::Object;
use crate::domain::codes::KV_TRANSFER;
use crate::domain::diagnostic::Diagnostics;
use crate::domain::topology::Role;

/// F5: the connectors, and the older names of the last.
const CONNECTORS: &[&str] = &[
    "mooncake",
    "moriio",
    "multi",
    "lmcache_offload",
    "lmcacheoffloadconnector",
    "lmcacheconnectorv1",
];

/// Keys that some connector reads; others are ignored without a word.
const KEYS: &[&str] = &[
    "kv_connector",
    "kv_role",
    "handshake_port",
    "protocol",
    "ib_device",
    "num_worker_threads",
    "http_port",
    "qp_per_transfer",
    "post_batch_size",
    "enable_notification",
    "max_send_wr",
    "max_cqe_num",
    "max_msg_sge",
    "connectors",
    "offload_layout",
    "kv_connector_extra_config",
    "max_pending_saves",
    "slot_sidecar_staging_slots",
    "committed_sidecar_index_capacity",
    // Read before 2026-07-08; the launcher itself still sends `proxy_ip`, as all job scripts do.
    "proxy_ip",
    "proxy_ping_port",
];

/// F10: byte layouts of offloading, with their old names.
const LAYOUTS: &[&str] = &[
    "dense",
    "hybrid",
    "chunked",
    "chunked_mla",
    "page_slot",
    "terminal_unit",
];
const OFFLOAD_ROLES: &[&str] = &["offload", "kv_both", "kv_producer", "kv_consumer"];

/// Keys that must be whole numbers from 1, and no text.
const COUNTS: &[&str] = &[
    "max_pending_saves",
    "slot_sidecar_staging_slots",
    "committed_sidecar_index_capacity",
];

/// Keys whose text would fail where a number is needed.
const NUMBERS: &[&str] = &[
    "num_worker_threads",
    "http_port",
    "qp_per_transfer",
    "post_batch_size",
    "max_send_wr",
    "max_cqe_num",
    "max_msg_sge",
];

/// What a connector does for its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Transfer,
    Offload,
    Multi,
}

/// F2, F5, F6, F7, F10.
pub(super) fn check(
    option: &Object<'_>,
    role: Role,
    config: &Map<String, Value>,
    found: &mut Diagnostics,
) {
    if config.is_empty() {
        return;
    }
    let members: Vec<&Map<String, Value>> = match one(option, config, false, found) {
        Some(Kind::Multi) => members(option, config, found),
        Some(_) => vec![config],
        None => return,
    };
    let transfers: Vec<&&Map<String, Value>> = members
        .iter()
        .filter(|member| kind(member) == Some(Kind::Transfer))
        .collect();
    let (wanted, has) = match role {
        Role::Prefill => (
            "kv_producer",
            transfers.iter().any(|member| is_producer(member)),
        ),
        Role::Decode => (
            "kv_consumer",
            transfers.iter().any(|member| !is_producer(member)),
        ),
        Role::Standalone => return,
    };
    if transfers.is_empty() {
        let message = format!(
            "{} names neither mooncake nor moriio: this {role} worker transfers nothing to the others",
            option.flag
        );
        option.warning(KV_TRANSFER, message, found);
    } else if !has {
        let given = transfers[0].get("kv_role").map_or_else(
            || "missing, which means kv_producer".to_owned(),
            |role| format!("{role}"),
        );
        let message = format!(
            "\"kv_role\" of {} is {given}; a {role} worker must be {wanted} (anything but kv_producer is taken for a consumer, without a word)",
            option.flag
        );
        option.error(KV_TRANSFER, message, found);
    }
}

fn is_producer(config: &Map<String, Value>) -> bool {
    config
        .get("kv_role")
        .is_none_or(|role| role.as_str() == Some("kv_producer"))
}

fn kind(config: &Map<String, Value>) -> Option<Kind> {
    let name = config
        .get("kv_connector")
        .map_or("moriio", |name| name.as_str().unwrap_or(""))
        .to_lowercase();
    match name.as_str() {
        "multi" => Some(Kind::Multi),
        "mooncake" | "moriio" => Some(Kind::Transfer),
        other if CONNECTORS.contains(&other) => Some(Kind::Offload),
        _ => None,
    }
}

/// F7: the members of `multi`.
fn members<'c>(
    option: &Object<'_>,
    config: &'c Map<String, Value>,
    found: &mut Diagnostics,
) -> Vec<&'c Map<String, Value>> {
    let list = config.get("connectors").and_then(Value::as_array);
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        let message = format!(
            "{}: the connector multi needs a list \"connectors\" that is not empty",
            option.flag
        );
        option.error(KV_TRANSFER, message, found);
        return Vec::new();
    };
    let mut members = Vec::new();
    for member in list {
        let Some(member) = member.as_object() else {
            let message = format!("{}: \"connectors\" must hold objects", option.flag);
            option.error(KV_TRANSFER, message, found);
            continue;
        };
        if one(option, member, true, found).is_some() {
            members.push(member);
        }
    }
    members
}

/// One connector's own keys.
fn one(
    option: &Object<'_>,
    config: &Map<String, Value>,
    inside_multi: bool,
    found: &mut Diagnostics,
) -> Option<Kind> {
    let flag = &option.flag;
    let kind = kind(config);
    let mut refuse = |message: String, found: &mut Diagnostics| {
        option.error(KV_TRANSFER, format!("{flag}: {message}"), found);
    };
    let name = config.get("kv_connector");
    match (name, kind) {
        (None, _) if inside_multi => {
            refuse("an entry of \"connectors\" names no \"kv_connector\"".into(), found);
            return None;
        }
        (None, _) => option.warning(KV_TRANSFER, format!("{flag} names no \"kv_connector\": DeepSeek-V4 refuses that, other models take moriio"), found),
        (Some(name), None) => {
            refuse(format!("\"kv_connector\" {name} is none of mooncake, moriio, multi, lmcache_offload; the server fails after the weights are loaded"), found);
            return None;
        }
        (Some(_), Some(Kind::Multi)) if inside_multi => {
            refuse("\"connectors\" must not hold another multi".into(), found);
            return None;
        }
        (Some(_), Some(_)) => {}
    }
    // F10: other fields of LMCache are refused by LMCache itself, whose list is not ours.
    let known: Map<String, Value> = config
        .iter()
        .filter(|(key, _)| !key.starts_with("lmcache."))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    option.unknown_keys(&known, KEYS, false, found);
    if let Some(port) = config.get("handshake_port") {
        if !port.is_u64() {
            refuse(
                format!(
                    "\"handshake_port\" {port} must be a JSON number; the server fails after the weights are loaded"
                ),
                found,
            );
        } else if !(1..=65535).contains(&port.as_u64().unwrap_or(0)) {
            refuse(format!("\"handshake_port\" {port} is no port"), found);
        }
    }
    for key in NUMBERS {
        if let Some(value) = config
            .get(*key)
            .filter(|value| !value.is_i64() && !value.is_u64())
        {
            option.warning(
                KV_TRANSFER,
                format!("{flag}: \"{key}\" {value} should be a JSON number without quotes"),
                found,
            );
        }
    }
    if kind == Some(Kind::Offload) {
        offload(option, config, &mut refuse, found);
    }
    kind
}

fn offload(
    option: &Object<'_>,
    config: &Map<String, Value>,
    refuse: &mut impl FnMut(String, &mut Diagnostics),
    found: &mut Diagnostics,
) {
    let choice = |key: &str, words: &[&str], refuse: &mut dyn FnMut(String)| {
        if let Some(value) = config.get(key)
            && !value.as_str().is_some_and(|word| words.contains(&word))
        {
            refuse(format!(
                "\"{key}\" {value} of lmcache_offload is none of {}; the server fails after the weights are loaded",
                words.join(", ")
            ));
        }
    };
    choice("kv_role", OFFLOAD_ROLES, &mut |message| {
        refuse(message, found);
    });
    choice("offload_layout", LAYOUTS, &mut |message| {
        refuse(message, found);
    });
    let inner = config
        .get("kv_connector_extra_config")
        .and_then(Value::as_object)
        .unwrap_or(config);
    for key in COUNTS {
        if let Some(value) = inner
            .get(*key)
            .filter(|value| value.as_u64().is_none_or(|number| number == 0))
        {
            refuse(
                format!("\"{key}\" {value} of lmcache_offload must be a whole number from 1"),
                found,
            );
        }
    }
    // F10: a disk needs its size, a size its disk, and both a CPU cache before them.
    let field = |name: &str| {
        inner
            .get(&format!("lmcache.{name}"))
            .filter(|value| !value.is_null() && value.as_str() != Some(""))
    };
    let size = |name: &str| field(name).and_then(Value::as_f64).unwrap_or(0.0);
    let disk = field("local_disk").is_some();
    let disk_size = size("max_local_disk_size") > 0.0;
    if disk != disk_size && (disk || field("max_local_disk_size").is_some()) {
        option.warning(KV_TRANSFER, format!("{}: \"lmcache.local_disk\" and \"lmcache.max_local_disk_size\" need each other, unless LMCACHE_ variables give the other one", option.flag), found);
    }
    if disk && field("max_local_cpu_size").is_some() && size("max_local_cpu_size") <= 0.0 {
        option.warning(
            KV_TRANSFER,
            format!(
                "{}: \"lmcache.local_disk\" needs \"lmcache.max_local_cpu_size\" above 0",
                option.flag
            ),
            found,
        );
    }
}
