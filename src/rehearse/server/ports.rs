//! The ports that a server binds besides its HTTP port (`kv-transfer.md` of the facts, section 3).

use std::net::TcpListener;

use super::arguments::Arguments;
use crate::input;
use crate::rehearse::acting::say;
use crate::rehearse::http;
use crate::rehearse::scene::Own;
use crate::resolve::topology::DP_MASTER;

/// The data-parallel rendezvous, with more than one data-parallel rank. Its failure ends the server.
pub(super) fn rendezvous(arguments: &Arguments, own: &Own) -> Result<Option<TcpListener>, String> {
    if arguments.inside_dp() < 2 {
        return Ok(None);
    }
    let environment = input::environment();
    let port = environment
        .get("ATOM_DP_MASTER_PORT")
        .map_or(Ok(DP_MASTER), str::parse);
    let port = port.map_err(|error| format!("ValueError: ATOM_DP_MASTER_PORT: {error}"))?;
    http::listen(own.listen_at(&arguments.host), port)
        .map(Some)
        .map_err(|error| {
            format!(
                "torch.distributed.DistNetworkError: The server socket has failed to listen on port {port}: {error}"
            )
        })
}

/// The side channel of a mooncake producer: a block of ports. A clash is one line in the log and nothing else.
pub(super) fn handshake(arguments: &Arguments, own: &Own) -> Vec<TcpListener> {
    let Some((first, count)) = arguments.handshake_block() else {
        return Vec::new();
    };
    let host = own.listen_at(&arguments.host);
    let mut bound = Vec::new();
    for port in u64::from(first)..u64::from(first) + count {
        let result = u16::try_from(port)
            .map_err(std::io::Error::other)
            .and_then(|port| http::listen(host, port));
        match result {
            Ok(listener) => bound.push(listener),
            Err(error) => say(&format!(
                "Exception in thread mooncake_handshake: zmq.error.ZMQError: {error} (addr='tcp://*:{port}')"
            )),
        }
    }
    bound
}
