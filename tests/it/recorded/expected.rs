//! What must come of a job, and how a rule changes that.

use std::collections::{BTreeMap, BTreeSet};

use super::cases::Case;

/// What must come out: findings, and unless one is an error, the command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    pub(super) findings: BTreeSet<String>,
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The router's argv, on the rank that starts one.
    pub(super) router: Vec<String>,
}

impl Expected {
    /// Refused with this error.
    pub(super) fn error(&mut self, headline: impl std::fmt::Display) {
        self.findings.insert(format!("error[{headline}"));
    }

    pub(super) fn warning(&mut self, headline: impl std::fmt::Display) {
        self.findings.insert(format!("warning[{headline}"));
    }

    pub(super) fn refused(&self) -> bool {
        self.findings.iter().any(|line| line.starts_with("error["))
    }

    /// Replace words that stand together; they must be there.
    pub(super) fn replace(&mut self, old: &[&str], new: &[&str]) {
        let at = (0..=self.argv.len() - old.len())
            .find(|at| self.argv[*at..*at + old.len()] == *old)
            .unwrap_or_else(|| panic!("{old:?} not in {:?}", self.argv));
        let new = new.iter().map(|word| (*word).to_owned());
        self.argv.splice(at..at + old.len(), new);
    }

    /// Replace the value of a flag.
    pub(super) fn value(&mut self, flag: &str, value: &str) {
        let at = self.argv.iter().position(|word| word == flag).unwrap();
        value.clone_into(&mut self.argv[at + 1]);
    }

    /// Put words in front of a flag.
    pub(super) fn before(&mut self, flag: &str, words: &[&str]) {
        let all: Vec<&str> = words.iter().copied().chain([flag]).collect();
        self.replace(&[flag], &all);
    }

    /// Replace everything from a word on.
    pub(super) fn tail(&mut self, from: &str, words: &[&str]) {
        let at = self.argv.iter().rposition(|word| word == from).unwrap();
        self.argv.truncate(at);
        self.argv
            .extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// The old script started nothing here; we start what it started in another case.
    pub(super) fn as_in(&mut self, case: &Case) {
        self.argv = case.server.clone().unwrap();
        self.env = case.exported.clone();
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }
}
