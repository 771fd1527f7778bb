//! Secrets in a text that is no command: a models file, an env file, a quoted setting. It may be broken, so it is read as loosely as
//! a hasty person would, and rather too much is hidden than too little.

use std::cell::Cell;
use std::ops::Range;

use super::is_secret_name;

/// A text as it may be shown: every value behind a secret name and every URL password becomes stars, byte for byte and line for line,
/// so that places in it stay what they are.
pub fn mask_source(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let mut line = Line::default();
    let ahead = Ahead::of(text.as_bytes());
    let mut at = 0;
    while let Some(name) = next_name(text.as_bytes(), at) {
        line.advance(text.as_bytes(), name.start);
        at = name.end;
        if is_secret_name(&text[name.clone()]) {
            let reader = Reader::new(text.as_bytes(), &ahead, &line, &name);
            if let Some(value) = reader.value(&name, ends_a_flag(text, &name)) {
                at = value.end.max(at);
                cover(&mut out, value);
            }
        }
    }
    mask_url_passwords(&mut out);
    String::from_utf8(out).unwrap_or_else(|_| "*".repeat(text.len()))
}

/// Stars for everything but line ends and indentation.
fn cover(text: &mut [u8], range: Range<usize>) {
    let mut indentation = false;
    for byte in &mut text[range] {
        match *byte {
            b'\n' | b'\r' => indentation = true,
            b' ' | b'\t' if indentation => {}
            _ => {
                indentation = false;
                *byte = b'*';
            }
        }
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn next_name(text: &[u8], from: usize) -> Option<Range<usize>> {
    let start = from + text.get(from..)?.iter().position(|byte| is_name(*byte))?;
    let length = text[start..].iter().position(|byte| !is_name(*byte));
    Some(start..length.map_or(text.len(), |length| start + length))
}

/// Whether the name is the last segment of a flag: `key` in `--api-key`.
fn ends_a_flag(text: &str, name: &Range<usize>) -> bool {
    let in_flag = |byte: &u8| is_name(*byte) || *byte == b'-';
    // Asked first: of many segments only the last one looks back over all of them.
    if text.as_bytes().get(name.end) == Some(&b'-') {
        return false;
    }
    let before = &text.as_bytes()[..name.start];
    let length = before.iter().rev().take_while(|byte| in_flag(byte)).count();
    before[before.len() - length..].starts_with(b"--")
}

/// The next of a few bytes. What was found is kept, since all names of a long line may ask for the end of that line.
#[derive(Debug)]
struct Next<'a> {
    text: &'a [u8],
    bytes: &'static [u8],
    /// From where it was looked for, and where it was.
    known: Cell<(usize, usize)>,
}

impl Next<'_> {
    /// First place from `at` on, or the end.
    fn from(&self, at: usize) -> usize {
        let (from, found) = self.known.get();
        if from <= at && at <= found && found > 0 {
            return found;
        }
        let length = self.text[at..]
            .iter()
            .position(|byte| self.bytes.contains(byte));
        let found = length.map_or(self.text.len(), |length| at + length);
        self.known.set((at, found));
        found
    }
}

/// What is looked for again and again.
#[derive(Debug)]
struct Ahead<'a> {
    line_end: Next<'a>,
    word_end: Next<'a>,
}

impl<'a> Ahead<'a> {
    fn of(text: &'a [u8]) -> Self {
        let next = |bytes| Next {
            text,
            bytes,
            known: Cell::default(),
        };
        Self {
            line_end: next(b"\n"),
            word_end: next(b" \t\n\r"),
        }
    }
}

/// Where in its line a place is: inside which quotes, in how many brackets, how far the line is indented.
#[derive(Debug, Default)]
struct Line {
    at: usize,
    quote: Option<u8>,
    depth: usize,
    indentation: usize,
    blank_so_far: bool,
}

impl Line {
    fn advance(&mut self, text: &[u8], to: usize) {
        while self.at < to {
            let byte = text[self.at];
            self.at += 1;
            match (byte, self.quote) {
                (b'\n', _) => {
                    let at = self.at;
                    // Brackets may go on over lines; a quote that does is rare, and a stray apostrophe is not.
                    *self = Self {
                        at,
                        depth: self.depth,
                        blank_so_far: true,
                        ..Self::default()
                    };
                }
                (b' ', _) if self.blank_so_far || self.at == 1 => {
                    self.indentation += 1;
                    self.blank_so_far = true;
                    continue;
                }
                (b'\\', Some(b'"')) if self.at < to => self.at += 1,
                (quote, Some(open)) if quote == open => self.quote = None,
                (b'"' | b'\'', None) => self.quote = Some(byte),
                (b'[' | b'{', None) => self.depth += 1,
                (b']' | b'}', None) => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.blank_so_far = byte == b'\n';
        }
    }
}

/// Finds the value behind a name.
struct Reader<'a> {
    text: &'a [u8],
    ahead: &'a Ahead<'a>,
    /// The quote that is open around name and value.
    outer: Option<u8>,
    /// Whether both stand in brackets.
    in_brackets: bool,
    /// Of the name's line.
    indentation: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a [u8], ahead: &'a Ahead<'a>, line: &Line, name: &Range<usize>) -> Self {
        // In `"name": value` the quote ends with the name.
        let closed = text.get(name.end).copied() == line.quote;
        Self {
            text,
            ahead,
            outer: line.quote.filter(|_| !closed),
            in_brackets: line.depth > 0,
            indentation: line.indentation,
        }
    }

    fn get(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    fn skip(&self, mut at: usize, bytes: &[u8]) -> usize {
        while self.get(at).is_some_and(|byte| bytes.contains(&byte)) {
            at += 1;
        }
        at
    }

    /// First place from `at` on that is in `bytes`, or the end.
    fn until(&self, at: usize, bytes: &[u8]) -> usize {
        let found = self.text[at..].iter().position(|byte| bytes.contains(byte));
        found.map_or(self.text.len(), |length| at + length)
    }

    /// The value of a `NAME=value`, a `NAME: value`, or a `--flag value`.
    fn value(&self, name: &Range<usize>, flag: bool) -> Option<Range<usize>> {
        let behind = self.skip(name.end, b"\\\"' \t");
        match self.get(behind) {
            // `A= B` is an empty value and another word; `A = B` is not what a shell takes.
            Some(b'=') if matches!(self.text[behind - 1], b' ' | b'\t') => {
                self.word(self.skip(behind + 1, b" \t"))
            }
            Some(b'=') => self.word(behind + 1),
            Some(b':') => self.node(behind + 1),
            // The next item of a list, or the next word; another flag is no value.
            _ if flag && behind > name.end => {
                let closed =
                    name.end + usize::from(matches!(self.get(name.end), Some(b'"' | b'\'')));
                let at = self.skip(self.skip(closed, b" \t,"), b" \t");
                let word = self.skip(at, b"\\\"'");
                if self.text[word..].starts_with(b"--") {
                    None
                } else {
                    self.word(at)
                }
            }
            _ => None,
        }
    }

    /// A word as a shell has it, within the quotes around it.
    fn word(&self, start: usize) -> Option<Range<usize>> {
        let mut at = start;
        let outer = self.outer;
        while let Some(byte) = self.get(at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => break,
                _ if Some(byte) == outer => break,
                b'"' | b'\'' => at = self.quoted(at),
                b'\\' if outer == Some(b'"') && matches!(self.get(at + 1), Some(b'"' | b'\\')) => {
                    at = self.escaped(at);
                }
                b'\\' => at += 2,
                b',' | b']' | b'}' if outer.is_none() => break,
                _ => at += 1,
            }
        }
        self.some(start..at)
    }

    /// A YAML or JSON node.
    fn node(&self, start: usize) -> Option<Range<usize>> {
        let mut at = self.skip(start, b" \t");
        if self.outer.is_some() {
            return self.inner_node(at);
        }
        // An anchor or a tag stands before the value.
        while matches!(self.get(at), Some(b'&' | b'!')) {
            at = self.skip(self.ahead.word_end.from(at), b" \t");
        }
        match self.get(at)? {
            b'"' | b'\'' => self.some(at..self.quoted(at)),
            b'[' | b'{' => self.some(at..self.bracketed(at)),
            b'|' | b'>' => {
                let end = self.ahead.line_end.from(at);
                self.some(end..self.deeper_lines(end))
            }
            b'\n' | b'\r' | b'#' => {
                let end = self.ahead.line_end.from(at);
                let next = self.skip(end, b" \t\r\n");
                // A mapping of its own, or nothing at all: the next key.
                let nested =
                    matches!(self.get(next), Some(b'}' | b']' | b'#')) || self.is_key(next);
                if nested {
                    None
                } else if self.in_brackets {
                    self.node(next)
                } else {
                    self.some(next..self.deeper_lines(end))
                }
            }
            _ if self.in_brackets => self.some(at..self.until(at, b",]}")),
            _ => self.some(at..self.deeper_lines(self.ahead.line_end.from(at))),
        }
    }

    /// A JSON member inside a quoted text.
    fn inner_node(&self, at: usize) -> Option<Range<usize>> {
        let outer = self.outer;
        match self.get(at)? {
            byte if Some(byte) == outer => None,
            b'"' | b'\'' => self.some(at..self.quoted(at)),
            b'\\' => self.some(at..self.escaped(at)),
            b'[' | b'{' => self.some(at..self.bracketed(at)),
            _ => {
                // A header's value has two words.
                let rest = &self.text[at..];
                let scheme = [&b"bearer "[..], b"basic "].into_iter().find(|name| {
                    let start = rest.get(..name.len());
                    start.is_some_and(|start| start.eq_ignore_ascii_case(name))
                });
                let from = self.skip(at + scheme.map_or(0, <[u8]>::len), b" ");
                let ends = |byte: &u8| b",}] \t\r\n".contains(byte) || Some(*byte) == outer;
                let length = self.text[from..].iter().position(ends);
                self.some(at..length.map_or(self.text.len(), |length| from + length))
            }
        }
    }

    /// End of a quoted text that starts here; one that is never closed ends with all.
    fn quoted(&self, start: usize) -> usize {
        let quote = self.text[start];
        let mut at = start + 1;
        while let Some(byte) = self.get(at) {
            at += 1;
            if byte == b'\\' && quote == b'"' {
                at += 1;
            } else if byte == quote {
                if quote == b'\'' && self.get(at) == Some(quote) {
                    at += 1;
                } else {
                    return at;
                }
            }
        }
        self.text.len()
    }

    /// End of a text in escaped quotes, `\"so\"`, or of the quotes around it.
    fn escaped(&self, start: usize) -> usize {
        let mut at = start + 2;
        while let Some(byte) = self.get(at) {
            match byte {
                b'"' => return at,
                b'\\' if self.get(at + 1) == Some(b'"') => return at + 2,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// End of a list or mapping that starts here; one that is never closed ends with all.
    fn bracketed(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        let mut at = start;
        while let Some(byte) = self.get(at) {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                b'"' | b'\'' if self.outer != Some(byte) => {
                    at = self.quoted(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return at;
            }
        }
        self.text.len()
    }

    /// End of the lines behind a line end that are indented more than the name's own.
    fn deeper_lines(&self, mut end: usize) -> usize {
        while self.get(end) == Some(b'\n') {
            let first = self.skip(end + 1, b" \t");
            let blank = matches!(self.get(first), Some(b'\n' | b'\r') | None);
            if !blank && first - (end + 1) <= self.indentation {
                break;
            }
            end = self.ahead.line_end.from(end + 1);
        }
        end
    }

    /// Whether a line starts with a key here.
    fn is_key(&self, at: usize) -> bool {
        let line = &self.text[at..self.ahead.line_end.from(at)];
        let quoted = |byte: &u8| matches!(byte, b'"' | b'\'');
        let start = line.iter().position(|byte| !quoted(byte)).unwrap_or(0);
        let length = line[start..]
            .iter()
            .position(|byte| !is_name(*byte) && !b".-".contains(byte));
        let end = length.map_or(line.len(), |length| start + length);
        let colon = line[end..].iter().position(|byte| !quoted(byte));
        length != Some(0)
            && colon.is_some_and(|colon| {
                line[end + colon] == b':'
                    && matches!(line.get(end + colon + 1), None | Some(b' ' | b'\t' | b'\r'))
            })
    }

    fn some(&self, range: Range<usize>) -> Option<Range<usize>> {
        let end = range.end.min(self.text.len());
        (range.start < end).then_some(range.start..end)
    }
}

fn mask_url_passwords(text: &mut [u8]) {
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b'}' | b'/');
    let mut at = 0;
    while let Some(found) = text[at..].windows(3).position(|three| three == b"://") {
        let start = at + found + 3;
        let length = text[start..].iter().position(ends);
        let authority = length.map_or(text.len(), |length| start + length);
        let sign = text[start..authority]
            .iter()
            .rposition(|byte| *byte == b'@');
        let colon = text[start..authority].iter().position(|byte| *byte == b':');
        if let (Some(sign), Some(colon)) = (sign, colon)
            && colon < sign
        {
            text[start + colon + 1..start + sign].fill(b'*');
        }
        at = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_lines_keep_their_length() {
        let line =
            "  env: {WANDB_API_KEY: \"wk-1\", A: b} HF_TOKEN=hf_x MONKEY: 1 u: http://me:pw@h/";
        let masked = mask_source(line);
        assert_eq!(masked.len(), line.len());
        assert_eq!(
            masked,
            "  env: {WANDB_API_KEY: ******, A: b} HF_TOKEN=**** MONKEY: 1 u: http://me:**@h/"
        );
        let flags = "é --api-key sk-1 'x' [\"--api-key\", \"sk-2\"] --api-key=s3 --key-file f --api-key --next key";
        assert_eq!(
            mask_source(flags),
            "é --api-key **** 'x' [\"--api-key\", ******] --api-key=** --key-file f --api-key --next key"
        );
    }

    /// `S` stands for secret: none may be left, and nothing else may be lost.
    #[test]
    fn a_value_is_hidden_however_it_is_written() {
        for text in [
            "  env: {A_KEY: 'SS S', B: [1]}",
            "  env: {A_KEY: \"S\\\"S S\", B: [1]}",
            "  env: {A_KEY: S S, B: [1]}",
            "  env: {A_KEY:\n   S, B: [1]}",
            "  env: {\"A_KEY\" : [\"S\", S, {S: [S]}], B: [1]}",
            "  A_KEY: S S, S 'S' \"S\n    S\n\n    S\n  B: 1",
            "  A_KEY: |-\n    S\n\n   S\n  B: 1",
            "  A_KEY: # note\n    S\n  B: 1",
            "  A_KEY:\n    - S\n    - S\n  B: 1",
            "  A_KEY: &anchor !!str S\n  B: 1",
            "  env: \"A_KEY=S'S S'S,S B=1\"",
            "  env: \"A_KEY=\\\"S S\\\"S B=1\"",
            "  env: 'A_KEY=\"S S\" B=1'",
            "  env: [A_KEY=S, B=1]",
            "  env: A_KEY=S\\ S B=1",
            "  json: '{\"api_key\": \"S, S\", \"b\": 1}'",
            "  json: \"{\\\"api_key\\\": \\\"S S\\\", \\\"b\\\": 1}\"",
            "  json: '{\"api_key\": S, \"b\": 1}'",
            "  flags: \"--api-key 'S S' --b\"",
            "# don't\n  env: \"A_KEY=S B=1\"",
            "A_KEY: \"S",
            "  flags: \"-H 'Authorization: bearer S' --b\"",
        ] {
            let masked = mask_source(text);
            assert_eq!(masked.len(), text.len());
            assert!(!masked.contains('S'), "{text:?} became {masked:?}");
            let kept = |word: &str| !text.contains(word) || masked.contains(word);
            assert!(
                ["B", "\"b", "\\\"b", "--b", "1", "# note"]
                    .iter()
                    .all(|word| kept(word)),
                "{text:?} became {masked:?}"
            );
        }
    }

    #[test]
    fn what_is_no_value_stays() {
        for text in [
            "API_KEY:\n  B: 1",
            "{API_KEY:\n}",
            "API_KEY:\n",
            "  env: \"A_KEY= B=1\"",
            "  env: \"A_KEY=\"\n  B: 1",
            "MONKEY: 1",
            "--key-file f",
            "a KEY word",
        ] {
            assert_eq!(mask_source(text), text);
        }
    }

    /// Each of these asked every name for something at the end of the text.
    #[test]
    fn the_time_grows_with_the_text_alone() {
        for (start, piece) in [
            ("", "key-"),
            ("", "--key"),
            ("", "KEY:#"),
            ("", "KEY:&"),
            ("\"", "KEY:a,"),
            ("\"", "KEY:b "),
        ] {
            let text = start.to_owned() + &piece.repeat(100_000);
            let begun = std::time::Instant::now();
            assert_eq!(mask_source(&text).len(), text.len());
            // A tenth of a second, or else minutes.
            assert!(begun.elapsed().as_secs() < 20, "{piece}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_keeps_its_length_and_its_lines(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "A_KEY", "--api-key", "token", ":", "=", " ", "\n", "\"", "'", "\\", "\\\"", "[", "]", "{", "}", ",", "|", "&", "!", "#", "é", "x", "://", "@",
        ]), 0..40)) {
            let text = pieces.concat();
            let masked = mask_source(&text);
            proptest::prop_assert_eq!(masked.len(), text.len());
            let ends = |text: &str| text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
            proptest::prop_assert_eq!(ends(&masked), ends(&text));
        }
    }
}
