//! The router's words, as its own parser (clap) reads them: no abbreviations, and a single value only once.

use crate::atom::table::router::{self, RouterArity, RouterOption, RouterType};
use crate::domain::codes::{ROUTER_FLAG, ROUTER_POLICY};
use crate::domain::command::ArgGroup;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use crate::domain::provenance::Source;
use crate::domain::topology::Role;
use crate::domain::visible::visible;
use crate::plan::{JobPlan, RouterPlan};

/// Policies that need two workers to choose from.
const POWER_OF_TWO: &str = "power_of_two";

struct Word<'a> {
    text: &'a str,
    source: &'a Source,
}

impl Word<'_> {
    fn place(&self) -> Place {
        self.source.place()
    }

    fn within(&self) -> String {
        let input = self.source.input();
        input.map_or_else(
            || " of the router".to_owned(),
            |input| format!(" in {input}"),
        )
    }
}

/// Everything that the router would refuse.
pub(super) fn check(plan: &JobPlan, router: &RouterPlan, found: &mut Diagnostics) {
    let words: Vec<Word<'_>> = router
        .command
        .args
        .iter()
        .skip(1)
        .flat_map(|group: &ArgGroup| {
            group.words.iter().map(|text| Word {
                text,
                source: &group.source,
            })
        })
        .collect();
    let mut seen: Vec<&RouterOption> = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let (name, glued) = match word.text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word.text, None),
        };
        let Some(option) = router::option(name) else {
            found.push(unknown(word, name));
            continue;
        };
        if !option.repeatable && seen.iter().any(|other| other.dest == option.dest) {
            found.push(
                Diagnostic::error(
                    ROUTER_FLAG,
                    word.place(),
                    format!(
                        "`{name}`{} is passed twice, which the router refuses",
                        word.within()
                    ),
                )
                .help("the launcher passes it already; its own options and variables set it"),
            );
        }
        seen.push(option);
        let value = match (option.arity, glued) {
            (RouterArity::None, None) => continue,
            (RouterArity::None, Some(_)) => {
                let message = format!("`{name}`{} takes no value", word.within());
                found.push(Diagnostic::error(ROUTER_FLAG, word.place(), message));
                continue;
            }
            (RouterArity::Many, glued) => {
                while glued.is_none()
                    && words
                        .get(at)
                        .is_some_and(|next| !next.text.starts_with('-'))
                {
                    at += 1;
                }
                continue;
            }
            (RouterArity::One | RouterArity::UrlAndPort, Some(value)) => value,
            (RouterArity::One | RouterArity::UrlAndPort, None) => {
                let Some(next) = words.get(at).filter(|next| !next.text.starts_with('-')) else {
                    let message = format!("`{name}`{} needs a value", word.within());
                    found.push(Diagnostic::error(ROUTER_FLAG, word.place(), message));
                    continue;
                };
                at += 1;
                next.text
            }
        };
        if option.arity == RouterArity::UrlAndPort
            && words.get(at).is_some_and(|next| {
                next.text.parse::<u16>().is_ok() || next.text.eq_ignore_ascii_case("none")
            })
        {
            at += 1;
        }
        value_of(word, name, option, value, plan, found);
    }
}

fn unknown(word: &Word<'_>, name: &str) -> Diagnostic {
    let known = router::options()
        .iter()
        .flat_map(|option| option.spellings.iter().copied());
    let dashed = name.replace('_', "-");
    let near = known
        .clone()
        .find(|known| *known == dashed)
        .or_else(|| nearest(name, known));
    let message = if name.starts_with('-') {
        format!(
            "the router has no flag `{}`{}",
            visible(name),
            word.within()
        )
    } else {
        format!(
            "`{}`{} belongs to no flag of the router",
            visible(name),
            word.within()
        )
    };
    Diagnostic::error(ROUTER_FLAG, word.place(), message)
        .help_if(near.map(|near| format!("did you mean `{near}`?")))
}

fn value_of(
    word: &Word<'_>,
    name: &str,
    option: &RouterOption,
    value: &str,
    plan: &JobPlan,
    found: &mut Diagnostics,
) {
    let shown = visible(value);
    let wanted = match option.value_type {
        RouterType::Int(least, most)
            if !value
                .parse::<i128>()
                .is_ok_and(|number| (least..=most).contains(&number)) =>
        {
            format!("a whole number from {least} to {most}")
        }
        RouterType::Float if value.parse::<f64>().is_err() => "a number".to_owned(),
        RouterType::Choice if !option.choices.contains(&value) => {
            format!("one of {}", option.choices.join(", "))
        }
        _ => {
            policy(word, name, value, plan, found);
            return;
        }
    };
    let is_policy = option.dest.ends_with("policy");
    let code = if is_policy {
        ROUTER_POLICY
    } else {
        ROUTER_FLAG
    };
    let near = nearest(value, option.choices.iter().copied());
    found.push(
        Diagnostic::error(
            code,
            word.place(),
            format!(
                "`{name}`{} must be {wanted}, found `{shown}`",
                word.within()
            ),
        )
        .help_if(near.map(|near| format!("did you mean `{near}`?"))),
    );
}

/// `power_of_two` compares two workers, so there must be two.
fn policy(word: &Word<'_>, name: &str, value: &str, plan: &JobPlan, found: &mut Diagnostics) {
    if value != POWER_OF_TWO {
        return;
    }
    let of = |role: Role| {
        plan.workers
            .iter()
            .filter(|worker| worker.role == role)
            .count()
    };
    let (number, which) = match name {
        "--prefill-policy" => (of(Role::Prefill), " prefill"),
        "--decode-policy" => (of(Role::Decode), " decode"),
        "--policy" => (plan.workers.len(), ""),
        _ => return,
    };
    if number < 2 {
        let message = format!(
            "`{name} {POWER_OF_TWO}`{} needs at least two{which} workers, and this job has {number}",
            word.within()
        );
        found.push(
            Diagnostic::error(ROUTER_POLICY, word.place(), message)
                .help("use random or round_robin"),
        );
    }
}
