//! What was first: a signal or an end, this rank or another.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::exit;

use super::super::event::{Event, Outcome, Phase, Proc, Verdict};
use super::super::records::Records;
use super::super::signals::Note;
use super::{Driver, Message};

/// Time in which a signal may follow the ends that it has caused.
const CAUSE: Duration = Duration::from_millis(300);

impl Driver<'_> {
    /// Whether something ended that nobody has told to end, as far as is known so far.
    pub(super) fn is_early<'b>(&self, mut events: impl Iterator<Item = &'b Event>) -> bool {
        self.machine.phase() != Phase::Teardown
            && events.any(|event| match event {
                Event::Ended { proc, exit, .. } => {
                    *proc != Proc::Workload || exit.shell_code() != exit::OK
                }
                _ => false,
            })
    }

    /// A scheduler that ends a job signals all its processes one after the other. A child's end can be seen before our own
    /// signal is; so that is waited for, for a moment, and put before the ends.
    pub(super) fn listen_for_the_cause(
        &self,
        at: usize,
        events: &mut VecDeque<Event>,
        answers: &mut Vec<Event>,
    ) {
        if events.iter().any(|event| matches!(event, Event::Signal(_))) {
            return;
        }
        let end = Instant::now() + CAUSE;
        while let Ok(message) = self
            .inbox
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            match message {
                Message::Note(Note::End(number)) => {
                    events.insert(at, Event::Signal(number));
                    return;
                }
                // Further ends are found at the look that follows.
                Message::Note(Note::Child) | Message::Probe(..) => {}
                Message::Smoke(result) => answers.push(Event::Smoke(result)),
            }
        }
    }

    /// On the leading rank, whose lines people read first: which other rank failed before, as far as its record can be seen
    /// from here. A rank that was stopped does not know why.
    pub(super) fn say_first_cause(&self, outcome: &Outcome) {
        if !self.spec.leads() || self.spec.job.ranks < 2 || outcome.verdict == Verdict::Done {
            return;
        }
        let Ok(records) = Records::read(&self.spec.log_dir) else {
            return;
        };
        if let Some(first) = records.first_failure_of(&self.manifest)
            && first.rank != self.spec.rank
        {
            let host = &first.host;
            tracing::error!(
                "first to fail: rank {} on {host}: {}",
                first.rank,
                first.reason
            );
        }
    }
}
