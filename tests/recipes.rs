//! Recipes that run on real machines must pass `check` without an error: what it says of them is kept beside them.

use std::path::Path;

#[path = "common/ran.rs"]
mod ran;

fn check(args: &[&str]) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let words = std::iter::once("check").chain(args.iter().copied());
    let ran = ran::run(folder, words, &[]);
    (ran.code, ran.stdout)
}

#[test]
fn every_recipe_passes_with_known_warnings() {
    let (code, found) = check(&["recipes.yaml", "--format", "github"]);
    assert_eq!(code, Some(0), "{found}");
    let codes: Vec<&str> = found
        .lines()
        .map(|line| {
            line.split("title=")
                .nth(1)
                .unwrap()
                .split("::")
                .next()
                .unwrap()
        })
        .collect();
    // Bare `--enable-tbo` reaches decode workers in two recipes; two variables are read by images of a branch only.
    assert_eq!(
        codes,
        [
            "tbo-on-decode",
            "tbo-on-decode",
            "env-without-effect",
            "env-without-effect"
        ],
        "{found}"
    );
}

#[test]
fn the_shipped_file_passes() {
    let (code, found) = check(&["../../models_atom.yaml"]);
    assert_eq!(code, Some(0), "{found}");
}

#[test]
fn an_image_of_an_earlier_day_lacks_later_flags() {
    let (code, found) = check(&["recipes.yaml", "--atom-date", "2026-05-11"]);
    assert_eq!(code, Some(1));
    for flag in [
        "--online_quant_config",
        "--index-cache-dtype",
        "--state-checkpoint-interval-tokens",
    ] {
        assert!(found.contains(&format!("`{flag}`")), "{flag} in\n{found}");
    }
    assert!(!found.contains("[unexpected-word]"), "{found}");
    let (_, found) = check(&["recipes.yaml", "--atom-date", "2026-04-01"]);
    assert!(
        found.contains(
            "the launcher passes `--kv-transfer-config`, which this server does not take"
        ),
        "{found}"
    );
    let (_, found) = check(&["recipes.yaml", "--atom-date", "2025-11-01"]);
    assert!(!found.contains("[mtp-flags-end]"), "{found}");
}
