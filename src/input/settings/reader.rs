//! The candidates of one setting in order of strength: the precedence is the order in which they are listed, nothing else.

use crate::domain::codes::INVALID_SETTING;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::provenance::{Shadowed, Source, Sourced};
use crate::domain::secret;
use crate::domain::visible::visible;

/// Takes settings from options and variables, and keeps what is wrong with them.
pub(super) struct Reader<'a> {
    pub(super) environment: &'a Environment,
    pub(super) found: Diagnostics,
}

impl Reader<'_> {
    /// Candidates of one setting from strongest to weakest: option, then variables.
    pub(super) fn read<T>(
        &mut self,
        option: &'static str,
        given: Option<&str>,
        variables: &[&'static str],
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<Sourced<T>> {
        let mut winner: Option<Sourced<T>> = None;
        let from_option = given.map(|raw| (raw, Source::CommandLine(option.into())));
        let from_variables = variables.iter().filter_map(|name| {
            if self.environment.not_utf8(name) {
                self.found.push(Diagnostic::error(
                    INVALID_SETTING,
                    Place::Input((*name).into()),
                    format!("variable {name} is not UTF-8"),
                ));
            }
            let raw = self.environment.get(name)?;
            Some((raw, Source::Environment((*name).into())))
        });
        let candidates: Vec<_> = from_option.into_iter().chain(from_variables).collect();
        for (raw, source) in candidates {
            let parsed = if raw.is_empty() && parse(raw).is_err() {
                Err("is empty".to_owned())
            } else if raw.contains('\0') {
                Err("holds a NUL byte".to_owned())
            } else {
                parse(raw)
            };
            match (parsed, &mut winner) {
                (Ok(value), None) => {
                    tracing::debug!(
                        "{option}: {} from {}",
                        shown(&source, raw),
                        source.in_words("")
                    );
                    winner = Some(Sourced::new(value, source));
                }
                (Ok(_), Some(winner)) => {
                    tracing::debug!(
                        "{option}: not {} from {}",
                        shown(&source, raw),
                        source.in_words("")
                    );
                    winner.shadowed.push(Shadowed {
                        value: raw.to_owned(),
                        source,
                    });
                }
                (Err(reason), _) => self.invalid(&source, raw, &reason),
            }
        }
        if winner.is_none() {
            tracing::trace!("{option}: not given{}", asked(option, variables));
        }
        winner
    }

    fn invalid(&mut self, source: &Source, raw: &str, reason: &str) {
        let name = source.input().unwrap_or_default();
        let what = match source {
            Source::Environment(_) => format!("variable {name}"),
            _ => format!("`{name}`"),
        };
        let message = if raw.is_empty() {
            format!("{what} {reason}")
        } else {
            format!("{what} {reason}, found `{}`", shown(source, raw))
        };
        let invalid = Diagnostic::error(INVALID_SETTING, source.place(), message);
        self.found.push(invalid);
    }

    /// A setting that only an option gives, in a type of its own.
    pub(super) fn option<T: std::fmt::Display>(
        option: &'static str,
        given: Option<T>,
    ) -> Option<Sourced<T>> {
        let source = Source::CommandLine(option.into());
        let given = given.map(|value| Sourced::new(value, source));
        if let Some(Sourced { value, source, .. }) = &given {
            tracing::debug!("{option}: {value} from {}", source.in_words(""));
        }
        given
    }

    pub(super) fn or<T>(value: Option<Sourced<T>>, default: T) -> Sourced<T> {
        value.unwrap_or_else(|| Sourced::default_of(default))
    }

    /// Whether no mistake was found in an input.
    pub(super) fn found_nothing_about(&self, input: &str) -> bool {
        !self
            .found
            .0
            .iter()
            .any(|finding| finding.place == Place::Input(input.into()))
    }
}

/// A value as it may be shown.
fn shown(source: &Source, raw: &str) -> String {
    let name = source.input().unwrap_or_default();
    visible(&secret::mask_source(&secret::shown(name, raw))).into_owned()
}

/// The variables that were asked besides an option.
fn asked(option: &str, variables: &[&str]) -> String {
    let others: Vec<&str> = variables
        .iter()
        .filter(|name| **name != option)
        .copied()
        .collect();
    match others.as_slice() {
        [] => String::new(),
        some => format!(", nor {}", some.join(", ")),
    }
}
