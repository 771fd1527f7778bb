//! What is known of an endpoint, and how it is put into words.

use std::time::Duration;

use super::super::event::{Answer, Phase, spoken};
use super::Supervisor;

/// So many names stand in one line.
const NAMES: usize = 6;

/// What is known of an endpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    /// The last answer.
    pub(super) last: Option<Answer>,
    /// Since when the answers have been like that.
    pub(super) since: Duration,
    /// Whether it has ever been ready (a router seen by another rank: up).
    pub(super) was_ready: bool,
    /// Whether it counts as ready now.
    pub(super) ready: bool,
    /// Whether somebody has had the port open.
    pub(super) opened: bool,
    /// Refusals in a row.
    pub(super) refused: u32,
    /// Since when it has not answered at all.
    pub(super) silent_since: Option<Duration>,
}

impl Watched {
    pub(super) fn take(&mut self, now: Duration, answer: Answer) {
        self.opened |= answer.is_open();
        self.refused = if answer == Answer::Refused {
            self.refused + 1
        } else {
            0
        };
        let silent = matches!(
            answer,
            Answer::Timeout
                | Answer::Busy
                | Answer::Unreachable(_)
                | Answer::Broken(_)
                | Answer::Unresolved(_)
        );
        self.silent_since = silent.then(|| self.silent_since.unwrap_or(now));
        if self.last.as_ref() != Some(&answer) {
            self.since = now;
        }
        self.last = Some(answer);
    }

    pub(super) fn state(&self, now: Duration) -> String {
        let last = self
            .last
            .as_ref()
            .map_or_else(|| "not asked yet".to_owned(), Answer::to_string);
        let since = now.saturating_sub(self.since);
        let was = if self.was_ready {
            ", was ready before"
        } else {
            ""
        };
        format!("{last} for {}{was}", spoken(since))
    }
}

impl Supervisor {
    /// What is being waited for, for the heartbeat and the live display; empty when for nothing.
    pub fn waiting_for(&self, now: Duration) -> String {
        let waited = spoken(now.saturating_sub(self.entered));
        match self.phase {
            Phase::Servers => {
                let unready = self.endpoints.iter().filter(|one| !one.ready).count();
                let count = self.endpoints.len();
                let names = self.unready(now);
                format!("waiting for {unready} of {count} servers, {waited} so far: {names}")
            }
            Phase::Router => {
                let own = if self.plan.leads {
                    String::new()
                } else {
                    self.own_unready(now)
                };
                let state = self.router.state(now);
                let place = self.plan.router.as_deref().unwrap_or_default();
                format!("waiting for the router ({place}), {waited} so far: {state}{own}")
            }
            Phase::Smoke => format!("waiting for the first token, {waited} so far"),
            Phase::Workload => format!("the workload runs, {waited} so far"),
            Phase::Serving => format!("serving, {waited} so far"),
            Phase::Hold => format!(
                "workload done, the router stays until all ranks have seen it, {waited} so far"
            ),
            Phase::Linger => format!("workload done, servers stay for a while, {waited} so far"),
            Phase::Teardown => {
                let names: Vec<&str> = self.alive().map(|proc| self.plan.name(proc)).collect();
                format!("ending {}, {waited} so far", names.join(", "))
            }
            Phase::Preflight | Phase::Done => String::new(),
        }
    }

    pub(super) fn own_unready(&self, now: Duration) -> String {
        if self.endpoints.iter().any(|one| !one.ready) {
            format!("; own server: {}", self.unready(now))
        } else {
            String::new()
        }
    }

    pub(super) fn unready(&self, now: Duration) -> String {
        let unready: Vec<String> = self
            .plan
            .endpoints
            .iter()
            .zip(&self.endpoints)
            .filter(|(_, seen)| !seen.ready)
            .map(|(plan, seen)| format!("{} ({}) {}", plan.name, plan.place, seen.state(now)))
            .collect();
        let shown = unready[..unready.len().min(NAMES)].join("; ");
        match unready.len().saturating_sub(NAMES) {
            0 => shown,
            more => format!("{shown}; and {more} more"),
        }
    }
}
