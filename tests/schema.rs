//! The JSON Schema against an independent validator, Python's jsonschema, with PyYAML as the reader.
//!
//! Debian has both as python3-jsonschema and python3-yaml; else they are taken from the package index into a folder below `target/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "common/ran.rs"]
mod ran;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_committed_schema_is_the_program_s() {
    let now = ran::run(root(), ["schema"], &[]).stdout;
    let path = root().join("schema/models_atom.schema.json");
    let kept = fs::read_to_string(&path).unwrap_or_default();
    if kept != now && std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &now).unwrap();
    }
    assert!(
        kept == now,
        "UPDATE_GOLDEN=1 cargo test --test schema rewrites {}",
        path.display()
    );
    let shipped = fs::read_to_string(root().join("models_atom.yaml")).unwrap();
    assert_eq!(
        shipped.lines().next(),
        Some("# yaml-language-server: $schema=./schema/models_atom.schema.json")
    );
}

/// A Python that has both packages, and the PYTHONPATH that it needs.
fn python() -> Option<(String, OsString)> {
    let has_both = |python: &str, path: &OsString| {
        Command::new(python)
            .args([
                "-c",
                "import jsonschema, yaml; jsonschema.Draft202012Validator",
            ])
            .env("PYTHONPATH", path)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let none = OsString::new();
    let pythons = ["python3", "/usr/bin/python3"];
    let ready = |path: &OsString| {
        let found = pythons.iter().find(|python| has_both(python, path));
        found.map(|python| ((*python).to_owned(), path.clone()))
    };
    if let Some(found) = ready(&none) {
        return Some(found);
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python-packages");
    let path = folder.clone().into_os_string();
    if let Some(found) = ready(&path) {
        return Some(found);
    }
    // A test that fetches packages is slow once; without a network it ends at once.
    let _ = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--target"])
        .arg(&folder)
        .args(["jsonschema", "pyyaml"])
        .output();
    ready(&path)
}

#[test]
fn an_independent_validator_takes_what_loads_and_refuses_what_does_not() {
    let Some((python, path)) = python() else {
        assert!(
            std::env::var_os("CI").is_none(),
            "CI needs Python's jsonschema and yaml: apt-get install python3-jsonschema python3-yaml"
        );
        eprintln!(
            "skipped: no Python with jsonschema and yaml (apt-get install python3-jsonschema python3-yaml)"
        );
        return;
    };
    let lints = root().join("tests/lints");
    let mut right = vec![
        root().join("models_atom.yaml"),
        root().join("tests/data/recipes.yaml"),
    ];
    for folder in fs::read_dir(&lints).unwrap() {
        right.push(folder.unwrap().path().join("good.yaml"));
    }
    // What a schema can express of the mistakes that loading refuses.
    let wrong: Vec<PathBuf> = [
        "wrong-type",
        "unknown-field",
        "bad-number",
        "bad-pair",
        "bad-json",
    ]
    .iter()
    .map(|code| lints.join(code).join("bad.yaml"))
    .collect();
    let output = Command::new(&python)
        .arg(root().join("tests/data/validate.py"))
        .arg(root().join("schema/models_atom.schema.json"))
        .args(&right)
        .args(&wrong)
        .env("PYTHONPATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let refused = |file: &Path| {
        let name = file.to_str().unwrap();
        let line = said
            .lines()
            .find(|line| line.split([' ', ':']).nth(1) == Some(name));
        match line
            .unwrap_or_else(|| panic!("nothing about {name} in\n{said}"))
            .split(' ')
            .next()
        {
            Some("ok") => None,
            _ => line,
        }
    };
    for file in &right {
        assert_eq!(refused(file), None);
    }
    for file in &wrong {
        assert!(refused(file).is_some(), "{} passes", file.display());
    }
}
