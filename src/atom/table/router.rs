//! Options of the router (atomesh). Its parser is clap's: no abbreviations, no underscores.

use super::Date;
use super::router_options::OPTIONS;

/// How many values an option of the router takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouterArity {
    /// A switch.
    None,
    /// One value.
    One,
    /// All words up to the next option.
    Many,
    /// `--prefill URL [PORT]`: the next word whatever it is, then a port or `none` if one follows; no `=` form.
    UrlAndPort,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouterType {
    /// Any text.
    Str,
    /// An integer from the first to the second number.
    Int(i128, i128),
    /// A number.
    Float,
    /// No value.
    Bool,
    /// One of the option's choices.
    Choice,
}

/// One option of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterOption {
    /// Name of its setting.
    pub dest: &'static str,
    /// All spellings.
    pub spellings: &'static [&'static str],
    /// How many values.
    pub arity: RouterArity,
    /// Of which type.
    pub value_type: RouterType,
    /// Accepted values of a choice.
    pub choices: &'static [&'static str],
    /// The choices before a day, where they changed.
    pub choices_until: Option<(Date, &'static [&'static str])>,
    /// Whether it may stand on the line more than once; else a second one is a usage error.
    pub repeatable: bool,
    /// Default as text; nothing for none.
    pub default: Option<&'static str>,
    /// First day on main.
    pub since: Date,
    /// What else one should know; empty for nothing.
    pub note: &'static str,
}

/// All options of the router, sorted by `dest`.
pub fn options() -> &'static [RouterOption] {
    OPTIONS
}

/// An option of the router by one of its spellings.
pub fn option(spelling: &str) -> Option<&'static RouterOption> {
    OPTIONS
        .iter()
        .find(|option| option.spellings.contains(&spelling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sorted_and_spelt_once() {
        assert!(OPTIONS.is_sorted_by(|a, b| a.dest < b.dest));
        let mut spellings: Vec<_> = OPTIONS.iter().flat_map(|option| option.spellings).collect();
        spellings.sort();
        assert!(spellings.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_options_of_the_launchers_own_command_are_known() {
        for (spelling, arity) in [
            ("--host", RouterArity::One),
            ("--port", RouterArity::One),
            ("--pd-disaggregation", RouterArity::None),
            ("--prefill", RouterArity::UrlAndPort),
            ("--decode", RouterArity::One),
            ("--policy", RouterArity::One),
            ("--backend", RouterArity::One),
            ("--log-level", RouterArity::One),
            ("--disable-health-check", RouterArity::None),
            ("--disable-circuit-breaker", RouterArity::None),
            ("--prometheus-port", RouterArity::One),
        ] {
            assert_eq!(
                option(spelling).map(|option| option.arity),
                Some(arity),
                "{spelling}"
            );
        }
        let policy = option("--policy").unwrap();
        assert!(policy.choices.contains(&"random"));
        assert!(
            policy
                .choices_until
                .is_some_and(|(day, old)| day == Date(2026, 8, 10) && !old.contains(&"dp_sticky"))
        );
        assert_eq!(option("--policies"), None);
    }
}
