//! `atom-launch rehearse`: reads and resolves for the rehearsal, which does the rest.

use std::ffi::OsString;
use std::time::Duration;

use super::job::Job;
use super::{NOTHING_STARTED, report};
use crate::cli::{JobArgs, RehearseArgs};
use crate::domain::diagnostic::Diagnostics;
use crate::domain::environment::Environment;
use crate::domain::settings::Settings;
use crate::exit;
use crate::input::settings;
use crate::plan::JobPlan;
use crate::rehearse::{self, Look, Voice};
use crate::run::console::{Manner, stderr};

/// Reads the jobs that a rehearsal asks for, in the environment of its ranks.
struct Reader {
    environment: Environment,
    findings: Diagnostics,
}

impl Look for Reader {
    fn settings(&self, job: &JobArgs) -> Settings {
        // What is wrong with them is told with the plan.
        settings::read(job, &self.environment).0
    }

    fn plan(&self, args: &JobArgs, last: bool) -> Result<(JobPlan, Environment), u8> {
        let (environment, findings) = (self.environment.clone(), self.findings.clone());
        let mut job = Job::read_with(args, &[], environment, findings, NOTHING_STARTED)?;
        let (plan, _) = job.plan()?;
        job.check(args, &plan, None);
        if (last || job.findings.has_errors()) && job.refuses() {
            return Err(exit::USAGE);
        }
        Ok((plan, job.environment))
    }

    fn refuse(&self, findings: &Diagnostics) -> u8 {
        report(findings, None, &self.environment, NOTHING_STARTED);
        exit::USAGE
    }
}

/// The queue before standard error.
struct Stderr;

impl Voice for Stderr {
    fn say(&self, text: &str) {
        stderr().push(format!("{text}\n").as_bytes(), Manner::Own);
    }

    fn pass_on(&self, line: &[u8]) {
        stderr().push(line, Manner::Wait);
    }

    fn flush(&self, limit: Duration) {
        stderr().flush(limit);
    }
}

/// `atom-launch rehearse [options] [-- WORKLOAD…]`
pub(super) fn rehearse_command(args: &RehearseArgs, words: &[OsString]) -> anyhow::Result<u8> {
    let (environment, mut findings) = Job::surroundings(args.env_file.env_file.as_deref());
    let (life, problems) = settings::read_life(&args.life, &environment);
    findings.extend(problems);
    let reader = Reader {
        environment: rehearse::environment(&environment),
        findings,
    };
    let grace = Duration::from_secs_f64(life.grace.value);
    rehearse::rehearse(args, &rehearse::own_words(words), grace, &reader, &Stderr)
}
