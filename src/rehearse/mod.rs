//! A whole job on one machine: every rank a real `node` process on its own loopback address, with a stand-in server and router.
//!
//! ```text
//! rehearse ─ stage: folder, addresses, ports, programs ─▶ cast: words of each rank ─▶ run: start, watch, end, report
//!    ranks ─ atom-launch node ─ stand-in server (python3) ─ engine      stand-in router (atomesh)      workload
//! ```
//!
//! All of these are this one program: under another name it plays another part ([`stand_in`]).

pub mod acting;
pub mod cast;
pub mod check;
pub mod conduct;
pub mod faults;
pub mod helpers;
pub mod http;
mod notices;
pub mod router;
pub mod run;
pub mod scene;
pub mod server;
pub mod stage;
pub mod sweep;
pub mod words;
pub mod workload;

use std::ffi::OsString;
use std::path::Path;

use nix::sys::signal::Signal;

use crate::exit;

pub use cast::{Look, environment};
pub use run::{Voice, rehearse};
pub use words::{Given, own_words};

/// Name under which this program is the interpreter that runs the server.
pub const PYTHON: &str = "atom-rehearse-python3";
/// Name under which it is the router.
pub const ROUTER: &str = "atom-rehearse-router";
/// Name under which it is the workload that is run when none is given.
pub const CHECK: &str = "atom-rehearse-check";
/// Name under which it notes the start of a workload and becomes it.
pub const WORKLOAD: &str = "atom-rehearse-workload";
/// Name under which it is a rank that ends with the rehearsal: parent's process id, then the words of `atom-launch`.
pub const RANK: &str = "atom-rehearse-rank";

/// Play the part that the program's name asks for; `Ok` gives the words of an ordinary start back.
pub fn stand_in(mut words: Vec<OsString>) -> Result<Vec<OsString>, u8> {
    let name = words.first().map(Path::new).and_then(Path::file_name);
    let Some(name) = name.and_then(|name| name.to_str()) else {
        return Ok(words);
    };
    if !name.starts_with("atom-rehearse-") {
        return Ok(words);
    }
    let text: Vec<String> = words
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match name {
        RANK if words.len() > 1 => {
            let parent = words.remove(1).into_string().unwrap_or_default();
            // A rank that outlived the rehearsal would hold its ports; TERM lets it take its own processes down.
            if helpers::die_with_parent(Signal::SIGTERM, Some(&parent)) {
                words[0] = "atom-launch".into();
                Ok(words)
            } else {
                Err(exit::BUG)
            }
        }
        PYTHON => Err(server::run(&text)),
        ROUTER => Err(router::run(&text)),
        CHECK => Err(check::run()),
        WORKLOAD => Err(workload::run(&words[1..])),
        helpers::ENGINE => Err(helpers::engine(text.first().map(String::as_str))),
        helpers::ORPHAN => Err(helpers::orphan(&text)),
        helpers::STRANGER => Err(helpers::stranger(&text)),
        _ => Ok(words),
    }
}
