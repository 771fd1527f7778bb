//! `wait`: URLs → the prober's patience, and its answer in words.

use std::time::Duration;

use crate::cli::WaitArgs;
use crate::exit;
use crate::input;
use crate::render;
use crate::run::wait::{Failed, Patience, wait_for};

/// `atom-launch wait`
pub(super) fn wait_command(args: &WaitArgs) -> u8 {
    let time = |name: &str, text: &str| {
        let time = input::settings::interval(text);
        time.map(Duration::from_secs_f64)
            .map_err(|why| format!("`{name}` {why}, found `{}`", text.escape_debug()))
    };
    let times = (
        time("--timeout", &args.timeout),
        time("--poll-interval", &args.poll_interval),
    );
    let (Ok(timeout), Ok(interval)) = (&times.0, &times.1) else {
        for problem in [times.0.err(), times.1.err()].into_iter().flatten() {
            render::to_stderr(&format!("error: {problem}\n"));
        }
        return exit::USAGE;
    };
    let patience = Patience {
        timeout: *timeout,
        interval: *interval,
        probe_timeout: Duration::from_secs(10),
        heartbeat: Duration::from_secs(30),
    };
    let quiet = args.quiet;
    match wait_for(&args.urls, patience, |line| {
        if !quiet {
            render::to_stderr(&format!("atom-launch: {line}\n"));
        }
    }) {
        Ok(()) => exit::OK,
        Err(failed) => {
            let (lines, code) = match failed {
                Failed::Usage(lines) => (lines, exit::USAGE),
                Failed::Missing(lines) => (lines, exit::UNAVAILABLE),
            };
            for line in &lines {
                render::to_stderr(&format!("error: {}\n", render::diagnostic::printable(line)));
            }
            code
        }
    }
}
