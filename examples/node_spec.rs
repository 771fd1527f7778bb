//! Lives a rank's whole life from a specification in JSON: `node_spec SPEC.json`. For tests of the engine by itself.

use std::process::ExitCode;

use atom_launch::exit;
use atom_launch::input;
use atom_launch::plan::node::NodeSpec;
use atom_launch::run::talk;
use tracing::level_filters::LevelFilter;

fn main() -> ExitCode {
    let speak = |usual| talk::to_stderr(input::log_level().ok().flatten().unwrap_or(usual));
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let spec = std::fs::read(&path)
        .map_err(|error| error.to_string())
        .and_then(|text| {
            serde_json::from_slice::<NodeSpec>(&text).map_err(|error| error.to_string())
        });
    match spec {
        Ok(mut spec) => {
            spec.host = input::host::of_rank().host;
            spec.environment = input::environment();
            speak(if spec.quiet {
                LevelFilter::WARN
            } else {
                LevelFilter::INFO
            });
            talk::of_rank(spec.rank);
            ExitCode::from(atom_launch::run::run(&spec))
        }
        Err(error) => {
            speak(LevelFilter::INFO);
            tracing::error!("{}: {error}", path.to_string_lossy());
            ExitCode::from(exit::USAGE)
        }
    }
}
