//! YAML text → a tree of spanned nodes. The YAML crate is named here only, and its parser in `written`.
//!
//! A derived `Deserialize` stops at the first mistake and drops spellings; so the tree is read first (duplicates kept, merge keys
//! expanded, spellings recoverable from the text) and typed afterwards, when all mistakes can be collected.

mod written;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Spanned};

use crate::domain::source::Span;
pub(super) use written::{Swallowed, swallowed};

/// Deepest nesting that is read; the deepest useful one (JSON inside an entry) needs a dozen.
const MAX_DEPTH: usize = 48;
/// Most nodes, those that aliases repeat included.
const MAX_NODES: usize = 200_000;
/// What is said of more.
const TOO_LARGE: &str = "too large once every alias is written out";

/// A node and where it is defined.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) span: Span,
}

/// What a node is, before any schema.
#[derive(Debug)]
pub(super) enum NodeKind {
    Null,
    /// A plain scalar that YAML takes for a boolean.
    Bool(bool),
    /// A plain scalar that YAML takes for a number; its spelling is in the text.
    Number,
    /// Any other scalar, unescaped.
    Text(String),
    Sequence(Vec<Node>),
    Mapping(Vec<(Key, Node)>),
}

/// A key of a mapping.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) span: Span,
}

impl Node {
    /// The scalar's text in its own spelling; `None` for null, lists and mappings.
    pub(super) fn scalar<'a>(&'a self, source: &'a str) -> Option<Cow<'a, str>> {
        match &self.kind {
            NodeKind::Text(text) => Some(Cow::Borrowed(text)),
            NodeKind::Bool(_) | NodeKind::Number => source
                .get(self.span.range())
                .map(|slice| Cow::Borrowed(slice.trim())),
            NodeKind::Null | NodeKind::Sequence(_) | NodeKind::Mapping(_) => None,
        }
    }

    /// What it is, for messages.
    pub(super) fn what(&self) -> &'static str {
        match self.kind {
            NodeKind::Null => "nothing",
            NodeKind::Bool(_) => "a boolean",
            NodeKind::Number => "a number",
            NodeKind::Text(_) => "a string",
            NodeKind::Sequence(_) => "a list",
            NodeKind::Mapping(_) => "a mapping",
        }
    }
}

/// Why the text is no YAML that we read.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) message: String,
    /// Byte offset where it was noticed.
    pub(super) at: Option<usize>,
}

/// Read one document.
pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let budget = serde_saphyr::budget! {
        max_depth: MAX_DEPTH,
        flow_nesting_limit: MAX_DEPTH,
        max_nodes: MAX_NODES,
        max_events: 3 * MAX_NODES,
        enforce_alias_anchor_ratio: false,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        merge_keys: MergeKeyPolicy::Merge,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_NODES,
            max_replay_stack_depth: MAX_DEPTH,
        },
    };
    let mut root: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| fault(text, &error))?;
    close(&mut root, text);
    Ok(root)
}

/// Give lists and mappings in brackets the span of all they hold on their first line; the crate gives their first bracket alone.
fn close(node: &mut Node, text: &str) {
    let children: Vec<&mut Node> = match &mut node.kind {
        NodeKind::Sequence(items) => items.iter_mut().collect(),
        NodeKind::Mapping(pairs) => pairs.iter_mut().map(|(_, node)| node).collect(),
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number | NodeKind::Text(_) => return,
    };
    let start = node.span.start;
    let mut last = start as usize + 1;
    for child in children {
        close(child, text);
        // What an alias or a merge key brings in stands elsewhere.
        if child.span.start > start {
            last = last.max(child.span.end as usize);
        }
    }
    let closing = match text.as_bytes().get(start as usize) {
        Some(b'[') => ']',
        Some(b'{') => '}',
        _ => return,
    };
    let Some(rest) = text.get(last..) else {
        return;
    };
    let end = match rest.find([closing, '\n', '\r']) {
        Some(at) if rest[at..].starts_with(closing) => last + at + 1,
        Some(at) => last + at,
        None => text.len(),
    };
    node.span = Span::new(start as usize, end);
}

/// The crate's error with its place as a byte offset, and the place taken out of its words.
fn fault(text: &str, error: &serde_saphyr::Error) -> Fault {
    let location = error.location();
    let at = location.map(|location| {
        location
            .span()
            .byte_offset()
            .and_then(|offset| usize::try_from(offset).ok())
            .unwrap_or_else(|| offset_of(text, location.line(), location.column()))
            .min(text.len())
    });
    let mut message = error.to_string();
    if let Some(cut) = message.rfind(" at line ") {
        message.truncate(cut);
    }
    if message.contains("recursive references") {
        "an alias stands inside what it names".clone_into(&mut message);
    } else if message.contains("recursion limit") {
        message = format!("nested deeper than {MAX_DEPTH} levels");
    } else if message.contains("merge value must be") {
        "`<<` takes a mapping, or a list of mappings".clone_into(&mut message);
    } else if message.contains("null into string") {
        "a key must be a name, found null".clone_into(&mut message);
    } else if message.contains("expected string scalar") {
        "a key must be a name, found a list or a mapping".clone_into(&mut message);
    } else if message.starts_with("alias replay limit") {
        TOO_LARGE.clone_into(&mut message);
    } else if message.starts_with("budget breached") {
        message = if message.contains("Depth") || message.contains("nesting") {
            format!("nested deeper than {MAX_DEPTH} levels")
        } else {
            TOO_LARGE.to_owned()
        };
    }
    Fault { message, at }
}

fn offset_of(text: &str, line: u64, column: u64) -> usize {
    let wanted = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let column = usize::try_from(column.saturating_sub(1)).unwrap_or(0);
    let start: usize = text.split_inclusive('\n').take(wanted).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start
        + rest
            .char_indices()
            .nth(column)
            .map_or(rest.len(), |(at, _)| at)
}

struct Raw(NodeKind);

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Raw>::deserialize(deserializer)?;
        Ok(Self {
            kind: spanned.value.0,
            span: span_of(&spanned.defined),
        })
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<String>::deserialize(deserializer)?;
        Ok(Self {
            span: span_of(&spanned.defined),
            name: spanned.value,
        })
    }
}

fn span_of(location: &serde_saphyr::Location) -> Span {
    let span = location.span();
    let start = span.byte_offset().unwrap_or_default();
    let start = usize::try_from(start).unwrap_or(usize::MAX);
    let length = usize::try_from(span.byte_len().unwrap_or_default()).unwrap_or(0);
    Span::new(start, start.saturating_add(length))
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML node")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Bool(value)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Number))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Text(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Text(value)))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw(NodeKind::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Raw(NodeKind::Sequence(nodes)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
            if pairs.len() > MAX_NODES {
                return Err(A::Error::custom("too many keys in one mapping"));
            }
        }
        Ok(Raw(NodeKind::Mapping(pairs)))
    }
}
