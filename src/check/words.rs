//! What the server's argument parser would say of the words, and habits that it accepts and that still go wrong.

use super::line::{Line, Origin, is_extra};
use crate::atom::argparse::{Hint, Occurrence, Parsed, Problem, ProblemKind};
use crate::atom::table::Arity;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostic, Diagnostics};
use crate::domain::secret;
use crate::input::models_file::visible;

/// Options that describe the worker itself: the launcher sets them, and nobody else may.
const IDENTITY: &[(&str, &str)] = &[
    ("model", "`--model-path`, MODEL_DIR, or the field `hf_dir`"),
    ("host", "nothing: it is always 0.0.0.0"),
    (
        "server_port",
        "`--server-port`, PREFILL_PORT or DECODE_PORT",
    ),
    ("trust_remote_code", "nothing: it is always passed"),
    (
        "tensor_parallel_size",
        "`--tp`, PREFILL_TP_SIZE or DECODE_TP_SIZE",
    ),
    (
        "kv_transfer_config",
        "`--prefill-kv-transfer-config` or `--decode-kv-transfer-config`",
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

/// A word as it may be shown.
fn shown(word: &str) -> String {
    let mut text = visible(&secret::hide_url_passwords(word));
    if text.chars().count() > 80 {
        text = text.chars().take(79).collect::<String>() + "…";
    }
    text
}

/// Everything that the parser rejects.
pub(super) fn problems<'p>(
    line: &Line<'_>,
    problems: impl IntoIterator<Item = &'p Problem<'p>>,
    found: &mut Diagnostics,
) {
    for problem in problems {
        found.push(describe(line, problem));
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each kind of problem")]
fn describe(line: &Line<'_>, problem: &Problem<'_>) -> Diagnostic {
    let word = line.words.get(problem.word).copied().unwrap_or_default();
    let part = word
        .get(problem.range.clone())
        .filter(|part| !part.is_empty())
        .unwrap_or(word);
    let place = line.place(problem.word, &problem.range);
    let within = line.within(problem.word);
    let name = problem
        .option
        .map_or_else(String::new, |option| option.name().to_owned());
    let error = |code, message: String| Diagnostic::error(code, place.clone(), message);
    let choices = || {
        problem
            .option
            .map_or_else(String::new, |option| option.form.choices.join(", "))
    };
    match &problem.kind {
        ProblemKind::Unknown { hint } => {
            let help = hint.as_ref().map(hint_text);
            error(
                codes::UNKNOWN_FLAG,
                format!("unknown flag `{}`{within}", shown(part)),
            )
            .help_if(help)
        }
        ProblemKind::Ambiguous { candidates } => error(
            codes::AMBIGUOUS_FLAG,
            format!(
                "`{}`{within} could be {}",
                shown(part),
                candidates.join(", ")
            ),
        )
        .help("write the flag in full"),
        ProblemKind::MissingValue => error(
            codes::MISSING_VALUE,
            format!("`{name}`{within} needs a value"),
        ),
        ProblemKind::UnexpectedValue => error(
            codes::UNEXPECTED_VALUE,
            format!("`{name}`{within} takes no value, found `{}`", shown(part)),
        )
        .help("a switch is on when it is there; its opposite is `--no-…` where there is one"),
        ProblemKind::BadType => {
            let wanted = problem
                .option
                .map_or("another value", |option| type_name(option.form.value_type));
            error(
                codes::BAD_VALUE,
                format!("`{name}`{within} must be {wanted}, found `{}`", shown(part)),
            )
        }
        ProblemKind::BadChoice { since } => {
            let newer = since.map(|since| format!("servers since {since} know it"));
            error(
                codes::BAD_CHOICE,
                format!(
                    "`{name}`{within} must be one of {}, found `{}`",
                    choices(),
                    shown(part)
                ),
            )
            .help_if(newer)
        }
        ProblemKind::UnexpectedWord { after } => unexpected(line, problem, *after, word),
        ProblemKind::RejectedTwin { declared } => error(
            codes::UNKNOWN_FLAG,
            format!("unknown flag `{}`{within}", shown(part)),
        )
        .help(format!("the server knows only `{declared}`")),
        ProblemKind::Removed { on } => error(
            codes::UNKNOWN_FLAG,
            format!("flag `{}`{within} was removed on {on}", shown(part)),
        ),
        ProblemKind::NotYet { since } => error(
            codes::UNKNOWN_FLAG,
            format!(
                "flag `{}`{within} is not in this server: it came on {since}",
                shown(part)
            ),
        ),
        ProblemKind::NotOnMain { used_by } => error(
            codes::UNKNOWN_FLAG,
            format!(
                "flag `{}`{within} exists only in images of a branch ({used_by})",
                shown(part)
            ),
        )
        .help("`--no-check` starts such an image"),
        ProblemKind::GluedValue { spelling } => error(
            codes::UNKNOWN_FLAG,
            format!("unknown flag `{}`{within}", shown(part)),
        )
        .help(format!("separate the value: `{spelling} …`")),
        ProblemKind::Help => error(
            codes::UNEXPECTED_WORD,
            format!(
                "`{}`{within} makes the server print its help and end",
                shown(part)
            ),
        ),
    }
}

fn unexpected(
    line: &Line<'_>,
    problem: &Problem<'_>,
    after: Option<usize>,
    word: &str,
) -> Diagnostic {
    let place = line.place(problem.word, &problem.range);
    let within = line.within(problem.word);
    if let Some((flag, value)) = word
        .split_once(char::is_whitespace)
        .filter(|_| word.starts_with('-'))
    {
        return Diagnostic::error(
            codes::FLAG_WITH_BLANK,
            place,
            format!(
                "`{}`{within} is one word: a flag and its value must be two",
                shown(word)
            ),
        )
        .help(format!(
            "write `{}` and `{}` as two words or list items",
            shown(flag),
            shown(value.trim())
        ));
    }
    let message = match after.and_then(|at| line.words.get(at)) {
        Some(flag) => format!(
            "`{}`{within} belongs to no flag: {} before it takes no such value",
            shown(word),
            shown(flag)
        ),
        None => format!("`{}`{within} belongs to no flag", shown(word)),
    };
    Diagnostic::error(codes::UNEXPECTED_WORD, place, message)
}

fn hint_text(hint: &Hint<'_>) -> String {
    let names = hint
        .spellings
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(" and ");
    if hint.foreign {
        format!("another engine's flag; ATOM has {names}")
    } else {
        format!("did you mean {names}?")
    }
}

fn type_name(value_type: crate::atom::table::ValueType) -> &'static str {
    use crate::atom::table::ValueType;
    match value_type {
        ValueType::Int => "a whole number",
        ValueType::Float => "a number",
        ValueType::Json => "JSON",
        ValueType::Str | ValueType::Bool | ValueType::Choice => "another value",
    }
}

/// What the parser accepts and what still goes wrong: abbreviations, repetitions, flags that are the launcher's, `--port`.
pub(super) fn habits(line: &Line<'_>, parsed: &Parsed<'_, '_>, found: &mut Diagnostics) {
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
        if occurrence.option.dest == "port" {
            found.push(
                Diagnostic::warning(codes::PORT_FLAG, place(), format!("`--port`{within} does not move the server: nothing listens there"))
                    .help("the HTTP port is `--server-port`, which the launcher sets from its own options and variables"),
            );
        }
        launchers_own(line, occurrence, found);
        repeated(line, parsed, position, found);
    }
}

fn launchers_own(line: &Line<'_>, occurrence: &Occurrence<'_, '_>, found: &mut Diagnostics) {
    let dest = occurrence.option.dest.as_ref();
    let name = occurrence.option.name();
    let within = line.within(occurrence.word);
    let place = line.place_of(occurrence.word);
    // Settings that are really options of ours carry their own names as origin; they are not extra words.
    let is_setting =
        matches!(line.origin(occurrence.word), Origin::Input(input) if !is_extra(input));
    let own_field = match line.origin(occurrence.word) {
        Origin::Field(field, _)
            if OWN_FIELD.iter().any(|(_, own)| *own == field)
                || field == "online_quant_dpa_config" =>
        {
            true
        }
        _ => is_setting,
    };
    if own_field {
        return;
    }
    if let Some((_, instead)) = IDENTITY.iter().find(|(own, _)| *own == dest) {
        found.push(
            Diagnostic::error(
                codes::LAUNCHER_FLAG,
                place,
                format!("`{name}`{within} is set by the launcher itself"),
            )
            .help(format!("use {instead}")),
        );
    } else if let Origin::Field(field, _) = line.origin(occurrence.word) {
        if let Some((_, own)) = OWN_FIELD.iter().find(|(own, _)| *own == dest) {
            found.push(
                Diagnostic::error(codes::LAUNCHER_FLAG, place, format!("`{name}`{within} has a field of its own, whose value or default comes later and wins"))
                    .help(format!("use the field `{own}`")),
            );
        } else if dest == "enable_prefix_caching" {
            found.push(
                Diagnostic::error(codes::LAUNCHER_FLAG, place, format!("`{name}`{within} loses: the launcher's own setting of prefix caching comes later"))
                    .help("use `--prefix-caching on|off` or ENABLE_PREFIX_CACHING"),
            );
        } else if field != "mtp_flags" && dest == "num_speculative_tokens" {
            found.push(
                Diagnostic::error(
                    codes::LAUNCHER_FLAG,
                    place,
                    format!("`{name}`{within} is set by `--mtp` or DECODE_MTP_SIZE"),
                )
                .help("put the speculative flags into `mtp_flags`"),
            );
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
    found.push(
        Diagnostic::warning(
            codes::REPEATED_FLAG,
            line.place_of(occurrence.word),
            message,
        )
        .help("the server takes the last one"),
    );
}
