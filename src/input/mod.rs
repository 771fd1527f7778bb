//! Everything that is read: command line, environment, files, host. Only this folder may read them, once, before anything is decided.

pub mod env_file;
pub mod host;
pub mod hostlist;
pub mod models_file;
pub mod program;
pub mod settings;
pub mod signals;
pub mod words;
mod yaml;

use tracing::level_filters::LevelFilter;

use crate::cli::JobArgs;
use crate::domain::codes::UNREADABLE_FILE;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::models::Origin;
use crate::domain::settings::Settings;
use crate::domain::visible::visible;
use models_file::{BUILT_IN, BUILT_IN_NAME, Loaded};

/// How much is said on standard error, where no option says so. No setting of a job: its script leaves it as the submitting shell has it.
const LOG_VARIABLE: &str = "ATOM_LAUNCH_LOG";

/// The environment, copied once.
pub fn environment() -> Environment {
    Environment::new(std::env::vars_os())
}

/// The level that ATOM_LAUNCH_LOG asks for; `Err` is what is wrong with it.
pub fn log_level() -> Result<Option<LevelFilter>, String> {
    let value = std::env::var_os(LOG_VARIABLE).unwrap_or_default();
    match value.to_string_lossy().as_ref() {
        "" => Ok(None),
        "error" => Ok(Some(LevelFilter::ERROR)),
        "warning" => Ok(Some(LevelFilter::WARN)),
        "info" => Ok(Some(LevelFilter::INFO)),
        "debug" => Ok(Some(LevelFilter::DEBUG)),
        "trace" => Ok(Some(LevelFilter::TRACE)),
        other => Err(format!(
            "variable {LOG_VARIABLE} must be one of error, warning, info, debug, trace, found `{}`",
            visible(other)
        )),
    }
}

/// The settings of a job that gives none but a model folder and an address: every default, on any machine.
pub fn neutral_settings() -> Settings {
    let args = JobArgs {
        model_dir: Some("MODEL_DIR".into()),
        host_ip: Some("HOST_IP".into()),
        ..JobArgs::default()
    };
    // They are nobody's: where they come from would only mislead.
    let silent = tracing::subscriber::NoSubscriber::default();
    tracing::subscriber::with_default(silent, || settings::read(&args, &Environment::default()).0)
}

/// Find and load the models file: `--models-file`, `ATOM_MODELS_FILE`, `$ATOM_WS_PATH/models_atom.yaml`, built-in.
pub fn models(option: Option<&str>, environment: &Environment) -> Result<Loaded, Diagnostics> {
    // What names no file that we could open must not let another one be read in silence.
    let asked = ["ATOM_MODELS_FILE", "ATOM_WS_PATH"]
        .into_iter()
        .find(|name| option.is_none() && environment.is_set(name));
    if let Some(name) = asked.filter(|name| environment.not_utf8(name)) {
        return Err(Diagnostics(vec![Diagnostic::error(
            UNREADABLE_FILE,
            Place::Input(name.into()),
            format!("variable {name} is not UTF-8"),
        )]));
    }
    let (path, named_by) = if let Some(path) = option {
        (path.to_owned(), "--models-file")
    } else if let Some(path) = environment.get("ATOM_MODELS_FILE") {
        (path.to_owned(), "ATOM_MODELS_FILE")
    } else if let Some(folder) = environment.get("ATOM_WS_PATH") {
        let path = format!("{}/models_atom.yaml", folder.trim_end_matches('/'));
        // The variable names the job's scripts, which may come without a table of their own.
        if !std::path::Path::new(&path).exists() {
            return Ok(models_file::load(
                BUILT_IN_NAME,
                BUILT_IN.to_owned(),
                Origin::BuiltIn,
            ));
        }
        (path, "ATOM_WS_PATH")
    } else {
        return Ok(models_file::load(
            BUILT_IN_NAME,
            BUILT_IN.to_owned(),
            Origin::BuiltIn,
        ));
    };
    if path.is_empty() {
        return Err(Diagnostics(vec![Diagnostic::error(
            UNREADABLE_FILE,
            Place::Input(named_by.into()),
            format!("{named_by} is empty"),
        )]));
    }
    match models_file::read_text(&path, "models file") {
        Ok(text) => Ok(models_file::load(
            if path == "-" {
                "<stdin>".to_owned()
            } else {
                path.clone()
            },
            text,
            Origin::Path {
                path,
                named_by: named_by.to_owned(),
            },
        )),
        Err(mut fault) => {
            fault.message = format!("{} ({named_by})", fault.message);
            fault.place = Place::Input(named_by.into());
            Err(Diagnostics(vec![fault]))
        }
    }
}
