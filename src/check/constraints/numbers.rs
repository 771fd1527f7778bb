//! Numbers that the parser takes and that fail after the weights are loaded.

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::Diagnostics;
use crate::domain::topology::Role;

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    ranges(view, found);
    lengths(view, found);
    graphs(view, found);
    variables(view, found);
}

/// A8, A9.
fn ranges(view: &View<'_>, found: &mut Diagnostics) {
    if let Some(fraction) = view
        .float("gpu_memory_utilization")
        .filter(|fraction| !(*fraction > 0.0 && *fraction <= 1.0))
    {
        let within = view.within("gpu_memory_utilization");
        found.push(view.error(
            codes::OUT_OF_RANGE,
            "gpu_memory_utilization",
            format!(
                "`--gpu-memory-utilization`{within} must be above 0 and at most 1, found {fraction}"
            ),
        ));
    }
    for dest in [
        "max_num_seqs",
        "max_num_batched_tokens",
        "block_size",
        "max_model_len",
    ] {
        if let Some(number) = view.int(dest).filter(|number| *number < 1) {
            found.push(view.error(
                codes::OUT_OF_RANGE,
                dest,
                format!(
                    "`--{}`{} must be at least 1, found {number}",
                    dest.replace('_', "-"),
                    view.within(dest)
                ),
            ));
        }
    }
    for dest in ["port", "server_port"] {
        if let Some(port) = view.int(dest).filter(|port| !(1..=65535).contains(port)) {
            found.push(view.error(
                codes::OUT_OF_RANGE,
                dest,
                format!(
                    "`--{}`{} must be a port, found {port}",
                    dest.replace('_', "-"),
                    view.within(dest)
                ),
            ));
        }
    }
    if let Some(level) = view.int("level").filter(|level| !(0..=3).contains(level)) {
        found.push(view.error(
            codes::OUT_OF_RANGE,
            "level",
            format!(
                "`--level`{} must be 0 to 3, found {level}",
                view.within("level")
            ),
        ));
    }
}

/// A15: chunks of long prefills.
fn lengths(view: &View<'_>, found: &mut Diagnostics) {
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

/// A1, A2, A4, A10, A11, E7: CUDA graphs.
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
    if view.is_on("enforce_eager") || sizes.is_empty() {
        return;
    }
    capture_limits(view, &sizes, found);
}

/// E7: sizes above what a batch can be are dropped; none left is an assertion; larger decode batches run without graphs.
fn capture_limits(view: &View<'_>, sizes: &[i128], found: &mut Diagnostics) {
    let dest = "cudagraph_capture_sizes";
    let seqs = view.int("max_num_seqs").unwrap_or(512);
    let tokens = if view.text("method").is_some() {
        view.int("num_speculative_tokens").unwrap_or(1).max(0)
    } else {
        0
    };
    let batched = view.int("max_num_batched_tokens").unwrap_or(16384);
    let most = seqs.min(batched / (tokens + 1));
    let largest = sizes.iter().copied().max().unwrap_or(0);
    if sizes.iter().all(|size| *size > most) {
        found.push(view.error(codes::CAPTURE_SIZES, dest, format!("every CUDA-graph size{} is above the largest possible batch, {most}: the server fails after the weights are loaded", view.within(dest))));
    } else if view.case.role == Role::Decode && most > largest {
        found.push(
            view.warning(codes::BATCH_WITHOUT_GRAPH, "max_num_seqs", format!("decode batches of {} to {most} sequences run without CUDA graphs, whose largest size is {largest}", largest + 1))
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

/// D4, G9: variables that bind other settings.
fn variables(view: &View<'_>, found: &mut Diagnostics) {
    if let Some(page) = view.env("ATOM_MLA_PAGE_SIZE").filter(|page| *page != "1") {
        let block = view.int("block_size").unwrap_or(16);
        if page != "64" || block != 64 {
            found.push(view.error(codes::VARIABLE_COMBINATION, "block_size", format!("ATOM_MLA_PAGE_SIZE={page} must be 64 and wants `--block-size 64`, found {block}: the server fails at start")));
        }
    }
    let ranks = if view.is_on("enable_dp_attention") {
        view.int("tensor_parallel_size").unwrap_or(1)
    } else {
        view.int("data_parallel_size").unwrap_or(1)
    };
    if view.env("ATOM_KV_EVENTS_ENABLE") == Some("1") && ranks > 1 {
        found.push(view.error(codes::VARIABLE_COMBINATION, "tensor_parallel_size", format!("ATOM_KV_EVENTS_ENABLE=1 with {ranks} data-parallel ranks: every rank binds the same endpoint, and the second fails")));
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
