//! What must never be shown: one rule for banner, dry run, explain, plan, logs, manifest and errors.

mod inside;
mod source;

use std::borrow::Cow;

pub use source::mask_source;

/// What stands in place of a hidden value.
pub const MASK: &str = "***";

/// Whether a variable's name says that its value is secret.
///
/// A segment between underscores must be one of these words, or end in one of the first four (so `HF_TOKEN`, `HFTOKEN`,
/// `MODAL_TOKEN_ID` and `WANDB_API_KEY`, but not `TOKENIZERS_PARALLELISM` or `KEYBOARD`).
pub fn is_secret_name(name: &str) -> bool {
    const ENDS: [&str; 4] = ["TOKEN", "SECRET", "PASSWORD", "APIKEY"];
    const WORDS: [&str; 10] = [
        "KEY",
        "PASSWD",
        "PASS",
        "PASSPHRASE",
        "PAT",
        "AUTH",
        "AUTHORIZATION",
        "BEARER",
        "COOKIE",
        "CREDENTIALS",
    ];
    let ends = |segment: &str, word: &str| {
        let start = segment.len().checked_sub(word.len());
        let end = start.and_then(|start| segment.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    name.split('_').any(|segment| {
        ENDS.iter().any(|word| ends(segment, word))
            || WORDS.iter().any(|word| segment.eq_ignore_ascii_case(word))
    })
}

/// The value as it may be shown.
///
/// ```
/// use atom_launch::domain::secret::shown;
///
/// assert_eq!(shown("HF_TOKEN", "hf_abc"), "***");
/// assert_eq!(shown("TOKENIZERS_PARALLELISM", "false"), "false");
/// assert_eq!(shown("HTTPS_PROXY", "http://me:secret@proxy:3128"), "http://me:***@proxy:3128");
/// ```
pub fn shown<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if is_secret_name(name) && !value.is_empty() {
        Cow::Borrowed(MASK)
    } else {
        hide_inside(value)
    }
}

/// Hide what is secret inside a value: passwords in URLs, and whatever stands behind the name of a credential.
pub fn hide_inside(value: &str) -> Cow<'_, str> {
    let hidden = hide_url_passwords(value);
    match inside::hide(&hidden) {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => hidden,
    }
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
            "hfToken",
            "GITHUB_PAT",
            "OTEL_COOKIE",
        ] {
            assert!(is_secret_name(secret), "{secret}");
        }
        for open in [
            "TOKENIZERS_PARALLELISM",
            "MONKEY",
            "MAX_TOKENS",
            "KEYBOARD_X",
            "PATH",
            "ATOM_V4_BYPASS_ATTN",
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
    fn arguments_hide_what_stands_inside_them() {
        assert_eq!(
            shown_words([
                "--hf-overrides={\"secret\":\"s\"}",
                "Authorization: Bearer s",
                "--auth",
                "s"
            ]),
            [
                "--hf-overrides={\"secret\":\"***\"}",
                "Authorization: ***",
                "--auth",
                "***"
            ]
        );
    }
}
