//! The options of a rehearsal as words that can be handed on: what was given on the line, changed where this machine asks for it.

use std::ffi::OsString;

use anyhow::Context as _;
use clap::{ArgAction, Args as _, CommandFactory as _, Parser as _};

use crate::cli::{self, Cli, JobArgs, LifeArgs};

/// Options as they were given: id and word. Each is one word, `--name=value`.
#[derive(Debug, Clone, Default)]
pub struct Words(Vec<(String, OsString)>);

impl Words {
    fn of(command: &clap::Command, matches: &clap::ArgMatches) -> Self {
        let mut words = Self::default();
        for arg in command.get_arguments() {
            let (id, Some(long)) = (arg.get_id().as_str(), arg.get_long()) else {
                continue;
            };
            if matches.value_source(id) != Some(clap::parser::ValueSource::CommandLine) {
                continue;
            }
            let plain = OsString::from(format!("--{long}"));
            match arg.get_action() {
                ArgAction::SetTrue => words.0.push((id.to_owned(), plain)),
                ArgAction::Count => {
                    let count = usize::from(matches.get_count(id));
                    words
                        .0
                        .extend(std::iter::repeat_n((id.to_owned(), plain), count));
                }
                _ => words
                    .0
                    .extend(matches.get_raw(id).into_iter().flatten().map(|value| {
                        let mut word = plain.clone();
                        word.push("=");
                        word.push(value);
                        (id.to_owned(), word)
                    })),
            }
        }
        words
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|(own, _)| own == id)
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.0.retain(|(own, _)| own != id);
    }

    pub(super) fn set(&mut self, id: &str, value: &str) {
        self.remove(id);
        let word = format!("--{}={value}", id.replace('_', "-"));
        self.0.push((id.to_owned(), word.into()));
    }

    pub(super) fn set_if_absent(&mut self, id: &str, value: &str) {
        if !self.has(id) {
            self.set(id, value);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &OsString> {
        self.0.iter().map(|(_, word)| word)
    }

    /// The same as a job's options.
    pub(super) fn job(&self) -> anyhow::Result<JobArgs> {
        let line = ["atom-launch", "plan"].map(OsString::from);
        let parsed = Cli::try_parse_from(line.iter().chain(self.all()))
            .context("cannot read the rehearsal's own options")?;
        match parsed.command {
            Some(cli::Command::Plan(plan)) => Ok(plan.job),
            _ => anyhow::bail!("the rehearsal's own options are no job"),
        }
    }
}

/// The job's options and those of a rank's life.
#[derive(Debug, Clone, Default)]
pub struct Given {
    pub(super) job: Words,
    pub(super) life: Words,
}

/// The options on the line of a rehearsal.
pub fn own_words(line: &[OsString]) -> Given {
    let Ok(matches) = Cli::command().try_get_matches_from(line) else {
        return Given::default();
    };
    let Some((_, matches)) = matches.subcommand() else {
        return Given::default();
    };
    let empty = || clap::Command::new("options");
    Given {
        job: Words::of(&JobArgs::augment_args(empty()), matches),
        life: Words::of(&LifeArgs::augment_args(empty()), matches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Given {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        own_words(&words)
    }

    #[test]
    fn options_are_handed_on_as_they_were_given() {
        let given = given(
            "atom-launch rehearse --model M --mode=ep-dp -vv --env A=1 --env B=2 --load-time 3 --grace 5 --smoke -- run --model X",
        );
        let words = |words: &Words| -> Vec<String> {
            words
                .all()
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            words(&given.job),
            [
                "--model=M",
                "--mode=ep-dp",
                "--env=A=1",
                "--env=B=2",
                "--verbose",
                "--verbose"
            ]
        );
        assert_eq!(words(&given.life), ["--smoke", "--grace=5"]);
        let job = given.job.job().unwrap();
        assert_eq!((job.model.as_deref(), job.verbose), (Some("M"), 2));
    }
}
