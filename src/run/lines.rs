//! Cutting a stream of bytes into lines that may be shown, in bounded memory.

use std::fmt::Write as _;

/// So many bytes of a line are kept; a longer one is cut.
const LINE_LIMIT: usize = 8192;

/// A line without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes, at most `LINE_LIMIT`.
    pub bytes: &'a [u8],
    /// How many bytes were cut off.
    pub cut: u64,
    /// Ended by a carriage return alone: a progress bar will write over it.
    pub passing: bool,
}

/// Cuts a stream into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    line: Vec<u8>,
    cut: u64,
    returned: bool,
}

impl Splitter {
    /// Take in the next bytes and hand out each line that they complete.
    pub fn feed(&mut self, mut data: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(first) = data.first() {
            if self.returned && *first != b'\n' {
                self.hand_out(true, &mut each);
            }
            self.returned = false;
            let end = data.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (piece, ending, rest) = match end {
                Some(at) => (&data[..at], Some(data[at]), &data[at + 1..]),
                None => (data, None, &data[data.len()..]),
            };
            self.keep(piece);
            match ending {
                Some(b'\n') => self.hand_out(false, &mut each),
                Some(_) => self.returned = true,
                None => {}
            }
            data = rest;
        }
    }

    /// Hand out what stands after the last line end.
    pub fn finish(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.returned = false;
        if !self.line.is_empty() {
            self.hand_out(false, &mut each);
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = LINE_LIMIT.saturating_sub(self.line.len());
        let (kept, lost) = piece.split_at(piece.len().min(room));
        self.line.extend_from_slice(kept);
        self.cut += lost.len() as u64;
    }

    fn hand_out(&mut self, passing: bool, each: &mut impl FnMut(Line<'_>)) {
        // A bar starts with a return: there is nothing before it yet.
        if !(passing && self.line.is_empty()) {
            each(Line {
                bytes: &self.line,
                cut: self.cut,
                passing,
            });
        }
        self.line.clear();
        self.cut = 0;
    }
}

/// A line as text for a terminal or a job log: no colours, no control characters, no broken UTF-8.
pub fn shown(line: &Line<'_>) -> String {
    let text = String::from_utf8_lossy(line.bytes);
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                // Parameters and intermediates up to the final letter of the sequence.
                while rest.next_if(|c| matches!(c, ' '..='?')).is_some() {}
                rest.next_if(|c| matches!(c, '@'..='~'));
            }
            '\t' => out.push('\t'),
            control if control.is_control() || is_direction(control) => {
                out.extend(control.escape_unicode());
            }
            other => out.push(other),
        }
    }
    if line.cut > 0 {
        // Writing into a string cannot fail.
        let _ = write!(out, " … {} more bytes, see the log file", line.cut);
    }
    out
}

/// The same, put at the end of a text. Most lines are plain and cost no more than a copy.
pub fn show_into(out: &mut Vec<u8>, line: &Line<'_>) {
    let plain = line
        .bytes
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    if plain && line.cut == 0 {
        out.extend_from_slice(line.bytes);
    } else {
        out.extend_from_slice(shown(line).as_bytes());
    }
}

/// Characters that turn the direction of text around and so can make a line look like another.
fn is_direction(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<(String, bool)> {
        let mut splitter = Splitter::default();
        let mut out = Vec::new();
        for piece in pieces {
            splitter.feed(piece, |line| out.push((shown(&line), line.passing)));
        }
        splitter.finish(|line| out.push((shown(&line), line.passing)));
        out
    }

    #[test]
    fn lines_are_whole_however_the_bytes_arrive() {
        let text = b"one\ntwo\r\n\nlast";
        let whole = lines(&[text]);
        let names: Vec<&str> = whole.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(names, ["one", "two", "", "last"]);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(&bytes), whole);
    }

    #[test]
    fn states_of_a_progress_bar_are_passing_and_its_end_stays() {
        let bar = lines(&[b"\rload 1%\rload 2%\rload 100%\n"]);
        assert_eq!(
            bar,
            [
                ("load 1%".into(), true),
                ("load 2%".into(), true),
                ("load 100%".into(), false)
            ]
        );
    }

    #[test]
    fn a_giant_line_costs_little_and_says_what_is_missing() {
        let mut splitter = Splitter::default();
        let chunk = vec![b'z'; 1 << 16];
        let mut seen = Vec::new();
        for _ in 0..64 {
            splitter.feed(&chunk, |line| seen.push((line.bytes.len(), line.cut)));
        }
        splitter.feed(b"\nnext\n", |line| seen.push((line.bytes.len(), line.cut)));
        assert_eq!(seen, [(LINE_LIMIT, (64 << 16) - LINE_LIMIT as u64), (4, 0)]);
        assert!(splitter.line.capacity() <= 2 * LINE_LIMIT);
    }

    #[test]
    fn junk_and_colours_do_not_reach_the_terminal() {
        let junk = lines(&[b"\x1b[1;31mred\x1b[0m \x07\xff\xfe\x00 \xe2\x80\xaeabc\tx"]);
        assert_eq!(
            junk[0].0,
            "red \\u{7}\u{fffd}\u{fffd}\\u{0} \\u{202e}abc\tx"
        );
    }
}
