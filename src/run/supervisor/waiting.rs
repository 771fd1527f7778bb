//! From the first health check to the workload's end.

use std::time::Duration;

use super::super::engine_watch::{Finding, Sample};
use super::super::event::{Action, Answer, Level, Outcome, Phase, Proc, Target, spoken};
use super::{State, Supervisor};
use crate::exit;

/// Refusals in a row after which a server that was ready is gone. Its own rank usually says so first.
const LOST_AFTER: u32 = 3;
/// Beyond the grace, once the router starts: for so long it must have refused.
const LOST_FOR: Duration = Duration::from_secs(10);
/// Poll intervals for which the leading rank keeps the router, so that the others can have seen it.
const HOLD_POLLS: u32 = 3;
/// Up to this many servers, each one's readiness is a line of its own.
const SAY_EACH: usize = 16;

impl Supervisor {
    pub(super) fn on_probe(
        &mut self,
        now: Duration,
        target: Target,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        match target {
            Target::Endpoint(index) if index < self.endpoints.len() => {
                self.on_server_answer(now, index, answer, out);
            }
            Target::Endpoint(_) => {}
            Target::Router if self.plan.leads => self.on_own_router(now, answer, out),
            Target::Router => self.on_far_router(now, answer, out),
        }
    }

    /// Whether one of this rank's own servers has been seen ready.
    pub(super) fn server_is_ready(&self, server: usize) -> bool {
        self.plan
            .endpoints
            .iter()
            .zip(&self.endpoints)
            .any(|(plan, seen)| plan.own == Some(server) && seen.ready)
    }

    fn on_server_answer(
        &mut self,
        now: Duration,
        index: usize,
        answer: Answer,
        out: &mut Vec<Action>,
    ) {
        let own = self.plan.endpoints[index].own;
        let waiting = match self.phase {
            Phase::Servers => true,
            // The other ranks look at their own servers beside the router.
            Phase::Router | Phase::Serving if !self.plan.leads => true,
            Phase::Router | Phase::Smoke | Phase::Workload | Phase::Serving => own.is_none(),
            _ => false,
        };
        let lives =
            own.is_none_or(|server| self.procs.get(&Proc::Server(server)) == Some(&State::Running));
        if !waiting || !lives {
            return;
        }
        let seen = &mut self.endpoints[index];
        let before = seen.ready;
        seen.ready = match answer {
            Answer::Ready => true,
            // Busy is not down; anything else that it says of itself counts.
            Answer::Timeout | Answer::Busy => before,
            _ => false,
        };
        let stranger = matches!(answer, Answer::Stranger(_)) && seen.last.as_ref() != Some(&answer);
        seen.take(now, answer);
        let first = seen.ready && !seen.was_ready;
        seen.was_ready |= seen.ready;
        if stranger {
            let text = format!(
                "{} is not ready: {}",
                self.plan.endpoints[index].name,
                seen.state(now)
            );
            Self::say(Level::Warn, text, out);
        }
        // Later on its own rank has the first word, which comes when it has ended what is left: that is the cause to be told.
        let patience = match self.phase {
            Phase::Servers => Duration::ZERO,
            _ => self.plan.limits.grace + LOST_FOR,
        };
        let lost = seen.refused >= LOST_AFTER && now.saturating_sub(seen.since) >= patience;
        if seen.was_ready && own.is_none() && lost {
            let name = self.plan.endpoints[index].name.clone();
            let reason = format!("{name} was ready and is gone: {}", seen.state(now));
            self.fail_with(now, exit::UNAVAILABLE, reason, Some(name), out);
            return;
        }
        if first {
            self.on_first_ready(now, index, out);
        }
        let waits = self.plan.leads && self.phase == Phase::Servers;
        if waits && self.endpoints.iter().all(|one| one.ready) {
            self.servers_ready(now, out);
        }
    }

    fn on_first_ready(&mut self, now: Duration, index: usize, out: &mut Vec<Action>) {
        let count = self.endpoints.len();
        let ready = self.endpoints.iter().filter(|one| one.ready).count();
        if count <= SAY_EACH {
            let name = &self.plan.endpoints[index].name;
            let took = spoken(now.saturating_sub(self.entered));
            let text = if self.plan.leads {
                format!("{name} is ready after {took} ({ready} of {count})")
            } else {
                format!("{name} is ready after {took}")
            };
            Self::say(Level::Info, text, out);
        }
        if !self.plan.leads {
            out.push(Action::Unwatch(Target::Endpoint(index)));
        }
        if self.plan.endpoints[index].own.is_some() {
            self.schedule_look(now);
        }
    }

    pub(super) fn servers_ready(&mut self, now: Duration, out: &mut Vec<Action>) {
        // Those of other ranks stay in sight: where nobody ends this rank when they are gone (a node whose slurmd has died, no
        // SLURM at all), it would serve nobody for ever. But a benchmark must not notice that.
        for (index, plan) in self.plan.endpoints.iter().enumerate() {
            let target = Target::Endpoint(index);
            out.push(match plan.own {
                Some(_) => Action::Unwatch(target),
                None => Action::Relax(target),
            });
        }
        self.schedule_look(now);
        let Some(router) = self.plan.router.clone() else {
            self.ready_for_clients(now, out);
            return;
        };
        let took = spoken(now.saturating_sub(self.entered));
        let count = self.endpoints.len();
        Self::say(
            Level::Info,
            format!("all {count} servers are ready after {took}; starting the router on {router}"),
            out,
        );
        self.enter(now, Phase::Router, out);
        self.limit = Some(now + self.plan.limits.wait_router);
        self.next_heartbeat = Some(now + self.plan.limits.heartbeat);
        self.router.since = now;
        self.spawn(Proc::Router, out);
        out.push(Action::Watch(Target::Router));
    }

    pub(super) fn on_vitals(
        &mut self,
        now: Duration,
        server: usize,
        sample: &Sample,
        out: &mut Vec<Action>,
    ) {
        let lives = self.procs.get(&Proc::Server(server)) == Some(&State::Running);
        let ready = self.server_is_ready(server);
        if self.phase == Phase::Teardown || !lives || ready && !self.is_proving(now) {
            return;
        }
        let grace = self.plan.limits.engine_death_grace;
        let Some(watch) = self.engines.get_mut(server) else {
            return;
        };
        let name = &self.plan.servers[server];
        if ready {
            if let Some(text) = watch.lost(now, sample) {
                let reason =
                    format!("{name} lost an engine process before the first token ({text})");
                let culprit = Some(Proc::Server(server));
                self.fail(now, exit::UNAVAILABLE, reason, culprit, out);
            }
            return;
        }
        match watch.observe(now, sample, grace) {
            Finding::Nothing => {}
            Finding::Suspect(text) => {
                let text = format!(
                    "{name}: {text} and the server is not ready; it may wait for that process for ever. \
                     Without a sign of life it is given up in {}",
                    spoken(grace)
                );
                Self::say(Level::Warn, text, out);
            }
            Finding::Cleared => {
                Self::say(
                    Level::Info,
                    format!("{name} shows signs of life again"),
                    out,
                );
            }
            Finding::Dead(text) => {
                let reason = format!(
                    "{name} lost an engine process before it was ready ({text}) and has shown no sign of life for {}",
                    spoken(grace)
                );
                self.fail(
                    now,
                    exit::UNAVAILABLE,
                    reason,
                    Some(Proc::Server(server)),
                    out,
                );
            }
        }
    }

    /// All that is due outside the teardown.
    pub(super) fn on_time(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.next_look.is_some_and(|at| now >= at) {
            for server in 0..self.plan.servers.len() {
                if !self.server_is_ready(server) || self.is_proving(now) {
                    out.push(Action::Inspect(server));
                }
            }
            self.schedule_look(now);
        }
        if self.next_heartbeat.is_some_and(|at| now >= at) {
            out.push(Action::Heartbeat(self.waiting_for(now)));
            self.next_heartbeat =
                Some(now + self.plan.limits.heartbeat.max(Duration::from_millis(100)));
        }
        if self.limit.is_some_and(|at| now >= at) {
            self.limit = None;
            self.on_limit(now, out);
        }
    }

    fn on_limit(&mut self, now: Duration, out: &mut Vec<Action>) {
        let waited = spoken(now.saturating_sub(self.entered));
        match self.phase {
            Phase::Servers => {
                let unready: Vec<usize> = (0..self.endpoints.len())
                    .filter(|index| !self.endpoints[*index].ready)
                    .collect();
                let reason = format!(
                    "not all servers became ready within {waited}: {}",
                    self.unready(now)
                );
                for server in unready
                    .iter()
                    .filter_map(|index| self.plan.endpoints[*index].own)
                {
                    out.push(Action::ShowLog(Proc::Server(server)));
                }
                let culprit = unready
                    .first()
                    .map(|index| self.plan.endpoints[*index].name.clone());
                self.fail_with(now, exit::UNAVAILABLE, reason, culprit, out);
            }
            Phase::Router => {
                let place = self.plan.router.as_deref().unwrap_or_default();
                let reason = format!(
                    "the router ({place}) did not become ready within {waited}: {}",
                    self.router.state(now)
                );
                let own = self.plan.leads.then_some(Proc::Router);
                match own {
                    Some(proc) => self.fail(now, exit::UNAVAILABLE, reason, Some(proc), out),
                    None => {
                        self.fail_with(now, exit::UNAVAILABLE, reason, Some("router".into()), out);
                    }
                }
            }
            Phase::Smoke => {
                let reason = format!("no token came within {waited}");
                let culprit = self.client_name();
                self.fail_with(now, exit::UNAVAILABLE, reason, culprit, out);
            }
            Phase::Workload => {
                let reason = format!("the workload ran into its limit of {waited}");
                self.fail_with(now, exit::TIMEOUT, reason, Some("workload".into()), out);
            }
            Phase::Hold | Phase::Linger => self.begin_teardown(now, out),
            Phase::Preflight | Phase::Serving | Phase::Teardown | Phase::Done => {}
        }
    }

    /// The workload has ended: decide, and keep the router for those who poll it.
    pub(super) fn after_workload(
        &mut self,
        now: Duration,
        outcome: Outcome,
        out: &mut Vec<Action>,
    ) {
        self.outcome = Some(outcome);
        let hold = self.router_since.filter(|_| self.plan.followers);
        self.hold = hold.map(|since| since + self.plan.limits.poll_interval * HOLD_POLLS);
        let until = self.hold.unwrap_or(now).max(now + self.plan.limits.linger);
        if until > now {
            let asked = !self.plan.limits.linger.is_zero();
            let phase = if asked { Phase::Linger } else { Phase::Hold };
            self.enter(now, phase, out);
            self.limit = Some(until);
        } else {
            self.begin_teardown(now, out);
        }
    }
}
