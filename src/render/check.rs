//! Findings of `check` for a terminal, for programs, and as annotations of a pull request.

use serde_json::{Value, json};

use super::{count, diagnostic};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::domain::source::{SourceFile, Span};

/// A file with what was found in it.
#[derive(Debug)]
pub struct Checked {
    /// The file.
    pub file: SourceFile,
    /// How many models it has.
    pub models: usize,
    /// What was found.
    pub found: Diagnostics,
}

impl Checked {
    fn number(&self, severity: Severity) -> usize {
        self.found
            .0
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// Findings in the order of the file; those about the whole file first.
    fn in_order(&self) -> Vec<&Diagnostic> {
        let mut ordered: Vec<&Diagnostic> = self.found.0.iter().collect();
        ordered.sort_by_key(|finding| match finding.place {
            Place::File(span) => Some(span),
            Place::Input(_) | Place::Whole => None,
        });
        ordered
    }
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// With snippets, and a closing line for each file.
pub fn text(checked: &[Checked], colour: bool) -> String {
    let mut out = String::new();
    for side in checked {
        for finding in side.in_order() {
            out.push_str(&diagnostic::text(finding, Some(&side.file), colour));
        }
        out.push_str(&format!(
            "{}: {}, {}, {}\n",
            side.file.name,
            count(side.models, "model"),
            count(side.number(Severity::Error), "error"),
            count(side.number(Severity::Warning), "warning")
        ));
    }
    out
}

fn place_json(file: &SourceFile, span: Span) -> Value {
    let (start, end) = (file.position(span.start), file.position(span.end));
    json!({"line": start.line, "column": start.column, "end_line": end.line, "end_column": end.column})
}

fn finding_json(file: &SourceFile, finding: &Diagnostic) -> Value {
    let span = match finding.place {
        Place::File(span) => span,
        Place::Input(_) | Place::Whole => Span::default(),
    };
    let more: Vec<Value> = finding
        .more
        .iter()
        .map(|more| json!({"text": more.text, "position": place_json(file, more.span)}))
        .collect();
    json!({
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "position": place_json(file, span),
        "label": finding.label,
        "help": finding.help,
        "related": more,
    })
}

/// For programs; docs/lints.md describes every key.
pub fn as_json(checked: &[Checked]) -> Value {
    let files: Vec<Value> = checked
        .iter()
        .map(|side| {
            let findings: Vec<Value> = side
                .in_order()
                .into_iter()
                .map(|finding| finding_json(&side.file, finding))
                .collect();
            json!({
                "name": side.file.name,
                "models": side.models,
                "errors": side.number(Severity::Error),
                "warnings": side.number(Severity::Warning),
                "findings": findings,
            })
        })
        .collect();
    json!({"schema": 1, "files": files})
}

/// `::error file=F,line=L,col=C,endColumn=E,title=CODE::message`, one line a finding.
pub fn github(checked: &[Checked]) -> String {
    let mut out = String::new();
    for side in checked {
        for finding in side.in_order() {
            let span = match finding.place {
                Place::File(span) => span,
                Place::Input(_) | Place::Whole => Span::default(),
            };
            let (start, end) = (side.file.position(span.start), side.file.position(span.end));
            let end_column = if end.line == start.line {
                format!(",endColumn={}", end.column)
            } else {
                String::new()
            };
            let help = finding.help.iter().map(|help| format!("\n{help}"));
            let text = finding.message.clone() + &help.collect::<String>();
            out.push_str(&format!(
                "::{} file={},line={},col={}{end_column},title={}::{}\n",
                name(finding.severity),
                property(&side.file.name),
                start.line,
                start.column,
                finding.code.0,
                message(&text)
            ));
        }
    }
    out
}

/// Escapes of GitHub's workflow commands.
fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
