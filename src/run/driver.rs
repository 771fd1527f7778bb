//! The loop of a rank: events come out of one channel, the machine answers with actions, the actions are performed here.
//! Nothing is decided in this file.

mod cause;
mod closing;
mod probes;
mod tell;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::domain::diagnostic::Diagnostic;
use crate::exit;
use crate::input::program::Failure;
use crate::plan::node::NodeSpec;

use super::clock::Clock;
use super::console::{stderr, stdout};
use super::event::{Action, Answer, Event, Level, Outcome, Phase, Proc, Target, Verdict};
use super::exec;
use super::health::{self, Prober};
use super::launch;
use super::logs::Log;
use super::manifest::{Manifest, rounded};
use super::preflight;
use super::process::{self, Group, Orphans};
use super::signals::{self, Note};
use super::supervisor::{Plan, Supervisor};

/// The loop looks after everything at least this often, whatever the events.
const TICK: Duration = Duration::from_secs(1);
/// Time for a slow reader to take what is still queued.
const LAST_WORDS: Duration = Duration::from_secs(5);

enum Message {
    Note(Note),
    Probe(Target, Answer),
    Smoke(Result<(), String>),
}

/// Live a rank's whole life; the result is the exit code. Must be called from the main thread: children die with the
/// thread that started them.
pub fn run(spec: &NodeSpec) -> u8 {
    let code = catch_unwind(AssertUnwindSafe(|| live(spec))).unwrap_or_else(|_| {
        tracing::error!("this is a bug of atom-launch; everything it started has been ended");
        exit::BUG
    });
    stderr().status("");
    stdout().flush(LAST_WORDS);
    stderr().flush(LAST_WORDS);
    code
}

fn live(spec: &NodeSpec) -> u8 {
    let (sender, inbox) = channel();
    let notes = sender.clone();
    if let Err(error) = signals::listen(move |note| notes.send(Message::Note(note)).is_ok()) {
        tracing::error!("cannot listen to signals: {error}");
        return exit::CANNOT_EXECUTE;
    }
    if !process::on_main_thread() {
        tracing::warn!("not on the main thread: children will die with this thread");
    }
    // Without the right to do so the servers say themselves what they lack.
    let _ = exec::raise_open_files();
    let mut driver = match Driver::new(spec, sender, inbox) {
        Ok(driver) => driver,
        Err(error) => {
            tracing::error!("cannot start the health checks: {error}");
            return exit::CANNOT_EXECUTE;
        }
    };
    let outcome = match driver.refused() {
        Some(outcome) => outcome,
        None => driver.drive(),
    };
    driver.close(&outcome)
}

struct Driver<'a> {
    spec: &'a NodeSpec,
    machine: Supervisor,
    clock: Clock,
    sender: Sender<Message>,
    inbox: Receiver<Message>,
    prober: Prober,
    groups: BTreeMap<Proc, Group>,
    /// Ends that the machine has been told of.
    told: BTreeSet<Proc>,
    logs: BTreeMap<Proc, Log>,
    records: BTreeMap<Proc, usize>,
    /// Endpoints whose listener is known to be ours.
    ours: BTreeSet<Target>,
    orphans: Orphans,
    manifest: Manifest,
    manifest_lost: bool,
    outcome: Option<Outcome>,
}

impl<'a> Driver<'a> {
    fn new(
        spec: &'a NodeSpec,
        sender: Sender<Message>,
        inbox: Receiver<Message>,
    ) -> std::io::Result<Self> {
        let answers = sender.clone();
        let endpoints = Plan::of(spec).endpoints.len();
        let sink: health::Sink = Box::new(move |id, answer| {
            let target = if id < endpoints {
                Target::Endpoint(id)
            } else {
                Target::Router
            };
            answers.send(Message::Probe(target, answer)).is_ok()
        });
        let prober = Prober::start(spec.limits.poll_interval, spec.limits.probe_timeout, sink)?;
        let orphans = Orphans::note_strangers(spec.slurm_job());
        if !process::become_subreaper() {
            tracing::warn!(
                "this kernel has no subreaper: processes that leave their session may outlive the job"
            );
        }
        Ok(Self {
            spec,
            machine: Supervisor::new(Plan::of(spec)),
            clock: Clock::start(Instant::now()),
            sender,
            inbox,
            prober,
            groups: BTreeMap::new(),
            told: BTreeSet::new(),
            logs: BTreeMap::new(),
            records: BTreeMap::new(),
            ours: BTreeSet::new(),
            orphans,
            manifest: Manifest::begin(spec),
            manifest_lost: false,
            outcome: None,
        })
    }

    /// The outcome when the preflight finds something that stops the rank.
    fn refused(&mut self) -> Option<Outcome> {
        let now = self.clock.at(Instant::now());
        self.manifest.enter(Phase::Preflight, now);
        let findings = preflight::preflight(self.spec);
        for finding in &findings {
            say_finding(finding);
        }
        let errors = findings.iter().filter(|one| one.is_error()).count();
        if errors == 0 {
            return None;
        }
        let first = findings.iter().find(|one| one.is_error());
        let first = first.map_or("", |one| one.message.as_str());
        let reason = match errors {
            1 => first.to_owned(),
            more => format!("{more} problems before the start; the first: {first}"),
        };
        Some(Outcome {
            code: preflight::exit_code(&findings),
            verdict: Verdict::Failed,
            phase: Phase::Preflight,
            reason,
            culprit: None,
        })
    }

    fn drive(&mut self) -> Outcome {
        let mut events = VecDeque::from([Event::Begin]);
        loop {
            while let Some(event) = events.pop_front() {
                let now = self.clock.at(Instant::now());
                self.tell_event(&event);
                for action in self.machine.step(now, event) {
                    self.tell_action(&action);
                    self.perform(action, now, &mut events);
                }
                if let Some(outcome) = self.outcome.take() {
                    return outcome;
                }
            }
            self.show_status();
            self.wait(&mut events);
        }
    }

    /// Wait for the next event, and take all that are there.
    ///
    /// Signals come first: a scheduler signals our children as well, and their ends are then no failures. Ends come before
    /// answers: a health answer counts only while our child lives.
    fn wait(&mut self, events: &mut VecDeque<Event>) {
        let now = self.clock.at(Instant::now());
        let due = self.machine.deadline();
        let due = due.map_or(TICK, |at| at.saturating_sub(now));
        let pause = due.min(TICK);
        self.clock.plan(pause);
        let first = self.inbox.recv_timeout(pause).ok();
        let mut children = first.is_none();
        let mut answers = Vec::new();
        // A look at an owner goes through all of /proc: once for all answers that came meanwhile, or they would only pile up.
        let mut owners = BTreeMap::new();
        let rest = std::iter::from_fn(|| self.inbox.try_recv().ok());
        for message in first.into_iter().chain(rest).collect::<Vec<_>>() {
            match message {
                Message::Note(Note::Child) => children = true,
                Message::Note(Note::End(number)) => events.push_back(Event::Signal(number)),
                Message::Smoke(result) => answers.push(Event::Smoke(result)),
                Message::Probe(target, answer) => {
                    let answer = self.checked(target, answer, &mut owners);
                    answers.push(Event::Probe(target, answer));
                }
            }
        }
        if children {
            let before = events.len();
            self.look_for_ends(events);
            if self.is_early(events.iter().skip(before)) {
                self.listen_for_the_cause(before, events, &mut answers);
                self.look_for_ends(events);
            }
        }
        events.extend(answers);
        events.push_back(Event::Tick);
    }

    fn look_for_ends(&mut self, events: &mut VecDeque<Event>) {
        for (proc, group) in &mut self.groups {
            if self.told.contains(proc) {
                continue;
            }
            if let Some(exit) = group.ended() {
                self.told.insert(*proc);
                let alone = *proc != Proc::Workload || group.alone();
                events.push_back(Event::Ended {
                    proc: *proc,
                    exit,
                    alone,
                });
            }
        }
        self.orphans.collect(&self.leaders());
    }

    fn leaders(&self) -> Vec<i32> {
        let groups = self.groups.values().filter(|group| !group.reaped());
        groups.map(Group::pid).collect()
    }

    fn perform(&mut self, action: Action, now: Duration, events: &mut VecDeque<Event>) {
        match action {
            Action::Spawn(proc) => events.push_back(self.spawn(proc, now)),
            Action::Stop(proc) => {
                if let Some(group) = self.groups.get(&proc) {
                    // A workload is often a script whose programs would not learn of it; a server stops its engines itself.
                    if proc == Proc::Workload {
                        group.signal_group(Signal::SIGTERM);
                        group.signal_group(Signal::SIGCONT);
                    } else {
                        group.signal_leader(Signal::SIGTERM);
                        group.signal_leader(Signal::SIGCONT);
                    }
                }
            }
            Action::Kill(proc) => {
                if let Some(group) = self.groups.get(&proc) {
                    group.signal_group(Signal::SIGKILL);
                }
            }
            Action::LookAgain(proc) => {
                self.told.remove(&proc);
                self.look_for_ends(events);
            }
            Action::Reap(proc) => self.reap(proc, now),
            Action::Watch(target) => {
                if let Some((id, asked)) = self.asked(target) {
                    self.prober.watch(id, asked);
                }
            }
            Action::Relax(target) => self.prober.relax(self.probe_id(target)),
            Action::Unwatch(target) => self.prober.unwatch(self.probe_id(target)),
            Action::Inspect(server) => {
                if let Some(sample) = self.sample(server) {
                    events.push_back(Event::Vitals(server, sample));
                }
            }
            Action::Smoke => self.smoke(events),
            Action::Enter(phase) => {
                self.manifest.enter(phase, now);
                // Others may ask why before this rank has ended, and it may be killed until then.
                if let Some(outcome) = self.machine.outcome() {
                    self.manifest.decide(outcome);
                }
                self.write_manifest();
            }
            Action::Say(level, text) => say(level, &text),
            Action::Heartbeat(text) => {
                if !stderr().is_terminal() {
                    say(Level::Info, &text);
                }
            }
            Action::ShowLog(proc) => self.show_log(proc),
            Action::Finish(outcome) => self.outcome = Some(outcome),
        }
    }

    fn spawn(&mut self, proc: Proc, now: Duration) -> Event {
        let name = self.machine.plan().name(proc).to_owned();
        let mut record = launch::record(self.spec, proc);
        record.started_s = rounded(now);
        let event = match launch::start(self.spec, proc, &name) {
            Ok((group, log)) => {
                tracing::info!(
                    "{name}: process {}, log {}",
                    group.pid(),
                    log.path.display()
                );
                record.pid = Some(group.pid());
                self.groups.insert(proc, group);
                self.logs.insert(proc, log);
                Event::Spawned(proc)
            }
            Err(Failure { code, why, .. }) => {
                record.exit = Some(why.clone());
                Event::SpawnFailed { proc, code, why }
            }
        };
        self.records.insert(proc, self.manifest.processes.len());
        self.manifest.processes.push(record);
        self.write_manifest();
        event
    }

    fn reap(&mut self, proc: Proc, now: Duration) {
        let Some(group) = self.groups.get_mut(&proc) else {
            return;
        };
        let exit = group.ended();
        group.reap();
        let record = self
            .records
            .get(&proc)
            .and_then(|index| self.manifest.processes.get_mut(*index));
        if let Some(record) = record {
            record.ended_s = Some(rounded(now));
            record.exit = exit.map(|exit| exit.to_string());
        }
    }

    fn show_status(&mut self) {
        if stderr().is_terminal() && !self.spec.quiet {
            let now = self.clock.at(Instant::now());
            let text = self.machine.waiting_for(now);
            // Without automatic wrap a long line is cut at the edge and stays one line.
            let line = format!("\x1b[?7l{text}\x1b[?7h");
            stderr().status(if text.is_empty() { "" } else { &line });
        }
    }
}

fn say_finding(finding: &Diagnostic) {
    let help: Vec<String> = finding.help.iter().map(ToString::to_string).collect();
    let help = match help.as_slice() {
        [] => String::new(),
        some => format!(" ({})", some.join("; ")),
    };
    let code = finding.code.0;
    if finding.is_error() {
        tracing::error!("[{code}] {}{help}", finding.message);
    } else {
        tracing::warn!("[{code}] {}{help}", finding.message);
    }
}

fn say(level: Level, text: &str) {
    match level {
        Level::Info => tracing::info!("{text}"),
        Level::Warn => tracing::warn!("{text}"),
        Level::Error => tracing::error!("{text}"),
    }
}
