//! Every model of the built-in file × mode × role × speculative tokens, as files that a person can review.
//!
//! `UPDATE_GOLDEN=1 cargo test golden` writes them anew, and fails when that changed anything: the change is to be looked at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Test, headlines, parallel, project};

const MODELS: [&str; 4] = [
    "DeepSeek-V4-Pro",
    "MiniMax-M3-MXFP4",
    "MiniMax-M3-MXFP8",
    "Kimi-K2.5-MXFP4",
];
const MODES: [&str; 3] = ["tp", "tp-dp", "ep-dp"];
const ROLES: [&str; 3] = ["prefill", "decode", "standalone"];
const TOKENS: [u32; 3] = [0, 1, 3];

struct Golden {
    path: PathBuf,
    words: String,
}

fn all() -> Vec<Golden> {
    let mut all = Vec::new();
    for model in MODELS {
        for mode in MODES {
            for role in ROLES {
                for mtp in TOKENS {
                    all.push(Golden {
                        path: project(&format!("tests/golden/{model}/{mode}.{role}.mtp{mtp}.txt")),
                        words: format!(
                            "--model {model} --mode {mode} --role {role} --mtp {mtp} --model-dir /models --host-ip 10.0.0.1"
                        ),
                    });
                }
            }
        }
    }
    all
}

/// The whole outcome of a dry run as text: the command line, then warnings and the command, or the errors.
fn outcome(words: &str) -> String {
    let test = Test::new(words).args(["--quiet", "--dry-run", "--format", "json"]);
    let output = test.process().output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let mut lines = vec![format!("atom-launch {words}"), String::new()];
    match output.status.code() {
        Some(0) => {
            lines.extend(headlines(&stderr));
            lines.extend(crate::common::Preview::of_json(&stdout).lines());
        }
        code => {
            assert_eq!(stdout, "", "{words}");
            lines.push(format!("exit {}", code.unwrap()));
            lines.extend(headlines(&stderr));
        }
    }
    lines.join("\n") + "\n"
}

fn files_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.insert(path);
        }
    }
    files
}

#[test]
fn every_command_of_the_built_in_file_is_as_reviewed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let goldens = all();
    let different: Vec<String> = parallel(&goldens, |golden| {
        let seen = outcome(&golden.words);
        let kept = fs::read_to_string(&golden.path).unwrap_or_default();
        if seen == kept {
            return None;
        }
        if update {
            fs::create_dir_all(golden.path.parent().unwrap()).unwrap();
            fs::write(&golden.path, &seen).unwrap();
        }
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let changes = crate::common::changes(&lines(&kept), &lines(&seen)).join("\n");
        Some(format!("{}\n{changes}", golden.path.display()))
    })
    .into_iter()
    .flatten()
    .collect();
    let wanted: BTreeSet<PathBuf> = goldens.iter().map(|golden| golden.path.clone()).collect();
    let stale: Vec<PathBuf> = files_below(&project("tests/golden"))
        .difference(&wanted)
        .cloned()
        .collect();
    if update {
        for path in &stale {
            fs::remove_file(path).unwrap();
        }
    }
    let what = if update {
        "golden files were written anew; look at the change and run the test again"
    } else {
        "differs from its golden file; UPDATE_GOLDEN=1 writes them anew"
    };
    assert!(
        different.is_empty() && stale.is_empty(),
        "{what}\n{}\nno test produces: {stale:?}",
        different.join("\n\n")
    );
}

/// A model without golden files would be changed without anybody seeing it.
#[test]
fn every_model_of_the_built_in_file_has_golden_files() {
    let list = Test::new("models --format json").any_stdout().run();
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    let names: Vec<&str> = list["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, MODELS);
}
