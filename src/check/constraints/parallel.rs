//! Parallel sizes and two-batch overlap.

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostic, Diagnostics};
use crate::domain::topology::Role;
use crate::resolve::topology::MAX_TP;

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    sizes(view, found);
    pipeline(view, found);
    context_parallel(view, found);
    simulation(view, found);
    experts(view, found);
    overlap(view, found);
}

/// C4: `-tp` outside 1..8. D1: more ranks than GPUs (C1: with data-parallel attention, `-dp` multiplies).
fn sizes(view: &View<'_>, found: &mut Diagnostics) {
    let size = |dest: &str| view.int(dest).unwrap_or(1);
    let tp = size("tensor_parallel_size");
    if tp < 1 || tp > i128::from(MAX_TP) {
        // A setting of the launcher is refused where the topology is resolved.
        if !view.is_extra("tensor_parallel_size") {
            return;
        }
        found.push(view.error(
            codes::TENSOR_PARALLEL_SIZE,
            "tensor_parallel_size",
            format!("`-tp {tp}` is outside 1 to {MAX_TP}: a worker cannot span nodes"),
        ));
        return;
    }
    let (dp, pp, pcp) = (
        size("data_parallel_size"),
        size("pipeline_parallel_size"),
        size("prefill_context_parallel_size"),
    );
    let others = [
        ("data_parallel_size", dp),
        ("pipeline_parallel_size", pp),
        ("prefill_context_parallel_size", pcp),
    ];
    for (dest, value) in others {
        if value < 1 {
            let what = format!("must be at least 1, found {value}");
            found.push(view.refuse(codes::PARALLEL_SIZE, dest, &what));
        }
    }
    if others.iter().any(|(_, value)| *value < 1) {
        return;
    }
    let ranks = tp.saturating_mul(dp).saturating_mul(pp).saturating_mul(pcp);
    let gpus = i128::from(view.case.gpus.unwrap_or(MAX_TP));
    if let Some((dest, _)) = others.into_iter().find(|(_, value)| *value > 1)
        && ranks > gpus
    {
        found.push(
            view.error(
                codes::MORE_RANKS_THAN_GPUS,
                dest,
                format!(
                    "the server would start {ranks} ranks ({}) on {gpus} GPUs",
                    product(&[("tp", tp), ("dp", dp), ("pp", pp), ("pcp", pcp)])
                ),
            )
            .help(if view.is_on("enable_dp_attention") {
                "with data-parallel attention `-tp 8` alone already makes 8 data-parallel ranks"
            } else {
                "make the product of the sizes at most the GPUs of the node"
            }),
        );
    }
}

/// `tp 8 × dp 2`, without what is 1.
fn product(sizes: &[(&str, i128)]) -> String {
    let factors: Vec<String> = sizes
        .iter()
        .filter(|(_, size)| *size > 1)
        .map(|(name, size)| format!("{name} {size}"))
        .collect();
    factors.join(" × ")
}

/// C2, C3, E4, E10: what does not go together with pipeline parallelism.
fn pipeline(view: &View<'_>, found: &mut Diagnostics) {
    let size = |dest: &str| view.int(dest).unwrap_or(1);
    let pp = size("pipeline_parallel_size");
    let dpa = view.is_on("enable_dp_attention");
    if dpa {
        for (dest, flag) in [
            ("pipeline_parallel_size", "-pp"),
            ("prefill_context_parallel_size", "-pcp"),
        ] {
            if size(dest) > 1 {
                found.push(view.error(codes::PARALLEL_COMBINATION, dest, format!("`{flag} {}`{} does not go with `--enable-dp-attention`: the server refuses it", size(dest), view.within(dest))));
            }
        }
    }
    if pp > 1 && size("data_parallel_size") > 1 {
        found.push(view.error(
            codes::PARALLEL_COMBINATION,
            "pipeline_parallel_size",
            "`-pp` and `-dp` above 1 do not go together: the server refuses it",
        ));
    }
    let checkpoints = "state_checkpoint_interval_tokens";
    if pp > 1 && view.int(checkpoints).is_some_and(|tokens| tokens > 0) {
        found.push(
            view.warning(codes::PARALLEL_COMBINATION, checkpoints, format!("`--state-checkpoint-interval-tokens`{} does not go with `-pp {pp}`: models with paged state checkpoints, such as DeepSeek-V4, fail after the weights are loaded", view.within(checkpoints)))
                .help("leave it out, or write 0"),
        );
    }
    if pp > 1 && !view.is_on("enforce_eager") {
        found.push(
            view.error(codes::PARALLEL_COMBINATION, "pipeline_parallel_size", format!("`-pp {pp}`{} needs `--enforce-eager`: the server asserts it after the weights are loaded", view.within("pipeline_parallel_size")))
                .help("add `--enforce-eager`"),
        );
    }
}

/// C5, C6, C8: context parallelism.
fn context_parallel(view: &View<'_>, found: &mut Diagnostics) {
    let tp = view.size("tensor_parallel_size");
    let dcp = view.size("decode_context_parallel_size");
    if dcp > 1 && tp % dcp != 0 {
        found.push(view.error(
            codes::PARALLEL_COMBINATION,
            "decode_context_parallel_size",
            format!(
                "`-dcp {dcp}`{} does not divide `-tp {tp}`: the server refuses it",
                view.within("decode_context_parallel_size")
            ),
        ));
    }
    let pcp = view.size("prefill_context_parallel_size");
    let Some(tbo) = view.text("enable_tbo").filter(|_| pcp > 1) else {
        return;
    };
    let within = view.within("enable_tbo");
    let merge = view.env("ATOM_PCP_MOE_MERGE") != Some("0");
    if tp > 1 || !merge {
        let why = if tp > 1 {
            format!("`-tp {tp}`")
        } else {
            "ATOM_PCP_MOE_MERGE=0".to_owned()
        };
        found.push(view.warning(
            codes::PARALLEL_COMBINATION,
            "enable_tbo",
            format!("`--enable-tbo`{within} is switched off by `-pcp {pcp}` with {why}"),
        ));
    } else if tbo == "all" {
        found.push(
            view.error(
                codes::PARALLEL_COMBINATION,
                "enable_tbo",
                format!("`--enable-tbo all`{within} does not go with `-pcp {pcp}`: the server refuses it"),
            )
            .help("use `--enable-tbo prefill`"),
        );
    } else if view.var("ATOM_TBO_PREFILL_TOKEN_SPLIT").is_some() {
        found.push(Diagnostic::warning(
            codes::VARIABLE_COMBINATION,
            view.place_of_var("ATOM_TBO_PREFILL_TOKEN_SPLIT"),
            format!("ATOM_TBO_PREFILL_TOKEN_SPLIT is ignored with `-pcp {pcp}`"),
        ));
    }
}

/// C9: the EPLB simulation, and all that it refuses.
fn simulation(view: &View<'_>, found: &mut Diagnostics) {
    let dest = "fake_eplb";
    if !view.is_on(dest) {
        return;
    }
    let within = view.within(dest);
    found.push(view.warning(
        codes::PARALLEL_COMBINATION,
        dest,
        format!("`--fake-eplb`{within} runs a simulation: what the server answers means nothing"),
    ));
    let sizes = [
        ("pipeline_parallel_size", "-pp"),
        ("prefill_context_parallel_size", "-pcp"),
        ("decode_context_parallel_size", "-dcp"),
        ("data_parallel_size", "-dp"),
    ];
    let mut others: Vec<&str> = sizes
        .into_iter()
        .filter(|(other, _)| view.size(other) > 1)
        .map(|(_, flag)| flag)
        .collect();
    if view.get("enable_tbo").is_some() {
        others.push("--enable-tbo");
    }
    if view.is_on("eplb_enable") {
        others.push("--eplb-enable");
    }
    if view.is_on("enable_rapidserve") {
        others.push("--enable-rapidserve");
    }
    if !others.is_empty() {
        let list: Vec<String> = others.iter().map(|flag| format!("`{flag}`")).collect();
        found.push(view.error(
            codes::PARALLEL_COMBINATION,
            dest,
            format!(
                "`--fake-eplb`{within} does not go with {}: the server refuses it",
                list.join(", ")
            ),
        ));
    }
    let transfers = view
        .text("kv_transfer_config")
        .is_some_and(|config| !super::json_values::means_nothing(config));
    if transfers {
        found.push(view.error(codes::PARALLEL_COMBINATION, dest, format!("`--fake-eplb`{within} does not go with KV transfer, so no prefill or decode worker can run: the server refuses it")));
    }
}

/// A13, B8, B9, B11: options of mixture-of-experts layers.
fn experts(view: &View<'_>, found: &mut Diagnostics) {
    let expert_parallel = view.is_on("enable_expert_parallel");
    if view.text("moe_backend") == Some("mega") && !expert_parallel {
        found.push(view.error(
            codes::NEEDS_EXPERT_PARALLEL,
            "moe_backend",
            format!(
                "`--moe-backend mega`{} needs `--enable-expert-parallel`: the server refuses it",
                view.within("moe_backend")
            ),
        ));
    }
    if view.is_on("eplb_enable") && !expert_parallel {
        found.push(view.error(codes::NEEDS_EXPERT_PARALLEL, "eplb_enable", format!("`--eplb-enable`{} needs `--enable-expert-parallel`: the server fails after the weights are loaded", view.within("eplb_enable"))));
    }
    if view.text("all2all_backend") == Some("high-throughput") {
        found.push(
            view.warning(
                codes::NO_EFFECT,
                "all2all_backend",
                format!(
                    "`--all2all-backend`{} with high-throughput is the same as leaving it out",
                    view.within("all2all_backend")
                ),
            )
            .help("only `--all2all-backend low-latency` changes anything"),
        );
    }
    // What one mode does not use another may: without a job this is not known.
    if view.case.gpus.is_none() {
        return;
    }
    let ranks = view.data_parallel_ranks();
    if view.text("all2all_backend") == Some("low-latency") && !(expert_parallel && ranks > 1) {
        let dest = "all2all_backend";
        found.push(view.warning(codes::NO_EFFECT, dest, format!("`--all2all-backend low-latency`{} acts only with `--enable-expert-parallel` and several data-parallel ranks", view.within(dest))));
    }
    if expert_parallel && ranks.saturating_mul(view.size("tensor_parallel_size")) == 1 {
        let dest = "enable_expert_parallel";
        found.push(view.warning(
            codes::NO_EFFECT,
            dest,
            format!(
                "`--enable-expert-parallel`{} is ignored on a single GPU",
                view.within(dest)
            ),
        ));
    }
}

/// A12, G1, G2, G3: two-batch overlap that never overlaps, or that speculation does not support.
fn overlap(view: &View<'_>, found: &mut Diagnostics) {
    let Some(mode) = view.text("enable_tbo") else {
        return;
    };
    let within = view.within("enable_tbo");
    let speculates =
        view.text("method").is_some() && view.int("num_speculative_tokens").unwrap_or(1) > 0;
    if view.case.role == Role::Decode && mode == "prefill" {
        found.push(
            view.warning(codes::TBO_ON_DECODE, "enable_tbo", format!("`--enable-tbo`{within} means prefill only, and a decode worker has almost no prefill to overlap"))
                .help("write `--enable-tbo all` for decode, or leave it out"),
        );
    }
    if mode == "all" && speculates {
        found.push(
            view.warning(codes::TBO_WITH_SPECULATION, "enable_tbo", format!("`--enable-tbo all`{within} splits decode batches, which speculative decoding does not support"))
                .help("use `--enable-tbo prefill` with speculation"),
        );
    }
    let threshold: i128 = view
        .env("ATOM_TBO_PREFILL_MIN_TOKENS")
        .and_then(|text| text.parse().ok())
        .unwrap_or(8192);
    if let Some(tokens) = view
        .int("max_num_batched_tokens")
        .filter(|tokens| *tokens < threshold)
    {
        found.push(
            view.warning(codes::NO_EFFECT, "enable_tbo", format!("`--enable-tbo`{within} never splits a prefill: a step has at most {tokens} tokens, below its threshold of {threshold}"))
                .help("raise max_num_batched_tokens, or set ATOM_TBO_PREFILL_MIN_TOKENS"),
        );
    }
}
