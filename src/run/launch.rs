//! The commands of a rank's processes as the system gets them: words, variables, pipes, log.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::domain::command;
use crate::domain::secret::shown_words;
use crate::input::program::Failure;
use crate::plan::node::NodeSpec;

use super::event::Proc;
use super::health::Target;
use super::logs::{Log, Passage};
use super::manifest::{Process, Variable};
use super::process::Group;

/// Log file of a process.
fn log_path(spec: &NodeSpec, proc: Proc) -> PathBuf {
    let name = match proc {
        Proc::Server(index) => spec
            .workers
            .get(index)
            .map_or_else(String::new, |one| one.name.clone()),
        Proc::Router => format!("router-{}", spec.rank),
        Proc::Workload => format!("workload-{}", spec.rank),
    };
    spec.log_dir.join(format!("{name}.log"))
}

/// The record of a process for the manifest, before it is started.
pub fn record(spec: &NodeSpec, proc: Proc) -> Process {
    let path = log_path(spec, proc);
    let set = variables(spec, proc);
    let models = &spec.job.models_file;
    let shown: Vec<Variable> = set
        .iter()
        .map(|(name, value, source)| Variable::new(name, value, source))
        .collect();
    match (proc, command_of(spec, proc)) {
        (Proc::Server(index), Some(command)) => {
            Process::of(&spec.workers[index].name, command, models, &shown, &path)
        }
        (_, Some(command)) => Process::of("router", command, models, &shown, &path),
        (_, None) => {
            let words: Vec<_> = spec
                .workload
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            Process {
                name: "workload".to_owned(),
                argv: shown_words(words.iter().map(AsRef::as_ref)),
                env: shown,
                log: path.to_string_lossy().into_owned(),
                pid: None,
                started_s: 0.0,
                ended_s: None,
                exit: None,
            }
        }
    }
}

/// The PATH on which the system looks for a process's program: its own, where it has one.
pub fn path_of(spec: &NodeSpec, proc: Proc) -> Option<&OsStr> {
    let own = if let Some(command) = command_of(spec, proc) {
        let mut own = command.env.iter();
        own.rfind(|var| var.name == "PATH").map(|var| &var.value)
    } else {
        let mut own = spec.workload_env.iter();
        own.rfind(|(name, _)| name == "PATH")
            .map(|(_, value)| value)
    };
    own.map(OsStr::new).or_else(|| spec.environment.raw("PATH"))
}

fn command_of(spec: &NodeSpec, proc: Proc) -> Option<&command::Command> {
    match proc {
        Proc::Server(index) => spec.workers.get(index).map(|worker| &worker.command),
        Proc::Router => spec.router.as_ref().map(|router| &router.command),
        Proc::Workload => None,
    }
}

/// Variables that the engine sets on top of a command's own: name, value, origin. Later ones win.
fn variables(spec: &NodeSpec, proc: Proc) -> Vec<(String, String, &'static str)> {
    let mut set = Vec::new();
    let mut own: Vec<(&str, &str)> = Vec::new();
    if let Some(command) = command_of(spec, proc) {
        own.extend(
            command
                .env
                .iter()
                .map(|var| (var.name.as_str(), var.value.as_str())),
        );
    } else {
        if let Some(url) = spec.client_url() {
            let port = Target::parse(&url)
                .map_or_else(|_| String::new(), |target| target.port.to_string());
            set.push(("ROUTER_URL".to_owned(), url, "derived"));
            set.push(("ROUTER_PORT".to_owned(), port, "derived"));
        }
        set.push((
            "MODEL_PATH".to_owned(),
            spec.job.model_path.clone(),
            "derived",
        ));
        own.extend(
            spec.workload_env
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        set.extend(
            own.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned(), "job")),
        );
    }
    // Programs read one spelling or the other, and the router reads both.
    for name in ["NO_PROXY", "no_proxy"] {
        let value = no_proxy(spec, &own, name);
        set.push((name.to_owned(), value, "derived"));
    }
    set
}

/// What is excepted from proxies already, and the addresses of the job.
fn no_proxy(spec: &NodeSpec, own: &[(&str, &str)], name: &str) -> String {
    let other = if name == "NO_PROXY" {
        "no_proxy"
    } else {
        "NO_PROXY"
    };
    let value = |name: &str| {
        let given = own
            .iter()
            .rfind(|(own, _)| *own == name)
            .map(|(_, value)| (*value).to_owned());
        given
            .or_else(|| spec.environment.get(name).map(str::to_owned))
            .filter(|value| !value.is_empty())
    };
    let before = value(name).or_else(|| value(other)).unwrap_or_default();
    let mut names: Vec<String> = before
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let hosts = spec
        .all_workers
        .iter()
        .map(|one| one.health_url.as_str())
        .chain(spec.workers.iter().map(|one| one.health_url.as_str()))
        .filter_map(|url| Some(Target::parse(url).ok()?.host));
    let addresses = spec
        .workers
        .iter()
        .map(|one| one.address.clone())
        .chain(spec.router.iter().map(|router| router.address.clone()))
        .chain(
            spec.router_address
                .iter()
                .map(|router| router.address.clone()),
        )
        .chain(["127.0.0.1".to_owned(), "localhost".to_owned()]);
    for host in hosts.chain(addresses) {
        if !names.contains(&host) {
            names.push(host);
        }
    }
    names.join(",")
}

/// Start a process with its output going into a log.
pub fn start(spec: &NodeSpec, proc: Proc, name: &str) -> Result<(Group, Log), Failure> {
    let mut command = command(spec, proc);
    command.stdin(Stdio::null());
    let program = command.get_program().to_owned();
    let system = |error| Failure::unusable(format!("no pipe for its output: {error}"));
    let mut log = Log::create(&log_path(spec, proc));
    // Servers write both streams into one pipe: their lines stay in order. The workload's are told apart.
    let pipes = pipes(&mut command, proc, spec.quiet).map_err(system)?;
    let group = Group::spawn(&mut command)
        .map_err(|error| Failure::of_error(&program, path_of(spec, proc), &error))?;
    // The command holds the writing ends; without this the pipes would never end.
    drop(command);
    for (pipe, passage) in pipes {
        // A child that nobody listens to would stop at a full pipe; without the pipe it is told so by the system.
        if let Err(error) = log.follow(name, pipe, passage) {
            tracing::error!("cannot follow the output of {name}: {error}");
        }
    }
    Ok((group, log))
}

/// Words and variables of a process.
pub(super) fn command(spec: &NodeSpec, proc: Proc) -> Command {
    let mut command = if let Some(plain) = command_of(spec, proc) {
        let mut command = Command::new(&plain.program);
        command.args(plain.words());
        command.envs(plain.env.iter().map(|var| (&var.name, &var.value)));
        command
    } else {
        let mut words = spec.workload.iter();
        let mut command =
            Command::new(words.next().map_or(OsStr::new(""), |word| word.as_os_str()));
        command.args(words);
        command
    };
    command.envs(
        variables(spec, proc)
            .into_iter()
            .map(|(name, value, _)| (name, value)),
    );
    command
}

fn pipes(command: &mut Command, proc: Proc, quiet: bool) -> io::Result<Vec<(OwnedFd, Passage)>> {
    let (reader, writer) = io::pipe()?;
    if proc == Proc::Workload {
        let (errors, error_writer) = io::pipe()?;
        command.stdout(writer).stderr(error_writer);
        return Ok(vec![
            (reader.into(), Passage::Stdout),
            (errors.into(), Passage::Stderr),
        ]);
    }
    command.stdout(writer.try_clone()?).stderr(writer);
    let passage = if quiet {
        Passage::FileOnly
    } else {
        Passage::Prefixed
    };
    Ok(vec![(reader.into(), passage)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(more: &str) -> NodeSpec {
        let text = format!(
            r#"{{"rank": 0, "job": {{"model": "M", "model_path": "/m", "ranks": 2}}, "log_dir": "logs",
                "workload": ["sh", "--api-key", "sk"], "workload_env": [["IS_MTP", "true"], ["NO_PROXY", "corp"]],
                "all_workers": [{{"name": "decode-1", "role": "decode", "rank": 1, "health_url": "http://[fd00::1]:8020/health"}}],
                "router": {{"address": "10.0.0.1", "port": 8000, "command": {{"argv": ["atomesh"], "env": {{"no_proxy": "a, b"}}}}}}
                {more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn value(spec: &NodeSpec, proc: Proc, name: &str) -> String {
        let all = variables(spec, proc);
        all.into_iter().rfind(|(own, _, _)| own == name).unwrap().1
    }

    #[test]
    fn the_workload_learns_where_to_go_and_which_hosts_need_no_proxy() {
        let spec = spec("");
        assert_eq!(
            value(&spec, Proc::Workload, "ROUTER_URL"),
            "http://10.0.0.1:8000"
        );
        assert_eq!(value(&spec, Proc::Workload, "ROUTER_PORT"), "8000");
        assert_eq!(value(&spec, Proc::Workload, "MODEL_PATH"), "/m");
        assert_eq!(value(&spec, Proc::Workload, "IS_MTP"), "true");
        let hosts = "fd00::1,10.0.0.1,127.0.0.1,localhost";
        assert_eq!(
            value(&spec, Proc::Workload, "NO_PROXY"),
            format!("corp,{hosts}")
        );
        assert_eq!(
            value(&spec, Proc::Workload, "no_proxy"),
            format!("corp,{hosts}")
        );
        assert_eq!(
            value(&spec, Proc::Router, "no_proxy"),
            format!("a,b,{hosts}")
        );
        let mut alone = spec;
        alone.workload_env.clear();
        alone.environment.insert("no_proxy", "inherited");
        assert_eq!(
            value(&alone, Proc::Workload, "NO_PROXY"),
            format!("inherited,{hosts}")
        );
    }

    #[test]
    fn the_record_of_the_workload_hides_its_key() {
        assert_eq!(
            record(&spec(""), Proc::Workload).argv,
            ["sh", "--api-key", "***"]
        );
    }
}
