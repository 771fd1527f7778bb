//! The layers of `src/` and the length of its files, read from the source itself.
//!
//! Data flows one way: what is read becomes typed values, those a plan, and the plan is printed or run. A layer may name the ones listed
//! behind it and no other; tests within a file may name any. Std alone, so that the check costs nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer and all that it may name, the lowest first: only layers above it in this table.
const LAYERS: [(&str, &[&str]); 16] = [
    // Plain types and the rules that all need: positions, origins, secrets, quoting.
    ("domain", &[]),
    ("exit", &[]),
    // What is known of ATOM's own command line and variables.
    ("atom", &[]),
    // The command line as types.
    ("cli", &["domain"]),
    ("plan", &["domain"]),
    ("explain", &["domain"]),
    // The only one that reads what decides: arguments, variables, files, the host.
    ("input", &["domain", "exit", "cli"]),
    ("resolve", &["domain", "plan"]),
    ("diff", &["domain", "resolve"]),
    ("check", &["domain", "atom", "plan", "resolve"]),
    (
        "render",
        &["domain", "cli", "plan", "explain", "resolve", "diff"],
    ),
    // It takes a specification, never settings; of `input` it uses the look-up of programs, the signals to take and the limit of lists.
    ("run", &["domain", "exit", "plan", "input"]),
    ("report", &["domain", "render", "run"]),
    (
        "rehearse",
        &[
            "domain", "exit", "atom", "cli", "plan", "input", "resolve", "render",
        ],
    ),
    (
        "app",
        &[
            "domain", "exit", "atom", "cli", "plan", "explain", "input", "resolve", "diff",
            "check", "render", "run", "report", "rehearse",
        ],
    ),
    ("main", &[]),
];

/// Layers that compute and nothing else.
const PURE: [&str; 6] = ["domain", "plan", "explain", "resolve", "diff", "check"];
/// What no pure layer may name.
const WORLD: [&str; 8] = [
    "std::fs",
    "std::env::",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "TcpStream",
    "UdpSocket",
];

/// Most lines of a file, its tests not counted.
const MOST_LINES: usize = 420;

/// A file with its name below `src/`, without comments and without its tests.
struct Source {
    name: String,
    lines: usize,
    code: String,
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Files that a `#[cfg(test)] mod name;` brings in.
fn test_files(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path.file_stem().unwrap();
    let folder = if ["mod", "lib", "main"].iter().any(|name| stem == *name) {
        path.with_file_name("")
    } else {
        path.with_extension("")
    };
    text.split("#[cfg(test)]\nmod ")
        .skip(1)
        .filter_map(|rest| rest.lines().next()?.strip_suffix(';'))
        .map(|name| folder.join(name).with_extension("rs"))
        .collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    rust_files(&root, &mut paths);
    paths.sort();
    let texts: BTreeMap<PathBuf, String> = paths
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    let of_tests: BTreeSet<PathBuf> = texts
        .iter()
        .flat_map(|(path, text)| test_files(path, text))
        .collect();
    texts
        .into_iter()
        .filter(|(path, text)| {
            !of_tests.contains(path) && !text.contains("edit the facts, not this file")
        })
        .map(|(path, text)| {
            let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            Source {
                name: path
                    .strip_prefix(&root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
                lines: own.lines().count(),
                code: own
                    .lines()
                    .map(|line| line.split("//").next().unwrap_or_default())
                    .collect::<Vec<_>>()
                    .join("\n"),
            }
        })
        .collect()
}

fn layer_of(name: &str) -> &str {
    name.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The first part of every path that begins at the crate.
fn named(code: &str) -> BTreeSet<&str> {
    code.split("crate::")
        .skip(1)
        .map(|rest| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            rest.split(|c| !is_name(c)).next().unwrap()
        })
        .collect()
}

#[test]
fn layers_name_only_those_below_them() {
    let mut below: Vec<&str> = Vec::new();
    for (layer, allowed) in LAYERS {
        for name in allowed {
            assert!(
                below.contains(name),
                "{layer} may not name {name}: it comes later in the table"
            );
        }
        below.push(layer);
    }
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.name != "lib.rs") {
        let layer = layer_of(&source.name);
        let (_, allowed) = LAYERS
            .iter()
            .find(|(known, _)| *known == layer)
            .unwrap_or_else(|| panic!("src/{} belongs to no layer of the table", source.name));
        for name in named(&source.code) {
            if name != layer && !allowed.contains(&name) {
                wrong.push(format!(
                    "src/{}: {layer} may not name `crate::{name}`",
                    source.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_map_of_the_crate_is_that_of_the_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let text = fs::read_to_string(root).unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("//! | [`"));
    let mapped: Vec<&str> = rows.map(|row| row.split('`').next().unwrap()).collect();
    let layers = LAYERS.iter().map(|(layer, _)| *layer);
    let layers: Vec<&str> = layers.filter(|layer| *layer != "main").collect();
    assert_eq!(mapped, layers);
}

#[test]
fn every_allowed_name_is_used() {
    let mut used: BTreeSet<(String, String)> = BTreeSet::new();
    for source in sources() {
        for name in named(&source.code) {
            used.insert((layer_of(&source.name).to_owned(), name.to_owned()));
        }
    }
    for (layer, allowed) in LAYERS {
        for name in allowed {
            assert!(
                used.contains(&(layer.to_owned(), (*name).to_owned())),
                "{layer} does not name {name} any more: take it out of the table"
            );
        }
    }
}

#[test]
fn what_computes_does_not_look_at_the_world() {
    let mut wrong = Vec::new();
    for source in sources() {
        if PURE.contains(&layer_of(&source.name)) {
            let seen = WORLD.iter().filter(|word| source.code.contains(**word));
            wrong.extend(seen.map(|word| format!("src/{}: {word}", source.name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What asks for the process's surroundings besides `std::env`.
const SURROUNDINGS: [&str; 3] = ["hostname()", "uname()", "/proc/self/environ"];
/// What of `std::env` asks for nothing.
const ASKS_NOTHING: [&str; 2] = ["split_paths", "join_paths"];
/// Where one of them may stand outside `input`, and why.
const ASKS_ITSELF: [(&str, &str, &str); 3] = [
    (
        "main.rs",
        "args_os",
        "the arguments go from here to the parser",
    ),
    (
        "rehearse/stage.rs",
        "current_exe",
        "the stand-ins are this program under other names",
    ),
    (
        "rehearse/stage.rs",
        "temp_dir",
        "a rehearsal makes a folder of its own there",
    ),
];

#[test]
fn only_input_asks_for_the_surroundings() {
    let mut asked = BTreeSet::new();
    for source in sources() {
        if layer_of(&source.name) != "input" {
            let calls = SURROUNDINGS.into_iter();
            let calls = calls.filter(|call| source.code.contains(call));
            let of_env = source.code.split("std::env").skip(1).map(|rest| {
                let name = rest.trim_start_matches("::");
                name.split(|c: char| !c.is_alphanumeric() && c != '_')
                    .next()
                    .unwrap()
            });
            let of_env = of_env.filter(|name| !ASKS_NOTHING.contains(name));
            asked.extend(
                calls
                    .chain(of_env)
                    .map(|call| (source.name.clone(), call.to_owned())),
            );
        }
    }
    let allowed: BTreeSet<(String, String)> = ASKS_ITSELF
        .iter()
        .map(|(name, call, _)| ((*name).to_owned(), (*call).to_owned()))
        .collect();
    assert_eq!(asked, allowed);
}

#[test]
fn no_file_is_too_long_to_read() {
    let wrong: Vec<String> = sources()
        .iter()
        .filter(|source| source.lines > MOST_LINES)
        .map(|source| {
            let Source { name, lines, .. } = source;
            format!("src/{name} has {lines} lines; at most {MOST_LINES}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
