//! Reads the server's own help text into a [`Table`], so that a line can be checked against one image exactly.
//!
//! The layout is that of Python's `argparse`. Up to 3.12 it repeats the value after each spelling, from 3.13 on it names
//! it once. Types are not in the text; they are taken from the built-in table where the option is known there.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use super::table::{
    Arity, Form, Layer, OptionSpec, Origin, SOURCE_DATE, Spelling, SpellingKind, Table, ValueType,
};

/// A longer text is refused.
pub const MOST_BYTES: usize = 1 << 20;

/// More spellings are refused.
const MOST_SPELLINGS: usize = 4096;

/// More spellings of one option are refused.
const MOST_IN_A_LINE: usize = 32;

/// Why a text is not the server's help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpError {
    /// Line of the text, from 1, where one is to blame.
    pub line: Option<usize>,
    /// What was expected.
    pub message: String,
}

impl fmt::Display for HelpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for HelpError {}

fn whole(message: impl Into<String>) -> HelpError {
    HelpError {
        line: None,
        message: message.into(),
    }
}

impl Table {
    /// The options that a help text lists: the output of `python3 -m atom.entrypoints.openai_server --help`.
    ///
    /// Whatever was printed before it (log lines of imports) is skipped.
    pub fn from_help(text: &str) -> Result<Self, HelpError> {
        if text.len() > MOST_BYTES {
            return Err(whole(format!(
                "the text has {} bytes; a help text of the server has some 20,000, and {MOST_BYTES} are the limit",
                text.len()
            )));
        }
        let text = without_colours(text);
        let mut lines = (1..).zip(text.lines());
        let Some((_, usage)) = lines.find(|(_, line)| is_usage(line)) else {
            return Err(whole(
                "no line starts with `usage:`: expected what `python3 -m atom.entrypoints.openai_server --help` prints",
            ));
        };
        let mut order: HashMap<&str, usize> = HashMap::new();
        let blank = |line: &str| line.trim().is_empty();
        let usage_lines = std::iter::once(usage).chain(
            lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| !blank(line)),
        );
        for spelling in usage_lines
            .flat_map(str::split_whitespace)
            .filter_map(usage_spelling)
        {
            let next = order.len();
            order.entry(spelling).or_insert(next);
        }
        let mut seen = HashSet::new();
        let mut options = Vec::new();
        for (number, line) in lines {
            let Some(invocation) = line.strip_prefix("  ").filter(|rest| rest.starts_with('-'))
            else {
                continue;
            };
            let parsed = invocation_of(invocation).map_err(|message| HelpError {
                line: Some(number),
                message,
            })?;
            if parsed
                .spellings
                .iter()
                .any(|spelling| seen.contains(spelling))
            {
                continue;
            }
            seen.extend(parsed.spellings.iter().copied());
            if seen.len() > MOST_SPELLINGS {
                return Err(whole(format!(
                    "more than {MOST_SPELLINGS} spellings of options"
                )));
            }
            // The usage lists the options as they were registered; groups come last in the list below it.
            let place = parsed.spellings.iter().find_map(|text| order.get(text));
            options.push((place.copied().unwrap_or(usize::MAX), option_of(&parsed)));
        }
        options.sort_by_key(|(place, _)| *place);
        let table = Self::of(
            options.into_iter().map(|(_, option)| option).collect(),
            Origin::Help,
        );
        if table.options().is_empty() {
            return Err(whole(
                "no option is listed below the usage: expected lines such as `  --model MODEL`",
            ));
        }
        if table.exact("--model").is_none() || table.exact("--help").is_none() {
            return Err(whole(
                "the text lists no `--model` or no `--help`: expected the help of `atom.entrypoints.openai_server`",
            ));
        }
        Ok(table)
    }
}

/// Python 3.14 colours its help.
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| !matches!(c, '0'..='9' | ';'));
        rest = end.map_or("", |at| {
            after[at..].strip_prefix('m').unwrap_or(&after[at..])
        });
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn is_usage(line: &str) -> bool {
    line.get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("usage:"))
}

/// The spelling that a word of the usage shows: `[--model` or `[-h]`.
fn usage_spelling(word: &str) -> Option<&str> {
    let word = word.strip_prefix('[')?;
    word.starts_with('-').then(|| word.trim_end_matches(']'))
}

/// What stands left of the explanation of an option.
struct Invocation<'a> {
    spellings: Vec<&'a str>,
    arity: Arity,
    choices: Vec<&'a str>,
}

fn invocation_of(line: &str) -> Result<Invocation<'_>, String> {
    let mut found = Invocation {
        spellings: Vec::new(),
        arity: Arity::None,
        choices: Vec::new(),
    };
    let mut rest = line;
    loop {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        let (spelling, after) = rest.split_at(end);
        if spelling.trim_start_matches('-').is_empty() || spelling.contains(['[', '{', '=', '<']) {
            return Err(format!(
                "`{}` is no option: expected spellings such as `-tp N, --tensor-parallel-size N`",
                shown(spelling)
            ));
        }
        if !found.spellings.contains(&spelling) {
            found.spellings.push(spelling);
        }
        if found.spellings.len() > MOST_IN_A_LINE {
            return Err(format!(
                "more than {MOST_IN_A_LINE} spellings of one option"
            ));
        }
        rest = after;
        if let Some(metavar) = rest.strip_prefix(' ').filter(|text| !text.starts_with(' ')) {
            let end = metavar_end(metavar);
            value_of(&metavar[..end], &mut found);
            rest = &metavar[end..];
        }
        match rest.strip_prefix(", ").filter(|next| next.starts_with('-')) {
            Some(next) => rest = next,
            None => break,
        }
    }
    let negated = |text: &str| {
        text.strip_prefix("--no-").is_some_and(|name| {
            found
                .spellings
                .iter()
                .any(|other| other.strip_prefix("--") == Some(name))
        })
    };
    if found.arity == Arity::None && found.spellings.iter().any(|text| negated(text)) {
        found.arity = Arity::BooleanPair;
    }
    Ok(found)
}

/// Where the name of a value ends: before the next spelling, the explanation or the end of the line. Braces and brackets
/// are read to their end.
fn metavar_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 && text[at..].starts_with(", -") => return at,
            ' ' if depth == 0 && text[at..].starts_with("  ") => return at,
            _ => {}
        }
    }
    text.trim_end().len()
}

fn value_of<'a>(metavar: &'a str, found: &mut Invocation<'a>) {
    let inner = metavar
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let (first, second) = metavar.split_once(' ').unwrap_or((metavar, ""));
    found.arity = if metavar.contains("...") || (first == second && !first.is_empty()) {
        Arity::Many
    } else if inner.is_some() {
        Arity::Optional
    } else {
        Arity::Required
    };
    let choices = metavar
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .filter(|_| metavar.trim_start_matches('[').starts_with('{'));
    if let Some((choices, _)) = choices {
        found.choices = choices.split(',').map(str::trim).collect();
    }
}

fn option_of(found: &Invocation<'_>) -> OptionSpec {
    let builtin = Table::builtin();
    let known = found
        .spellings
        .iter()
        .find_map(|text| builtin.by_spelling(text));
    let spellings: Vec<Spelling> = found
        .spellings
        .iter()
        .map(|text| spelling_of(text, found.arity))
        .collect();
    let choices: Vec<Cow<'static, str>> = found
        .choices
        .iter()
        .map(|choice| Cow::Owned((*choice).to_owned()))
        .collect();
    // The newest form that looks like this one tells what the text does not.
    let alike = known.and_then(|option| {
        let earlier = option.earlier.iter().rev().map(|earlier| &earlier.form);
        std::iter::once(&option.form)
            .chain(earlier)
            .find(|form| form.arity == found.arity && form.choices == choices)
    });
    let value_type = match found.arity {
        Arity::None | Arity::BooleanPair => ValueType::Bool,
        _ if !choices.is_empty() => ValueType::Choice,
        _ => match known.map(|option| option.form.value_type) {
            Some(plain @ (ValueType::Int | ValueType::Float | ValueType::Json)) => plain,
            _ => ValueType::Str,
        },
    };
    let long = found.spellings.iter().find(|text| text.starts_with("--"));
    let name = long
        .or(found.spellings.first())
        .copied()
        .unwrap_or_default();
    let dest = known.map_or_else(
        || Cow::Owned(name.trim_start_matches('-').replace('-', "_")),
        |option| option.dest.clone(),
    );
    OptionSpec {
        dest,
        spellings: spellings.into(),
        form: Form {
            arity: found.arity,
            value_type,
            choices: choices.into(),
            bare: alike.and_then(|form| form.bare.clone()),
            default: alike.and_then(|form| form.default.clone()),
        },
        earlier: &[],
        layer: known.map_or(Layer::Unknown, |option| option.layer),
        group: known.map_or("", |option| option.group),
        content: known.map_or("", |option| option.content),
        since: known.map_or(SOURCE_DATE, |option| option.since),
    }
}

fn spelling_of(text: &str, arity: Arity) -> Spelling {
    let builtin = Table::builtin();
    let known = builtin.by_spelling(text).and_then(|option| {
        let mut spellings = option.spellings.iter();
        spellings.find(|spelling| spelling.text == text)
    });
    let kind = match arity {
        Arity::BooleanPair if text.starts_with("--no-") => SpellingKind::Negation,
        _ => SpellingKind::Declared,
    };
    known.cloned().unwrap_or_else(|| Spelling {
        text: Cow::Owned(text.to_owned()),
        kind,
        since: SOURCE_DATE,
    })
}

/// The beginning of a text, fit for a message.
fn shown(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
[aiter] import [module_aiter_enum]
usage: openai_server.py [-h] [--model MODEL]
                        [--new-thing {a,b}] [--tensor-parallel-size TENSOR_PARALLEL_SIZE]

Serves.

options:
  -h, --help            show this help message and exit
  --model MODEL         Model name or path.
  --tensor-parallel-size TENSOR_PARALLEL_SIZE, -tp TENSOR_PARALLEL_SIZE
                        Tensor parallel size.
  --enable_prefix_caching, --no-enable_prefix_caching
                        Enable prefix caching. Use
  --load_dummy [{empty,zero,xavier}], --load-dummy [{empty,zero,xavier}]
                        --not-an-option at the start of a help line
  --files [FILES ...]   files
  --pair PAIR PAIR      two
  --url http://host:port, -u http://host:port
                        a name with signs

group:
  --new-thing {a,b}     new
  --other-new, --no-other-new
";

    fn names(option: &OptionSpec) -> String {
        option.argparse_name()
    }

    #[test]
    fn a_help_text_becomes_a_table() {
        let table = Table::from_help(OLD).unwrap();
        assert_eq!(table.origin(), Origin::Help);
        let tp = table.by_spelling("-tp").unwrap();
        assert_eq!(names(tp), "--tensor-parallel-size/-tp");
        assert_eq!(
            (tp.form.arity, tp.form.value_type),
            (Arity::Required, ValueType::Int)
        );
        assert_eq!(tp.form.default.as_deref(), Some("1"));
        let load = table.by_dest("load_dummy").unwrap();
        assert_eq!(
            (load.form.arity, load.form.bare.as_deref()),
            (Arity::Optional, Some("empty"))
        );
        assert_eq!(load.form.choices.as_ref(), ["empty", "zero", "xavier"]);
        assert_eq!(
            table.by_dest("enable_prefix_caching").unwrap().form.arity,
            Arity::BooleanPair
        );
        assert_eq!(table.by_dest("files").unwrap().form.arity, Arity::Many);
        assert_eq!(table.by_dest("pair").unwrap().form.arity, Arity::Many);
        assert_eq!(table.by_spelling("-u").unwrap().dest, "url");
        assert_eq!(
            table.by_dest("other_new").unwrap().form.arity,
            Arity::BooleanPair
        );
        let new = table.by_dest("new_thing").unwrap();
        assert_eq!(
            (new.form.value_type, new.layer),
            (ValueType::Choice, Layer::Unknown)
        );
        assert_eq!(table.by_spelling("--not-an-option"), None);
        assert!(table.by_spelling("--help").unwrap().is_help());
    }

    #[test]
    fn options_come_in_the_order_of_the_usage() {
        let table = Table::from_help(OLD).unwrap();
        let first: Vec<&str> = table
            .options()
            .iter()
            .map(|option| option.dest.as_ref())
            .take(4)
            .collect();
        assert_eq!(
            first,
            ["help", "model", "new_thing", "tensor_parallel_size"]
        );
    }

    #[test]
    fn the_layout_of_python_3_13_and_its_colours_are_read() {
        let text = "\u{1b}[1;34musage: \u{1b}[0mx [-h]\r\n\r\noptions:\r\n  \u{1b}[32m-h\u{1b}[0m, --help  help\r\n  --model, -m MODEL\r\n  -tp, --tensor-parallel-size N  size\r\n";
        let table = Table::from_help(text).unwrap();
        assert_eq!(names(table.by_dest("model").unwrap()), "--model/-m");
        assert_eq!(table.by_spelling("-m").unwrap().form.arity, Arity::Required);
        assert_eq!(
            table.by_spelling("-tp").unwrap().form.arity,
            Arity::Required
        );
        assert_eq!(table.by_spelling("-h").unwrap().form.arity, Arity::None);
    }

    #[test]
    fn another_text_is_refused_with_what_was_expected() {
        let message = |text: &str| Table::from_help(text).unwrap_err().to_string();
        assert_eq!(
            message("hello\n"),
            "no line starts with `usage:`: expected what `python3 -m atom.entrypoints.openai_server --help` prints"
        );
        assert_eq!(
            message("usage: x\n\nnothing\n"),
            "no option is listed below the usage: expected lines such as `  --model MODEL`"
        );
        assert_eq!(
            message("usage: ls [-h]\n\noptions:\n  -h, --help  help\n"),
            "the text lists no `--model` or no `--help`: expected the help of `atom.entrypoints.openai_server`"
        );
        assert_eq!(
            message("usage: x\n\n  --\n"),
            "line 3: `--` is no option: expected spellings such as `-tp N, --tensor-parallel-size N`"
        );
        assert_eq!(
            message(&"x".repeat(MOST_BYTES + 1)),
            "the text has 1048577 bytes; a help text of the server has some 20,000, and 1048576 are the limit"
        );
        let many: Vec<String> = (0..5000).map(|number| format!("  --o{number}")).collect();
        let many = many.join("\n");
        assert_eq!(
            message(&format!("usage: x\n\n{many}")),
            "more than 4096 spellings of options"
        );
    }
}
