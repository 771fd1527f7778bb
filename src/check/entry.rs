//! A whole entry: every field's words alone, then every command that can come of it.

use std::collections::BTreeSet;

use super::line::Line;
use super::{constraints, env, habits, words};
use crate::atom::argparse::{self, ProblemKind};
use crate::atom::table::Table;
use crate::domain::codes;
use crate::domain::command::{Command, same_option};
use crate::domain::diagnostic::{Code, Diagnostic, Diagnostics, Place};
use crate::domain::models::{ModelEntry, ModelsFile, Words};
use crate::domain::topology::{Mode, Role};
use crate::resolve::neutral::{Case, Neutral};
use crate::resolve::{child_env, parallel};

/// Looks at one entry after the other.
pub(super) struct Checker<'a> {
    models: &'a ModelsFile,
    table: &'a Table,
    neutral: &'a mut Neutral,
}

impl<'a> Checker<'a> {
    pub(super) fn new(models: &'a ModelsFile, table: &'a Table, neutral: &'a mut Neutral) -> Self {
        Self {
            models,
            table,
            neutral,
        }
    }

    /// All findings about one entry.
    pub(super) fn entry(&mut self, entry: &ModelEntry, found: &mut Diagnostics) {
        let mtp_works = self.mtp_flags(entry, found);
        for (field, words) in entry.words() {
            self.field(field, words, mtp_works, found);
            for word in words
                .words
                .iter()
                .filter(|word| env::has_password(&word.value))
            {
                let within = format!(" in `{field}`");
                found.push(env::password("a word", &within, Place::File(word.span)));
            }
        }
        env::of_entry(entry, found);
        let mut runnable = BTreeSet::new();
        for role in Role::ALL {
            for mode in Mode::ALL {
                for conflict in child_env::conflicts(entry, role, mode) {
                    found.push(conflict);
                }
                match parallel::mode_problem(entry, role, mode) {
                    // That a model has no flags for a mode is a choice; flags that do not do what the mode means are a mistake.
                    Some(problem) if problem.code != codes::MODE_WITHOUT_FLAGS => {
                        found.push(problem);
                    }
                    Some(_) => {}
                    None => {
                        runnable.insert((mode, role));
                    }
                }
            }
        }
        self.commands(entry, &runnable, mtp_works, found);
        blurred_modes(entry, found);
        without_effect(entry, &runnable, found);
        nothing_to_replace(entry, found);
    }

    /// `mtp_flags` must end in the option that waits for the number of tokens. Returns whether it does.
    fn mtp_flags(&self, entry: &ModelEntry, found: &mut Diagnostics) -> bool {
        let Some(words) = entry
            .mtp_flags
            .as_ref()
            .filter(|words| !words.words.is_empty())
        else {
            return false;
        };
        let line = Line::of_field("mtp_flags", words);
        let parsed = argparse::parse(&line.words, self.table);
        let last = line.words.len() - 1;
        let waits = parsed.problems.iter().any(|problem| {
            problem.word == last
                && problem.kind == ProblemKind::MissingValue
                && problem
                    .option
                    .is_some_and(|option| option.dest == "num_speculative_tokens")
        });
        // A server without the option is another finding.
        if !waits && !same_option(line.words[last], "--num-speculative-tokens") {
            let span = words.words[last].span;
            found.push(
                Diagnostic::error(
                    codes::MTP_FLAGS_END,
                    Place::File(span),
                    format!("`mtp_flags` must end in `--num-speculative-tokens`, behind which the number is put, found `{}` at its end", line.words[last].escape_debug()),
                )
                .help("move `--num-speculative-tokens` to the end, without a number"),
            );
        }
        waits
    }

    /// A field's words alone, so that one field's mistake cannot hide in the next one's words.
    fn field(&self, field: &'static str, words: &Words, mtp_works: bool, found: &mut Diagnostics) {
        let line = Line::of_field(field, words);
        let line = if field == "mtp_flags" && mtp_works {
            line.with("1")
        } else {
            line
        };
        let parsed = argparse::parse(&line.words, self.table);
        if field == "mtp_flags" && !mtp_works {
            // The end of the field is wrong; what follows from it would only repeat that.
            let unknown = parsed.problems.iter().filter(|problem| {
                matches!(
                    problem.kind,
                    ProblemKind::Unknown { .. } | ProblemKind::BadChoice { .. }
                )
            });
            words::problems(&line, unknown, found);
            return;
        }
        words::problems(&line, &parsed.problems, found);
        habits::all(&line, &parsed, found);
    }

    /// Constraints on every command that can come of the entry, and modes that come out the same.
    fn commands(
        &mut self,
        entry: &ModelEntry,
        runnable: &BTreeSet<(Mode, Role)>,
        mtp_works: bool,
        found: &mut Diagnostics,
    ) {
        let mut resolved: Vec<(Mode, Role, Command)> = Vec::new();
        let by_role = has_fields_by_role(entry);
        // With speculation a command has all the words that it has without, unless some of them wait for a method.
        let numbers: &[u32] = match (mtp_works, speculates_elsewhere(entry)) {
            (false, _) => &[0],
            (true, false) => &[1],
            (true, true) => &[1, 0],
        };
        for case in Neutral::cases() {
            let (mode, role) = (case.mode, case.role);
            // Without fields by role all roles have the same words, and a decode worker the most rules.
            if !runnable.contains(&(mode, role)) || !by_role && role != Role::Decode {
                continue;
            }
            for mtp in numbers {
                let command = self.resolve(entry, case, *mtp);
                let line = Line::of(&command.args).without_module();
                let parsed = argparse::parse(&line.words, self.table);
                let case = constraints::Case {
                    role,
                    gpus: None,
                    env: &command.env,
                };
                let mut of_command = Diagnostics::default();
                constraints::all(&line, &parsed, case, &mut of_command);
                habits::repeated_across_fields(&line, &parsed, &mut of_command);
                words::lacking(&line, &parsed, found);
                // Findings without a place in the file are about defaults, not about the file.
                for finding in of_command
                    .0
                    .into_iter()
                    .filter(|finding| matches!(finding.place, Place::File(_)))
                {
                    found.push(finding);
                }
                if *mtp == numbers[0] {
                    resolved.push((mode, role, command));
                }
            }
        }
        identical_modes(entry, &resolved, found);
    }

    fn resolve(&mut self, entry: &ModelEntry, case: Case, mtp: u32) -> Command {
        // What stops a command is found by the entry's own checks, where it has a place in the file.
        let mut ignored = Diagnostics::default();
        let worker = self
            .neutral
            .worker(self.models, entry, case, mtp, &mut ignored);
        worker.command
    }
}

/// Whether any field holds for one role alone.
fn has_fields_by_role(entry: &ModelEntry) -> bool {
    let of_role = |field: &str| field.starts_with("prefill_") || field.starts_with("decode_");
    entry.words().any(|(field, _)| of_role(field)) || entry.pairs().any(|(field, _)| of_role(field))
}

/// Whether speculative options stand outside `mtp_flags`, where they count without it as well.
fn speculates_elsewhere(entry: &ModelEntry) -> bool {
    const OPTIONS: &[&str] = &[
        "--method",
        "--draft",
        "--num-spec",
        "--num_spec",
        "--spec",
        "--dspark",
    ];
    entry
        .words()
        .filter(|(field, _)| *field != "mtp_flags")
        .flat_map(|(_, words)| &words.words)
        .any(|word| OPTIONS.iter().any(|option| word.value.starts_with(option)))
}

/// Two modes with the same words and variables in every role: one of them is not what it says.
fn identical_modes(
    entry: &ModelEntry,
    resolved: &[(Mode, Role, Command)],
    found: &mut Diagnostics,
) {
    type Looks<'c> = (Role, Vec<&'c str>, Vec<(&'c str, &'c str)>);
    let of = |mode: Mode| -> Vec<Looks<'_>> {
        resolved
            .iter()
            .filter(|(of, ..)| *of == mode)
            .map(|(_, role, command)| {
                let env = command
                    .env
                    .iter()
                    .map(|var| (var.name.as_str(), var.value.as_str()))
                    .collect();
                (*role, command.argv(), env)
            })
            .collect()
    };
    for (position, one) in Mode::ALL.into_iter().enumerate() {
        for other in Mode::ALL.into_iter().skip(position + 1) {
            let (a, b) = (of(one), of(other));
            if !a.is_empty() && a == b {
                found.push(
                    Diagnostic::warning(
                        codes::IDENTICAL_MODES,
                        Place::File(entry.name.span),
                        format!(
                            "model `{}` runs the same command in the modes {one} and {other}",
                            entry.name.value
                        ),
                    )
                    .help("a benchmark of the two would compare a command with itself"),
                );
            }
        }
    }
}

/// Switches of one mode in the flags of another.
fn blurred_modes(entry: &ModelEntry, found: &mut Diagnostics) {
    let everywhere = ["flags", "prefill_flags", "decode_flags"];
    let tp_dp = ["tp_dp_flags", "prefill_tp_dp_flags", "decode_tp_dp_flags"];
    for (field, words) in entry.words() {
        let (switches, means): (&[&str], &str) = if everywhere.contains(&field) {
            (
                &["--enable-dp-attention", "--enable-expert-parallel"],
                "every mode, tp as well",
            )
        } else if tp_dp.contains(&field) {
            (
                &["--enable-expert-parallel"],
                "mode tp-dp, which has no expert parallelism",
            )
        } else {
            continue;
        };
        for word in &words.words {
            if let Some(switch) = switches
                .iter()
                .find(|switch| same_option(&word.value, switch))
            {
                let right = if *switch == "--enable-expert-parallel" {
                    "ep_dp_flags"
                } else {
                    "tp_dp_flags"
                };
                found.push(
                    Diagnostic::warning(
                        codes::BLURRED_MODE,
                        Place::File(word.span),
                        format!("`{switch}` in `{field}` holds for {means}"),
                    )
                    .help(format!("put it into `{right}`")),
                );
            }
        }
    }
}

/// Fields that no command ever uses.
fn without_effect(entry: &ModelEntry, runnable: &BTreeSet<(Mode, Role)>, found: &mut Diagnostics) {
    let runs = |mode: Mode| runnable.iter().any(|(of, _)| *of == mode);
    let mut say = |code: Code, span, field: &str, why: &str| {
        found.push(Diagnostic::warning(
            code,
            Place::File(span),
            format!(
                "`{field}` of model `{}` never takes effect: {why}",
                entry.name.value
            ),
        ));
    };
    for (field, mode) in [("tp_dp_env", Mode::TpDp), ("ep_dp_env", Mode::EpDp)] {
        let pairs = entry
            .pairs()
            .find(|(name, _)| *name == field)
            .map(|(_, pairs)| pairs);
        if let Some(pairs) = pairs.filter(|pairs| !pairs.pairs.is_empty() && !runs(mode)) {
            say(
                codes::FIELD_WITHOUT_EFFECT,
                pairs.span,
                field,
                &format!("the model cannot run in mode {mode}"),
            );
        }
    }
    if let Some(config) = entry
        .online_quant_dpa_config
        .as_ref()
        .filter(|_| !runs(Mode::TpDp) && !runs(Mode::EpDp))
    {
        say(
            codes::FIELD_WITHOUT_EFFECT,
            config.0.span,
            "online_quant_dpa_config",
            "the model runs in no mode with data-parallel attention",
        );
    }
}

/// Fields that say what holds without them: an empty role field where there is nothing to replace, a folder with the model's own name.
fn nothing_to_replace(entry: &ModelEntry, found: &mut Diagnostics) {
    for (field, words) in entry.words().filter(|(_, words)| words.words.is_empty()) {
        let Some(shared) = field
            .strip_prefix("prefill_")
            .or_else(|| field.strip_prefix("decode_"))
        else {
            continue;
        };
        let replaces = entry
            .words()
            .any(|(other, words)| other == shared && !words.words.is_empty());
        if !replaces {
            found.push(
                Diagnostic::warning(codes::FIELD_WITHOUT_EFFECT, Place::File(words.span), format!("`{field}` of model `{}` is empty, and there is no `{shared}` that it would replace", entry.name.value))
                    .help("remove it"),
            );
        }
    }
    if let Some(folder) = entry
        .hf_dir
        .as_ref()
        .filter(|folder| folder.0.value == entry.name.value)
    {
        found.push(
            Diagnostic::warning(codes::FIELD_WITHOUT_EFFECT, Place::File(folder.0.span), format!("`hf_dir` of model `{}` is the model's own name, which is the folder without it", entry.name.value))
                .help("remove it"),
        );
    }
}
