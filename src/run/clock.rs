//! Time since the start, without the time in which the launcher itself was stopped.
//!
//! After SIGSTOP and SIGCONT, or a suspended machine, no deadline may pass that nobody could have met.

use std::time::{Duration, Instant};

/// A pause that is longer than planned by this much is one in which we were stopped, not a slow machine.
const STOPPED: Duration = Duration::from_secs(5);

/// A clock that stands still while we do.
#[derive(Debug)]
pub struct Clock {
    begun: Instant,
    last: Instant,
    lost: Duration,
    planned: Duration,
}

impl Clock {
    /// A clock that begins now.
    pub fn start(now: Instant) -> Self {
        Self {
            begun: now,
            last: now,
            lost: Duration::ZERO,
            planned: Duration::ZERO,
        }
    }

    /// Say how long the pause before the next look is meant to be.
    pub fn plan(&mut self, pause: Duration) {
        self.planned = pause;
    }

    /// The time on this clock at a moment.
    pub fn at(&mut self, now: Instant) -> Duration {
        let pause = now.saturating_duration_since(self.last);
        let planned = std::mem::take(&mut self.planned);
        if pause > planned + STOPPED {
            self.lost += pause.saturating_sub(planned);
        }
        self.last = self.last.max(now);
        now.saturating_duration_since(self.begun)
            .saturating_sub(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_we_were_stopped_does_not_count() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut clock = Clock::start(begun);
        clock.plan(Duration::from_secs(1));
        assert_eq!(clock.at(after(2)), Duration::from_secs(2));
        clock.plan(Duration::from_secs(1));
        assert_eq!(clock.at(after(1002)), Duration::from_secs(3));
        assert_eq!(clock.at(after(1003)), Duration::from_secs(4));
        clock.plan(Duration::from_secs(8));
        assert_eq!(clock.at(after(1012)), Duration::from_secs(13));
    }
}
