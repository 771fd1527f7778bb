//! The stand-in router: lives as the real one was measured to (`atomesh-flags.json` of the facts), and forwards completions.
//!
//! Metrics port first; HTTP port closed until every worker has registered and every prefill server says that it is one; then
//! `/health` and `/v1/models` are 200 whatever happens to the workers.

mod arguments;
mod registry;
mod relay;

use std::io::{self, BufWriter};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use super::acting::{Acting, say};
use super::http::{self, Exchange, Gate, Request, Site, Stop};
use super::scene::Own;
use crate::exit;
use crate::render;
use arguments::{Arguments, Reading};
use registry::Registry;

/// Exit code of a panic.
const PANIC: u8 = 101;

/// Act as the router.
pub fn run(words: &[String]) -> u8 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let arguments = match arguments::read(&words) {
        Reading::Route(arguments) => arguments,
        Reading::Print(text) => {
            // A reader that went away is no error.
            let _ = render::to_stdout(text.as_bytes());
            return exit::OK;
        }
        Reading::Refused(text) => {
            render::to_stderr(&text);
            return exit::USAGE;
        }
        Reading::Fails(text) => {
            say(&format!("Error: {text}"));
            return exit::FOUND;
        }
    };
    let acting = match Acting::on_port(arguments.port) {
        Ok(acting) => acting,
        Err(code) => return code,
    };
    if let Err(error) = metrics(&arguments, acting.own()) {
        say(&format!(
            "thread 'main' panicked at metrics.rs:\nfailed to bind the metrics port {}: {error}",
            arguments.metrics_port
        ));
        return PANIC;
    }
    acting.lose_port();
    match route(&arguments, &acting) {
        Ok(()) => exit::OK,
        Err(text) => {
            say(&format!("Error: {text}"));
            exit::FOUND
        }
    }
}

struct Metrics;

impl Site for Metrics {
    fn answer(
        &self,
        _: &Request,
        exchange: &mut Exchange<'_, BufWriter<TcpStream>>,
    ) -> io::Result<()> {
        let text = b"# TYPE mesh_rehearsal gauge\nmesh_rehearsal 1\n";
        exchange.bytes(200, "text/plain; version=0.0.4", text)
    }
}

/// Open the metrics port; it stays open until the process ends.
fn metrics(arguments: &Arguments, own: &Own) -> io::Result<()> {
    let listener = http::listen(
        own.listen_at(&arguments.metrics_host),
        arguments.metrics_port,
    )?;
    let stop = Stop::on(&[])?;
    let thread = std::thread::Builder::new().name("metrics".to_owned());
    thread.spawn(move || {
        http::serve(
            listener,
            &Arc::new(Metrics),
            &Arc::new(Gate::default()),
            &stop,
        )
    })?;
    Ok(())
}

fn route(arguments: &Arguments, acting: &Arc<Acting>) -> Result<(), String> {
    say("[mesh] stand-in router of a rehearsal");
    let registry = Arc::new(Registry::register(arguments)?);
    while acting.never_ready() {
        std::thread::park();
    }
    let system = |error: io::Error| error.to_string();
    let stop = Stop::on(acting.stop_signals()).map_err(system)?;
    // As the router does it: host and port are one text, so that an IPv6 address stands in brackets and a name is none.
    let place: SocketAddr = format!("{}:{}", arguments.host, arguments.port)
        .parse()
        .map_err(|error| format!("Invalid address: {error}"))?;
    let host = place.ip().to_string();
    let host = acting.own().listen_at(&host);
    let listener = http::listen(host, arguments.port).map_err(system)?;
    acting.ready();
    say(&format!("[mesh] listening on {host}:{}", arguments.port));
    if let Some(checks) = arguments.health {
        let registry = Arc::clone(&registry);
        let thread = std::thread::Builder::new().name("health".to_owned());
        thread
            .spawn(move || registry.watch(checks))
            .map_err(system)?;
    }
    let gate = Arc::new(Gate::default());
    let site = relay::Relay::new(arguments, registry, Arc::clone(acting));
    http::serve(listener, &Arc::new(site), &gate, &stop).map_err(system)?;
    say("[mesh] shutting down");
    if !gate.drain(Some(arguments.grace)) {
        say(&format!("[mesh] {} requests are cut off", gate.inside()));
    }
    Ok(())
}
