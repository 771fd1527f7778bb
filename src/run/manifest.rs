//! `launch-rank<N>.json`: what a rank ran and how it went. Written whole at every change, so that a rank that was killed
//! hard has left what was known; secrets are masked.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::domain::command::Command;
use crate::domain::date::date;
use crate::domain::secret::{shown, shown_words};
use crate::plan::node::{NodeSpec, SlurmJob};

use super::event::{Outcome, Phase, Verdict};

/// Version of the form below.
pub const SCHEMA: u32 = 1;

/// A rank's record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this form.
    pub schema: u32,
    /// Version of atom-launch.
    pub version: String,
    /// Rank.
    pub rank: usize,
    /// Ranks of the job.
    pub ranks: usize,
    /// The SLURM job that it belonged to.
    #[serde(default)]
    pub slurm: Option<SlurmJob>,
    /// Name of the machine.
    pub host: String,
    /// Process id of the launcher.
    pub launcher_pid: u32,
    /// Model name.
    pub model: String,
    /// What the servers were given.
    pub model_path: String,
    /// Models file that was read.
    pub models_file: String,
    /// Its SHA-256.
    pub models_sha256: String,
    /// Start, as a date in UTC.
    pub started_at: String,
    /// Start, in seconds since 1970.
    pub started_unix: f64,
    /// Processes in the order of their start.
    pub processes: Vec<Process>,
    /// Phases in order.
    pub phases: Vec<PhaseTime>,
    /// How it went.
    pub outcome: Verdict,
    /// Exit code, once it is known.
    pub exit_code: Option<u8>,
    /// Phase in which it failed or was stopped.
    pub failed_phase: Option<Phase>,
    /// When that was decided, in seconds since the start.
    pub decided_s: Option<f64>,
    /// Why.
    pub reason: String,
    /// The process or endpoint at fault.
    pub culprit: Option<String>,
}

/// One process that was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Process {
    /// `prefill-0`, `router`, `workload`.
    pub name: String,
    /// Its words, secrets masked.
    pub argv: Vec<String>,
    /// Variables that the launcher set, secrets masked.
    pub env: Vec<Variable>,
    /// Log file.
    pub log: String,
    /// Process id; absent when it could not be started.
    pub pid: Option<i32>,
    /// Start, in seconds since the launcher's.
    pub started_s: f64,
    /// End, likewise.
    pub ended_s: Option<f64>,
    /// How it ended.
    pub exit: Option<String>,
}

/// One variable.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Value, masked when the name says that it is secret.
    pub value: String,
    /// Where it comes from.
    pub source: String,
}

/// One phase.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Which.
    pub phase: Phase,
    /// Start, in seconds since the launcher's.
    pub start_s: f64,
    /// End, likewise; absent while it lasts.
    pub end_s: Option<f64>,
}

impl Manifest {
    /// A record of a rank that begins now.
    pub fn begin(spec: &NodeSpec) -> Self {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rank: spec.rank,
            ranks: spec.job.ranks,
            slurm: spec.job.slurm.clone(),
            host: spec.host.clone(),
            launcher_pid: std::process::id(),
            model: spec.job.model.clone(),
            model_path: spec.job.model_path.clone(),
            models_file: spec.job.models_file.clone(),
            models_sha256: spec.job.models_sha256.clone(),
            started_at: date(now),
            started_unix: rounded(now),
            processes: Vec::new(),
            phases: Vec::new(),
            outcome: Verdict::Running,
            exit_code: None,
            failed_phase: None,
            decided_s: None,
            reason: String::new(),
            culprit: None,
        }
    }

    /// A phase begins, and with that the one before ends.
    pub fn enter(&mut self, phase: Phase, now: Duration) {
        if let Some(last) = self.phases.last_mut() {
            last.end_s.get_or_insert(rounded(now));
        }
        if phase != Phase::Done {
            self.phases.push(PhaseTime {
                phase,
                start_s: rounded(now),
                end_s: None,
            });
        }
    }

    /// How it went. It was decided when the phase of the outcome ended.
    pub fn decide(&mut self, outcome: &Outcome) {
        self.outcome = outcome.verdict;
        self.exit_code = Some(outcome.code);
        self.failed_phase = (outcome.verdict != Verdict::Done).then_some(outcome.phase);
        let phase = self.phases.iter().rfind(|one| one.phase == outcome.phase);
        self.decided_s = phase.and_then(|one| one.end_s);
        self.reason = crate::domain::secret::hide_inside(&outcome.reason).into_owned();
        self.culprit.clone_from(&outcome.culprit);
    }

    /// Name of the file for a rank.
    pub fn file_name(rank: usize) -> String {
        format!("launch-rank{rank}.json")
    }

    /// Write it into a folder, whole or not at all.
    pub fn write(&self, folder: &Path) -> io::Result<PathBuf> {
        let path = folder.join(Self::file_name(self.rank));
        let part = folder.join(format!(
            ".{}.{}",
            Self::file_name(self.rank),
            std::process::id()
        ));
        let result = self
            .write_part(&part)
            .and_then(|()| fs::rename(&part, &path));
        if result.is_err() {
            let _ = fs::remove_file(&part);
        }
        result.map(|()| path)
    }

    fn write_part(&self, part: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::File::create(part)?.write_all(text.as_bytes())
    }

    /// Read one.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Process {
    /// The record of a command with its further variables.
    pub fn of(
        name: &str,
        command: &Command,
        models_file: &str,
        more: &[Variable],
        log: &Path,
    ) -> Self {
        let own = command.env.iter().map(|var| Variable {
            name: var.name.clone(),
            value: shown(&var.name, &var.value).into_owned(),
            source: var.source.in_words(models_file),
        });
        Self {
            name: name.to_owned(),
            argv: shown_words(command.argv()),
            env: own.chain(more.iter().cloned()).collect(),
            log: log.to_string_lossy().into_owned(),
            pid: None,
            started_s: 0.0,
            ended_s: None,
            exit: None,
        }
    }
}

impl Variable {
    /// A variable that the engine itself sets.
    pub fn new(name: &str, value: &str, source: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: shown(name, value).into_owned(),
            source: source.to_owned(),
        }
    }
}

/// Seconds with three places: what a person compares, and enough for a timeline.
pub fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> NodeSpec {
        serde_json::from_str(
            r#"{"rank": 3, "job": {"model": "M", "model_path": "/m", "ranks": 4}, "log_dir": "logs"}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_record_survives_the_file_and_replaces_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::begin(&spec());
        manifest.enter(Phase::Preflight, Duration::ZERO);
        manifest.write(folder.path()).unwrap();
        manifest.enter(Phase::Workload, Duration::from_millis(1500));
        let outcome = Outcome {
            code: 9,
            verdict: Verdict::Failed,
            phase: Phase::Workload,
            reason: "asked http://me:pw@h/".into(),
            culprit: Some("workload".into()),
        };
        manifest.enter(Phase::Teardown, Duration::from_secs(2));
        manifest.decide(&outcome);
        assert_eq!(manifest.decided_s, Some(2.0));
        let path = manifest.write(folder.path()).unwrap();
        let back = Manifest::read(&path).unwrap();
        assert_eq!(back.phases[0].end_s, Some(1.5));
        assert_eq!(
            (back.exit_code, back.failed_phase),
            (Some(9), Some(Phase::Workload))
        );
        assert_eq!(back.reason, "asked http://me:***@h/");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"outcome\": \"failed\""), "{text}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn secrets_do_not_reach_the_record() {
        let command: crate::plan::node::RouterSpec = serde_json::from_str(
            r#"{"address": "a", "port": 1, "command": {"argv": ["atomesh", "--api-key", "sk-1"], "env": {"HF_TOKEN": "hf_1", "A": "b"}}}"#,
        )
        .unwrap();
        let record = Process::of(
            "router",
            &command.command,
            "m.yaml",
            &[Variable::new("MY_SECRET", "s3", "job")],
            Path::new("l"),
        );
        let text = serde_json::to_string(&record).unwrap();
        for secret in ["sk-1", "hf_1", "s3"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains(r#""name":"A","value":"b""#));
    }
}
