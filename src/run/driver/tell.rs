//! What happens to a rank, line by line, for whoever asked for it with `--verbose`.

use super::super::event::{Action, Event, Proc, Target, signal_name};
use super::super::process::Group;
use super::Driver;

impl Driver<'_> {
    /// Signals and ends of processes; at the highest level also the answers of health checks and looks at processes.
    pub(super) fn tell_event(&self, event: &Event) {
        match event {
            Event::Signal(number) => tracing::debug!("received {}", signal_name(*number)),
            Event::SpawnFailed { proc, why, .. } => {
                tracing::debug!("{}: not started: {why}", self.name(*proc));
            }
            Event::Ended { proc, exit, alone } => {
                let others = if *alone {
                    ""
                } else {
                    "; others live in its group"
                };
                tracing::debug!("{}: {exit}{others}", self.process(*proc));
            }
            Event::Smoke(Ok(())) => tracing::debug!("one token came"),
            Event::Smoke(Err(why)) => tracing::debug!("no token came: {why}"),
            Event::Probe(target, answer) => {
                tracing::trace!("{}: {answer}", self.asked_name(*target));
            }
            Event::Vitals(server, sample) => tracing::trace!(
                "{}: {} engine processes, silent for {:.1} s",
                self.name(Proc::Server(*server)),
                sample.engines.len(),
                sample.silent_for.as_secs_f64()
            ),
            Event::Begin | Event::Spawned(_) | Event::Tick => {}
        }
    }

    /// Phases and signals that are sent; at the highest level also what is asked for its health.
    pub(super) fn tell_action(&self, action: &Action) {
        match action {
            Action::Enter(phase) => tracing::debug!("phase {phase}"),
            Action::Stop(proc @ Proc::Workload) => {
                tracing::debug!("SIGTERM to the group of {}", self.process(*proc));
            }
            Action::Stop(proc) => tracing::debug!("SIGTERM to {}", self.process(*proc)),
            Action::Kill(proc) => {
                tracing::debug!("SIGKILL to the group of {}", self.process(*proc));
            }
            Action::Watch(target) => tracing::trace!(
                "{}: asked every {:.1} s",
                self.asked_name(*target),
                self.spec.limits.poll_interval.as_secs_f64()
            ),
            Action::Relax(target) => {
                tracing::trace!("{}: asked more rarely", self.asked_name(*target));
            }
            Action::Unwatch(target) => {
                tracing::trace!("{}: asked no more", self.asked_name(*target));
            }
            Action::Spawn(_)
            | Action::LookAgain(_)
            | Action::Reap(_)
            | Action::Inspect(_)
            | Action::Smoke
            | Action::Say(..)
            | Action::Heartbeat(_)
            | Action::ShowLog(_)
            | Action::Finish(_) => {}
        }
    }

    fn name(&self, proc: Proc) -> &str {
        self.machine.plan().name(proc)
    }

    /// A process with its number, as `ps` on the node would show it.
    fn process(&self, proc: Proc) -> String {
        let pid = self.groups.get(&proc).map_or(0, Group::pid);
        format!("{} (process {pid})", self.name(proc))
    }

    fn asked_name(&self, target: Target) -> String {
        let plan = self.machine.plan();
        match target {
            Target::Endpoint(index) => plan
                .endpoints
                .get(index)
                .map_or_else(String::new, |one| format!("{} at {}", one.name, one.place)),
            Target::Router => format!("router at {}", plan.router.as_deref().unwrap_or_default()),
        }
    }
}
