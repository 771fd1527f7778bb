//! Commands about models files: `models` and `diff`.

use super::report;
use crate::cli::{DiffArgs, DiffFormat, ModelsArgs, TextFormat};
use crate::domain::diagnostic::{Diagnostic, Diagnostics};
use crate::domain::models::Origin;
use crate::exit;
use crate::input::models_file::Loaded;
use crate::input::{self, models_file};
use crate::render;
use crate::resolve::model;
use crate::resolve::neutral::Neutral;

/// A models file named on the command line.
pub(super) fn load_file(path: &str, named_by: &str) -> Result<Loaded, Diagnostic> {
    let text = models_file::read_text(path, "models file")?;
    let name = if path == "-" { "<stdin>" } else { path };
    let origin = Origin::Path {
        path: path.to_owned(),
        named_by: named_by.to_owned(),
    };
    Ok(models_file::load(name, text, origin))
}

/// `atom-launch models`
pub(super) fn models_command(args: &ModelsArgs) -> anyhow::Result<u8> {
    let environment = input::environment();
    let loaded = match input::models(args.file.models_file.as_deref(), &environment) {
        Ok(loaded) => loaded,
        Err(problems) => {
            report(&problems, None, &environment, "no list");
            return Ok(exit::USAGE);
        }
    };
    if report(
        &loaded.diagnostics,
        Some(&loaded.models.file),
        &environment,
        "no list",
    ) {
        return Ok(exit::USAGE);
    }
    let summaries = model::summaries(&loaded.models);
    let text = match args.format {
        TextFormat::Text => render::models::text(&summaries),
        TextFormat::Json => render::pretty(&render::models::as_json(&loaded.models, &summaries)),
    };
    render::to_stdout(text.as_bytes())?;
    Ok(exit::OK)
}

/// `atom-launch diff OLD NEW`
pub(super) fn diff_command(args: &DiffArgs) -> anyhow::Result<u8> {
    let environment = input::environment();
    if args.old == "-" && args.new == "-" {
        render::to_stderr("error: only one of the two files can be standard input\n");
        return Ok(exit::USAGE);
    }
    let load = |path: &str| {
        load_file(path, "diff")
            .map_err(|problem| {
                report(
                    &Diagnostics(vec![problem]),
                    None,
                    &environment,
                    "nothing was compared",
                )
            })
            .ok()
    };
    let (old, new) = (load(&args.old), load(&args.new));
    let (Some(old), Some(new)) = (old, new) else {
        return Ok(exit::USAGE);
    };
    let broken = [&old, &new].map(|side| {
        report(
            &side.diagnostics,
            Some(&side.models.file),
            &environment,
            "nothing was compared",
        )
    });
    if broken.contains(&true) {
        return Ok(exit::USAGE);
    }
    let mut neutral = Neutral::new(&input::neutral_settings());
    let comparison = crate::diff::compare(&old.models, &new.models, &mut neutral);
    let text = match args.format {
        DiffFormat::Text => render::diff::text(&comparison),
        DiffFormat::Json => render::pretty(&render::diff::as_json(
            &comparison,
            &old.models,
            &new.models,
        )),
        DiffFormat::Markdown => render::diff::markdown(&comparison),
    };
    render::to_stdout(text.as_bytes())?;
    let changed = args.exit_code && !comparison.models.is_empty();
    Ok(if changed { exit::FOUND } else { exit::OK })
}
