//! A job as it was read: environment, settings, models file, and what is wrong with them.

use super::{NOTHING_STARTED, report};
use crate::check;
use crate::cli::JobArgs;
use crate::domain::codes::{
    INVALID_SETTING, NO_ADDRESSES, NO_HOST_ADDRESS, NO_MODEL, NO_MODEL_FOLDER, WHICH_WORKER,
};
use crate::domain::diagnostic::{Code, Diagnostic, Diagnostics, Place};
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
                Ok(text) => input::env_file::overlay(path, &text, &mut environment, &mut findings),
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
        tracing::debug!(file = %loaded.models.file.name, models = loaded.models.entries.len(), "models file read");
        findings.extend(loaded.diagnostics.clone());
        Ok(Self {
            environment,
            settings,
            loaded,
            findings,
        })
    }

    /// Take out what only follows from an input that could not be read: that nothing is given, where something unusable is.
    fn drop_consequences(&mut self) {
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
        let unread: Vec<String> = self
            .findings
            .0
            .iter()
            .filter(|finding| finding.code == INVALID_SETTING && finding.is_error())
            .filter_map(|finding| match &finding.place {
                Place::Input(input) => Some(input.clone()),
                Place::Whole | Place::File(_) => None,
            })
            .collect();
        let follows = |code: Code| {
            let inputs = FOLLOWS.iter().find(|(follower, _)| *follower == code);
            inputs
                .is_some_and(|(_, inputs)| unread.iter().any(|one| inputs.contains(&one.as_str())))
        };
        self.findings.0.retain(|finding| !follows(finding.code));
    }

    /// Print the findings of a job that is otherwise ready: errors with their snippets, warnings one line each.
    pub(super) fn refuses(&mut self, consequence: &str) -> bool {
        self.drop_consequences();
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

    pub(super) fn stop(&mut self) -> u8 {
        self.drop_consequences();
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

/// The worker that this process is: by rank, role and `--worker`.
pub(super) fn own_worker<'a>(
    plan: &'a JobPlan,
    placement: &topology::Placement,
    settings: &Settings,
) -> Result<&'a WorkerPlan, Diagnostic> {
    let rank = match placement.rank {
        _ if plan.workers.len() == 1 => plan.workers[0].rank,
        Some(rank) => rank,
        None => {
            return Err(Diagnostic::error(
                WHICH_WORKER,
                Place::Input("--rank".into()),
                format!("which of the {} ranks is this?", plan.ranks),
            )
            .help("set NODE_RANK or `--rank N`; inside srun, SLURM_PROCID is taken"));
        }
    };
    let here: Vec<&WorkerPlan> = plan
        .workers_of(rank)
        .filter(|worker| {
            settings
                .role
                .as_ref()
                .is_none_or(|role| role.value == worker.role)
        })
        .collect();
    match (here.as_slice(), &settings.worker) {
        ([], _) => Err(Diagnostic::error(
            WHICH_WORKER,
            Place::Input("--rank".into()),
            format!("rank {rank} has no worker"),
        )),
        (several, Some(wanted)) => several
            .iter()
            .find(|worker| worker.slot == wanted.value)
            .copied()
            .ok_or_else(|| {
                Diagnostic::error(
                    WHICH_WORKER,
                    Place::Input("--worker".into()),
                    format!("rank {rank} has no worker {}", wanted.value),
                )
                .help(format!("its workers: {}", names(several)))
            }),
        ([only], None) => Ok(only),
        (several, None) => Err(Diagnostic::error(
            WHICH_WORKER,
            Place::Input("--worker".into()),
            format!(
                "rank {rank} has {} workers; which is to be started?",
                several.len()
            ),
        )
        .help(format!("`--worker N`: {}", names(several)))
        .help("`atom-launch node` starts all of them")),
    }
}

fn names(workers: &[&WorkerPlan]) -> String {
    let names: Vec<String> = workers
        .iter()
        .map(|worker| format!("{} = {}", worker.slot, worker.name))
        .collect();
    names.join(", ")
}
