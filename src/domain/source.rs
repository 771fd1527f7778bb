//! A text that was read and places inside it.

use std::ops::Range;
use std::sync::OnceLock;

use super::secret;

/// A half-open range of bytes in a [`SourceFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A span of `start..end`; offsets above 4 GiB do not occur (the reader stops at 4 MiB).
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self {
            start: clamp(start),
            end: clamp(end.max(start)),
        }
    }

    /// The range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and where it stands in the models file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located<T> {
    /// What was read.
    pub value: T,
    /// Where it is defined (for a merged or aliased value: at the anchor).
    pub span: Span,
}

impl<T> Located<T> {
    /// Pair a value with its place.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// Line and column, both counted from 1; a column is a character, not a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// A text with the name under which messages speak of it.
#[derive(Debug)]
pub struct SourceFile {
    /// Path as the user gave it, or `built-in models_atom.yaml`.
    pub name: String,
    /// The whole text, a byte-order mark included.
    pub text: String,
    line_starts: OnceLock<Vec<u32>>,
    shown: OnceLock<String>,
}

impl SourceFile {
    /// A text under a name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            line_starts: OnceLock::new(),
            shown: OnceLock::new(),
        }
    }

    /// The text as it may be shown, with stars for secrets: every offset means the same. A part of it is to be cut from here, since
    /// a part of the text itself may begin behind the name that tells a secret.
    pub fn shown(&self) -> &str {
        self.shown.get_or_init(|| secret::mask_source(&self.text))
    }

    /// Whether a part of the text is not to be shown.
    pub fn hides(&self, span: Span) -> bool {
        self.text.get(span.range()) != self.shown().get(span.range())
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let ends = self
                .text
                .bytes()
                .enumerate()
                .filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0)
                .chain(ends.map(|(at, _)| Span::new(at + 1, at + 1).start))
                .collect()
        })
    }

    /// Line and column of a byte offset. An offset past the end is the end.
    pub fn position(&self, offset: u32) -> Position {
        let starts = self.line_starts();
        let line = starts.partition_point(|start| *start <= offset).max(1);
        let start = starts[line - 1] as usize;
        let end = (offset as usize).min(self.text.len());
        let before = self.text.get(start..end).unwrap_or_default();
        let before = before.strip_prefix('\u{feff}').unwrap_or(before);
        Position {
            line,
            column: before.chars().count() + 1,
        }
    }

    /// `name:line:column` of the start of a span.
    pub fn place(&self, span: Span) -> String {
        let Position { line, column } = self.position(span.start);
        format!("{}:{line}:{column}", self.name)
    }

    /// Text of a span; empty when it does not lie on character borders.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_and_ignore_a_byte_order_mark() {
        let file = SourceFile::new("f", "\u{feff}é: 1\nb: 2\n");
        assert_eq!(file.position(3), Position { line: 1, column: 1 });
        assert_eq!(file.position(7), Position { line: 1, column: 4 });
        assert_eq!(file.position(9), Position { line: 2, column: 1 });
        assert_eq!(file.place(Span::new(12, 13)), "f:2:4");
        assert_eq!(file.position(9999), Position { line: 3, column: 1 });
    }
}
