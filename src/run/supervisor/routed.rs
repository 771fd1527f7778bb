//! From the servers' readiness to the workload: the router, here or on another rank, the one token, the workload's start.

use std::time::Duration;

use super::super::event::{Action, Answer, Level, Phase, Proc, Target, Verdict, spoken};
use super::{State, Supervisor};
use crate::exit;

/// Refusals in a row after which a router that was up is gone.
const GONE_AFTER: u32 = 2;
/// A router that does not answer is busy, for this long.
const BUSY_FOR: Duration = Duration::from_mins(1);

impl Supervisor {
    pub(super) fn on_own_router(&mut self, now: Duration, answer: Answer, out: &mut Vec<Action>) {
        let lives = self.procs.get(&Proc::Router) == Some(&State::Running);
        if self.phase != Phase::Router || !lives {
            return;
        }
        let ready = answer == Answer::Ready;
        self.router.take(now, answer);
        if ready {
            self.router_since = Some(now);
            out.push(Action::Unwatch(Target::Router));
            let took = spoken(now.saturating_sub(self.entered));
            Self::say(
                Level::Info,
                format!("the router is ready after {took}"),
                out,
            );
            self.ready_for_clients(now, out);
        }
    }

    pub(super) fn ready_for_clients(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.plan.smoke {
            self.enter(now, Phase::Smoke, out);
            self.limit = Some(now + self.plan.limits.smoke);
            self.next_heartbeat = Some(now + self.plan.limits.heartbeat);
            Self::say(Level::Info, "asking for one token", out);
            out.push(Action::Smoke);
        } else {
            self.start_workload(now, out);
        }
    }

    pub(super) fn on_smoke(
        &mut self,
        now: Duration,
        result: Result<(), String>,
        out: &mut Vec<Action>,
    ) {
        if self.phase != Phase::Smoke {
            return;
        }
        match result {
            Ok(()) => {
                let took = spoken(now.saturating_sub(self.entered));
                Self::say(
                    Level::Info,
                    format!("the first token came after {took}"),
                    out,
                );
                self.next_look = None;
                self.start_workload(now, out);
            }
            Err(why) => {
                let reason = format!("no token came: {why}");
                let culprit = self.client_name();
                self.fail_with(now, exit::UNAVAILABLE, reason, culprit, out);
            }
        }
    }

    fn start_workload(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.plan.workload {
            self.enter(now, Phase::Workload, out);
            self.limit = self.plan.limits.workload_timeout.map(|limit| now + limit);
            Self::say(Level::Info, "starting the workload", out);
            self.spawn(Proc::Workload, out);
        } else {
            self.enter(now, Phase::Serving, out);
            Self::say(Level::Info, "serving until a signal", out);
        }
    }

    /// On the other ranks.
    pub(super) fn wait_for_router(&mut self, now: Duration, out: &mut Vec<Action>) {
        self.enter(now, Phase::Router, out);
        let limits = &self.plan.limits;
        self.limit = Some(now + limits.wait_server + limits.wait_router + BUSY_FOR);
        self.next_heartbeat = Some(now + limits.heartbeat);
        self.router.since = now;
        out.push(Action::Watch(Target::Router));
    }

    pub(super) fn on_far_router(&mut self, now: Duration, answer: Answer, out: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::Router | Phase::Serving) {
            return;
        }
        // Whatever answers there has the port open.
        let up = answer.is_http() || answer == Answer::NotHttp;
        self.router.take(now, answer);
        if self.phase == Phase::Router {
            if up {
                self.router.was_ready = true;
                self.enter(now, Phase::Serving, out);
                Self::say(
                    Level::Info,
                    "the router is up; serving until it is gone",
                    out,
                );
            }
            // One that hung from its first moment on is gone as well once its port is closed.
            if !self.router.opened || self.router.refused < GONE_AFTER {
                return;
            }
        }
        if self.router.refused >= GONE_AFTER {
            Self::say(Level::Info, "the router is gone: the job is over", out);
            self.settle(exit::OK, Verdict::Done, "the router is gone".into(), None);
            self.begin_teardown(now, out);
            return;
        }
        let silent = self
            .router
            .silent_since
            .map(|since| now.saturating_sub(since));
        if silent.is_some_and(|silent| silent >= BUSY_FOR) {
            let place = self.plan.router.as_deref().unwrap_or_default();
            let reason = format!(
                "the router ({place}) was up and now: {}",
                self.router.state(now)
            );
            self.fail_with(now, exit::UNAVAILABLE, reason, Some("router".into()), out);
        }
    }

    /// Whoever clients speak to.
    pub(super) fn client_name(&self) -> Option<String> {
        match self.plan.router {
            Some(_) => Some("router".into()),
            None => self.plan.servers.first().cloned(),
        }
    }
}
