//! Whether Python's `json.loads` accepts a text.
//!
//! It takes `NaN`, `Infinity`, `-Infinity`, lone surrogates and numbers of any size, which `serde_json` refuses.

/// Python gives up a little above (by a traceback, not by a message).
const DEEPEST: usize = 900;

/// More digits are an error in Python's `int()`.
const MOST_DIGITS: usize = 4300;

/// Whether `json.loads(text)` returns.
pub(super) fn is_json(text: &str) -> bool {
    let mut reader = Reader {
        bytes: text.as_bytes(),
        at: 0,
    };
    reader.space();
    reader.value(0) && {
        reader.space();
        reader.at == reader.bytes.len()
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> bool {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => depth < DEEPEST && self.object(depth + 1),
            Some(b'[') => depth < DEEPEST && self.array(depth + 1),
            Some(b'n') => self.eat_word(b"null"),
            Some(b't') => self.eat_word(b"true"),
            Some(b'f') => self.eat_word(b"false"),
            Some(b'N') => self.eat_word(b"NaN"),
            Some(b'I') => self.eat_word(b"Infinity"),
            Some(b'-') if self.eat_word(b"-Infinity") => true,
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => false,
        }
    }

    fn object(&mut self, depth: usize) -> bool {
        self.at += 1;
        self.space();
        if self.eat(b'}') {
            return true;
        }
        loop {
            if self.peek() != Some(b'"') || !self.string() {
                return false;
            }
            self.space();
            if !self.eat(b':') {
                return false;
            }
            self.space();
            if !self.value(depth) {
                return false;
            }
            self.space();
            if self.eat(b'}') {
                return true;
            }
            if !self.eat(b',') {
                return false;
            }
            self.space();
        }
    }

    fn array(&mut self, depth: usize) -> bool {
        self.at += 1;
        self.space();
        if self.eat(b']') {
            return true;
        }
        loop {
            if !self.value(depth) {
                return false;
            }
            self.space();
            if self.eat(b']') {
                return true;
            }
            if !self.eat(b',') {
                return false;
            }
            self.space();
        }
    }

    fn string(&mut self) -> bool {
        self.at += 1;
        loop {
            let Some(byte) = self.peek() else {
                return false;
            };
            self.at += 1;
            match byte {
                b'"' => return true,
                0..=0x1f => return false,
                b'\\' => {
                    let escape = self.peek();
                    self.at += 1;
                    match escape {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let digits = self.bytes.get(self.at..self.at + 4);
                            if !digits.is_some_and(|four| four.iter().all(u8::is_ascii_hexdigit)) {
                                return false;
                            }
                            self.at += 4;
                        }
                        _ => return false,
                    }
                }
                _ => {}
            }
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> bool {
        self.eat(b'-');
        let starts_with_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (starts_with_zero && whole > 1) {
            return false;
        }
        let mut integer = true;
        if self.eat(b'.') {
            integer = false;
            if self.digits() == 0 {
                return false;
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return false;
            }
        }
        !integer || whole <= MOST_DIGITS
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn what_python_accepts_is_json() {
        for text in [
            "{}",
            "[]",
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.5e-3",
            "1E999",
            "NaN",
            "-Infinity",
            "[Infinity]",
            "\"\\ud800\"",
            "\"\\/\\b\\u00e9é\"",
            " {\"a\" : [1, {\"b\": null}]}\r\n\t",
            "{\"a\":1,\"a\":2}",
            "\"\u{7f}\"",
        ] {
            assert!(is_json(text), "{text}");
        }
    }

    #[test]
    fn what_python_refuses_is_not() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "{a:1}",
            "{'a':1}",
            "{\"a\":1,}",
            "[1,]",
            "[,]",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e+",
            "--1",
            "nul",
            "True",
            "None",
            "nan",
            "-NaN",
            "\"",
            "\"\\x41\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "{}{}",
            "1 2",
            "\u{feff}{}",
            "\u{a0}1",
            "[1 2]",
            "1_000",
            "\\",
            "\"\\",
        ] {
            assert!(!is_json(text), "{text}");
        }
        assert!(is_json(&"9".repeat(4300)));
        assert!(!is_json(&"9".repeat(4301)));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(is_json(&nested(900)));
        assert!(!is_json(&nested(901)));
        assert!(!is_json(&"[".repeat(1_000_000)));
    }
}
