//! The report as a table for a terminal.

use std::fmt::Write as _;

use super::outcome;
use crate::domain::visible::visible;
use crate::render::table;
use crate::run::event::{Phase, Verdict};
use crate::run::manifest::Manifest;
use crate::run::records::{Records, decided};

/// One table: what each rank ran, how long each phase took, how it ended; then who failed first.
pub fn text(report: &Records) -> String {
    let mut phases = Vec::new();
    for phase in report.ranks.iter().flat_map(|one| &one.phases) {
        if !phases.contains(&phase.phase) {
            phases.push(phase.phase);
        }
    }
    phases.sort();
    let mut head = vec!["rank".to_owned(), "host".to_owned(), "ran".to_owned()];
    head.extend(phases.iter().map(|phase| format!("{phase} s")));
    head.extend(["code".to_owned(), "outcome".to_owned()]);
    let mut rows = vec![head];
    for one in &report.ranks {
        let names: Vec<&str> = one
            .processes
            .iter()
            .map(|process| process.name.as_str())
            .collect();
        let mut row = vec![one.rank.to_string(), one.host.clone(), names.join(", ")];
        row.extend(phases.iter().map(|phase| took(one, *phase)));
        row.push(
            one.exit_code
                .map_or_else(|| "-".to_owned(), |code| code.to_string()),
        );
        row.push(outcome(one));
        rows.push(row);
    }
    let numbers = 3..=3 + phases.len();
    let mut out = String::new();
    // Writing into a string cannot fail.
    if let Some(job) = report.ranks.iter().find_map(|one| one.slurm.as_ref()) {
        let again = match job.restart {
            0 => String::new(),
            count => format!(", started again {count}×"),
        };
        let _ = writeln!(out, "SLURM job {}{again}", job.id);
    }
    out += &table::aligned_with(&rows, |column| column == 0 || numbers.contains(&column));
    if let Some(first) = report.first_failure() {
        let after = decided(first) - report.begin();
        let many = report
            .ranks
            .iter()
            .filter(|one| one.outcome == first.outcome)
            .count();
        let word = if many > 1 { "first to fail" } else { "failed" };
        let _ = writeln!(
            out,
            "\n{word}: rank {} after {after:.1} s: {}",
            first.rank,
            visible(&first.reason)
        );
        let culprit = first
            .processes
            .iter()
            .find(|one| Some(&one.name) == first.culprit.as_ref());
        if let Some(process) = culprit {
            let _ = writeln!(out, "its log: {}", visible(&process.log));
        }
    }
    // Those that are still at work have no end either; but once one has ended, the others do within seconds.
    let over = report.ranks.iter().any(|one| one.exit_code.is_some());
    for one in report
        .ranks
        .iter()
        .filter(|one| over && one.outcome == Verdict::Running)
    {
        let _ = writeln!(
            out,
            "rank {} on {} has recorded no end: it still ends, was killed hard, or its node failed",
            one.rank,
            visible(&one.host)
        );
    }
    for rank in report.missing() {
        let _ = writeln!(out, "rank {rank} has left no record");
    }
    for why in &report.unreadable {
        let _ = writeln!(out, "not readable: {}", visible(why));
    }
    out
}

fn took(manifest: &Manifest, phase: Phase) -> String {
    let times: Vec<_> = manifest
        .phases
        .iter()
        .filter(|one| one.phase == phase)
        .collect();
    if times.is_empty() {
        return "-".to_owned();
    }
    let open = times.iter().any(|one| one.end_s.is_none());
    let sum: f64 = times
        .iter()
        .map(|one| one.end_s.unwrap_or(one.start_s) - one.start_s)
        .sum();
    if open {
        "not ended".to_owned()
    } else {
        format!("{sum:.1}")
    }
}
