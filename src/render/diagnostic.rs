//! Findings as text. The only file that names the snippet crate.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::domain::secret;
use crate::domain::source::{SourceFile, Span};

use super::count;
use crate::domain::visible::visible;

/// Longest line of a file that is shown whole; a longer one is cut around the place.
const LONG_LINE: usize = 400;

/// One finding with its snippet, ended by a line break.
pub fn text(finding: &Diagnostic, file: Option<&SourceFile>, colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = printable(&finding.message);
    let title = level.primary_title(message).id(finding.code.0);
    let (Place::File(span), Some(file)) = (&finding.place, file) else {
        // Without source there is nothing to draw a margin for.
        let help = finding
            .help
            .iter()
            .map(|help| format!("  = help: {}\n", printable(&help.to_string())));
        return renderer.render(&[Group::with_title(title)])
            + "\n"
            + &help.collect::<Vec<_>>().concat();
    };
    let window = Window::around(file, *span, finding);
    let label = (!finding.label.is_empty()).then(|| printable(&finding.label));
    let mut snippet = Snippet::source(window.text.clone())
        .path(file.name.clone())
        .line_start(window.first_line)
        .annotation(AnnotationKind::Primary.span(window.at(*span)).label(label));
    for more in &finding.more {
        let label = printable(&more.text);
        let place = AnnotationKind::Context.span(window.at(more.span));
        snippet = snippet.annotation(place.label(label));
    }
    let mut group = Group::with_title(title).element(snippet);
    for help in &finding.help {
        group = group.element(Level::HELP.message(printable(&help.to_string())));
    }
    renderer.render(&[group]) + "\n"
}

/// One finding in one line: where, what, how.
pub fn line(finding: &Diagnostic, file: Option<&SourceFile>) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = match (&finding.place, file) {
        (Place::File(span), Some(file)) => format!(" ({})", file.place(*span)),
        _ => String::new(),
    };
    let first = format!("{}{place}", printable(&finding.message));
    let parts = finding.help.iter().map(|help| printable(&help.to_string()));
    let parts: Vec<String> = std::iter::once(first).chain(parts).collect();
    format!("{severity}[{}]: {}\n", finding.code.0, parts.join("; "))
}

/// All findings: warnings in a line each, then errors where the eye is, with a closing line.
pub fn list(
    findings: &Diagnostics,
    file: Option<&SourceFile>,
    colour: bool,
    consequence: &str,
) -> String {
    let mut ordered: Vec<&Diagnostic> = findings.0.iter().collect();
    ordered.sort_by_key(|finding| {
        let place = match finding.place {
            Place::File(span) => span,
            Place::Input(_) | Place::Whole => Span::default(),
        };
        (std::cmp::Reverse(finding.severity), place)
    });
    let mut out: String = ordered
        .iter()
        .map(|finding| {
            if finding.is_error() {
                text(finding, file, colour)
            } else {
                line(finding, file)
            }
        })
        .collect();
    let errors = findings
        .0
        .iter()
        .filter(|finding| finding.is_error())
        .count();
    if errors > 0 {
        out.push_str(&format!(
            "atom-launch: {}; {consequence}\n",
            count(errors, "error")
        ));
    }
    out
}

/// A message as it may be shown: in one line that cannot speak to the terminal, without secrets.
pub fn printable(text: &str) -> String {
    visible(&secret::hide_inside(&text.replace('\n', " "))).into_owned()
}

/// The lines that a finding speaks of.
struct Window {
    text: String,
    first_line: usize,
    start: usize,
}

impl Window {
    fn around(file: &SourceFile, span: Span, finding: &Diagnostic) -> Self {
        let source = &file.text;
        let spans = || std::iter::once(span).chain(finding.more.iter().map(|more| more.span));
        let first = spans()
            .map(|span| span.start as usize)
            .min()
            .unwrap_or(0)
            .min(source.len());
        let last = spans()
            .map(|span| span.end as usize)
            .max()
            .unwrap_or(0)
            .min(source.len());
        let mut start = source[..first].rfind('\n').map_or(0, |at| at + 1);
        if source[start..].starts_with('\u{feff}') {
            start += '\u{feff}'.len_utf8();
        }
        let mut end = source[last..]
            .find('\n')
            .map_or(source.len(), |length| last + length);
        if end - start > LONG_LINE && !source[start..end].contains('\n') {
            start = floor(source, first.saturating_sub(LONG_LINE / 2).max(start));
            end = floor(source, (last + LONG_LINE / 2).min(end));
        }
        let first_line = file.position(u32::try_from(start).unwrap_or(u32::MAX)).line;
        Self {
            text: file.shown()[start..end.max(start)].to_owned(),
            first_line,
            start,
        }
    }

    /// A span as a range of the window.
    fn at(&self, span: Span) -> std::ops::Range<usize> {
        let clamp = |offset: u32| {
            (offset as usize)
                .saturating_sub(self.start)
                .min(self.text.len())
        };
        let range = clamp(span.start)..clamp(span.end).max(clamp(span.start));
        floor(&self.text, range.start)..floor(&self.text, range.end)
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
