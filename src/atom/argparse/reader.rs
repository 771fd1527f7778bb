//! The walk over the words, function by function as argparse does it.

use std::ops::Range;

use super::nearest::{choice_since, first_day, glued, nearest};
use super::{
    MOST_PROBLEMS, Occurrence, Parsed, Problem, ProblemKind, Stage, ValueRef, json, python,
    takes_dashes_away, unrecognized,
};
use crate::atom::table::{
    Arity, OptionSpec, Origin, Table, ValueType, not_on_main, rejected_twin, removed_option,
};

/// Read a line of words, the program not included.
pub fn parse<'t, 'w>(words: &[&'w str], table: &'t Table) -> Parsed<'t, 'w> {
    let mut after_dashes = false;
    let marks = words
        .iter()
        .map(|word| {
            if after_dashes {
                return Mark::Argument;
            }
            after_dashes = *word == "--";
            if after_dashes {
                Mark::Dashes
            } else {
                classify(word, table)
            }
        })
        .collect();
    let mut reader = Reader {
        words,
        table,
        marks,
        out: Parsed {
            occurrences: Vec::with_capacity(words.len()),
            ..Parsed::default()
        },
    };
    reader.run();
    reader.out
}

type Entry = (u16, u16);

/// What argparse takes a word for before it looks at any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A value, or a word of no use.
    Argument,
    /// The first `--`.
    Dashes,
    /// An option, and where a value starts in the same word.
    Option(Entry, Option<usize>),
    /// It looks like an option.
    Unknown,
    /// The beginning of more than one.
    Ambiguous,
}

/// `_parse_optional` of argparse.
fn classify(word: &str, table: &Table) -> Mark {
    if word.len() < 2 || !word.starts_with('-') {
        return Mark::Argument;
    }
    if let Some(entry) = table.exact(word) {
        return Mark::Option(entry, None);
    }
    if let Some(at) = word.find('=')
        && let Some(entry) = table.exact(&word[..at])
    {
        return Mark::Option(entry, Some(at + 1));
    }
    let found = abbreviated(word, table);
    match (found.short, found.longer) {
        (None, []) if looks_negative(word) || word.contains(' ') => Mark::Argument,
        (None, []) => Mark::Unknown,
        (None, [entry]) => Mark::Option(*entry, found.value_at),
        (Some((entry, value_at)), []) => Mark::Option(entry, Some(value_at)),
        _ => Mark::Ambiguous,
    }
}

/// Spellings that a word may stand for: `_get_option_tuples` of argparse.
struct Abbreviated<'t> {
    /// A short option of one letter whose value (or next letter) starts at a place in the word.
    short: Option<(Entry, usize)>,
    /// Spellings the word is the beginning of.
    longer: &'t [Entry],
    /// Where the value of those starts.
    value_at: Option<usize>,
}

fn abbreviated<'t>(word: &str, table: &'t Table) -> Abbreviated<'t> {
    if word.starts_with("--") {
        let equals = word.find('=');
        return Abbreviated {
            short: None,
            longer: table.starting_with(&word[..equals.unwrap_or(word.len())]),
            value_at: equals.map(|at| at + 1),
        };
    }
    // With one dash, `=` is part of the name here, and the rest of a longer spelling may follow as well.
    let second = word.char_indices().nth(2).map(|(at, _)| at);
    Abbreviated {
        short: second.and_then(|at| table.exact(&word[..at]).map(|entry| (entry, at))),
        longer: table.starting_with(word),
        value_at: None,
    }
}

/// Python's `^-\d+$|^-\d*\.\d+$`, where `$` also matches before a last newline.
fn looks_negative(word: &str) -> bool {
    let number = word.strip_prefix('-').unwrap_or_default();
    let number = number.strip_suffix('\n').unwrap_or(number);
    let digits = |text: &str| text.chars().all(|c| python::decimal(c).is_some());
    match number.rsplit_once('.') {
        Some((whole, fraction)) => digits(whole) && !fraction.is_empty() && digits(fraction),
        None => !number.is_empty() && digits(number),
    }
}

struct Reader<'t, 'w, 'a> {
    words: &'a [&'w str],
    table: &'t Table,
    marks: Vec<Mark>,
    out: Parsed<'t, 'w>,
}

impl<'t, 'w> Reader<'t, 'w, '_> {
    fn run(&mut self) {
        let mut at = 0;
        let mut last_option = None;
        while at < self.words.len() {
            let mark = self.marks[at];
            match mark {
                Mark::Option(entry, value_at) => {
                    last_option = Some(at);
                    at = self.consume(at, entry, value_at);
                    continue;
                }
                Mark::Ambiguous => {
                    last_option = Some(at);
                    self.ambiguous(at);
                }
                Mark::Unknown => {
                    last_option = Some(at);
                    self.out.unrecognized.push(self.words[at]);
                    self.unknown(at);
                }
                Mark::Argument | Mark::Dashes => {
                    self.out.unrecognized.push(self.words[at]);
                    let message = unrecognized(self.words[at]);
                    let kind = ProblemKind::UnexpectedWord { after: last_option };
                    self.problem(kind, at, 0..self.words[at].len(), None, message);
                }
            }
            at += 1;
        }
    }

    fn problem(
        &mut self,
        kind: ProblemKind<'t>,
        word: usize,
        range: Range<usize>,
        option: Option<&'t OptionSpec>,
        argparse_message: String,
    ) {
        let (all, stage) = (&self.out.problems, kind.stage());
        // The first problem that stops argparse decides, and must not get lost.
        let decides = stage != Stage::End && all.iter().all(|known| known.kind.stage() != stage);
        if all.len() >= MOST_PROBLEMS && !decides {
            return;
        }
        self.out.problems.push(Problem {
            kind,
            word,
            range,
            option,
            argparse_message,
        });
    }

    fn argument_problem(
        &mut self,
        kind: ProblemKind<'t>,
        word: usize,
        range: Range<usize>,
        option: &'t OptionSpec,
        text: &str,
    ) {
        let message = format!("argument {}: {text}", option.argparse_name());
        self.problem(kind, word, range, Some(option), message);
    }

    /// The length of the option in a word, without `=` and what follows.
    fn name_len(&self, at: usize) -> usize {
        let word = self.words[at];
        word.find('=').unwrap_or(word.len())
    }

    fn ambiguous(&mut self, at: usize) {
        let word = self.words[at];
        let found = abbreviated(word, self.table);
        let mut entries = found.longer.to_vec();
        entries.extend(found.short.map(|(entry, _)| entry));
        entries.sort_unstable();
        let candidates: Vec<&str> = entries
            .iter()
            .map(|entry| self.table.text(*entry))
            .collect();
        let message = format!(
            "ambiguous option: {word} could match {}",
            candidates.join(", ")
        );
        let range = 0..self.name_len(at);
        self.problem(
            ProblemKind::Ambiguous { candidates },
            at,
            range,
            None,
            message,
        );
    }

    fn unknown(&mut self, at: usize) {
        let word = self.words[at];
        let name = &word[..self.name_len(at)];
        let mut range = 0..name.len();
        let newer = (self.table.origin() != Origin::Builtin)
            .then(|| Table::builtin().exact(name).map(|_| name))
            .flatten();
        let kind = if let Some(twin) =
            rejected_twin(name).filter(|twin| self.table.exact(twin.declared).is_some())
        {
            ProblemKind::RejectedTwin {
                declared: twin.declared,
            }
        } else if let Some(since) = newer.and_then(first_day) {
            ProblemKind::NotYet { since }
        } else if let Some(gone) = removed_option(name) {
            ProblemKind::Removed { on: gone.removed }
        } else if let Some(branch) = not_on_main(name) {
            ProblemKind::NotOnMain {
                used_by: branch.used_by,
            }
        } else if let Some(spelling) = glued(word, self.table) {
            range = spelling.len()..word.len();
            ProblemKind::GluedValue { spelling }
        } else {
            let listed = self.out.problems.len() < MOST_PROBLEMS;
            ProblemKind::Unknown {
                hint: listed.then(|| nearest(name, self.table)).flatten(),
            }
        };
        self.problem(kind, at, range, None, unrecognized(word));
    }

    /// `consume_optional` of argparse; the index of the next word.
    fn consume(&mut self, at: usize, entry: Entry, value_at: Option<usize>) -> usize {
        let word = self.words[at];
        let (mut entry, mut value_at) = (entry, value_at);
        let mut cluster: Vec<Entry> = Vec::new();
        loop {
            let option = self.table.option(entry);
            let Some(start) = value_at else {
                break;
            };
            if option.form.arity.takes_value() {
                break;
            }
            // Letters after a short switch are more short options.
            let rest = &word[start..];
            let letter = rest.chars().next();
            let next = letter
                .filter(|_| !self.table.text(entry).starts_with("--"))
                .and_then(|letter| self.table.exact(&format!("-{letter}")));
            let (Some(letter), Some(next)) = (letter, next) else {
                let text = format!("ignored explicit argument {}", python::repr(rest));
                let range = start..word.len();
                self.argument_problem(ProblemKind::UnexpectedValue, at, range, option, &text);
                self.occurrence(entry, at, at + 1, None, false);
                return at + 1;
            };
            cluster.push(entry);
            entry = next;
            value_at = Some(start + letter.len_utf8()).filter(|start| *start < word.len());
        }
        let option = self.table.option(entry);
        let end = match (value_at, option.form.arity) {
            (Some(_), _) | (None, Arity::None | Arity::BooleanPair) => at + 1,
            (None, Arity::Optional) => at + 1 + usize::from(self.is_argument(at + 1)),
            (None, Arity::Many) => {
                let follows = |next: &usize| self.is_argument(*next);
                at + 1 + (at + 1..self.words.len()).take_while(follows).count()
            }
            (None, Arity::Required) if self.is_argument(at + 1) => at + 2,
            (None, Arity::Required) => {
                let text = "expected one argument";
                self.argument_problem(ProblemKind::MissingValue, at, 0..word.len(), option, text);
                self.occurrence(entry, at, at + 1, None, false);
                return at + 1;
            }
        };
        for entry in cluster {
            self.take(entry, at, at + 1, None);
        }
        self.take(entry, at, end, value_at);
        end
    }

    fn is_argument(&self, at: usize) -> bool {
        self.marks.get(at) == Some(&Mark::Argument)
    }

    /// `take_action` of argparse: convert and check the values of an option.
    fn take(&mut self, entry: Entry, at: usize, end: usize, value_at: Option<usize>) {
        let option = self.table.option(entry);
        if option.is_help() {
            let range = 0..self.words[at].len();
            self.problem(ProblemKind::Help, at, range, Some(option), String::new());
            self.occurrence(entry, at, end, None, false);
            return;
        }
        let value_of = |word: usize, start: usize| ValueRef {
            word,
            range: start..self.words[word].len(),
            text: &self.words[word][start..],
        };
        let values: Vec<ValueRef<'w>> = match value_at {
            Some(start) => vec![value_of(at, start)],
            None => (at + 1..end).map(|word| value_of(word, 0)).collect(),
        };
        let mut ok = true;
        for value in &values {
            ok &= takes_dashes_away(at, value) || self.check(option, value);
        }
        self.occurrence(entry, at, end, values.into_iter().next(), ok);
    }

    fn check(&mut self, option: &'t OptionSpec, value: &ValueRef<'w>) -> bool {
        let text = value.text;
        let wrong_type = match option.form.value_type {
            ValueType::Int => python::int(text).is_none().then_some("int"),
            ValueType::Float => python::float(text).is_none().then_some("float"),
            ValueType::Json => (!json::is_json(text)).then_some("loads"),
            ValueType::Str | ValueType::Bool | ValueType::Choice => None,
        };
        let (kind, message) = if let Some(name) = wrong_type {
            let message = format!("invalid {name} value: {}", python::repr(text));
            (ProblemKind::BadType, message)
        } else if option.form.is_choice(text) {
            return true;
        } else {
            let choices: Vec<String> = option
                .form
                .choices
                .iter()
                .map(|choice| python::repr(choice))
                .collect();
            let message = format!(
                "invalid choice: {} (choose from {})",
                python::repr(text),
                choices.join(", ")
            );
            let since = match self.table.origin() {
                Origin::Builtin => None,
                Origin::AsOf(_) | Origin::Help => choice_since(&option.dest, text),
            };
            (ProblemKind::BadChoice { since }, message)
        };
        self.argument_problem(kind, value.word, value.range.clone(), option, &message);
        false
    }

    fn occurrence(
        &mut self,
        entry: Entry,
        word: usize,
        end: usize,
        value: Option<ValueRef<'w>>,
        ok: bool,
    ) {
        let spelling = self.table.text(entry);
        let written = self.words[word];
        let full = written
            .strip_prefix(spelling)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
        self.out.occurrences.push(Occurrence {
            option: self.table.option(entry),
            spelling,
            abbreviated: !full && spelling.starts_with(&written[..self.name_len(word)]),
            word,
            end,
            value,
            ok,
        });
    }
}
