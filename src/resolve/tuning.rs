//! Numbers, KV cache and capture sizes: the one statement of which of command line, models file, environment and default wins.

use super::{Inputs, parallel};
use crate::domain::codes::KV_CACHE_DTYPE_UNUSED;
use crate::domain::command::{ArgGroup, last_value};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::models::{ModelEntry, Number, Words};
use crate::domain::provenance::{Shadowed, Source, Sourced, strongest};
use crate::domain::settings::{TUNING, Tuning, TuningSpec};
use crate::domain::topology::Role;

/// A model's value of a tuning number.
fn field(entry: &ModelEntry, tuning: Tuning) -> Option<&Number> {
    match tuning {
        Tuning::BlockSize => &entry.block_size,
        Tuning::MemFracStatic => &entry.mem_frac_static,
        Tuning::MaxNumSeqs => &entry.max_num_seqs,
        Tuning::MaxModelLen => &entry.max_model_len,
        Tuning::MaxNumBatchedTokens => &entry.max_num_batched_tokens,
        Tuning::SchedulerDelayFactor => &entry.scheduler_delay_factor,
    }
    .as_ref()
}

/// Command line > models file > environment > default. The file beats the environment because job scripts always export defaults.
fn number(inputs: Inputs<'_>, position: usize, spec: TuningSpec) -> Option<Sourced<String>> {
    let input = &inputs.settings.tuning[position];
    let from_file = field(inputs.entry, spec.tuning).map(|number| {
        Sourced::new(
            number.0.value.clone(),
            inputs.field(spec.field, number.0.span),
        )
    });
    let default = spec
        .default
        .map(|value| Sourced::default_of(value.to_owned()));
    strongest([
        input.option.clone(),
        from_file,
        input.variable.clone(),
        default,
    ])
}

/// Decode's batch: its own setting, then `--max-num-seqs`, then the largest concurrency, then as for prefill.
///
/// `--max-num-seqs` on the command line comes before the concurrency, which is usually a job's variable: the command line wins.
fn decode_max_num_seqs(
    inputs: Inputs<'_>,
    shared: Option<Sourced<String>>,
) -> Option<Sourced<String>> {
    let settings = inputs.settings;
    let largest = settings.concurrency.as_ref().and_then(|levels| {
        let most = levels.value.iter().max()?;
        let name = levels.source.input().unwrap_or("the concurrency");
        Some(Sourced::new(
            most.to_string(),
            Source::Derived(format!("largest level of {name}")),
        ))
    });
    let on_command_line = matches!(
        shared.as_ref().map(|value| &value.source),
        Some(Source::CommandLine(_))
    );
    let own = settings.decode_max_num_seqs.clone();
    if on_command_line {
        strongest([own, shared, largest])
    } else {
        strongest([own, largest, shared])
    }
}

/// `--block-size`, `--gpu-memory-utilization`, `--max-num-seqs`, then the optional ones.
pub fn numbers(inputs: Inputs<'_>, role: Role) -> Vec<ArgGroup> {
    TUNING
        .iter()
        .enumerate()
        .filter_map(|(position, spec)| {
            let mut value = number(inputs, position, *spec);
            if spec.tuning == Tuning::MaxNumSeqs && role == Role::Decode {
                value = decode_max_num_seqs(inputs, value);
            }
            let value = value?;
            Some(
                ArgGroup::new(vec![spec.flag.to_owned(), value.value], value.source)
                    .instead_of(value.shadowed),
            )
        })
        .collect()
}

/// `--kv-cache-flags` of the command line, else the model's.
pub fn kv_cache(inputs: Inputs<'_>, found: &mut Diagnostics) -> Vec<ArgGroup> {
    let model = inputs.entry.kv_cache_flags.as_ref();
    let groups = match &inputs.settings.kv_cache_flags {
        Some(given) => {
            let mut groups = parallel::group(given.value.clone(), &given.source);
            if let (Some(first), Some(model)) = (groups.first_mut(), model) {
                let words: Vec<&str> = model.words.iter().map(|word| word.value.as_str()).collect();
                first
                    .shadowed
                    .push(inputs.lost("kv_cache_flags", model.span, words.join(" ")));
            }
            groups
        }
        None => parallel::field_groups(
            inputs,
            model.map(|words: &Words| ("kv_cache_flags", words)),
            None,
        ),
    };
    kv_cache_dtype(inputs, &groups, found);
    groups
}

/// KV_CACHE_DTYPE is still exported by job scripts and decides nothing; say so where it would have meant something else.
fn kv_cache_dtype(inputs: Inputs<'_>, groups: &[ArgGroup], found: &mut Diagnostics) {
    let Some(wanted) = &inputs.settings.kv_cache_dtype else {
        return;
    };
    let passed = last_value(groups, "--kv-cache-dtype").flatten();
    if passed == Some(wanted.value.as_str()) {
        return;
    }
    let gets = passed.map_or("the server's own default".to_owned(), |value| {
        format!("{value}, from the model's `kv_cache_flags`")
    });
    found.push(
        Diagnostic::warning(
            KV_CACHE_DTYPE_UNUSED,
            Place::Input("KV_CACHE_DTYPE".into()),
            format!(
                "KV_CACHE_DTYPE={} decides nothing: the KV cache is {gets}",
                wanted.value.escape_debug()
            ),
        )
        .help("`--kv-cache-flags '--kv_cache_dtype …'` overrides the model"),
    );
}

/// 1, 2, 4, 8, then steps of 8 to 256.
fn default_capture_sizes() -> Vec<u64> {
    [1, 2, 4].into_iter().chain((8..=256).step_by(8)).collect()
}

/// `--cudagraph-capture-sizes`: always for decode, for a standalone worker where it is set, never for prefill, which has no decode steps.
pub fn capture_sizes(inputs: Inputs<'_>, role: Role) -> Option<ArgGroup> {
    let from_file = inputs.entry.cudagraph_capture_sizes.as_ref().map(|list| {
        Sourced::new(
            list.0.value.clone(),
            inputs.field("cudagraph_capture_sizes", list.0.span),
        )
    });
    let default = (role == Role::Decode).then(|| Sourced::default_of(default_capture_sizes()));
    let candidates = match role {
        Role::Prefill => [None, None, None],
        Role::Decode | Role::Standalone => {
            [inputs.settings.capture_sizes.clone(), from_file, default]
        }
    };
    let text = |sizes: &[u64]| {
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        format!("[{}]", sizes.join(","))
    };
    let mut present = candidates.into_iter().flatten();
    let winner = present.next()?;
    let words = vec!["--cudagraph-capture-sizes".into(), text(&winner.value)];
    let lost = present.map(|loser| Shadowed {
        value: text(&loser.value),
        source: loser.source,
    });
    Some(ArgGroup::new(words, winner.source).instead_of(lost.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_capture_sizes_are_the_old_scripts() {
        let sizes = default_capture_sizes();
        assert_eq!(sizes.len(), 35);
        assert_eq!(sizes[..6], [1, 2, 4, 8, 16, 24]);
        assert_eq!(sizes.last(), Some(&256));
    }
}
