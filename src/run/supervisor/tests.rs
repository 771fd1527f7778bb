//! The machine with a made-up clock: each rule of a rank's life by itself.

use super::super::engine_watch::{Engine, Sample};
use super::super::event::{Answer, Verdict};
use super::*;
use Answer::{Ready, Refused, Status, Timeout};
use Proc::{Router, Server, Workload};

const INT: i32 = 2;
const TERM: i32 = 15;
const FAR: Target = Target::Router;
const OWN: Target = Target::Endpoint(0);
const OTHER: Target = Target::Endpoint(1);

/// A machine, its clock and all that it has asked for.
struct Bench {
    machine: Supervisor,
    now: Duration,
    done: Vec<Action>,
}

fn plan(leads: bool) -> Plan {
    let endpoint = |name: &str, own| EndpointPlan {
        name: name.into(),
        place: format!("{name}:80"),
        own,
    };
    let mut endpoints = vec![endpoint("prefill-0", Some(0))];
    if leads {
        endpoints.push(endpoint("decode-1", None));
    }
    Plan {
        leads,
        servers: vec!["prefill-0".into()],
        endpoints,
        router: Some("router:8000".into()),
        workload: leads,
        smoke: false,
        followers: true,
        limits: Limits::default(),
    }
}

impl Bench {
    fn new(plan: Plan) -> Self {
        let mut bench = Self {
            machine: Supervisor::new(plan),
            now: Duration::ZERO,
            done: Vec::new(),
        };
        bench.event(Event::Begin);
        bench
    }

    fn leader() -> Self {
        Self::new(plan(true))
    }

    fn follower() -> Self {
        Self::new(plan(false))
    }

    /// Take in an event; whatever is to be started starts.
    fn event(&mut self, event: Event) -> &mut Self {
        let mut actions = self.machine.step(self.now, event);
        let starts: Vec<Proc> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Spawn(proc) => Some(*proc),
                _ => None,
            })
            .collect();
        self.done.append(&mut actions);
        for proc in starts {
            self.event(Event::Spawned(proc));
        }
        self
    }

    fn probe(&mut self, target: Target, answer: Answer) -> &mut Self {
        self.event(Event::Probe(target, answer))
    }

    fn end(&mut self, proc: Proc, exit: Exit) -> &mut Self {
        let alone = true;
        self.event(Event::Ended { proc, exit, alone })
    }

    /// Let time pass, with every deadline served on its moment.
    fn pass(&mut self, time: Duration) -> &mut Self {
        let end = self.now + time;
        while let Some(due) = self.machine.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.event(Event::Tick);
        }
        self.now = end;
        self
    }

    fn seconds(&mut self, seconds: u64) -> &mut Self {
        self.pass(Duration::from_secs(seconds))
    }

    fn millis(&mut self, millis: u64) -> &mut Self {
        self.pass(Duration::from_millis(millis))
    }

    fn servers_ready(&mut self) -> &mut Self {
        self.probe(OWN, Ready).probe(OTHER, Ready)
    }

    fn router_ready(&mut self) -> &mut Self {
        self.servers_ready().probe(FAR, Ready)
    }

    /// What was asked for since the last look.
    fn asked(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.done)
    }

    fn has(&self, action: &Action) -> bool {
        self.done.contains(action)
    }

    fn said(&self, part: &str) -> bool {
        self.done.iter().any(|action| match action {
            Action::Say(_, text) | Action::Heartbeat(text) => text.contains(part),
            _ => false,
        })
    }

    fn outcome(&self) -> Option<&Outcome> {
        self.done.iter().find_map(|action| match action {
            Action::Finish(outcome) => Some(outcome),
            _ => None,
        })
    }

    /// Answer every TERM and KILL with an end until nothing is left.
    fn let_all_end(&mut self) -> Outcome {
        for _ in 0..10 {
            if let Some(outcome) = self.outcome() {
                return outcome.clone();
            }
            let stopped: Vec<Proc> = self
                .asked()
                .iter()
                .filter_map(|action| match action {
                    Action::Stop(proc) | Action::Kill(proc) => Some(*proc),
                    _ => None,
                })
                .collect();
            for proc in stopped {
                self.end(proc, Exit::Signal(TERM));
            }
        }
        panic!("the rank does not end: {:?}", self.machine);
    }
}

fn order(bench: &Bench, wanted: &[Action]) -> bool {
    let places: Vec<Option<usize>> = wanted
        .iter()
        .map(|action| bench.done.iter().position(|one| one == action))
        .collect();
    places.iter().all(Option::is_some) && places.is_sorted()
}

#[test]
fn a_good_job_goes_through_its_phases_and_down_in_order() {
    let mut bench = Bench::leader();
    assert!(bench.has(&Action::Spawn(Server(0))) && bench.has(&Action::Watch(OTHER)));
    bench.seconds(4).probe(OWN, Ready).probe(OTHER, Refused);
    assert!(!bench.has(&Action::Spawn(Router)));
    bench.probe(OTHER, Ready);
    assert!(bench.has(&Action::Spawn(Router)) && !bench.has(&Action::Spawn(Workload)));
    bench.probe(FAR, Status(503)).probe(FAR, Ready);
    assert!(bench.has(&Action::Spawn(Workload)));
    bench.seconds(60).end(Workload, Exit::Code(0));
    assert!(bench.has(&Action::Stop(Router)) && !bench.has(&Action::Stop(Server(0))));
    bench.end(Router, Exit::Code(0));
    assert!(bench.has(&Action::Stop(Server(0))) && bench.outcome().is_none());
    bench.end(Server(0), Exit::Signal(TERM));
    let reaps = [
        Action::Reap(Workload),
        Action::Reap(Router),
        Action::Reap(Server(0)),
    ];
    assert!(order(&bench, &reaps));
    let outcome = bench.outcome().unwrap();
    assert_eq!((outcome.code, outcome.verdict), (0, Verdict::Done));
}

#[test]
fn the_workloads_code_is_the_jobs() {
    for (exit, code) in [
        (Exit::Code(7), 7),
        (Exit::Signal(11), 139),
        (Exit::Code(69), 69),
    ] {
        let mut bench = Bench::leader();
        let outcome = bench
            .router_ready()
            .seconds(9)
            .end(Workload, exit)
            .let_all_end();
        assert_eq!(
            (outcome.code, outcome.verdict, outcome.phase),
            (code, Verdict::Failed, Phase::Workload)
        );
    }
}

#[test]
fn an_early_end_fails_the_job_in_every_phase() {
    type Advance = fn(&mut Bench);
    let phases: [(Phase, Advance); 4] = [
        (Phase::Servers, |_| ()),
        (Phase::Router, |bench| _ = bench.servers_ready()),
        (Phase::Workload, |bench| _ = bench.router_ready()),
        (Phase::Smoke, |bench| _ = bench.router_ready()),
    ];
    for (phase, advance) in phases {
        for (proc, exit, code) in [
            (Server(0), Exit::Code(3), 3),
            (Server(0), Exit::Code(0), 1),
            (Server(0), Exit::Signal(9), 137),
            (Router, Exit::Code(0), 1),
            (Router, Exit::Code(101), 101),
        ] {
            if phase == Phase::Servers && proc == Router {
                continue;
            }
            let mut bench = Bench::new(Plan {
                smoke: phase == Phase::Smoke,
                ..plan(true)
            });
            advance(&mut bench);
            assert_eq!(bench.machine.phase(), phase);
            bench.seconds(1).asked();
            bench.end(proc, exit);
            assert!(
                bench.has(&Action::Enter(Phase::Teardown)),
                "{phase} {proc:?}"
            );
            assert!(bench.has(&Action::ShowLog(proc)), "{phase} {proc:?}");
            let outcome = bench.let_all_end();
            let seen = (outcome.code, outcome.verdict, outcome.phase);
            assert_eq!(seen, (code, Verdict::Failed, phase), "{proc:?} {exit:?}");
            assert!(
                outcome.reason.contains(&exit.to_string()),
                "{}",
                outcome.reason
            );
        }
    }
}

#[test]
fn what_never_becomes_ready_is_69_and_says_what_it_last_answered() {
    let mut bench = Bench::leader();
    bench
        .probe(OWN, Ready)
        .seconds(100)
        .probe(OTHER, Status(503));
    bench.seconds(2399);
    assert!(bench.outcome().is_none());
    let outcome = bench.seconds(2).let_all_end();
    assert_eq!((outcome.code, outcome.phase), (69, Phase::Servers));
    assert!(
        outcome.reason.contains("decode-1 (decode-1:80) HTTP 503"),
        "{}",
        outcome.reason
    );
    assert_eq!(outcome.culprit.as_deref(), Some("decode-1"));
    let mut bench = Bench::leader();
    let outcome = bench.servers_ready().seconds(301).let_all_end();
    assert_eq!((outcome.code, outcome.phase), (69, Phase::Router));
}

#[test]
fn a_server_that_was_ready_and_is_gone_ends_the_wait() {
    let mut bench = Bench::leader();
    bench
        .probe(OTHER, Ready)
        .probe(OTHER, Refused)
        .probe(OTHER, Refused);
    bench
        .probe(OTHER, Timeout)
        .probe(OTHER, Refused)
        .probe(OTHER, Refused);
    assert_eq!(bench.machine.phase(), Phase::Servers);
    let outcome = bench.probe(OTHER, Refused).let_all_end();
    assert_eq!(
        (outcome.code, outcome.culprit.as_deref()),
        (69, Some("decode-1"))
    );
}

#[test]
fn a_server_of_another_rank_that_is_gone_ends_the_job_in_every_later_phase() {
    for phase in [Phase::Router, Phase::Smoke, Phase::Workload, Phase::Serving] {
        let mut plan = plan(true);
        plan.smoke = phase == Phase::Smoke;
        plan.workload = phase != Phase::Serving;
        let mut bench = Bench::new(plan);
        bench.servers_ready();
        assert!(bench.has(&Action::Relax(OTHER)) && bench.has(&Action::Unwatch(OWN)));
        assert!(!bench.has(&Action::Unwatch(OTHER)));
        if phase != Phase::Router {
            bench.probe(FAR, Ready);
        }
        // A server under load answers late or badly, for as long as it likes.
        for answer in vec![[Refused, Timeout, Status(503), Ready]; 10].concat() {
            bench.probe(OTHER, answer).seconds(5);
        }
        for _ in 0..30 {
            bench.probe(OTHER, Refused).seconds(1);
        }
        assert_eq!(
            bench.machine.phase(),
            phase,
            "its own rank has 30 s to say so"
        );
        let outcome = bench.probe(OTHER, Refused).let_all_end();
        assert_eq!((outcome.code, outcome.phase), (69, phase));
        assert_eq!(outcome.culprit.as_deref(), Some("decode-1"));
    }
    // After the workload its code is settled.
    let mut plan = plan(true);
    plan.limits.linger = Duration::from_mins(2);
    let mut bench = Bench::new(plan);
    bench.router_ready().end(Workload, Exit::Code(0));
    for _ in 0..60 {
        bench.probe(OTHER, Refused).seconds(1);
    }
    assert_eq!(bench.machine.phase(), Phase::Linger);
    assert_eq!(bench.seconds(60).let_all_end().code, 0);
}

#[test]
fn a_strangers_answer_and_an_answer_after_the_death_do_not_count() {
    let mut bench = Bench::leader();
    bench
        .probe(OTHER, Ready)
        .probe(OWN, Answer::Stranger("process 9: nc".into()));
    assert!(bench.said("belongs to process 9: nc") && !bench.has(&Action::Spawn(Router)));
    bench.end(Server(0), Exit::Code(98)).probe(OWN, Ready);
    assert!(!bench.has(&Action::Spawn(Router)));
    assert_eq!(bench.let_all_end().code, 98);
}

#[test]
fn the_router_is_kept_for_three_polls_after_a_short_workload() {
    let mut bench = Bench::leader();
    bench.router_ready().millis(10).end(Workload, Exit::Code(0));
    assert_eq!(bench.machine.phase(), Phase::Hold);
    bench.millis(2900);
    assert!(!bench.has(&Action::Stop(Router)));
    bench.millis(100);
    assert!(bench.has(&Action::Stop(Router)));
    let mut alone = Bench::new(Plan {
        followers: false,
        ..plan(true)
    });
    alone.router_ready().end(Workload, Exit::Code(0));
    assert!(alone.has(&Action::Stop(Router)));
}

#[test]
fn a_server_that_dies_after_the_workload_does_not_take_the_router_from_the_ranks_that_poll_it() {
    let mut bench = Bench::leader();
    bench.machine.plan.limits.linger = Duration::from_secs(100);
    bench.router_ready().millis(10).end(Workload, Exit::Code(0));
    bench.millis(500).end(Server(0), Exit::Code(9));
    assert!(bench.said("prefill-0 ended with code 9"));
    bench.millis(2400);
    assert!(!bench.has(&Action::Stop(Router)));
    bench.millis(100);
    assert!(bench.has(&Action::Stop(Router)));
    assert_eq!(bench.let_all_end().code, 0);
    let mut late = Bench::leader();
    late.machine.plan.limits.linger = Duration::from_secs(100);
    late.router_ready().seconds(10).end(Workload, Exit::Code(0));
    late.end(Server(0), Exit::Code(9));
    assert!(late.has(&Action::Stop(Router)));
}

#[test]
fn a_router_that_dies_before_the_other_ranks_can_have_seen_it_fails_the_job() {
    let mut bench = Bench::leader();
    bench.router_ready().millis(10).end(Workload, Exit::Code(0));
    bench.end(Router, Exit::Code(9));
    let outcome = bench.let_all_end();
    assert_eq!((outcome.code, outcome.phase), (9, Phase::Hold));
    let mut late = Bench::leader();
    late.machine.plan.limits.linger = Duration::from_secs(100);
    late.router_ready().seconds(10).end(Workload, Exit::Code(0));
    late.end(Router, Exit::Code(9));
    assert_eq!(late.let_all_end().code, 0);
}

#[test]
fn servers_linger_when_asked_and_a_signal_cuts_it_short() {
    let plan = || {
        let mut plan = plan(true);
        plan.limits.linger = Duration::from_secs(100);
        plan
    };
    let mut bench = Bench::new(plan());
    bench
        .router_ready()
        .seconds(10)
        .end(Workload, Exit::Code(5))
        .seconds(99);
    assert!(!bench.has(&Action::Stop(Router)));
    assert_eq!(bench.seconds(1).let_all_end().code, 5);
    let mut bench = Bench::new(plan());
    bench
        .router_ready()
        .seconds(10)
        .end(Workload, Exit::Code(5))
        .event(Event::Signal(TERM));
    assert!(bench.has(&Action::Stop(Router)));
    assert_eq!(bench.let_all_end().code, 5);
}

#[test]
fn a_workload_that_takes_too_long_is_124() {
    let mut bench = Bench::leader();
    bench.machine.plan.limits.workload_timeout = Some(Duration::from_secs(3));
    bench.router_ready().seconds(2);
    assert!(!bench.has(&Action::Stop(Workload)));
    bench.seconds(1);
    assert!(bench.has(&Action::Stop(Workload)) && !bench.has(&Action::Stop(Router)));
    assert_eq!(bench.let_all_end().code, 124);
}

#[test]
fn a_stopped_workloads_group_has_the_grace_to_write_its_results() {
    let mut bench = Bench::leader();
    bench.router_ready().seconds(5).event(Event::Signal(TERM));
    let left = Event::Ended {
        proc: Workload,
        exit: Exit::Signal(TERM),
        alone: false,
    };
    bench.event(left.clone());
    assert!(!bench.has(&Action::Reap(Workload)));
    bench.millis(60);
    assert!(bench.has(&Action::LookAgain(Workload)));
    bench.event(left).seconds(19);
    assert!(!bench.has(&Action::Reap(Workload)) && !bench.has(&Action::Stop(Router)));
    bench.seconds(1);
    assert!(bench.has(&Action::Reap(Workload)) && bench.has(&Action::Stop(Router)));
    assert_eq!(bench.let_all_end().code, 143);
}

#[test]
fn signals_have_their_codes_and_a_second_one_kills_everything_at_once() {
    for (number, code) in [(TERM, 143), (INT, 130), (1, 129)] {
        let mut bench = Bench::leader();
        bench.router_ready().seconds(5).event(Event::Signal(number));
        assert!(bench.has(&Action::Stop(Workload)) && !bench.has(&Action::Kill(Workload)));
        bench.millis(199).event(Event::Signal(number));
        assert!(
            !bench.has(&Action::Kill(Workload)),
            "an echo is no second signal"
        );
        bench.millis(1).event(Event::Signal(number));
        for proc in [Workload, Router, Server(0)] {
            assert!(bench.has(&Action::Kill(proc)), "{proc:?}");
        }
        let outcome = bench.let_all_end();
        assert_eq!((outcome.code, outcome.verdict), (code, Verdict::Stopped));
    }
}

#[test]
fn kill_follows_the_grace_and_the_whole_way_down_is_bounded() {
    let mut bench = Bench::leader();
    bench.router_ready().seconds(5).event(Event::Signal(TERM));
    bench.millis(19_999);
    assert!(!bench.has(&Action::Kill(Workload)));
    bench.millis(1).end(Workload, Exit::Signal(9));
    assert!(bench.has(&Action::Kill(Workload)) && bench.has(&Action::Stop(Router)));
    bench.seconds(5).end(Router, Exit::Signal(9));
    assert!(bench.has(&Action::Kill(Router)) && bench.has(&Action::Stop(Server(0))));
    bench.seconds(5);
    assert!(bench.has(&Action::Kill(Server(0))) && bench.said("sending KILL"));
}

#[test]
fn what_cannot_be_killed_is_left_and_said() {
    let mut bench = Bench::leader();
    bench.event(Event::Signal(TERM)).seconds(29);
    assert!(bench.outcome().is_none());
    bench.seconds(1);
    assert!(bench.said("hangs in the kernel"));
    assert_eq!(bench.outcome().unwrap().code, 143);
}

#[test]
fn a_failing_teardown_does_not_spoil_success() {
    let mut bench = Bench::leader();
    bench
        .router_ready()
        .seconds(10)
        .end(Workload, Exit::Code(0));
    bench
        .end(Router, Exit::Code(101))
        .end(Server(0), Exit::Code(3));
    assert_eq!(bench.outcome().unwrap().code, 0);
}

#[test]
fn a_program_that_cannot_be_started_has_its_own_code() {
    let mut bench = Bench::leader();
    bench.servers_ready();
    let failed = Event::SpawnFailed {
        proc: Workload,
        code: 127,
        why: "`bench` not found".into(),
    };
    bench.machine.step(bench.now, Event::Probe(FAR, Ready));
    let outcome = bench.event(failed).let_all_end();
    assert_eq!((outcome.code, outcome.phase), (127, Phase::Workload));
    assert!(outcome.reason.contains("`bench` not found"));
}

#[test]
fn one_token_comes_before_the_workload_or_the_job_fails() {
    let with_smoke = || {
        Bench::new(Plan {
            smoke: true,
            ..plan(true)
        })
    };
    let mut bench = with_smoke();
    bench.router_ready();
    assert!(bench.has(&Action::Smoke) && !bench.has(&Action::Spawn(Workload)));
    bench.event(Event::Smoke(Ok(())));
    assert!(bench.has(&Action::Spawn(Workload)));
    let mut bench = with_smoke();
    bench
        .router_ready()
        .event(Event::Smoke(Err("HTTP 503".into())));
    assert_eq!(bench.let_all_end().code, 69);
    let mut bench = with_smoke();
    let outcome = bench.router_ready().seconds(301).let_all_end();
    assert_eq!((outcome.code, outcome.phase), (69, Phase::Smoke));
}

#[test]
fn a_single_server_needs_no_router() {
    let mut bench = Bench::new(Plan {
        router: None,
        followers: false,
        endpoints: plan(false).endpoints,
        ..plan(true)
    });
    bench.probe(OWN, Ready);
    assert!(bench.has(&Action::Spawn(Workload)) && !bench.has(&Action::Watch(FAR)));
    assert_eq!(bench.end(Workload, Exit::Code(0)).let_all_end().code, 0);
}

#[test]
fn without_a_workload_the_job_serves_until_a_signal() {
    let mut bench = Bench::new(Plan {
        workload: false,
        ..plan(true)
    });
    bench.router_ready().seconds(100_000);
    assert_eq!(bench.machine.phase(), Phase::Serving);
    assert_eq!(bench.event(Event::Signal(TERM)).let_all_end().code, 143);
}

#[test]
fn another_rank_goes_when_the_router_refuses_twice_in_a_row() {
    let mut bench = Bench::follower();
    bench
        .probe(FAR, Refused)
        .probe(FAR, Refused)
        .probe(FAR, Refused);
    assert_eq!(bench.machine.phase(), Phase::Router);
    bench.probe(FAR, Status(404));
    assert_eq!(bench.machine.phase(), Phase::Serving);
    bench
        .probe(FAR, Refused)
        .probe(FAR, Ready)
        .probe(FAR, Refused);
    bench.probe(FAR, Timeout).probe(FAR, Refused);
    assert_eq!(bench.machine.phase(), Phase::Serving);
    let outcome = bench.probe(FAR, Refused).let_all_end();
    assert_eq!((outcome.code, outcome.verdict), (0, Verdict::Done));
}

#[test]
fn a_busy_router_is_not_gone_for_a_minute() {
    let mut bench = Bench::follower();
    bench.probe(FAR, Ready).probe(FAR, Timeout);
    for _ in 0..59 {
        bench.seconds(1).probe(FAR, Timeout);
    }
    assert_eq!(bench.machine.phase(), Phase::Serving);
    bench
        .probe(FAR, Ready)
        .probe(FAR, Timeout)
        .seconds(59)
        .probe(FAR, Timeout);
    assert_eq!(bench.machine.phase(), Phase::Serving);
    assert_eq!(bench.seconds(1).probe(FAR, Timeout).let_all_end().code, 69);
}

#[test]
fn another_rank_waits_for_both_waits_of_the_first_and_a_minute() {
    let mut bench = Bench::follower();
    bench.seconds(2500 + 300 + 59);
    assert!(bench.outcome().is_none() && bench.machine.phase() == Phase::Router);
    assert_eq!(bench.seconds(1).let_all_end().code, 69);
}

#[test]
fn a_router_that_hung_from_its_first_moment_on_is_missed_once_its_port_is_closed() {
    for open in [Answer::Busy, Answer::Broken("reset".into())] {
        let mut bench = Bench::follower();
        bench.probe(FAR, Refused).probe(FAR, open).seconds(100);
        bench.probe(FAR, Refused);
        assert_eq!(bench.machine.phase(), Phase::Router);
        let outcome = bench.probe(FAR, Refused).let_all_end();
        assert_eq!((outcome.code, outcome.verdict), (0, Verdict::Done));
    }
}

#[test]
fn another_rank_answers_for_its_own_server_while_it_serves() {
    let mut bench = Bench::follower();
    bench.probe(OWN, Ready).probe(FAR, Ready).seconds(100);
    let outcome = bench.end(Server(0), Exit::Code(0)).let_all_end();
    assert_eq!((outcome.code, outcome.phase), (1, Phase::Serving));
}

/// A look at an engine below the own server.
fn look(bench: &mut Bench, dead: Option<i32>) {
    let sample = Sample {
        engines: vec![Engine { id: (7, 1), dead }],
        silent_for: bench.now,
        ..Sample::default()
    };
    bench.event(Event::Vitals(0, sample));
}

#[test]
fn an_engine_that_dies_before_the_first_token_ends_the_rank_at_once() {
    let plan = |leads| Plan {
        smoke: true,
        ..plan(leads)
    };
    let mut first = Bench::new(plan(true));
    look(&mut first, None);
    first.router_ready();
    assert_eq!(first.machine.phase(), Phase::Smoke);
    first.seconds(1);
    assert_eq!(
        first.machine.deadline(),
        Some(first.now + Duration::from_secs(1))
    );
    look(&mut first, Some(9));
    let outcome = first.let_all_end();
    assert_eq!((outcome.code, outcome.phase), (69, Phase::Smoke));
    assert_eq!(
        outcome.reason,
        "prefill-0 lost an engine process before the first token (process 7 was killed by SIGKILL after 1 s)"
    );
    // Another rank does not hear of the token, so it looks for as long as that may take.
    for (seconds, code) in [(299, Some(69)), (301, None)] {
        let mut other = Bench::new(plan(false));
        look(&mut other, None);
        other.probe(OWN, Ready).probe(FAR, Ready).seconds(seconds);
        look(&mut other, Some(9));
        let outcome = other.machine.outcome();
        assert_eq!(outcome.map(|outcome| outcome.code), code);
    }
    let mut helper = Bench::new(plan(true));
    look(&mut helper, None);
    helper.router_ready();
    look(&mut helper, Some(0));
    assert_eq!(helper.machine.phase(), Phase::Smoke);
}

#[test]
fn a_dead_engine_is_said_and_fails_after_the_grace_but_not_a_ready_server() {
    let mut bench = Bench::leader();
    for round in 0..18 {
        look(&mut bench, (round > 5).then_some(9));
        assert_eq!(
            bench.said("it may wait for that process for ever"),
            round > 5
        );
        bench.seconds(5);
    }
    assert_eq!(bench.machine.phase(), Phase::Servers);
    assert!(bench.has(&Action::Inspect(0)));
    look(&mut bench, Some(9));
    let outcome = bench.let_all_end();
    assert_eq!(
        (outcome.code, outcome.culprit.as_deref()),
        (69, Some("prefill-0"))
    );
    assert!(outcome.reason.contains("SIGKILL"), "{}", outcome.reason);
    let mut ready = Bench::leader();
    look(&mut ready, None);
    ready.seconds(10).probe(OWN, Ready);
    for _ in 0..40 {
        look(&mut ready, Some(9));
        ready.seconds(5);
    }
    assert_eq!(ready.machine.phase(), Phase::Servers);
}

#[test]
fn the_heartbeat_names_who_is_missing_why_and_for_how_long() {
    let mut bench = Bench::leader();
    bench.probe(OWN, Ready).probe(OTHER, Refused).seconds(29);
    assert!(!bench.said("waiting for"));
    bench.seconds(1);
    assert!(bench.said("waiting for 1 of 2 servers, 30 s so far: decode-1 (decode-1:80) connection refused for 30 s"));
    bench.asked();
    bench.seconds(60);
    let beats = bench
        .asked()
        .iter()
        .filter(|action| matches!(action, Action::Heartbeat(_)))
        .count();
    assert_eq!(beats, 2);
}
