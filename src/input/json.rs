//! JSON objects that are passed on byte for byte: checked here, never rewritten.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

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
    let duplicates = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_str(text);
    let kind = Walk(&duplicates)
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
    match duplicates.into_inner().into_iter().next() {
        None => Ok(()),
        Some(key) => Err(JsonFault {
            at: text.rfind(&format!("\"{key}\"")).unwrap_or(0),
            message: format!(
                "has the JSON key \"{key}\" twice; the server would keep the last one"
            ),
            help: Some("keep one of them".into()),
            duplicate: true,
        }),
    }
}

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
        message: format!("is not valid JSON: {reason}"),
        at,
        help: Some(advice(text, at).into()),
        duplicate: false,
    }
}

/// What the writer of such a text most likely did.
fn advice(text: &str, at: usize) -> &'static str {
    if text.contains("\\\"") && !text.contains(":\"") && !text.contains("{\"") {
        "the quotes are escaped twice: write plain double quotes, `'{\"key\": 1}'` inside YAML's single quotes"
    } else if text.trim_start().starts_with("{'") || text[at..].starts_with('\'') {
        "JSON wants double quotes: `{\"key\": \"value\"}`, not single ones"
    } else if ["True", "False", "None"]
        .iter()
        .any(|word| text[at..].starts_with(word))
    {
        "JSON writes true, false and null in lower case"
    } else {
        "JSON wants double quotes around every key and every text: `{\"key\": \"value\"}`; or write a YAML mapping"
    }
}

/// Reads any value, notes repeated keys, and says what the value is.
#[derive(Clone, Copy)]
struct Walk<'a>(&'a RefCell<Vec<String>>);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
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
        let mut seen = std::collections::HashSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                self.0.try_borrow_mut().map_err(A::Error::custom)?.push(key);
            }
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
