//! Options whose value is a JSON object: what the server ignores or refuses inside.

use serde_json::{Map, Value};

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostics, nearest};
use crate::domain::topology::Role;
use crate::input::json;

/// B12, B13: what quantisation understands.
const QUANT_KEYS: &[&str] = &["global_quant_config", "layer_quant_config", "exclude_layer"];
const QUANT_FORMATS: &[&str] = &[
    "ptpc_fp8",
    "per_block_fp8",
    "per_block128_fp8",
    "mxfp4",
    "mxfp8",
];

/// F5 and kv-transfer section 1.
const CONNECTORS: &[&str] = &[
    "mooncake",
    "moriio",
    "multi",
    "lmcache_offload",
    "lmcacheoffloadconnector",
    "lmcacheconnectorv1",
];
const TRANSFER_KEYS: &[&str] = &[
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
    "proxy_ip",
    "proxy_ping_port",
    "engine_id",
];

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    for dest in [
        "online_quant_config",
        "hf_overrides",
        "dspark_config",
        "dcp_config",
        "eplb_config",
        "kv_transfer_config",
        "default_chat_template_kwargs",
    ] {
        if let Some(object) = object(view, dest, found) {
            match dest {
                "online_quant_config" => quantisation(view, &object, found),
                "kv_transfer_config" => transfer(view, &object, found),
                _ => {}
            }
        }
    }
}

/// A6, A7, F3, F4: it must be one JSON object without repeated keys.
fn object(view: &View<'_>, dest: &str, found: &mut Diagnostics) -> Option<Map<String, Value>> {
    let text = view.text(dest)?;
    let flag = view.get(dest)?.option.name();
    // `null` counts as `{}` for the options that are dictionaries of their own.
    if text.trim() == "null" {
        return None;
    }
    if let Err(fault) = json::check_object(text) {
        found.push(
            view.error(
                codes::BAD_JSON_FLAG,
                dest,
                format!("`{flag}`{} {}", view.within(dest), fault.message),
            )
            .help_if(fault.help),
        );
        return None;
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn unknown_keys(
    view: &View<'_>,
    dest: &str,
    object: &Map<String, Value>,
    known: &[&str],
    found: &mut Diagnostics,
) {
    for key in object
        .keys()
        .filter(|key| !known.contains(&key.as_str()) && !key.starts_with("lmcache."))
    {
        let flag = view
            .get(dest)
            .map_or("", |occurrence| occurrence.option.name());
        let near = nearest(key, known.iter().copied());
        let help = near.map_or_else(
            || format!("the server knows {}", known.join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        found.push(
            view.warning(
                codes::UNKNOWN_JSON_KEY,
                dest,
                format!(
                    "the key \"{}\" of `{flag}`{} is ignored by the server",
                    key.escape_debug(),
                    view.within(dest)
                ),
            )
            .help(help),
        );
    }
}

fn quantisation(view: &View<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    let dest = "online_quant_config";
    unknown_keys(view, dest, object, QUANT_KEYS, found);
    let formats = object.get("global_quant_config").into_iter().chain(
        object
            .get("layer_quant_config")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::values),
    );
    for format in formats
        .filter_map(Value::as_str)
        .filter(|format| !QUANT_FORMATS.contains(format))
    {
        let help = nearest(format, QUANT_FORMATS.iter().copied())
            .map(|near| format!("did you mean \"{near}\"?"));
        found.push(
            view.error(
                codes::QUANT_FORMAT,
                dest,
                format!(
                    "quantisation format \"{}\"{} is none of {}",
                    format.escape_debug(),
                    view.within(dest),
                    QUANT_FORMATS.join(", ")
                ),
            )
            .help_if(help),
        );
    }
    if object.is_empty() {
        found.push(view.warning(
            codes::NO_EFFECT,
            dest,
            format!(
                "`--online_quant_config {{}}`{} quantises nothing",
                view.within(dest)
            ),
        ));
    }
}

/// F2, F5, F6, F7.
fn transfer(view: &View<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    let dest = "kv_transfer_config";
    if object.is_empty() {
        return;
    }
    unknown_keys(view, dest, object, TRANSFER_KEYS, found);
    let connector = object
        .get("kv_connector")
        .map(|value| value.as_str().unwrap_or("").to_lowercase());
    let complain = |message: String, found: &mut Diagnostics| {
        found.push(view.error(codes::KV_TRANSFER, dest, message));
    };
    match connector.as_deref() {
        None => found.push(view.warning(codes::KV_TRANSFER, dest, "`--kv-transfer-config` names no \"kv_connector\": DeepSeek-V4 refuses that, other models take moriio")),
        Some(name) if !CONNECTORS.contains(&name) => complain(format!("\"kv_connector\" \"{}\" is none of mooncake, moriio, multi, lmcache_offload", name.escape_debug()), found),
        Some("multi") => multi(view, object, found),
        Some("mooncake" | "moriio") => role(view, object, found),
        Some(_) => {}
    }
    if object
        .get("handshake_port")
        .is_some_and(|port| !port.is_u64())
    {
        complain(
            "\"handshake_port\" must be a JSON number: a text fails after the weights are loaded"
                .into(),
            found,
        );
    }
}

fn role(view: &View<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    let wanted = match view.case.role {
        Role::Prefill => "kv_producer",
        Role::Decode => "kv_consumer",
        Role::Standalone => return,
    };
    let given = object
        .get("kv_role")
        .and_then(Value::as_str)
        .unwrap_or("kv_producer");
    if given != wanted {
        found.push(
            view.error(
                codes::KV_TRANSFER,
                "kv_transfer_config",
                format!(
                    "\"kv_role\" is \"{}\" on a {} worker, which must be \"{wanted}\"",
                    given.escape_debug(),
                    view.case.role
                ),
            )
            .help("the server takes anything but kv_producer for a consumer, without a word"),
        );
    }
}

fn multi(view: &View<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    let dest = "kv_transfer_config";
    let Some(connectors) = object
        .get("connectors")
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty())
    else {
        found.push(view.error(
            codes::KV_TRANSFER,
            dest,
            "\"kv_connector\" multi needs a list \"connectors\" that is not empty",
        ));
        return;
    };
    for entry in connectors {
        let name = entry
            .get("kv_connector")
            .and_then(Value::as_str)
            .map(str::to_lowercase);
        match name.as_deref() {
            None => found.push(view.error(
                codes::KV_TRANSFER,
                dest,
                "an entry of \"connectors\" names no \"kv_connector\"",
            )),
            Some("multi") => found.push(view.error(
                codes::KV_TRANSFER,
                dest,
                "\"connectors\" must not hold another multi",
            )),
            Some(_) => {}
        }
    }
}
