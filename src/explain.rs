//! Where each argument and variable of a command comes from. Never resolves anything again: the plan carries its origins.

use crate::domain::command::{Command, same_option};
use crate::domain::provenance::{Shadowed, Source};
use crate::domain::secret;
use crate::domain::settings::TUNING;

/// One argument or variable as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Whether it is a variable.
    pub variable: bool,
    /// Flag or variable.
    pub name: String,
    /// Its value; empty for a flag without one.
    pub value: String,
    /// Origin.
    pub source: Source,
    /// What it displaced.
    pub shadowed: Vec<Shadowed>,
}

/// Our options whose flag is called otherwise on the server's command line.
const ALIASES: [(&str, &str); 8] = [
    ("--mtp", "--num-speculative-tokens"),
    ("--tp", "-tp"),
    ("--prefill-tp", "-tp"),
    ("--decode-tp", "-tp"),
    ("--tensor-parallel-size", "-tp"),
    ("--prefix-caching", "--enable-prefix-caching"),
    ("--prefill-kv-transfer-config", "--kv-transfer-config"),
    ("--decode-kv-transfer-config", "--kv-transfer-config"),
];

/// All rows of a command: arguments in order, then variables.
pub fn rows(command: &Command) -> Vec<Row> {
    let words = secret::shown_words(command.words());
    let mut words = words.into_iter();
    let arguments: Vec<Row> = command
        .args
        .iter()
        .map(|group| {
            let mut shown = words.by_ref().take(group.words.len());
            Row {
                variable: false,
                name: shown.next().unwrap_or_default(),
                value: shown.collect::<Vec<_>>().join(" "),
                source: group.source.clone(),
                shadowed: masked("", &group.shadowed),
            }
        })
        .collect();
    let variables = command.env.iter().map(|var| Row {
        variable: true,
        name: var.name.clone(),
        value: secret::shown(&var.name, &var.value).into_owned(),
        source: var.source.clone(),
        shadowed: masked(&var.name, &var.shadowed),
    });
    arguments.into_iter().chain(variables).collect()
}

fn masked(name: &str, shadowed: &[Shadowed]) -> Vec<Shadowed> {
    shadowed
        .iter()
        .map(|lost| Shadowed {
            value: secret::shown(name, &lost.value).into_owned(),
            source: lost.source.clone(),
        })
        .collect()
}

/// The rows that a subject speaks of: a flag in any spelling, one of our options, a variable that is set or read.
pub fn about(rows: Vec<Row>, subject: &str) -> Vec<Row> {
    let names = |source: &Source| match source {
        Source::CommandLine(name) | Source::Environment(name) => {
            name.split(", ").any(|name| name == subject)
        }
        Source::ModelsFile { field, .. } => *field == subject,
        Source::Derived(how) => how.split([' ', '=']).any(|word| word == subject),
        Source::Default => false,
    };
    let flag = TUNING
        .iter()
        .find(|spec| same_option(subject, spec.option) || subject == spec.variable)
        .map(|spec| spec.flag)
        .or_else(|| {
            ALIASES
                .iter()
                .find(|(ours, _)| *ours == subject)
                .map(|(_, theirs)| *theirs)
        });
    let positive = |name: &str| name.strip_prefix("--no-").map(|rest| format!("--{rest}"));
    rows.into_iter()
        .filter(|row| {
            let spelled = |wanted: &str| {
                same_option(&row.name, wanted)
                    || positive(&row.name).is_some_and(|name| same_option(&name, wanted))
            };
            let by_name = if row.variable {
                row.name == subject
            } else {
                spelled(subject) || flag.is_some_and(spelled)
            };
            by_name || names(&row.source) || row.shadowed.iter().any(|lost| names(&lost.source))
        })
        .collect()
}
