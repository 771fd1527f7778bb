//! Plain values that another YAML reader takes for something else: said by `check`, harmless here.

use super::super::yaml::{Node, NodeKind};
use super::Reader;
use crate::domain::codes::YAML_DIFFERS;
use crate::domain::diagnostic::{Diagnostic, Place};

impl Reader<'_> {
    /// Note a plain scalar that PyYAML (YAML 1.1) reads otherwise.
    pub(super) fn dialect(&mut self, field: &str, node: &Node) {
        let plain = matches!(
            node.kind,
            NodeKind::Text(_) | NodeKind::Bool(_) | NodeKind::Number
        );
        let raw = self.source.get(node.span.range()).unwrap_or_default();
        if !plain || raw.is_empty() || raw.contains('\n') || raw.starts_with(['"', '\'', '|', '>'])
        {
            return;
        }
        let Some(elsewhere) = elsewhere(raw) else {
            return;
        };
        self.notes.0.push(
            Diagnostic::warning(
                YAML_DIFFERS,
                Place::File(node.span),
                format!(
                    "`{raw}` in `{field}` is {elsewhere} to PyYAML and other readers of YAML 1.1"
                ),
            )
            .help(format!("quote it: \"{raw}\"")),
        );
    }
}

/// What YAML 1.1, as PyYAML implements it, makes of a plain scalar; nothing where the two agree.
fn elsewhere(text: &str) -> Option<&'static str> {
    const BOOLEANS: &[&str] = &[
        "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF",
    ];
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if BOOLEANS.contains(&text) {
        return Some("a boolean");
    }
    if unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned[1..]
            .bytes()
            .all(|byte| (b'0'..=b'7').contains(&byte) || byte == b'_')
    {
        return Some("an octal number");
    }
    if unsigned.contains('_')
        && unsigned
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
        && !unsigned.starts_with('_')
    {
        return Some("a number without the `_`");
    }
    let parts: Vec<&str> = unsigned.split(':').collect();
    if parts.len() > 1
        && parts.iter().all(|part| digits(part))
        && parts[1..]
            .iter()
            .all(|part| part.len() <= 2 && **part < *"60")
    {
        return Some("a number to the base 60");
    }
    if unsigned.contains(['e', 'E']) && unsigned.parse::<f64>().is_ok() {
        let exponent = unsigned.split(['e', 'E']).nth(1).unwrap_or_default();
        if !unsigned.contains('.') || !exponent.starts_with(['+', '-']) {
            return Some("a string, not a number,");
        }
    }
    let date: Vec<&str> = text.split('-').collect();
    if let [year, month, day] = date.as_slice()
        && [year.len(), month.len(), day.len()] == [4, 2, 2]
        && date.iter().all(|part| digits(part))
    {
        return Some("a date");
    }
    if unsigned.starts_with("0o")
        || unsigned.starts_with("0b")
            && unsigned[2..]
                .bytes()
                .all(|byte| matches!(byte, b'0' | b'1'))
    {
        return Some("something else");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_named() {
        for (text, what) in [
            ("no", "boolean"),
            ("On", "boolean"),
            ("010", "octal"),
            ("1:30", "base 60"),
            ("1e3", "string"),
            ("1.5e3", "string"),
            ("2026-01-02", "date"),
            ("1_000", "without"),
        ] {
            assert!(
                elsewhere(text).is_some_and(|found| found.contains(what)),
                "{text}"
            );
        }
        for text in [
            "128", "0.8", "true", "fp8", "0", "1.5e+3", "089", "a:1", "10.0.0.1", "-1", "y", "1:99",
        ] {
            assert_eq!(elsewhere(text), None, "{text}");
        }
    }
}
