//! The forms that a field's value may have: words, pairs, JSON, numbers, lists, text.

use super::super::words;
use super::super::yaml::{Node, NodeKind};
use super::numbers::check_tuning_number;
use super::{
    BAD_JSON, BAD_NUMBER, BAD_PAIR, BAD_WORDS, DUPLICATE_KEY, Reader, WRONG_TYPE, first_line,
    is_variable_name, visible,
};
use crate::domain::json;
use crate::domain::models::{JsonText, Number, NumberList, Pair, Pairs, Text, Words};
use crate::domain::secret;
use crate::domain::source::{Located, Span};

/// A type that a field's node can be read as. `None`: absent, or wrong and reported.
pub(super) trait FromNode: Sized {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self>;
}

impl Reader<'_> {
    /// Split a string into located words.
    fn split(&mut self, field: &str, node: &Node, text: &str) -> Option<Vec<Located<String>>> {
        match words::split(text) {
            Ok(found) => {
                let places = self.places(node, text);
                let located = |(word, range)| Located::new(word, places.of(&range));
                Some(found.into_iter().map(located).collect())
            }
            Err(fault) => {
                let span = self.inside(node, text, &(fault.at()..fault.at() + 1));
                let message = format!("`{field}` {}", fault.sentence());
                self.error(BAD_WORDS, span, message, "", Some(fault.help().into()));
                None
            }
        }
    }

    /// A list item as one word.
    fn item(&mut self, field: &str, node: &Node) -> Option<Located<String>> {
        self.dialect(field, node);
        let Some(text) = node.scalar(self.source) else {
            let message = format!(
                "each item of `{field}` must be a string, found {}",
                node.what()
            );
            self.error(
                WRONG_TYPE,
                first_line(self.source, node.span),
                message,
                "",
                None,
            );
            return None;
        };
        if text.contains('\0') {
            let message = format!("`{field}` {}", words::WordFault::Nul { at: 0 }.sentence());
            self.error(BAD_WORDS, node.span, message, "", None);
            return None;
        }
        Some(Located::new(text.into_owned(), node.span))
    }

    /// `NAME=VALUE` in one word.
    fn pair(&mut self, field: &str, word: &Located<String>) -> Option<Pair> {
        let Some((name, value)) = word.value.split_once('=') else {
            let quoted = self.quoted(&word.value, word.span);
            let message = format!("`{quoted}` in `{field}` is no `NAME=VALUE`");
            self.error(
                BAD_PAIR,
                word.span,
                message,
                "no `=`",
                Some("write `NAME=VALUE`; a value with blanks needs quotes".into()),
            );
            return None;
        };
        self.named(field, name, value.to_owned(), word.span)
    }

    /// A word for a message: stars where its snippet has some, since it stands behind a secret's name.
    fn quoted(&self, text: &str, span: Span) -> String {
        if self.file.hides(span) {
            secret::MASK.to_owned()
        } else {
            visible(text).into_owned()
        }
    }

    fn named(&mut self, field: &str, name: &str, value: String, span: Span) -> Option<Pair> {
        if !is_variable_name(name) {
            let message = format!("`{}` in `{field}` is no name of a variable", visible(name));
            let help = "letters, digits and `_`, and no digit first".to_owned();
            self.error(BAD_PAIR, span, message, "", Some(help));
            return None;
        }
        if value.contains('\0') {
            let message =
                format!("`{name}` in `{field}` holds a NUL byte, which no variable can carry");
            self.error(BAD_PAIR, span, message, "", None);
            return None;
        }
        Some(Pair {
            name: name.to_owned(),
            value,
            span,
        })
    }

    fn number(&mut self, field: &'static str, node: &Node) -> Option<Located<String>> {
        let Some(text) = node.scalar(self.source) else {
            self.wrong_type(field, node, "a number");
            return None;
        };
        match check_tuning_number(field, &text) {
            Ok(()) => {
                self.dialect(field, node);
                Some(Located::new(text.into_owned(), node.span))
            }
            Err(reason) => {
                let message = format!("`{field}` {reason}, found `{}`", visible(&text));
                self.error(BAD_NUMBER, node.span, message, "", None);
                None
            }
        }
    }
}

impl FromNode for Words {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        let words = match &node.kind {
            NodeKind::Null => return None,
            NodeKind::Text(text) => reader.split(field, node, text)?,
            NodeKind::Sequence(items) => {
                let read: Vec<_> = items.iter().map(|item| reader.item(field, item)).collect();
                read.into_iter().collect::<Option<_>>()?
            }
            NodeKind::Bool(_) | NodeKind::Number | NodeKind::Mapping(_) => {
                reader.wrong_type(field, node, "a string of words or a list of them");
                return None;
            }
        };
        Some(Self {
            words,
            span: node.span,
        })
    }
}

impl FromNode for Pairs {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        let read: Vec<Option<Pair>> = match &node.kind {
            NodeKind::Null => return None,
            NodeKind::Text(text) => {
                let words = reader.split(field, node, text)?;
                words
                    .into_iter()
                    .map(|word| reader.pair(field, &word))
                    .collect()
            }
            NodeKind::Sequence(items) => items
                .iter()
                .map(|item| {
                    let word = reader.item(field, item)?;
                    reader.pair(field, &word)
                })
                .collect(),
            NodeKind::Mapping(pairs) => reader
                .unique(pairs, DUPLICATE_KEY, "variable")
                .into_iter()
                .map(|(key, node)| {
                    reader.dialect(field, node);
                    let Some(value) = node.scalar(reader.source) else {
                        let message = format!(
                            "`{}` in `{field}` must have a string as its value, found {}",
                            visible(&key.name),
                            node.what()
                        );
                        let help = matches!(node.kind, NodeKind::Null)
                            .then(|| "write `\"\"` for an empty value".to_owned());
                        reader.error(WRONG_TYPE, key.span, message, "", help);
                        return None;
                    };
                    reader.named(field, &key.name, value.into_owned(), key.span)
                })
                .collect(),
            NodeKind::Bool(_) | NodeKind::Number => {
                reader.wrong_type(
                    field,
                    node,
                    "`NAME=VALUE` words, a list of them, or a mapping",
                );
                return None;
            }
        };
        Some(Self {
            pairs: read.into_iter().collect::<Option<_>>()?,
            span: node.span,
        })
    }
}

impl FromNode for JsonText {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        match &node.kind {
            NodeKind::Null => None,
            NodeKind::Text(text) if text.trim().is_empty() => {
                Some(Self(Located::new(String::new(), node.span)))
            }
            NodeKind::Text(text) => match json::check_object(text) {
                Ok(()) => Some(Self(Located::new(text.clone(), node.span))),
                Err(fault) => {
                    let end = text[fault.at..]
                        .chars()
                        .next()
                        .map_or(fault.at, |c| fault.at + c.len_utf8());
                    let span = reader.inside(node, text, &(fault.at..end));
                    let message = format!("`{field}` {}", fault.message);
                    let mut help = fault.help;
                    if let Some(help) = help.as_mut().filter(|help| *help == json::DOUBLE_QUOTES) {
                        help.push_str("; or write a YAML mapping");
                    }
                    reader.error(BAD_JSON, first_line(reader.source, span), message, "", help);
                    None
                }
            },
            NodeKind::Mapping(_) => {
                let mut text = String::new();
                reader.json_of(field, node, &mut text)?;
                Some(Self(Located::new(text, node.span)))
            }
            NodeKind::Bool(_) | NodeKind::Number | NodeKind::Sequence(_) => {
                reader.wrong_type(
                    field,
                    node,
                    "a JSON object (a string of JSON, or a mapping)",
                );
                None
            }
        }
    }
}

impl Reader<'_> {
    /// Write a YAML node as compact JSON; numbers keep their spelling where JSON has it. `None` when anything in it is wrong.
    fn json_of(&mut self, field: &'static str, node: &Node, out: &mut String) -> Option<()> {
        self.dialect(field, node);
        match &node.kind {
            NodeKind::Null => out.push_str("null"),
            NodeKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            NodeKind::Number => {
                let text = node.scalar(self.source)?;
                if serde_json::from_str::<serde_json::Number>(&text).is_err() {
                    let message = format!(
                        "`{field}` holds `{}`, which is no JSON number",
                        visible(&text)
                    );
                    self.error(
                        BAD_JSON,
                        node.span,
                        message,
                        "",
                        Some("write a decimal number, or quote it to make it a string".into()),
                    );
                    return None;
                }
                out.push_str(&text);
            }
            NodeKind::Text(text) => out.push_str(&json_string(text)),
            NodeKind::Sequence(items) => {
                out.push('[');
                let mut good = Some(());
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        out.push(',');
                    }
                    good = self.json_of(field, item, out).and(good);
                }
                out.push(']');
                return good;
            }
            NodeKind::Mapping(pairs) => {
                out.push('{');
                let mut good = Some(());
                for (position, (key, value)) in self
                    .unique(pairs, DUPLICATE_KEY, "key")
                    .into_iter()
                    .enumerate()
                {
                    if position > 0 {
                        out.push(',');
                    }
                    out.push_str(&json_string(&key.name));
                    out.push(':');
                    good = self.json_of(field, value, out).and(good);
                }
                out.push('}');
                return good;
            }
        }
        Some(())
    }
}

/// A text as a JSON string.
fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl FromNode for Number {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        if matches!(node.kind, NodeKind::Null) {
            return None;
        }
        if node
            .scalar(reader.source)
            .is_some_and(|text| text.trim().is_empty())
        {
            return None;
        }
        reader.number(field, node).map(Self)
    }
}

impl FromNode for Text {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        if matches!(node.kind, NodeKind::Null) {
            return None;
        }
        let Some(text) = node.scalar(reader.source) else {
            reader.wrong_type(field, node, "a string");
            return None;
        };
        if text.contains('\0') {
            reader.error(
                WRONG_TYPE,
                node.span,
                format!("`{field}` holds a NUL byte"),
                "",
                None,
            );
            return None;
        }
        (!text.trim().is_empty()).then(|| Self(Located::new(text.into_owned(), node.span)))
    }
}

impl FromNode for NumberList {
    fn from_node(reader: &mut Reader<'_>, field: &'static str, node: &Node) -> Option<Self> {
        let items = match &node.kind {
            NodeKind::Null => return None,
            // As everywhere, an empty string means absent.
            NodeKind::Text(text) if text.trim().is_empty() => return None,
            NodeKind::Sequence(items) => items,
            NodeKind::Bool(_) | NodeKind::Number | NodeKind::Text(_) | NodeKind::Mapping(_) => {
                reader.wrong_type(
                    field,
                    node,
                    "a list of whole numbers, such as `[1, 2, 4, 8]`",
                );
                return None;
            }
        };
        let read: Vec<Option<u64>> = items
            .iter()
            .map(|item| reader.number(field, item)?.value.parse().ok())
            .collect();
        Some(Self(Located::new(
            read.into_iter().collect::<Option<_>>()?,
            node.span,
        )))
    }
}
