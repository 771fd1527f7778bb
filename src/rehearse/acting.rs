//! Makes faults happen inside a stand-in, each at its moment.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::faults::{Fault, Kind, Moment, Since};
use super::helpers;
use super::scene::{Own, Scene};
use crate::exit;
use crate::input;
use crate::render;

/// How exactly moments are kept.
const TICK: Duration = Duration::from_millis(10);
/// The rehearsal answers the wish for a stranger within this time.
const STRANGER_LIMIT: Duration = Duration::from_secs(10);

/// Say something as a stand-in.
pub fn say(text: &str) {
    render::to_stderr(&format!("{text}\n"));
}

/// The state of a stand-in that faults change.
#[derive(Debug)]
pub struct Acting {
    own: Own,
    started: Instant,
    ready: OnceLock<Instant>,
    hangs: AtomicBool,
    engine: AtomicI32,
}

impl Acting {
    /// Begin the part of the stand-in on a port; `Err` is an exit code after the reason was said.
    pub fn on_port(port: u16) -> Result<Arc<Self>, u8> {
        Own::find(&input::environment(), port)
            .and_then(|own| Ok(Self::begin(own)?))
            .map_err(|error| {
                say(&format!("rehearsal: {error:#}"));
                exit::BUG
            })
    }

    /// Begin: what holds from the start is done, the rest waits for its moment.
    fn begin(own: Own) -> std::io::Result<Arc<Self>> {
        let acting = Arc::new(Self {
            own,
            started: Instant::now(),
            ready: OnceLock::new(),
            hangs: AtomicBool::new(false),
            engine: AtomicI32::new(0),
        });
        if acting.own.has(Kind::IgnoreTerm) {
            signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
        }
        let mut timed: Vec<(Fault, Moment)> = Vec::new();
        for fault in &acting.own.faults {
            match fault.moment() {
                Some(moment) => timed.push((fault.clone(), moment)),
                None if fault.kind == Kind::PortStolen => {}
                None => acting.happened(fault),
            }
        }
        if !timed.is_empty() {
            let inner = Arc::clone(&acting);
            std::thread::Builder::new()
                .name("faults".to_owned())
                .spawn(move || inner.follow(timed))?;
        }
        Ok(acting)
    }

    /// The part it plays.
    pub fn own(&self) -> &Own {
        &self.own
    }

    /// The signals that end it gracefully while it serves.
    pub fn stop_signals(&self) -> &'static [i32] {
        if self.own.has(Kind::IgnoreTerm) {
            &[SIGINT]
        } else {
            &[SIGTERM, SIGINT]
        }
    }

    /// Its port is open now.
    pub fn ready(&self) {
        let _ = self.ready.set(Instant::now());
    }

    /// The engine that may have to die.
    pub fn engine_is(&self, pid: i32) {
        self.engine.store(pid, Ordering::SeqCst);
    }

    /// Load time: the scene's, or that of a fault.
    pub fn load(&self) -> Duration {
        let slow = self.own.faults.iter().find_map(|fault| match fault.kind {
            Kind::SlowLoad(delay) => Some(delay.duration()),
            _ => None,
        });
        slow.unwrap_or(self.own.load)
    }

    /// Whether it never opens its port: told so, or waiting for a dead engine.
    pub fn never_ready(&self) -> bool {
        let dies_before = |fault: &Fault| {
            fault.kind == Kind::EngineDeath
                && fault
                    .moment()
                    .is_none_or(|moment| moment.since == Since::Start)
        };
        self.own.has(Kind::NeverReady) || self.own.faults.iter().any(dies_before)
    }

    /// Before any answer: a hanging server gives none.
    pub fn before_answer(&self) {
        while self.hangs.load(Ordering::SeqCst) {
            std::thread::park_timeout(Duration::from_hours(1));
        }
    }

    /// Before an answer to a health check.
    pub fn before_health(&self) {
        for fault in &self.own.faults {
            if let Kind::SlowHealth(delay) = fault.kind {
                std::thread::sleep(delay.duration());
            }
        }
    }

    /// Before a completion: nothing comes from a dead engine.
    pub fn before_completion(&self) {
        while self.engine.load(Ordering::SeqCst) < 0 {
            std::thread::park_timeout(Duration::from_hours(1));
        }
    }

    /// Let the stranger take the port, where that is the fault.
    pub fn lose_port(&self) {
        let Some(folder) = self
            .own
            .folder
            .as_ref()
            .filter(|_| self.own.has(Kind::PortStolen))
        else {
            return;
        };
        let (wanted, there) = Scene::stranger(folder, self.own.rank, self.own.port);
        say(&format!(
            "rehearsal: a stranger takes port {}",
            self.own.port
        ));
        let end = Instant::now() + STRANGER_LIMIT;
        if std::fs::write(wanted, "").is_ok() {
            while !there.exists() && Instant::now() < end {
                std::thread::sleep(TICK);
            }
            let own = self.own.faults.iter();
            for fault in own.filter(|fault| fault.kind == Kind::PortStolen && there.exists()) {
                self.happened(fault);
            }
        }
    }

    /// Note that a fault has happened: one that never does makes a rehearsal worthless.
    fn happened(&self, fault: &Fault) {
        if let Some(folder) = &self.own.folder
            && let Err(error) = std::fs::write(Scene::fault_mark(folder, fault), "")
        {
            say(&format!("rehearsal: cannot note `{fault}`: {error}"));
        }
    }

    fn follow(&self, mut pending: Vec<(Fault, Moment)>) {
        let mark: Option<PathBuf> = self.own.folder.as_deref().map(Scene::workload_mark);
        let mut workload = None;
        while !pending.is_empty() {
            let now = Instant::now();
            if workload.is_none() && mark.as_ref().is_some_and(|mark| mark.exists()) {
                workload = Some(now);
            }
            pending.retain(|(fault, moment)| {
                let base = match moment.since {
                    Since::Start => Some(self.started),
                    Since::Ready => self.ready.get().copied(),
                    Since::Workload => workload,
                };
                let due = base.is_some_and(|base| now >= base + moment.delay.duration());
                // An engine must be there before it can die.
                let due = due
                    && (fault.kind != Kind::EngineDeath || self.engine.load(Ordering::SeqCst) != 0);
                if due {
                    self.happened(fault);
                    self.act(fault.kind);
                }
                !due
            });
            std::thread::sleep(TICK);
        }
    }

    fn act(&self, kind: Kind) {
        if kind != Kind::EngineDeath {
            say(&format!("rehearsal: {kind}"));
        }
        match kind {
            Kind::Crash(code) => end(i32::from(code)),
            Kind::Kill => {
                let _ = kill(getpid(), Signal::SIGKILL);
            }
            Kind::Hang => self.hangs.store(true, Ordering::SeqCst),
            Kind::ForkOrphan | Kind::SetsidOrphan => {
                if let Err(error) = helpers::leave_orphan(kind == Kind::SetsidOrphan) {
                    say(&format!("rehearsal: cannot leave an orphan: {error}"));
                }
            }
            Kind::EngineDeath => {
                // Its parent does not collect it, as the real one does not.
                let pid = self.engine.swap(-1, Ordering::SeqCst);
                if pid > 0 {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
            Kind::NeverReady
            | Kind::IgnoreTerm
            | Kind::PortStolen
            | Kind::SlowHealth(_)
            | Kind::SlowLoad(_) => {}
        }
    }
}

#[expect(
    clippy::exit,
    reason = "a crash at an arbitrary moment is what is asked for"
)]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
