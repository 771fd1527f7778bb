//! What stands in the text and is gone from the tree: tags, and keys that are there twice below a merge key.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle};

use crate::domain::source::Span;

/// Something that reading would swallow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Swallowed {
    /// A tag, such as `!!python/object:os.system`.
    Tag(Span),
    /// A key that was there before.
    Key {
        /// The key.
        name: String,
        /// Where it stands first.
        first: Span,
        /// Where it stands again.
        again: Span,
    },
}

/// A list or mapping that is open.
struct Open {
    /// The keys so far; `None` for a list.
    keys: Option<HashMap<String, Span>>,
    /// Whether the next node of a mapping is a key.
    key_next: bool,
    /// Whether it is merged into another one.
    merged: bool,
    /// Whether what comes next is the value of a merge key.
    merges: bool,
}

/// Everything that the tree does not show, in order. The text must be readable.
pub(crate) fn swallowed(text: &str) -> Vec<Swallowed> {
    let mut found = Vec::new();
    // Most files have neither outside of their comments, and need no second reading, which costs as much as the first.
    if !text.lines().any(may_swallow) {
        return found;
    }
    let mut open: Vec<Open> = Vec::new();
    for (event, span) in Parser::new_from_str(text).map_while(Result::ok) {
        let of = |span: granit_parser::Span| {
            span.byte_range()
                .map_or(Span::new(0, 0), |range| Span::new(range.start, range.end))
        };
        if event.tag().is_some() {
            found.push(Swallowed::Tag(of(span.tag_span().unwrap_or(span))));
        }
        let merged = open
            .last()
            .is_some_and(|above| above.merged || above.merges);
        match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let mapping = matches!(event, Event::MappingStart(..));
                open.push(Open {
                    keys: mapping.then(HashMap::new),
                    key_next: true,
                    merged,
                    merges: false,
                });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                passed(open.last_mut());
            }
            Event::Scalar(name, style, ..) => {
                if let Some(above) = open.last_mut().filter(|above| above.key_next)
                    && let Some(keys) = &mut above.keys
                {
                    let merge_key = style == ScalarStyle::Plain && name == "<<";
                    let again = of(span);
                    let first = *keys.entry(name.to_string()).or_insert(again);
                    if first != again && (above.merged || merge_key) {
                        let name = name.into_owned();
                        found.push(Swallowed::Key { name, first, again });
                    }
                    above.merges = merge_key;
                    above.key_next = false;
                    continue;
                }
                passed(open.last_mut());
            }
            Event::Alias(_) => passed(open.last_mut()),
            _ => {}
        }
    }
    found
}

/// Whether there may be a tag or a merge key in a line. One that starts with `#` is a comment, or the inside of a longer text.
fn may_swallow(line: &str) -> bool {
    (line.contains('!') || line.contains("<<")) && !line.trim_start().starts_with('#')
}

/// A node is over: after a key its value comes, after a value the next key.
fn passed(above: Option<&mut Open>) {
    if let Some(above) = above {
        above.key_next = !above.key_next;
        above.merges = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags and second keys as they stand in the text.
    fn shown(text: &str) -> Vec<&str> {
        let each = swallowed(text).into_iter().map(|one| match one {
            Swallowed::Tag(span) | Swallowed::Key { again: span, .. } => &text[span.range()],
        });
        each.collect()
    }

    #[test]
    fn tags_are_found_wherever_they_stand() {
        assert_eq!(
            shown("M: !a\n  b: !!int 1\n  !c d: [!<x> e, \"!no\"]\n  f: a!b\n"),
            ["!a", "!!int", "!c", "!<x>"]
        );
    }

    #[test]
    fn comments_need_no_second_reading() {
        let shipped = include_str!("../../../models_atom.yaml");
        assert!(shipped.contains("<<") && !shipped.lines().any(may_swallow));
    }

    #[test]
    fn keys_below_a_merge_key_are_found_twice() {
        assert_eq!(
            shown("M:\n  <<: {a: 1, b: {c: 1, c: 2}, a: 2}\n"),
            ["c", "a"]
        );
        assert_eq!(shown("M:\n  <<: [{a: 1}, {a: 1, a: 2}]\n  b: 1\n"), ["a"]);
        assert_eq!(shown("x: &x {}\nM:\n  <<: *x\n  a: 1\n  <<: *x\n"), ["<<"]);
        // What is found in the tree is not found here once more.
        assert_eq!(shown("M: {a: 1, a: 2, <<: {b: 1}}\n"), [""; 0]);
        assert_eq!(shown("M: {\"<<\": 1, a: 1}\n"), [""; 0]);
    }
}
