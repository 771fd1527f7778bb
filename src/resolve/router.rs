//! The router's command, from the workers' addresses. Knows no server flag.

use super::parallel;
use super::topology::Placement;
use crate::domain::command::{ArgGroup, Command};
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::Settings;
use crate::domain::topology::{Port, Role, all_addresses, http_url};
use crate::plan::{RouterPlan, WorkerPlan};

/// Address of rank 0: NODE0_ADDR, else the first node.
pub fn address(settings: &Settings, placement: &Placement) -> String {
    settings.node0_addr.as_ref().map_or_else(
        || placement.node_or_name(0),
        |address| address.value.clone(),
    )
}

/// `ROUTER launch …` with every worker's URL, prefill first.
pub fn plan(settings: &Settings, placement: &Placement, workers: &[WorkerPlan]) -> RouterPlan {
    let words = |words: &[&str], source: &Source| {
        ArgGroup::new(
            words.iter().map(|word| (*word).to_owned()).collect(),
            source.clone(),
        )
    };
    let setting = |flag: &str, value: &Sourced<String>| {
        ArgGroup::new(
            vec![flag.to_owned(), value.value.clone()],
            value.source.clone(),
        )
        .instead_of(value.shadowed.clone())
    };
    let port = |value: &Sourced<Port>| value.clone().map(|port| port.to_string());
    let node = address(settings, placement);
    let host = match all_addresses(&node) {
        // The router reads host and port as one text.
        "::" => words(
            &["--host", "[::]"],
            &Source::Derived(format!("address {node} of rank 0")),
        ),
        all => words(&["--host", all], &Source::Default),
    };
    let mut args = vec![
        words(&["launch"], &Source::Default),
        host,
        setting("--port", &port(&settings.ports.router)),
        words(&["--pd-disaggregation"], &Source::Default),
    ];
    for (role, flag) in [(Role::Prefill, "--prefill"), (Role::Decode, "--decode")] {
        for worker in workers.iter().filter(|worker| worker.role == role) {
            let url = http_url(&placement.node_or_name(worker.rank), worker.port.value);
            args.push(words(
                &[flag, &url],
                &Source::Derived(format!("worker {}", worker.name)),
            ));
        }
    }
    args.push(setting("--policy", &settings.router_policy));
    args.push(words(&["--backend", "atom"], &Source::Default));
    args.push(words(&["--log-level", "info"], &Source::Default));
    args.push(words(&["--disable-health-check"], &Source::Default));
    args.push(words(&["--disable-circuit-breaker"], &Source::Default));
    args.push(setting(
        "--prometheus-port",
        &port(&settings.ports.prometheus),
    ));
    if let Some(more) = &settings.router_args {
        args.extend(parallel::group(more.value.clone(), &more.source));
    }
    RouterPlan {
        node,
        port: settings.ports.router.clone(),
        prometheus: settings.ports.prometheus.clone(),
        command: Command {
            program: settings.router_bin.value.clone(),
            args,
            env: Vec::new(),
        },
    }
}
