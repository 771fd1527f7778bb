//! A line of words that remembers where each word comes from.

use std::ops::Range;

use crate::domain::command::ArgGroup;
use crate::domain::diagnostic::Place;
use crate::domain::models::Words;
use crate::domain::provenance::Source;
use crate::domain::source::Span;

/// Where a word comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A word of a field of the models file.
    Field(&'static str, Option<Span>),
    /// An option or variable.
    Input(&'a str),
    /// The launcher itself.
    Launcher,
}

/// Words with origins.
#[derive(Debug, Clone, Default)]
pub(super) struct Line<'a> {
    pub(super) words: Vec<&'a str>,
    origins: Vec<Origin<'a>>,
    /// Whether this is a whole command rather than one field of the file.
    pub(super) whole: bool,
}

impl<'a> Line<'a> {
    /// Of resolved argument groups.
    pub(super) fn of(groups: &'a [ArgGroup]) -> Self {
        let mut line = Self {
            whole: true,
            ..Self::default()
        };
        for group in groups {
            for (position, word) in group.words.iter().enumerate() {
                line.words.push(word);
                line.origins.push(match &group.source {
                    // The number of speculative tokens stands in a field's group but comes from a setting.
                    _ if group.spans.get(position).is_some()
                        && !matches!(group.source, Source::ModelsFile { .. }) =>
                    {
                        Origin::Field("mtp_flags", group.spans.get(position).copied())
                    }
                    Source::ModelsFile { field, span, .. } => Origin::Field(
                        field,
                        Some(group.spans.get(position).copied().unwrap_or(*span)),
                    ),
                    Source::CommandLine(name) | Source::Environment(name) => Origin::Input(name),
                    Source::Default | Source::Derived(_) => Origin::Launcher,
                });
            }
        }
        line
    }

    /// Of one field alone.
    pub(super) fn of_field(field: &'static str, words: &'a Words) -> Self {
        Self {
            words: words.words.iter().map(|word| word.value.as_str()).collect(),
            origins: words
                .words
                .iter()
                .map(|word| Origin::Field(field, Some(word.span)))
                .collect(),
            whole: false,
        }
    }

    /// The same with one more word, which belongs to the field's end.
    pub(super) fn with(mut self, word: &'a str) -> Self {
        let origin = self.origins.last().copied().unwrap_or(Origin::Launcher);
        self.words.push(word);
        self.origins.push(origin);
        self
    }

    /// The same without the interpreter's `-m MODULE`.
    pub(super) fn without_module(mut self) -> Self {
        if self.words.first() == Some(&"-m") {
            self.words.drain(..2);
            self.origins.drain(..2);
        }
        self
    }

    /// Where a word comes from.
    pub(super) fn origin(&self, word: usize) -> Origin<'a> {
        self.origins.get(word).copied().unwrap_or(Origin::Launcher)
    }

    /// Place of a part of a word.
    pub(super) fn place(&self, word: usize, range: &Range<usize>) -> Place {
        match self.origin(word) {
            Origin::Field(_, Some(span)) => {
                let text = self.words.get(word).copied().unwrap_or_default();
                let plain = (span.end - span.start) as usize == text.len();
                if plain && range.end <= text.len() && range.start < range.end {
                    let start = span.start as usize;
                    Place::File(Span::new(start + range.start, start + range.end))
                } else {
                    Place::File(span)
                }
            }
            Origin::Field(_, None) | Origin::Launcher => Place::Whole,
            Origin::Input(name) => Place::Input(name.to_owned()),
        }
    }

    /// Place of a whole word.
    pub(super) fn place_of(&self, word: usize) -> Place {
        self.place(word, &(0..0))
    }

    /// ` in …` for messages; nothing for the launcher's own words.
    pub(super) fn within(&self, word: usize) -> String {
        match self.origin(word) {
            Origin::Field(field, _) => format!(" in `{field}`"),
            Origin::Input("--") => " after `--`".to_owned(),
            Origin::Input(name) => format!(" in {name}"),
            Origin::Launcher => String::new(),
        }
    }

    /// Whether a word stands in a field or among extra arguments.
    pub(super) fn is_extra(&self, word: usize) -> bool {
        match self.origin(word) {
            Origin::Field(..) => true,
            Origin::Input(input) => is_extra(input),
            Origin::Launcher => false,
        }
    }

    /// Whether a word was written by a person.
    pub(super) fn is_given(&self, word: usize) -> bool {
        !matches!(self.origin(word), Origin::Launcher)
    }
}

/// Whether an input holds extra arguments rather than one setting.
pub(super) fn is_extra(input: &str) -> bool {
    input == "--"
        || input.ends_with("server-args")
        || input.ends_with("EXTRA_SERVER_ARGS")
        || input == "--kv-cache-flags"
}
