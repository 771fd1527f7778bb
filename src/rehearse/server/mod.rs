//! The stand-in server: takes the words of `python3 -m atom.entrypoints.openai_server`, and lives as that server does.
//!
//! Parsed as by the real parser; loads; binds the ports that the real one binds, in its order; answers; ends by TERM after a clean-up
//! and by INT with 0. It computes nothing.

mod arguments;
mod openai;
mod ports;

use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::SIGINT;

use super::acting::{Acting, say};
use super::helpers;
use super::http::{self, Gate, Stop};
use crate::exit;
use crate::render;
use crate::resolve::server::MODULE;
use arguments::Reading;

/// How long the engine may take to end.
const ENGINE_GRACE: Duration = Duration::from_secs(5);
/// Lines of progress while it loads.
const STEPS: u32 = 4;

/// Act as the Python interpreter that is asked to run the server.
pub fn run(words: &[String]) -> u8 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["-m", module, rest @ ..] if *module == MODULE => serve(rest),
        ["--version" | "-V"] => {
            // A reader that went away is no error.
            let _ = render::to_stdout(b"Python 3.12.1\n");
            exit::OK
        }
        _ => {
            say(&format!(
                "this is the stand-in of a rehearsal: it runs `-m {MODULE}` and nothing else"
            ));
            exit::USAGE
        }
    }
}

fn serve(words: &[&str]) -> u8 {
    let arguments = match arguments::read(words) {
        Reading::Serve(arguments) => arguments,
        Reading::Help(text) => {
            let _ = render::to_stdout(text.as_bytes());
            return exit::OK;
        }
        Reading::Refused(text) => {
            render::to_stderr(&text);
            return exit::USAGE;
        }
        Reading::Fails(text) => {
            say(&text);
            return exit::FOUND;
        }
    };
    let acting = match Acting::on_port(arguments.port) {
        Ok(acting) => acting,
        Err(code) => return code,
    };
    acting.lose_port();
    let _rendezvous = match ports::rendezvous(&arguments, acting.own()) {
        Ok(listener) => listener,
        Err(text) => {
            say(&text);
            return exit::FOUND;
        }
    };
    let mut engine = match helpers::start_engine() {
        Ok(engine) => engine,
        Err(error) => {
            say(&format!("rehearsal: no engine process: {error}"));
            return exit::BUG;
        }
    };
    acting.engine_is(i32::try_from(engine.id()).unwrap_or_default());
    load(&arguments.model, acting.load());
    while acting.never_ready() {
        std::thread::park();
    }
    let _handshake = ports::handshake(&arguments, acting.own());
    let code = answer(&arguments, &acting, &mut engine);
    end(&mut engine);
    match code {
        Ok(SIGINT) => exit::OK,
        Ok(signal) => {
            // As uvicorn does: clean up, then die of the signal after all.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            exit::BUG
        }
        Err(text) => {
            say(&text);
            exit::FOUND
        }
    }
}

fn load(model: &str, time: Duration) {
    let start = Instant::now();
    say(&format!(
        "[atom] stand-in server of a rehearsal: nothing is computed; loading {model}"
    ));
    for step in 1..=STEPS {
        let until = start + time / STEPS * step;
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        say(&format!(
            "[atom] loading safetensors checkpoint shards: {}% | {step}/{STEPS}",
            step * 100 / STEPS
        ));
    }
}

/// Serve until a signal comes; which one.
fn answer(
    arguments: &arguments::Arguments,
    acting: &Arc<Acting>,
    engine: &mut Child,
) -> Result<i32, String> {
    let stop = Stop::on(acting.stop_signals()).map_err(|error| error.to_string())?;
    let (host, port) = (acting.own().listen_at(&arguments.host), arguments.port);
    let listener = http::listen(host, port).map_err(|error| {
        format!(
            "ERROR:    [Errno {}] error while attempting to bind on address ('{}', {port}): {error}",
            error.raw_os_error().unwrap_or_default(),
            arguments.host
        )
    })?;
    acting.ready();
    say(&format!(
        "INFO:     Uvicorn running on http://{}:{port} (Press CTRL+C to quit)",
        arguments.host
    ));
    let gate = Arc::new(Gate::default());
    let site = openai::Server::new(arguments, Arc::clone(acting), engine.id());
    http::serve(listener, &Arc::new(site), &gate, &stop).map_err(|error| error.to_string())?;
    say("INFO:     Shutting down");
    gate.drain(None);
    Ok(stop.signal())
}

/// As the real one closes its engine: ask, wait, kill.
fn end(engine: &mut Child) {
    let pid = Pid::from_raw(i32::try_from(engine.id()).unwrap_or_default());
    let limit = Instant::now() + ENGINE_GRACE;
    let _ = kill(pid, Signal::SIGTERM);
    while matches!(engine.try_wait(), Ok(None)) {
        if Instant::now() >= limit {
            let _ = engine.kill();
            let _ = engine.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
