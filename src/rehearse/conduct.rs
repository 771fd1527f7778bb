//! Decides when ranks are told to end and what the rehearsal's exit code is: as `srun --kill-on-bad-exit` would. Pure.

use std::time::Duration;

use crate::exit;

/// How long the other ranks go on after one has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How long they may go on after rank 0 has ended well.
const AFTER_SUCCESS: Duration = Duration::from_mins(2);
/// What a rank may take beyond its own grace time once it was told to end.
const BEYOND_GRACE: Duration = Duration::from_secs(15);

/// What to send to all ranks that still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Term,
    Kill,
}

/// The end of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) code: u8,
    pub(super) at: Duration,
    /// Whether it was told to end.
    told: bool,
}

/// Why ranks were told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Failure(usize),
    Signal(u8),
    Overdue,
}

/// The state of all ranks.
#[derive(Debug)]
pub(super) struct Conductor {
    ends: Vec<Option<End>>,
    grace: Duration,
    cause: Option<Cause>,
    /// The next order and when it is due.
    next: Option<(Duration, Order)>,
    told: bool,
}

impl Conductor {
    pub(super) fn new(ranks: usize, grace: Duration) -> Self {
        Self {
            ends: vec![None; ranks],
            grace,
            cause: None,
            next: None,
            told: false,
        }
    }

    /// A rank ended.
    pub(super) fn ended(&mut self, now: Duration, rank: usize, code: u8) {
        let told = self.told;
        self.ends[rank] = Some(End {
            code,
            at: now,
            told,
        });
        if self.cause.is_some() {
            return;
        }
        if code != exit::OK {
            self.cause = Some(Cause::Failure(rank));
            self.next = Some((now + AFTER_FAILURE, Order::Term));
        } else if rank == 0 {
            self.next = Some((now + AFTER_SUCCESS, Order::Term));
        }
    }

    /// Somebody wants the rehearsal to end: first politely, then at once.
    pub(super) fn signal(&mut self, now: Duration, number: i32) {
        let again = matches!(self.cause, Some(Cause::Signal(_)));
        // As in a rank, the first signal is the cause and the second only hurries.
        if !again {
            self.cause = Some(Cause::Signal(u8::try_from(number).unwrap_or(0)));
        }
        self.next = Some((now, if again { Order::Kill } else { Order::Term }));
    }

    /// The order that is due.
    pub(super) fn due(&mut self, now: Duration) -> Option<Order> {
        let (_, order) = self.next.filter(|(at, _)| now >= *at)?;
        self.told = true;
        self.cause.get_or_insert(Cause::Overdue);
        self.next = match order {
            Order::Term => Some((now + self.grace + BEYOND_GRACE, Order::Kill)),
            Order::Kill => None,
        };
        Some(order)
    }

    /// When to look again.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.next.map(|(at, _)| at)
    }

    /// Whether all ranks have ended.
    pub(super) fn finished(&self) -> bool {
        self.ends.iter().all(Option::is_some)
    }

    /// The end of a rank.
    pub(super) fn end(&self, rank: usize) -> Option<End> {
        self.ends.get(rank).copied().flatten()
    }

    /// The exit code of the rehearsal.
    pub(super) fn code(&self) -> u8 {
        match self.cause {
            Some(Cause::Signal(number)) => 128 + number,
            Some(Cause::Failure(rank)) => self.end(rank).map_or(exit::BUG, |end| end.code),
            Some(Cause::Overdue) => exit::FOUND,
            None => self.end(0).map_or(exit::BUG, |end| end.code),
        }
    }

    /// What became of a rank.
    pub(super) fn outcome(&self, rank: usize) -> String {
        let Some(end) = self.end(rank) else {
            return "still running".to_owned();
        };
        match (self.cause, end.told) {
            (Some(Cause::Failure(first)), _) if first == rank => "failed".to_owned(),
            (Some(Cause::Failure(first)), true) => format!("ended after rank {first} failed"),
            (Some(Cause::Signal(number)), true) => format!("ended by signal {number}"),
            (Some(Cause::Overdue), true) => "ended: it went on after rank 0".to_owned(),
            _ if end.code == exit::OK => "done".to_owned(),
            _ => "failed as well".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GRACE: Duration = Duration::from_secs(20);

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn the_code_is_rank_zeros_when_all_goes_well() {
        let mut conductor = Conductor::new(2, GRACE);
        conductor.ended(at(3.0), 0, 0);
        assert_eq!(conductor.due(at(4.0)), None);
        conductor.ended(at(5.0), 1, 0);
        assert!(conductor.finished());
        assert_eq!(conductor.code(), 0);
        assert_eq!(conductor.outcome(1), "done");
    }

    #[test]
    fn a_failure_ends_the_others_a_second_later_and_gives_the_code() {
        let mut conductor = Conductor::new(3, GRACE);
        conductor.ended(at(3.0), 2, 7);
        assert_eq!(conductor.due(at(3.9)), None);
        conductor.ended(at(3.95), 1, 1);
        assert_eq!(conductor.due(at(4.0)), Some(Order::Term));
        assert_eq!(conductor.due(at(38.0)), None);
        assert_eq!(conductor.due(at(39.0)), Some(Order::Kill));
        conductor.ended(at(39.1), 0, 137);
        assert_eq!(conductor.code(), 7);
        assert_eq!(conductor.outcome(2), "failed");
        assert_eq!(conductor.outcome(1), "failed as well");
        assert_eq!(conductor.outcome(0), "ended after rank 2 failed");
    }

    #[test]
    fn the_first_signal_asks_and_the_second_kills() {
        let mut conductor = Conductor::new(2, GRACE);
        conductor.signal(at(1.0), 2);
        assert_eq!(conductor.due(at(1.0)), Some(Order::Term));
        conductor.signal(at(1.5), 2);
        assert_eq!(conductor.due(at(1.5)), Some(Order::Kill));
        conductor.ended(at(1.6), 0, 137);
        conductor.ended(at(1.6), 1, 137);
        assert_eq!(conductor.code(), 130);
        assert_eq!(conductor.outcome(1), "ended by signal 2");
    }

    #[test]
    fn ranks_that_go_on_after_rank_zero_are_ended_and_told_of() {
        let mut conductor = Conductor::new(2, GRACE);
        conductor.ended(at(1.0), 0, 0);
        assert_eq!(conductor.due(at(121.0)), Some(Order::Term));
        conductor.ended(at(122.0), 1, 0);
        assert_eq!(conductor.code(), exit::FOUND);
    }

    proptest! {
        #[test]
        fn every_course_comes_to_a_kill_in_bounded_time(events in prop::collection::vec((0_u8..3, 0..3_usize, any::<u8>(), 0..5000_u64), 0..30)) {
            let mut conductor = Conductor::new(3, GRACE);
            let mut now = Duration::ZERO;
            for (what, rank, code, wait) in events {
                now += Duration::from_millis(wait);
                match what {
                    0 if conductor.end(rank).is_none() => conductor.ended(now, rank, code),
                    1 => conductor.signal(now, 15),
                    _ => {}
                }
                conductor.due(now);
            }
            let stopping = conductor.cause.is_some() || conductor.end(0).is_some();
            if stopping && !conductor.finished() && !conductor.told {
                conductor.due(now + AFTER_SUCCESS);
                prop_assert!(conductor.told);
            }
        }
    }
}
