//! Plain data → text. Decides nothing but looks; every function returns text or writes to what it is given.

pub mod banner;
pub mod check;
pub mod command;
pub mod diagnostic;
pub mod diff;
pub mod explain;
pub mod man;
pub mod models;
pub mod plan;
pub mod sbatch;
pub mod schema;
pub mod table;

use std::io::{self, IsTerminal as _, Write};

use crate::domain::provenance::Source;

pub use crate::domain::words::quote;

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

/// `1 error`, `2 errors`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
