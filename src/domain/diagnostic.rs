//! Findings as data. How they look is decided in `render/`.

use std::collections::HashSet;
use std::fmt;

use super::source::Span;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Stops the launch; `check` exits with 1.
    Error,
    /// Is said, and the launch goes on.
    Warning,
}

/// Stable kebab-case name of a kind of finding, such as `unknown-field`.
///
/// Every code is described in `domain/codes.rs`, which `check --explain` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Code(pub &'static str);

/// Where a finding belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// A piece of the models file.
    File(Span),
    /// An option, a variable or an argument, by its name. Its value is in the message.
    Input(String),
    /// The whole file or command.
    Whole,
}

/// A second place that explains the first ("first set here").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// Place in the models file.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// A way out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Help {
    /// In words.
    Words(String),
    /// In words around a setting that is to be given.
    Give {
        /// What stands before it.
        before: &'static str,
        /// Its option, with a value where that helps.
        option: &'static str,
        /// Its variable, where variables count.
        variable: Option<&'static str>,
        /// What stands behind it.
        after: &'static str,
    },
}

/// The addresses of a job's nodes, as a way out of several findings.
pub const NODES: (&str, &str) = ("--nodes", "IPADDRS");
/// The number of speculative tokens.
pub const MTP: (&str, &str) = ("--mtp", "DECODE_MTP_SIZE");

impl Help {
    /// Give a setting by its option or its variable.
    pub fn give(
        before: &'static str,
        (option, variable): (&'static str, &'static str),
        after: &'static str,
    ) -> Self {
        Self::Give {
            before,
            option,
            variable: Some(variable),
            after,
        }
    }
}

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(text) => f.write_str(text),
            Self::Give {
                before,
                option,
                variable,
                after,
            } => {
                write!(f, "{before}`{option}`")?;
                if let Some(variable) = variable {
                    write!(f, " or {variable}")?;
                }
                f.write_str(after)
            }
        }
    }
}

impl From<&str> for Help {
    fn from(text: &str) -> Self {
        Self::Words(text.to_owned())
    }
}

impl From<String> for Help {
    fn from(text: String) -> Self {
        Self::Words(text)
    }
}

impl serde::Serialize for Help {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Kind.
    pub code: Code,
    /// One sentence, lower case, no full stop; names the field, option or variable.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Text under the underlined word; empty for none.
    pub label: String,
    /// Further places.
    pub more: Vec<Label>,
    /// How to put it right.
    pub help: Vec<Help>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            place,
            label: String::new(),
            more: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, place, message)
        }
    }

    /// Add the words under the underline.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Add a second place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.more.push(Label {
            span,
            text: text.into(),
        });
        self
    }

    /// Add a way out.
    #[must_use]
    pub fn help(mut self, text: impl Into<Help>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Add a way out where there is one.
    #[must_use]
    pub fn help_if(mut self, text: Option<String>) -> Self {
        self.help.extend(text.map(Help::from));
        self
    }

    /// Whether this stops a launch.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Findings in the order they were made.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Add one, unless the very same one is there (a template merged into many models is read many times).
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.0.contains(&diagnostic) {
            self.0.push(diagnostic);
        }
    }

    /// Each finding once, in the order they were made; for long lists.
    #[must_use]
    pub fn unique(self) -> Self {
        let mut seen = HashSet::with_capacity(self.0.len());
        let kept: Vec<bool> = self.0.iter().map(|finding| seen.insert(finding)).collect();
        drop(seen);
        let mut kept = kept.into_iter();
        let mut list = self.0;
        list.retain(|_| kept.next().unwrap_or(true));
        Self(list)
    }

    /// Add all of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        for diagnostic in other.0 {
            self.push(diagnostic);
        }
    }

    /// The same where no variable counts, so that none is a way out.
    pub fn without_variables(&mut self) {
        for help in self.0.iter_mut().flat_map(|finding| &mut finding.help) {
            if let Help::Give { variable, .. } = help {
                *variable = None;
            }
        }
    }

    /// Whether any of them stops a launch.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(Diagnostic::is_error)
    }
}

/// The nearest of the known names, when it is near enough to be meant.
///
/// Near enough: at most one change in names of up to five letters, two up to ten, three above; swapped neighbours count once.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let allowed = match letters {
        0..=2 => 0,
        3..=5 => 1,
        6..=10 => 2,
        _ => 3,
    };
    let lower = word.to_lowercase();
    known
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(letters) <= allowed)
        .map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_a_typo_and_no_stranger() {
        let known = ["prefill_tp_dp_flags", "env", "block_size"];
        assert_eq!(
            nearest("prefil_tp_dp_flags", known),
            Some("prefill_tp_dp_flags")
        );
        assert_eq!(nearest("evn", known), Some("env"));
        assert_eq!(nearest("hf_dir", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn the_same_finding_is_kept_once() {
        let mut list = Diagnostics::default();
        let finding = Diagnostic::warning(Code("x"), Place::Whole, "y");
        list.push(finding.clone());
        list.push(finding);
        assert_eq!(list.0.len(), 1);
        let twice = Diagnostics([list.0.clone(), list.0.clone()].concat());
        assert_eq!(twice.unique().0, list.0);
        assert!(!list.has_errors());
    }
}
