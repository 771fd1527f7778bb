//! Whatever happens, a rank ends: in bounded steps, with every started group ended, and exactly once.

use proptest::prelude::*;

use super::super::engine_watch::{Engine, Sample};
use super::super::event::Answer;
use super::*;

/// Processes as stubborn as the sequence wants them.
#[derive(Debug, Default)]
struct World {
    living: BTreeMap<Proc, bool>,
    /// Ended, not yet reaped.
    dead: BTreeMap<Proc, Exit>,
    started: u32,
    reaped: u32,
    finished: u32,
    unkillable: bool,
}

#[derive(Debug, Clone)]
enum Move {
    Pass(u64),
    Probe(Target, Answer),
    End(Proc, Exit),
    Signal(i32),
    Smoke(bool),
    Vitals(Option<i32>),
    FailNextStart,
    /// From now on nothing reacts to TERM.
    Stubborn,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let proc = prop_oneof![
        Just(Proc::Server(0)),
        Just(Proc::Server(1)),
        Just(Proc::Router),
        Just(Proc::Workload)
    ];
    let target = prop_oneof![
        (0..4_usize).prop_map(Target::Endpoint),
        Just(Target::Router)
    ];
    let answer = prop_oneof![
        6 => Just(Answer::Ready),
        1 => Just(Answer::Refused),
        1 => Just(Answer::Timeout),
        1 => Just(Answer::Busy),
        1 => Just(Answer::Broken("reset".into())),
        1 => Just(Answer::Status(503)),
        1 => Just(Answer::Stranger("x".into())),
        1 => Just(Answer::NotHttp),
    ];
    let exit = prop_oneof![
        (0..200_i32).prop_map(Exit::Code),
        (1..32_i32).prop_map(Exit::Signal)
    ];
    let one = prop_oneof![
        4 => (0..100_000_u64).prop_map(Move::Pass),
        12 => (target, answer).prop_map(|(target, answer)| Move::Probe(target, answer)),
        2 => (proc, exit).prop_map(|(proc, exit)| Move::End(proc, exit)),
        1 => prop_oneof![Just(2), Just(15), Just(1)].prop_map(Move::Signal),
        1 => any::<bool>().prop_map(Move::Smoke),
        1 => proptest::option::of(0..20_i32).prop_map(Move::Vitals),
        1 => Just(Move::FailNextStart),
        1 => Just(Move::Stubborn),
    ];
    proptest::collection::vec(one, 0..60)
}

fn plans() -> impl Strategy<Value = Plan> {
    (any::<[bool; 5]>(), 0..3_usize, 0..3_u64).prop_map(
        |([leads, router, workload, smoke, followers], servers, grace)| {
            let endpoint = |index: usize| EndpointPlan {
                name: format!("server-{index}"),
                place: String::new(),
                own: (index < servers).then_some(index),
            };
            Plan {
                leads,
                servers: (0..servers)
                    .map(|index| format!("server-{index}"))
                    .collect(),
                endpoints: (0..if leads { 3.max(servers) } else { servers })
                    .map(endpoint)
                    .collect(),
                router: (router || !leads).then(|| "router".into()),
                workload: workload && leads,
                smoke,
                followers,
                limits: Limits {
                    grace: Duration::from_secs(grace * 10),
                    workload_timeout: (servers == 1).then(|| Duration::from_secs(50)),
                    linger: Duration::from_secs(grace),
                    ..Limits::default()
                },
            }
        },
    )
}

/// Feed one event and whatever follows from it at once, as the driver does.
fn feed(
    machine: &mut Supervisor,
    world: &mut World,
    now: Duration,
    event: Event,
    stubborn: bool,
    fail_start: &mut bool,
) {
    let mut queue = std::collections::VecDeque::from([event]);
    let mut steps = 0;
    while let Some(event) = queue.pop_front() {
        steps += 1;
        assert!(steps < 1000, "endless");
        for action in machine.step(now, event) {
            assert_eq!(world.finished, 0, "{action:?} after the end");
            match action {
                Action::Spawn(proc) if std::mem::take(fail_start) => {
                    queue.push_back(Event::SpawnFailed {
                        proc,
                        code: 127,
                        why: "no".into(),
                    });
                }
                Action::Spawn(proc) => {
                    assert!(
                        world.living.insert(proc, true).is_none(),
                        "{proc:?} started twice"
                    );
                    world.started += 1;
                    queue.push_back(Event::Spawned(proc));
                }
                Action::Stop(proc) if !stubborn => die(world, proc, Exit::Signal(15), &mut queue),
                Action::Kill(proc) if !world.unkillable => {
                    die(world, proc, Exit::Signal(9), &mut queue);
                }
                Action::LookAgain(proc) => {
                    if let Some(exit) = world.dead.get(&proc).copied() {
                        queue.push_back(Event::Ended {
                            proc,
                            exit,
                            alone: !stubborn,
                        });
                    }
                }
                Action::Reap(proc) => {
                    assert!(world.dead.remove(&proc).is_some(), "{proc:?} reaped alive");
                    world.reaped += 1;
                }
                Action::Finish(_) => world.finished += 1,
                _ => {}
            }
        }
    }
}

fn die(world: &mut World, proc: Proc, exit: Exit, queue: &mut std::collections::VecDeque<Event>) {
    if world.living.get(&proc) == Some(&true) {
        world.living.insert(proc, false);
        world.dead.insert(proc, exit);
        queue.push_back(Event::Ended {
            proc,
            exit,
            alone: proc != Proc::Workload,
        });
    }
}

fn live(plan: Plan, moves: Vec<Move>, unkillable: bool) -> World {
    let mut machine = Supervisor::new(plan);
    let mut world = World {
        unkillable,
        ..World::default()
    };
    let mut now = Duration::ZERO;
    let (mut stubborn, mut fail_start) = (false, false);
    feed(
        &mut machine,
        &mut world,
        now,
        Event::Begin,
        stubborn,
        &mut fail_start,
    );
    for one in moves {
        let event = match one {
            Move::Pass(millis) => {
                now += Duration::from_millis(millis);
                Event::Tick
            }
            Move::Probe(target, answer) => Event::Probe(target, answer),
            Move::End(proc, exit) if world.living.get(&proc) == Some(&true) => {
                world.living.insert(proc, false);
                world.dead.insert(proc, exit);
                let alone = !stubborn;
                Event::Ended { proc, exit, alone }
            }
            Move::End(..) => Event::Tick,
            Move::Signal(number) => Event::Signal(number),
            Move::Smoke(good) => Event::Smoke(if good { Ok(()) } else { Err("no".into()) }),
            Move::Vitals(dead) => {
                let sample = Sample {
                    engines: vec![Engine { id: (7, 7), dead }],
                    silent_for: now,
                    ..Sample::default()
                };
                Event::Vitals(0, sample)
            }
            Move::FailNextStart => {
                fail_start = true;
                Event::Tick
            }
            Move::Stubborn => {
                stubborn = true;
                Event::Tick
            }
        };
        feed(
            &mut machine,
            &mut world,
            now,
            event,
            stubborn,
            &mut fail_start,
        );
    }
    // Somebody ends it at last; then only time passes.
    for event in [Event::Signal(15), Event::Tick] {
        feed(
            &mut machine,
            &mut world,
            now,
            event,
            stubborn,
            &mut fail_start,
        );
    }
    for _ in 0..5000 {
        let Some(due) = machine.deadline().filter(|_| world.finished == 0) else {
            break;
        };
        now = now.max(due);
        feed(
            &mut machine,
            &mut world,
            now,
            Event::Tick,
            stubborn,
            &mut fail_start,
        );
    }
    assert_eq!(world.finished, 1, "{machine:?}");
    assert!(machine.deadline().is_none() || machine.phase() == Phase::Done);
    world
}

// 256 sequences a run; `PROPTEST_CASES=5000` asks for more.
proptest! {
    #[test]
    fn every_sequence_ends_once_with_every_started_group_ended(plan in plans(), moves in moves()) {
        let world = live(plan, moves, false);
        prop_assert_eq!(world.started, world.reaped);
        prop_assert!(world.dead.is_empty() && world.living.values().all(|lives| !lives));
    }

    #[test]
    fn even_what_cannot_be_killed_does_not_keep_a_rank(plan in plans(), moves in moves()) {
        live(plan, moves, true);
    }
}
