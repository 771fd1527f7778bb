//! Reads words as the server's own argument parser would.
//!
//! The server uses Python's `argparse` with abbreviations allowed and without positional arguments. What is accepted
//! here, with which values, and the first error are those of Python 3.11.7 and 3.12.1 (the images have 3.12);
//! `tests/argparse_differential.rs` compares the two. Later versions differ in corners: `--x=--` is the text `--`, `-hx`
//! prints the help, `-t=8` can be an abbreviation, an ambiguous word is reported in its turn instead of first, choices in
//! messages lose their quotes.
//!
//! Unlike argparse, which stops at the first error, all problems are found.

mod json;
mod nearest;
mod python;
mod reader;

use std::ops::Range;

use super::table::{Arity, Date, OptionSpec, ValueType};

pub use nearest::{Hint, nearest};
pub use reader::parse;

/// A value on the line, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRef<'w> {
    /// Index of the word that holds it.
    pub word: usize,
    /// Where in that word, in bytes.
    pub range: Range<usize>,
    /// The text itself.
    pub text: &'w str,
}

/// What an option was given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A switch or one half of a boolean pair.
    Flag(bool),
    /// An optional value left out: what that means, where it is known.
    Bare(Option<&'a str>),
    /// A text or a choice.
    Text(&'a str),
    /// An integer; beyond 128 bits the nearest that fits.
    Int(i128),
    /// A number.
    Float(f64),
    /// The text of a JSON value.
    Json(&'a str),
    /// An empty list: what Python up to 3.12 makes of `--x=--`, and of an option that takes many words and got none.
    Empty,
    /// A text that is no value of the option's type.
    Invalid(&'a str),
}

/// An option on the line.
#[derive(Debug, Clone)]
pub struct Occurrence<'t, 'w> {
    /// Which option.
    pub option: &'t OptionSpec,
    /// The spelling it stands for, in full.
    pub spelling: &'t str,
    /// Whether only the beginning of the spelling was written.
    pub abbreviated: bool,
    /// Index of the option's word.
    pub word: usize,
    /// Index after the last word that belongs to it.
    pub end: usize,
    /// Its value, or the first of many; nothing for a switch, and where the value is missing.
    pub value: Option<ValueRef<'w>>,
    /// Whether no problem was found with it.
    pub ok: bool,
}

impl<'a> Occurrence<'a, 'a> {
    /// The value in its type.
    pub fn value(&self) -> Value<'a> {
        let form = &self.option.form;
        let Some(value) = &self.value else {
            return match form.arity {
                Arity::None => Value::Flag(true),
                Arity::BooleanPair => Value::Flag(!self.spelling.starts_with("--no-")),
                Arity::Optional => Value::Bare(form.bare.as_deref()),
                Arity::Required | Arity::Many => Value::Empty,
            };
        };
        let text = value.text;
        if takes_dashes_away(self.word, value) {
            return match form.arity {
                Arity::Optional => Value::Bare(form.bare.as_deref()),
                _ => Value::Empty,
            };
        }
        match form.value_type {
            ValueType::Int => python::int(text).map_or(Value::Invalid(text), Value::Int),
            ValueType::Float => python::float(text).map_or(Value::Invalid(text), Value::Float),
            ValueType::Json if json::is_json(text) => Value::Json(text),
            ValueType::Json => Value::Invalid(text),
            _ if form.is_choice(text) => Value::Text(text),
            _ => Value::Invalid(text),
        }
    }
}

/// `--x=--`: Python up to 3.12 takes the `--` for the end of options and is left with no value at all.
fn takes_dashes_away(word: usize, value: &ValueRef<'_>) -> bool {
    value.text == "--" && value.word == word
}

/// What is wrong with a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProblemKind<'t> {
    /// No such option.
    Unknown {
        /// What may be meant.
        hint: Option<Hint<'t>>,
    },
    /// The beginning of several spellings.
    Ambiguous {
        /// The spellings, in argparse's order.
        candidates: Vec<&'t str>,
    },
    /// The option needs a value.
    MissingValue,
    /// The option takes no value.
    UnexpectedValue,
    /// The value is not of the option's type.
    BadType,
    /// The value is not one of the option's choices.
    BadChoice {
        /// The day since which newer servers accept it.
        since: Option<Date>,
    },
    /// A word that belongs to no option.
    UnexpectedWord {
        /// Index of the nearest option before it.
        after: Option<usize>,
    },
    /// A dash/underscore twin that does not exist, since the option is declared in a group.
    RejectedTwin {
        /// What to write.
        declared: &'static str,
    },
    /// The option is gone.
    Removed {
        /// Since this day.
        on: Date,
    },
    /// This server does not have the option; main has.
    NotYet {
        /// Since this day.
        since: Date,
    },
    /// Only images that were built from a branch have the option.
    NotOnMain {
        /// Who passes it.
        used_by: &'static str,
    },
    /// `-tp8`: a value cannot be glued to a short option of more than one letter.
    GluedValue {
        /// The short option.
        spelling: &'t str,
    },
    /// `--help` or `-h`: the server prints its help and ends.
    Help,
}

/// When argparse reports a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before it looks at any value, and stops.
    Sorting,
    /// When the word's turn comes, and stops.
    Values,
    /// At the end, all words together.
    End,
}

impl ProblemKind<'_> {
    fn stage(&self) -> Stage {
        match self {
            Self::Ambiguous { .. } => Stage::Sorting,
            Self::MissingValue
            | Self::UnexpectedValue
            | Self::BadType
            | Self::BadChoice { .. }
            | Self::Help => Stage::Values,
            Self::Unknown { .. }
            | Self::UnexpectedWord { .. }
            | Self::RejectedTwin { .. }
            | Self::Removed { .. }
            | Self::NotYet { .. }
            | Self::NotOnMain { .. }
            | Self::GluedValue { .. } => Stage::End,
        }
    }
}

/// Something wrong on the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem<'t> {
    /// What.
    pub kind: ProblemKind<'t>,
    /// Index of the word to point at.
    pub word: usize,
    /// Which part of it, in bytes.
    pub range: Range<usize>,
    /// The option it is about, where that is known.
    pub option: Option<&'t OptionSpec>,
    /// What argparse says when this is the only problem; empty for `--help`.
    pub argparse_message: String,
}

/// What the server does with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on.
    Accepted,
    /// Prints its help and exits with 0.
    Help,
    /// Prints its usage and `PROG: error: ` with this text, and exits with 2.
    Rejected(String),
}

/// More problems of one line are not listed.
pub const MOST_PROBLEMS: usize = 200;

/// A line of words as the server's parser understands it.
#[derive(Debug, Clone, Default)]
pub struct Parsed<'t, 'w> {
    /// The options, in order.
    pub occurrences: Vec<Occurrence<'t, 'w>>,
    /// All problems, in order. Of a line with more than [`MOST_PROBLEMS`], the first ones and those that decide the verdict.
    pub problems: Vec<Problem<'t>>,
    /// Words that argparse reports only when all else is right.
    unrecognized: Vec<&'w str>,
}

impl<'t, 'w> Parsed<'t, 'w> {
    /// The occurrence of an option that counts: the last one.
    pub fn value_of(&self, dest: &str) -> Option<&Occurrence<'t, 'w>> {
        self.all_of(dest).last()
    }

    /// Every occurrence of an option.
    pub fn all_of(&self, dest: &str) -> impl Iterator<Item = &Occurrence<'t, 'w>> {
        self.occurrences
            .iter()
            .filter(move |occurrence| occurrence.option.dest == dest)
    }

    /// What the server does with this line.
    ///
    /// argparse classifies all words first (ambiguous ones end it there), then converts values in order, and complains
    /// about words it has no use for only at the end.
    pub fn verdict(&self) -> Verdict {
        let first_of = |stage: Stage| {
            let mut problems = self.problems.iter();
            problems.find(|problem| problem.kind.stage() == stage)
        };
        let first = first_of(Stage::Sorting).or_else(|| first_of(Stage::Values));
        match first {
            Some(problem) if problem.kind == ProblemKind::Help => Verdict::Help,
            Some(problem) => Verdict::Rejected(problem.argparse_message.clone()),
            None if self.unrecognized.is_empty() => Verdict::Accepted,
            None => Verdict::Rejected(unrecognized(&self.unrecognized.join(" "))),
        }
    }

    /// What argparse prints after `PROG: error: `, if it rejects the line.
    pub fn argparse_error(&self) -> Option<String> {
        match self.verdict() {
            Verdict::Rejected(message) => Some(message),
            Verdict::Accepted | Verdict::Help => None,
        }
    }
}

fn unrecognized(words: &str) -> String {
    format!("unrecognized arguments: {words}")
}

#[cfg(test)]
mod tests;
