//! The decisions of a rank's life as a pure state machine: an event and the time go in, actions come out.
//!
//! No clock, no thread, no process: the driver has those. `now` is the time since the rank began, and may stand still
//! while the launcher itself is stopped. Whatever happens, the machine ends in bounded steps, with every started group
//! ended (or given up as unkillable, and said so) and exactly one [`Action::Finish`].

mod ending;
mod routed;
mod waiting;
mod watched;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::node::{Limits, NodeSpec};

use super::engine_watch::EngineWatch;
use super::event::{Action, Event, Exit, Level, Outcome, Phase, Proc, Target};

use watched::Watched;

/// How often the processes below a server are looked at, at most.
const LOOK: Duration = Duration::from_secs(5);
/// The same where the first token is asked for: an engine may die before it.
const PROOF_LOOK: Duration = Duration::from_secs(1);

/// What the machine must know of a rank.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts that do not depend on each other"
)]
pub struct Plan {
    /// Whether this rank waits for the servers, starts the router and runs the workload.
    pub leads: bool,
    /// Names of this rank's servers.
    pub servers: Vec<String>,
    /// Servers whose health is asked: on the leading rank all, elsewhere the rank's own.
    pub endpoints: Vec<EndpointPlan>,
    /// Name and address of the router, where there is one.
    pub router: Option<String>,
    /// Whether there is a workload.
    pub workload: bool,
    /// Whether one token is asked for.
    pub smoke: bool,
    /// Whether other ranks watch the router.
    pub followers: bool,
    /// Time limits.
    pub limits: Limits,
}

/// A server whose health is asked.
#[derive(Debug, Clone)]
pub struct EndpointPlan {
    /// Its name.
    pub name: String,
    /// Host and port for messages.
    pub place: String,
    /// Position among this rank's own servers.
    pub own: Option<usize>,
}

impl Plan {
    /// The machine's view of a specification.
    pub fn of(spec: &NodeSpec) -> Self {
        let own = |name: &str| spec.workers.iter().position(|worker| worker.name == name);
        let place = |url: &str| {
            url.trim_start_matches("http://")
                .split('/')
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let mut endpoints = Vec::new();
        if spec.leads() {
            endpoints.extend(spec.all_workers.iter().map(|endpoint| EndpointPlan {
                name: endpoint.name.clone(),
                place: place(&endpoint.health_url),
                own: own(&endpoint.name),
            }));
        }
        for (index, worker) in spec.workers.iter().enumerate() {
            if !endpoints.iter().any(|one| one.own == Some(index)) {
                endpoints.push(EndpointPlan {
                    name: worker.name.clone(),
                    place: place(&worker.health_url),
                    own: Some(index),
                });
            }
        }
        let router = (spec.router.is_some() || spec.router_address.is_some())
            .then(|| spec.client_url().unwrap_or_default());
        Self {
            leads: spec.leads(),
            servers: spec.workers.iter().map(|one| one.name.clone()).collect(),
            endpoints,
            router: router.map(|url| place(&url)),
            workload: !spec.workload.is_empty(),
            smoke: spec.smoke,
            followers: spec.job.ranks > 1 && spec.router.is_some(),
            limits: spec.limits.clone(),
        }
    }

    /// Name of a process in messages, logs and manifest.
    pub fn name(&self, proc: Proc) -> &str {
        match proc {
            Proc::Server(index) => self.servers.get(index).map_or("server", String::as_str),
            Proc::Router => "router",
            Proc::Workload => "workload",
        }
    }
}

/// Where a process of ours stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Asked for, not yet reported as started.
    Asked,
    Running,
    /// TERM is sent, KILL follows at this time.
    Stopping(Duration),
    /// The leader has ended; the rest of its group has until the first time, the next look is at the second.
    Draining(Duration, Duration, Exit),
    /// KILL is sent; given up at this time.
    Killed(Duration),
    /// Ended and reaped, or never started, or given up.
    Gone,
}

/// The state machine of one rank.
#[derive(Debug)]
pub struct Supervisor {
    plan: Plan,
    phase: Phase,
    /// Since when the phase lasts.
    entered: Duration,
    /// When the phase's time is over.
    limit: Option<Duration>,
    next_heartbeat: Option<Duration>,
    next_look: Option<Duration>,
    procs: BTreeMap<Proc, State>,
    endpoints: Vec<Watched>,
    engines: Vec<EngineWatch>,
    router: Watched,
    /// When the router was first seen ready.
    router_since: Option<Duration>,
    /// Until when the router stays for the ranks that poll it.
    hold: Option<Duration>,
    outcome: Option<Outcome>,
    /// The first signal and when it came.
    signalled: Option<(i32, Duration)>,
    /// Whether a second signal came: nobody is asked any more.
    hurried: bool,
    teardown_since: Duration,
}

impl Supervisor {
    /// A machine for a plan; it waits for [`Event::Begin`].
    pub fn new(plan: Plan) -> Self {
        Self {
            phase: Phase::Preflight,
            entered: Duration::ZERO,
            limit: None,
            next_heartbeat: None,
            next_look: None,
            procs: BTreeMap::new(),
            endpoints: vec![Watched::default(); plan.endpoints.len()],
            engines: plan
                .servers
                .iter()
                .map(|_| EngineWatch::default())
                .collect(),
            router: Watched::default(),
            router_since: None,
            hold: None,
            outcome: None,
            signalled: None,
            hurried: false,
            teardown_since: Duration::ZERO,
            plan,
        }
    }

    /// The phase the rank is in.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// How it went, once that is settled.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The plan it follows.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Take in one event.
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        if self.phase == Phase::Done {
            return out;
        }
        match event {
            Event::Begin if self.phase == Phase::Preflight => self.begin(now, &mut out),
            Event::Begin | Event::Tick => {}
            Event::Spawned(proc) => self.on_spawned(now, proc, &mut out),
            Event::SpawnFailed { proc, code, why } => {
                self.procs.insert(proc, State::Gone);
                let reason = format!("{} cannot be started: {why}", self.plan.name(proc));
                self.fail(now, code, reason, None, &mut out);
                self.go_on_ending(now, &mut out);
            }
            Event::Ended { proc, exit, alone } => self.on_ended(now, proc, exit, alone, &mut out),
            Event::Probe(target, answer) => self.on_probe(now, target, answer, &mut out),
            Event::Vitals(server, sample) => self.on_vitals(now, server, &sample, &mut out),
            Event::Smoke(result) => self.on_smoke(now, result, &mut out),
            Event::Signal(number) => self.on_signal(now, number, &mut out),
        }
        if self.phase == Phase::Teardown {
            self.on_teardown_time(now, &mut out);
        } else {
            self.on_time(now, &mut out);
        }
        out
    }

    /// When [`Event::Tick`] is due at the latest.
    pub fn deadline(&self) -> Option<Duration> {
        let states = self.procs.values().filter_map(|state| match *state {
            State::Stopping(at) | State::Killed(at) => Some(at),
            State::Draining(end, look, _) => Some(end.min(look)),
            State::Asked | State::Running | State::Gone => None,
        });
        let waits = [self.limit, self.next_heartbeat, self.next_look];
        let waits = waits.into_iter().flatten();
        if self.phase == Phase::Teardown {
            states.min()
        } else {
            waits.chain(states).min()
        }
    }

    fn begin(&mut self, now: Duration, out: &mut Vec<Action>) {
        if self.plan.leads {
            self.enter(now, Phase::Servers, out);
            self.limit = Some(now + self.plan.limits.wait_server);
            self.next_heartbeat = Some(now + self.plan.limits.heartbeat);
        } else {
            self.wait_for_router(now, out);
        }
        for index in 0..self.plan.servers.len() {
            self.spawn(Proc::Server(index), out);
        }
        for index in 0..self.endpoints.len() {
            self.endpoints[index].since = now;
            out.push(Action::Watch(Target::Endpoint(index)));
        }
        self.schedule_look(now);
        if self.plan.leads && self.endpoints.is_empty() {
            self.servers_ready(now, out);
        }
    }

    fn enter(&mut self, now: Duration, phase: Phase, out: &mut Vec<Action>) {
        self.phase = phase;
        self.entered = now;
        self.limit = None;
        self.next_heartbeat = None;
        out.push(Action::Enter(phase));
    }

    fn spawn(&mut self, proc: Proc, out: &mut Vec<Action>) {
        self.procs.insert(proc, State::Asked);
        out.push(Action::Spawn(proc));
    }

    fn on_spawned(&mut self, now: Duration, proc: Proc, out: &mut Vec<Action>) {
        if self.procs.get(&proc) != Some(&State::Asked) {
            return;
        }
        self.procs.insert(proc, State::Running);
        if self.phase == Phase::Teardown {
            // It was asked for before the end began; the stage it belongs to may have passed.
            self.stop(now, proc, out);
        }
    }

    /// Processes that are started and not gone.
    fn alive(&self) -> impl Iterator<Item = Proc> + '_ {
        self.procs
            .iter()
            .filter(|(_, state)| **state != State::Gone)
            .map(|(proc, _)| *proc)
    }

    fn schedule_look(&mut self, now: Duration) {
        let unready = (0..self.plan.servers.len()).any(|server| !self.server_is_ready(server));
        let longest = if self.plan.smoke { PROOF_LOOK } else { LOOK };
        let interval = longest.min(self.plan.limits.engine_death_grace / 4);
        let interval = interval.max(Duration::from_millis(100));
        self.next_look = (unready || self.is_proving(now)).then(|| now + interval);
    }

    /// Whether the first token is still to come, so that a server that cannot give it is of no use although it is ready.
    fn is_proving(&self, now: Duration) -> bool {
        let open = match self.phase {
            Phase::Servers | Phase::Router | Phase::Smoke => true,
            // The other ranks do not hear when it has come.
            Phase::Serving => !self.plan.leads && now < self.entered + self.plan.limits.smoke,
            _ => false,
        };
        self.plan.smoke && open
    }

    fn say(level: Level, text: impl Into<String>, out: &mut Vec<Action>) {
        out.push(Action::Say(level, text.into()));
    }
}
