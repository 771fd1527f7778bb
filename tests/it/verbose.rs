//! What `--verbose`, `--quiet` and ATOM_LAUNCH_LOG make the program say of itself.

use crate::common::Test;

const TABLE: &str = "Demo-8B:\n  block_size: 128\n  kv_cache_flags: --kv_cache_dtype fp8\n";
const HASH: &str = "6fb4bd20a7e496e71083adec0893b7a1dad15da357b97a61266af77e9f157f93";

fn launch(words: &str) -> Test {
    Test::new(&format!("--dry-run {words}"))
        .models(TABLE)
        .any_stdout()
        .any_stderr()
        .envs([
            ("MODEL_NAME", "Demo-8B"),
            ("MODEL_DIR", "/models"),
            ("BLOCK_SIZE", "64"),
            ("DECODE_MTP_SIZE", "0"),
        ])
}

/// The lines about ourselves, without those that the machine decides.
fn lines(test: Test) -> Vec<String> {
    let stderr = test.run().stderr;
    stderr
        .lines()
        .filter(|line| line.starts_with("atom-launch: ") && !line.contains(": this host: "))
        .map(|line| line.trim_start_matches("atom-launch: ").to_owned())
        .collect()
}

#[test]
fn once_it_says_what_was_read_and_which_value_won() {
    let said = lines(
        launch("--no-check --verbose --mtp 0 --mode tp --server-args")
            .args(["--api-key sk-12345678"]),
    );
    assert_eq!(
        said,
        [
            "debug: --mtp: 0 from command line --mtp",
            "debug: --mtp: not 0 from environment DECODE_MTP_SIZE",
            "debug: --model: Demo-8B from environment MODEL_NAME",
            "debug: --mode: tp from command line --mode",
            "debug: --model-dir: /models from environment MODEL_DIR",
            "debug: --block-size: 64 from environment BLOCK_SIZE",
            "debug: --server-args: --api-key *** from command line --server-args",
            &format!(
                "debug: models file models_atom.yaml (--models-file): 1 model, SHA-256 {HASH}"
            ),
            "debug: model path /models/Demo-8B: no hub cache folder",
            "debug: standalone-0: --block-size 128 from models_atom.yaml:2:15 block_size, instead of 64 from environment BLOCK_SIZE, instead of 16 from default",
        ]
    );
}

#[test]
fn twice_it_says_what_was_not_given_and_every_origin() {
    let said = lines(launch("-vv"));
    for line in [
        "trace: --tp: not given",
        "trace: --router-port: not given, nor ROUTER_PORT",
        "trace: standalone-0: --kv_cache_dtype fp8 from models_atom.yaml:3:19 kv_cache_flags",
        "trace: standalone-0: LOGLEVEL=WARNING from default",
    ] {
        assert!(said.iter().any(|one| one == line), "{line}: {said:#?}");
    }
}

#[test]
fn the_variable_speaks_where_no_option_does() {
    let with = |value, words| lines(launch(words).env("ATOM_LAUNCH_LOG", value));
    assert_eq!(with("debug", ""), lines(launch("-v")));
    assert_eq!(with("trace", "-v"), lines(launch("-v")));
    assert!(with("trace", "--quiet").is_empty());
    assert!(lines(launch("")).is_empty());
    assert_eq!(
        with("loud", ""),
        [
            "warning: variable ATOM_LAUNCH_LOG must be one of error, warning, info, debug, trace, found `loud`"
        ]
    );
}

#[test]
fn plan_and_check_say_it_as_well() {
    let of = |test: Test| {
        let test = test.any_stdout().any_stderr();
        lines(test.env("MODEL_DIR", "/models"))
    };
    let file =
        format!("debug: models file models_atom.yaml (--models-file): 1 model, SHA-256 {HASH}");
    assert!(of(Test::new("plan -v --model Demo-8B").models(TABLE)).contains(&file));
    let checked = of(Test::new("check -v")
        .file("models_atom.yaml", TABLE)
        .env("ATOM_MODELS_FILE", "models_atom.yaml"));
    assert_eq!(
        checked[0],
        file.replace("--models-file", "ATOM_MODELS_FILE")
    );
    assert!(checked[1].starts_with("debug: options of the server: "));
    assert_eq!(checked.len(), 2);
}
