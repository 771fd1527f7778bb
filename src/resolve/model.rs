//! Which entry of the models file, and which path or hub id the server gets.

use super::parallel;
use crate::domain::codes::{NO_MODEL, UNCLEAR_SNAPSHOT, UNKNOWN_MODEL};
use crate::domain::command::last_value;
use crate::domain::diagnostic::{Diagnostic, Help, Place, nearest};
use crate::domain::environment::ModelFolder;
use crate::domain::models::{ModelEntry, ModelsFile, Words};
use crate::domain::provenance::{Shadowed, Source, Sourced};
use crate::domain::settings::Settings;
use crate::domain::topology::{Mode, Role};

/// Suffix of the entry that an agentic job prefers, and of the one that any other job prefers.
const AGENTIC: &str = "-AgentX";
const PLAIN: &str = "-DI";

/// The entry of the job's model: its variant first, then the name itself. An error where no model is named, or the file has none of that name.
pub fn entry<'a>(
    models: &'a ModelsFile,
    settings: &Settings,
) -> Result<&'a ModelEntry, Diagnostic> {
    let Some(model) = &settings.model else {
        return Err(Diagnostic::error(
            NO_MODEL,
            Place::Input("--model".into()),
            "no model is given",
        )
        .help(Help::give(
            "name one with ",
            ("--model NAME", "MODEL_NAME"),
            "",
        ))
        .help(list(models)));
    };
    let name = model.value.as_str();
    let variant = if settings.is_agentic.value {
        AGENTIC
    } else {
        PLAIN
    };
    models
        .entry(&format!("{name}{variant}"))
        .or_else(|| models.entry(name))
        .ok_or_else(|| unknown(models, name, &model.source))
}

fn unknown(models: &ModelsFile, name: &str, source: &Source) -> Diagnostic {
    let by = source.input().unwrap_or("--model");
    let mut found = Diagnostic::error(
        UNKNOWN_MODEL,
        Place::Input(by.to_owned()),
        format!(
            "model `{}` ({by}) is not in {}",
            name.escape_debug(),
            models.file.name
        ),
    );
    let last = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name);
    if name.contains('/') {
        let meant = models.entry(last).map_or(String::new(), |entry| {
            format!(", here `{}`", entry.name.value)
        });
        found = found.help(format!(
            "{by} names an entry of the models file{meant}; a path or hub id goes into `--model-path`, the folder of all models into `--model-dir`"
        ));
    } else if let Some(near) = near(models, name) {
        found = found.help(format!("did you mean `{near}`?"));
    }
    found.help(list(models))
}

/// A near name: a typo, or one that the name starts with or is the start of.
fn near<'a>(models: &'a ModelsFile, name: &str) -> Option<&'a str> {
    let lower = name.to_lowercase();
    nearest(name, models.names()).or_else(|| {
        models.names().find(|known| {
            let known = known.to_lowercase();
            lower.starts_with(&known) || (lower.len() >= 4 && known.starts_with(&lower))
        })
    })
}

/// The first models of the file, for help.
fn list(models: &ModelsFile) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = models.names().take(SHOWN).collect();
    let more = models.entries.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more (`atom-launch models`)")
    } else {
        String::new()
    };
    format!("models there: {}{more}", names.join(", "))
}

/// The model's path before the hub cache is looked at: `--model-path`, else folder / (hf_dir or name), else a hub id.
pub fn path(settings: &Settings, entry: &ModelEntry) -> Sourced<String> {
    let name = settings
        .model
        .as_ref()
        .map_or("", |model| model.value.as_str());
    let hf_dir = entry.hf_dir.as_ref().map(|dir| dir.0.value.as_str());
    let from_option = matches!(
        settings.model_path.as_ref().map(|path| &path.source),
        Some(Source::CommandLine(_))
    );
    match (&settings.model_path, &settings.model_dir) {
        (Some(path), folder) if from_option || folder.is_none() => {
            let mut path = path.clone();
            path.shadowed.extend(folder.iter().map(|folder| Shadowed {
                value: folder.value.clone(),
                source: folder.source.clone(),
            }));
            path
        }
        (_, Some(folder)) => {
            let inner = hf_dir.unwrap_or(name);
            let base = folder.value.trim_end_matches('/');
            folder.clone().map(|_| format!("{base}/{inner}"))
        }
        (_, None) => {
            // `models--org--name` is how the hub cache spells the id `org/name`.
            let id = hf_dir.map(|dir| {
                dir.strip_prefix("models--")
                    .and_then(|rest| rest.split_once("--"))
                    .map_or_else(|| dir.to_owned(), |(org, name)| format!("{org}/{name}"))
            });
            let how = if id.is_some() {
                "hf_dir of the entry, as no model folder is set"
            } else {
                "the model's name, as no model folder is set"
            };
            Sourced::new(
                id.unwrap_or_else(|| name.to_owned()),
                Source::Derived(how.into()),
            )
        }
    }
}

/// The path that the server gets: the snapshot of a hub cache folder, else the path itself.
pub fn resolved_path(
    path: Sourced<String>,
    folder: &ModelFolder,
) -> Result<Sourced<String>, Diagnostic> {
    match folder {
        ModelFolder::Plain => Ok(path),
        ModelFolder::Snapshot(snapshot) => Ok(path.map(|_| snapshot.clone())),
        ModelFolder::Unclear(reason) => Err(Diagnostic::error(
            UNCLEAR_SNAPSHOT,
            Place::Input("--model-path".into()),
            format!(
                "the hub cache folder {} does not say which snapshot to use: {reason}",
                path.value
            ),
        )
        .help("name the snapshot itself with `--model-path`")),
    }
}

/// What a person wants to know of a model before using it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary<'a> {
    /// Name of the entry.
    pub name: &'a str,
    /// Line of the entry.
    pub line: usize,
    /// Modes in which every role can run.
    pub modes: Vec<Mode>,
    /// Method of speculative decoding, where the entry has one.
    pub method: Option<String>,
    /// Type of the KV cache, where the entry says.
    pub kv_cache_dtype: Option<String>,
}

/// Summaries of all models in file order.
pub fn summaries(models: &ModelsFile) -> Vec<Summary<'_>> {
    let value_in = |words: &Option<Words>, option: &str| {
        let words = &words.as_ref()?.words;
        let groups = parallel::group(
            words.iter().map(|word| word.value.clone()).collect(),
            &Source::Default,
        );
        last_value(&groups, option)?.map(str::to_owned)
    };
    let runs = |entry: &ModelEntry, mode: Mode| {
        Role::ALL
            .iter()
            .all(|role| parallel::mode_problem(entry, *role, mode).is_none())
    };
    models
        .entries
        .iter()
        .map(|entry| Summary {
            name: &entry.name.value,
            line: models.file.position(entry.name.span.start).line,
            modes: Mode::ALL
                .into_iter()
                .filter(|mode| runs(entry, *mode))
                .collect(),
            method: value_in(&entry.mtp_flags, "--method"),
            kv_cache_dtype: value_in(&entry.kv_cache_flags, "--kv-cache-dtype"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::environment::Environment;
    use crate::domain::models::Origin;
    use crate::input::{models_file, settings};

    fn path_of(env: &[(&str, &str)], yaml: &str) -> String {
        let models = models_file::load("t", yaml.to_owned(), Origin::BuiltIn).models;
        let env = Environment::new(
            env.iter()
                .map(|(name, value)| ((*name).into(), (*value).into())),
        );
        let (settings, found) = settings::read(&crate::cli::JobArgs::default(), &env);
        assert!(!found.has_errors());
        path(&settings, entry(&models, &settings).unwrap()).value
    }

    #[test]
    fn model_dir_beats_model_path_and_hf_dir_replaces_the_name() {
        let m = ("MODEL_NAME", "M");
        assert_eq!(
            path_of(&[m, ("MODEL_DIR", "/d/"), ("MODEL_PATH", "/p")], "M: {}"),
            "/d/M"
        );
        assert_eq!(path_of(&[m, ("MODEL_PATH", "/p")], "M: {}"), "/p");
        assert_eq!(
            path_of(&[m, ("MODEL_DIR", "/d")], "M: {hf_dir: other}"),
            "/d/other"
        );
        assert_eq!(path_of(&[m], "M: {hf_dir: models--a--b--c}"), "a/b--c");
        assert_eq!(path_of(&[m], "M: {}"), "M");
        assert_eq!(path_of(&[m, ("MODEL_DIR", "/")], "M: {}"), "/M");
    }

    #[test]
    fn variants_are_looked_up_first() {
        let yaml = "M: {hf_dir: plain}\nM-DI: {hf_dir: di}\nM-AgentX: {hf_dir: agent}";
        let m = ("MODEL_NAME", "M");
        assert_eq!(path_of(&[m], yaml), "di");
        assert_eq!(path_of(&[m, ("IS_AGENTIC", "1")], yaml), "agent");
        assert_eq!(
            path_of(&[m, ("IS_AGENTIC", "0")], "M: {hf_dir: plain}"),
            "plain"
        );
    }
}
