//! The configuration banner: what is really passed, read back from the resolved command.

use super::table;
use crate::domain::command::last_value;
use crate::domain::secret;
use crate::domain::topology::Role;
use crate::plan::{JobPlan, WorkerPlan};

/// A few aligned lines about one worker.
pub fn text(job: &JobPlan, worker: &WorkerPlan) -> String {
    let entry = if job.entry == job.model {
        String::new()
    } else {
        format!(" (entry {})", job.entry)
    };
    let place = match (&worker.node, worker.role) {
        (_, Role::Standalone) => format!("port {}", worker.port.value),
        (Some(node), _) => format!("rank {} on {node}, port {}", worker.rank, worker.port.value),
        (None, _) => format!("rank {}, port {}", worker.rank, worker.port.value),
    };
    let gpus = worker
        .gpus
        .as_ref()
        .map_or(String::new(), |gpus| format!(", GPUs {}", gpus.join(",")));
    let speculation = worker
        .speculation
        .as_ref()
        .map_or("none".to_owned(), |speculation| {
            let tokens = if speculation.tokens == 1 {
                "token"
            } else {
                "tokens"
            };
            format!(
                "{}, {} {tokens} a step",
                speculation.method, speculation.tokens
            )
        });
    let limit = |option: &str| {
        last_value(&worker.command.args, option)
            .flatten()
            .unwrap_or("server's default")
    };
    let rows = [
        (
            "model",
            format!(
                "{}{entry} at {}",
                job.model,
                secret::hide_inside(&worker.model_path.value)
            ),
        ),
        (
            "models file",
            format!(
                "{}, sha256 {}",
                job.models.name,
                &job.models.sha256[..12.min(job.models.sha256.len())]
            ),
        ),
        ("worker", format!("{}, {place}{gpus}", worker.role)),
        (
            "parallel",
            format!("{}, tensor parallel {}", worker.mode.value, worker.tp.value),
        ),
        ("speculative", speculation),
        (
            "kv cache",
            format!(
                "{}, blocks of {}",
                limit("--kv-cache-dtype"),
                limit("--block-size")
            ),
        ),
        (
            "limits",
            format!(
                "{} of GPU memory, {} sequences, longest {}",
                limit("--gpu-memory-utilization"),
                limit("--max-num-seqs"),
                limit("--max-model-len")
            ),
        ),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![format!("  {name}"), value])
        .collect();
    format!(
        "atom-launch {}\n{}",
        env!("CARGO_PKG_VERSION"),
        table::aligned(&rows)
    )
}
