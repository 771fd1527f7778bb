//! Each problem by itself, and several together.

use super::*;
use std::net::TcpListener;

fn spec(folder: &Path, more: &str) -> NodeSpec {
    let text = format!(
        r#"{{"rank": 0, "job": {{"model": "M", "model_path": "/m", "ranks": 2}}, "log_dir": {:?} {more}}}"#,
        folder.join("logs")
    );
    let mut spec: NodeSpec = serde_json::from_str(&text).unwrap();
    spec.environment.insert("PATH", "/usr/bin:/bin");
    spec
}

fn codes(findings: &[Diagnostic]) -> Vec<&'static str> {
    findings.iter().map(|one| one.code.0).collect()
}

fn free_ports<const N: usize>(address: &str) -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((address, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

#[test]
fn a_healthy_rank_has_no_findings() {
    let folder = tempfile::tempdir().unwrap();
    let [http, router] = free_ports("127.0.0.1");
    let spec = spec(
        folder.path(),
        &format!(
            r#", "workload": ["true"],
            "router": {{"address": "127.0.0.1", "port": {router}, "command": {{"argv": ["/bin/sh"]}}}},
            "workers": [{{"name": "prefill-0", "role": "prefill", "address": "127.0.0.1", "port": {http},
                          "health_url": "http://127.0.0.1:{http}/health", "command": {{"argv": ["sh"]}}}}]"#
        ),
    );
    assert_eq!(preflight(&spec), []);
    assert!(folder.path().join("logs").is_dir());
}

#[test]
fn all_problems_come_at_once_and_name_their_cause() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("logs"), "a file").unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let shake = TcpListener::bind("127.0.0.1:0").unwrap();
    let (http, first) = (
        held.local_addr().unwrap().port(),
        shake.local_addr().unwrap().port(),
    );
    let spec = spec(
        folder.path(),
        &format!(
            r#", "workload": ["./bench-missing.sh"],
            "router_address": null, "router": {{"address": "127.0.0.1", "port": {http}, "command": {{"argv": ["/nowhere/atomesh"]}}}},
            "workers": [{{"name": "prefill-0", "role": "prefill", "address": "127.0.0.1", "port": {http},
                          "handshake_ports": {{"start": {first}, "end": {}}},
                          "health_url": "http://127.0.0.1:{http}/health", "command": {{"argv": ["no-such-python"]}}}}]"#,
            first + 1
        ),
    );
    let found = preflight(&spec);
    let wanted = [
        "program-missing",
        "program-missing",
        "program-missing",
        "log-folder",
        "port-in-use",
        "port-in-use",
        "port-in-use",
    ];
    assert_eq!(codes(&found), wanted);
    let me = format!("is in use by process {}", std::process::id());
    assert!(found[4].message.contains(&me), "{}", found[4].message);
    assert!(found[5].message.contains("KV handshake of prefill-0"));
    assert_eq!(exit_code(&found), exit::USAGE);
    assert_eq!(exit_code(&found[..3]), exit::NOT_FOUND);
}

#[test]
fn models_are_looked_for_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    fs::create_dir(&whole).unwrap();
    let check = |path: &Path| ModelCheck {
        what: "model".into(),
        path: path.to_string_lossy().into_owned(),
        from: "MODEL_DIR".into(),
    };
    assert!(
        model(&check(&whole), None)
            .unwrap()
            .message
            .contains("has no config.json")
    );
    fs::write(whole.join("config.json"), "{}").unwrap();
    assert!(
        model(&check(&whole), None)
            .unwrap()
            .message
            .contains("has no weights")
    );
    fs::write(whole.join("a.safetensors"), "").unwrap();
    assert_eq!(model(&check(&whole), None), None);
    let missing = model(&check(Path::new("/nowhere/models/M")), None).unwrap();
    assert!(missing.is_error());
    assert_eq!(
        missing.message,
        "model folder /nowhere/models/M (from MODEL_DIR) does not exist"
    );
    let hub = check(Path::new("demo-org/Draft-1B"));
    assert_eq!(model(&hub, None), None);
    assert!(!model(&hub, Some(folder.path())).unwrap().is_error());
    fs::create_dir(folder.path().join("models--demo-org--Draft-1B")).unwrap();
    assert_eq!(model(&hub, Some(folder.path())), None);
}

#[test]
fn a_wait_longer_than_the_job_names_both() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec(folder.path(), "");
    let found = job_end(&spec, Duration::from_mins(10)).unwrap();
    assert!(
        found.message.contains("2500 s") && found.message.contains("600 s"),
        "{}",
        found.message
    );
    assert!(!found.is_error());
    assert_eq!(job_end(&spec, Duration::from_secs(2501)), None);
}

/// A rank whose address is given, in a job whose rank 1 has this machine's own one.
fn at(folder: &Path, address: &str, other: &str) -> NodeSpec {
    let [http] = free_ports("127.0.0.1");
    spec(
        folder,
        &format!(
            r#", "workers": [{{"name": "prefill-0", "role": "prefill", "address": "{address}", "port": {http},
                          "health_url": "http://{address}:{http}/health", "command": {{"argv": ["sh"]}}}}],
            "all_workers": [{{"name": "prefill-0", "role": "prefill", "rank": 0, "health_url": "http://{address}:{http}/health"}},
                            {{"name": "decode-1", "role": "decode", "rank": 1, "health_url": "http://{other}:{http}/health"}}]"#
        ),
    )
}

#[test]
fn an_address_of_another_machine_is_an_error_that_names_the_own_ones() {
    let folder = tempfile::tempdir().unwrap();
    let own = crate::run::procfs::own_addresses();
    let other = own.iter().find(|address| address.is_ipv4());
    let other = other.map_or("198.51.100.8".to_owned(), ToString::to_string);
    let found = preflight(&at(folder.path(), "198.51.100.7", &other));
    assert_eq!(codes(&found), ["address-elsewhere"]);
    assert!(found[0].is_error());
    assert_eq!(
        found[0].message,
        "198.51.100.7, the address of rank 0, is none of this machine's, and what is sent there does not arrive here"
    );
    let help: Vec<String> = found[0].help.iter().map(ToString::to_string).collect();
    let help = help.join(
        "
",
    );
    assert!(help.contains(&other), "{help}");
    if !own.is_empty() {
        assert!(help.contains("in the list belongs to rank 1"), "{help}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let found = preflight(&at(folder.path(), "no-such-host.invalid", "127.0.0.1"));
    assert!(found[0].is_error());
    let start =
        "no-such-host.invalid, the address of rank 0, is a name that this machine cannot resolve: ";
    assert!(found[0].message.starts_with(start), "{}", found[0].message);
}
