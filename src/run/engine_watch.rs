//! Notices an engine process that died while its server's main process waits for it for ever.
//!
//! ATOM's main process starts engine processes, waits until each says that it is ready, and has no time limit for that
//! (`atom-server-constraints.md`, C13). From outside, the death of an engine looks much like the end of any helper, so the
//! rules are narrow: a server that only loads slowly must never be failed.
//!
//! - Only descendants that run the server's own executable count, and only after they have lived for a while: compilers,
//!   `rocm-smi` and short probes come and go.
//! - One that is dead with a failing status and not yet collected is strong evidence. One that vanished is weak evidence:
//!   its parent collected it, so somebody has seen it end. One that ended with 0 is none.
//! - Output, a new process of any kind, data being read and a wait for a disk are signs of life; so is computing. Any of
//!   them starts the quiet time anew, and ends a weak suspicion. Only computing beside strong evidence is different: the
//!   partners of a dead engine may spin for ever, so it slows the quiet time down to a fifth.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::{signal_name, spoken};

/// How long a descendant must have been seen before its end means anything.
const SETTLED: Duration = Duration::from_secs(3);
/// Reading this many bytes a second is loading.
const LOADING_RATE: f64 = 65536.0;
/// Computing this share of one core is work.
const WORKING_SHARE: f64 = 0.05;
/// How much slower the quiet time of a strong suspicion runs while something computes.
const SPINNING: u32 = 5;

/// One look at the processes below a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Descendants that run the server's own executable, and dead ones that did when they were last seen.
    pub engines: Vec<Engine>,
    /// Start time of the youngest living descendant, whatever it runs.
    pub youngest: u64,
    /// Bytes read so far by all living processes of the server.
    pub read_bytes: u64,
    /// Whether any of them waits for a disk or a file server.
    pub disk_wait: bool,
    /// Time computed so far by all of them.
    pub cpu: Duration,
    /// Time since the last output of the server, or since its start.
    pub silent_for: Duration,
}

/// A descendant of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Process id and start time: together never used twice.
    pub id: (i32, u64),
    /// Wait status when it is dead and nobody has collected it.
    pub dead: Option<i32>,
}

/// What the watch concludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nothing new.
    Nothing,
    /// An engine just went missing; the text says which.
    Suspect(String),
    /// The suspicion is over.
    Cleared,
    /// The grace time is over without a sign of life.
    Dead(String),
}

/// Memory of one server's looks.
#[derive(Debug, Default)]
pub struct EngineWatch {
    seen: BTreeMap<(i32, u64), Duration>,
    suspicion: Option<Suspicion>,
    last: Option<(Duration, Sample)>,
}

#[derive(Debug)]
struct Suspicion {
    text: String,
    strong: bool,
    quiet: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    None,
    Computes,
    Sure,
}

impl EngineWatch {
    /// Take in one look.
    pub fn observe(&mut self, now: Duration, sample: &Sample, grace: Duration) -> Finding {
        let (passed, life) = self.signs_of_life(now, sample);
        let missing = self.missing(now, sample, SETTLED);
        let Some(suspicion) = &mut self.suspicion else {
            return match missing {
                Some((text, strong)) if strong || life == Life::None => {
                    self.suspicion = Some(Suspicion {
                        text: text.clone(),
                        strong,
                        quiet: Duration::ZERO,
                    });
                    Finding::Suspect(text)
                }
                _ => Finding::Nothing,
            };
        };
        match (life, suspicion.strong) {
            (Life::None, _) => suspicion.quiet += passed,
            (Life::Computes, true) => suspicion.quiet += passed / SPINNING,
            (Life::Sure, true) => suspicion.quiet = Duration::ZERO,
            (Life::Computes | Life::Sure, false) => {
                self.suspicion = None;
                return Finding::Cleared;
            }
        }
        if suspicion.quiet >= grace {
            return Finding::Dead(suspicion.text.clone());
        }
        Finding::Nothing
    }

    /// Take in one look at a server that is ready: the engine that has died with a failing status since the last one.
    pub fn lost(&mut self, now: Duration, sample: &Sample) -> Option<String> {
        self.signs_of_life(now, sample);
        let missing = self.missing(now, sample, Duration::ZERO);
        missing.filter(|(_, strong)| *strong).map(|(text, _)| text)
    }

    /// What happened since the last look.
    fn signs_of_life(&mut self, now: Duration, sample: &Sample) -> (Duration, Life) {
        for engine in sample.engines.iter().filter(|one| one.dead.is_none()) {
            self.seen.entry(engine.id).or_insert(now);
        }
        let Some((then, last)) = self.last.replace((now, sample.clone())) else {
            return (Duration::ZERO, Life::Sure);
        };
        let passed = now.saturating_sub(then);
        let seconds = passed.as_secs_f64().max(0.001);
        // Both numbers are far below 2^52 for any machine that exists.
        #[expect(clippy::cast_precision_loss, reason = "a rate for a threshold")]
        let read = sample.read_bytes.saturating_sub(last.read_bytes) as f64;
        let life = if sample.silent_for < passed
            || sample.youngest > last.youngest
            || sample.disk_wait
            || read / seconds >= LOADING_RATE
        {
            Life::Sure
        } else if sample.cpu.saturating_sub(last.cpu).as_secs_f64() / seconds > WORKING_SHARE {
            Life::Computes
        } else {
            Life::None
        };
        (passed, life)
    }

    /// The first one that has lived long enough and is gone or dead; all that are gone are forgotten.
    fn missing(
        &mut self,
        now: Duration,
        sample: &Sample,
        settled: Duration,
    ) -> Option<(String, bool)> {
        let mut found: Option<(String, bool)> = None;
        self.seen.retain(|id, first| {
            let entry = sample.engines.iter().find(|engine| engine.id == *id);
            let (text, strong) = match entry.map(|engine| engine.dead) {
                Some(None) => return true,
                // It said that all went well and waits to be collected: no death without a word.
                Some(Some(0)) => return false,
                Some(Some(status)) => (wait_status(status), true),
                None => ("is gone".to_owned(), false),
            };
            let lived = now.saturating_sub(*first);
            if lived >= settled && found.as_ref().is_none_or(|(_, was)| strong && !was) {
                let text = format!("process {} {text} after {}", id.0, spoken(lived));
                found = Some((text, strong));
            }
            false
        });
        found
    }
}

fn wait_status(status: i32) -> String {
    match status & 0x7f {
        0 => format!("ended with code {}", (status >> 8) & 0xff),
        signal => format!("was killed by {}", signal_name(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_mins(1);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn living(pids: &[i32]) -> Vec<Engine> {
        pids.iter()
            .map(|pid| Engine {
                id: (*pid, 1),
                dead: None,
            })
            .collect()
    }

    fn silent(engines: Vec<Engine>, silent_for: u64) -> Sample {
        Sample {
            engines,
            silent_for: at(silent_for),
            ..Sample::default()
        }
    }

    /// A watch that saw processes 7 and 8 living, 30 s ago.
    fn watch() -> EngineWatch {
        let mut watch = EngineWatch::default();
        watch.observe(at(0), &silent(living(&[7, 8]), 0), GRACE);
        watch.observe(at(25), &silent(living(&[7, 8]), 25), GRACE);
        watch
    }

    fn killed(status: i32) -> Vec<Engine> {
        let mut engines = living(&[7, 8]);
        engines[0].dead = Some(status);
        engines
    }

    /// Looks every 5 s for ten minutes until something is concluded.
    fn until(
        watch: &mut EngineWatch,
        from: u64,
        mut sample: impl FnMut(u64) -> Sample,
    ) -> Option<(u64, Finding)> {
        (from..from + 600).step_by(5).find_map(|second| {
            match watch.observe(at(second), &sample(second), GRACE) {
                Finding::Nothing => None,
                other => Some((second, other)),
            }
        })
    }

    #[test]
    fn a_killed_engine_is_reported_at_once_and_fails_after_the_grace() {
        let mut watch = watch();
        let dead = |now: u64| silent(killed(9), now);
        let text = "process 7 was killed by SIGKILL after 30 s".to_owned();
        assert_eq!(
            until(&mut watch, 30, dead),
            Some((30, Finding::Suspect(text.clone())))
        );
        assert_eq!(until(&mut watch, 35, dead), Some((90, Finding::Dead(text))));
    }

    #[test]
    fn a_quiet_server_without_a_loss_is_never_failed() {
        assert_eq!(
            until(&mut watch(), 30, |now| silent(living(&[7, 8]), now)),
            None
        );
    }

    #[test]
    fn a_vanished_process_means_nothing_while_there_are_signs_of_life() {
        let rest = |now: u64| silent(living(&[8]), now);
        let signs: [(&str, &dyn Fn(u64) -> Sample); 5] = [
            ("reads", &|now| Sample {
                read_bytes: now << 20,
                ..rest(now)
            }),
            ("computes", &|now| Sample {
                cpu: at(now) / 10,
                ..rest(now)
            }),
            ("waits for a disk", &|now| Sample {
                disk_wait: true,
                ..rest(now)
            }),
            ("starts others", &|now| Sample {
                youngest: now,
                ..rest(now)
            }),
            ("speaks", &|_| rest(1)),
        ];
        for (name, sample) in signs {
            let mut watch = watch();
            watch.observe(at(28), &rest(28), GRACE);
            assert_eq!(
                until(&mut watch, 30, sample).map(|(_, finding)| finding),
                Some(Finding::Cleared),
                "{name}"
            );
            assert_eq!(until(&mut watch, 40, sample), None, "{name}");
        }
    }

    #[test]
    fn a_vanished_process_and_dead_silence_fail() {
        let mut watch = watch();
        let rest = |now: u64| silent(living(&[8]), now);
        assert!(matches!(
            until(&mut watch, 30, rest),
            Some((30, Finding::Suspect(_)))
        ));
        assert!(matches!(
            until(&mut watch, 35, rest),
            Some((90, Finding::Dead(_)))
        ));
    }

    #[test]
    fn short_helpers_and_clean_ends_mean_nothing() {
        let mut watch = EngineWatch::default();
        watch.observe(at(0), &silent(living(&[7]), 0), GRACE);
        assert_eq!(until(&mut watch, 2, |now| silent(living(&[]), now)), None);
        assert_eq!(
            until(&mut self::watch(), 30, |now| silent(killed(0), now)),
            None
        );
    }

    #[test]
    fn a_spinning_partner_delays_the_verdict_on_a_killed_engine_and_loading_prevents_it() {
        let mut spun = watch();
        let spins = |now: u64| Sample {
            cpu: at(now),
            ..silent(killed(1 << 8), now)
        };
        assert!(matches!(
            until(&mut spun, 30, spins),
            Some((30, Finding::Suspect(_)))
        ));
        assert!(matches!(
            until(&mut spun, 35, spins),
            Some((330, Finding::Dead(_)))
        ));
        let mut loads = watch();
        let reads = |now: u64| Sample {
            read_bytes: now << 20,
            ..silent(killed(1 << 8), now)
        };
        assert!(matches!(
            until(&mut loads, 30, reads),
            Some((30, Finding::Suspect(_)))
        ));
        assert_eq!(until(&mut loads, 35, reads), None);
    }
}
