//! What only a whole job shows: the router's words, and workers that do not fit each other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{line::Line, router};
use crate::atom::argparse::{self, Occurrence, Parsed};
use crate::atom::table::Table;
use crate::domain::codes::{KV_TRANSFER, WORKERS_DISAGREE};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, MTP, Place};
use crate::domain::topology::Role;
use crate::domain::visible::visible;
use crate::plan::{JobPlan, WorkerPlan};

/// What matters of one worker to the others.
struct Side<'p> {
    worker: &'p WorkerPlan,
    model_id: String,
    speculation: String,
    kv_cache: String,
    block_size: String,
    connectors: BTreeSet<String>,
    pipeline: bool,
    needs_device_numbers: bool,
}

/// Findings about the job as a whole. `inherited_devices` is HIP_VISIBLE_DEVICES as the servers would inherit it.
pub(super) fn check(plan: &JobPlan, inherited_devices: Option<&str>, found: &mut Diagnostics) {
    if let Some(router) = &plan.router {
        router::check(plan, router, found);
    }
    let table = Table::builtin();
    let of = |role: Role| {
        plan.workers
            .iter()
            .filter(move |worker| worker.role == role)
            // Workers of a role differ in addresses and ports only.
            .take(1)
            .map(|worker| side(worker, &table))
            .next()
    };
    let sides = [of(Role::Prefill), of(Role::Decode)];
    // Both roles would say the same of an inherited list.
    if let Some(finding) = sides
        .iter()
        .flatten()
        .find_map(|side| devices(side, inherited_devices))
    {
        found.push(finding);
    }
    if let Some(finding) = plan.workers.iter().find_map(six) {
        found.push(finding);
    }
    if let [Some(prefill), Some(decode)] = &sides {
        disagreements(prefill, decode, found);
    }
}

fn side<'p>(worker: &'p WorkerPlan, table: &Table) -> Side<'p> {
    let line = Line::of(&worker.command.args).without_module();
    let parsed = argparse::parse(&line.words, table);
    let text = |dest: &str| text_of(&parsed, dest);
    let config: Value = text("kv_transfer_config")
        .and_then(|config| serde_json::from_str(&config).ok())
        .unwrap_or_default();
    let members: Vec<&Value> = match config.get("connectors").and_then(Value::as_array) {
        Some(members) => members.iter().collect(),
        None => vec![&config],
    };
    // Only outside of multi does a missing connector mean moriio.
    let missing = if members.len() == 1 { "moriio" } else { "" };
    let name = |member: &Value| {
        member
            .get("kv_connector")
            .map_or(missing, |name| name.as_str().unwrap_or(""))
            .to_lowercase()
    };
    let env = |name: &str| worker.command.env.iter().any(|var| var.name == name);
    let needs_device_numbers = members.iter().any(|member| {
        let is = |key: &str, value: &str| member.get(key).and_then(Value::as_str) == Some(value);
        let device = member
            .get("ib_device")
            .and_then(Value::as_str)
            .is_some_and(|device| !device.is_empty());
        name(member) == "mooncake" && !is("protocol", "tcp") && !device
    }) && !env("ATOM_MOONCAKE_IB_DEVICE");
    Side {
        worker,
        model_id: text("served_model_name")
            .or_else(|| text("model"))
            .unwrap_or_default(),
        speculation: worker.speculation.as_ref().map_or_else(
            || "no speculation".to_owned(),
            |one| format!("{} with {} tokens", one.method, one.tokens),
        ),
        kv_cache: text("kv_cache_dtype").unwrap_or_else(|| "bf16".to_owned()),
        block_size: text("block_size").unwrap_or_else(|| "16".to_owned()),
        connectors: members
            .iter()
            .map(|member| name(member))
            .filter(|name| matches!(name.as_str(), "mooncake" | "moriio"))
            .collect(),
        pipeline: text("pipeline_parallel_size").is_some_and(|size| size != "1"),
        needs_device_numbers,
    }
}

fn text_of(parsed: &Parsed<'_, '_>, dest: &str) -> Option<String> {
    let occurrence: &Occurrence<'_, '_> = parsed.value_of(dest)?;
    occurrence.value.as_ref().map(|value| value.text.to_owned())
}

/// F11, and what the router and the connectors need to be the same on both sides.
fn disagreements(prefill: &Side<'_>, decode: &Side<'_>, found: &mut Diagnostics) {
    let (one, other) = (&prefill.worker.name, &decode.worker.name);
    let mut say = |error: bool, message: String, help: Help| {
        let finding = if error {
            Diagnostic::error(WORKERS_DISAGREE, Place::Whole, message)
        } else {
            Diagnostic::warning(WORKERS_DISAGREE, Place::Whole, message)
        };
        found.push(finding.help(help));
    };
    if prefill.model_id != decode.model_id {
        say(
            true,
            format!(
                "{one} serves the model id `{}`, {other} `{}`: the router matches the text, and answers every request with 503",
                prefill.model_id, decode.model_id
            ),
            "pass the same `--served-model-name` to both roles, or none".into(),
        );
    }
    if prefill.connectors.is_disjoint(&decode.connectors)
        && !prefill.connectors.is_empty()
        && !decode.connectors.is_empty()
    {
        let list = |side: &Side<'_>| {
            side.connectors
                .iter()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        };
        say(
            true,
            format!(
                "{one} transfers over {}, {other} over {}: no request can be handed over",
                list(prefill),
                list(decode)
            ),
            "give both roles the same \"kv_connector\"".into(),
        );
    }
    if prefill.speculation != decode.speculation {
        let late = if prefill.pipeline {
            ": with pipeline parallelism on prefill the first transfer fails"
        } else {
            ": the KV caches of the two differ in their draft layers"
        };
        say(
            prefill.pipeline,
            format!(
                "{one} runs {}, {other} {}{late}",
                prefill.speculation, decode.speculation
            ),
            Help::give("let ", MTP, " set both"),
        );
    }
    for (what, a, b) in [
        ("a KV cache in", &prefill.kv_cache, &decode.kv_cache),
        (
            "KV-cache blocks of",
            &prefill.block_size,
            &decode.block_size,
        ),
    ] {
        if a != b {
            say(
                false,
                format!(
                    "{one} has {what} {a}, {other} {b}: what one hands over may not fit the other"
                ),
                "use the same value for both roles".into(),
            );
        }
    }
}

/// Mooncake writes `address:port` without brackets, in the name by which the other side looks an engine up.
fn six(worker: &WorkerPlan) -> Option<Diagnostic> {
    let address = worker.host_ip.as_ref()?;
    address.value.parse::<std::net::Ipv6Addr>().ok()?;
    let message = format!(
        "{} announces {} for KV transfer, and the connectors put a port behind it without brackets",
        worker.name, address.value
    );
    Some(
        Diagnostic::warning(KV_TRANSFER, Place::Input("--host-ip".into()), message)
            .help("give each rank an IPv4 address of its own with `--host-ip`, where there is one"),
    )
}

/// F9: mooncake picks a network device by the GPU's number, which a UUID is not.
fn devices(side: &Side<'_>, inherited: Option<&str>) -> Option<Diagnostic> {
    if !side.needs_device_numbers {
        return None;
    }
    let own = side
        .worker
        .command
        .env
        .iter()
        .find(|var| var.name == "HIP_VISIBLE_DEVICES")
        .map(|var| var.value.as_str());
    let list = own.or(inherited)?;
    let is_number = |device: &str| device.trim().parse::<i64>().is_ok();
    if list.trim().is_empty() || list.split(',').all(is_number) {
        return None;
    }
    Some(
        Diagnostic::error(KV_TRANSFER, Place::Input("HIP_VISIBLE_DEVICES".into()), format!("HIP_VISIBLE_DEVICES={} names GPUs by other than numbers, by which mooncake picks the network device: the server fails after the weights are loaded", visible(list)))
            .help("use numbers, or name the device: ATOM_MOONCAKE_IB_DEVICE in the model's `env`, or \"ib_device\" of the KV-transfer configuration"),
    )
}
