//! Plain data → text. Decides nothing but looks; every function returns text or writes to what it is given.

pub mod banner;
pub mod check;
pub mod command;
pub mod diagnostic;
pub mod diff;
pub mod explain;
pub mod models;
pub mod plan;
pub mod sbatch;
pub mod schema;
pub mod table;

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use crate::domain::provenance::Source;
use crate::domain::visible::is_hidden;

/// Write data to stdout. A reader that went away ends the output quietly; anything else is an error.
pub fn to_stdout(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Write talk to stderr. Nobody to listen is no reason to fail.
pub fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether stderr takes colours: a terminal, and NO_COLOR not set.
pub fn stderr_colour(no_color: bool) -> bool {
    !no_color && io::stderr().is_terminal()
}

/// Whether stdout takes colours.
pub fn stdout_colour(no_color: bool) -> bool {
    !no_color && io::stdout().is_terminal()
}

/// An origin in words. `file` is the models file's name.
pub fn origin(source: &Source, file: &str) -> String {
    match source {
        Source::CommandLine(option) => format!("command line {option}"),
        Source::Environment(variable) => format!("environment {variable}"),
        Source::ModelsFile {
            field, position, ..
        } => {
            format!("{file}:{}:{} {field}", position.line, position.column)
        }
        Source::Default => "default".into(),
        Source::Derived(how) => how.clone(),
    }
}

/// An origin as JSON.
pub fn origin_json(source: &Source) -> serde_json::Value {
    use serde_json::json;
    match source {
        Source::CommandLine(option) => json!({"kind": "command-line", "name": option}),
        Source::Environment(variable) => json!({"kind": "environment", "name": variable}),
        Source::ModelsFile {
            field, position, ..
        } => {
            json!({"kind": "models-file", "name": field, "line": position.line, "column": position.column})
        }
        Source::Default => json!({"kind": "default"}),
        Source::Derived(how) => json!({"kind": "derived", "name": how}),
    }
}

/// JSON for people and programs: indented, with a line end.
pub fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// A word for bash, in one line: bare where no shell sees more in it than its characters, else in single quotes; `$'…'` where
/// there are characters that a terminal would obey or not show.
///
/// Not that of shell-words, which leaves `{a,b}` bare: bash makes two words of it.
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        Cow::Borrowed(word)
    } else if word.contains(is_hidden) {
        Cow::Owned(escaped(word))
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// A word as bash's `$'…'`; by bytes, which mean the same in every locale.
fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\'' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                for byte in c.to_string().bytes() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            c => out.push(c),
        }
    }
    out + "'"
}

/// `1 error`, `2 errors`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_without_meaning_to_a_shell_stand_bare() {
        for bare in ["--a=b", "/x/y-1.0_z", "http://h:1", "1,2"] {
            assert_eq!(quote(bare), bare);
        }
        assert_eq!(quote(""), "''");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(
            quote("it's\n\u{1b}[1m\u{202e}\\"),
            r"$'it\'s\n\x1b[1m\xe2\x80\xae\\'"
        );
        for quoted in ["{a,b}", "=x", "a b", "~", "*", "$x", "é"] {
            assert_eq!(quote(quoted), format!("'{quoted}'"));
        }
    }
}
