//! Secrets inside one value: JSON, whether or not it is well-formed, headers, queries, further variables. Names decide, and a few
//! forms that only tokens have.

use std::borrow::Cow;
use std::ops::Range;

use super::{MASK, is_secret_name};

/// Replace every secret in a value; all else keeps its spelling.
pub(super) fn hide(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(word) = next_word(text, at) {
        at = word.end;
        let secret = if is_token(&text[word.clone()]) {
            Some(word)
        } else {
            behind(text, &word)
        };
        if let Some(secret) = secret {
            out.push_str(&text[kept..secret.start]);
            out.push_str(MASK);
            (kept, at) = (secret.end, secret.end);
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// The next run of what names are made of, JSON's `\u0061` included.
fn next_word(text: &str, from: usize) -> Option<Range<usize>> {
    let length = |at: usize| {
        let rest = &text.as_bytes()[at..];
        match rest {
            [b'\\', b'u', digits @ ..] if digits.len() >= 4 => {
                let hex = digits[..4].iter().all(u8::is_ascii_hexdigit);
                if hex { 6 } else { 0 }
            }
            [byte, ..] => usize::from(byte.is_ascii_alphanumeric() || b"_-".contains(byte)),
            [] => 0,
        }
    };
    let start = (from..text.len()).find(|at| length(*at) > 0)?;
    let mut end = start;
    while length(end) > 0 {
        end += length(end);
    }
    Some(start..end)
}

/// Forms that tokens of well-known services have, whatever they stand behind.
fn is_token(word: &str) -> bool {
    const BEGINNINGS: [&str; 10] = [
        "hf_",
        "sk-",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "xoxp-",
        "nvapi-",
    ];
    let long = |rest: &str| {
        rest.len() >= 20
            && rest.bytes().any(|byte| byte.is_ascii_digit())
            && rest.bytes().any(|byte| byte.is_ascii_alphabetic())
    };
    BEGINNINGS
        .iter()
        .any(|start| word.strip_prefix(start).is_some_and(long))
        || word.len() == 20
            && word.starts_with("AKIA")
            && word
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// The secret that stands behind a word.
fn behind(text: &str, word: &Range<usize>) -> Option<Range<usize>> {
    let name = spelled_out(&text[word.clone()]);
    let rest = &text[word.end..];
    if name.eq_ignore_ascii_case("bearer") {
        let blank = rest
            .strip_prefix("%20")
            .or_else(|| rest.strip_prefix(' '))?;
        return bare(text, text.len() - blank.len(), "");
    }
    let plain = name.trim_start_matches('-');
    let is_variable = !plain.bytes().any(|byte| byte.is_ascii_lowercase());
    let names_a_secret = is_secret_member(plain) || is_variable && is_secret_name(plain);
    if !names_a_secret {
        return None;
    }
    let closed = rest.trim_start_matches(['\\', '"', '\'']);
    let blanks = closed.trim_start();
    let value = [":", "=", "%3A", "%3D"]
        .iter()
        .find_map(|sign| blanks.strip_prefix(sign))
        .or_else(|| (name.starts_with("--") && blanks.len() < closed.len()).then_some(blanks))?
        .trim_start();
    let header = plain.to_ascii_lowercase();
    let header = header.ends_with("authorization") || header.ends_with("cookie");
    value_at(
        text,
        text.len() - value.len(),
        if header { " ;=" } else { "" },
    )
}

/// A value: in quotes, in brackets, or as far as it goes. `more` are signs that belong to it where it is bare.
fn value_at(text: &str, start: usize, more: &str) -> Option<Range<usize>> {
    let value = &text[start..];
    let escapes = value.len() - value.trim_start_matches('\\').len();
    match value.as_bytes().get(escapes)? {
        b'"' | b'\'' => {
            let quote = &value[..=escapes];
            let inner = start + quote.len();
            let end = closing(text, inner, quote).unwrap_or(text.len());
            (inner < end).then_some(inner..end)
        }
        b'[' | b'{' => Some(start..bracketed(text, start)),
        _ => bare(text, start, more),
    }
}

/// Where a text ends that opened with this quote, which may be escaped itself.
fn closing(text: &str, from: usize, quote: &str) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + text.get(at..)?.find(quote)?;
        let before = &text[from..found];
        let escapes = before.len() - before.trim_end_matches('\\').len();
        // A single quote knows no escape; an escaped quote is ended by its like.
        if escapes.is_multiple_of(2) || quote == "'" {
            return Some(found);
        }
        at = found + quote.len();
    }
}

fn bracketed(text: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

fn bare(text: &str, start: usize, more: &str) -> Option<Range<usize>> {
    let ends = |c: char| {
        (c.is_whitespace()
            || matches!(
                c,
                '`' | ',' | ';' | '&' | '"' | '\'' | '\\' | '}' | ']' | ')'
            ))
            && !more.contains(c)
    };
    let value = &text[start..];
    let value = &value[..value.find(ends).unwrap_or(value.len())];
    let says_nothing = ["", "…", "null", "none", "true", "false", MASK];
    (!says_nothing.contains(&value.to_ascii_lowercase().as_str()))
        .then(|| start..start + value.len())
}

/// A name without JSON's escapes.
fn spelled_out(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return Cow::Borrowed(name);
    }
    serde_json::from_str(&format!("\"{name}\"")).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// Whether a member of a value holds a credential. Narrower than for variables: `eos_token` and `token_id` are words of models.
fn is_secret_member(name: &str) -> bool {
    const LAST: [&str; 17] = [
        "secret",
        "password",
        "passwd",
        "passphrase",
        "apikey",
        "api_key",
        "access_key",
        "secret_key",
        "private_key",
        "api_token",
        "access_token",
        "auth_token",
        "bearer_token",
        "hf_token",
        "authorization",
        "cookie",
        "credentials",
    ];
    let name = snake_case(name);
    let ends = |word: &str| {
        name.strip_suffix(word)
            .is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    name == "token" || name == "auth" || LAST.iter().any(|word| ends(word))
}

/// `X-Api-Key` and `apiKey` as `x_api_key` and `api_key`.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    let mut lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && lower {
            out.push('_');
        }
        lower = c.is_ascii_lowercase();
        out.push(if c == '-' {
            '_'
        } else {
            c.to_ascii_lowercase()
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `S…` stands for secret: none may be left, and all of `keep` must be.
    #[test]
    fn a_secret_is_hidden_however_it_is_written() {
        for (text, shown) in [
            (r#"{"api_key":"S"}"#, r#"{"api_key":"***"}"#),
            (
                r#"{"api_key": "S\"S", "b": "c"}"#,
                r#"{"api_key": "***", "b": "c"}"#,
            ),
            (r#"{"\u0061pi_key": "S"}"#, r#"{"\u0061pi_key": "***"}"#),
            ("{api_key:S,b:c}", "{api_key:***,b:c}"),
            ("{'apiKey': 'S S'}", "{'apiKey': '***'}"),
            (
                r#"{"password": 12, "n": 1}"#,
                r#"{"password": ***, "n": 1}"#,
            ),
            (
                r#"{"api_key": ["S", {"a": "S"}], "n": 1}"#,
                r#"{"api_key": ***, "n": 1}"#,
            ),
            (
                r#"{\"api_key\":\"S S\",\"b\":1}"#,
                r#"{\"api_key\":\"***\",\"b\":1}"#,
            ),
            (r#"{"a":{"token":"S"#, r#"{"a":{"token":"***"#),
            (
                r#"{"Authorization": "Bearer S", "b": 1}"#,
                r#"{"Authorization": "***", "b": 1}"#,
            ),
            ("Authorization: Bearer S", "Authorization: ***"),
            (
                "proxy-authorization=Basic S==,x=1",
                "proxy-authorization=***,x=1",
            ),
            ("authorization=Bearer%20S", "authorization=***"),
            ("send Bearer S now", "send Bearer *** now"),
            ("Cookie: a=S; b=S", "Cookie: ***"),
            ("http://h/?api_key=S&n=1", "http://h/?api_key=***&n=1"),
            ("api_key=S other=1", "api_key=*** other=1"),
            ("--api-key S --n 1", "--api-key *** --n 1"),
            ("x\napi_key: S\nb: 1", "x\napi_key: ***\nb: 1"),
            ("export MY_TOKEN=S; b", "export MY_TOKEN=***; b"),
            ("say hf_abcdefghij0123456789 twice", "say *** twice"),
        ] {
            assert_eq!(hide(text), shown, "{text}");
        }
    }

    #[test]
    fn words_of_models_stay() {
        for text in [
            r#"{"eos_token": "<e>", "token_id": 1, "num_key_value_heads": 8}"#,
            r#"{"api_key": null, "use_auth": true, "key": "k"}"#,
            "--max-num-batched-tokens 8 --kv_cache_dtype fp8",
            "a token of love, the password",
            "org/hf_model-with-a-long-name-of-its-own",
            "{\"secret\":",
            "漢字 \\u12 \\",
        ] {
            assert_eq!(hide(text), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_can_be_hidden(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "api_key", "--token", "Bearer", ":", "=", " ", "\n", "\"", "'", "\\", "\\u0061", "[", "]", "{", "}", ",", "é", "x", "%3D",
        ]), 0..40)) {
            hide(&pieces.concat());
        }
    }
}
