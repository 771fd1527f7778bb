//! Where a resolved value came from and what it displaced.

use super::diagnostic::Place;
use super::source::{Position, Span};

/// Origin of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An option of the command line, by its name (`--mtp`; `--` for words after the separator).
    CommandLine(String),
    /// An environment variable, by its name; `A, B` where two switches together say something.
    Environment(String),
    /// A field of the models file.
    ModelsFile {
        /// Field, such as `decode_tp_dp_flags`.
        field: &'static str,
        /// Where its value is defined.
        span: Span,
        /// The same as line and column.
        position: Position,
    },
    /// The documented default.
    Default,
    /// Computed; the text says from what.
    Derived(String),
}

impl Source {
    /// The option or variable that gave the value.
    pub fn input(&self) -> Option<&str> {
        match self {
            Self::CommandLine(name) | Self::Environment(name) => Some(name),
            Self::ModelsFile { .. } | Self::Default | Self::Derived(_) => None,
        }
    }

    /// Where a finding about the value belongs.
    pub fn place(&self) -> Place {
        match self {
            Self::CommandLine(name) | Self::Environment(name) => Place::Input(name.clone()),
            Self::ModelsFile { span, .. } => Place::File(*span),
            Self::Default | Self::Derived(_) => Place::Whole,
        }
    }

    /// In words, for tables and records. `file` is the models file's name.
    pub fn in_words(&self, file: &str) -> String {
        match self {
            Self::CommandLine(option) => format!("command line {option}"),
            Self::Environment(variable) => format!("environment {variable}"),
            Self::ModelsFile {
                field, position, ..
            } => format!("{file}:{}:{} {field}", position.line, position.column),
            Self::Default => "default".into(),
            Self::Derived(how) => how.clone(),
        }
    }
}

/// A value that lost against another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowed {
    /// The value, as text.
    pub value: String,
    /// Its origin.
    pub source: Source,
}

/// A value with its origin and all that it displaced, strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value in force.
    pub value: T,
    /// Where it came from.
    pub source: Source,
    /// What it displaced.
    pub shadowed: Vec<Shadowed>,
}

impl<T> Sourced<T> {
    /// A value that displaced nothing.
    pub fn new(value: T, source: Source) -> Self {
        Self {
            value,
            source,
            shadowed: Vec::new(),
        }
    }

    /// A documented default.
    pub fn default_of(value: T) -> Self {
        Self::new(value, Source::Default)
    }

    /// The same origin with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced {
            value: change(self.value),
            source: self.source,
            shadowed: self.shadowed,
        }
    }
}

/// The first candidate wins; the others are kept as what it shadowed. `None` entries are absent settings.
///
/// This is the one place where "stronger" is decided: callers list candidates from strongest to weakest.
pub fn strongest<T: ToString>(
    candidates: impl IntoIterator<Item = Option<Sourced<T>>>,
) -> Option<Sourced<T>> {
    let mut present = candidates.into_iter().flatten();
    let mut winner = present.next()?;
    for loser in present {
        winner.shadowed.push(Shadowed {
            value: loser.value.to_string(),
            source: loser.source,
        });
        winner.shadowed.extend(loser.shadowed);
    }
    Some(winner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_present_candidate_wins_and_remembers_the_rest() {
        let env = Sourced::new(64, Source::Environment("BLOCK_SIZE".into()));
        let winner = strongest([
            None,
            Some(Sourced::new(32, Source::CommandLine("--block-size".into()))),
            Some(env),
            Some(Sourced::default_of(16)),
        ])
        .unwrap();
        assert_eq!(winner.value, 32);
        assert_eq!(winner.shadowed.len(), 2);
        assert_eq!(winner.shadowed[0].value, "64");
        assert_eq!(winner.shadowed[1].source, Source::Default);
    }
}
