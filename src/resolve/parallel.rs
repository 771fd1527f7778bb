//! What a parallel mode and speculative decoding mean for a worker's arguments.

use super::{Inputs, named};
use crate::domain::codes::{MODE_NOT_SWITCHED_ON, MODE_WITHOUT_FLAGS, MTP_WITHOUT_FLAGS};
use crate::domain::command::{ArgGroup, same_option};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::models::{ModelEntry, Words};
use crate::domain::provenance::{Source, Sourced};
use crate::domain::source::Span;
use crate::domain::topology::{Mode, Role};

/// A field with the name it has in the file.
type Named<'a> = (&'static str, &'a Option<Words>);

/// A field that is present, with its name.
type Present<'a> = (&'static str, &'a Words);

/// The field that is used, and the shared one that it displaces.
type Chosen<'a> = (Option<Present<'a>>, Option<Present<'a>>);

/// The role's own field in place of the shared one, even where it is explicitly empty.
fn own_or_shared<'a>(
    role: Role,
    shared: Named<'a>,
    prefill: Named<'a>,
    decode: Named<'a>,
) -> Chosen<'a> {
    let own = match role {
        Role::Prefill => prefill.1.as_ref().map(|words| (prefill.0, words)),
        Role::Decode => decode.1.as_ref().map(|words| (decode.0, words)),
        Role::Standalone => None,
    };
    let shared = shared.1.as_ref().map(|words| (shared.0, words));
    match own {
        Some(own) => (Some(own), shared),
        None => (shared, None),
    }
}

/// The field of parallel flags that a role uses in a mode, and the shared one that it displaces.
fn mode_field(entry: &ModelEntry, role: Role, mode: Mode) -> Chosen<'_> {
    match mode {
        Mode::Tp => (None, None),
        Mode::TpDp => own_or_shared(
            role,
            ("tp_dp_flags", &entry.tp_dp_flags),
            ("prefill_tp_dp_flags", &entry.prefill_tp_dp_flags),
            ("decode_tp_dp_flags", &entry.decode_tp_dp_flags),
        ),
        Mode::EpDp => own_or_shared(
            role,
            ("ep_dp_flags", &entry.ep_dp_flags),
            ("prefill_ep_dp_flags", &entry.prefill_ep_dp_flags),
            ("decode_ep_dp_flags", &entry.decode_ep_dp_flags),
        ),
    }
}

/// The field of general flags that a role uses, and the shared one that it displaces.
fn flags_field(entry: &ModelEntry, role: Role) -> Chosen<'_> {
    own_or_shared(
        role,
        ("flags", &entry.flags),
        ("prefill_flags", &entry.prefill_flags),
        ("decode_flags", &entry.decode_flags),
    )
}

/// The server options that a mode must switch on.
fn required_options(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Tp => &[],
        Mode::TpDp => &["--enable-dp-attention"],
        Mode::EpDp => &["--enable-expert-parallel", "--enable-dp-attention"],
    }
}

/// Why an entry cannot run a role in a mode: no flags for it, or flags that do not do what the mode means. `None`: it can.
pub fn mode_problem(entry: &ModelEntry, role: Role, mode: Mode) -> Option<Diagnostic> {
    let model = &entry.name.value;
    let (used, displaced) = mode_field(entry, role, mode);
    let field = match mode {
        Mode::Tp => return None,
        Mode::TpDp => "tp_dp_flags",
        Mode::EpDp => "ep_dp_flags",
    };
    let Some((name, words)) = used else {
        return Some(
            Diagnostic::error(
                MODE_WITHOUT_FLAGS,
                Place::File(entry.name.span),
                format!("model `{model}` has no `{field}`, so it cannot run in mode {mode}"),
            )
            .help(format!(
                "use another mode, or add `{field}: \"{}\"`",
                required_options(mode).join(" ")
            )),
        );
    };
    let general = flags_field(entry, role).0.map(|(_, words)| words);
    let all: Vec<&str> = [Some(words), general]
        .into_iter()
        .flatten()
        .flat_map(|words| words.words.iter().map(|word| word.value.as_str()))
        .collect();
    let missing: Vec<&str> = required_options(mode)
        .iter()
        .copied()
        .filter(|option| !all.iter().any(|word| same_option(word, option)))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let empty = words.words.is_empty() && displaced.is_some();
    let why = if empty {
        " is empty and replaces the shared field: it"
    } else {
        ""
    };
    Some(
        Diagnostic::error(
            MODE_NOT_SWITCHED_ON,
            Place::File(words.span),
            format!(
                "`{name}` of model `{model}`{why} lacks {}, which mode {mode} means",
                missing.join(" and ")
            ),
        )
        .help(format!("add {}", missing.join(" "))),
    )
}

/// Turn a field into argument groups; what it displaced is kept on the first of them.
pub fn field_groups(
    inputs: Inputs<'_>,
    used: Option<Present<'_>>,
    displaced: Option<Present<'_>>,
) -> Vec<ArgGroup> {
    let Some((field, words)) = used else {
        return Vec::new();
    };
    let located = words
        .words
        .iter()
        .map(|word| (word.value.clone(), Some(word.span)));
    let mut groups = gather(located, &inputs.field(field, words.span));
    if let (Some((shared, lost)), Some(first)) = (displaced, groups.first_mut()) {
        let text: Vec<&str> = lost.words.iter().map(|word| word.value.as_str()).collect();
        first
            .shadowed
            .push(inputs.lost(shared, lost.span, text.join(" ")));
    }
    groups
}

/// Words in groups of a flag and its values.
pub fn group(words: Vec<String>, source: &Source) -> Vec<ArgGroup> {
    gather(words.into_iter().map(|word| (word, None)), source)
}

fn gather(words: impl Iterator<Item = (String, Option<Span>)>, source: &Source) -> Vec<ArgGroup> {
    let mut groups: Vec<ArgGroup> = Vec::new();
    for (word, span) in words {
        let number = word
            .get(1..)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
        let is_flag = word.starts_with('-') && !number && !word.contains(' ');
        match groups.last_mut() {
            Some(last) if !is_flag => {
                last.words.push(word);
                last.spans.extend(span);
            }
            _ => {
                let mut group = ArgGroup::new(vec![word], source.clone());
                group.spans.extend(span);
                groups.push(group);
            }
        }
    }
    groups
}

/// Parallel flags of the worker's own mode, then its general flags.
pub fn flags(
    inputs: Inputs<'_>,
    role: Role,
    mode: &Sourced<Mode>,
    found: &mut Diagnostics,
) -> Vec<ArgGroup> {
    if let Some(mut problem) = mode_problem(inputs.entry, role, mode.value) {
        let by = named(&mode.source, &role.option("mode"), mode.value);
        let by = match &mode.source {
            Source::Environment(names) if names.contains(", ") => format!("{names} ask for it"),
            Source::Environment(name) => format!("{name} asks for it"),
            _ => format!("asked for by {by}"),
        };
        problem.message = format!("{} ({by})", problem.message);
        found.push(problem);
    }
    let (used, displaced) = mode_field(inputs.entry, role, mode.value);
    let mut groups = field_groups(inputs, used, displaced);
    let (used, displaced) = flags_field(inputs.entry, role);
    groups.extend(field_groups(inputs, used, displaced));
    groups
}

/// Speculative decoding: the entry's words, then the number of tokens; nothing for 0.
pub fn speculation(inputs: Inputs<'_>, found: &mut Diagnostics) -> Vec<ArgGroup> {
    let mtp = &inputs.settings.mtp;
    if mtp.value == 0 {
        return Vec::new();
    }
    let words = inputs
        .entry
        .mtp_flags
        .as_ref()
        .filter(|words| !words.words.is_empty());
    let Some(words) = words else {
        let given = named(&mtp.source, "--mtp", mtp.value);
        found.push(
            Diagnostic::error(
                MTP_WITHOUT_FLAGS,
                Place::File(inputs.entry.name.span),
                format!(
                    "{given} asks for speculative decoding, but model `{}` has no `mtp_flags`",
                    inputs.entry.name.value
                ),
            )
            .help("set it to 0, or add `mtp_flags` to the entry"),
        );
        return Vec::new();
    };
    let mut groups = field_groups(inputs, Some(("mtp_flags", words)), None);
    if let Some(last) = groups.last_mut() {
        last.words.push(mtp.value.to_string());
        last.source = mtp.source.clone();
        last.shadowed.clone_from(&mtp.shadowed);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_grouped_by_flag() {
        let words = ["--a", "1", "2", "--b", "-tp", "8", "--c", "-1", "x y"]
            .map(str::to_owned)
            .to_vec();
        let groups = group(words, &Source::Default);
        let shown: Vec<String> = groups.iter().map(|group| group.words.join(" ")).collect();
        assert_eq!(shown, ["--a 1 2", "--b", "-tp 8", "--c -1 x y"]);
    }
}
