//! What to say of a word that no command takes. clap's own tips look at one command only, and take an unknown option for a value.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};

use super::Cli;
use crate::domain::diagnostic::nearest;

/// The same mistake in our words, where it is one of words that are not known.
pub(super) fn explained(error: clap::Error, words: &[OsString]) -> clap::Error {
    let word = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => word.clone(),
        _ => return error,
    };
    let mut root = Cli::command();
    root.build();
    let first = words.get(1).map(|word| word.to_string_lossy());
    let asked = first.and_then(|first| root.find_subcommand(&*first));
    let (message, help) = if word.starts_with('-') {
        of_option(&root, asked, &word)
    } else {
        of_word(&root, asked, &word, words)
    };
    let help = help.map_or(String::new(), |help| format!("  = help: {help}\n"));
    let more = format!("  = help: `{} --help` lists all\n", name(asked));
    let text = format!("{message}\n{help}{more}");
    clap::Error::raw(ErrorKind::UnknownArgument, text)
}

/// How a command is called: the plain launch has no name of its own.
fn name(command: Option<&Command>) -> String {
    let own = command.map_or(String::new(), |command| format!(" {}", command.get_name()));
    format!("atom-launch{own}")
}

fn options(command: &Command) -> impl Iterator<Item = String> {
    let shown = command.get_arguments().filter_map(clap::Arg::get_long);
    shown.map(|long| format!("--{long}"))
}

fn of_option(root: &Command, asked: Option<&Command>, word: &str) -> (String, Option<String>) {
    let own: Vec<String> = options(asked.unwrap_or(root)).collect();
    let all =
        std::iter::once((None, root)).chain(root.get_subcommands().map(|sub| (Some(sub), sub)));
    let elsewhere: Vec<String> = all
        .filter(|(_, command)| options(command).any(|option| option == word))
        .map(|(sub, _)| format!("`{}`", name(sub)))
        .collect();
    let near = || {
        let near = nearest(word, own.iter().map(String::as_str));
        near.map(|near| format!("did you mean `{near}`?"))
    };
    // `--port` stands for none of several, and which one is meant only its user knows.
    let ending = || {
        let end = format!("-{}", word.trim_start_matches('-'));
        let longer = own.iter().filter(|option| option.ends_with(&end));
        let longer: Vec<String> = longer.map(|option| format!("`{option}`")).collect();
        match longer.as_slice() {
            [] => None,
            [one] => Some(format!("there is {one}")),
            all => Some(format!("there are {}", all.join(", "))),
        }
    };
    let help = if elsewhere.is_empty() {
        near().or_else(ending)
    } else {
        Some(format!("it is an option of {}", elsewhere.join(", ")))
    };
    (
        format!("`{}` has no option `{}`", name(asked), word.escape_debug()),
        help,
    )
}

fn of_word(
    root: &Command,
    asked: Option<&Command>,
    word: &str,
    words: &[OsString],
) -> (String, Option<String>) {
    let shown = word.escape_debug();
    let Some(asked) = asked else {
        let subcommands = || root.get_subcommands().map(Command::get_name);
        if subcommands().any(|name| name == word) {
            let message = format!("`{word}` stands behind options");
            return (
                message,
                Some(format!("a subcommand comes first: `atom-launch {word} …`")),
            );
        }
        if words.get(1).is_none_or(|first| first != word) {
            let message = format!("`{shown}` is no option");
            return (message, Some(behind_dashes("arguments of the server")));
        }
        let near = nearest(word, subcommands());
        let known: Vec<&str> = subcommands().collect();
        let help = near.map_or_else(
            || format!("there are {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        return (format!("no subcommand `{shown}`"), Some(help));
    };
    let help = if asked.get_positionals().any(clap::Arg::is_last_set) {
        Some(behind_dashes("a workload"))
    } else {
        let reads_scripts = options(asked).any(|option| option == "--env-file");
        reads_scripts.then(|| "a job script is read with `--env-file FILE`".to_owned())
    };
    let message = format!("`{}` has no use for the word `{shown}`", name(Some(asked)));
    (message, help)
}

fn behind_dashes(what: &str) -> String {
    format!("{what} stands behind `--`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Cli::read(&words).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_word_is_answered_with_the_one_that_is_meant() {
        for (line, expected) in [
            (
                "atom-launch pln",
                "error: no subcommand `pln`\n  = help: did you mean `plan`?\n  = help: `atom-launch --help` lists all\n",
            ),
            (
                "atom-launch --modle X",
                "error: `atom-launch` has no option `--modle`\n  = help: did you mean `--model`?\n  = help: `atom-launch --help` lists all\n",
            ),
            (
                "atom-launch node --dryrun",
                "error: `atom-launch node` has no option `--dryrun`\n  = help: did you mean `--dry-run`?\n  = help: `atom-launch node --help` lists all\n",
            ),
            (
                "atom-launch plan --log-dir X",
                "error: `atom-launch plan` has no option `--log-dir`\n  = help: it is an option of `atom-launch node`, `atom-launch sbatch`, `atom-launch rehearse`\n  = help: `atom-launch plan --help` lists all\n",
            ),
            (
                "atom-launch check --dry-run",
                "error: `atom-launch check` has no option `--dry-run`\n  = help: it is an option of `atom-launch`, `atom-launch node`\n  = help: `atom-launch check --help` lists all\n",
            ),
            (
                "atom-launch node ./bench.sh",
                "error: `atom-launch node` has no use for the word `./bench.sh`\n  = help: a workload stands behind `--`\n  = help: `atom-launch node --help` lists all\n",
            ),
            (
                "atom-launch plan job.sh",
                "error: `atom-launch plan` has no use for the word `job.sh`\n  = help: a job script is read with `--env-file FILE`\n  = help: `atom-launch plan --help` lists all\n",
            ),
            (
                "atom-launch wait --frobnicate",
                "error: `atom-launch wait` has no option `--frobnicate`\n  = help: `atom-launch wait --help` lists all\n",
            ),
            (
                "atom-launch plan --args X",
                "error: `atom-launch plan` has no option `--args`\n  = help: there are `--server-args`, `--prefill-server-args`, `--decode-server-args`, `--router-args`\n  = help: `atom-launch plan --help` lists all\n",
            ),
            (
                "atom-launch --size 4",
                "error: `atom-launch` has no option `--size`\n  = help: there is `--block-size`\n  = help: `atom-launch --help` lists all\n",
            ),
            (
                "atom-launch -q plan",
                "error: `plan` stands behind options\n  = help: a subcommand comes first: `atom-launch plan …`\n  = help: `atom-launch --help` lists all\n",
            ),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
    }

    #[test]
    fn a_word_that_is_near_to_none_gets_the_list() {
        let text = said("atom-launch frobnicate");
        assert!(
            text.contains("no subcommand `frobnicate`\n  = help: there are node, plan, explain, "),
            "{text}"
        );
    }
}
