//! models_atom.yaml → typed entries, with every mistake of the file collected.
//!
//! Knows the forms a field may have; knows nothing of roles, modes or precedence.

mod dialect;
mod fields;
mod numbers;
mod twice;

use std::fs::File;
use std::io::Read as _;

use sha2::{Digest as _, Sha256};

use super::words;
use super::yaml::{self, Key, Node, NodeKind};
use crate::domain::codes::{
    BAD_JSON, BAD_NUMBER, BAD_PAIR, BAD_WORDS, DUPLICATE_KEY, DUPLICATE_MODEL, NO_MODELS,
    UNKNOWN_FIELD, UNREADABLE_FILE, WRONG_TYPE, YAML_SYNTAX,
};
use crate::domain::diagnostic::{Code, Diagnostic, Diagnostics, Place, nearest};
use crate::domain::models::{FIELDS, ModelEntry, ModelsFile, Origin, with_model_fields};
use crate::domain::visible::{is_hidden, visible};
use fields::FromNode;

use crate::domain::source::{Located, SourceFile, Span};
pub use numbers::check_tuning_number;

/// The file that is compiled into the program.
pub const BUILT_IN: &str = include_str!("../../../models_atom.yaml");
/// Name under which messages speak of it.
pub const BUILT_IN_NAME: &str = "built-in models_atom.yaml";
/// Largest file that is read.
pub const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Read a file (`-` is standard input) or say why it cannot be. `what` names it in messages: `models file`.
pub fn read_text(path: &str, what: &str) -> Result<String, Diagnostic> {
    let fail = |message: String| Diagnostic::error(UNREADABLE_FILE, Place::Whole, message);
    let mut bytes = Vec::new();
    let read = if path == "-" {
        std::io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    if let Err(error) = read {
        let reason = match error.kind() {
            std::io::ErrorKind::IsADirectory => "it is a directory, not a file".to_owned(),
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            _ => error.to_string(),
        };
        return Err(fail(format!("cannot read the {what} {path}: {reason}")));
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(format!(
            "cannot read the {what} {path}: it is larger than {} MiB",
            MAX_BYTES / 1024 / 1024
        )));
    }
    decode(path, bytes)
}

/// The text of a file's bytes, or where they stop being UTF-8.
pub fn decode(path: &str, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = bytes[..good].split(|byte| *byte == b'\n').count();
        let line_start = bytes[..good]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&bytes[line_start..good])
            .chars()
            .count()
            + 1;
        let byte = bytes.get(good).copied().unwrap_or_default();
        let help = match bytes {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it looks like UTF-16: save it as UTF-8",
            _ => "save it as UTF-8",
        };
        let message = format!("{path}:{line}:{column}: not UTF-8 (byte 0x{byte:02x})");
        Diagnostic::error(UNREADABLE_FILE, Place::Whole, message).help(help)
    })
}

/// What loading found: the file (for snippets) with its entries, and all findings.
pub struct Loaded {
    /// Entries that could be read; complete only when there are no errors.
    pub models: ModelsFile,
    /// All mistakes of the file.
    pub diagnostics: Diagnostics,
    /// What is right here and read otherwise elsewhere; for `check`.
    pub notes: Diagnostics,
}

/// Type a text. Never fails: what is wrong is in the findings.
pub fn load(name: impl Into<String>, text: String, origin: Origin) -> Loaded {
    let sha256 = hex(&Sha256::digest(text.as_bytes()));
    let file = SourceFile::new(name, text);
    let mut reader = Reader {
        source: &file.text,
        name: &file.name,
        file: &file,
        found: Diagnostics::default(),
        notes: Diagnostics::default(),
    };
    let entries = match yaml::read(&file.text) {
        Ok(root) => {
            reader.swallowed();
            reader.top(&root)
        }
        Err(fault) => {
            reader.syntax(&fault);
            Vec::new()
        }
    };
    // A template merged into many models is read many times.
    let (diagnostics, notes) = (reader.found.unique(), reader.notes.unique());
    Loaded {
        models: ModelsFile {
            origin,
            file,
            sha256,
            entries,
        },
        diagnostics,
        notes,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether a top-level key is a template for anchors and merge keys, not a model.
fn is_template(name: &str) -> bool {
    name.starts_with('.') || name.starts_with("x-")
}

struct Reader<'a> {
    source: &'a str,
    name: &'a str,
    file: &'a SourceFile,
    found: Diagnostics,
    notes: Diagnostics,
}

macro_rules! define_read_field {
    ($($name:ident: $kind:ident, $about:literal;)+) => {
        /// Read one field into the entry; `false` when there is no field of this name.
        fn read_field(reader: &mut Reader<'_>, entry: &mut ModelEntry, name: &str, node: &Node) -> bool {
            match name {
                $(stringify!($name) => entry.$name = FromNode::from_node(reader, stringify!($name), node),)+
                _ => return false,
            }
            true
        }
    };
}
with_model_fields!(define_read_field);

/// Words of the YAML reader's messages, and what puts such a place right.
const SYNTAX_HELP: &[(&str, &str)] = &[
    ("trailing content", "is a line break missing here?"),
    (
        "multiple YAML documents",
        "a models file is one document: remove the `---` line",
    ),
    (
        "mapping values are not allowed",
        "the line above lacks its `:` or is indented less, or a value with `: ` in it lacks its quotes",
    ),
    (
        "did not find expected key",
        "all fields of a model start in the same column",
    ),
    (
        "unknown anchor",
        "no `&name` above goes by this name; a value that only starts with `*` needs quotes",
    ),
    (
        "unexpected character",
        "a value that starts with this character needs quotes",
    ),
];

impl Reader<'_> {
    fn error(
        &mut self,
        code: Code,
        span: Span,
        message: String,
        label: &str,
        help: Option<String>,
    ) {
        let diagnostic = Diagnostic::error(code, Place::File(span), message).label(label);
        self.found.0.push(diagnostic.help_if(help));
    }

    fn syntax(&mut self, fault: &yaml::Fault) {
        let at = fault.at.unwrap_or(0);
        let end = self.source[at..]
            .chars()
            .next()
            .map_or(at, |c| at + if c == '\n' { 0 } else { c.len_utf8() });
        let tab = self.source[..at].ends_with('\t') || self.source[at..].starts_with('\t');
        // What the reader trips over and what is wrong are often two places.
        let help = if tab {
            Some("indent with spaces; YAML allows no tabs there")
        } else {
            SYNTAX_HELP
                .iter()
                .find(|(words, _)| fault.message.contains(words))
                .map(|(_, help)| *help)
        };
        let help = help.map(ToOwned::to_owned);
        let message = match fault.message.split_once(';') {
            Some((first, _)) if first.contains("multiple YAML documents") => {
                "more than one YAML document in the file".to_owned()
            }
            _ => format!("not readable as YAML: {}", fault.message),
        };
        self.error(YAML_SYNTAX, Span::new(at, end), message, "", help);
    }

    fn top(&mut self, root: &Node) -> Vec<ModelEntry> {
        let pairs = match &root.kind {
            NodeKind::Mapping(pairs) => pairs.as_slice(),
            NodeKind::Null => &[],
            NodeKind::Bool(_) | NodeKind::Number | NodeKind::Text(_) | NodeKind::Sequence(_) => {
                let message = format!(
                    "{} must be a mapping from model names to entries, found {}",
                    self.name,
                    root.what()
                );
                self.error(
                    WRONG_TYPE,
                    root.span,
                    message,
                    "",
                    Some("write `Model-Name:` and its fields indented below".into()),
                );
                return Vec::new();
            }
        };
        let mut entries = Vec::new();
        for (key, node) in self.unique(pairs, DUPLICATE_MODEL, "model") {
            if is_template(&key.name) {
                self.unique_below(node);
            } else {
                entries.extend(self.entry(key, node));
            }
        }
        if entries.is_empty() && !self.found.has_errors() {
            self.found.push(
                Diagnostic::error(
                    NO_MODELS,
                    Place::Whole,
                    format!("{} holds no model", self.name),
                )
                .help("write `Model-Name:` and its fields indented below"),
            );
        }
        entries
    }

    fn entry(&mut self, key: &Key, node: &Node) -> Option<ModelEntry> {
        if key.name.trim() != key.name || key.name.is_empty() || key.name.contains(is_hidden) {
            let message =
                "a model's name must not be empty, begin or end with a blank, or hold characters that are not seen"
                    .to_owned();
            self.error(WRONG_TYPE, key.span, message, "", None);
            return None;
        }
        let mut entry = ModelEntry {
            name: Located::new(key.name.clone(), key.span),
            ..ModelEntry::default()
        };
        let pairs = match &node.kind {
            NodeKind::Mapping(pairs) => pairs.as_slice(),
            NodeKind::Null => &[],
            NodeKind::Bool(_) | NodeKind::Number | NodeKind::Text(_) | NodeKind::Sequence(_) => {
                self.not_an_entry(key, node);
                return None;
            }
        };
        for (key, node) in self.unique(pairs, DUPLICATE_KEY, "field") {
            if !read_field(self, &mut entry, &key.name, node) {
                let near = nearest(&key.name, FIELDS.iter().map(|field| field.name));
                let help = near.map_or_else(
                    || "the fields are listed at the head of models_atom.yaml".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                let message = format!(
                    "unknown field `{}` in model `{}`",
                    visible(&key.name),
                    entry.name.value
                );
                self.error(UNKNOWN_FIELD, key.span, message, "", Some(help));
            }
        }
        Some(entry)
    }

    fn not_an_entry(&mut self, key: &Key, node: &Node) {
        let is_field = FIELDS.iter().any(|field| field.name == key.name);
        let help = if is_field {
            format!("`{}` is a field: indent it below its model", key.name)
        } else {
            "write the model's fields indented below its name, each as `field: value`; a name that starts with `.` or `x-` is a template".to_owned()
        };
        let message = format!(
            "entry `{}` must be a mapping of fields, found {}",
            visible(&key.name),
            node.what()
        );
        self.error(WRONG_TYPE, key.span, message, "", Some(help));
    }

    fn wrong_type(&mut self, field: &str, node: &Node, wanted: &str) {
        let message = format!("`{field}` must be {wanted}, found {}", node.what());
        self.error(
            WRONG_TYPE,
            first_line(self.source, node.span),
            message,
            "",
            None,
        );
    }

    /// Place of a range inside a scalar's text.
    fn inside(&self, node: &Node, text: &str, range: &std::ops::Range<usize>) -> Span {
        self.places(node, text).of(range)
    }

    /// Places of the parts of a scalar's text.
    fn places(&self, node: &Node, text: &str) -> words::Places<'_> {
        let raw = self.source.get(node.span.range()).unwrap_or_default();
        words::Places::new(raw, node.span, text)
    }
}

/// A span cut at its first line end, for underlining.
fn first_line(source: &str, span: Span) -> Span {
    let text = source.get(span.range()).unwrap_or_default();
    let end = text.find(['\n', '\r']).unwrap_or(text.len());
    Span::new(span.start as usize, span.start as usize + end)
}

/// Whether a shell and `execve` would take this as the name of a variable.
pub fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
