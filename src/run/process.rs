//! Starting, signalling and collecting processes. The only file with `unsafe`.
//!
//! Every child leads a group of its own. A dead leader is first seen without being collected: its zombie keeps the group
//! id from being used again, so that KILL for the rest of the group can hit nobody else. We are the subreaper, so whatever
//! a child leaves behind (also in a session of its own) becomes our child and is swept at the end.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid, getppid, gettid};

use crate::domain::secret::shown_words;
use crate::domain::visible::visible;
use crate::exit;

use super::event::Exit;
use super::procfs;

/// A child that leads a group of its own.
#[derive(Debug)]
pub struct Group {
    child: Child,
    pid: Pid,
    ended: Option<Exit>,
    reaped: bool,
}

impl Group {
    /// Start a command in a group of its own. It dies when the calling thread ends, so only the main thread may call.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let parent = getpid();
        command.process_group(0);
        #[expect(
            unsafe_code,
            reason = "std has no other way to set the death signal in the child"
        )]
        // SAFETY: between fork and exec only async-signal-safe calls are made: prctl and getppid; nothing allocates.
        unsafe {
            command.pre_exec(move || {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have died before the line above; nobody would send the signal then.
                if getppid() == parent {
                    Ok(())
                } else {
                    Err(Errno::ESRCH.into())
                }
            });
        }
        let child = command.spawn()?;
        let id = i32::try_from(child.id()).unwrap_or(i32::MAX);
        Ok(Self {
            child,
            pid: Pid::from_raw(id),
            ended: None,
            reaped: false,
        })
    }

    /// Process id of the leader, which is the id of the group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Whether the leader has been collected.
    pub fn reaped(&self) -> bool {
        self.reaped
    }

    /// How the leader ended, once it has; it is not collected by this.
    pub fn ended(&mut self) -> Option<Exit> {
        if self.ended.is_some() || self.reaped {
            return self.ended;
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        self.ended = match waitid(Id::Pid(self.pid), flags) {
            Ok(WaitStatus::Exited(_, code)) => Some(Exit::Code(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(Exit::Signal(signal as i32)),
            Ok(_) | Err(Errno::EINTR) => None,
            // A real-time signal, which nix has no name for: only collecting tells its number.
            Err(_) => Some(
                self.reap()
                    .map_or(Exit::Code(i32::from(exit::BUG)), exit_of),
            ),
        };
        self.ended
    }

    /// Whether nobody but the leader lives in the group.
    pub fn alone(&self) -> bool {
        !procfs::all()
            .iter()
            .any(|one| one.group == self.pid() && one.pid != self.pid() && one.alive())
    }

    /// Send a signal to the leader.
    pub fn signal_leader(&self, signal: Signal) {
        if !self.reaped {
            // It may be dead already; then there is nothing to tell it.
            let _ = kill(self.pid, signal);
        }
    }

    /// Send a signal to everybody in the group.
    pub fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            let _ = killpg(self.pid, signal);
        }
    }

    /// KILL what remains of the group, then collect the leader. Blocks only while the leader still dies.
    pub fn reap(&mut self) -> Option<ExitStatus> {
        self.signal_group(Signal::SIGKILL);
        let status = self.child.wait().ok();
        self.reaped = true;
        status
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt as _;
    match status.signal() {
        Some(signal) => Exit::Signal(signal),
        None => Exit::Code(status.code().unwrap_or(0)),
    }
}

/// Make whatever our descendants leave behind our own children. `false` where the kernel cannot.
pub fn become_subreaper() -> bool {
    prctl::set_child_subreaper(true).is_ok()
}

/// Whether this is the main thread: children die with the thread that started them.
pub fn on_main_thread() -> bool {
    gettid() == getpid()
}

/// Our adopted children: everything below us that we did not start ourselves and that was not there before.
#[derive(Debug)]
pub struct Orphans {
    /// Children that the program which became us had already: none of ours.
    before: BTreeSet<(i32, u64)>,
    own_job: Option<String>,
}

impl Orphans {
    /// Note whom we have as descendants before anything is started. `own_job` is the SLURM job that we are a part of.
    pub fn note_strangers(own_job: Option<&str>) -> Self {
        let before = procfs::descendants(getpid().as_raw(), &procfs::all());
        Self {
            before: before.iter().map(|one| (one.pid, one.start)).collect(),
            own_job: own_job.map(str::to_owned),
        }
    }

    /// Collect adopted children that are dead. `groups` are the leaders, which are collected elsewhere.
    pub fn collect(&self, groups: &[i32]) {
        loop {
            let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
            let pid = match waitid(Id::All, flags) {
                Ok(status) => status.pid(),
                // A real-time signal killed one; the look at /proc below finds it.
                Err(Errno::EINVAL) => None,
                Err(_) => return,
            };
            match pid.map(Pid::as_raw) {
                Some(pid) if !groups.contains(&pid) => collect_one(pid),
                // A dead leader that is not yet to be collected hides those behind it.
                Some(_) => return self.collect_seen(groups),
                None => return,
            }
        }
    }

    fn collect_seen(&self, groups: &[i32]) {
        for one in self.children(groups) {
            if !one.alive() {
                collect_one(one.pid);
            }
        }
    }

    fn children(&self, groups: &[i32]) -> Vec<procfs::Stat> {
        let me = getpid().as_raw();
        procfs::all()
            .into_iter()
            .filter(|one| one.parent == me)
            .filter(|one| {
                !self.before.contains(&(one.pid, one.start)) && !groups.contains(&one.pid)
            })
            .collect()
    }

    /// KILL every adopted child and collect it, generation by generation: a killed parent's children come to us.
    /// Only our own children are signalled: no id of theirs can be somebody else's before we collect it.
    /// Returns what was found alive, and ends after the time limit whatever happens.
    pub fn sweep(&self, groups: &[i32], limit: Duration) -> Vec<String> {
        let end = Instant::now() + limit;
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        loop {
            let children = self.children(groups);
            if children.is_empty() || Instant::now() >= end {
                return found;
            }
            for child in children {
                if child.alive() && known.insert((child.pid, child.start)) {
                    found.push(format!(
                        "{} ({})",
                        child.pid,
                        describe(child.pid, self.own_job.as_deref())
                    ));
                }
                let _ = kill(Pid::from_raw(child.pid), Signal::SIGKILL);
                collect_one(child.pid);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn collect_one(pid: i32) {
    // Whether it was there to be collected shows at the next look.
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
}

/// A process's command line, short and without secrets, and its SLURM job where that is not `own_job`.
pub fn describe(pid: i32, own_job: Option<&str>) -> String {
    let line = procfs::command_line(pid);
    let words = shown_words(line.iter().map(String::as_str));
    let text = visible(&words.join(" ")).into_owned();
    let text = match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    // Whose it is: two jobs may have met on one machine.
    match procfs::variable(pid, "SLURM_JOB_ID") {
        Some(job) if own_job != Some(&job) => {
            format!("{text} (SLURM job {})", job.escape_debug())
        }
        _ => text,
    }
}
