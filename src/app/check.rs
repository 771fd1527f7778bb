//! `check`: files, table and filter in, findings out.

use super::files::load_file;
use super::print;
use super::talk::tell_file;
use crate::atom::table::Table;
use crate::check;
use crate::cli::{CheckArgs, CheckFormat};
use crate::domain::codes;
use crate::domain::diagnostic::nearest;
use crate::exit;
use crate::input::{self, models_file};
use crate::render;
use crate::resolve::neutral::Neutral;

/// `atom-launch check`
pub(super) fn check_command(args: &CheckArgs) -> anyhow::Result<u8> {
    if let Some(code) = &args.explain {
        return explain_code(code);
    }
    let filter = check::Filter {
        allow: args.allow.clone(),
        deny: args.deny.clone(),
    };
    let mut usage: Vec<String> = filter.unknown().map(unknown_code).collect();
    let table = server_table(args).unwrap_or_else(|message| {
        usage.push(message);
        Table::builtin()
    });
    let environment = input::environment();
    let mut sides = Vec::new();
    if args.files.is_empty() {
        match input::models(None, &environment) {
            Ok(loaded) => sides.push(loaded),
            Err(problems) => usage.extend(problems.0.into_iter().map(|problem| problem.message)),
        }
    }
    for path in &args.files {
        match load_file(path, "check") {
            Ok(loaded) => sides.push(loaded),
            Err(problem) => usage.push(problem.message),
        }
    }
    if !usage.is_empty() {
        for problem in &usage {
            let problem = render::diagnostic::printable(problem);
            render::to_stderr(&format!("error: {problem}\n"));
        }
        return Ok(exit::USAGE);
    }
    for side in &sides {
        tell_file(&side.models);
    }
    tracing::debug!("options of the server: {}", table.options().len());
    let mut neutral = Neutral::new(&input::neutral_settings());
    let checked: Vec<render::check::Checked> = sides
        .into_iter()
        .map(|side| {
            let found = check::file(
                &side.models,
                side.diagnostics,
                side.notes,
                &table,
                &mut neutral,
                &filter,
            );
            render::check::Checked {
                file: side.models.file,
                models: side.models.entries.len(),
                found,
            }
        })
        .collect();
    let colour = render::stdout_colour(environment.is_set("NO_COLOR"));
    let text = match args.format {
        CheckFormat::Text => render::check::text(&checked, colour),
        CheckFormat::Json => render::pretty(&render::check::as_json(&checked)),
        CheckFormat::Github => render::check::github(&checked),
    };
    render::to_stdout(text.as_bytes())?;
    let errors = checked.iter().any(|side| side.found.has_errors());
    Ok(if errors { exit::FOUND } else { exit::OK })
}

/// The server's options to check against.
fn server_table(args: &CheckArgs) -> Result<Table, String> {
    if let Some(date) = &args.atom_date {
        let date = date
            .parse()
            .map_err(|reason| format!("`--atom-date`: {reason}"))?;
        return Ok(Table::as_of(date));
    }
    match &args.server_help {
        None => Ok(Table::builtin()),
        Some(path) => {
            let text =
                models_file::read_text(path, "help text").map_err(|problem| problem.message)?;
            Table::from_help(&text).map_err(|error| {
                let line = error
                    .line
                    .map_or(String::new(), |line| format!(", line {line}"));
                format!("`--server-help {path}`{line}: {}", error.message)
            })
        }
    }
}

fn unknown_code(name: &str) -> String {
    let near = nearest(name, codes::names())
        .map_or(String::new(), |near| format!("; did you mean {near}?"));
    format!(
        "no kind of finding is called `{}`{near} (`atom-launch check --explain` lists them)",
        name.escape_debug()
    )
}

/// `check --explain [CODE]`
fn explain_code(name: &str) -> anyhow::Result<u8> {
    if name == "all" {
        let rows: Vec<Vec<String>> = codes::ALL
            .iter()
            .map(|description| {
                vec![
                    description.code.0.to_owned(),
                    description.summary.to_owned(),
                ]
            })
            .collect();
        return print(&render::table::aligned(&rows));
    }
    let Some(description) = codes::describe(name) else {
        render::to_stderr(&format!("error: {}\n", unknown_code(name)));
        return Ok(exit::USAGE);
    };
    print(&format!(
        "{name}: {}\n\n{}\n",
        description.summary, description.explanation
    ))
}
