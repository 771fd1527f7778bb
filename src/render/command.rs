//! A command in the three forms of a dry run.

use serde_json::json;

use crate::cli::CommandFormat;
use crate::domain::command::Command;
use crate::domain::secret;

/// The words of a command as they may be shown.
fn shown_argv(command: &Command) -> Vec<String> {
    secret::shown_words(command.argv())
}

/// Variables as they may be shown.
fn shown_env(command: &Command) -> impl Iterator<Item = (&str, String)> {
    command.env.iter().map(|var| {
        (
            var.name.as_str(),
            secret::shown(&var.name, &var.value).into_owned(),
        )
    })
}

/// A command in one of the forms.
pub fn text(command: &Command, format: CommandFormat) -> String {
    match format {
        CommandFormat::Shell => shell(command),
        CommandFormat::Json => super::pretty(&as_json(command)),
        CommandFormat::Nul => shown_argv(command).join("\0") + "\0",
    }
}

/// `{"argv": […], "env": {…}}`
pub fn as_json(command: &Command) -> serde_json::Value {
    let env: serde_json::Map<String, serde_json::Value> = shown_env(command)
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({"argv": shown_argv(command), "env": env})
}

/// For bash: variables, then one flag a line.
fn shell(command: &Command) -> String {
    let mut lines = Vec::new();
    let mut first = String::new();
    if !command.env.is_empty() {
        lines.push("env".to_owned());
        lines.extend(
            shown_env(command).map(|(name, value)| format!("{name}={}", super::quote(&value))),
        );
    }
    first.push_str(&super::quote(&command.program));
    let words = secret::shown_words(command.words());
    let mut rest = words.iter();
    for (position, group) in command.args.iter().enumerate() {
        let words: Vec<_> = rest
            .by_ref()
            .take(group.words.len())
            .map(|word| super::quote(word))
            .collect();
        let line = words.join(" ");
        if position == 0 {
            first.push(' ');
            first.push_str(&line);
            lines.push(std::mem::take(&mut first));
        } else {
            lines.push(line);
        }
    }
    if !first.is_empty() {
        lines.push(first);
    }
    lines.join(" \\\n  ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::{ArgGroup, EnvVar};
    use crate::domain::provenance::Source;

    #[test]
    fn the_shell_form_is_one_command() {
        let group = |words: &[&str]| {
            ArgGroup::new(
                words.iter().map(|word| (*word).to_owned()).collect(),
                Source::Default,
            )
        };
        let command = Command {
            program: "python3".into(),
            args: vec![group(&["-m", "x"]), group(&["--a", "b c"])],
            env: vec![EnvVar {
                name: "K".into(),
                value: "it's".into(),
                source: Source::Default,
                shadowed: Vec::new(),
            }],
        };
        assert_eq!(
            text(&command, CommandFormat::Shell),
            "env \\\n  K='it'\\''s' \\\n  python3 -m x \\\n  --a 'b c'\n"
        );
        assert_eq!(
            text(&command, CommandFormat::Nul),
            "python3\0-m\0x\0--a\0b c\0"
        );
    }
}
