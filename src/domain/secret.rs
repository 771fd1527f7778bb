//! What must never be shown: one rule for banner, dry run, explain, plan, logs, manifest and errors.

use std::borrow::Cow;

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
        hide_url_passwords(value)
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
}
