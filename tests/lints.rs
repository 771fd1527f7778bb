//! Every kind of finding, proved through the program: a failing and a passing file for those of a file (`tests/lints/CODE/`), and a
//! job for those that only a job shows. `UPDATE_GOLDEN=1 cargo test --test lints` rewrites the expected outputs.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use atom_launch::cli::JobArgs;
use atom_launch::domain::codes;
use atom_launch::domain::environment::{Environment, HostFacts, ModelFolder};
use atom_launch::domain::models::Origin;
use atom_launch::domain::topology::Role;
use atom_launch::input::{models_file, settings};
use atom_launch::render::diagnostic;
use atom_launch::resolve::{self, Inputs, model, topology};

mod lint_jobs;
#[path = "common/ran.rs"]
mod ran;

use ran::Ran;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lints")
}

/// The program in a folder with an environment of its own.
fn run(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    ran::run(folder, args.iter().copied(), env)
}

/// Compare with a kept text, or renew it and remember that it changed.
fn same_as_kept(path: &Path, now: &str, changed: &mut Vec<String>) {
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept == now {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, now).unwrap();
    }
    changed.push(format!(
        "{}\n--- kept\n{kept}--- now\n{now}",
        path.strip_prefix(env!("CARGO_MANIFEST_DIR"))
            .unwrap()
            .display()
    ));
}

fn refuse_changes(changed: &[String]) {
    assert!(
        changed.is_empty(),
        "{} outputs changed; UPDATE_GOLDEN=1 rewrites them:\n{}",
        changed.len(),
        changed.join("\n")
    );
}

#[test]
fn each_kind_of_finding_has_a_failing_and_a_passing_file() {
    let mut changed = Vec::new();
    for folder in fs::read_dir(folder()).unwrap() {
        let folder = folder.unwrap().path();
        let code = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(
            codes::describe(&code).is_some(),
            "no kind of finding is called {code}"
        );
        let tag = format!("[{code}]");

        let bad = run(&folder, &["check", "bad.yaml"], &[]);
        assert!(
            bad.stdout.contains(&tag),
            "{code}: bad.yaml has no such finding:\n{}",
            bad.stdout
        );
        assert_eq!(bad.stderr, "", "{code}");
        let errors = bad.stdout.lines().any(|line| line.starts_with("error["));
        assert_eq!(bad.code, Some(i32::from(errors)), "{code}");
        same_as_kept(&folder.join("bad.txt"), &bad.stdout, &mut changed);

        let good = run(&folder, &["check", "good.yaml"], &[]);
        assert!(
            !good.stdout.contains(&tag),
            "{code}: good.yaml has such a finding:\n{}",
            good.stdout
        );
        assert!(
            good.stdout.contains(" 0 errors, "),
            "{code}: {}",
            good.stdout
        );
        assert_eq!((good.code, good.stderr.as_str()), (Some(0), ""), "{code}");
        same_as_kept(&folder.join("good.txt"), &good.stdout, &mut changed);
    }
    refuse_changes(&changed);
}

#[test]
fn no_kind_of_finding_is_without_a_case() {
    let in_files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let in_jobs: BTreeSet<&str> = lint_jobs::CASES.iter().map(|case| case.code).collect();
    let without: Vec<&str> = codes::names()
        .filter(|name| !in_files.contains(*name) && !in_jobs.contains(name))
        .collect();
    // This one needs a machine without any route: `a_machine_without_a_route_needs_an_address`.
    assert_eq!(without, ["no-host-address"]);
}

#[test]
fn a_machine_without_a_route_needs_an_address() {
    let args = JobArgs {
        model: Some("DeepSeek-V4-Pro".into()),
        model_dir: Some("/models".into()),
        role: Some(Role::Prefill),
        ..JobArgs::default()
    };
    let environment = Environment::default();
    let (settings, mut found) = settings::read(&args, &environment);
    let loaded = models_file::load(
        "built-in",
        models_file::BUILT_IN.to_owned(),
        Origin::BuiltIn,
    );
    let placement = topology::place(&settings, &environment, &mut found);
    let inputs = Inputs {
        settings: &settings,
        models: &loaded.models,
        entry: model::entry(&loaded.models, &settings).unwrap(),
        environment: &environment,
        host: &HostFacts::default(),
        folder: &ModelFolder::Plain,
    };
    resolve::job(inputs, &placement, &mut found);
    let texts: Vec<String> = found
        .0
        .iter()
        .map(|finding| diagnostic::line(finding, None))
        .collect();
    assert_eq!(
        texts,
        [
            "error[no-host-address]: no address for KV transfer: prefill-0 is in no list of nodes, and there is no route out; \
          give it with `--host-ip ADDR`, or all nodes with `--nodes` or IPADDRS\n"
        ]
    );
}

#[test]
fn each_kind_of_finding_of_a_job_is_shown_as_it_is_kept() {
    let files = tempfile::tempdir().unwrap();
    lint_jobs::write_files(files.path());
    let mut changed = Vec::new();
    for case in lint_jobs::CASES {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/lint_jobs")
            .join(format!("{}.txt", case.name));
        let args: Vec<String> = case
            .args
            .split(' ')
            .map(|word| word.replace('␣', " "))
            .collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let ran = run(files.path(), &args, case.env);
        let tag = format!("[{}]", case.code);
        assert!(
            ran.stderr.contains(&tag),
            "{}: no {tag} in\n{}",
            case.name,
            ran.stderr
        );
        let errors = ran.stderr.lines().any(|line| line.starts_with("error["));
        assert_eq!(
            ran.code,
            Some(if errors { 2 } else { 0 }),
            "{}: {}",
            case.name,
            ran.stderr
        );
        assert_eq!(
            ran.stdout.is_empty(),
            errors,
            "{}: data only where there is a plan",
            case.name
        );
        same_as_kept(&kept, &ran.stderr, &mut changed);
    }
    refuse_changes(&changed);
}

#[test]
fn every_form_of_check_names_the_same_findings() {
    for code in ["unknown-flag", "duplicate-key", "no-models", "env-conflict"] {
        let folder = folder().join(code);
        let text = run(&folder, &["check", "bad.yaml"], &[]).stdout;
        let json = run(&folder, &["check", "bad.yaml", "--format", "json"], &[]).stdout;
        let github = run(&folder, &["check", "bad.yaml", "--format", "github"], &[]).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let findings = json["files"][0]["findings"].as_array().unwrap();
        let titles = text
            .lines()
            .filter(|line| line.starts_with("error[") || line.starts_with("warning["));
        let annotations = github.lines().filter(|line| line.starts_with("::"));
        assert_eq!(titles.count(), findings.len(), "{code}");
        assert_eq!(annotations.count(), findings.len(), "{code}");
        for finding in findings {
            let message = finding["message"].as_str().unwrap();
            assert!(text.contains(message), "{message}");
            let place = &finding["position"];
            assert!(
                github.contains(&format!("line={},col={}", place["line"], place["column"])),
                "{place}"
            );
        }
    }
}

#[test]
fn a_kind_can_be_allowed_and_denied() {
    let folder = folder().join("port-flag");
    let plain = run(&folder, &["check", "bad.yaml"], &[]);
    assert_eq!(plain.code, Some(0));
    let denied = run(&folder, &["check", "bad.yaml", "--deny", "port-flag"], &[]);
    assert_eq!(denied.code, Some(1));
    assert!(denied.stdout.starts_with("error[port-flag]"));
    let allowed = run(&folder, &["check", "bad.yaml", "--allow", "port-flag"], &[]);
    assert_eq!(allowed.stdout, "bad.yaml: 1 model, 0 errors, 0 warnings\n");
    let unknown = run(&folder, &["check", "bad.yaml", "--deny", "port-flags"], &[]);
    assert_eq!(unknown.code, Some(2));
    assert_eq!(
        unknown.stderr,
        "error: no kind of finding is called `port-flags`; did you mean port-flag? (`atom-launch check --explain` lists them)\n"
    );
}

#[test]
fn every_kind_of_finding_is_explained() {
    for description in codes::ALL {
        let name = description.code.0;
        let explained = run(&folder(), &["check", "--explain", name], &[]);
        assert_eq!(explained.code, Some(0));
        assert!(
            explained.stdout.starts_with(&format!("{name}: ")),
            "{}",
            explained.stdout
        );
        assert!(description.explanation.ends_with('.'), "{name}");
        assert!(!description.summary.ends_with('.'), "{name}");
    }
}
