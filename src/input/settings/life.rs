//! How a rank lives: the options of `node` besides the job.

use super::reader::Reader;
use super::values::{interval, pause, text};
use crate::cli::LifeArgs;
use crate::domain::diagnostic::Diagnostics;
use crate::domain::environment::Environment;
use crate::domain::settings::LifeSettings;

/// Read what `node` needs besides the job.
pub fn read_life(args: &LifeArgs, environment: &Environment) -> (LifeSettings, Diagnostics) {
    let mut reader = Reader {
        environment,
        found: Diagnostics::default(),
    };
    let mut time = |option, given: &Option<String>, parse: fn(&str) -> Result<f64, String>| {
        reader.read(option, given.as_deref(), &[], parse)
    };
    let poll_interval = time("--poll-interval", &args.poll_interval, interval);
    let smoke_timeout = time("--smoke-timeout", &args.smoke_timeout, interval);
    let engine_death_grace = time("--engine-death-grace", &args.engine_death_grace, pause);
    let workload_timeout = time("--workload-timeout", &args.workload_timeout, interval);
    let linger = time("--linger", &args.linger, pause);
    let grace = time("--grace", &args.grace, pause);
    let life = LifeSettings {
        log_dir: reader.read("--log-dir", args.log_dir.as_deref(), &[], text),
        collect_logs: reader.read(
            "--collect-logs",
            args.collect_logs.as_deref(),
            &["BENCHMARK_LOGS_DIR"],
            text,
        ),
        poll_interval: Reader::or(poll_interval, 1.0),
        smoke_timeout: Reader::or(smoke_timeout, 300.0),
        engine_death_grace: Reader::or(engine_death_grace, 60.0),
        workload_timeout,
        linger: Reader::or(linger, 0.0),
        grace: Reader::or(grace, 20.0),
    };
    (life, reader.found)
}
