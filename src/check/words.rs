//! What the server's argument parser would say of the words.

use super::habits::is_own_field;
use super::line::{Line, Origin};
use crate::atom::argparse::{Hint, Parsed, Problem, ProblemKind};
use crate::domain::codes;
use crate::domain::command::same_option;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::secret;
use crate::domain::visible::visible;

/// A word as it may be shown.
pub(super) fn shown(word: &str) -> String {
    let mut text = visible(&secret::shown_words([word]).concat()).into_owned();
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
