//! A job's plan as a table, as JSON, and as commands for bash.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::command::{as_json as command_json, text as command_text};
use super::{count, table};
use crate::cli::CommandFormat;
use crate::domain::models::Origin;
use crate::domain::secret;
use crate::domain::topology::{Role, host_port, http_url};
use crate::plan::{JobPlan, RouterPlan, SCHEMA, WorkerPlan};

fn router_url(router: &RouterPlan) -> String {
    http_url(&router.node, router.port.value)
}

/// What a rank waits for, in order.
fn waits(job: &JobPlan, rank: u32) -> Vec<String> {
    let Some(router) = &job.router else {
        return Vec::new();
    };
    let url = router_url(router);
    if rank == 0 {
        vec![
            format!("{} at /health", count(job.workers.len(), "worker")),
            format!("the router at {url}/readiness"),
            "the workload's end".into(),
        ]
    } else {
        vec![format!("the router at {url}"), "the router's end".into()]
    }
}

/// Columns of the text form, apart from the words of commands.
const WIDTH: usize = 100;

fn port_or_nothing(port: Option<crate::domain::topology::Port>) -> String {
    port.map_or(String::new(), |port| port.to_string())
}

/// `6301-6308`: the block of side-channel ports.
fn handshakes(worker: &WorkerPlan) -> String {
    let Some((first, count)) = worker.handshake else {
        return String::new();
    };
    if count > 1 {
        format!("{first}-{}", u32::from(first.get()) + count - 1)
    } else {
        first.to_string()
    }
}

/// `0-3`, `all`, or the devices one by one.
fn gpus(worker: &WorkerPlan) -> String {
    let Some(devices) = &worker.gpus else {
        return "all".into();
    };
    let numbers: Option<Vec<u32>> = devices.iter().map(|device| device.parse().ok()).collect();
    match numbers.as_deref() {
        Some([first, .., last])
            if devices.len() > 2
                && last.checked_sub(*first) == u32::try_from(devices.len() - 1).ok()
                && numbers.iter().flatten().is_sorted() =>
        {
            format!("{first}-{last}")
        }
        _ => table::cut(&devices.join(","), 15),
    }
}

/// One row a worker; the router and its metrics below rank 0's workers.
fn rows(workers: &[&WorkerPlan], router: Option<&RouterPlan>) -> Vec<Vec<String>> {
    let heads = [
        "RANK", "WORKER", "HTTP", "MODE", "TP", "GPUS", "KV", "DP", "GROUP",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for worker in workers {
        rows.push(vec![
            worker.rank.to_string(),
            worker.name.clone(),
            host_port(&worker.address(), worker.port.value),
            worker.mode.value.to_string(),
            worker.tp.value.to_string(),
            gpus(worker),
            handshakes(worker),
            port_or_nothing(worker.dp_master),
            port_or_nothing(worker.dp_base),
        ]);
    }
    let of_router = router.iter().flat_map(|router| {
        [("router", &router.port), ("metrics", &router.prometheus)]
            .map(|(name, port)| (name, host_port(&router.node, port.value)))
    });
    for (name, address) in of_router {
        let mut row = vec!["0".to_owned(), name.to_owned(), address];
        row.resize(heads.len(), String::new());
        rows.push(row);
    }
    // A column that nobody fills only takes room.
    for column in (0..heads.len()).rev() {
        if rows[1..].iter().all(|row| row[column].is_empty()) {
            for row in &mut rows {
                row.remove(column);
            }
        }
    }
    fit(&mut rows);
    rows
}

/// Cut addresses where the table would be too wide; their ports stay.
fn fit(rows: &mut [Vec<String>]) {
    const ADDRESS: usize = 2;
    let columns = rows[0].len();
    let others: usize = (0..columns)
        .filter(|column| *column != ADDRESS)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].width())
                .max()
                .unwrap_or(0)
                + 2
        })
        .sum();
    let room = WIDTH.saturating_sub(others);
    for row in rows {
        if row[ADDRESS].width() <= room {
            continue;
        }
        if let Some((host, port)) = row[ADDRESS].rsplit_once(':') {
            row[ADDRESS] = format!(
                "{}:{port}",
                table::cut(host, room.saturating_sub(port.len() + 1))
            );
        }
    }
}

/// A table that fits 100 columns, what each rank waits for, and one command of each role (all of them for a chosen rank).
pub fn text(job: &JobPlan, only: Option<u32>) -> String {
    let shown = |rank: u32| only.is_none_or(|only| only == rank);
    let workers: Vec<&WorkerPlan> = job
        .workers
        .iter()
        .filter(|worker| shown(worker.rank))
        .collect();
    let router = job.router.as_ref().filter(|_| shown(0));
    let mut out = format!(
        "{}: {} on {} ({})\nmodels file: {}\nsha256:      {}\n\n{}",
        job.model,
        count(job.workers.len(), "worker"),
        count(job.ranks as usize, "node"),
        job.layout,
        table::cut(&job.models.name, WIDTH - "models file: ".len()),
        job.models.sha256,
        table::aligned(&rows(&workers, router))
    );
    if job.router.is_some() {
        out.push('\n');
        if shown(0) {
            out.push_str(&format!(
                "rank 0 waits for {}\n",
                waits(job, 0).join(",\n  then ")
            ));
        }
        if job.ranks > 1 && only != Some(0) {
            let who = only.map_or("other ranks wait".to_owned(), |rank| {
                format!("rank {rank} waits")
            });
            out.push_str(&format!("{who} for {}\n", waits(job, 1).join(",\n  then ")));
        }
    }
    let mut seen: Vec<Role> = Vec::new();
    for worker in workers {
        if only.is_none() && seen.contains(&worker.role) {
            continue;
        }
        seen.push(worker.role);
        let others = job
            .workers
            .iter()
            .filter(|other| other.role == worker.role)
            .count()
            - 1;
        let note = if only.is_none() && others > 0 {
            format!(" ({others} more of this role: --rank N)")
        } else {
            String::new()
        };
        out.push_str(&format!(
            "\n# {}{note}\n{}",
            worker.name,
            command_text(&worker.command, CommandFormat::Shell)
        ));
    }
    if let Some(router) = router {
        out.push_str(&format!(
            "\n# router\n{}",
            command_text(&router.command, CommandFormat::Shell)
        ));
    }
    out
}

/// All commands for bash, each under a comment.
pub fn shell(job: &JobPlan, only: Option<u32>) -> String {
    let shown = |rank: u32| only.is_none_or(|only| only == rank);
    let workers = job
        .workers
        .iter()
        .filter(|worker| shown(worker.rank))
        .map(|worker| {
            format!(
                "# rank {}: {} on {}\n{}",
                worker.rank,
                worker.name,
                worker.address(),
                command_text(&worker.command, CommandFormat::Shell)
            )
        });
    let router = job.router.iter().filter(|_| shown(0)).map(|router| {
        format!(
            "# rank 0: router on {}\n{}",
            router.node,
            command_text(&router.command, CommandFormat::Shell)
        )
    });
    workers.chain(router).collect::<Vec<_>>().join("\n")
}

fn with_command(mut value: Value, command: &crate::domain::command::Command) -> Value {
    if let (Value::Object(fields), Value::Object(command)) = (&mut value, command_json(command)) {
        fields.extend(command);
    }
    value
}

fn worker_json(worker: &WorkerPlan) -> Value {
    let value = json!({
        "name": worker.name,
        "role": worker.role,
        "index": worker.index,
        "slot": worker.slot,
        "mode": worker.mode.value,
        "tensor_parallel": worker.tp.value,
        "gpus": worker.gpus,
        "address": worker.address(),
        "host_ip": worker.host_ip.as_ref().map(|ip| &ip.value),
        "ports": {
            "server": worker.port.value,
            "handshake": worker.handshake.map(|(first, count)| json!({"first": first, "count": count})),
            "dp_master": worker.dp_master,
            "dp_base": worker.dp_base,
        },
        "health_url": worker.health_url(),
        "model_path": secret::hide_inside(&worker.model_path.value),
        "speculative": worker.speculation.as_ref().map(|one| json!({"method": one.method, "tokens": one.tokens})),
    });
    with_command(value, &worker.command)
}

/// The models file as JSON: origin, name, hash.
pub fn models_json(job: &JobPlan) -> Value {
    let named_by = match &job.models.origin {
        Origin::BuiltIn => None,
        Origin::Path { named_by, .. } => Some(named_by),
    };
    json!({"built_in": named_by.is_none(), "name": job.models.name, "named_by": named_by, "sha256": job.models.sha256})
}

/// The whole plan for programs; docs/plan.md describes every key.
pub fn as_json(job: &JobPlan, only: Option<u32>) -> Value {
    let ranks: Vec<Value> = (0..job.ranks)
        .filter(|rank| only.is_none_or(|only| only == *rank))
        .map(|rank| {
            let workers: Vec<&WorkerPlan> = job.workers_of(rank).collect();
            // A worker that stands alone may carry a rank of its own.
            let workers: Vec<&WorkerPlan> = if workers.is_empty() {
                job.workers.iter().collect()
            } else {
                workers
            };
            let router = job.router.as_ref().filter(|_| rank == 0).map(|router| {
                let value = json!({
                    "address": router.node,
                    "url": router_url(router),
                    "ports": {"router": router.port.value, "metrics": router.prometheus.value},
                });
                with_command(value, &router.command)
            });
            json!({
                "rank": rank,
                "node": workers.first().map(|worker| worker.address()),
                "waits_for": waits(job, rank),
                "workers": workers.into_iter().map(worker_json).collect::<Vec<_>>(),
                "router": router,
            })
        })
        .collect();
    json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "model": job.model,
        "entry": job.entry,
        "models_file": models_json(job),
        "layout": job.layout,
        "ranks": ranks,
    })
}
