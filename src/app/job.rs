//! A job as it was read: environment, settings, models file, and what is wrong with them.

use super::{NOTHING_STARTED, report};
use crate::check;
use crate::cli::JobArgs;
use crate::domain::diagnostic::{Diagnostics, Place};
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::ModelEntry;
use crate::domain::settings::Settings;
use crate::exit;
use crate::input::models_file::Loaded;
use crate::input::{self, host, models_file};
use crate::plan::{JobPlan, WorkerPlan};
use crate::render;
use crate::resolve::{self, Inputs, model, topology};

/// Everything that was read for a job.
pub(super) struct Job {
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    pub(super) loaded: Loaded,
    pub(super) findings: Diagnostics,
}

impl Job {
    /// Read environment, settings and models file; `Err` is an exit code after the findings were printed.
    pub(super) fn read(
        args: &JobArgs,
        trailing: &[String],
        env_file: Option<&str>,
    ) -> Result<Self, u8> {
        let (environment, findings) = Self::surroundings(env_file);
        Self::read_with(args, trailing, environment, findings)
    }

    /// The environment with an env file laid over it, and what is wrong with that file.
    pub(super) fn surroundings(env_file: Option<&str>) -> (Environment, Diagnostics) {
        let mut environment = input::environment();
        let mut findings = Diagnostics::default();
        if let Some(path) = env_file {
            match models_file::read_text(path, "env file") {
                Ok(text) => {
                    tracing::debug!("env file {path}: {} bytes", text.len());
                    input::env_file::overlay(path, &text, &mut environment, &mut findings);
                }
                Err(problem) => findings.push(problem),
            }
        }
        (environment, findings)
    }

    /// As [`Self::read`], with an environment that was read before.
    pub(super) fn read_with(
        args: &JobArgs,
        trailing: &[String],
        environment: Environment,
        mut findings: Diagnostics,
    ) -> Result<Self, u8> {
        let (mut settings, more) = input::settings::read(args, &environment);
        findings.extend(more);
        settings.trailing_args = trailing.to_vec();
        let loaded = match input::models(args.file.models_file.as_deref(), &environment) {
            Ok(loaded) => loaded,
            Err(problems) => {
                findings.extend(problems);
                report(&findings, None, &environment, NOTHING_STARTED);
                return Err(exit::USAGE);
            }
        };
        let (models, origin) = (&loaded.models, loaded.models.origin.in_words());
        let count = render::count(models.entries.len(), "model");
        tracing::debug!("models file {origin}: {count}, SHA-256 {}", models.sha256);
        findings.extend(loaded.diagnostics.clone());
        Ok(Self {
            environment,
            settings,
            loaded,
            findings,
        })
    }

    /// Print the findings of a job that is otherwise ready: errors with their snippets, warnings one line each.
    pub(super) fn refuses(&self, consequence: &str) -> bool {
        if self.findings.has_errors() {
            return report(
                &self.findings,
                Some(&self.loaded.models.file),
                &self.environment,
                consequence,
            );
        }
        let warnings = self.findings.0.iter();
        let text: String = warnings
            .map(|finding| render::diagnostic::line(finding, Some(&self.loaded.models.file)))
            .collect();
        render::to_stderr(&text);
        false
    }

    /// What the checks find in the workers of a rank (of all ranks without one) and in the job as a whole; nothing with `--no-check`.
    pub(super) fn check(&mut self, args: &JobArgs, plan: &JobPlan, rank: Option<u32>) {
        if args.no_check {
            return;
        }
        let gpus = self.settings.gpus_per_node.value;
        let of_rank = |worker: &&WorkerPlan| rank.is_none_or(|rank| rank == worker.rank);
        for worker in plan.workers.iter().filter(of_rank) {
            self.findings.extend(check::worker(worker, gpus));
        }
        let devices = self.environment.get("HIP_VISIBLE_DEVICES");
        let of_job = check::job(plan, devices);
        self.findings.extend(of_job);
    }

    pub(super) fn stop(&self) -> u8 {
        report(
            &self.findings,
            Some(&self.loaded.models.file),
            &self.environment,
            NOTHING_STARTED,
        );
        exit::USAGE
    }

    /// The job's entry, unless the file cannot be trusted or lacks it.
    pub(super) fn entry(&mut self) -> Result<&ModelEntry, u8> {
        if self.loaded.diagnostics.has_errors() {
            return Err(self.stop());
        }
        match model::entry(&self.loaded.models, &self.settings) {
            Ok(_) => {}
            Err(problem) => {
                self.findings.push(problem);
                return Err(self.stop());
            }
        }
        model::entry(&self.loaded.models, &self.settings).map_err(|_| exit::BUG)
    }

    /// Resolve the whole job; findings are kept for the caller to report.
    pub(super) fn plan(&mut self) -> Result<(JobPlan, topology::Placement), u8> {
        let entry = self.entry()?.clone();
        // A count that could not be read leaves nothing to say about ranks and addresses.
        let counts = ["xP", "yD", "--prefill-workers", "--decode-workers"];
        let unread = |place: &Place| matches!(place, Place::Input(input) if counts.contains(&input.as_str()));
        if self
            .findings
            .0
            .iter()
            .any(|finding| finding.is_error() && unread(&finding.place))
        {
            return Err(self.stop());
        }
        let path = model::path(&self.settings, &entry);
        let folder: ModelFolder = host::model_folder(&path.value);
        let needs_address = self.settings.host_ip.is_none();
        let facts: HostFacts = host::facts(
            &self.settings.python.value,
            &self.environment,
            needs_address,
        );
        tracing::debug!("model path {}: {}", path.value, folder.in_words());
        tracing::debug!("this host: {}", facts.in_words());
        let placement = topology::place(&self.settings, &self.environment, &mut self.findings);
        let inputs = Inputs {
            settings: &self.settings,
            models: &self.loaded.models,
            entry: &entry,
            environment: &self.environment,
            host: &facts,
            folder: &folder,
        };
        let plan = resolve::job(inputs, &placement, &mut self.findings);
        Ok((plan, placement))
    }
}
