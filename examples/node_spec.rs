//! Lives a rank's whole life from a specification in JSON: `node_spec SPEC.json`. For tests of the engine by itself.

use std::process::ExitCode;

use atom_launch::exit;
use atom_launch::input;
use atom_launch::plan::node::NodeSpec;

fn main() -> ExitCode {
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
            atom_launch::run::talk::to_stderr(spec.rank, spec.quiet);
            ExitCode::from(atom_launch::run::run(&spec))
        }
        Err(error) => {
            atom_launch::run::talk::to_stderr(0, false);
            tracing::error!("{}: {error}", path.to_string_lossy());
            atom_launch::run::console::stderr().flush(std::time::Duration::from_secs(1));
            ExitCode::from(exit::USAGE)
        }
    }
}
