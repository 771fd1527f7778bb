//! What `explain` is asked about.

use std::ffi::OsString;

use super::Cli;

/// Separate the flag that `explain` is asked about from options of the same name.
///
/// `explain --block-size` asks about `--block-size`; `explain --block-size 64` sets it. So an option of ours that takes a value and
/// gets none, and any flag that is not ours, is the subject: it is moved behind `--`.
pub(super) fn explain_subject(words: Vec<OsString>) -> Vec<OsString> {
    use clap::CommandFactory as _;
    if words.get(1).is_none_or(|word| word != "explain") || words.iter().any(|word| word == "--") {
        return words;
    }
    let command = Cli::command();
    let Some(explain) = command.find_subcommand("explain") else {
        return words;
    };
    let takes_value = |word: &str| {
        explain
            .get_arguments()
            .find(|arg| {
                arg.get_long()
                    .is_some_and(|long| word == format!("--{long}"))
                    || arg
                        .get_short()
                        .is_some_and(|short| word == format!("-{short}"))
            })
            .map(|arg| arg.get_action().takes_values())
    };
    // A value may start with a dash (`--server-args '-tp 4'`), but another option is none.
    let is_option = |word: &str| word.starts_with("--") || takes_value(word).is_some();
    let mut kept = Vec::new();
    let mut subject = None;
    let mut rest = words.into_iter().peekable();
    kept.extend(rest.by_ref().take(2));
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy().into_owned();
        let known = takes_value(text.split('=').next().unwrap_or_default());
        let is_help = matches!(text.as_str(), "-h" | "--help" | "-V" | "--version");
        let bundle =
            text.len() > 1 && text.starts_with("-v") && text[1..].chars().all(|c| c == 'v');
        match known {
            Some(true) if !text.contains('=') => match rest.peek() {
                Some(next) if !is_option(&next.to_string_lossy()) => {
                    kept.push(word);
                    kept.extend(rest.next());
                }
                _ => subject = Some(word),
            },
            None if text.starts_with('-') && text.len() > 1 && !is_help && !bundle => {
                subject = Some(word);
            }
            _ => kept.push(word),
        }
    }
    if let Some(subject) = subject {
        kept.push("--".into());
        kept.push(subject);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words: Vec<_> = explain_subject(words)
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect();
        words.join(" ")
    }

    #[test]
    fn explain_asks_about_an_option_without_a_value() {
        assert_eq!(
            moved("atom-launch explain --block-size"),
            "atom-launch explain -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain --block-size --format json"),
            "atom-launch explain --format json -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain --block-size 64 --kv_cache_dtype -q"),
            "atom-launch explain --block-size 64 -q -- --kv_cache_dtype"
        );
        assert_eq!(
            moved("atom-launch explain --block-size -q"),
            "atom-launch explain -q -- --block-size"
        );
        assert_eq!(
            moved("atom-launch explain -tp"),
            "atom-launch explain -- -tp"
        );
        assert_eq!(moved("atom-launch --dry-run"), "atom-launch --dry-run");
        assert_eq!(
            moved("atom-launch explain BLOCK_SIZE -vv"),
            "atom-launch explain BLOCK_SIZE -vv"
        );
    }
}
