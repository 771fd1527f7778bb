//! A job as it was read: environment, settings, models file, and what is wrong with them.

use super::report;
use super::talk::tell_file;
use crate::check;
use crate::cli::JobArgs;
use crate::domain::codes::{
    INVALID_SETTING, NO_ADDRESSES, NO_HOST_ADDRESS, NO_MODEL, NO_MODEL_FOLDER, WHICH_WORKER,
};
use crate::domain::diagnostic::{Code, Diagnostics, Place};
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::ModelEntry;
use crate::domain::settings::Settings;
use crate::exit;
use crate::input::models_file::Loaded;
use crate::input::{self, host, models_file};
use crate::plan::{JobPlan, WorkerPlan};
use crate::resolve::{self, Inputs, model, topology};

/// Everything that was read for a job.
pub(super) struct Job {
    pub(super) environment: Environment,
    pub(super) settings: Settings,
    pub(super) loaded: Loaded,
    pub(super) findings: Diagnostics,
    /// Whether `--rank` only says what to look at, so that this machine may be no node of the job.
    pub(super) from_elsewhere: bool,
    /// Whether no variable can be the way out.
    pub(super) only_options: bool,
    /// What an error comes to.
    consequence: &'static str,
}

impl Job {
    /// Read environment, settings and models file; `Err` is an exit code after the findings were printed.
    pub(super) fn read(
        args: &JobArgs,
        trailing: &[String],
        env_file: Option<&str>,
        consequence: &'static str,
    ) -> Result<Self, u8> {
        let (environment, findings) = Self::surroundings(env_file);
        Self::read_with(args, trailing, environment, findings, consequence)
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
        consequence: &'static str,
    ) -> Result<Self, u8> {
        let (mut settings, more) = input::settings::read(args, &environment);
        findings.extend(more);
        settings.trailing_args = trailing.to_vec();
        let loaded = match input::models(args.file.models_file.as_deref(), &environment) {
            Ok(loaded) => loaded,
            Err(problems) => {
                findings.extend(problems);
                report(&findings, None, &environment, consequence);
                return Err(exit::USAGE);
            }
        };
        tell_file(&loaded.models);
        findings.extend(loaded.diagnostics.clone());
        Ok(Self {
            environment,
            settings,
            loaded,
            findings,
            from_elsewhere: false,
            only_options: false,
            consequence,
        })
    }

    /// Print the findings of a job that is otherwise ready; whether it cannot go on.
    pub(super) fn refuses(&self) -> bool {
        self.tell();
        self.findings.has_errors()
    }

    fn tell(&self) {
        let mut findings = without_consequences(&self.findings);
        if self.only_options {
            findings.without_variables();
        }
        let file = Some(&self.loaded.models.file);
        report(&findings, file, &self.environment, self.consequence);
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
        self.tell();
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
        let mut placement = topology::place(&self.settings, &self.environment, &mut self.findings);
        if self.from_elsewhere && placement.ranks > 1 {
            placement.here = None;
        }
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

/// Findings without those that only follow from an input that could not be read: that nothing is given, where something unusable is.
fn without_consequences(findings: &Diagnostics) -> Diagnostics {
    const FOLLOWS: [(Code, &[&str]); 5] = [
        (NO_MODEL, &["--model", "MODEL_NAME"]),
        (
            NO_MODEL_FOLDER,
            &["--model-dir", "MODEL_DIR", "--model-path", "MODEL_PATH"],
        ),
        (
            NO_ADDRESSES,
            &[
                "--nodes",
                "IPADDRS",
                "SLURM_STEP_NODELIST",
                "SLURM_JOB_NODELIST",
            ],
        ),
        (NO_HOST_ADDRESS, &["--host-ip"]),
        (
            WHICH_WORKER,
            &["--rank", "NODE_RANK", "SLURM_PROCID", "--worker"],
        ),
    ];
    let unread = |input: &&str| {
        let place = Place::Input((*input).to_owned());
        let all = findings.0.iter();
        all.filter(|finding| finding.code == INVALID_SETTING && finding.is_error())
            .any(|finding| finding.place == place)
    };
    let follows = |code: Code| {
        let inputs = FOLLOWS.iter().find(|(follower, _)| *follower == code);
        inputs.is_some_and(|(_, inputs)| inputs.iter().any(unread))
    };
    let kept = findings.0.iter().filter(|finding| !follows(finding.code));
    Diagnostics(kept.cloned().collect())
}
