//! Last lines, record, and the end of everything.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::super::collect;
use super::super::console::{Manner, stderr};
use super::super::event::{Outcome, Phase, Proc, Verdict};
use super::super::manifest::Manifest;
use super::super::process::Group;
use super::{Driver, LAST_WORDS};

/// Time for the last output of a process to be read before its last lines are shown.
const DRAIN: Duration = Duration::from_millis(500);
/// Time for ending what the groups have left behind.
const SWEEP: Duration = Duration::from_secs(10);

impl Driver<'_> {
    pub(super) fn show_log(&self, proc: Proc) {
        let name = self.machine.plan().name(proc);
        let Some(log) = self.logs.get(&proc) else {
            return;
        };
        let lines = log.tail(DRAIN);
        if lines.is_empty() {
            tracing::error!("{name} has printed nothing");
            return;
        }
        let last = match lines.len() {
            1 => "line".to_owned(),
            count => format!("{count} lines"),
        };
        tracing::error!(
            "the last {last} of {name}, all of them in {}:",
            log.path.display()
        );
        for line in lines {
            stderr().push(format!("[{name}] | {line}\n").as_bytes(), Manner::Own);
        }
    }

    pub(super) fn write_manifest(&mut self) {
        if let Err(error) = self.manifest.write(&self.spec.log_dir)
            && !std::mem::replace(&mut self.manifest_lost, true)
        {
            tracing::warn!(
                "cannot write the record into {}: {error}",
                self.spec.log_dir.display()
            );
        }
    }

    /// Sweep, record, collect, and say how it went.
    pub(super) fn close(&mut self, outcome: &Outcome) -> u8 {
        stderr().status("");
        let swept = self.orphans.sweep(&[], SWEEP);
        if !swept.is_empty() {
            tracing::warn!(
                "ended {} left behind: {}",
                count(swept.len(), "process", "processes"),
                swept.join(", ")
            );
        }
        for log in self.logs.values() {
            log.finish(LAST_WORDS);
        }
        let now = self.clock.at(Instant::now());
        self.manifest.enter(Phase::Done, now);
        self.manifest.decide(outcome);
        if outcome.phase != Phase::Preflight || self.spec.log_dir.is_dir() {
            self.write_manifest();
        }
        self.collect();
        for phase in &self.manifest.phases {
            let took = phase.end_s.unwrap_or(phase.start_s) - phase.start_s;
            tracing::info!("{:<10}{took:>10.3} s", phase.phase.name());
        }
        self.say_first_cause(outcome);
        let (code, reason) = (outcome.code, &outcome.reason);
        match outcome.verdict {
            Verdict::Done => tracing::info!("done: {reason}; exit code {code}"),
            Verdict::Stopped => tracing::info!("{reason}; exit code {code}"),
            Verdict::Failed | Verdict::Running => {
                tracing::error!(
                    "failed in phase {}: {reason}; exit code {code}",
                    outcome.phase
                );
            }
        }
        code
    }

    pub(super) fn collect(&self) {
        let Some(folder) = &self.spec.collect_logs else {
            return;
        };
        let mut files: Vec<PathBuf> = self.logs.values().map(|log| log.path.clone()).collect();
        files.push(self.spec.log_dir.join(Manifest::file_name(self.spec.rank)));
        for problem in collect::copy(&files, folder) {
            tracing::warn!("{problem}");
        }
    }
}

impl Drop for Driver<'_> {
    /// Whatever way this ends, nothing of ours stays: after a panic too.
    fn drop(&mut self) {
        let left: Vec<&Group> = self
            .groups
            .values()
            .filter(|group| !group.reaped())
            .collect();
        if left.is_empty() {
            return;
        }
        for group in &left {
            group.signal_group(Signal::SIGKILL);
        }
        // The leaders are collected like all others here: nobody asks for their codes any more.
        self.orphans.sweep(&[], SWEEP);
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
