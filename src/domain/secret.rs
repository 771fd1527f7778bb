//! What must never be shown: one rule for banner, dry run, explain, plan, logs, manifest and errors.

mod source;

use std::borrow::Cow;

pub use source::mask_source;

/// What stands in place of a hidden value.
pub const MASK: &str = "***";

/// Whether a variable's name says that its value is secret.
///
/// A segment between underscores must be TOKEN, SECRET, PASSWORD, PASSWD or KEY (so `HF_TOKEN`, `MODAL_TOKEN_ID` and
/// `WANDB_API_KEY`, but not `TOKENIZERS_PARALLELISM` or `KEYBOARD`).
pub fn is_secret_name(name: &str) -> bool {
    name.split('_').any(|segment| {
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "APIKEY"]
            .iter()
            .any(|word| segment.eq_ignore_ascii_case(word))
    })
}

/// The value as it may be shown.
pub fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret_name(name) && !value.is_empty() {
        Cow::Borrowed(MASK)
    } else {
        hide_inside(value)
    }
}

/// Hide what is secret inside a value: passwords in URLs, and credentials in JSON.
fn hide_inside(value: &str) -> Cow<'_, str> {
    let hidden = hide_url_passwords(value);
    match hide_json_secrets(&hidden) {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => hidden,
    }
}

/// Whether a member of a JSON object holds a credential. Narrower than for variables: `eos_token` and `token_id` are words of models.
fn is_secret_member(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = |words: &[&str]| {
        words
            .iter()
            .any(|word| name == *word || name.ends_with(&format!("_{word}")))
    };
    ends(&[
        "secret",
        "password",
        "passwd",
        "apikey",
        "api_key",
        "access_key",
        "secret_key",
        "private_key",
    ]) || ends(&[
        "api_token",
        "access_token",
        "auth_token",
        "bearer_token",
        "hf_token",
    ])
}

/// Replace the text behind every member of a JSON object whose name says that it is a credential; all else keeps its spelling.
fn hide_json_secrets(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(name) = json_string(text, at) {
        at = name.end;
        let behind = &text[at..];
        let value_at = behind
            .trim_start()
            .strip_prefix(':')
            .map(|value| text.len() - value.trim_start().len());
        if let Some(value_at) = value_at
            && text[value_at..].starts_with('"')
            && serde_json::from_str(&text[name.clone()])
                .is_ok_and(|name: String| is_secret_member(&name))
        {
            out.push_str(&text[kept..=value_at]);
            out.push_str(MASK);
            // A text that is never closed is hidden to its end.
            at = json_string(text, value_at).map_or(text.len(), |value| value.end);
            kept = if at < text.len() { at - 1 } else { at };
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The next JSON string from a place on, its quotes included.
fn json_string(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let start = from + text.get(from..)?.find('"')?;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(start..at + 1),
            _ => {}
        }
    }
    None
}

/// Replace the password of every `scheme://user:password@host` in a text.
pub fn hide_url_passwords(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let authority_end = after
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''))
            .unwrap_or(after.len());
        let authority = &after[..authority_end];
        match authority.rfind('@').map(|end| &authority[..end]) {
            Some(login) if login.contains(':') => {
                let user = &login[..login.find(':').unwrap_or(0)];
                out.push_str(user);
                out.push(':');
                out.push_str(MASK);
                out.push_str(&authority[login.len()..]);
            }
            _ => out.push_str(authority),
        }
        rest = &after[authority_end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a flag's name says that its value is secret: only its last segment counts (`--api-key`, not `--long-prefill-token-threshold`).
fn is_secret_flag(flag: &str) -> bool {
    flag.starts_with("--") && flag.rsplit(['-', '_']).next().is_some_and(is_secret_name)
}

/// Whether what stands before `=` is a secret's name: a flag, or a variable as in `env HF_TOKEN=…`.
fn names_a_secret(name: &str) -> bool {
    let is_variable = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_secret_flag(name) || is_variable && is_secret_name(name)
}

/// An argument as it may be shown: `--flag={…}` holds JSON as `{…}` does.
fn hide_argument(word: &str) -> String {
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => format!("{flag}={}", hide_inside(value)),
        _ => hide_inside(word).into_owned(),
    }
}

/// The words of a command line as they may be shown.
pub fn shown_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut hide_next = false;
    words
        .into_iter()
        .map(|word| {
            if std::mem::take(&mut hide_next) && !word.starts_with("--") {
                return MASK.to_owned();
            }
            if let Some((name, value)) = word.split_once('=')
                && names_a_secret(name)
                && !value.is_empty()
            {
                return format!("{name}={MASK}");
            }
            hide_next = is_secret_flag(word);
            hide_argument(word)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_segment() {
        for secret in [
            "HF_TOKEN",
            "MODAL_TOKEN_ID",
            "WANDB_API_KEY",
            "DEMO_SECRET",
            "db_password",
        ] {
            assert!(is_secret_name(secret), "{secret}");
        }
        for open in [
            "TOKENIZERS_PARALLELISM",
            "MONKEY",
            "MAX_TOKENS",
            "KEYBOARD_X",
        ] {
            assert!(!is_secret_name(open), "{open}");
        }
    }

    #[test]
    fn only_the_password_of_a_url_is_hidden() {
        assert_eq!(
            hide_url_passwords("http://me:pw-0@collector:4317/x http://a:b"),
            "http://me:***@collector:4317/x http://a:b"
        );
        assert_eq!(hide_url_passwords("http://me:p@w@h"), "http://me:***@h");
        assert_eq!(hide_url_passwords("no url"), "no url");
    }

    #[test]
    fn arguments_are_masked_by_the_last_part_of_their_flag() {
        let words = [
            "--api-key",
            "k1",
            "--api-key=k2",
            "--long-prefill-token-threshold",
            "5",
            "http://a:b@c",
            "HF_TOKEN=hf_1",
            "a.key=open",
        ];
        assert_eq!(
            shown_words(words),
            [
                "--api-key",
                MASK,
                "--api-key=***",
                "--long-prefill-token-threshold",
                "5",
                "http://a:***@c",
                "HF_TOKEN=***",
                "a.key=open"
            ]
        );
    }

    #[test]
    fn credentials_in_json_are_hidden_and_tokens_of_a_model_are_not() {
        let json = "{ \"api_key\" : \"a\\\"b\", \"eos_token\": \"<e>\", \"x\": [{\"HF-Token\": \"t\"}], \"password\": 1, \"\\u0061pi_key\": \"k\"}";
        assert_eq!(
            shown("CONFIG", json),
            "{ \"api_key\" : \"***\", \"eos_token\": \"<e>\", \"x\": [{\"HF-Token\": \"***\"}], \"password\": 1, \"\\u0061pi_key\": \"***\"}"
        );
        assert_eq!(
            shown_words([
                "--hf-overrides={\"secret\":\"s\"}",
                "{\"secret\":\"s",
                "{\"secret\":"
            ]),
            [
                "--hf-overrides={\"secret\":\"***\"}",
                "{\"secret\":\"***",
                "{\"secret\":"
            ]
        );
    }
}
