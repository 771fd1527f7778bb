//! Two models files → what changes in the resolved command of every model × mode × role × MTP. Pure.

mod in_words;

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::diagnostic::Diagnostics;
use crate::domain::models::{ModelEntry, ModelsFile};
use crate::domain::secret;
use crate::domain::topology::{Mode, Role};
use crate::domain::words;
use crate::resolve::neutral::{Case, Neutral};

pub use in_words::in_words;

/// Speculative tokens that are compared: none and one.
const MTP: [u32; 2] = [0, 1];

/// One of the compared commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Combination {
    /// Mode.
    pub mode: Mode,
    /// Role.
    pub role: Role,
    /// Speculative tokens.
    pub mtp: u32,
}

/// What a command looks like, or why it cannot be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Resolved {
    /// Argument groups and variables.
    Command(Vec<Piece>, Vec<Piece>),
    /// The findings that stop it.
    Impossible(Vec<Piece>),
    /// The model is not in the file.
    Absent,
}

/// What is compared, and what of it may be shown: a secret that changes is a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    raw: String,
    shown: String,
}

impl Piece {
    fn open(text: String) -> Self {
        Self {
            raw: text.clone(),
            shown: text,
        }
    }
}

/// A line that goes or comes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// Whether it is in the new file.
    pub added: bool,
    /// Argument with its values, `NAME=VALUE`, or a finding.
    pub text: String,
}

/// The same edits for a set of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub commands: Vec<Combination>,
    /// Arguments, in order.
    pub arguments: Vec<Edit>,
    /// Variables.
    pub variables: Vec<Edit>,
    /// Whether there was no such command before either.
    pub was_impossible: bool,
    /// Reasons why a command was or is impossible.
    pub problems: Vec<Edit>,
}

/// What happens to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Only in the new file.
    Added,
    /// Only in the old file.
    Removed,
    /// In both, with other commands.
    Changed,
}

/// One model with changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDiff {
    /// Name.
    pub model: String,
    /// What happens to it.
    pub status: Status,
    /// Changes, those of the most commands first.
    pub changes: Vec<Change>,
}

/// The whole comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Models with changes: those of the old file in its order, then new ones.
    pub models: Vec<ModelDiff>,
    /// How many models were compared.
    pub compared: usize,
}

/// Compare two files.
pub fn compare(old: &ModelsFile, new: &ModelsFile, neutral: &mut Neutral) -> Comparison {
    let new_names: BTreeMap<&str, &ModelEntry> = by_name(new);
    let old_names: BTreeMap<&str, &ModelEntry> = by_name(old);
    let added = new.names().filter(|name| !old_names.contains_key(name));
    let names: Vec<&str> = old.names().chain(added).collect();
    let models = names
        .iter()
        .filter_map(|name| {
            let before = old_names.get(name).copied();
            let after = new_names.get(name).copied();
            model(neutral, name, (old, before), (new, after))
        })
        .collect();
    Comparison {
        models,
        compared: names.len(),
    }
}

fn by_name(file: &ModelsFile) -> BTreeMap<&str, &ModelEntry> {
    file.entries
        .iter()
        .map(|entry| (entry.name.value.as_str(), entry))
        .collect()
}

/// What happens to a model; `None` for nothing.
fn model(
    neutral: &mut Neutral,
    name: &str,
    (old, before): (&ModelsFile, Option<&ModelEntry>),
    (new, after): (&ModelsFile, Option<&ModelEntry>),
) -> Option<ModelDiff> {
    let mut hunks: Vec<(Hunk, Vec<Combination>)> = Vec::new();
    for (case, mtp) in Neutral::cases().flat_map(|case| MTP.map(|mtp| (case, mtp))) {
        let combination = Combination {
            mode: case.mode,
            role: case.role,
            mtp,
        };
        let one = resolve(neutral, old, before, case, mtp);
        let two = resolve(neutral, new, after, case, mtp);
        // What a model cannot do when it comes or goes never changed for anybody.
        let other_is_there = before.is_some() && after.is_some();
        let is_impossible = |side: &Resolved| matches!(side, Resolved::Impossible(_));
        if !other_is_there && (is_impossible(&one) || is_impossible(&two)) {
            continue;
        }
        for hunk in changed(&one, &two) {
            match hunks.iter_mut().find(|(known, _)| *known == hunk) {
                Some((_, commands)) => commands.push(combination),
                None => hunks.push((hunk, vec![combination])),
            }
        }
    }
    if hunks.is_empty() {
        return None;
    }
    let grouped = group(hunks);
    Some(ModelDiff {
        model: name.to_owned(),
        status: match (before, after) {
            (None, _) => Status::Added,
            (_, None) => Status::Removed,
            _ => Status::Changed,
        },
        changes: grouped,
    })
}

fn resolve(
    neutral: &mut Neutral,
    models: &ModelsFile,
    entry: Option<&ModelEntry>,
    case: Case,
    mtp: u32,
) -> Resolved {
    let Some(entry) = entry else {
        return Resolved::Absent;
    };
    let mut found = Diagnostics::default();
    let worker = neutral.worker(models, entry, case, mtp, &mut found);
    if found.has_errors() {
        return Resolved::Impossible(
            found
                .0
                .iter()
                .filter(|finding| finding.is_error())
                .map(|finding| Piece::open(finding.message.clone()))
                .collect(),
        );
    }
    let command = worker.command;
    let words = secret::shown_words(command.words());
    let mut words = words.iter();
    let groups = command
        .args
        .iter()
        .map(|group| {
            let shown: Vec<String> = words.by_ref().take(group.words.len()).cloned().collect();
            Piece {
                raw: words::join(&group.words),
                shown: words::join(&shown),
            }
        })
        .collect();
    let variables = command
        .env
        .iter()
        .map(|var| {
            let pair = |value: &str| format!("{}={}", var.name, words::quote(value));
            Piece {
                raw: pair(&var.value),
                shown: pair(&secret::shown(&var.name, &var.value)),
            }
        })
        .collect();
    Resolved::Command(groups, variables)
}

/// Edits that stand together, and of which part of the command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Hunk {
    Arguments(Vec<Edit>),
    Variables(Vec<Edit>),
    /// Findings; whether there was no command before either.
    Problems(Vec<Edit>, bool),
}

/// Edits of the same commands in one change: the reader sees each edit once, with all commands that have it.
fn group(hunks: Vec<(Hunk, Vec<Combination>)>) -> Vec<Change> {
    let mut grouped: Vec<Change> = Vec::new();
    for (hunk, commands) in hunks {
        let was_impossible = matches!(hunk, Hunk::Problems(_, true));
        let known = grouped.iter().position(|change| {
            change.commands == commands && change.was_impossible == was_impossible
        });
        let place = known.unwrap_or_else(|| {
            grouped.push(Change {
                commands,
                arguments: Vec::new(),
                variables: Vec::new(),
                was_impossible,
                problems: Vec::new(),
            });
            grouped.len() - 1
        });
        let change = &mut grouped[place];
        match hunk {
            Hunk::Arguments(edits) => change.arguments.extend(edits),
            Hunk::Variables(edits) => change.variables.extend(edits),
            Hunk::Problems(edits, _) => change.problems.extend(edits),
        }
    }
    grouped.sort_by_key(|change| (std::cmp::Reverse(change.commands.len()), change.commands[0]));
    grouped
}

/// What differs between two sides, piece by piece.
fn changed(one: &Resolved, two: &Resolved) -> Vec<Hunk> {
    let parts = |side: &Resolved| match side {
        Resolved::Command(arguments, variables) => {
            (arguments.clone(), variables.clone(), Vec::new())
        }
        Resolved::Impossible(problems) => (Vec::new(), Vec::new(), problems.clone()),
        Resolved::Absent => Default::default(),
    };
    let (arguments, variables, problems) = parts(one);
    let (new_arguments, new_variables, new_problems) = parts(two);
    let was_impossible = matches!(one, Resolved::Impossible(_));
    let problems = sequence(&problems, &new_problems);
    let mut hunks: Vec<Hunk> = problems
        .into_iter()
        .map(|edits| Hunk::Problems(edits, was_impossible && !new_problems.is_empty()))
        .collect();
    // That there is no command any more says it all.
    if !matches!(two, Resolved::Impossible(_)) {
        hunks.extend(
            sequence(&arguments, &new_arguments)
                .into_iter()
                .map(Hunk::Arguments),
        );
        hunks.extend(
            sequence(&variables, &new_variables)
                .into_iter()
                .map(Hunk::Variables),
        );
    }
    hunks
}

/// Runs of lines that go and come, by the longest common subsequence, so that a change of order shows as well.
fn sequence(old: &[Piece], new: &[Piece]) -> Vec<Vec<Edit>> {
    let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            longest[i][j] = if a == b {
                longest[i + 1][j + 1] + 1
            } else {
                longest[i + 1][j].max(longest[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut runs = Vec::new();
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            runs.push(std::mem::take(&mut edits));
            i += 1;
            j += 1;
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            edits.push(Edit {
                added: false,
                text: old[i].shown.clone(),
            });
            i += 1;
        } else {
            edits.push(Edit {
                added: true,
                text: new[j].shown.clone(),
            });
            j += 1;
        }
    }
    runs.push(edits);
    runs.retain(|run| !run.is_empty());
    runs.into_iter().map(say_hidden_changes).collect()
}

/// A value that is hidden looks the same before and after; say that it is another one.
fn say_hidden_changes(mut edits: Vec<Edit>) -> Vec<Edit> {
    let gone: BTreeSet<String> = edits
        .iter()
        .filter(|edit| !edit.added)
        .map(|edit| edit.text.clone())
        .collect();
    for edit in edits
        .iter_mut()
        .filter(|edit| edit.added && gone.contains(&edit.text) && edit.text.contains(secret::MASK))
    {
        edit.text.push_str(" (another value)");
    }
    edits
}
