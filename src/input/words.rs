//! Words inside a string, and where each stands in the file.

use crate::domain::source::Span;

/// Why a string does not split into words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordFault {
    /// A quote that is not closed; the offset of the quote.
    OpenQuote {
        /// Offset of the opening quote.
        at: usize,
        /// The quote.
        quote: char,
    },
    /// A `#` at the start of a word: a shell would drop the rest without a word. Its offset.
    Comment {
        /// Offset of the `#`.
        at: usize,
    },
    /// A NUL, which no argument can hold.
    Nul {
        /// Offset of the NUL.
        at: usize,
    },
}

impl WordFault {
    /// The sentence for messages, after the name of the field or variable.
    pub fn sentence(&self) -> String {
        match self {
            Self::OpenQuote { quote: '\\', .. } => "ends in a backslash".into(),
            Self::OpenQuote { quote, .. } => {
                format!("has a quote that is never closed: {quote}")
            }
            Self::Comment { .. } => {
                "has a `#` that would start a comment, so all after it would be lost".into()
            }
            Self::Nul { .. } => "holds a NUL byte, which no argument can carry".into(),
        }
    }

    /// How to put it right.
    pub fn help(&self) -> &'static str {
        match self {
            Self::OpenQuote { .. } => {
                "words are split as a POSIX shell would: close the quote, or escape it with a backslash"
            }
            Self::Comment { .. } => {
                "quote the word (`'#…'`) or put the comment on a YAML line of its own"
            }
            Self::Nul { .. } => "remove the NUL",
        }
    }

    /// Where in the string.
    pub fn at(&self) -> usize {
        match self {
            Self::OpenQuote { at, .. } | Self::Comment { at } | Self::Nul { at } => *at,
        }
    }
}

/// Split by POSIX shell rules: each word with its range in the string.
///
/// The words are those of the shell-words crate; the scan here only adds their places and refuses what a shell would drop.
///
/// ```
/// use atom_launch::input::words::split;
///
/// let words = split(r#"--method mtp --hf-overrides '{"a": 1}'"#).unwrap();
/// assert_eq!(words[1], ("mtp".to_owned(), 9..12));
/// assert_eq!(words[3].0, r#"{"a": 1}"#);
/// assert_eq!(split("--a b # c").unwrap_err().at(), 6);
/// ```
pub fn split(text: &str) -> Result<Vec<(String, std::ops::Range<usize>)>, WordFault> {
    let ranges = scan(text)?;
    let words = shell_words::split(text).map_err(|_| WordFault::OpenQuote {
        at: text.len().saturating_sub(1),
        quote: '\\',
    })?;
    if words.len() == ranges.len() {
        return Ok(words.into_iter().zip(ranges).collect());
    }
    // The two disagree only if one of them changes; the words count, the place is then the whole string.
    debug_assert!(false, "scan and shell-words disagree on {text:?}");
    Ok(words
        .into_iter()
        .map(|word| (word, 0..text.len()))
        .collect())
}

/// Ranges of the words.
fn scan(text: &str) -> Result<Vec<std::ops::Range<usize>>, WordFault> {
    // Wherever it stands, quoted or behind a backslash.
    if let Some(at) = text.find('\0') {
        return Err(WordFault::Nul { at });
    }
    let mut ranges = Vec::new();
    let mut start: Option<usize> = None;
    let mut quote: Option<(char, usize)> = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some((open, _)), _) if c == open => quote = None,
            (Some(('\'', _)), _) => {}
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(_), _) => {}
            (None, ' ' | '\t' | '\n') => {
                if let Some(begin) = start.take() {
                    ranges.push(begin..at);
                }
            }
            (None, '#') if start.is_none() => return Err(WordFault::Comment { at }),
            (None, '\\') => match chars.next() {
                // A line continuation is no character of a word.
                Some((_, '\n')) => {}
                Some(_) => {
                    start.get_or_insert(at);
                }
                None => return Err(WordFault::OpenQuote { at, quote: '\\' }),
            },
            (None, '\'' | '"') => {
                start.get_or_insert(at);
                quote = Some((c, at));
            }
            (None, _) => {
                start.get_or_insert(at);
            }
        }
    }
    if let Some((quote, at)) = quote {
        return Err(WordFault::OpenQuote { at, quote });
    }
    if let Some(begin) = start {
        ranges.push(begin..text.len());
    }
    Ok(ranges)
}

/// Where the parts of an unescaped scalar stand in the file.
///
/// Escapes, folding and indentation make the scalar's source and its text differ; where the mapping cannot be proved by decoding the
/// source back to the text, the whole span is the answer. Made once a scalar: a long one has many words.
pub struct Places<'a> {
    raw: &'a str,
    span: Span,
    offsets: Option<Vec<usize>>,
}

impl<'a> Places<'a> {
    /// `raw` is the source of the scalar `text` at `span`.
    pub fn new(raw: &'a str, span: Span, text: &str) -> Self {
        Self {
            raw,
            span,
            offsets: offsets(raw, text),
        }
    }

    /// Place of a range of the text.
    pub fn of(&self, range: &std::ops::Range<usize>) -> Span {
        let start = self.span.start as usize;
        let Some(map) = &self.offsets else {
            return self.span;
        };
        let from = map.get(range.start).copied();
        let to = range
            .end
            .checked_sub(1)
            .filter(|last| *last >= range.start)
            .and_then(|last| map.get(last).copied())
            .map(|last| last + self.raw[last..].chars().next().map_or(1, char::len_utf8));
        match (from, to) {
            (Some(from), Some(to)) => Span::new(start + from, start + to.max(from)),
            (Some(from), None) => Span::new(start + from, start + from),
            _ => self.span,
        }
    }
}

/// For each byte of `text`, the byte of `raw` that it comes from; `None` when `raw` does not decode to `text`.
fn offsets(raw: &str, text: &str) -> Option<Vec<usize>> {
    let mut map = Vec::with_capacity(text.len());
    let quoted = raw.starts_with(['"', '\'']);
    let double = raw.starts_with('"');
    let mut at = usize::from(quoted);
    for c in text.chars() {
        at = find(raw, at, c, double)?;
        map.resize(map.len() + c.len_utf8(), at);
        at += width(raw, at, double);
    }
    Some(map)
}

/// The next place in `raw`, from `at`, that stands for `wanted`. Skips only what YAML drops: line breaks, indentation, folding.
fn find(raw: &str, mut at: usize, wanted: char, double: bool) -> Option<usize> {
    loop {
        let rest = raw.get(at..)?;
        let first = rest.chars().next()?;
        if stands_for(rest, double) == Some(wanted) || (wanted == ' ' && first == '\n') {
            return Some(at);
        }
        let dropped =
            matches!(first, ' ' | '\t' | '\n' | '\r') || (double && rest.starts_with("\\\n"));
        if !dropped {
            return None;
        }
        at += first.len_utf8();
    }
}

fn stands_for(rest: &str, double: bool) -> Option<char> {
    let mut chars = rest.chars();
    let first = chars.next()?;
    if double && first == '\\' {
        return match chars.next()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            '0' => Some('\0'),
            same @ ('"' | '\\' | '/' | ' ') => Some(same),
            _ => None,
        };
    }
    Some(first)
}

fn width(raw: &str, at: usize, double: bool) -> usize {
    let rest = &raw[at..];
    if (double && rest.starts_with('\\')) || (raw.starts_with('\'') && rest.starts_with("''")) {
        return 2;
    }
    rest.chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        split(text)
            .unwrap()
            .into_iter()
            .map(|(word, _)| word)
            .collect()
    }

    #[test]
    fn words_follow_the_shell() {
        assert_eq!(
            words(" a  'b c' \"d\\\"e\" f\\ g ''"),
            ["a", "b c", "d\"e", "f g", ""]
        );
        assert_eq!(words("--a \\\n --b"), ["--a", "--b"]);
        assert_eq!(words("a#b"), ["a#b"]);
    }

    #[test]
    fn what_a_shell_would_drop_is_a_fault() {
        assert_eq!(split("a # b"), Err(WordFault::Comment { at: 2 }));
        assert_eq!(
            split("it's"),
            Err(WordFault::OpenQuote { at: 2, quote: '\'' })
        );
        assert_eq!(
            split("a\\"),
            Err(WordFault::OpenQuote { at: 1, quote: '\\' })
        );
        assert_eq!(split("a\0"), Err(WordFault::Nul { at: 1 }));
        // Neither a backslash nor quotes let it through.
        assert_eq!(split("\\\0"), Err(WordFault::Nul { at: 1 }));
        assert_eq!(split("\"\\\0\""), Err(WordFault::Nul { at: 2 }));
    }

    #[test]
    fn places_inside_every_scalar_style() {
        let check = |raw: &str, text: &str, word: &str, expected: &str| {
            let at = text.find(word).unwrap();
            let places = Places::new(raw, Span::new(100, 100 + raw.len()), text);
            let span = places.of(&(at..at + word.len()));
            assert_eq!(
                &raw[span.start as usize - 100..span.end as usize - 100],
                expected,
                "{raw}"
            );
        };
        check("--a --b", "--a --b", "--b", "--b");
        check("'it''s --b'", "it's --b", "--b", "--b");
        check("\"a\\tb --c\"", "a\tb --c", "--c", "--c");
        check("--a\n    --b\n", "--a\n--b\n", "--b", "--b");
        check("\"--a\n    --b\"", "--a --b", "--b", "--b");
        // An escape that is not followed falls back to the whole value.
        check("\"\\x41 --b\"", "A --b", "--b", "\"\\x41 --b\"");
    }

    proptest! {
        #[test]
        fn scan_and_shell_words_agree(text in "[a-c '\"\\\\\n\t#é]{0,24}") {
            if let Ok(found) = split(&text) {
                prop_assert_eq!(found.len(), shell_words::split(&text).unwrap().len());
                for (_, range) in &found {
                    prop_assert!(text.get(range.clone()).is_some());
                }
            }
        }

        #[test]
        fn joined_words_split_to_themselves(list in prop::collection::vec("\\PC{0,8}", 0..6)) {
            let line = shell_words::join(&list);
            prop_assert_eq!(words(&line), list);
        }

        #[test]
        fn any_place_is_inside_the_scalar(raw in "\\PC{0,20}", text in "\\PC{0,20}", a in 0usize..20, b in 0usize..20) {
            let span = Span::new(5, 5 + raw.len());
            let found = Places::new(&raw, span, &text).of(&(a.min(b)..a.max(b)));
            prop_assert!(found.start >= span.start && found.end <= span.end);
        }
    }
}
