//! The docs say what the program does: generated parts are current, and every key of the JSON forms is named.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use atom_launch::domain::codes;
use serde_json::Value;

#[path = "common/ran.rs"]
mod ran;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(root(path)).unwrap()
}

#[test]
fn the_list_of_findings_is_current() {
    const BEGIN: &str = "<!-- generated: findings -->\n";
    const END: &str = "<!-- end of generated -->\n";
    let page = read("docs/lints.md");
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let now = format!("{head}{BEGIN}\n{}{END}{tail}", codes::markdown());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(root("docs/lints.md"), &now).unwrap();
    }
    assert!(
        page == now,
        "docs/lints.md is not current; UPDATE_GOLDEN=1 cargo test --test docs rewrites it"
    );
}

/// Every constraint of the server is a rule that names it, or stands in the table of those out of reach.
#[test]
fn every_constraint_of_the_server_is_checked_or_out_of_reach() {
    let page = read("docs/lints.md");
    let (_, out_of_reach) = page.split_once("## Out of reach").unwrap();
    let mut known: String = out_of_reach
        .lines()
        .filter(|line| line.starts_with("| "))
        .filter_map(|line| line.split('|').nth(1))
        .collect::<Vec<_>>()
        .join(" ");
    for folder in ["src/check", "src/check/constraints"] {
        for entry in fs::read_dir(root(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(path).unwrap();
                for line in text.lines().filter_map(|line| line.split_once("//")) {
                    known.push(' ');
                    known.push_str(line.1);
                }
            }
        }
    }
    // `A1 to A4` names all four.
    let known = known.replace("A1 to A4", "A1 A2 A3 A4");
    let words: Vec<&str> = known.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let groups = [
        ("A", 18),
        ("B", 17),
        ("C", 13),
        ("D", 5),
        ("E", 12),
        ("F", 11),
        ("G", 9),
    ];
    let missing: Vec<String> = groups
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")))
        .filter(|id| !words.contains(&id.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Paths of all keys: `ranks[].workers[].ports.server`.
fn keys(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                found.push(path.clone());
                // Names of variables are data.
                if name != "env" {
                    keys(value, &path, found);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                keys(item, &format!("{path}[]"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn json(args: &[&str], env: &[(&str, &str)]) -> Value {
    let ran = ran::run(".", args.iter().copied(), env);
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn each_key_is_named(page: &str, value: &Value) {
    let page = read(page);
    let mut found = Vec::new();
    keys(value, "", &mut found);
    found.sort();
    found.dedup();
    assert!(!found.is_empty());
    let missing: Vec<&String> = found
        .iter()
        .filter(|path| {
            // A table names `workers[].ports.server` or, in a row of several, `server` alone behind the path of its parent.
            let last = path.rsplit('.').next().unwrap().trim_end_matches("[]");
            let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
            !page.lines().any(|line| {
                line.starts_with("| `")
                    && line.contains(&format!("{last}`"))
                    && (parent.is_empty()
                        || line.contains(parent.rsplit('.').next().unwrap().trim_end_matches("[]")))
            })
        })
        .collect();
    assert!(
        missing.is_empty(),
        "keys that the docs do not name: {missing:?}"
    );
}

#[test]
fn every_key_of_a_plan_is_documented() {
    let packed = [
        ("MODEL_NAME", "DeepSeek-V4-Pro"),
        ("xP", "2"),
        ("yD", "2"),
        ("HOME", "/root"),
        ("IPADDRS", "10.0.0.1"),
        ("PREFILL_TP_SIZE", "2"),
        ("DECODE_TP_SIZE", "2"),
        ("DECODE_MTP_SIZE", "1"),
        ("PREFILL_ENABLE_DP", "true"),
    ];
    each_key_is_named(
        "docs/plan.md",
        &json(&["plan", "--layout", "packed", "--format", "json"], &packed),
    );
    let spread = [
        ("MODEL_NAME", "DeepSeek-V4-Pro"),
        ("xP", "2"),
        ("yD", "2"),
        ("IPADDRS", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4"),
    ];
    each_key_is_named(
        "docs/plan.md",
        &json(&["plan", "--format", "json"], &spread),
    );
}

#[test]
fn every_key_of_a_check_is_documented() {
    let file = root("tests/lints/duplicate-key/bad.yaml");
    let found = json(&["check", "--format", "json", file.to_str().unwrap()], &[]);
    each_key_is_named("docs/lints.md", &found);
}
