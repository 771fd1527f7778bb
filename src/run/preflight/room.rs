//! What the system may give too little of: room for words and variables, and open files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use nix::sys::resource::{Resource, getrlimit};

use crate::domain::diagnostic::{Diagnostic, Place};
use crate::domain::environment::Environment;
use crate::plan::node::NodeSpec;

use super::super::event::Proc;
use super::super::launch;
use super::LIMIT;

/// Longest single word or variable that Linux takes, its end included.
const LONGEST: usize = 128 << 10;
/// Most room for all of them, whatever the stack may be.
const MOST: u64 = 6 << 20;
/// Fewer open files than this no server has ever started with.
const FEW_FILES: u64 = 1024;

/// Processes whose words and variables `execve` would refuse: the workload's only once all servers have loaded.
pub(super) fn sizes(spec: &NodeSpec, found: &mut Vec<Diagnostic>) {
    let servers = (0..spec.workers.len()).map(Proc::Server);
    let router = spec.router.iter().map(|_| Proc::Router);
    let workload = spec.workload.iter().take(1).map(|_| Proc::Workload);
    for proc in servers.chain(router).chain(workload) {
        let name = match proc {
            Proc::Server(index) => spec.workers[index].name.as_str(),
            Proc::Router => "the router",
            Proc::Workload => "the workload",
        };
        let command = launch::command(spec, proc);
        if let Some(why) = too_large(&command, &spec.environment, room()) {
            let text = format!("{name} cannot be started: {why}");
            let finding = Diagnostic::error(LIMIT, Place::Input(name.to_owned()), text);
            found.push(finding.help("put what is so long into a file"));
        }
    }
}

/// A quarter of the stack, as Linux has it.
fn room() -> u64 {
    let stack = getrlimit(Resource::RLIMIT_STACK).map_or(MOST, |(soft, _)| soft);
    (stack / 4).clamp(LONGEST as u64, MOST)
}

fn too_large(command: &Command, inherited: &Environment, room: u64) -> Option<String> {
    let own = command.get_envs();
    let own = own.filter_map(|(name, value)| Some((name, value?)));
    let variables: BTreeMap<&OsStr, &OsStr> = inherited.iter().chain(own).collect();
    // Each has an end and a pointer to it.
    let cost = |length: usize| length + 1 + size_of::<usize>();
    let word = |word: &OsStr| ("an argument".to_owned(), word.len());
    let variable = |(name, value): (&&OsStr, &&OsStr)| {
        let length = name.len() + 1 + value.len();
        (format!("the variable {}", name.to_string_lossy()), length)
    };
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let all: Vec<(String, usize)> = words
        .map(word)
        .chain(variables.iter().map(variable))
        .collect();
    if let Some((what, length)) = all.iter().find(|(_, length)| length + 1 > LONGEST) {
        return Some(format!(
            "{what} has {length} bytes, and the system takes {} at most",
            LONGEST - 1
        ));
    }
    let total: usize = all.iter().map(|(_, length)| cost(*length)).sum();
    (total as u64 > room).then(|| {
        format!("arguments and environment need {total} bytes, and the system takes {room} at most")
    })
}

/// A hard limit of open files that no server can work with.
pub(super) fn open_files() -> Option<Diagnostic> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    (hard < FEW_FILES).then(|| {
        let text =
            format!("no process may have more than {hard} open files: a server needs thousands");
        Diagnostic::warning(LIMIT, Place::Input("ulimit".into()), text)
            .help("raise the hard limit (`ulimit -Hn`), or where SLURM sets it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_execve_refuses_is_told_and_what_it_takes_is_not() {
        let none = Environment::default();
        let told = |command: &Command, room| too_large(command, &none, room);
        let with = |length: usize| {
            let mut command = Command::new("/bin/true");
            command.env_clear().arg("x".repeat(length));
            command
        };
        assert_eq!(told(&with(LONGEST - 1), MOST), None);
        assert!(with(LONGEST - 1).status().unwrap().success());
        assert_eq!(
            told(&with(LONGEST), MOST).unwrap(),
            "an argument has 131072 bytes, and the system takes 131071 at most"
        );
        assert!(with(LONGEST).status().is_err());
        let mut command = with(1);
        command.env("BIG", "x".repeat(LONGEST));
        let why = told(&command, MOST).unwrap();
        assert_eq!(
            why,
            "the variable BIG has 131076 bytes, and the system takes 131071 at most"
        );
        let why = told(&with(1000), 1000).unwrap();
        assert!(why.starts_with("arguments and environment need "), "{why}");
    }
}
