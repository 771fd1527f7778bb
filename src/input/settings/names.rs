//! The variables that settings are read from, and names that look like them.

use crate::domain::codes::MISSPELT_VARIABLE;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::visible::visible;

/// All variables that a setting is read from, for near misses and for the docs.
pub const VARIABLES: &[&str] = &[
    "ATOM_MODELS_FILE",
    "ATOM_PYTHON",
    "ATOM_ROUTER",
    "ATOM_WS_PATH",
    "ATOMESH_WORKER_CACHE_BASE",
    "BENCHMARK_LOGS_DIR",
    "BENCH_MAX_CONCURRENCY",
    "BLOCK_SIZE",
    "DECODE_ENABLE_DP",
    "DECODE_ENABLE_EP",
    "DECODE_EXTRA_SERVER_ARGS",
    "DECODE_KV_TRANSFER_CONFIG",
    "DECODE_MAX_NUM_SEQS",
    "DECODE_MTP_SIZE",
    "DECODE_PORT",
    "DECODE_TP_SIZE",
    "DRY_RUN",
    "ENABLE_DP",
    "ENABLE_EP",
    "ENABLE_PREFIX_CACHING",
    "EXTRA_SERVER_ARGS",
    "GPUS_PER_NODE",
    "HANDSHAKE_PORT",
    "IPADDRS",
    "IS_AGENTIC",
    "KV_CACHE_DTYPE",
    "MAX_MODEL_LEN",
    "MAX_NUM_BATCHED_TOKENS",
    "MAX_NUM_SEQS",
    "MEM_FRAC_STATIC",
    "MODEL_DIR",
    "MODEL_NAME",
    "MODEL_PATH",
    "NODE0_ADDR",
    "NODE_RANK",
    "PREFILL_ENABLE_DP",
    "PREFILL_ENABLE_EP",
    "PREFILL_EXTRA_SERVER_ARGS",
    "PREFILL_KV_TRANSFER_CONFIG",
    "PREFILL_PORT",
    "PREFILL_TP_SIZE",
    "PROMETHEUS_PORT",
    "ROUTER_POLICY",
    "ROUTER_PORT",
    "SCHEDULER_DELAY_FACTOR",
    "SLURM_JOB_NODELIST",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_STEP_NODELIST",
    "SPEC_DECODING",
    "WAIT_ROUTER_TIMEOUT",
    "WAIT_SERVER_TIMEOUT",
    "xP",
    "yD",
];

/// Variables that say where things are on a site, whatever the job.
const OF_SITE: &[&str] = &["ATOM_PYTHON", "ATOM_ROUTER", "ATOMESH_WORKER_CACHE_BASE"];

/// The variables that describe a job, and neither the site nor the place in an allocation.
pub fn of_job() -> impl Iterator<Item = &'static str> {
    let all = VARIABLES.iter().copied();
    all.filter(|name| !OF_SITE.contains(name) && !name.starts_with("SLURM_"))
}

/// Variables of the same job that resemble one of ours and mean something else.
const NEIGHBOURS: &[&str] = &[
    "DECODE_NUM_WORKERS",
    "DECODE_TP",
    "DECODE_EP",
    "PREFILL_TP",
    "PREFILL_EP",
    "PREFILL_NUM_WORKERS",
    "PREFILL_ROUTER_POLICY",
    "DECODE_ROUTER_POLICY",
];

/// Variables that look like one of ours misspelt: job scripts lost hours to such.
pub(super) fn near_misses(environment: &Environment, found: &mut Diagnostics) {
    for name in environment.names() {
        if name.len() < 8
            || VARIABLES.contains(&name)
            || NEIGHBOURS.contains(&name)
            || !environment.is_set(name)
        {
            continue;
        }
        let near = VARIABLES
            .iter()
            .filter(|known| known.len() >= 8 && one_edit_apart(name.as_bytes(), known.as_bytes()));
        for known in near {
            found.push(Diagnostic::warning(
                MISSPELT_VARIABLE,
                Place::Input(name.to_owned()),
                format!(
                    "variable {} is not read; did you mean {known}?",
                    visible(name)
                ),
            ));
        }
    }
}

/// Whether one insertion, deletion, replacement or swap of neighbours makes one word of the other.
///
/// Asked for every inherited variable before every exec, so it may not cost what a distance in general costs.
fn one_edit_apart(one: &[u8], other: &[u8]) -> bool {
    if one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let same = |(a, b): &(&u8, &u8)| a == b;
    let prefix = one.iter().zip(other).take_while(same).count();
    let (one, other) = (&one[prefix..], &other[prefix..]);
    let suffix = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(same)
        .count();
    match (&one[..one.len() - suffix], &other[..other.len() - suffix]) {
        ([], [_]) | ([_], [] | [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_is_what_the_distance_calls_one() {
        let words = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "abc",
            "acb",
            "bac",
            "abcd",
            "abdc",
            "aabb",
            "abab",
            "DECODE_MTP_SIZE",
            "DECODE_MPT_SIZE",
            "DECODE_MTP_SIZES",
            "DECODE_MTPSIZE",
        ];
        for one in words {
            for other in words {
                assert_eq!(
                    one_edit_apart(one.as_bytes(), other.as_bytes()),
                    strsim::osa_distance(one, other) == 1,
                    "{one} {other}"
                );
            }
        }
    }
}
