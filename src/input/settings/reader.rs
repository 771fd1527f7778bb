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
                (Ok(value), None) => winner = Some(Sourced::new(value, source)),
                (Ok(_), Some(winner)) => winner.shadowed.push(Shadowed {
                    value: raw.to_owned(),
                    source,
                }),
                (Err(reason), _) => self.invalid(&source, raw, &reason),
            }
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
            format!(
                "{what} {reason}, found `{}`",
                visible(&secret::mask_source(&secret::shown(name, raw)))
            )
        };
        let invalid = Diagnostic::error(INVALID_SETTING, source.place(), message);
        self.found.push(invalid);
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
