//! What the server enforces after its parser has accepted the words, as far as a launcher can know it beforehand.
//!
//! Each rule names the constraint it mirrors (docs/lints.md lists those that are out of reach, and why). An error is what the server
//! refuses or cannot do; a warning is what it accepts and does otherwise than written.

mod json_values;
mod numbers;
mod parallel;
mod speculative;
mod transfer;

use super::habits::is_own_field;
use super::line::{Line, Origin, is_extra};
use crate::atom::argparse::{Occurrence, Parsed, Value};
use crate::domain::command::EnvVar;
use crate::domain::diagnostic::{Code, Diagnostic, Diagnostics, Place};
use crate::domain::topology::Role;

/// What is known besides the words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    /// The worker's role.
    pub(super) role: Role,
    /// GPUs of the node, where a job is known. What depends on the job is not said of a models file alone.
    pub(super) gpus: Option<u32>,
    /// Variables that the launcher sets.
    pub(super) env: &'a [EnvVar],
}

/// The words with their readings.
struct View<'a> {
    line: &'a Line<'a>,
    parsed: &'a Parsed<'a, 'a>,
    case: Case<'a>,
}

/// Apply all constraints.
pub(super) fn all<'a>(
    line: &'a Line<'a>,
    parsed: &'a Parsed<'a, 'a>,
    case: Case<'a>,
    found: &mut Diagnostics,
) {
    let view = View { line, parsed, case };
    parallel::check(&view, found);
    speculative::check(&view, found);
    numbers::check(&view, found);
    json_values::check(&view, found);
}

impl<'a> View<'a> {
    fn get(&self, dest: &str) -> Option<&'a Occurrence<'a, 'a>> {
        self.parsed
            .value_of(dest)
            .filter(|occurrence| occurrence.ok)
    }

    /// Whether a switch is on.
    fn is_on(&self, dest: &str) -> bool {
        matches!(
            self.get(dest).map(Occurrence::value),
            Some(Value::Flag(true))
        )
    }

    fn int(&self, dest: &str) -> Option<i128> {
        match self.get(dest)?.value() {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }

    fn float(&self, dest: &str) -> Option<f64> {
        match self.get(dest)?.value() {
            Value::Float(number) => Some(number),
            _ => None,
        }
    }

    /// A text or choice; what an optional value left out stands for.
    fn text(&self, dest: &str) -> Option<&'a str> {
        match self.get(dest)?.value() {
            Value::Text(text) | Value::Json(text) => Some(text),
            Value::Bare(meaning) => meaning,
            _ => None,
        }
    }

    /// Place of an option, or of its value where it has one.
    fn place(&self, dest: &str) -> Place {
        self.get(dest)
            .map_or(Place::Whole, |occurrence| match &occurrence.value {
                Some(value) => self.line.place(value.word, &value.range),
                None => self.line.place_of(occurrence.word),
            })
    }

    /// ` in …` of an option.
    fn within(&self, dest: &str) -> String {
        self.get(dest)
            .map_or_else(String::new, |occurrence| self.line.within(occurrence.word))
    }

    /// An option as messages name it: a setting or a field of its own by that name, else the flag with where it stands.
    fn subject(&self, dest: &str) -> String {
        let Some(occurrence) = self.get(dest) else {
            return String::new();
        };
        match self.line.origin(occurrence.word) {
            Origin::Input(input) if !is_extra(input) => format!("`{input}`"),
            Origin::Field(field, _) if is_own_field(field) => format!("`{field}`"),
            _ => format!("`{}`{}", occurrence.option.name(), self.within(dest)),
        }
    }

    /// Whether an option stands among extra words or in a field, rather than being a setting of the launcher.
    fn is_extra(&self, dest: &str) -> bool {
        self.get(dest)
            .is_some_and(|occurrence| self.line.is_extra(occurrence.word))
    }

    fn error(&self, code: Code, dest: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.place(dest), message)
    }

    /// An error whose sentence begins with the option and where it stands.
    fn refuse(&self, code: Code, dest: &str, what: &str) -> Diagnostic {
        let flag = dest.replace('_', "-");
        self.error(
            code,
            dest,
            format!("`--{flag}`{} {what}", self.within(dest)),
        )
    }

    fn warning(&self, code: Code, dest: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(code, self.place(dest), message)
    }

    /// A finding at the first of the options that a person wrote; what the launcher itself passes has no place.
    fn place_of_any(&self, dests: &[&str]) -> Place {
        dests
            .iter()
            .map(|dest| self.place(dest))
            .find(|place| *place != Place::Whole)
            .unwrap_or(Place::Whole)
    }

    /// A variable that the launcher sets.
    fn env(&self, name: &str) -> Option<&'a str> {
        self.var(name).map(|var| var.value.as_str())
    }

    fn var(&self, name: &str) -> Option<&'a EnvVar> {
        self.case.env.iter().find(|var| var.name == name)
    }

    /// Place of a variable.
    fn place_of_var(&self, name: &str) -> Place {
        self.var(name)
            .map_or(Place::Whole, |var| var.source.place())
    }

    /// An integer option, or what the server takes without it.
    fn size(&self, dest: &str) -> i128 {
        self.int(dest).unwrap_or(1)
    }

    /// Data-parallel ranks as the server counts them: with data-parallel attention every tensor-parallel rank becomes one (C1).
    fn data_parallel_ranks(&self) -> i128 {
        let dp = self.size("data_parallel_size");
        if self.is_on("enable_dp_attention") {
            self.size("tensor_parallel_size").saturating_mul(dp)
        } else {
            dp
        }
    }

    /// Speculative tokens a step; none without a method, and one where no number is given.
    fn speculative_tokens(&self) -> i128 {
        if self.text("method").is_some() {
            self.int("num_speculative_tokens").unwrap_or(1).max(0)
        } else {
            0
        }
    }
}
