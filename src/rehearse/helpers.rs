//! The small processes of a rehearsal: engines, orphans and the stranger. Each is this program again under another name.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid, setsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::http::{self, Exchange, Gate, Request, Site, Stop};
use crate::exit;
use crate::render;

/// Name of an engine process.
pub const ENGINE: &str = "atom-rehearse-engine";
/// Name of an orphan, and of the process that leaves it.
pub const ORPHAN: &str = "atom-rehearse-orphan";
/// Name of the stranger.
pub const STRANGER: &str = "atom-rehearse-stranger";

/// Nothing that is left behind on purpose lives longer, whatever happens.
const ORPHAN_LIFE: Duration = Duration::from_mins(10);

/// This program under another name.
fn again(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).stdin(Stdio::null());
    command
}

/// Start an engine that lives no longer than the calling thread: call it from the main one.
pub fn start_engine() -> io::Result<Child> {
    again(ENGINE).arg(getpid().to_string()).spawn()
}

/// Ask for this signal when the parent ends; `false` when it is gone already.
pub fn die_with_parent(signal: Signal, parent: Option<&str>) -> bool {
    let asked = prctl::set_pdeathsig(signal).is_ok();
    let same = parent.is_none_or(|parent| parent == getppid().to_string());
    asked && same
}

/// As an engine of the real server: it ends with its parent or by TERM, and leaves INT to the parent.
pub fn engine(parent: Option<&str>) -> u8 {
    if !die_with_parent(Signal::SIGKILL, parent) || ignore(&[SIGINT]).is_err() {
        return exit::BUG;
    }
    loop {
        std::thread::park();
    }
}

fn ignore(signals: &[i32]) -> io::Result<()> {
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Leave an orphan: a process whose parent is gone and which ignores polite signals.
pub fn leave_orphan(own_session: bool) -> io::Result<()> {
    let session = if own_session { "session" } else { "group" };
    again(ORPHAN).args(["parent", session]).status()?;
    Ok(())
}

/// The parent that ends at once, or the orphan itself.
pub fn orphan(words: &[String]) -> u8 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["parent", session] => match again(ORPHAN).args(["child", session]).spawn() {
            Ok(_) => exit::OK,
            Err(_) => exit::BUG,
        },
        ["child", session] => {
            if *session == "session" && setsid().is_err()
                || ignore(&[SIGTERM, SIGINT, SIGHUP]).is_err()
            {
                return exit::BUG;
            }
            std::thread::sleep(ORPHAN_LIFE);
            exit::OK
        }
        _ => exit::USAGE,
    }
}

/// Start the stranger from the main thread of the rehearsal.
pub fn start_stranger(address: &str, port: u16, there: &Path) -> io::Result<Child> {
    again(STRANGER)
        .args([&getpid().to_string(), address, &port.to_string()])
        .arg(there)
        .stdout(Stdio::null())
        .spawn()
}

struct Everything;

impl Site for Everything {
    fn answer(
        &self,
        _: &Request,
        exchange: &mut Exchange<'_, io::BufWriter<std::net::TcpStream>>,
    ) -> io::Result<()> {
        exchange.json(
            200,
            &serde_json::json!({"status": "ok", "who": "a stranger"}),
        )
    }
}

/// Take a port that is somebody else's, and answer 200 to everything.
pub fn stranger(words: &[String]) -> u8 {
    let [parent, address, port, there] = words else {
        return exit::USAGE;
    };
    if !die_with_parent(Signal::SIGKILL, Some(parent)) {
        return exit::BUG;
    }
    let taken = port.parse().map_err(io::Error::other).and_then(|port| {
        let listener = http::listen(address, port)?;
        let stop = Stop::on(&[SIGTERM])?;
        std::fs::write(there, "")?;
        http::serve(
            listener,
            &Arc::new(Everything),
            &Arc::new(Gate::default()),
            &stop,
        )
    });
    match taken {
        Ok(()) => exit::OK,
        Err(error) => {
            render::to_stderr(&format!(
                "rehearsal: the stranger cannot have {address}:{port}: {error}\n"
            ));
            exit::FOUND
        }
    }
}
