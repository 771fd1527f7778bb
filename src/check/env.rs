//! Variables: names that nothing reads, values that mean something else, secrets and loader variables in the file.

use crate::atom::table::environment::{self, EnvKind, Reader};
use crate::domain::codes;
use crate::domain::command::EnvVar;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use crate::domain::models::{ModelEntry, Pair};
use crate::domain::provenance::Source;
use crate::domain::secret::{hide_url_passwords, is_secret_name};
use crate::domain::visible::visible;

/// Variables that change which code is loaded.
const LOADER: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PATH",
];

/// Variables that the launcher itself sets for a worker.
const LAUNCHERS: &[&str] = &[
    "ATOM_HOST_IP",
    "ATOM_DP_MASTER_PORT",
    "ATOM_DP_BASE_PORT",
    "HIP_VISIBLE_DEVICES",
];

/// The variables of a resolved command that a person set for it.
pub(super) fn of_command(env: &[EnvVar], found: &mut Diagnostics) {
    for var in env {
        let place = var.source.place();
        match &var.source {
            Source::ModelsFile { .. } => value(&var.name, &var.value, &place, "", found),
            Source::CommandLine(option) if option == "--env" => {
                name(&var.name, &place, " in `--env`", found);
                value(&var.name, &var.value, &place, " in `--env`", found);
            }
            _ => {}
        }
    }
}

/// All pairs of an entry, field by field.
pub(super) fn of_entry(entry: &ModelEntry, found: &mut Diagnostics) {
    for (field, pairs) in entry.pairs() {
        let within = format!(" in `{field}`");
        for (position, pair) in pairs.pairs.iter().enumerate() {
            let place = Place::File(pair.span);
            name(&pair.name, &place, &within, found);
            value(&pair.name, &pair.value, &place, &within, found);
            in_file(pair, &within, found);
            if let Some(earlier) = pairs.pairs[..position]
                .iter()
                .find(|earlier| earlier.name == pair.name)
            {
                twice(pair, earlier, &within, found);
            }
        }
    }
}

fn twice(pair: &Pair, earlier: &Pair, within: &str, found: &mut Diagnostics) {
    // Two values are an error that `resolve` reports; the same value is only noise.
    if pair.value == earlier.value {
        found.push(
            Diagnostic::warning(
                codes::ENV_TWICE,
                Place::File(pair.span),
                format!("{}{within} is set twice to the same value", pair.name),
            )
            .also(earlier.span, "first time"),
        );
    }
}

/// Whether a text holds a URL with a password.
pub(super) fn has_password(text: &str) -> bool {
    text.contains("://") && hide_url_passwords(text) != text
}

pub(super) fn password(what: &str, within: &str, place: Place) -> Diagnostic {
    Diagnostic::warning(
        codes::SECRET_IN_FILE,
        place,
        format!("{what}{within} holds a URL with a password, and this file is shared"),
    )
    .help("export it in the job; the server inherits it, and the launcher shows it nowhere")
}

/// What belongs in no file that others read.
fn in_file(pair: &Pair, within: &str, found: &mut Diagnostics) {
    let place = Place::File(pair.span);
    if has_password(&pair.value) {
        found.push(password(&pair.name, within, place.clone()));
    }
    if is_secret_name(&pair.name) && !pair.value.is_empty() {
        found.push(
            Diagnostic::warning(
                codes::SECRET_IN_FILE,
                place.clone(),
                format!(
                    "{}{within} looks like a secret, and this file is shared",
                    pair.name
                ),
            )
            .help(
                "export it in the job; the server inherits it, and the launcher shows it nowhere",
            ),
        );
    }
    if LOADER.contains(&pair.name.as_str()) {
        found.push(
            Diagnostic::warning(
                codes::LOADER_VARIABLE,
                place.clone(),
                format!(
                    "{}{within} changes which code every process of the server loads",
                    pair.name
                ),
            )
            .help("it replaces what the image and the job have set; set it in the image instead"),
        );
    }
    if LAUNCHERS.contains(&pair.name.as_str()) {
        found.push(
            Diagnostic::warning(codes::LAUNCHER_VARIABLE, place, format!("{}{within} is set by the launcher for each worker; the file's value is the same for all", pair.name))
                .help("remove it: addresses, ports and devices follow from the topology"),
        );
    }
}

/// Whether anything reads the name. C10, E12: the table says which variables have no effect, and why.
fn name(name: &str, place: &Place, within: &str, found: &mut Diagnostics) {
    if let Some(gone) = environment::removed(name) {
        let instead = gone
            .replaced_by
            .map(|new| format!("{new} does its work now"));
        let message = format!(
            "{name}{within} is not read any more: ATOM dropped it on {}",
            gone.removed
        );
        found.push(
            Diagnostic::warning(codes::ENV_WITHOUT_EFFECT, place.clone(), message).help_if(instead),
        );
        return;
    }
    // Some are overwritten for one model family only; those that ATOM reads are worth setting all the same.
    if let Some(own) =
        environment::set_by_server(name).filter(|_| environment::variable(name).is_none())
    {
        let message = format!(
            "{name}{within} has no effect: the server sets it itself ({})",
            own.value
        );
        found.push(Diagnostic::warning(
            codes::ENV_WITHOUT_EFFECT,
            place.clone(),
            message,
        ));
        return;
    }
    if environment::unread(name).is_some() {
        let message =
            format!("{name}{within} has no effect: nothing on ATOM's main branch reads it");
        found.push(Diagnostic::warning(
            codes::ENV_WITHOUT_EFFECT,
            place.clone(),
            message,
        ));
        return;
    }
    match environment::variable(name) {
        Some(var) if !var.has_effect() => {
            let why = var
                .note
                .strip_prefix("no effect on the server: ")
                .unwrap_or(var.note);
            let message = format!("{name}{within} has no effect: {why}");
            found.push(Diagnostic::warning(
                codes::ENV_WITHOUT_EFFECT,
                place.clone(),
                message,
            ));
        }
        Some(var) if matches!(var.reader, Reader::Plugin | Reader::Benchmarks) => {
            let who = if var.reader == Reader::Plugin {
                "ATOM's plugin for another engine"
            } else {
                "ATOM's benchmark scripts"
            };
            let message = format!("{name}{within} is read by {who} only, not by this server");
            found.push(Diagnostic::warning(
                codes::ENV_WITHOUT_EFFECT,
                place.clone(),
                message,
            ));
        }
        None if name.starts_with("ATOM_") || name.starts_with("AITER_") => {
            let near = nearest(name, environment::variables().map(|var| var.name));
            let help = near.map(|near| format!("did you mean {near}?"));
            let message = format!("nothing known reads {}{within}", visible(name));
            found.push(
                Diagnostic::warning(codes::UNKNOWN_VARIABLE, place.clone(), message).help_if(help),
            );
        }
        Some(_) | None => {}
    }
}

/// Whether the value means what its writer thinks.
fn value(name: &str, value: &str, place: &Place, within: &str, found: &mut Diagnostics) {
    let Some(var) = environment::variable(name) else {
        return;
    };
    let shown = visible(value);
    let error = |wanted: &str, otherwise: &str| {
        Diagnostic::error(
            codes::BAD_VARIABLE_VALUE,
            place.clone(),
            format!("{name}{within} must be {wanted}, found `{shown}`{otherwise}"),
        )
    };
    let finding = match var.kind {
        EnvKind::Int | EnvKind::NonZero if value.trim().parse::<i64>().is_err() => Some(error(
            "a whole number",
            ": the server fails when it reads it, often after the weights are loaded",
        )),
        EnvKind::Float if value.trim().parse::<f64>().is_err() => {
            Some(error("a number", ": the server fails when it reads it"))
        }
        EnvKind::Ints
            if !value
                .split(',')
                .all(|part| part.trim().parse::<i64>().is_ok()) =>
        {
            Some(error("whole numbers with commas between", ""))
        }
        EnvKind::Choice(words) if !words.contains(&value) => {
            Some(error(&format!("one of {}", words.join(", ")), ""))
        }
        EnvKind::TrueWhen { texts, ignore_case }
            if reads_other_way(value, texts, ignore_case, true) =>
        {
            Some(switch(name, &shown, within, place, texts, "off"))
        }
        EnvKind::FalseWhen { texts, ignore_case }
            if reads_other_way(value, texts, ignore_case, false) =>
        {
            Some(switch(name, &shown, within, place, texts, "on"))
        }
        _ => None,
    };
    if let Some(finding) = finding {
        found.push(finding);
    }
}

fn switch(
    name: &str,
    shown: &str,
    within: &str,
    place: &Place,
    texts: &[&str],
    state: &str,
) -> Diagnostic {
    let meaning = if state == "off" { "on" } else { "off" };
    Diagnostic::warning(
        codes::BAD_VARIABLE_VALUE,
        place.clone(),
        format!("{name}={shown}{within} switches it {state}"),
    )
    .help(format!(
        "it is {meaning} for {} only",
        texts
            .iter()
            .map(|text| format!("`{text}`"))
            .collect::<Vec<_>>()
            .join(", ")
    ))
}

/// A word that people take for on (or off) and that the server takes the other way.
fn reads_other_way(value: &str, texts: &[&str], ignore_case: bool, means_on: bool) -> bool {
    let listed = texts.iter().any(|text| {
        if ignore_case {
            text.eq_ignore_ascii_case(value)
        } else {
            *text == value
        }
    });
    let people: &[&str] = if means_on {
        &["true", "yes", "on", "1", "y", "t", "enable", "enabled"]
    } else {
        &[
            "false", "no", "off", "0", "n", "f", "none", "disable", "disabled",
        ]
    };
    !listed
        && people
            .iter()
            .any(|word| word.eq_ignore_ascii_case(value.trim()))
}
