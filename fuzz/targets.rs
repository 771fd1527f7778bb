//! What the fuzz targets do with their bytes. `tests/fuzz_regressions.rs` replays kept inputs through the same functions.
#![allow(dead_code, reason = "each target uses one function")]

use std::sync::OnceLock;

use atom_launch::atom::argparse::{self, Verdict};
use atom_launch::atom::table::Table;
use atom_launch::check;
use atom_launch::cli::JobArgs;
use atom_launch::domain::diagnostic::{Diagnostics, Place};
use atom_launch::domain::environment::{Environment, HostFacts, ModelFolder};
use atom_launch::domain::models::Origin;
use atom_launch::domain::source::SourceFile;
use atom_launch::input::models_file::Loaded;
use atom_launch::input::{self, env_file, models_file, settings, words};
use atom_launch::render;
use atom_launch::resolve::neutral::Neutral;
use atom_launch::resolve::{self, Inputs, model, topology};

/// Every place lies in the file, at character boundaries.
fn in_file(found: &Diagnostics, file: &SourceFile) {
    for finding in &found.0 {
        let first = match finding.place {
            Place::File(span) => Some(span),
            Place::Input(_) | Place::Whole => None,
        };
        for span in first
            .into_iter()
            .chain(finding.more.iter().map(|more| more.span))
        {
            assert!(
                file.text.get(span.range()).is_some(),
                "{span:?} of {finding:?}"
            );
        }
    }
}

/// A models file: loading, all checks, all forms of the findings; a clean file is the same as itself.
pub(crate) fn models_file(data: &[u8]) {
    let Ok(text) = models_file::decode("fuzz.yaml", data.to_vec()) else {
        return;
    };
    let origin = || Origin::Path {
        path: "fuzz.yaml".into(),
        named_by: "fuzz".into(),
    };
    let loaded = models_file::load("fuzz.yaml", text.clone(), origin());
    let clean = !loaded.diagnostics.has_errors();
    let mut neutral = Neutral::new(&input::neutral_settings());
    if clean {
        let again = models_file::load("fuzz.yaml", text, origin());
        let changes = atom_launch::diff::compare(&loaded.models, &again.models, &mut neutral);
        assert!(changes.models.is_empty(), "a file differs from itself");
    }
    let table = Table::builtin();
    let found = check::file(
        &loaded.models,
        loaded.diagnostics,
        loaded.notes,
        &table,
        &mut neutral,
        &check::Filter::default(),
    );
    in_file(&found, &loaded.models.file);
    let checked = [render::check::Checked {
        models: loaded.models.entries.len(),
        file: loaded.models.file,
        found,
    }];
    for colour in [false, true] {
        let _ = render::check::text(&checked, colour);
    }
    let _ = render::check::as_json(&checked);
    for line in render::check::github(&checked).lines() {
        assert!(
            line.starts_with("::error file=fuzz.yaml,")
                || line.starts_with("::warning file=fuzz.yaml,"),
            "{line:?}"
        );
    }
}

/// A string of words: splitting, and the reading of the server's parser.
pub(crate) fn flag_strings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let table = Table::builtin();
    let split = match words::split(text) {
        Ok(split) => split,
        Err(fault) => {
            assert!(fault.at() < text.len().max(1), "{fault:?}");
            assert!(text.is_char_boundary(fault.at()), "{fault:?}");
            return;
        }
    };
    for (_, range) in &split {
        assert!(text.get(range.clone()).is_some(), "{range:?}");
    }
    let line: Vec<&str> = split.iter().map(|(word, _)| word.as_str()).collect();
    assert_eq!(
        words::split(&shell_words(&line))
            .map(|again| again.into_iter().map(|(word, _)| word).collect::<Vec<_>>())
            .as_deref()
            .ok(),
        Some(
            line.iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
                .as_slice()
        ),
        "quoting and splitting give back the same words"
    );
    let parsed = argparse::parse(&line, &table);
    for problem in &parsed.problems {
        let word = line[problem.word];
        assert!(
            word.get(problem.range.clone()).is_some(),
            "{problem:?} of {word:?}"
        );
    }
    for occurrence in &parsed.occurrences {
        let _ = occurrence.value();
        assert!(
            occurrence.word < occurrence.end && occurrence.end <= line.len(),
            "{occurrence:?}"
        );
    }
    match parsed.verdict() {
        Verdict::Accepted => assert!(parsed.problems.is_empty(), "{:?}", parsed.problems),
        Verdict::Help | Verdict::Rejected(_) => assert!(!parsed.problems.is_empty()),
    }
    for word in line.iter().take(20) {
        let _ = argparse::nearest(word, &table);
    }
}

/// Words as a shell takes them, each in single quotes.
fn shell_words(line: &[&str]) -> String {
    let quoted: Vec<String> = line
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    quoted.join(" ")
}

/// A job script's variables: reading, settings, topology, the whole plan in all its forms.
pub(crate) fn environment(data: &[u8]) {
    // Reading the file anew for each input would take most of the time.
    static BUILT_IN: OnceLock<Loaded> = OnceLock::new();
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut environment = Environment::default();
    let mut found = Diagnostics::default();
    env_file::overlay("job.sh", text, &mut environment, &mut found);
    let (settings, more) = settings::read(&JobArgs::default(), &environment);
    found.extend(more);
    let loaded = BUILT_IN.get_or_init(|| {
        models_file::load(
            "built-in",
            models_file::BUILT_IN.to_owned(),
            Origin::BuiltIn,
        )
    });
    let placement = topology::place(&settings, &environment, &mut found);
    assert!(
        placement.slots.len() <= 4096,
        "{} workers",
        placement.slots.len()
    );
    let entry = model::entry(&loaded.models, &settings).unwrap_or(&loaded.models.entries[0]);
    let host = HostFacts::default();
    let inputs = Inputs {
        settings: &settings,
        models: &loaded.models,
        entry,
        environment: &environment,
        host: &host,
        folder: &ModelFolder::Plain,
    };
    // A job with errors has no plan to speak of, but must not bring the program down.
    let plan = resolve::job(inputs, &placement, &mut found);
    for worker in plan.workers.iter().take(4) {
        found.extend(check::worker(worker, settings.gpus_per_node.value));
    }
    found.extend(check::job(&plan, environment.get("HIP_VISIBLE_DEVICES")));
    let _ = render::plan::text(&plan, None);
    let _ = render::plan::shell(&plan, Some(0));
    let _ = render::plan::as_json(&plan, Some(0));
    let _ = render::diagnostic::list(
        &found,
        Some(&loaded.models.file),
        false,
        "nothing was started",
    );
}

/// The server's help text: a table, and a line read with it.
pub(crate) fn server_help(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(table) = Table::from_help(&text) else {
        return;
    };
    let line = [
        "--model",
        "m",
        "-tp",
        "8",
        "--kv_cache_dtyp=fp8",
        "--enable-tbo",
        "all",
        "--level",
        "x",
        "--max-num-seqs",
        "-1",
    ];
    let parsed = argparse::parse(&line, &table);
    for problem in &parsed.problems {
        assert!(
            line[problem.word].get(problem.range.clone()).is_some(),
            "{problem:?}"
        );
    }
    let _ = parsed.verdict();
}
