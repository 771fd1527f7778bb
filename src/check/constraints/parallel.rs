//! Parallel sizes and two-batch overlap.

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::Diagnostics;
use crate::domain::topology::Role;
use crate::resolve::topology::MAX_TP;

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    sizes(view, found);
    pipeline(view, found);
    context_parallel(view, found);
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
            found.push(view.error(
                codes::PARALLEL_SIZE,
                dest,
                format!(
                    "`--{}`{} must be at least 1, found {value}",
                    dest.replace('_', "-"),
                    view.within(dest)
                ),
            ));
            return;
        }
    }
    let ranks = tp.saturating_mul(dp).saturating_mul(pp).saturating_mul(pcp);
    let gpus = i128::from(view.case.gpus.unwrap_or(MAX_TP));
    if let Some((dest, _)) = others.into_iter().find(|(_, value)| *value > 1)
        && ranks > gpus
    {
        found.push(
            view.error(codes::MORE_RANKS_THAN_GPUS, dest, format!("the server would start {ranks} ranks (tp {tp} × dp {dp} × pp {pp} × pcp {pcp}) on {gpus} GPUs"))
                .help(if view.is_on("enable_dp_attention") { "with data-parallel attention `-tp 8` alone already makes 8 data-parallel ranks" } else { "make the product of the sizes at most the GPUs of the node" }),
        );
    }
}

/// C2, C3, E4: what does not go together with pipeline parallelism.
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
    if pp > 1 && !view.is_on("enforce_eager") {
        found.push(
            view.error(codes::PARALLEL_COMBINATION, "pipeline_parallel_size", format!("`-pp {pp}`{} needs `--enforce-eager`: the server asserts it after the weights are loaded", view.within("pipeline_parallel_size")))
                .help("add `--enforce-eager`"),
        );
    }
}

/// C5, C8, C9: context parallelism and the EPLB simulation.
fn context_parallel(view: &View<'_>, found: &mut Diagnostics) {
    let tp = view.int("tensor_parallel_size").unwrap_or(1);
    if let Some(dcp) = view
        .int("decode_context_parallel_size")
        .filter(|dcp| *dcp > 1)
        && tp % dcp != 0
    {
        found.push(view.error(
            codes::PARALLEL_COMBINATION,
            "decode_context_parallel_size",
            format!("`-dcp {dcp}` does not divide `-tp {tp}`: the server refuses it"),
        ));
    }
    let pcp = view.int("prefill_context_parallel_size").unwrap_or(1);
    if pcp > 1 && view.get("enable_tbo").is_some() && tp > 1 {
        found.push(view.warning(
            codes::PARALLEL_COMBINATION,
            "enable_tbo",
            format!(
                "`--enable-tbo`{} is switched off by `-pcp {pcp}` with `-tp {tp}`",
                view.within("enable_tbo")
            ),
        ));
    }
    if view.is_on("fake_eplb") {
        found.push(view.warning(
            codes::PARALLEL_COMBINATION,
            "fake_eplb",
            format!(
                "`--fake-eplb`{} runs a simulation: the server's output means nothing",
                view.within("fake_eplb")
            ),
        ));
    }
}

/// B9, B11 and A13: options of mixture-of-experts layers.
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
