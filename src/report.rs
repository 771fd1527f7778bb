//! `report LOG_DIR`: the records of all ranks of a job side by side.

mod html;
mod text;

#[cfg(test)]
mod tests;

use crate::run::event::Verdict;
use crate::run::manifest::Manifest;

pub use html::html;
pub use text::text;

/// Last moment that a record knows of, in seconds since its start.
fn last_moment(manifest: &Manifest) -> f64 {
    let phases = manifest
        .phases
        .iter()
        .map(|one| one.end_s.unwrap_or(one.start_s));
    let processes = manifest
        .processes
        .iter()
        .map(|one| one.ended_s.unwrap_or(one.started_s));
    phases.chain(processes).fold(0.0, f64::max)
}

fn outcome(manifest: &Manifest) -> String {
    let phase = manifest
        .failed_phase
        .map_or_else(String::new, |phase| format!(" in {phase}"));
    match manifest.outcome {
        Verdict::Running => "no end recorded".to_owned(),
        Verdict::Done => "done".to_owned(),
        Verdict::Failed => format!("failed{phase}"),
        Verdict::Stopped => format!("stopped{phase}"),
    }
}
