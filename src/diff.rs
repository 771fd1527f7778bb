//! Two models files → what changes in the resolved command of every model × mode × role × MTP. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::JobArgs;
use crate::domain::diagnostic::Diagnostics;
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::{ModelEntry, ModelsFile};
use crate::domain::provenance::{Source, Sourced};
use crate::domain::secret;
use crate::domain::settings::Settings;
use crate::domain::topology::{Mode, Role};
use crate::input::settings;
use crate::resolve::{self, Inputs, topology};

/// Speculative tokens that are compared: none and one.
pub const MTP: [u32; 2] = [0, 1];

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

/// All combinations, in order.
pub fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    for mode in Mode::ALL {
        for role in Role::ALL {
            all.extend(MTP.map(|mtp| Combination { mode, role, mtp }));
        }
    }
    all
}

/// What a command looks like, or why it cannot be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Resolved {
    /// Argument groups and variables, as they may be shown.
    Command(Vec<String>, Vec<String>),
    /// The findings that stop it.
    Impossible(Vec<String>),
    /// The model is not in the file.
    Absent,
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
pub fn compare(old: &ModelsFile, new: &ModelsFile) -> Comparison {
    let new_names: BTreeMap<&str, &ModelEntry> = by_name(new);
    let old_names: BTreeMap<&str, &ModelEntry> = by_name(old);
    let added = new.names().filter(|name| !old_names.contains_key(name));
    let names: Vec<&str> = old.names().chain(added).collect();
    let neutral = Neutral::new();
    let models = names
        .iter()
        .filter_map(|name| {
            let before = old_names.get(name).copied();
            let after = new_names.get(name).copied();
            neutral.model(name, (old, before), (new, after))
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

/// Surroundings that are the same on both sides and on every machine.
struct Neutral {
    environment: Environment,
    host: HostFacts,
    settings: Settings,
}

impl Neutral {
    fn new() -> Self {
        let args = JobArgs {
            model_dir: Some("MODEL_DIR".into()),
            host_ip: Some("HOST_IP".into()),
            ..JobArgs::default()
        };
        let environment = Environment::default();
        let (settings, _) = settings::read(&args, &environment);
        Self {
            environment,
            host: HostFacts::default(),
            settings,
        }
    }

    fn model(
        &self,
        name: &str,
        (old, before): (&ModelsFile, Option<&ModelEntry>),
        (new, after): (&ModelsFile, Option<&ModelEntry>),
    ) -> Option<ModelDiff> {
        let mut changes: BTreeMap<(Resolved, Resolved), Vec<Combination>> = BTreeMap::new();
        for combination in combinations() {
            let one = self.resolve(name, old, before, combination);
            let two = self.resolve(name, new, after, combination);
            // What a model cannot do when it comes or goes never changed for anybody.
            let other_is_there = before.is_some() && after.is_some();
            let is_impossible = |side: &Resolved| matches!(side, Resolved::Impossible(_));
            if !other_is_there && (is_impossible(&one) || is_impossible(&two)) {
                continue;
            }
            if one != two {
                changes.entry((one, two)).or_default().push(combination);
            }
        }
        if changes.is_empty() {
            return None;
        }
        let mut grouped: Vec<Change> = Vec::new();
        for ((one, two), commands) in changes {
            let change = edits(&one, &two, commands);
            // Commands differ among themselves, but the same edit is one line for the reader.
            match grouped.iter_mut().find(|known| {
                known.arguments == change.arguments
                    && known.variables == change.variables
                    && known.problems == change.problems
            }) {
                Some(known) => known.commands.extend(change.commands),
                None => grouped.push(change),
            }
        }
        for change in &mut grouped {
            change.commands.sort();
        }
        grouped
            .sort_by_key(|change| (std::cmp::Reverse(change.commands.len()), change.commands[0]));
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
        &self,
        name: &str,
        models: &ModelsFile,
        entry: Option<&ModelEntry>,
        combination: Combination,
    ) -> Resolved {
        let Some(entry) = entry else {
            return Resolved::Absent;
        };
        let mut settings = self.settings.clone();
        let Combination { mode, role, mtp } = combination;
        settings.model = Some(Sourced::default_of(name.to_owned()));
        settings.role = Some(Sourced::default_of(role));
        // As if on the command line, so that messages name what a reader could type.
        let option = |name: &str| Source::CommandLine(name.to_owned());
        for setting in [
            &mut settings.mode.prefill,
            &mut settings.mode.decode,
            &mut settings.mode.standalone,
        ] {
            *setting = Sourced::new(mode, option("--mode"));
        }
        settings.mtp = Sourced::new(mtp, option("--mtp"));
        let mut found = Diagnostics::default();
        let placement = topology::place(&settings, &self.environment, &mut found);
        let inputs = Inputs {
            settings: &settings,
            models,
            entry,
            environment: &self.environment,
            host: &self.host,
            folder: &ModelFolder::Plain,
        };
        let worker = resolve::server::worker(inputs, &placement, &placement.slots[0], &mut found);
        if found.has_errors() {
            return Resolved::Impossible(
                found
                    .0
                    .iter()
                    .filter(|finding| finding.is_error())
                    .map(|finding| finding.message.clone())
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
                let quoted: Vec<_> = words
                    .by_ref()
                    .take(group.words.len())
                    .map(|word| shell_words::quote(word))
                    .collect();
                quoted.join(" ")
            })
            .collect();
        let variables = command
            .env
            .iter()
            .map(|var| {
                format!(
                    "{}={}",
                    var.name,
                    shell_words::quote(&secret::shown(&var.name, &var.value))
                )
            })
            .collect();
        Resolved::Command(groups, variables)
    }
}

fn edits(one: &Resolved, two: &Resolved, commands: Vec<Combination>) -> Change {
    let parts = |side: &Resolved| match side {
        Resolved::Command(arguments, variables) => {
            (arguments.clone(), variables.clone(), Vec::new())
        }
        Resolved::Impossible(problems) => (Vec::new(), Vec::new(), problems.clone()),
        Resolved::Absent => Default::default(),
    };
    let (arguments, variables, problems) = parts(one);
    let (new_arguments, new_variables, new_problems) = parts(two);
    let problems = sequence(&problems, &new_problems);
    if matches!(two, Resolved::Impossible(_)) {
        // That there is no command any more says it all.
        return Change {
            commands,
            arguments: Vec::new(),
            variables: Vec::new(),
            problems,
        };
    }
    Change {
        commands,
        arguments: sequence(&arguments, &new_arguments),
        variables: sequence(&variables, &new_variables),
        problems,
    }
}

/// Lines that go and come, by the longest common subsequence, so that a change of order shows as well.
fn sequence(old: &[String], new: &[String]) -> Vec<Edit> {
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
    let mut edits = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            i += 1;
            j += 1;
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            edits.push(Edit {
                added: false,
                text: old[i].clone(),
            });
            i += 1;
        } else {
            edits.push(Edit {
                added: true,
                text: new[j].clone(),
            });
            j += 1;
        }
    }
    edits
}

/// A set of commands in words: `every command`, `mode tp-dp, ep-dp · role decode · MTP 1`.
pub fn in_words(commands: &[Combination]) -> Vec<String> {
    let set: BTreeSet<Combination> = commands.iter().copied().collect();
    if set.len() == combinations().len() {
        return vec!["every command".into()];
    }
    if let Some(words) = product(&set) {
        return vec![words];
    }
    Mode::ALL
        .into_iter()
        .flat_map(|mode| {
            let part: BTreeSet<Combination> =
                set.iter().copied().filter(|one| one.mode == mode).collect();
            if part.is_empty() {
                return Vec::new();
            }
            product(&part).map_or_else(
                || {
                    part.iter()
                        .map(|one| {
                            format!("mode {} · role {} · MTP {}", one.mode, one.role, one.mtp)
                        })
                        .collect()
                },
                |words| vec![words],
            )
        })
        .collect()
}

/// Words for a set that is a full product of modes, roles and MTP.
fn product(set: &BTreeSet<Combination>) -> Option<String> {
    let modes: BTreeSet<Mode> = set.iter().map(|one| one.mode).collect();
    let roles: BTreeSet<Role> = set.iter().map(|one| one.role).collect();
    let tokens: BTreeSet<u32> = set.iter().map(|one| one.mtp).collect();
    if modes.len() * roles.len() * tokens.len() != set.len() {
        return None;
    }
    let join = |names: Vec<String>| names.join(", ");
    let mut parts = Vec::new();
    if modes.len() < Mode::ALL.len() {
        parts.push(format!(
            "mode {}",
            join(modes.iter().map(ToString::to_string).collect())
        ));
    }
    if roles.len() < Role::ALL.len() {
        parts.push(format!(
            "role {}",
            join(roles.iter().map(ToString::to_string).collect())
        ));
    }
    if tokens.len() < MTP.len() {
        parts.push(format!(
            "MTP {}",
            join(tokens.iter().map(ToString::to_string).collect())
        ));
    }
    Some(parts.join(" · "))
}
