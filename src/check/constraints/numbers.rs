//! Numbers that the parser takes and that fail after the weights are loaded.

use super::View;
use crate::atom::argparse::{Occurrence, Value};
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostic, Diagnostics};
use crate::domain::topology::Role;

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    ranges(view, found);
    lengths(view, found);
    blocks(view, found);
    graphs(view, found);
    variables(view, found);
}

/// A8, A9.
fn ranges(view: &View<'_>, found: &mut Diagnostics) {
    if let Some(fraction) = view
        .float("gpu_memory_utilization")
        .filter(|fraction| !(*fraction > 0.0 && *fraction <= 1.0))
    {
        let what = format!("must be above 0 and at most 1, found {fraction}");
        found.push(view.refuse(codes::OUT_OF_RANGE, "gpu_memory_utilization", &what));
    }
    for dest in [
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "max_model_len",
    ] {
        if let Some(number) = view.int(dest).filter(|number| *number < 1) {
            let what = format!("must be at least 1, found {number}");
            found.push(view.refuse(codes::OUT_OF_RANGE, dest, &what));
        }
    }
    let port = view.int("server_port");
    if let Some(port) = port.filter(|port| !(1..=65535).contains(port)) {
        let what = format!("must be a port, found {port}");
        found.push(view.refuse(codes::OUT_OF_RANGE, "server_port", &what));
    }
    if let Some(level) = view.int("level").filter(|level| !(0..=3).contains(level)) {
        let what = format!("must be 0 to 3, found {level}");
        found.push(view.refuse(codes::OUT_OF_RANGE, "level", &what));
    }
}

/// A15: chunks of long prefills. G5: prompts that no step has room for.
fn lengths(view: &View<'_>, found: &mut Diagnostics) {
    let chunked = view.get("enable_chunked_prefill").map(Occurrence::value);
    if let (Some(Value::Flag(false)), Some(longest)) = (chunked, view.int("max_model_len")) {
        let budget = view.int("max_num_batched_tokens").unwrap_or(16384);
        if longest > budget {
            let dest = "enable_chunked_prefill";
            found.push(
                view.warning(codes::OUT_OF_RANGE, dest, format!("without chunked prefill{} the server rejects every prompt above `--max-num-batched-tokens {budget}`, though `--max-model-len` is {longest}", view.within(dest)))
                    .help("raise `max_num_batched_tokens`, or leave chunked prefill on"),
            );
        }
    }
    let Some(threshold) = view
        .int("long_prefill_token_threshold")
        .filter(|threshold| *threshold > 0)
    else {
        return;
    };
    let dest = "long_prefill_token_threshold";
    let within = view.within(dest);
    if let Some(longest) = view
        .int("max_model_len")
        .filter(|longest| threshold > *longest)
    {
        found.push(view.error(codes::OUT_OF_RANGE, dest, format!("`--long-prefill-token-threshold {threshold}`{within} is above `--max-model-len {longest}`: the server refuses it")));
    }
    let block = view.int("block_size").unwrap_or(16);
    if threshold < block {
        found.push(view.error(codes::OUT_OF_RANGE, dest, format!("`--long-prefill-token-threshold {threshold}`{within} is below `--block-size {block}`: the server refuses it")));
    }
}

/// A1 to A4, A10, A11, E7: CUDA graphs. A3 is the empty list.
fn graphs(view: &View<'_>, found: &mut Diagnostics) {
    let within = view.within("cudagraph_mode");
    match view.text("cudagraph_mode") {
        Some("NONE") => found.push(
            view.warning(codes::NO_EFFECT, "cudagraph_mode", format!("`--cudagraph-mode NONE`{within} does not stop the capture of graphs")).help("`--enforce-eager` does"),
        ),
        Some(mode @ ("PIECEWISE" | "FULL_AND_PIECEWISE" | "AF_PIECEWISE")) if view.int("level").unwrap_or(3) != 3 => found.push(
            view.warning(codes::NO_EFFECT, "cudagraph_mode", format!("`--cudagraph-mode {mode}`{within} needs `--level 3`: with another level, decode runs without graphs")),
        ),
        _ => {}
    }
    let Some(text) = view.text("cudagraph_capture_sizes") else {
        return;
    };
    let dest = "cudagraph_capture_sizes";
    let within = view.within(dest);
    let Some(sizes) = size_list(text) else {
        found.push(
            view.error(codes::CAPTURE_SIZES, dest, format!("`--cudagraph-capture-sizes`{within} must be a list of whole numbers from 1, found `{text}`"))
                .help("write `[1,2,4,8]`: the server takes `1,2,4` as well, and fails after the weights are loaded"),
        );
        return;
    };
    if sizes.is_empty() {
        found.push(view.warning(codes::CAPTURE_SIZES, dest, format!("`--cudagraph-capture-sizes {text}`{within} captures the server's own list: 1, 2, 4, 8, then 16 to 512 in steps of 16")).help("`--enforce-eager` switches CUDA graphs off"));
        return;
    }
    if view.is_on("enforce_eager") {
        return;
    }
    capture_limits(view, &sizes, found);
}

/// E7: sizes above what a batch can be are dropped; none left is an assertion; larger decode batches run without graphs.
fn capture_limits(view: &View<'_>, sizes: &[i128], found: &mut Diagnostics) {
    let dest = "cudagraph_capture_sizes";
    let seqs = view.int("max_num_seqs").unwrap_or(512);
    let tokens = view.speculative_tokens();
    let batched = view.int("max_num_batched_tokens").unwrap_or(16384);
    let most = seqs.min(batched / (tokens + 1));
    let largest = sizes.iter().copied().max().unwrap_or(0);
    if sizes.iter().all(|size| *size > most) {
        found.push(view.error(codes::CAPTURE_SIZES, dest, format!("every CUDA-graph size{} is above the largest possible batch, {most}: the server fails after the weights are loaded", view.within(dest))));
    } else if view.case.role == Role::Decode && most > largest {
        found.push(
            Diagnostic::warning(codes::BATCH_WITHOUT_GRAPH, view.place_of_any(&["max_num_seqs", dest]), format!("decode batches of {} to {most} sequences run without CUDA graphs, whose largest size is {largest}", largest + 1))
                .help("lower the largest concurrency or `--decode-max-num-seqs`, or add sizes with `--cudagraph-capture-sizes`"),
        );
    }
}

/// A Python list of positive whole numbers.
fn size_list(text: &str) -> Option<Vec<i128>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    let inner = inner.strip_suffix(',').unwrap_or(inner);
    if inner.trim().is_empty() {
        return Some(Vec::new());
    }
    inner
        .split(',')
        .map(|part| part.trim().parse::<i128>().ok().filter(|size| *size >= 1))
        .collect()
}

/// D4, E2, G9: variables that bind other settings.
fn variables(view: &View<'_>, found: &mut Diagnostics) {
    let block = view.int("block_size").unwrap_or(16);
    let mut say = |name: &str, error: bool, message: String| {
        let place = view.place_of_var(name);
        found.push(if error {
            Diagnostic::error(codes::VARIABLE_COMBINATION, place, message)
        } else {
            Diagnostic::warning(codes::VARIABLE_COMBINATION, place, message)
        });
    };
    let is_on = |name: &str| view.env(name) == Some("1");
    if let Some(page) = view
        .env("ATOM_MLA_PAGE_SIZE")
        .filter(|page| page.trim() != "1")
    {
        if page.trim() != "64" {
            say(
                "ATOM_MLA_PAGE_SIZE",
                true,
                format!("ATOM_MLA_PAGE_SIZE={page} must be 1 or 64: the server refuses it"),
            );
        } else if block != 64 {
            say(
                "ATOM_MLA_PAGE_SIZE",
                true,
                format!(
                    "ATOM_MLA_PAGE_SIZE=64 wants `--block-size 64`, found {block}: the server refuses it"
                ),
            );
        }
    }
    if is_on("ATOM_USE_TRITON_MLA") && is_on("ATOM_USE_TRITON_MLA_SHUFFLE_KV") && block != 64 {
        say(
            "ATOM_USE_TRITON_MLA_SHUFFLE_KV",
            false,
            format!(
                "ATOM_USE_TRITON_MLA_SHUFFLE_KV=1 wants `--block-size 64`, found {block}: models with MLA fail after the weights are loaded"
            ),
        );
    }
    if is_on("ATOM_USE_UNIFIED_ATTN") {
        let fp8 = view
            .text("kv_cache_dtype")
            .is_some_and(|dtype| dtype.starts_with("fp8"));
        let (wanted, cache) = if fp8 { (128, "fp8") } else { (64, "bf16") };
        if block != wanted {
            say(
                "ATOM_USE_UNIFIED_ATTN",
                false,
                format!(
                    "ATOM_USE_UNIFIED_ATTN=1 wants `--block-size {wanted}` with a KV cache in {cache}, found {block}: some models fail after the weights are loaded"
                ),
            );
        }
    }
    let ranks = view.data_parallel_ranks();
    if is_on("ATOM_KV_EVENTS_ENABLE") && ranks > 1 {
        say(
            "ATOM_KV_EVENTS_ENABLE",
            true,
            format!(
                "ATOM_KV_EVENTS_ENABLE=1 with {ranks} data-parallel ranks: every rank binds the same endpoint, and the second fails"
            ),
        );
    }
}

/// E1, A17: the KV cache's blocks. Which multiple a model needs is in its code, so this is never an error.
fn blocks(view: &View<'_>, found: &mut Diagnostics) {
    let dest = "block_size";
    let Some(block) = view.int(dest).filter(|block| *block >= 1) else {
        return;
    };
    if block % 16 != 0 && !matches!(block, 256 | 1024) {
        found.push(
            view.warning(codes::BLOCK_SIZE, dest, format!("`--block-size {block}`{} is no multiple of 16: only models with MLA take it, others fail after the weights are loaded", view.within(dest)))
                .help("write 16, or a multiple of it"),
        );
    }
    let interval = "state_checkpoint_interval_tokens";
    let step = block.saturating_mul(view.size("decode_context_parallel_size").max(1));
    if let Some(tokens) = view
        .int(interval)
        .filter(|tokens| *tokens > 0 && tokens % step != 0)
    {
        let snapped = tokens / step * step;
        let meaning = if snapped == 0 {
            "0, which is off".to_owned()
        } else {
            snapped.to_string()
        };
        found.push(
            view.warning(codes::NO_EFFECT, interval, format!("`--state-checkpoint-interval-tokens {tokens}`{} is no multiple of the block size {step}: the server takes {meaning}", view.within(interval)))
                .help(format!("write a multiple of {step}")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_is_a_list() {
        assert_eq!(size_list("[1, 2,4]"), Some(vec![1, 2, 4]));
        assert_eq!(size_list("[]"), Some(vec![]));
        assert_eq!(size_list("[1,]"), Some(vec![1]));
        for bad in ["1,2", "512", "(8,)", "[0]", "[a]", "{1}", "", "[-1]"] {
            assert_eq!(size_list(bad), None, "{bad}");
        }
    }
}
