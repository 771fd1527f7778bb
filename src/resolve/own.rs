//! Which rank and which worker of a job this process is.

use super::topology::Placement;
use crate::domain::codes::WHICH_WORKER;
use crate::domain::diagnostic::{Diagnostic, Help, Place};
use crate::domain::environment::Environment;
use crate::domain::settings::Settings;
use crate::plan::{JobPlan, WorkerPlan};

/// The rank that this process is: the only one of the job, else the one that was given.
pub fn own_rank(
    plan: &JobPlan,
    placement: &Placement,
    environment: &Environment,
) -> Result<u32, Diagnostic> {
    let only = plan.workers.first().filter(|_| plan.ranks == 1);
    only.map(|worker| worker.rank)
        .or(placement.rank)
        .ok_or_else(|| {
            Diagnostic::error(
                WHICH_WORKER,
                Place::Input("--rank".into()),
                format!("which of the {} ranks is this?", plan.ranks),
            )
            .help(if environment.is_batch_step() {
                Help::from("this is the batch script itself: start the ranks with `srun --ntasks-per-node=1 atom-launch node …`")
            } else {
                Help::give("set ", ("--rank N", "NODE_RANK"), "; inside srun, SLURM_PROCID is taken")
            })
        })
}

/// The worker that this process is: by rank, role and `--worker`.
pub fn own_worker<'a>(
    plan: &'a JobPlan,
    placement: &Placement,
    settings: &Settings,
    environment: &Environment,
) -> Result<&'a WorkerPlan, Diagnostic> {
    let rank = own_rank(plan, placement, environment)?;
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
