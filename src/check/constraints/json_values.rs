//! Options whose value is a JSON object: what the server ignores or refuses inside.

use serde_json::{Map, Value};

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostics, nearest};
use crate::domain::json;

/// B12, B13: what quantisation understands.
const QUANT_KEYS: &[&str] = &["global_quant_config", "layer_quant_config", "exclude_layer"];
const QUANT_FORMATS: &[&str] = &[
    "ptpc_fp8",
    "per_block_fp8",
    "per_block128_fp8",
    "mxfp4",
    "mxfp8",
];

/// A7: fields of the server's own configuration objects; it refuses any other key.
const DSPARK_KEYS: &[&str] = &[
    "confidence_schedule",
    "ragged",
    "ragged_graph_sizes",
    "q_buckets",
    "disable_sps_calib",
];
const DCP_KEYS: &[&str] = &[
    "interleave_size",
    "enable_query_replication",
    "enable_project_before_merge",
    "comm_backend",
];
const EPLB_KEYS: &[&str] = &[
    "load_window_size",
    "rebalance_interval",
    "rebalance_layers_per_chunk",
    "num_redundant_experts",
    "rebalance_min_balancedness",
    "rebalance_balancedness_agg",
    "p2p_batch_chunk_size",
    "placement_policy",
];

/// One JSON option while it is looked at.
pub(super) struct Object<'v> {
    view: &'v View<'v>,
    dest: &'static str,
    /// The option as messages name it, with where it stands.
    pub(super) flag: String,
}

impl Object<'_> {
    pub(super) fn error(
        &self,
        code: crate::domain::diagnostic::Code,
        message: String,
        found: &mut Diagnostics,
    ) {
        found.push(self.view.error(code, self.dest, message));
    }

    pub(super) fn warning(
        &self,
        code: crate::domain::diagnostic::Code,
        message: String,
        found: &mut Diagnostics,
    ) {
        found.push(self.view.warning(code, self.dest, message));
    }

    /// Keys that the server does not have: ignored by some options, refused by others.
    pub(super) fn unknown_keys(
        &self,
        object: &Map<String, Value>,
        known: &[&str],
        refused: bool,
        found: &mut Diagnostics,
    ) {
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            let help = nearest(key, known.iter().copied()).map_or_else(
                || format!("the server knows {}", known.join(", ")),
                |near| format!("did you mean \"{near}\"?"),
            );
            let what = format!("the key \"{}\" of {}", key.escape_debug(), self.flag);
            let finding = if refused {
                self.view.error(
                    codes::UNKNOWN_JSON_KEY,
                    self.dest,
                    format!("{what} is refused by the server"),
                )
            } else {
                self.view.warning(
                    codes::UNKNOWN_JSON_KEY,
                    self.dest,
                    format!("{what} is ignored by the server"),
                )
            };
            found.push(finding.help(help));
        }
    }
}

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
        let Some(object) = object(view, dest, found) else {
            continue;
        };
        let option = Object {
            view,
            dest,
            flag: view.subject(dest),
        };
        match dest {
            "online_quant_config" => quantisation(&option, &object, found),
            "kv_transfer_config" => {
                super::transfer::check(&option, view.case.role, &object, found);
            }
            "dspark_config" => option.unknown_keys(&object, DSPARK_KEYS, true, found),
            "dcp_config" => context(view, &option, &object, found),
            "eplb_config" => balancer(&option, &object, found),
            _ => {}
        }
    }
}

/// Values that stand for no configuration at all.
pub(super) fn means_nothing(text: &str) -> bool {
    matches!(text.trim(), "{}" | "null" | "[]" | "\"\"")
}

/// A5, A6, A7, F3, F4: it must be one JSON object. Python keeps the last of two equal keys without a word.
fn object(view: &View<'_>, dest: &str, found: &mut Diagnostics) -> Option<Map<String, Value>> {
    let text = view.text(dest)?;
    let nothing = text.trim() == "null" || dest == "kv_transfer_config" && means_nothing(text);
    if nothing {
        return None;
    }
    if let Err(fault) = json::check_object(text) {
        let message = format!("{} {}", view.subject(dest), fault.message);
        let finding = if fault.duplicate {
            view.warning(codes::BAD_JSON_FLAG, dest, message)
        } else {
            view.error(codes::BAD_JSON_FLAG, dest, message)
        };
        found.push(finding.help_if(fault.help));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// B12, B13: formats and the shape around them.
fn quantisation(option: &Object<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    option.unknown_keys(object, QUANT_KEYS, false, found);
    let is_wrong = |key: &str, is_right: fn(&Value) -> bool| {
        object
            .get(key)
            .is_some_and(|value| !value.is_null() && !is_right(value))
    };
    for (key, wrong, wanted) in [
        (
            "global_quant_config",
            is_wrong("global_quant_config", Value::is_string),
            "a format in quotes",
        ),
        (
            "layer_quant_config",
            is_wrong("layer_quant_config", Value::is_object),
            "an object from layer names to formats",
        ),
        (
            "exclude_layer",
            is_wrong("exclude_layer", Value::is_array),
            "a list of layer names",
        ),
    ] {
        if wrong {
            option.warning(
                codes::NO_EFFECT,
                format!(
                    "\"{key}\" of {} is ignored by the server: it must be {wanted}",
                    option.flag
                ),
                found,
            );
        }
    }
    let layers = object.get("layer_quant_config").and_then(Value::as_object);
    let formats = object
        .get("global_quant_config")
        .into_iter()
        .chain(layers.into_iter().flat_map(Map::values));
    for format in formats
        .filter_map(Value::as_str)
        .filter(|format| !QUANT_FORMATS.contains(format))
    {
        let help = nearest(format, QUANT_FORMATS.iter().copied())
            .map(|near| format!("did you mean \"{near}\"?"));
        let message = format!(
            "quantisation format \"{}\" of {} is none of {}",
            format.escape_debug(),
            option.flag,
            QUANT_FORMATS.join(", ")
        );
        found.push(
            option
                .view
                .error(codes::QUANT_FORMAT, option.dest, message)
                .help_if(help),
        );
    }
    let has_formats = object.contains_key("global_quant_config") || layers.is_some();
    if !has_formats && object.keys().all(|key| QUANT_KEYS.contains(&key.as_str())) {
        option.warning(
            codes::NO_EFFECT,
            format!("{} names no format, so nothing is quantised", option.flag),
            found,
        );
    }
}

/// A number as Python's `int()` takes it, from a number or a text.
fn whole(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// C6: granularity and backend of decode context parallelism.
fn context(
    view: &View<'_>,
    option: &Object<'_>,
    object: &Map<String, Value>,
    found: &mut Diagnostics,
) {
    option.unknown_keys(object, DCP_KEYS, true, found);
    let mut refuse = |reason: String| {
        option.error(
            codes::PARALLEL_COMBINATION,
            format!("{} {reason}: the server refuses it", option.flag),
            found,
        );
    };
    if let Some(backend) = object.get("comm_backend").and_then(Value::as_str)
        && !["ag_rs", "a2a"].contains(&backend)
    {
        refuse(format!(
            "has the backend \"{}\", which is neither ag_rs nor a2a",
            backend.escape_debug()
        ));
    }
    let Some(size) = object.get("interleave_size").and_then(whole) else {
        return;
    };
    let block = view.int("block_size").unwrap_or(16);
    if size < 1 {
        refuse(format!("has \"interleave_size\" {size}, below 1"));
    } else if size > 1 {
        if view.size("decode_context_parallel_size") <= 1 {
            refuse(format!(
                "has \"interleave_size\" {size}, which needs `-dcp` above 1"
            ));
        }
        if block < 1 || i128::from(size) > block || block % i128::from(size) != 0 {
            refuse(format!(
                "has \"interleave_size\" {size}, which does not divide `--block-size {block}`"
            ));
        }
        if view.speculative_tokens() > 0 {
            refuse(format!(
                "has \"interleave_size\" {size}, which does not go with speculation"
            ));
        }
    }
}

/// B11: the expert balancer's values, checked by the server even where it is off.
fn balancer(option: &Object<'_>, object: &Map<String, Value>, found: &mut Diagnostics) {
    option.unknown_keys(object, EPLB_KEYS, true, found);
    let mut refuse = |reason: String| {
        option.error(
            codes::OUT_OF_RANGE,
            format!("{} {reason}: the server refuses it", option.flag),
            found,
        );
    };
    for (key, least) in [
        ("load_window_size", 1),
        ("rebalance_interval", 1),
        ("rebalance_layers_per_chunk", 1),
        ("p2p_batch_chunk_size", 1),
        ("num_redundant_experts", 0),
    ] {
        if let Some(value) = object.get(key)
            && !value.is_f64()
            && whole(value).is_none_or(|number| number < least)
        {
            refuse(format!(
                "has \"{key}\" {value}, which must be at least {least}"
            ));
        }
    }
    let number = |key: &str, default: i64| object.get(key).map_or(Some(default), whole);
    if let (Some(window), Some(interval)) = (
        number("load_window_size", 1000),
        number("rebalance_interval", 3000),
    ) && interval >= 1
        && interval < window
    {
        refuse(format!(
            "has \"rebalance_interval\" {interval} below \"load_window_size\" {window}"
        ));
    }
    for (key, words) in [
        ("rebalance_balancedness_agg", ["min", "mean"]),
        ("placement_policy", ["naive", "biased"]),
    ] {
        if let Some(word) = object.get(key).and_then(Value::as_str)
            && !words.contains(&word.trim().to_lowercase().as_str())
        {
            refuse(format!(
                "has \"{key}\" \"{}\", which is neither {} nor {}",
                word.escape_debug(),
                words[0],
                words[1]
            ));
        }
    }
}
