//! What the server's argument parser would say of the words, and habits that it accepts and that still go wrong.

use super::line::{Line, Origin, is_extra};
use crate::atom::argparse::{Hint, Occurrence, Parsed, Problem, ProblemKind};
use crate::atom::table::Arity;
use crate::domain::codes;
use crate::domain::command::same_option;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::secret;
use crate::input::models_file::visible;

/// Options that describe the worker itself: the launcher sets them, and nobody else may.
const IDENTITY: &[(&str, &str)] = &[
    (
        "model",
        "give atom-launch `--model-path` or MODEL_DIR, or write the field `hf_dir`",
    ),
    (
        "host",
        "remove it: it is 0.0.0.0, or `::` where the node's address is IPv6",
    ),
    (
        "server_port",
        "give atom-launch `--prefill-port`, `--decode-port` or `--server-port`, or PREFILL_PORT or DECODE_PORT",
    ),
    (
        "tensor_parallel_size",
        "give atom-launch `--tp`, PREFILL_TP_SIZE or DECODE_TP_SIZE",
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

/// A word as it may be shown.
fn shown(word: &str) -> String {
    let mut text = visible(&secret::shown_words([word]).concat());
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
    // A value behind a flag that is wrong itself would only repeat that.
    let mut wrong: Option<usize> = None;
    for problem in problems {
        let follows = matches!(problem.kind, ProblemKind::UnexpectedWord { .. })
            && wrong.is_some_and(|wrong| wrong + 1 == problem.word);
        if follows {
            continue;
        }
        let is_flag = matches!(
            problem.kind,
            ProblemKind::Unknown { .. }
                | ProblemKind::Ambiguous { .. }
                | ProblemKind::RejectedTwin { .. }
                | ProblemKind::Removed { .. }
                | ProblemKind::NotYet { .. }
                | ProblemKind::NotOnMain { .. }
        );
        if is_flag {
            wrong = Some(problem.word);
        }
        found.push(describe(line, problem));
    }
}

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
        ProblemKind::Ambiguous { candidates } => ambiguous(line, problem, candidates, part),
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
            format!("unknown flag `{}`{within}", shown(word)),
        )
        .help(format!("separate the value: `{spelling} {}`", shown(part))),
        ProblemKind::Help => error(
            codes::UNEXPECTED_WORD,
            format!(
                "`{}`{within} makes the server print its help and end",
                shown(part)
            ),
        ),
    }
}

/// Flags of fields of their own and of the launcher itself that the server at hand does not take; `problems` sees only fields of words.
pub(super) fn lacking(line: &Line<'_>, parsed: &Parsed<'_, '_>, found: &mut Diagnostics) {
    for problem in &parsed.problems {
        match line.origin(problem.word) {
            Origin::Field(field, _)
                if is_own_field(field)
                    && !matches!(problem.kind, ProblemKind::UnexpectedWord { .. }) =>
            {
                found.push(describe(line, problem));
            }
            Origin::Launcher if line.words[problem.word].starts_with('-') => {
                found.push(Diagnostic::warning(
                    codes::UNKNOWN_FLAG,
                    Place::Whole,
                    format!(
                        "the launcher passes `{}`, which this server does not take",
                        line.words[problem.word]
                    ),
                ));
            }
            _ => {}
        }
    }
}

/// An abbreviation of several flags; of one flag in two spellings it is just as wrong to the parser.
fn ambiguous(
    line: &Line<'_>,
    problem: &Problem<'_>,
    candidates: &[&str],
    part: &str,
) -> Diagnostic {
    let mut flags: Vec<&str> = Vec::new();
    for candidate in candidates {
        if !flags.iter().any(|known| same_option(known, candidate)) {
            flags.push(candidate);
        }
    }
    let (message, help) = match flags.as_slice() {
        [only] => (
            format!(
                "`{}`{} is no whole flag, and the server does not guess",
                shown(part),
                line.within(problem.word)
            ),
            format!("write `{only}`"),
        ),
        several => (
            format!(
                "`{}`{} could be {}",
                shown(part),
                line.within(problem.word),
                several.join(" or ")
            ),
            "write the flag in full".to_owned(),
        ),
    };
    let place = line.place(problem.word, &problem.range);
    Diagnostic::error(codes::AMBIGUOUS_FLAG, place, message).help(help)
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
                .help("use `--prefix-caching on|off` or ENABLE_PREFIX_CACHING"),
        );
    } else if field != "mtp_flags" && dest == "num_speculative_tokens" {
        found.push(
            Diagnostic::warning(
                codes::LAUNCHER_FLAG,
                place,
                format!("`{name}`{within} counts whatever `--mtp` or DECODE_MTP_SIZE says"),
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
