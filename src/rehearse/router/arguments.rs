//! The router's words, read as its own parser (clap) reads them, by the table of its options.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::atom::table::router::{RouterArity, RouterOption, RouterType, option, options};

/// What the stand-in needs of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) metrics_host: String,
    pub(super) metrics_port: u16,
    /// URLs of the prefill servers.
    pub(super) prefill: Vec<String>,
    /// URLs of the decode servers.
    pub(super) decode: Vec<String>,
    pub(super) prefill_policy: String,
    pub(super) decode_policy: String,
    /// Interval, time limit and failures of health checks; nothing when they are switched off.
    pub(super) health: Option<HealthChecks>,
    /// How long workers may take to be there.
    pub(super) startup: Duration,
    /// How long requests in flight may take after a signal.
    pub(super) grace: Duration,
    /// How long a worker may stay silent.
    pub(super) silence: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HealthChecks {
    pub(super) interval: Duration,
    pub(super) limit: Duration,
    pub(super) failures: u32,
}

/// What the router does with its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Starts.
    Route(Box<Arguments>),
    /// Prints help or version.
    Print(String),
    /// Usage error (2).
    Refused(String),
    /// Configuration error (1).
    Fails(String),
}

/// Values by the option's name, in order.
type Values = BTreeMap<&'static str, Vec<String>>;

/// Read the words after the program.
pub(super) fn read(words: &[&str]) -> Reading {
    let words = match words {
        ["launch" | "start", rest @ ..] => rest,
        all => all,
    };
    let values = match collect(words) {
        Ok(values) => values,
        Err(message) => {
            return Reading::Refused(format!(
                "error: {message}\n\nUsage: atomesh launch [OPTIONS]\n\nFor more information, try '--help'.\n"
            ));
        }
    };
    if values.contains_key("help") {
        return Reading::Print(help());
    }
    if values.contains_key("version") || values.contains_key("version_verbose") {
        return Reading::Print("atomesh (stand-in of a rehearsal)\n".to_owned());
    }
    arguments(&values).map_or_else(Reading::Fails, |all| Reading::Route(Box::new(all)))
}

fn shown(option: &RouterOption) -> String {
    let name = option.spellings.first().copied().unwrap_or_default();
    match option.arity {
        RouterArity::None => name.to_owned(),
        _ => format!("{name} <{}>", option.dest.to_uppercase()),
    }
}

fn collect(words: &[&str]) -> Result<Values, String> {
    let mut values = Values::new();
    let mut rest = words.iter().copied().peekable();
    while let Some(word) = rest.next() {
        let (name, glued) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        let unexpected = || format!("unexpected argument '{word}' found");
        let known = option(name).ok_or_else(unexpected)?;
        let missing = || {
            format!(
                "a value is required for '{}' but none was supplied",
                shown(known)
            )
        };
        let mut given = Vec::new();
        match (known.arity, glued) {
            (RouterArity::None, None) => {}
            (RouterArity::None, Some(value)) => {
                return Err(format!(
                    "unexpected value '{value}' for '{name}' found; no more were expected"
                ));
            }
            (RouterArity::UrlAndPort, Some(_)) => return Err(unexpected()),
            (RouterArity::UrlAndPort, None) => {
                given.push(rest.next().ok_or_else(missing)?.to_owned());
                // The bootstrap port, which the atom backend does not use.
                rest.next_if(|next| *next == "none" || next.parse::<u16>().is_ok());
            }
            (RouterArity::One | RouterArity::Many, Some(value)) => given.push(value.to_owned()),
            (RouterArity::One, None) => {
                let value = rest.next_if(|next| !next.starts_with('-'));
                given.push(value.ok_or_else(missing)?.to_owned());
            }
            (RouterArity::Many, None) => {
                while let Some(value) = rest.next_if(|next| !next.starts_with('-')) {
                    given.push(value.to_owned());
                }
            }
        }
        for value in &given {
            check(known, value)?;
        }
        if values.contains_key(known.dest) && !known.repeatable {
            return Err(format!(
                "the argument '{}' cannot be used multiple times",
                shown(known)
            ));
        }
        values.entry(known.dest).or_default().extend(given);
    }
    Ok(values)
}

fn check(option: &RouterOption, value: &str) -> Result<(), String> {
    let fits = match option.value_type {
        RouterType::Str | RouterType::Bool => true,
        RouterType::Int(low, high) => value
            .parse::<i128>()
            .is_ok_and(|number| (low..=high).contains(&number)),
        RouterType::Float => value.parse::<f64>().is_ok(),
        RouterType::Choice => option.choices.contains(&value),
    };
    if fits {
        return Ok(());
    }
    let choices = if option.choices.is_empty() {
        String::new()
    } else {
        format!("\n  [possible values: {}]", option.choices.join(", "))
    };
    Err(format!(
        "invalid value '{value}' for '{}'{choices}",
        shown(option)
    ))
}

fn help() -> String {
    let mut text = "Stand-in of a rehearsal for atomesh: the same options, no model behind.\n\nUsage: atomesh launch [OPTIONS]\n\nOptions:\n".to_owned();
    for option in options() {
        text.push_str(&format!("      {}\n", shown(option)));
    }
    text
}

fn arguments(values: &Values) -> Result<Arguments, String> {
    let text = |dest: &str| -> String {
        let given = values.get(dest).and_then(|all| all.last()).cloned();
        let default = || options().iter().find(|one| one.dest == dest)?.default;
        given
            .or_else(|| default().map(str::to_owned))
            .unwrap_or_default()
    };
    let number = |dest: &str| text(dest).parse::<u64>().unwrap_or_default();
    let port = |dest: &str| {
        u16::try_from(number(dest)).map_err(|_| format!("configuration error: {dest} is no port"))
    };
    let seconds = |dest: &str| Duration::from_secs(number(dest));
    let has = |dest: &str| values.contains_key(dest);
    if !has("pd_disaggregation") || text("backend") != "atom" {
        return Err("configuration error: the stand-in router knows `--pd-disaggregation` with `--backend atom` and nothing else".to_owned());
    }
    let urls = |dest: &str| values.get(dest).cloned().unwrap_or_default();
    let policy = |dest: &str| {
        values
            .get(dest)
            .and_then(|all| all.last())
            .cloned()
            .unwrap_or_else(|| text("policy"))
    };
    let all = Arguments {
        host: text("host"),
        port: port("port")?,
        metrics_host: text("prometheus_host"),
        metrics_port: port("prometheus_port")?,
        prefill: urls("prefill"),
        decode: urls("decode"),
        prefill_policy: policy("prefill_policy"),
        decode_policy: policy("decode_policy"),
        health: (!has("disable_health_check")).then(|| HealthChecks {
            interval: seconds("health_check_interval_secs"),
            limit: seconds("health_check_timeout_secs"),
            failures: u32::try_from(number("health_failure_threshold")).unwrap_or(u32::MAX),
        }),
        startup: seconds("worker_startup_timeout_secs"),
        grace: seconds("shutdown_grace_period_secs"),
        silence: seconds("request_timeout_secs"),
    };
    for (role, urls) in [("prefill", &all.prefill), ("decode", &all.decode)] {
        if urls.is_empty() {
            return Err(format!(
                "configuration error: PD mode requires at least one {role} worker URL"
            ));
        }
        for url in urls {
            crate::rehearse::http::client::split(url)
                .map_err(|why| format!("configuration error: {role} worker: {why}"))?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "launch --host 0.0.0.0 --port 8000 --pd-disaggregation --prefill http://127.0.0.2:8010 --decode http://127.0.0.3:8020 \
        --policy random --backend atom --log-level info --disable-health-check --disable-circuit-breaker --prometheus-port 29100";

    fn reading(line: &str) -> Reading {
        let words: Vec<&str> = line.split_whitespace().collect();
        read(&words)
    }

    #[test]
    fn the_launchers_own_command_is_taken() {
        let Reading::Route(all) = reading(PLAIN) else {
            panic!("refused");
        };
        assert_eq!(
            (all.port, all.metrics_port, all.health),
            (8000, 29100, None)
        );
        assert_eq!(all.prefill, ["http://127.0.0.2:8010"]);
        assert_eq!(all.decode_policy, "random");
        assert_eq!(all.grace, Duration::from_mins(3));
        let Reading::Route(more) = reading(&format!(
            "{PLAIN} --prefill http://n2:8010 none --decode=http://n3:1 --decode-policy round_robin"
        )) else {
            panic!("refused");
        };
        assert_eq!((more.prefill.len(), more.decode.len()), (2, 2));
        assert_eq!(more.decode_policy, "round_robin");
    }

    #[test]
    fn mistakes_are_told_in_claps_words() {
        let refused = |more: &str| match reading(&format!("{PLAIN} {more}")) {
            Reading::Refused(text) => text.lines().next().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused("--polcy x"),
            "error: unexpected argument '--polcy' found"
        );
        assert_eq!(refused("stray"), "error: unexpected argument 'stray' found");
        assert_eq!(
            refused("--port 1"),
            "error: the argument '--port <PORT>' cannot be used multiple times"
        );
        assert_eq!(
            refused("--decode-policy best"),
            "error: invalid value 'best' for '--decode-policy <DECODE_POLICY>'"
        );
        assert_eq!(
            refused("--request-timeout-secs --json-log"),
            "error: a value is required for '--request-timeout-secs <REQUEST_TIMEOUT_SECS>' but none was supplied"
        );
        assert_eq!(
            refused("--json-log=yes"),
            "error: unexpected value 'yes' for '--json-log' found; no more were expected"
        );
        assert_eq!(
            refused("--prefill=http://n1:1"),
            "error: unexpected argument '--prefill=http://n1:1' found"
        );
    }

    #[test]
    fn a_mode_it_does_not_know_is_a_configuration_error() {
        assert!(matches!(
            reading("launch --worker-urls http://n1:1"),
            Reading::Fails(_)
        ));
        assert!(matches!(
            reading("launch --pd-disaggregation --backend atom --prefill http://n1:1"),
            Reading::Fails(text) if text.contains("decode")
        ));
        assert!(matches!(reading("--help"), Reading::Print(_)));
    }
}
