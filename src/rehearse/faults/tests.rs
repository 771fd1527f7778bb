use super::*;
use proptest::prelude::*;

fn fault(text: &str) -> Fault {
    Fault::parse(text).unwrap()
}

fn delays() -> impl Strategy<Value = Delay> {
    (0..100_000_000_u64).prop_map(Delay)
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        any::<u8>().prop_map(Kind::Crash),
        Just(Kind::Kill),
        Just(Kind::Hang),
        Just(Kind::NeverReady),
        Just(Kind::IgnoreTerm),
        Just(Kind::ForkOrphan),
        Just(Kind::SetsidOrphan),
        Just(Kind::EngineDeath),
        Just(Kind::PortStolen),
        delays().prop_map(Kind::SlowHealth),
        delays().prop_map(Kind::SlowLoad),
    ]
}

fn moments() -> impl Strategy<Value = Moment> {
    let since = prop_oneof![
        Just(Since::Start),
        Just(Since::Ready),
        Just(Since::Workload)
    ];
    (since, delays()).prop_map(|(since, delay)| Moment { since, delay })
}

fn actors() -> impl Strategy<Value = Actor> {
    prop_oneof![
        Just(Actor::Server(Role::Prefill)),
        Just(Actor::Server(Role::Decode)),
        Just(Actor::Server(Role::Standalone)),
        Just(Actor::Router),
    ]
}

prop_compose! {
    fn faults()(
        rank in proptest::option::of(any::<u32>()),
        role in proptest::option::of(actors()),
        worker in proptest::option::of("[a-z][a-z0-9-]{0,12}"),
        kind in kinds(),
        at in proptest::option::of(moments()),
    ) -> Fault {
        let nobody = rank.is_none() && role.is_none() && worker.is_none();
        Fault {
            rank: if nobody { Some(0) } else { rank },
            role: role.filter(|role| *role != Actor::Router || kind.fits_router()),
            worker: worker.or_else(|| nobody.then(|| "w".to_owned())).or(Some("x".to_owned())),
            kind,
            at: at.filter(|_| kind.usual_moment(false).is_some()),
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(fault in faults()) {
        prop_assert_eq!(Fault::parse(&fault.to_string()), Ok(fault));
    }

    #[test]
    fn any_text_is_read_or_refused_with_reasons(text in ".{0,60}") {
        if let Err(problems) = Fault::parse(&text) {
            prop_assert!(!problems.is_empty());
        }
    }
}

#[test]
fn a_fault_says_who_what_and_when() {
    let crash = fault("rank=2 kind=crash:3 at=2s");
    assert_eq!((crash.rank, crash.kind), (Some(2), Kind::Crash(3)));
    assert_eq!(
        crash.moment(),
        Some(Moment {
            since: Since::Start,
            delay: Delay(2000)
        })
    );
    let hang = fault("role=decode kind=hang at=workload+1.5s");
    assert_eq!(hang.to_string(), "role=decode kind=hang at=workload+1500ms");
    assert_eq!(
        fault("role=prefill kind=hang").moment().unwrap().since,
        Since::Ready
    );
    assert_eq!(
        fault("kind=router-crash").to_string(),
        "role=router kind=crash:1"
    );
    assert_eq!(
        fault("kind=router-crash").moment().unwrap().since,
        Since::Ready
    );
    assert_eq!(fault("rank=0 kind=port-stolen").moment(), None);
}

#[test]
fn selectors_narrow_each_other() {
    let decode = Actor::Server(Role::Decode);
    let some = fault("rank=1 kind=kill");
    assert!(some.concerns(1, decode, "decode-1"));
    assert!(!some.concerns(1, Actor::Router, "router"));
    assert!(!some.concerns(0, decode, "decode-0"));
    let named = fault("worker=decode-0-1 kind=kill");
    assert!(named.concerns(0, decode, "decode-0-1"));
    assert!(!named.concerns(0, decode, "decode-0-2"));
    assert!(fault("kind=router-crash").concerns(0, Actor::Router, "router"));
}

#[test]
fn all_problems_come_at_once_and_name_the_part() {
    let problems = |text: &str| Fault::parse(text).unwrap_err();
    assert_eq!(
        problems("rank=x kind=crash at=soon+2s who"),
        [
            "`x` is no rank",
            "`crash` needs an exit code, such as `crash:3`",
            "`soon` is no moment: expected `ready` or `workload` before `+`",
            "`who` is not of the form KEY=VALUE",
        ]
    );
    assert_eq!(
        problems("rank=1 rank=2 kind=kill"),
        ["`rank` is given twice"]
    );
    assert_eq!(
        problems("kind=ignore-term at=1s"),
        [
            "whose fault? give `rank=N`, `role=ROLE` or `worker=NAME`",
            "`ignore-term` has no moment: leave `at` out",
        ]
    );
    assert_eq!(
        problems("role=router kind=engine-death"),
        ["`engine-death` is no fault of a router"]
    );
    assert_eq!(
        problems("role=decode kind=crash:256"),
        ["`256` is no exit code from 0 to 255"]
    );
    assert_eq!(
        problems("role=decode kind=kill:9"),
        ["`kill` takes no value, but got `9`"]
    );
    assert!(problems("rank=1 kind=slow-load:1.0001")[0].contains("is no time"));
    assert!(problems("rank=1")[0].starts_with("no `kind`; there are crash:CODE"));
    assert!(problems("")[0].starts_with("whose fault?"));
}
