//! Words that the server's argument parser accepts and that still go wrong: abbreviations, repetitions, flags that are the launcher's.

use super::line::{Line, Origin, is_extra};
use super::words::shown;
use crate::atom::argparse::{Occurrence, Parsed};
use crate::atom::table::Arity;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help};

/// Options that describe the worker itself: the launcher sets them, and nobody else may.
const IDENTITY: &[(&str, &str)] = &[
    (
        "model",
        "give atom-launch `--model-path`, or write the field `hf_dir`",
    ),
    (
        "host",
        "remove it: it is 0.0.0.0, or `::` where the node's address is IPv6",
    ),
    (
        "server_port",
        "give atom-launch `--prefill-port`, `--decode-port` or `--server-port`",
    ),
    (
        "tensor_parallel_size",
        "give atom-launch `--tp`, `--prefill-tp` or `--decode-tp`",
    ),
    (
        "kv_transfer_config",
        "give atom-launch `--prefill-kv-transfer-config` or `--decode-kv-transfer-config`",
    ),
];

/// Options that have a field of their own; what stands in another field comes first and loses without a word.
const OWN_FIELD: &[(&str, &str)] = &[
    ("block_size", "block_size"),
    ("gpu_memory_utilization", "mem_frac_static"),
    ("max_num_seqs", "max_num_seqs"),
    ("max_model_len", "max_model_len"),
    ("max_num_batched_tokens", "max_num_batched_tokens"),
    ("scheduler_delay_factor", "scheduler_delay_factor"),
    ("cudagraph_capture_sizes", "cudagraph_capture_sizes"),
    ("online_quant_config", "online_quant_config"),
    ("hf_overrides", "hf_overrides"),
];

/// Of these, what the launcher passes whether or not the field is there.
const ALWAYS_PASSED: &[&str] = &["block_size", "gpu_memory_utilization", "max_num_seqs"];

/// What the parser accepts and what still goes wrong: abbreviations, repetitions, flags that are the launcher's, `--port`.
pub(super) fn all(line: &Line<'_>, parsed: &Parsed<'_, '_>, found: &mut Diagnostics) {
    for (position, occurrence) in parsed.occurrences.iter().enumerate() {
        let word = occurrence.word;
        if !line.is_given(word) {
            continue;
        }
        let written = line
            .words
            .get(word)
            .copied()
            .unwrap_or_default()
            .split('=')
            .next()
            .unwrap_or_default();
        let within = line.within(word);
        let place = || line.place(word, &(0..written.len()));
        if occurrence.abbreviated {
            found.push(
                Diagnostic::warning(
                    codes::ABBREVIATED_FLAG,
                    place(),
                    format!(
                        "`{}`{within} is short for `{}`",
                        shown(written),
                        occurrence.spelling
                    ),
                )
                .help(format!(
                    "write `{}`: the next option that starts like this makes it ambiguous",
                    occurrence.spelling
                )),
            );
        }
        // G6
        if occurrence.option.dest == "port" {
            found.push(
                Diagnostic::warning(codes::PORT_FLAG, place(), format!("`--port`{within} does not move the server: nothing listens there"))
                    .help("the HTTP port is `--server-port`, which the launcher sets from its own options and variables"),
            );
        }
        let before = found.0.len();
        launchers_own(line, parsed, occurrence, found);
        if found.0.len() == before {
            repeated(line, parsed, position, found);
        }
    }
}

fn launchers_own(
    line: &Line<'_>,
    parsed: &Parsed<'_, '_>,
    occurrence: &Occurrence<'_, '_>,
    found: &mut Diagnostics,
) {
    let dest = occurrence.option.dest.as_ref();
    let name = occurrence.option.name();
    let within = line.within(occurrence.word);
    let place = line.place_of(occurrence.word);
    // Settings that are really options of ours carry their own names as origin; they are not extra words.
    let is_setting =
        matches!(line.origin(occurrence.word), Origin::Input(input) if !is_extra(input));
    let own_field = match line.origin(occurrence.word) {
        Origin::Field(field, _) if is_own_field(field) => true,
        _ => is_setting,
    };
    if own_field {
        return;
    }
    if dest == "trust_remote_code" {
        found.push(
            Diagnostic::warning(
                codes::LAUNCHER_FLAG,
                place,
                format!("`{name}`{within} is always passed by the launcher"),
            )
            .help("remove it"),
        );
        return;
    }
    if let Some((_, instead)) = IDENTITY.iter().find(|(own, _)| *own == dest) {
        found.push(
            Diagnostic::error(
                codes::LAUNCHER_FLAG,
                place,
                format!("`{name}`{within} is set by the launcher itself"),
            )
            .help(*instead),
        );
        return;
    }
    let Origin::Field(field, _) = line.origin(occurrence.word) else {
        return;
    };
    let of_prefill = field.starts_with("prefill_");
    let replaced = later_by_launcher(line, parsed, occurrence);
    if let Some((_, own)) = OWN_FIELD.iter().find(|(own, _)| *own == dest) {
        let loses = if line.whole {
            replaced
        } else {
            ALWAYS_PASSED.contains(&dest)
        };
        let finding = if loses {
            Diagnostic::error(
                codes::LAUNCHER_FLAG,
                place,
                format!(
                    "`{name}`{within} has a field of its own, whose value or default comes later and wins"
                ),
            )
        } else if line.whole || of_prefill {
            return;
        } else {
            Diagnostic::warning(
                codes::LAUNCHER_FLAG,
                place,
                format!(
                    "`{name}`{within} has a field of its own: only there can the options and variables of a job replace it"
                ),
            )
        };
        found.push(finding.help(format!("use the field `{own}`")));
    } else if dest == "enable_prefix_caching" && (!line.whole || replaced) {
        found.push(
            Diagnostic::warning(codes::LAUNCHER_FLAG, place, format!("`{name}`{within} counts on standalone workers only: for prefill and decode the launcher's own setting comes later"))
                .help(Help::give("use ", ("--prefix-caching on|off", "ENABLE_PREFIX_CACHING"), "")),
        );
    } else if field != "mtp_flags" && dest == "num_speculative_tokens" {
        found.push(
            Diagnostic::warning(
                codes::LAUNCHER_FLAG,
                place,
                format!("`{name}`{within} counts whatever `--mtp` says"),
            )
            .help("put the speculative flags into `mtp_flags`"),
        );
    }
}

/// Whether the launcher itself, or a field or setting of its own, says it again later; extra arguments do so on purpose.
fn later_by_launcher(
    line: &Line<'_>,
    parsed: &Parsed<'_, '_>,
    occurrence: &Occurrence<'_, '_>,
) -> bool {
    parsed.occurrences.iter().any(|other| {
        let extra = matches!(line.origin(other.word), Origin::Input(input) if is_extra(input));
        other.word > occurrence.word && other.option.dest == occurrence.option.dest && !extra
    })
}

/// Whether a field is the value of one option.
pub(super) fn is_own_field(field: &str) -> bool {
    OWN_FIELD.iter().any(|(_, own)| *own == field) || field == "online_quant_dpa_config"
}

/// Flags that several fields of one command repeat; those of one field alone are found in that field.
pub(super) fn repeated_across_fields(
    line: &Line<'_>,
    parsed: &Parsed<'_, '_>,
    found: &mut Diagnostics,
) {
    for (position, occurrence) in parsed.occurrences.iter().enumerate() {
        let Origin::Field(field, _) = line.origin(occurrence.word) else {
            continue;
        };
        let elsewhere = parsed.occurrences[..position]
            .iter()
            .rev()
            .find(|other| other.option.dest == occurrence.option.dest)
            .is_some_and(|earlier| {
                let other_field =
                    matches!(line.origin(earlier.word), Origin::Field(other, _) if other != field);
                other_field && earlier.value() != occurrence.value()
            });
        if elsewhere {
            repeated(line, parsed, position, found);
        }
    }
}

/// A flag that is there again later: only the last one counts.
fn repeated(line: &Line<'_>, parsed: &Parsed<'_, '_>, position: usize, found: &mut Diagnostics) {
    let occurrence = &parsed.occurrences[position];
    let earlier = parsed.occurrences[..position]
        .iter()
        .rev()
        .find(|other| other.option.dest == occurrence.option.dest);
    let Some(earlier) = earlier else {
        return;
    };
    let name = occurrence.option.name();
    let within = line.within(occurrence.word);
    let value_of = |one: &Occurrence<'_, '_>| one.value.as_ref().map(|value| shown(value.text));
    let message = match (value_of(occurrence), value_of(earlier)) {
        (Some(now), Some(before)) if now != before => format!(
            "`{name}`{within} is passed twice: {now} replaces {before}{}",
            line.within(earlier.word)
        ),
        _ if occurrence.option.form.arity == Arity::BooleanPair
            && occurrence.spelling != earlier.spelling =>
        {
            format!(
                "`{}`{within} replaces `{}`",
                occurrence.spelling, earlier.spelling
            )
        }
        _ => format!("`{name}`{within} is passed twice"),
    };
    // Extra arguments come last so that they can replace a value; that is said, but nothing to put right.
    let on_purpose = matches!(
        (line.origin(occurrence.word), line.origin(earlier.word)),
        (Origin::Input(now), before) if is_extra(now) && !matches!(before, Origin::Input(before) if before == now)
    );
    let help = if on_purpose {
        "extra arguments come last and win"
    } else {
        "remove one of them; the server takes the last"
    };
    found.push(
        Diagnostic::warning(
            codes::REPEATED_FLAG,
            line.place_of(occurrence.word),
            message,
        )
        .help(help),
    );
}
