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
            hide_url_passwords(word).into_owned()
        })
        .collect()
}

/// A piece of a file as it may be shown: every value behind a secret name and every URL password becomes stars, byte for byte, so that
/// places in it stay what they are.
pub fn mask_source(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut at = 0;
    while at < out.len() {
        let start = at;
        while at < out.len() && is_name(out[at]) {
            at += 1;
        }
        if at > start
            && is_secret_name(&text[start..at])
            && let Some(value) = value_after(&out, at, ends_a_flag(text, start, at))
        {
            let end = value_end(&out, value);
            out[value..end].fill(b'*');
            at = end.max(at);
        }
        at += usize::from(at == start || at < out.len());
    }
    mask_url_passwords(&mut out);
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// Whether the name is the last segment of a flag: `key` in `--api-key`.
fn ends_a_flag(text: &str, start: usize, end: usize) -> bool {
    let in_flag = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let first = text[..start].rfind(|c| !in_flag(c)).map_or(0, |at| {
        at + text[at..].chars().next().map_or(1, char::len_utf8)
    });
    text[first..].starts_with("--") && !text[end..].starts_with('-')
}

/// Start of the value behind a name: after quotes and blanks, one `=` or `:`, blanks and a quote. Behind a flag blanks are enough.
fn value_after(text: &[u8], mut at: usize, flag: bool) -> Option<usize> {
    let skip = |at: &mut usize, bytes: &[u8]| {
        while text.get(*at).is_some_and(|byte| bytes.contains(byte)) {
            *at += 1;
        }
    };
    let end = at;
    skip(&mut at, b"\"' \t");
    if text.get(at).is_some_and(|byte| matches!(byte, b'=' | b':')) {
        at += 1;
    } else if flag && at > end {
        // The next item of a list, or the next word; another flag is no value.
        skip(&mut at, b",");
        skip(&mut at, b" \t\"'");
        if text[at..].starts_with(b"--") {
            return None;
        }
    } else {
        return None;
    }
    skip(&mut at, b" \t\"'");
    text.get(at)
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .map(|_| at)
}

fn value_end(text: &[u8], start: usize) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b',' | b'}');
    text[start..]
        .iter()
        .position(ends)
        .map_or(text.len(), |length| start + length)
}

fn mask_url_passwords(text: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = text[at..].windows(3).position(|three| three == b"://") {
        let start = at + found + 3;
        let end = value_end(text, start);
        let authority = text[start..end]
            .iter()
            .position(|byte| *byte == b'/')
            .map_or(end, |length| start + length);
        let sign = text[start..authority]
            .iter()
            .rposition(|byte| *byte == b'@');
        let colon = text[start..authority].iter().position(|byte| *byte == b':');
        if let (Some(sign), Some(colon)) = (sign, colon)
            && colon < sign
        {
            text[start + colon + 1..start + sign].fill(b'*');
        }
        at = start;
    }
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
    fn source_lines_keep_their_length() {
        let line =
            "  env: {WANDB_API_KEY: \"wk-1\", A: b} HF_TOKEN=hf_x MONKEY: 1 u: http://me:pw@h/";
        let masked = mask_source(line);
        assert_eq!(masked.len(), line.len());
        assert_eq!(
            masked,
            "  env: {WANDB_API_KEY: \"****\", A: b} HF_TOKEN=**** MONKEY: 1 u: http://me:**@h/"
        );
        assert_eq!(mask_source("API_KEY:\n  é"), "API_KEY:\n  é");
        let flags = "é --api-key sk-1 'x' [\"--api-key\", \"sk-2\"] --api-key=s3 --key-file f --api-key --next key";
        assert_eq!(
            mask_source(flags),
            "é --api-key **** 'x' [\"--api-key\", \"****\"] --api-key=** --key-file f --api-key --next key"
        );
    }
}
