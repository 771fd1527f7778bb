//! Find the mistake before eight GPUs load for it: everything about a models file or a resolved command that can be known beforehand.
//!
//! `words.rs` reads words as the server's parser does, `habits.rs` finds what that accepts and still goes wrong, `constraints/` knows what the server enforces after parsing, `env.rs` its
//! variables, `entry.rs` what only a whole entry shows, `job.rs` and `router.rs` what only a whole job shows. `domain/codes.rs` describes every kind of finding. Asks `resolve`, repeats no rule of it.

mod constraints;
mod entry;
mod env;
mod habits;
mod job;
mod line;
mod router;
mod words;

use crate::atom::table::Table;
use crate::domain::codes;
use crate::domain::diagnostic::{Code, Diagnostics, Severity};
use crate::domain::models::ModelsFile;
use crate::plan::{JobPlan, WorkerPlan};
use crate::resolve::neutral::Neutral;

/// Findings about one resolved worker: its words as the server's parser reads them, and what the server enforces afterwards.
///
/// This runs before every launch; it costs some ten microseconds.
pub fn worker(worker: &WorkerPlan, gpus_per_node: u32) -> Diagnostics {
    let table = Table::builtin();
    let mut found = Diagnostics::default();
    let line = line::Line::of(&worker.command.args);
    // The first group is the interpreter's `-m MODULE`, which the server's parser never sees.
    let line = line.without_module();
    let parsed = crate::atom::argparse::parse(&line.words, &table);
    words::problems(&line, &parsed.problems, &mut found);
    habits::all(&line, &parsed, &mut found);
    let case = constraints::Case {
        role: worker.role,
        gpus: Some(gpus_per_node),
        env: &worker.command.env,
    };
    constraints::all(&line, &parsed, case, &mut found);
    env::of_command(&worker.command.env, &mut found);
    found
}

/// Findings about a whole job, besides those of its workers. `devices` is HIP_VISIBLE_DEVICES as the servers inherit it.
pub fn job(plan: &JobPlan, devices: Option<&str>) -> Diagnostics {
    let mut found = Diagnostics::default();
    job::check(plan, devices, &mut found);
    found
}

/// How findings are filtered.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Codes that are not reported.
    pub allow: Vec<String>,
    /// Codes whose warnings are errors.
    pub deny: Vec<String>,
}

impl Filter {
    /// Names among `--allow` and `--deny` that are no codes.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.allow
            .iter()
            .chain(&self.deny)
            .map(String::as_str)
            .filter(|name| codes::describe(name).is_none())
    }

    fn apply(&self, found: Diagnostics) -> Diagnostics {
        let is = |list: &[String], code: Code| list.iter().any(|name| name == code.0);
        let kept = found
            .0
            .into_iter()
            .filter(|finding| !is(&self.allow, finding.code))
            .map(|mut finding| {
                if is(&self.deny, finding.code) {
                    finding.severity = Severity::Error;
                }
                finding
            });
        Diagnostics(kept.collect())
    }
}

/// All findings about a file: those of loading, and of every entry when it could be loaded. `neutral` resolves their commands.
pub fn file(
    models: &ModelsFile,
    loading: Diagnostics,
    notes: Diagnostics,
    table: &Table,
    neutral: &mut Neutral,
    filter: &Filter,
) -> Diagnostics {
    let mut found = loading.0;
    found.extend(notes.0);
    let mut checker = entry::Checker::new(models, table, neutral);
    for entry in &models.entries {
        let mut of_entry = Diagnostics::default();
        checker.entry(entry, &mut of_entry);
        found.extend(of_entry.0);
    }
    filter.apply(Diagnostics(found).unique())
}
