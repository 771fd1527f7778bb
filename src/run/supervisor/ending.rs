//! Ends, failures and the way down: workload, router, servers.

use std::time::Duration;

use super::super::event::{
    Action, Exit, Level, Outcome, Phase, Proc, Target, Verdict, signal_name, spoken,
};
use super::{State, Supervisor};
use crate::exit;

/// A process that KILL does not end within this time never ends (it hangs in the kernel).
const UNKILLABLE: Duration = Duration::from_secs(10);
/// A stage that begins when the grace time is used up still has this much of it.
const LEAST_GRACE: Duration = Duration::from_secs(5);
/// How often the group of a stopped workload is looked at once its leader has ended.
const DRAIN_LOOK: Duration = Duration::from_millis(50);

/// The same signal again within this time is one signal: at its time limit SLURM sends TERM twice, a few milliseconds apart.
const ECHO: Duration = Duration::from_millis(200);

impl Supervisor {
    pub(super) fn on_ended(
        &mut self,
        now: Duration,
        proc: Proc,
        exit: Exit,
        alone: bool,
        out: &mut Vec<Action>,
    ) {
        let state = self.procs.get(&proc).copied().unwrap_or(State::Gone);
        if state == State::Gone {
            out.push(Action::Reap(proc));
            return;
        }
        // The rest of a stopped workload may still be writing its results. All else goes with its leader.
        let patient = match state {
            State::Stopping(end) if proc == Proc::Workload => Some(end),
            State::Draining(end, _, _) => Some(end),
            State::Asked | State::Running | State::Stopping(_) | State::Killed(_) | State::Gone => {
                None
            }
        };
        if let Some(end) = patient.filter(|end| !alone && now < *end) {
            self.procs
                .insert(proc, State::Draining(end, now + DRAIN_LOOK, exit));
            return;
        }
        out.push(Action::Reap(proc));
        self.procs.insert(proc, State::Gone);
        if self.phase == Phase::Teardown {
            self.advance(now, out);
            return;
        }
        if proc == Proc::Workload {
            let outcome = self.workload_outcome(exit, out);
            self.after_workload(now, outcome, out);
            return;
        }
        let early = match proc {
            Proc::Server(index) => !self.server_is_ready(index),
            Proc::Router => self.router_since.is_none(),
            Proc::Workload => false,
        };
        let when = if early {
            " before it was ready"
        } else {
            " before its time"
        };
        let mut reason = format!("{} {exit}{when}", self.plan.name(proc));
        if proc == Proc::Router && self.holds(now) {
            // They would wait for it for as long as for a slow server. Only a code that is not 0 makes the scheduler end them.
            self.outcome = None;
            reason.push_str(": other ranks may never have seen it");
        }
        self.fail(now, exit.failure_code(), reason, Some(proc), out);
    }

    fn workload_outcome(&self, exit: Exit, out: &mut Vec<Action>) -> Outcome {
        let code = exit.shell_code();
        let reason = format!("the workload {exit}");
        let good = code == exit::OK;
        Self::say(
            if good { Level::Info } else { Level::Error },
            reason.clone(),
            out,
        );
        Outcome {
            code,
            verdict: if good { Verdict::Done } else { Verdict::Failed },
            phase: self.phase,
            reason,
            culprit: (!good).then(|| "workload".to_owned()),
        }
    }

    /// A process of ours is at fault.
    pub(super) fn fail(
        &mut self,
        now: Duration,
        code: u8,
        reason: String,
        proc: Option<Proc>,
        out: &mut Vec<Action>,
    ) {
        let culprit = proc.map(|proc| self.plan.name(proc).to_owned());
        if let Some(proc) = proc.filter(|_| self.phase != Phase::Teardown) {
            out.push(Action::ShowLog(proc));
        }
        self.fail_with(now, code, reason, culprit, out);
    }

    /// The job fails, unless how it went is settled already.
    pub(super) fn fail_with(
        &mut self,
        now: Duration,
        code: u8,
        reason: String,
        culprit: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let level = if self.outcome.is_none() {
            Level::Error
        } else {
            Level::Warn
        };
        let text = format!("{reason} (phase: {})", self.phase);
        Self::say(level, text, out);
        self.settle(code, Verdict::Failed, reason, culprit);
        if self.holds(now) && self.procs.get(&Proc::Router) == Some(&State::Running) {
            self.limit = self.hold;
        } else {
            self.begin_teardown(now, out);
        }
    }

    /// Whether the workload is over and other ranks may not have seen the router yet.
    fn holds(&self, now: Duration) -> bool {
        matches!(self.phase, Phase::Hold | Phase::Linger)
            && self.hold.is_some_and(|until| now < until)
    }

    /// Only the first verdict counts.
    pub(super) fn settle(
        &mut self,
        code: u8,
        verdict: Verdict,
        reason: String,
        culprit: Option<String>,
    ) {
        self.outcome.get_or_insert(Outcome {
            code,
            verdict,
            phase: self.phase,
            reason,
            culprit,
        });
    }

    pub(super) fn on_signal(&mut self, now: Duration, number: i32, out: &mut Vec<Action>) {
        let name = signal_name(number);
        if let Some((first, at)) = self.signalled {
            if first == number && now < at + ECHO {
                return;
            }
            self.hurried = true;
            Self::say(
                Level::Warn,
                format!("{name} again: sending KILL to everything"),
                out,
            );
            self.begin_teardown(now, out);
            self.kill_all(now, out);
            return;
        }
        self.signalled = Some((number, now));
        let more = "a second signal kills at once";
        if self.phase == Phase::Teardown {
            Self::say(Level::Info, format!("{name}: already ending; {more}"), out);
            return;
        }
        Self::say(
            Level::Info,
            format!("{name}: ending everything; {more}"),
            out,
        );
        let code = Exit::Signal(number).shell_code();
        self.settle(code, Verdict::Stopped, format!("stopped by {name}"), None);
        self.begin_teardown(now, out);
    }

    pub(super) fn begin_teardown(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.phase == Phase::Teardown || self.phase == Phase::Done {
            return;
        }
        self.enter(now, Phase::Teardown, out);
        self.teardown_since = now;
        self.next_look = None;
        for index in 0..self.endpoints.len() {
            out.push(Action::Unwatch(Target::Endpoint(index)));
        }
        if self.plan.router.is_some() {
            out.push(Action::Unwatch(Target::Router));
        }
        self.advance(now, out);
    }

    /// After a start that failed while everything is being ended.
    pub(super) fn go_on_ending(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.phase == Phase::Teardown {
            self.advance(now, out);
        }
    }

    /// Stop the next stage once nothing of the one before is left.
    fn advance(&mut self, now: Duration, out: &mut Vec<Action>) {
        for stage in 0..3 {
            let members: Vec<Proc> = self
                .alive()
                .filter(|proc| stage_of(*proc) == stage)
                .collect();
            for proc in &members {
                self.stop(now, *proc, out);
            }
            if !members.is_empty() {
                return;
            }
        }
        let outcome = self.outcome.clone().unwrap_or(Outcome {
            code: exit::BUG,
            verdict: Verdict::Failed,
            phase: self.phase,
            reason: "ended without a reason".into(),
            culprit: None,
        });
        self.phase = Phase::Done;
        out.push(Action::Enter(Phase::Done));
        out.push(Action::Finish(outcome));
    }

    pub(super) fn stop(&mut self, now: Duration, proc: Proc, out: &mut Vec<Action>) {
        if self.procs.get(&proc) != Some(&State::Running) {
            return;
        }
        if self.hurried {
            self.kill(now, proc, out);
            return;
        }
        let grace = self.plan.limits.grace;
        let end = (self.teardown_since + grace).max(now + grace.min(LEAST_GRACE));
        self.procs.insert(proc, State::Stopping(end));
        out.push(Action::Stop(proc));
    }

    fn kill(&mut self, now: Duration, proc: Proc, out: &mut Vec<Action>) {
        self.procs.insert(proc, State::Killed(now + UNKILLABLE));
        out.push(Action::Kill(proc));
    }

    fn kill_all(&mut self, now: Duration, out: &mut Vec<Action>) {
        let rest: Vec<(Proc, State)> = self
            .procs
            .iter()
            .map(|(proc, state)| (*proc, *state))
            .collect();
        for (proc, state) in rest {
            match state {
                State::Running | State::Stopping(_) => self.kill(now, proc, out),
                State::Draining(_, look, exit) => {
                    self.procs.insert(proc, State::Draining(now, look, exit));
                }
                State::Asked | State::Killed(_) | State::Gone => {}
            }
        }
    }

    /// All that is due in the teardown.
    pub(super) fn on_teardown_time(&mut self, now: Duration, out: &mut Vec<Action>) {
        let states: Vec<(Proc, State)> = self
            .procs
            .iter()
            .map(|(proc, state)| (*proc, *state))
            .collect();
        for (proc, state) in states {
            let name = self.plan.name(proc).to_owned();
            match state {
                State::Stopping(end) if now >= end => {
                    let waited = spoken(now.saturating_sub(self.teardown_since));
                    let text = format!(
                        "{name} has not ended {waited} after the teardown began: sending KILL to its group"
                    );
                    Self::say(Level::Warn, text, out);
                    self.kill(now, proc, out);
                }
                State::Draining(end, _, exit) if now >= end => {
                    self.on_ended(now, proc, exit, true, out);
                }
                State::Draining(end, look, exit) if now >= look => {
                    self.procs
                        .insert(proc, State::Draining(end, now + DRAIN_LOOK, exit));
                    out.push(Action::LookAgain(proc));
                }
                State::Killed(end) if now >= end => {
                    let text = format!(
                        "{name} does not end after KILL: it hangs in the kernel and is left behind"
                    );
                    Self::say(Level::Error, text, out);
                    self.procs.insert(proc, State::Gone);
                    self.advance(now, out);
                }
                State::Asked
                | State::Running
                | State::Stopping(_)
                | State::Draining(..)
                | State::Killed(_)
                | State::Gone => {}
            }
        }
    }
}

fn stage_of(proc: Proc) -> u8 {
    match proc {
        Proc::Workload => 0,
        Proc::Router => 1,
        Proc::Server(_) => 2,
    }
}
