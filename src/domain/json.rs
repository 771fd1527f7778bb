//! JSON objects that are passed on byte for byte: checked here, never rewritten.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Why a text is no JSON object that we pass on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// Sentence after the name of the field or variable.
    pub message: String,
    /// Byte offset in the text.
    pub at: usize,
    /// How to put it right.
    pub help: Option<String>,
    /// Whether it is only a key that is there twice, which a reader may pass over.
    pub duplicate: bool,
}

/// Check that a text is one JSON object without a repeated key.
pub fn check_object(text: &str) -> Result<(), JsonFault> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let kind = Walk
        .deserialize(&mut reader)
        .and_then(|kind| reader.end().map(|()| kind))
        .map_err(|error| syntax(text, &error))?;
    if kind != "an object" {
        return Err(JsonFault {
            message: format!("must be a JSON object, found {kind}"),
            at: 0,
            help: Some("write `{\"key\": value}`".into()),
            duplicate: false,
        });
    }
    match repeated_key(text) {
        None => Ok(()),
        Some((at, key)) => Err(JsonFault {
            at,
            message: format!(
                "has the JSON key \"{key}\" twice; the server would keep the last one"
            ),
            help: Some("keep one of them".into()),
            duplicate: true,
        }),
    }
}

/// The first key of a valid JSON text that its object has had before, and where it stands.
fn repeated_key(text: &str) -> Option<(usize, String)> {
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'{' | b'[' => open.push(HashSet::new()),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let start = at;
                at += 1;
                while text.as_bytes().get(at).is_some_and(|byte| *byte != b'"') {
                    at += 1 + usize::from(text.as_bytes()[at] == b'\\');
                }
                let is_key = text.get(at + 1..)?.trim_start().starts_with(':');
                if is_key {
                    let key: String = serde_json::from_str(text.get(start..=at)?).ok()?;
                    if open.last().is_some_and(|keys| keys.contains(&key)) {
                        return Some((start, key));
                    }
                    open.last_mut()?.insert(key);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Advice for which a models file has a second way out.
pub const DOUBLE_QUOTES: &str =
    "JSON wants double quotes around every key and every text: `{\"key\": \"value\"}`";

fn syntax(text: &str, error: &serde_json::Error) -> JsonFault {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let mut at = (line_start + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let mut reason = error.to_string();
    if let Some(cut) = reason.rfind(" at line ") {
        reason.truncate(cut);
    }
    JsonFault {
        help: advice(text, at, &reason).map(str::to_owned),
        message: format!("is not valid JSON: {reason}"),
        at,
        duplicate: false,
    }
}

/// What the writer of such a text most likely did.
fn advice(text: &str, at: usize, reason: &str) -> Option<&'static str> {
    let advice = if text.contains("\\\"") && !text.contains(":\"") && !text.contains("{\"") {
        "the quotes are escaped twice: write plain double quotes, `'{\"key\": 1}'` inside YAML's single quotes"
    } else if text.trim_start().starts_with("{'") || text[at..].starts_with('\'') {
        "JSON wants double quotes: `{\"key\": \"value\"}`, not single ones"
    } else if ["True", "False", "None"]
        .iter()
        .any(|word| text[at..].starts_with(word))
    {
        "JSON writes true, false and null in lower case"
    } else if ["expected value", "key must be a string", "expected ident"]
        .iter()
        .any(|start| reason.starts_with(start))
    {
        DOUBLE_QUOTES
    } else {
        // The reason says all there is.
        return None;
    };
    Some(advice)
}

/// Reads any value and says what it is.
#[derive(Clone, Copy)]
struct Walk;

impl<'de> DeserializeSeed<'de> for Walk {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok("a boolean")
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok("a number")
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok("a string")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok("null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_key::<String>()?.is_some() {
            entries.next_value_seed(self)?;
        }
        Ok("an object")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> JsonFault {
        check_object(text).unwrap_err()
    }

    #[test]
    fn objects_pass_whatever_their_spelling() {
        for good in ["{}", " {\"a\": [1, {\"b\": null}]}\n", "{\"a\":1e5}"] {
            assert_eq!(check_object(good), Ok(()));
        }
    }

    #[test]
    fn what_is_no_object_is_named() {
        assert!(fault("3").message.contains("object, found a number"));
        assert!(fault("[\"a\"]").message.contains("object, found a list"));
        assert!(fault("{\"a\":1,\"a\":2}").message.contains("\"a\" twice"));
        assert!(
            fault("{\"x\":{\"a\":1,\"a\":2}}")
                .message
                .contains("\"a\" twice")
        );
        assert!(fault("{} x").message.contains("not valid JSON"));
    }

    #[test]
    fn a_repeated_key_is_pointed_at_and_nothing_that_looks_like_it() {
        let at = |text: &str| check_object(text).err().map(|fault| fault.at);
        assert_eq!(at("{\"a\": 1, \"a\": 2, \"b\": \"a\"}"), Some(9));
        assert_eq!(
            at("{\"\\u0061\": {\"a\": 1}, \"x\\\"\": [{\"a\": 1}, {\"a\": 1}], \"a\" : 2}"),
            Some(50)
        );
        assert_eq!(at("{\"a\": {\"a\": \"a\"}, \"b\": [\"a\", \"a\"]}"), None);
    }

    #[test]
    fn advice_fits_the_mistake() {
        assert!(
            fault("{\\\"a\\\":4}")
                .help
                .unwrap()
                .contains("escaped twice")
        );
        assert!(fault("{'a':4}").help.unwrap().contains("not single"));
        assert!(fault("{a:[b]}").help.unwrap().contains("double quotes"));
        assert!(fault("{\"a\":True}").help.unwrap().contains("lower case"));
    }
}
