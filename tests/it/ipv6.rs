//! IPv6 addresses: what listens is listening where it is asked.

use std::net::{TcpListener, ToSocketAddrs as _};
use std::os::unix::fs::symlink;

use atom_launch::rehearse::{PYTHON, ROUTER};
use serde_json::Value;

use crate::common::{BINARY, Test, headlines};

/// Whether this machine has IPv6 at all.
fn has_ipv6() -> bool {
    TcpListener::bind("[::1]:0").is_ok()
}

/// So many free ports at an address.
fn ports<const N: usize>(address: &str) -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((address, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// A rank for real, with the stand-ins of a rehearsal for server and router.
fn node(more: &str) -> Test {
    let test = Test::new(&format!(
        "node --model M --models-file m.yaml --model-dir models --quiet --tp 1 --poll-interval 0.1 --wait-server-timeout 120 --wait-router-timeout 120 --python ./{PYTHON} --router-bin ./{ROUTER} {more}"
    ))
    .file("m.yaml", "M: {}")
    .file("models/M/config.json", "{}")
    .file("models/M/a.safetensors", "");
    for name in [PYTHON, ROUTER] {
        symlink(BINARY, test.path(name)).unwrap();
    }
    test.any_stderr()
}

#[test]
fn a_lone_server_is_heard_at_its_ipv6_address() {
    if !has_ipv6() {
        return;
    }
    for nodes in ["::1", "[::1]", "0:0::1"] {
        let [port] = ports("::1");
        node(&format!("--nodes {nodes} --server-port {port}"))
            .args(["--", "sh", "-c", "echo $ROUTER_URL"])
            .stdout(format!("http://[::1]:{port}\n"))
            .run();
    }
}

#[test]
fn a_whole_job_is_heard_at_its_ipv6_address() {
    if !has_ipv6() {
        return;
    }
    let [prefill, decode, router, metrics, handshake, _] = ports("::1");
    let run = node(&format!(
        "--nodes ::1 --layout packed --prefill-workers 1 --decode-workers 1 --prefill-port {prefill} --decode-port {decode} --router-port {router} --prometheus-port {metrics} --handshake-port {handshake}"
    ))
    .args(["--", "sh", "-c", "echo $ROUTER_URL $NO_PROXY"])
    .stdout(format!("http://[::1]:{router} ::1,127.0.0.1,localhost\n"))
    .run();
    assert_eq!(
        run.stderr.lines().next().unwrap(),
        "warning[kv-transfer]: prefill-0-0 announces ::1 for KV transfer, and the connectors put a port behind it without brackets; give each rank an IPv4 address of its own with `--host-ip`, where there is one"
    );
}

#[test]
fn each_listens_at_all_addresses_of_the_kind_it_is_asked_at() {
    let run = Test::new("plan --model M --models-file m.yaml --model-dir /m --prefill-workers 1 --decode-workers 2 --format json")
        .args(["--nodes", "fd00::1,10.0.0.2,::ffff:10.0.0.3"])
        .file("m.yaml", "M: {}")
        .any_stdout()
        .any_stderr()
        .run();
    let plan: Value = serde_json::from_str(&run.stdout).unwrap();
    let mut hosts = Vec::new();
    let mut look = |argv: &Value| {
        let words: Vec<&str> = argv
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for pair in words
            .windows(2)
            .filter(|pair| ["--host", "--prefill", "--decode"].contains(&pair[0]))
        {
            hosts.push(pair[1].to_owned());
        }
    };
    let ranks = plan["ranks"].as_array().unwrap();
    for worker in ranks
        .iter()
        .flat_map(|rank| rank["workers"].as_array().unwrap())
    {
        look(&worker["argv"]);
    }
    look(&ranks[0]["router"]["argv"]);
    assert_eq!(
        hosts,
        [
            "::",
            "0.0.0.0",
            "0.0.0.0",
            "[::]",
            "http://[fd00::1]:8010",
            "http://10.0.0.2:8020",
            "http://10.0.0.3:8020"
        ]
    );
}

#[test]
fn an_address_that_others_cannot_use_is_refused() {
    for (address, why) in [
        (
            "fe80::1%eth0",
            "an address of one link, which no URL can carry: give one that other machines can use",
        ),
        (
            "fe80::1",
            "an address of one link, which no URL can carry: give one that other machines can use",
        ),
        (
            "::",
            "which stands for all addresses of a machine, and is none",
        ),
        (
            "0.0.0.0",
            "which stands for all addresses of a machine, and is none",
        ),
        (
            "[fd00::1]:8000",
            "an address with a port: give the address alone",
        ),
        (
            "10.0.0.1:8000",
            "an address with a port: give the address alone",
        ),
    ] {
        for option in ["--nodes", "--node0-addr", "--host-ip"] {
            let run = Test::new("plan --model M --models-file m.yaml --model-dir /m")
                .args([option, address])
                .file("m.yaml", "M: {}")
                .status(2)
                .any_stderr()
                .run();
            assert_eq!(
                headlines(&run.stderr),
                [format!(
                    "error[invalid-setting]: `{option}` has `{address}`, {why}, found `{address}`"
                )]
            );
        }
    }
}

#[test]
fn a_server_that_listens_where_nobody_asks_is_refused_before_it_loads() {
    let [port] = ports("127.0.0.1");
    let run = node(&format!(
        "--no-check --nodes 127.0.0.1 --server-port {port}"
    ))
    .args(["--server-args", "--host ::1", "--", "true"])
    .status(2)
    .run();
    assert!(
        run.stderr.contains(
            "standalone-0 listens at ::1, and is asked at 127.0.0.1: it would never be heard"
        ),
        "{}",
        run.stderr
    );
    // A host of one's own wins where it can be reached.
    if ("localhost", 0).to_socket_addrs().is_ok() {
        let [port] = ports("127.0.0.1");
        node(&format!(
            "--no-check --nodes 127.0.0.1 --server-port {port}"
        ))
        .args(["--server-args", "--host 127.0.0.1", "--", "true"])
        .run();
    }
}
