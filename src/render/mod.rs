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

use std::fmt;
use std::io::{self, IsTerminal as _, Write};

use crate::domain::provenance::Source;

pub use crate::domain::words::quote;

/// Stdout takes no data: its own exit code, since whoever reads the data has only a part of it.
#[derive(Debug)]
pub struct Unwritable(io::Error);

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to stdout: {}", self.0)
    }
}

impl std::error::Error for Unwritable {}

/// Write data to stdout. A reader that went away ends the output quietly; anything else is an error.
pub fn to_stdout(text: &[u8]) -> Result<(), Unwritable> {
    let mut out = io::stdout().lock();
    written(out.write_all(text).and_then(|()| out.flush()))
}

/// Print what the command line's own reader says: help and version on stdout, mistakes on stderr.
pub fn answer(message: &clap::Error) -> Result<(), Unwritable> {
    let printed = message.print();
    if message.use_stderr() {
        return Ok(());
    }
    written(printed.and_then(|()| io::stdout().lock().flush()))
}

fn written(result: io::Result<()>) -> Result<(), Unwritable> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Unwritable(error)),
        _ => Ok(()),
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
