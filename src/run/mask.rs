//! Command lines as they may be shown.

use crate::domain::secret::{MASK, hide_argument, is_secret_name};

/// Hide what is secret in a command line: the value of an option or a `NAME=value` whose name says so, passwords in URLs,
/// credentials in JSON.
pub fn words<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    let mut hide_next = false;
    words
        .iter()
        .map(|word| {
            let word = word.as_ref();
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let secret = is_option_or_variable(name) && is_secret_name(&variable_form(name));
            if std::mem::take(&mut hide_next) && !word.starts_with('-') {
                return MASK.to_owned();
            }
            match value {
                Some(value) if secret && !value.is_empty() => format!("{name}={MASK}"),
                _ => {
                    hide_next = secret && name.starts_with('-') && value.is_none();
                    hide_argument(word)
                }
            }
        })
        .collect()
}

fn is_option_or_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn variable_form(name: &str) -> String {
    name.trim_start_matches('-').replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_on_a_command_line_are_hidden_and_nothing_else() {
        let line = [
            "curl",
            "--api-key",
            "sk-1",
            "HF_TOKEN=hf_1",
            "--token=t",
            "-u",
            "http://me:pw@h/x=1",
            "--max-tokens",
            "5",
            "--tokenizer",
            "x",
            "a=b",
            "--json={\"api_key\": \"k\", \"n\": 1}",
            "{\"password\":\"p\"}",
        ];
        assert_eq!(
            words(&line),
            [
                "curl",
                "--api-key",
                "***",
                "HF_TOKEN=***",
                "--token=***",
                "-u",
                "http://me:***@h/x=1",
                "--max-tokens",
                "5",
                "--tokenizer",
                "x",
                "a=b",
                "--json={\"api_key\": \"***\", \"n\": 1}",
                "{\"password\":\"***\"}",
            ]
        );
    }
}
