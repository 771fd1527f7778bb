//! One worker's command: the parts in the documented order. No rule is decided here.

use super::topology::{Placement, Slot};
use super::{Inputs, child_env, model, parallel, transfer, tuning};
use crate::domain::codes::NO_MODEL_FOLDER;
use crate::domain::command::{ArgGroup, Command, last_value};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, Place};
use crate::domain::models::ModelEntry;
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::Settings;
use crate::domain::topology::{Port, Role, all_addresses};
use crate::plan::{Speculation, WorkerPlan};

/// ATOM's OpenAI server.
pub const MODULE: &str = "atom.entrypoints.openai_server";

fn fixed(words: &[&str]) -> ArgGroup {
    ArgGroup::new(
        words.iter().map(|word| (*word).to_owned()).collect(),
        Source::Default,
    )
}

fn setting<T: ToString>(flag: &str, value: &Sourced<T>) -> ArgGroup {
    ArgGroup::new(
        vec![flag.to_owned(), value.value.to_string()],
        value.source.clone(),
    )
    .instead_of(value.shadowed.clone())
}

/// `--host`: all addresses, of the kind at which the node is reached.
fn host(node: Option<&str>) -> ArgGroup {
    let host = all_addresses(node.unwrap_or_default());
    let mut group = fixed(&["--host", host]);
    if let Some(node) = node.filter(|_| host == "::") {
        group.source = Source::Derived(format!("address {node} of the node"));
    }
    group
}

/// Extra arguments: the shared ones, the role's, then the words after `--`.
fn extra(settings: &Settings, role: Role) -> Vec<ArgGroup> {
    let lists = [
        settings.extra_args.as_ref(),
        settings.role_args.get(role).as_ref(),
    ];
    let mut groups = Vec::new();
    for list in lists.into_iter().flatten() {
        let mut more = parallel::group(list.value.clone(), &list.source);
        if let Some(first) = more.first_mut() {
            first.shadowed.clone_from(&list.shadowed);
        }
        groups.extend(more);
    }
    groups.extend(parallel::group(
        settings.trailing_args.clone(),
        &Source::CommandLine("--".into()),
    ));
    groups
}

/// Speculation as the server will read it: the last `--method` and `--num-speculative-tokens` among the words.
fn speculation(args: &[ArgGroup]) -> Option<Speculation> {
    // Without a method the server ignores the number; with one, its own default is 1.
    let method = last_value(args, "--method").flatten()?;
    let tokens = last_value(args, "--num-speculative-tokens").flatten();
    Some(Speculation {
        method: method.to_owned(),
        tokens: tokens.and_then(|tokens| tokens.parse().ok()).unwrap_or(1),
    })
}

/// The model's path: an unclear snapshot is a finding, and the folder itself stands in for it.
fn model_path(
    settings: &Settings,
    entry: &ModelEntry,
    inputs: Inputs<'_>,
    found: &mut Diagnostics,
) -> Sourced<String> {
    let path = model::path(settings, entry);
    if matches!(path.source, Source::Derived(_)) && !path.value.contains('/') {
        found.push(
            Diagnostic::warning(
                NO_MODEL_FOLDER,
                Place::Input("--model-dir".into()),
                format!(
                    "no folder of models is set: the server gets the bare name `{}`",
                    path.value.escape_debug()
                ),
            )
            .help(Help::give(
                "set ",
                ("--model-dir", "MODEL_DIR"),
                ", or give the model's own path or hub id with `--model-path`",
            )),
        );
    }
    model::resolved_path(path.clone(), inputs.folder).unwrap_or_else(|problem| {
        found.push(problem);
        path
    })
}

/// Resolve one worker.
pub fn worker(
    inputs: Inputs<'_>,
    placement: &Placement,
    slot: &Slot,
    found: &mut Diagnostics,
) -> WorkerPlan {
    let settings = inputs.settings;
    let role = slot.role;
    let mode = settings.mode.get(role);
    let tp = settings.tp.get(role);
    let model_path = model_path(settings, inputs.entry, inputs, found);
    let host_ip = transfer::host_ip(inputs, placement, slot);
    let mut args = vec![
        fixed(&["-m", MODULE]),
        setting("--model", &model_path),
        host(placement.node(slot.rank)),
        setting("--server-port", &slot.port),
        fixed(&["--trust-remote-code"]),
        setting("-tp", tp),
    ];
    args.extend(parallel::flags(inputs, role, mode, found));
    args.extend(parallel::speculation(inputs, found));
    args.extend(tuning::kv_cache(inputs, found));
    args.extend(tuning::numbers(inputs, role));
    args.extend(transfer::prefix_caching(inputs, role));
    args.extend(transfer::quantisation(inputs, mode.value));
    args.extend(transfer::hf_overrides(inputs));
    args.extend(transfer::kv_transfer(inputs, slot, host_ip.as_ref(), found));
    args.extend(tuning::capture_sizes(inputs, role));
    args.extend(extra(settings, role));
    let command = Command {
        program: settings.python.value.clone(),
        args,
        env: child_env::variables(inputs, slot, mode.value, host_ip.as_ref(), found),
    };
    let handshake = transfer::side_channels(settings, slot)
        .into_iter()
        .next()
        .and_then(|(first, count)| Some((Port::new(u16::try_from(first).ok()?), count)));
    WorkerPlan {
        rank: slot.rank,
        slot: slot.slot,
        role,
        index: slot.index,
        name: slot.name.clone(),
        node: placement.node(slot.rank).map(str::to_owned),
        mode: mode.clone(),
        tp: tp.clone(),
        port: slot.port.clone(),
        handshake,
        dp_master: mode.value.dp_attention().then_some(slot.dp_master),
        dp_base: slot.dp_base,
        gpus: slot.gpus.clone(),
        host_ip: host_ip.filter(|_| role != Role::Standalone),
        model_path,
        speculation: speculation(&command.args),
        command,
    }
}
