//! What can happen to a rank and what can be done about it: the words between the state machine and the world.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exit;

use super::engine_watch::Sample;

/// A process of ours with its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proc {
    /// A server, by its position in the specification.
    Server(usize),
    /// The router.
    Router,
    /// The workload.
    Workload,
}

/// What is asked for its health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A server, by its position in the list of endpoints.
    Endpoint(usize),
    /// The router.
    Router,
}

/// Part of a rank's life; the names stand in the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Looking for problems before anything is started.
    Preflight,
    /// Servers are loading.
    Servers,
    /// Waiting for the router.
    Router,
    /// The one token of `--smoke`.
    Smoke,
    /// The workload runs.
    Workload,
    /// Serving until a signal, or on the other ranks until the router is gone.
    Serving,
    /// The router stays after a short workload until the other ranks can have seen it.
    Hold,
    /// The pause that was asked for between the workload's end and the teardown; the hold is part of it.
    Linger,
    /// Everything is being ended.
    Teardown,
    /// Nothing is left.
    Done,
}

impl Phase {
    /// Name as in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preflight => "preflight",
            Self::Servers => "servers",
            Self::Router => "router",
            Self::Smoke => "smoke",
            Self::Workload => "workload",
            Self::Serving => "serving",
            Self::Hold => "hold",
            Self::Linger => "linger",
            Self::Teardown => "teardown",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// The code as a shell gives it.
    pub fn shell_code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code & 0xff,
            Self::Signal(number) => 128 + (number & 0x7f),
        };
        u8::try_from(code).unwrap_or(exit::BUG)
    }

    /// The code of a job in which this process had no business to end: never 0.
    pub fn failure_code(self) -> u8 {
        match self.shell_code() {
            0 => exit::FOUND,
            code => code,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(number) => write!(f, "was killed by {}", signal_name(*number)),
        }
    }
}

/// `SIGTERM` and so on; the number where there is no name.
pub fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number)
        .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string())
}

/// What a health check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A status from 200 to 299.
    Ready,
    /// Any other status; redirects are not followed.
    Status(u16),
    /// Nobody listens.
    Refused,
    /// No connection in time.
    Timeout,
    /// A connection, and no answer in time.
    Busy,
    /// No way there.
    Unreachable(String),
    /// A connection that broke before there was an answer.
    Broken(String),
    /// The name has no address.
    Unresolved(String),
    /// Something that is no HTTP.
    NotHttp,
    /// An answer from a process that is not ours.
    Stranger(String),
}

impl Answer {
    /// Whether anybody who speaks HTTP answered.
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Ready | Self::Status(_))
    }

    /// Whether somebody had the port open who has not answered.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Busy | Self::Broken(_))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Status(status @ 300..=399) => {
                write!(f, "HTTP {status}, a redirect that is not followed")
            }
            Self::Status(status) => write!(f, "HTTP {status}"),
            Self::Refused => f.write_str("connection refused"),
            Self::Timeout | Self::Busy => f.write_str("no answer in time"),
            Self::Broken(why) => write!(f, "no answer: {why}"),
            Self::Unreachable(why) => write!(f, "unreachable: {why}"),
            Self::Unresolved(why) => write!(f, "name not resolved: {why}"),
            Self::NotHttp => f.write_str("what answers does not speak HTTP"),
            Self::Stranger(who) => {
                write!(f, "the port belongs to {who}, not to our process")
            }
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// The preflight is done.
    Begin,
    /// A process was started.
    Spawned(Proc),
    /// A process could not be started.
    SpawnFailed {
        /// Which.
        proc: Proc,
        /// Exit code for it: 126 or 127.
        code: u8,
        /// Why.
        why: String,
    },
    /// A group's leader is dead and not yet reaped.
    Ended {
        /// Which.
        proc: Proc,
        /// How.
        exit: Exit,
        /// Whether nobody else lives in its group.
        alone: bool,
    },
    /// A health check was answered, or not.
    Probe(Target, Answer),
    /// A look at the processes below a server.
    Vitals(usize, Sample),
    /// The one token came, or the reason why not.
    Smoke(Result<(), String>),
    /// A signal was sent to us.
    Signal(i32),
    /// A deadline may have passed.
    Tick,
}

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Progress.
    Info,
    /// Worth a look.
    Warn,
    /// Why the job fails.
    Error,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Start a process in a group of its own.
    Spawn(Proc),
    /// Send TERM: to the leader of a server's or router's group, to the whole group of the workload.
    Stop(Proc),
    /// Send KILL to the whole group.
    Kill(Proc),
    /// Look whether an ended leader has left anybody in its group; the answer is another [`Event::Ended`].
    LookAgain(Proc),
    /// KILL what remains of an ended leader's group, then reap the leader.
    Reap(Proc),
    /// Check its health from now on, once every poll interval.
    Watch(Target),
    /// Only keep it in sight: check it more rarely, unless it refuses connections.
    Relax(Target),
    /// Check it no more.
    Unwatch(Target),
    /// Look at the processes below a server.
    Inspect(usize),
    /// Ask for one token.
    Smoke,
    /// A new phase begins.
    Enter(Phase),
    /// Say a line.
    Say(Level, String),
    /// Say what is being waited for, unless a live display does.
    Heartbeat(String),
    /// Show the last lines of a process's log.
    ShowLog(Proc),
    /// Nothing of ours runs any more, as far as the groups go.
    Finish(Outcome),
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Not over yet; what a manifest says when its rank was killed hard.
    Running,
    /// As it should.
    Done,
    /// Something went wrong.
    Failed,
    /// A signal ended it.
    Stopped,
}

/// The end of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code.
    pub code: u8,
    /// How it went.
    pub verdict: Verdict,
    /// Phase in which that was decided.
    pub phase: Phase,
    /// Why, in one sentence.
    pub reason: String,
    /// The process or endpoint at fault.
    pub culprit: Option<String>,
}

/// `45 s`, `2 min 5 s`: for people.
pub fn spoken(time: Duration) -> String {
    let seconds = time.as_secs();
    if time < Duration::from_secs(10) && time.subsec_millis() != 0 {
        format!("{:.1} s", time.as_secs_f64())
    } else if seconds < 120 {
        format!("{seconds} s")
    } else if seconds.is_multiple_of(60) {
        format!("{} min", seconds / 60)
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_end_never_counts_as_success() {
        assert_eq!(Exit::Code(0).failure_code(), 1);
        assert_eq!(Exit::Code(3).failure_code(), 3);
        assert_eq!(Exit::Signal(11).failure_code(), 139);
        assert_eq!(Exit::Signal(11).to_string(), "was killed by SIGSEGV");
    }

    #[test]
    fn times_read_well() {
        let of = |ms| spoken(Duration::from_millis(ms));
        assert_eq!(of(1500), "1.5 s");
        assert_eq!(of(45_000), "45 s");
        assert_eq!(of(2_500_000), "41 min 40 s");
        assert_eq!(of(300_000), "5 min");
    }
}
