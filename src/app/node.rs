//! `node`: the plan of one rank → what the engine needs.

use std::time::Duration;

use super::job::Job;
use super::talk::tell_origins;
use super::{NOTHING_STARTED, print};
use crate::cli::NodeArgs;
use crate::domain::codes::NO_ADDRESSES;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Help, NODES, Place};
use crate::exit;
use crate::input;
use crate::plan::node::NodeSpec;
use crate::render;
use crate::resolve::node;
use crate::resolve::own::own_rank;
use crate::run::event::{Outcome, Phase, Verdict};
use crate::run::manifest::Manifest;
use crate::run::{self, talk};

/// `atom-launch node`
pub(super) fn node_command(args: &NodeArgs) -> anyhow::Result<u8> {
    let mut job = match Job::read(&args.job, &[], None, NOTHING_STARTED) {
        Ok(job) => job,
        Err(code) => return Ok(code),
    };
    let (life, problems) = input::settings::read_life(&args.life, &job.environment);
    job.findings.extend(problems);
    let (plan, placement) = match job.plan() {
        Ok(plan) => plan,
        Err(code) => return Ok(code),
    };
    let rank = own_rank(&plan, &placement, &job.environment);
    match &rank {
        Err(problem) => job.findings.push(problem.clone()),
        Ok(_) if plan.ranks > 1 && placement.nodes.is_empty() => job.findings.push(
            Diagnostic::error(
                NO_ADDRESSES,
                Place::Input("--nodes".into()),
                format!("the addresses of the {} nodes are not known", plan.ranks),
            )
            .help(Help::give("set ", NODES, ", one address a rank")),
        ),
        Ok(_) => {}
    }
    let rank = rank.unwrap_or_default();
    job.check(&args.job, &plan, Some(rank));
    let facts = input::host::of_rank();
    let mut spec = node::spec(node::Rank {
        plan: &plan,
        rank,
        settings: &job.settings,
        life: &life,
        environment: &job.environment,
        facts: &facts,
    });
    spec.smoke = args.life.smoke;
    spec.quiet = args.job.quiet;
    spec.workload.clone_from(&args.workload);
    if job.refuses() {
        if !args.dry_run && placement.rank == Some(rank) {
            leave_word(&spec, &job.findings);
        }
        return Ok(exit::USAGE);
    }
    if args.dry_run || job.settings.dry_run.value {
        return print(&render::plan::shell(&plan, Some(rank)));
    }
    if !args.job.quiet {
        for worker in plan.workers_of(rank) {
            render::to_stderr(&render::banner::text(&plan, worker));
        }
    }
    for worker in plan.workers_of(rank) {
        tell_origins(worker, &job.loaded.models.file.name);
    }
    talk::of_rank(spec.rank);
    Ok(run::run(&spec))
}

/// A record of a rank that was refused, for the other ranks and `report`. Only where the job has made the log folder: one
/// mistyped option on a laptop leaves nothing behind.
fn leave_word(spec: &NodeSpec, findings: &Diagnostics) {
    if !spec.log_dir.is_dir() {
        return;
    }
    let first = findings.0.iter().find(|finding| finding.is_error());
    let mut record = Manifest::begin(spec);
    record.enter(Phase::Preflight, Duration::ZERO);
    record.enter(Phase::Done, Duration::ZERO);
    record.decide(&Outcome {
        code: exit::USAGE,
        verdict: Verdict::Failed,
        phase: Phase::Preflight,
        reason: first.map_or_else(String::new, |finding| finding.message.clone()),
        culprit: None,
    });
    // It was said on stderr already; nobody is worse off without the record.
    let _ = record.write(&spec.log_dir);
}
