//! What server_atom.sh really executed, against what we execute for the same job.
//!
//! `tests/data/recorded.json` holds environments of jobs with the argv and the variables that the old script's server got. For each of
//! them the same comes out of a dry run, except where a rule of [`RULES`] says what differs and why. A rule turns the recorded outcome into
//! the expected one, so the comparison is exact in both cases. docs/migrating.md has the same rules for people.

mod cases;
mod expected;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::{Preview, TABLE, Test, changes, flags, headlines, parallel, project};

use cases::{Job, records};
use expected::Expected;
use rules::RULES;

/// Differences that no recorded argv can show, and the test that proves each.
const PROVED_ELSEWHERE: [(&str, &str, &str); 11] = [
    (
        "arguments-are-checked",
        "tests/it/recorded/mod.rs",
        "every_recorded_job_gets_the_same_command_or_a_stated_difference",
    ),
    (
        "environment-not-dumped",
        "tests/it/recorded/mod.rs",
        "no_secret_of_a_job_is_ever_shown",
    ),
    (
        "dry-run-touches-nothing",
        "tests/it/exec.rs",
        "a_dry_run_touches_nothing",
    ),
    (
        "open-files",
        "tests/it/exec.rs",
        "the_limit_of_open_files_is_raised_and_never_lowered",
    ),
    (
        "built-in-hf-overrides",
        "tests/it/recorded/mod.rs",
        "the_built_in_file_is_the_recorded_table_and_the_hf_overrides",
    ),
    (
        "workload-exit-code",
        "src/run/supervisor/tests.rs",
        "the_workloads_code_is_the_jobs",
    ),
    (
        "dead-server-ends-the-wait",
        "tests/node/faults.rs",
        "every_fault_in_every_phase_ends_the_rank_rightly",
    ),
    (
        "no-fixed-sleeps",
        "src/run/supervisor/tests.rs",
        "a_good_job_goes_through_its_phases_and_down_in_order",
    ),
    (
        "logs-of-every-rank",
        "tests/node/life.rs",
        "a_good_job_is_recorded_from_preflight_to_teardown_without_secrets",
    ),
    (
        "two-waits",
        "src/run/supervisor/tests.rs",
        "another_rank_waits_for_both_waits_of_the_first_and_a_minute",
    ),
    (
        "processes-end",
        "tests/node/signals.rs",
        "a_signal_in_any_phase_ends_everything_with_its_code",
    ),
];

/// What came out of a case.
enum Outcome {
    /// As expected, by these rules; and whether the arguments are word for word the recorded ones.
    Right(Vec<&'static str>, bool),
    Wrong(String),
}

fn judge(job: &Job<'_>) -> Outcome {
    let case = job.case;
    let recorded = Expected {
        findings: BTreeSet::new(),
        argv: case.server.clone().unwrap_or_default(),
        env: case.exported.clone(),
        router: case.router.clone().unwrap_or_default(),
    };
    let mut expected = recorded.clone();
    let mut rules = Vec::new();
    for rule in RULES {
        let before = expected.clone();
        (rule.apply)(job, &mut expected);
        if expected != before {
            rules.push(rule.id);
        }
    }
    let seen = run(job, &expected);
    if expected.refused() {
        // What would have been passed is of no interest then, nor are rules about it.
        expected.argv.clear();
        expected.env.clear();
        expected.router.clear();
        rules.retain(|id| speaks_of_findings(job, id, &recorded));
    }
    if seen != expected {
        let lines = |one: &Expected| -> Vec<String> {
            let variables = one
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            one.findings
                .iter()
                .cloned()
                .chain(variables)
                .chain(flags(&one.argv))
                .chain(flags(&one.router))
                .collect()
        };
        let text = changes(&lines(&expected), &lines(&seen)).join("\n  ");
        return Outcome::Wrong(format!("{} (rules {rules:?})\n  {text}", case.name));
    }
    let same = !expected.refused() && expected.argv == recorded.argv;
    Outcome::Right(rules, same)
}

/// Whether a rule adds a finding to this case.
fn speaks_of_findings(job: &Job<'_>, id: &str, recorded: &Expected) -> bool {
    let rule = RULES.iter().find(|rule| rule.id == id).unwrap();
    // Rules that change the command need one; a case that the old script started has it, the others take it from their own rule.
    let mut alone = recorded.clone();
    if alone.argv.is_empty() {
        return !matches!(id, "host-ip" | "library-path" | "own-variables");
    }
    (rule.apply)(job, &mut alone);
    !alone.findings.is_empty()
}

/// The program as the case's job calls it.
fn test_of(job: &Job<'_>, words: &str) -> Test {
    let case = job.case;
    let mut test = Test::new(words).envs(&case.env);
    for name in &case.files {
        test = test.file(name, "");
    }
    let table = if case.first {
        &job.records.first
    } else {
        &job.records.current
    };
    let yaml = case
        .models_yaml
        .clone()
        .unwrap_or_else(|| table.to_string());
    test = if job.has_no_file() {
        test.args(["--models-file", TABLE])
    } else {
        test.models(yaml)
    };
    if job.is("ipaddrs/unset-and-curl-lenient/") {
        // The address of the route out is this machine's own.
        test = test.args(["--host-ip", "10.0.0.1"]);
    }
    test
}

/// Findings of the check of a command, which looks at what the server's parser would say.
const OF_CHECK: [&str; 9] = [
    "ambiguous-flag",
    "bad-value",
    "batch-without-graph",
    "repeated-flag",
    "tbo-on-decode",
    "tensor-parallel-size",
    "unexpected-word",
    "unknown-flag",
    "unknown-json-key",
];

/// Whether the job passes arguments that were made up for the recording, or that are no JSON.
fn has_made_up_arguments(job: &Job<'_>) -> bool {
    let yaml = job.case.models_yaml.as_deref().unwrap_or_default();
    let given = [job.var("EXTRA_SERVER_ARGS"), yaml];
    let made_up = [
        "--tag",
        "--cache-dir",
        "--ignore",
        "--sizes",
        "--spec",
        "al*\"\n  mtp",
        "overrides {use",
        "overrides {\"",
    ];
    given
        .iter()
        .any(|text| made_up.iter().any(|part| text.contains(part)))
}

fn run(job: &Job<'_>, expected: &Expected) -> Expected {
    let case = job.case;
    let words = "--quiet --dry-run --format json";
    let start = |words: &str| test_of(job, words).any_stdout().any_stderr();
    let refused = expected.refused() || has_made_up_arguments(job);
    let mut run = start(words).status(if refused { 2 } else { 0 }).run();
    if refused {
        assert_eq!(run.stdout, "", "{}", case.name);
    }
    if refused && !expected.refused() {
        // Only the check stands against it; the words are compared all the same.
        run = start(&format!("--no-check {words}")).run();
    }
    let is_of_check = |line: &String| {
        OF_CHECK
            .iter()
            .any(|code| line.contains(&format!("[{code}]")))
    };
    let findings: BTreeSet<String> = headlines(&run.stderr)
        .into_iter()
        .filter(|line| !is_of_check(line))
        .collect();
    if run.status != 0 {
        return Expected {
            findings,
            argv: Vec::new(),
            env: BTreeMap::new(),
            router: Vec::new(),
        };
    }
    let Preview { argv, env } = Preview::of_json(&run.stdout);
    let router = if expected.router.is_empty() {
        Vec::new()
    } else {
        router(job)
    };
    Expected {
        findings,
        argv,
        env,
        router,
    }
}

/// The router's argv of the plan.
fn router(job: &Job<'_>) -> Vec<String> {
    let plan = test_of(job, "plan --quiet --no-check --format json")
        .any_stdout()
        .any_stderr()
        .run();
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let argv = find_argv(&plan, "--pd-disaggregation");
    argv.map_or_else(Vec::new, |argv| {
        serde_json::from_value(argv.clone()).unwrap()
    })
}

/// The first list under the key `argv` that has a word.
fn find_argv<'a>(json: &'a Value, word: &str) -> Option<&'a Value> {
    match json {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let has = value
                .as_array()
                .is_some_and(|list| list.iter().any(|one| one == word));
            if name == "argv" && has {
                Some(value)
            } else {
                find_argv(value, word)
            }
        }),
        Value::Array(items) => items.iter().find_map(|item| find_argv(item, word)),
        _ => None,
    }
}

#[test]
fn every_recorded_job_gets_the_same_command_or_a_stated_difference() {
    let records = records();
    let outcomes = parallel(&records.cases, |case| {
        let job = Job {
            case,
            records: &records,
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge(&job)))
            .unwrap_or_else(|_| Outcome::Wrong(format!("{}: panicked", case.name)))
    });
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut same_argv = 0;
    for outcome in outcomes {
        match outcome {
            Outcome::Right(rules, same) => {
                same_argv += usize::from(same);
                for rule in rules {
                    *uses.entry(rule).or_default() += 1;
                }
            }
            Outcome::Wrong(text) => wrong.push(text),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} cases\n{}",
        wrong.len(),
        records.cases.len(),
        wrong.join("\n")
    );
    for rule in RULES {
        assert!(uses.contains_key(rule.id), "no case needs rule {}", rule.id);
    }
    println!(
        "{} jobs, {same_argv} with the same arguments",
        records.cases.len()
    );
    for (rule, count) in uses {
        println!("{count:4} {rule}");
    }
    let docs = std::fs::read_to_string(project("docs/migrating.md")).unwrap();
    let claim = format!(
        "{same_argv} of {} recorded jobs get exactly the same arguments",
        records.cases.len()
    );
    assert!(
        docs.contains(&claim),
        "docs/migrating.md should say: {claim}"
    );
}

/// Ids of the rows of the tables of differences; those of whole jobs of InferenceX have a test of their own.
fn documented() -> Vec<String> {
    let docs = std::fs::read_to_string(project("docs/migrating.md")).unwrap();
    let (ours, _) = docs.split_once("\n## InferenceX\n").unwrap();
    ours.lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect()
}

#[test]
fn the_docs_have_a_row_for_every_difference_and_no_other() {
    let proved = PROVED_ELSEWHERE.iter().map(|(id, ..)| *id);
    let rules = RULES.iter().map(|rule| rule.id);
    let mut tested: Vec<String> = rules.chain(proved).map(str::to_owned).collect();
    let mut documented = documented();
    tested.sort();
    documented.sort();
    assert_eq!(changes(&documented, &tested), Vec::<String>::new());
    for (id, file, name) in PROVED_ELSEWHERE {
        let text = std::fs::read_to_string(project(file)).unwrap();
        assert!(
            text.contains(&format!("fn {name}(")),
            "{id}: no test {name} in {file}"
        );
    }
}

#[test]
fn no_secret_of_a_job_is_ever_shown() {
    let records = records();
    let case = records
        .cases
        .iter()
        .find(|case| case.name == "secrets/env-dump/decode")
        .unwrap();
    let job = Job {
        case,
        records: &records,
    };
    let secrets: Vec<&String> = case
        .env
        .values()
        .filter(|value| value.contains("SECRET"))
        .collect();
    assert_eq!(secrets.len(), 3);
    for words in [
        "-vv --dry-run",
        "-vv --dry-run --format json",
        "-vv --dry-run --format nul",
        "plan --format json",
        "plan",
        "explain",
        "explain --format json",
    ] {
        let run = test_of(&job, words).any_stdout().any_stderr().run();
        for secret in &secrets {
            assert!(
                !run.stdout.contains(*secret) && !run.stderr.contains(*secret),
                "{words}"
            );
        }
    }
}

#[test]
fn the_built_in_file_is_the_recorded_table_and_the_hf_overrides() {
    let records = records();
    Test::new("diff recorded.yaml built-in.yaml")
        .file("recorded.yaml", records.current.to_string())
        .file("built-in.yaml", atom_launch::input::models_file::BUILT_IN)
        .stdout(
            r#"DeepSeek-V4-Pro
  every command:
    + --hf-overrides '{"use_index_cache":true,"index_topk_freq":4}'

1 of 4 models with changed commands
"#,
        )
        .run();
}
