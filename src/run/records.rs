//! The records that the ranks of a job have left in its log folder, read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::event::Verdict;
use super::manifest::Manifest;
use crate::exit;

/// The records of one job.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// In order of rank.
    pub ranks: Vec<Manifest>,
    /// Files that look like records and cannot be read, one sentence each.
    pub unreadable: Vec<String>,
}

impl Records {
    /// Read all `launch-rank<N>.json` in a folder and in the folders directly below it.
    ///
    /// A rank that is found twice (its own folder and the collected one) is taken from the later start.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let mut records = Self::default();
        let entries = fs::read_dir(folder).map_err(|error| no_folder(folder, &error))?;
        let mut files = Vec::new();
        for path in entries.flatten().map(|entry| entry.path()) {
            if is_record(&path) {
                files.push(path);
            } else if let Ok(below) = fs::read_dir(&path) {
                files.extend(
                    below
                        .flatten()
                        .map(|entry| entry.path())
                        .filter(|path: &PathBuf| is_record(path)),
                );
            }
        }
        files.sort();
        for file in files {
            match Manifest::read(&file) {
                Ok(manifest) => records.take(manifest),
                Err(why) => records.unreadable.push(why),
            }
        }
        if records.ranks.is_empty() && records.unreadable.is_empty() {
            return Err(format!(
                "no record launch-rank<N>.json in {} or in a folder directly below it: no rank has used it as its --log-dir",
                folder.display()
            ));
        }
        records.ranks.sort_by_key(|manifest| manifest.rank);
        Ok(records)
    }

    fn take(&mut self, manifest: Manifest) {
        match self.ranks.iter_mut().find(|one| one.rank == manifest.rank) {
            Some(one) if one.started_unix < manifest.started_unix => *one = manifest,
            Some(_) => {}
            None => self.ranks.push(manifest),
        }
    }

    /// The rank that failed first, by the ranks' own clocks.
    pub fn first_failure(&self) -> Option<&Manifest> {
        self.first_failure_among(|_| true)
    }

    /// The same, among the records of the run that a record belongs to: the folder may hold those of an earlier one.
    pub fn first_failure_of(&self, own: &Manifest) -> Option<&Manifest> {
        self.first_failure_among(|one| match &own.slurm {
            Some(job) => one.slurm.as_ref() == Some(job),
            // Without a job's number: what was decided after this rank began.
            None => one.slurm.is_none() && decided(one) >= own.started_unix,
        })
    }

    fn first_failure_among(&self, counts: impl Fn(&Manifest) -> bool) -> Option<&Manifest> {
        self.ranks
            .iter()
            .filter(|one| one.outcome == Verdict::Failed && counts(one))
            .min_by(|a, b| decided(a).total_cmp(&decided(b)))
    }

    /// What the job should end with: the code of the rank that failed first, else that of the first rank.
    pub fn exit_code(&self) -> u8 {
        self.first_failure()
            .or(self.ranks.first())
            .and_then(|one| one.exit_code)
            .unwrap_or(exit::OK)
    }

    /// Ranks of the job that have left no record.
    pub fn missing(&self) -> Vec<usize> {
        let count = self.ranks.iter().map(|one| one.ranks).max().unwrap_or(0);
        // A record is a file that anybody may have written; no job has more nodes.
        let count = count.min(crate::domain::topology::MAX_NODES);
        (0..count)
            .filter(|rank| !self.ranks.iter().any(|one| one.rank == *rank))
            .collect()
    }

    /// Start of the first rank, in seconds since 1970.
    pub fn begin(&self) -> f64 {
        self.ranks
            .iter()
            .map(|one| one.started_unix)
            .fold(f64::INFINITY, f64::min)
    }
}

/// When a rank's outcome was decided, in seconds since 1970.
pub fn decided(manifest: &Manifest) -> f64 {
    manifest.started_unix + manifest.decided_s.unwrap_or(0.0)
}

/// Why there is no folder to look into.
fn no_folder(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no folder {shown}"),
        io::ErrorKind::NotADirectory => {
            format!("{shown} is a file: give the folder of the job's logs and records")
        }
        _ => format!("cannot read the folder {shown}: {error}"),
    }
}

fn is_record(path: &Path) -> bool {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    name.is_some_and(|name| {
        name.strip_prefix("launch-rank")
            .and_then(|rest| rest.strip_suffix(".json"))
            .is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
