//! What a look at the processes below a server means.

use std::time::Duration;

use super::super::engine_watch::{Finding, Sample};
use super::super::event::{Action, Level, Phase, Proc, spoken};
use super::{State, Supervisor};
use crate::exit;

impl Supervisor {
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
}
