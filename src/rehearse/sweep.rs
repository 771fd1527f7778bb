//! Ends whatever a rehearsal has left behind: every process below this one, by its id.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

/// How long the sweep goes on.
const LIMIT: Duration = Duration::from_secs(5);

/// Parent of each process that can be seen.
fn parents() -> Vec<(i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            // The name may hold blanks and brackets; the last bracket ends it.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            Some((pid, fields.nth(1)?.parse().ok()?))
        })
        .collect()
}

/// All processes below this one.
fn descendants() -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, parent) in parents() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut queue = vec![getpid().as_raw()];
    while let Some(parent) = queue.pop() {
        // Taken out, so that a parent that changed meanwhile cannot make a circle.
        for child in children.remove(&parent).unwrap_or_default() {
            queue.push(child);
            found.push(child);
        }
    }
    found
}

/// Kill and collect everything below this process, which must be a subreaper; how many were still alive.
pub(super) fn sweep() -> usize {
    let end = Instant::now() + LIMIT;
    let mut killed: Vec<i32> = Vec::new();
    loop {
        let mut left = descendants();
        left.retain(|pid| {
            let id = Pid::from_raw(*pid);
            // Only our own children can be collected; one that is dead already needs no signal.
            !matches!(waitpid(id, Some(WaitPidFlag::WNOHANG)), Ok(status) if status.pid().is_some())
        });
        if left.is_empty() || Instant::now() >= end {
            return killed.len();
        }
        for pid in left {
            if !killed.contains(&pid) && kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok() {
                killed.push(pid);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
