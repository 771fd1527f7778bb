//! Faults on purpose: `rank=2 kind=crash:3 at=2s`. What a fault means is done by the stand-ins; here it is only read and written.

use std::fmt;
use std::str::FromStr;

use crate::domain::delay::Delay;
use crate::domain::topology::{Role, whole_number};

/// Since when a moment is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Since {
    /// The process's own start.
    Start,
    /// The moment at which it opens its port.
    Ready,
    /// The start of the workload.
    Workload,
}

/// When a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moment {
    /// Since when.
    pub since: Since,
    /// How long after that.
    pub delay: Delay,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.since {
            Since::Start => return self.delay.fmt(f),
            Since::Ready => "ready",
            Since::Workload => "workload",
        };
        match self.delay {
            Delay(0) => f.write_str(word),
            delay => write!(f, "{word}+{delay}"),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, delay) = match text.split_once('+') {
            Some((word, delay)) => (word, delay.parse()?),
            None => (text, Delay(0)),
        };
        let since = match word {
            "ready" => Since::Ready,
            "workload" => Since::Workload,
            _ if text.contains('+') => {
                return Err(format!(
                    "`{word}` is no moment: expected `ready` or `workload` before `+`"
                ));
            }
            _ => {
                return Ok(Self {
                    since: Since::Start,
                    delay: text.parse()?,
                });
            }
        };
        Ok(Self { since, delay })
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Ends with a code.
    Crash(u8),
    /// Is killed by SIGKILL.
    Kill,
    /// Accepts connections and answers nothing any more.
    Hang,
    /// Never opens its port.
    NeverReady,
    /// Ignores TERM.
    IgnoreTerm,
    /// Leaves a grandchild in its own group, whose parent is gone and which ignores TERM.
    ForkOrphan,
    /// The same in a session of its own.
    SetsidOrphan,
    /// The engine process dies without a word; the main process waits for ever.
    EngineDeath,
    /// A stranger takes the port right after the preflight and answers 200.
    PortStolen,
    /// Answers to health checks come late.
    SlowHealth(Delay),
    /// Loads this long.
    SlowLoad(Delay),
}

/// Names of all kinds, as in messages.
const KINDS: &str = "crash:CODE, kill, hang, never-ready, ignore-term, fork-orphan, setsid-orphan, engine-death, port-stolen, router-crash, slow-health:SECONDS, slow-load:SECONDS";

impl Kind {
    /// When it happens unless a moment is given; nothing for a kind that has no moment.
    pub fn usual_moment(self, of_router: bool) -> Option<Moment> {
        let (since, delay) = match self {
            Self::Crash(_) | Self::Kill if of_router => (Since::Ready, 0),
            Self::Crash(_) | Self::Kill | Self::ForkOrphan | Self::SetsidOrphan => {
                (Since::Start, 0)
            }
            Self::Hang => (Since::Ready, 0),
            // The launcher believes in an engine only after it has lived for a few seconds.
            Self::EngineDeath => (Since::Start, 4000),
            Self::NeverReady
            | Self::IgnoreTerm
            | Self::PortStolen
            | Self::SlowHealth(_)
            | Self::SlowLoad(_) => return None,
        };
        Some(Moment {
            since,
            delay: Delay(delay),
        })
    }

    /// Whether a router can have it.
    fn fits_router(self) -> bool {
        !matches!(self, Self::EngineDeath | Self::SlowLoad(_))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crash(code) => return write!(f, "crash:{code}"),
            Self::SlowHealth(delay) => return write!(f, "slow-health:{delay}"),
            Self::SlowLoad(delay) => return write!(f, "slow-load:{delay}"),
            Self::Kill => "kill",
            Self::Hang => "hang",
            Self::NeverReady => "never-ready",
            Self::IgnoreTerm => "ignore-term",
            Self::ForkOrphan => "fork-orphan",
            Self::SetsidOrphan => "setsid-orphan",
            Self::EngineDeath => "engine-death",
            Self::PortStolen => "port-stolen",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once(':')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        let plain = match name {
            "crash" => {
                let code = value.ok_or("`crash` needs an exit code, such as `crash:3`")?;
                return whole_number(code)
                    .and_then(|code| u8::try_from(code).map_err(|error| error.to_string()))
                    .map(Self::Crash)
                    .map_err(|_| format!("`{code}` is no exit code from 0 to 255"));
            }
            "slow-health" | "slow-load" => {
                let value =
                    value.ok_or_else(|| format!("`{name}` needs a time, such as `{name}:5s`"))?;
                let delay = value.parse()?;
                return Ok(if name == "slow-load" {
                    Self::SlowLoad(delay)
                } else {
                    Self::SlowHealth(delay)
                });
            }
            "kill" => Self::Kill,
            "hang" => Self::Hang,
            "never-ready" => Self::NeverReady,
            "ignore-term" => Self::IgnoreTerm,
            "fork-orphan" => Self::ForkOrphan,
            "setsid-orphan" => Self::SetsidOrphan,
            "engine-death" => Self::EngineDeath,
            "port-stolen" => Self::PortStolen,
            _ => {
                return Err(format!(
                    "no kind `{}`; there are {KINDS}",
                    name.escape_debug()
                ));
            }
        };
        match value {
            None => Ok(plain),
            Some(value) => Err(format!(
                "`{name}` takes no value, but got `{}`",
                value.escape_debug()
            )),
        }
    }
}

/// Which role a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Servers of a role.
    Server(Role),
    /// The router.
    Router,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(role) => role.fmt(f),
            Self::Router => f.write_str("router"),
        }
    }
}

/// A fault of one or several processes: every given selector must fit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Of this rank.
    pub rank: Option<u32>,
    /// Of this role; without one, servers.
    pub role: Option<Actor>,
    /// The worker of this name, such as `decode-1`.
    pub worker: Option<String>,
    /// What.
    pub kind: Kind,
    /// When, where it was said.
    pub at: Option<Moment>,
}

impl Fault {
    /// When it happens; nothing for a kind that has no moment.
    pub fn moment(&self) -> Option<Moment> {
        let usual = self.kind.usual_moment(self.role == Some(Actor::Router))?;
        Some(self.at.unwrap_or(usual))
    }

    /// Whether it concerns a process.
    pub fn concerns(&self, rank: u32, actor: Actor, name: &str) -> bool {
        let role = match self.role {
            Some(role) => role == actor,
            None => self.worker.is_some() || actor != Actor::Router,
        };
        role && self.rank.is_none_or(|own| own == rank)
            && self.worker.as_deref().is_none_or(|own| own == name)
    }

    /// Read one; all problems at once.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        let (mut rank, mut role, mut worker, mut kind, mut at) = (None, None, None, None, None);
        let mut kind_is_known = true;
        for word in text.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                problems.push(format!(
                    "`{}` is not of the form KEY=VALUE",
                    word.escape_debug()
                ));
                continue;
            };
            if seen.contains(&key) {
                problems.push(format!("`{key}` is given twice"));
                continue;
            }
            seen.push(key);
            match key {
                "rank" => match value.parse() {
                    Ok(number) => rank = Some(number),
                    Err(_) => problems.push(format!("`{}` is no rank", value.escape_debug())),
                },
                "role" => match value {
                    "prefill" => role = Some(Actor::Server(Role::Prefill)),
                    "decode" => role = Some(Actor::Server(Role::Decode)),
                    "standalone" => role = Some(Actor::Server(Role::Standalone)),
                    "router" => role = Some(Actor::Router),
                    _ => problems.push(format!(
                        "no role `{}`; there are prefill, decode, standalone, router",
                        value.escape_debug()
                    )),
                },
                "worker" if value.is_empty() => problems.push("`worker` has no name".to_owned()),
                "worker" => worker = Some(value.to_owned()),
                // Shorthand of the commonest fault of a router.
                "kind" if value == "router-crash" => kind = Some((Kind::Crash(1), true)),
                "kind" => match value.parse() {
                    Ok(known) => kind = Some((known, false)),
                    Err(problem) => {
                        kind_is_known = false;
                        problems.push(problem);
                    }
                },
                "at" => match value.parse() {
                    Ok(moment) => at = Some(moment),
                    Err(problem) => problems.push(problem),
                },
                _ => problems.push(format!(
                    "no key `{}`; there are rank, role, worker, kind, at",
                    key.escape_debug()
                )),
            }
        }
        let router_crash = kind.is_some_and(|(_, short)| short);
        if router_crash {
            if matches!(role, Some(Actor::Server(_))) {
                problems.push("`router-crash` is of the router, not of another role".to_owned());
            }
            role = Some(Actor::Router);
        }
        let names_somebody = router_crash
            || ["rank", "role", "worker"]
                .iter()
                .any(|key| seen.contains(key));
        if !names_somebody {
            problems.push("whose fault? give `rank=N`, `role=ROLE` or `worker=NAME`".to_owned());
        }
        let Some((kind, _)) = kind else {
            if kind_is_known {
                problems.push(format!("no `kind`; there are {KINDS}"));
            }
            return Err(problems);
        };
        if at.is_some() && kind.usual_moment(false).is_none() {
            problems.push(format!("`{kind}` has no moment: leave `at` out"));
        }
        if role == Some(Actor::Router) && !kind.fits_router() {
            problems.push(format!("`{kind}` is no fault of a router"));
        }
        if problems.is_empty() {
            Ok(Self {
                rank,
                role,
                worker,
                kind,
                at,
            })
        } else {
            Err(problems)
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rank) = self.rank {
            write!(f, "rank={rank} ")?;
        }
        if let Some(role) = self.role {
            write!(f, "role={role} ")?;
        }
        if let Some(worker) = &self.worker {
            write!(f, "worker={worker} ")?;
        }
        write!(f, "kind={}", self.kind)?;
        self.at.map_or(Ok(()), |at| write!(f, " at={at}"))
    }
}

#[cfg(test)]
mod tests;
