//! What other readers swallow without a word: keys that occur twice, and tags.

use std::collections::HashMap;

use super::super::yaml::{self, Key, Node, NodeKind, Swallowed};
use super::{DUPLICATE_KEY, Reader, YAML_SYNTAX, visible};
use crate::domain::diagnostic::{Code, Diagnostic, Place};
use crate::domain::source::Span;

const KEEP_ONE: &str = "keep one of them: other YAML readers silently take the last";

impl Reader<'_> {
    /// Report what reading swallows: tags, and keys that occur twice in what is merged.
    pub(super) fn swallowed(&mut self) {
        for one in yaml::swallowed(self.source) {
            match one {
                Swallowed::Tag(span) => {
                    let tag = self.source.get(span.range()).unwrap_or_default();
                    let message = format!("tag `{}`: a models file has no tags", visible(tag));
                    let help = "take it out; quotes make a value a string".to_owned();
                    self.error(YAML_SYNTAX, span, message, "", Some(help));
                }
                Swallowed::Key { name, first, again } => {
                    let help = if name == "<<" {
                        "merge several with one key: `<<: [*one, *other]`"
                    } else {
                        KEEP_ONE
                    };
                    self.twice(DUPLICATE_KEY, "key", &name, first, again, help);
                }
            }
        }
    }

    fn twice(
        &mut self,
        code: Code,
        what: &str,
        name: &str,
        first: Span,
        again: Span,
        help: &'static str,
    ) {
        let place = self.file.place(first);
        let name = visible(name);
        self.found.0.push(
            Diagnostic::error(
                code,
                Place::File(again),
                format!("{what} `{name}` is there twice; it stands first at {place}"),
            )
            .label("second time")
            .also(first, "first time")
            .help(help),
        );
    }

    /// Report keys that occur twice; keep the first of each.
    pub(super) fn unique<'n>(
        &mut self,
        pairs: &'n [(Key, Node)],
        code: Code,
        what: &str,
    ) -> Vec<&'n (Key, Node)> {
        let mut first: HashMap<&str, Span> = HashMap::with_capacity(pairs.len());
        let mut kept = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let Key { name, span } = &pair.0;
            match first.get(name.as_str()) {
                None => {
                    first.insert(name, *span);
                    kept.push(pair);
                }
                // In a template that is merged it was found before.
                Some(_)
                    if self
                        .found
                        .0
                        .iter()
                        .any(|one| one.code == code && one.place == Place::File(*span)) => {}
                Some(earlier) => self.twice(code, what, name, *earlier, *span, KEEP_ONE),
            }
        }
        kept
    }

    /// Report keys that occur twice anywhere in a template: once it is merged, only one of them is left to be seen.
    pub(super) fn unique_below(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Mapping(pairs) => {
                for (_, below) in self.unique(pairs, DUPLICATE_KEY, "key") {
                    self.unique_below(below);
                }
            }
            NodeKind::Sequence(items) => items.iter().for_each(|item| self.unique_below(item)),
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number | NodeKind::Text(_) => {}
        }
    }
}
