//! Starts the ranks, hands on signals, shows their talk, ends everything, and says how it went. Decisions are in `conduct`.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use super::cast::{Cast, Look, NoCast, faults};
use super::conduct::{Conductor, Order};
use super::faults::{Fault, Kind};
use super::notices::{conclude, farewell, introduce};
use super::scene::{self, Scene};
use super::words::Given;
use super::{RANK, helpers, stage, sweep};
use crate::cli::RehearseArgs;
use crate::exit;
use crate::input::signals;
use crate::render;

/// How often wishes for a stranger are looked for, where there can be any.
const TICK: Duration = Duration::from_millis(20);
/// Longest sleep: an end that was missed is seen then.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// How long the last words of ended ranks may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Longest piece of a line that is shown at once.
const PIECE: u64 = 64 << 10;

/// What happens.
enum Event {
    Signal(i32),
    /// A rank's stream is at its end.
    Silent,
}

/// Standard error of a rehearsal. A reader that has stopped must not keep it from ending its ranks, so nobody waits for one but
/// those who hand on what the ranks say.
pub trait Voice: Sync {
    /// Our own words: a line, or several.
    fn say(&self, text: &str);
    /// A line of a rank, its end included; waits for the reader.
    fn pass_on(&self, line: &[u8]);
    /// Wait until all is written, but no longer than this.
    fn flush(&self, limit: Duration);
}

/// Rehearse a job whose ranks have this grace time; the exit code.
pub fn rehearse(
    args: &RehearseArgs,
    given: &Given,
    grace: Duration,
    look: &dyn Look,
    voice: &'static dyn Voice,
) -> anyhow::Result<u8> {
    let faults = match faults(&args.fault, &args.job) {
        Ok(faults) => faults,
        Err(findings) => return Ok(look.refuse(&findings)),
    };
    let mut cast = match Cast::new(args, given, &faults, look) {
        Ok(cast) => cast,
        Err(NoCast::Told(code)) => return Ok(code),
        Err(NoCast::Findings(findings)) => return Ok(look.refuse(&findings)),
        Err(NoCast::Machine(error)) => {
            render::to_stderr(&format!("error: {error:#}\n"));
            return Ok(exit::USAGE);
        }
    };
    stage::remove_left_behind(|line| voice.say(line));
    if !args.job.quiet {
        introduce(&cast, &faults, voice);
    }
    let mut company = Company::start(&cast, &faults, voice, args.job.quiet)?;
    let conductor = company.conduct(Conductor::new(cast.plan.ranks as usize, grace));
    let left = company.dismiss();
    drop(company);
    match left {
        0 => {}
        1 => voice.say("rehearsal: ended 1 process that a rank had left behind"),
        more => voice.say(&format!(
            "rehearsal: ended {more} processes that ranks had left behind"
        )),
    }
    let idle: Vec<&Fault> = faults
        .iter()
        .filter(|fault| !Scene::fault_mark(&cast.scene.folder, fault).exists())
        .collect();
    let code = match conductor.code() {
        exit::OK if !idle.is_empty() => exit::FOUND,
        code => code,
    };
    if code != exit::OK || !args.job.quiet {
        conclude(&cast, &conductor, voice);
    }
    for fault in idle {
        voice.say(&format!(
            "error: the fault `{fault}` never happened: the job was over before"
        ));
    }
    // Why it failed is in the logs.
    cast.folder.keep |= code != exit::OK && cast.own_logs;
    if code != exit::OK || !args.job.quiet {
        farewell(&cast, voice);
    }
    voice.flush(LAST_WORDS);
    Ok(code)
}

/// All processes of the rehearsal.
struct Company<'a> {
    cast: &'a Cast,
    voice: &'static dyn Voice,
    /// Whether the ends of ranks are left to the table.
    quiet: bool,
    started: Instant,
    ranks: Vec<Member>,
    strangers: Vec<Child>,
    /// Wishes for a stranger that are not granted yet: address, port, and the two files.
    wishes: Vec<(String, u16, (PathBuf, PathBuf))>,
    events: Receiver<Event>,
    /// Streams of ranks that are still open.
    talking: usize,
}

struct Member {
    child: Child,
    ended: bool,
}

impl Drop for Company<'_> {
    /// Whatever way this ends, nothing of ours stays: after a panic too.
    fn drop(&mut self) {
        self.order(Order::Kill);
        sweep::sweep();
    }
}

impl<'a> Company<'a> {
    fn start(
        cast: &'a Cast,
        faults: &[Fault],
        voice: &'static dyn Voice,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        // What a killed rank leaves behind comes to us.
        prctl::set_child_subreaper(true).context("cannot become the parent of orphans")?;
        let (sender, events) = mpsc::channel();
        listen(sender.clone())?;
        let stolen =
            |text: &String| Fault::parse(text).is_ok_and(|fault| fault.kind == Kind::PortStolen);
        let wishes = cast
            .scene
            .parts
            .iter()
            .filter(|part| !faults.is_empty() && part.faults.iter().any(stolen))
            .filter_map(|part| {
                let address = cast.scene.addresses.get(part.rank as usize)?.clone();
                let files = Scene::stranger(&cast.scene.folder, part.rank, part.port);
                Some((address, part.port, files))
            })
            .collect();
        let mut company = Self {
            cast,
            voice,
            quiet,
            started: Instant::now(),
            ranks: Vec::new(),
            strangers: Vec::new(),
            wishes,
            events,
            talking: 0,
        };
        for rank in 0..cast.plan.ranks {
            company.enter(rank, &sender)?;
        }
        Ok(company)
    }

    fn enter(&mut self, rank: u32, sender: &Sender<Event>) -> anyhow::Result<()> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0(RANK)
            .arg(std::process::id().to_string())
            .args(self.cast.words(rank))
            .env_clear()
            .envs(self.cast.environment.iter())
            .env(scene::SCENE, Scene::path(&self.cast.scene.folder))
            .env(scene::RANK, rank.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C reaches the rehearsal alone, which hands it on.
            .process_group(0);
        // Only rank 0 has a workload, whose output is data.
        command.stdout(if rank == 0 {
            Stdio::inherit()
        } else {
            Stdio::piped()
        });
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start rank {rank}"))?;
        let streams = [
            child
                .stdout
                .take()
                .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child
                .stderr
                .take()
                .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        self.ranks.push(Member {
            child,
            ended: false,
        });
        for stream in streams.into_iter().flatten() {
            let (sender, prefix, voice) = (sender.clone(), format!("[rank {rank}] "), self.voice);
            std::thread::Builder::new()
                .name(format!("talk-{rank}"))
                .spawn(move || {
                    show(stream, &prefix, voice);
                    // The rehearsal may be over.
                    let _ = sender.send(Event::Silent);
                })
                .context("no thread for a rank's output")?;
            self.talking += 1;
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Watch until all ranks have ended.
    fn conduct(&mut self, mut conductor: Conductor) -> Conductor {
        loop {
            self.collect(&mut conductor);
            if conductor.finished() {
                return conductor;
            }
            self.grant_wishes();
            if let Some(order) = conductor.due(self.now()) {
                self.order(order);
            }
            let longest = if self.wishes.is_empty() {
                LONGEST_SLEEP
            } else {
                TICK
            };
            let left = conductor
                .deadline()
                .map_or(longest, |at| at.saturating_sub(self.now()));
            match self.events.recv_timeout(left.min(longest)) {
                Ok(Event::Signal(SIGCHLD)) | Err(_) => {}
                Ok(Event::Silent) => self.talking -= 1,
                Ok(Event::Signal(number)) => {
                    self.voice.say(&format!(
                        "rehearsal: signal {number}, ending all ranks; once more to kill them"
                    ));
                    conductor.signal(self.now(), number);
                }
            }
        }
    }

    fn collect(&mut self, conductor: &mut Conductor) {
        let now = self.now();
        for (rank, member) in self
            .ranks
            .iter_mut()
            .enumerate()
            .filter(|(_, member)| !member.ended)
        {
            let code = match member.child.try_wait() {
                Ok(Some(status)) => exit::code_of(status),
                Ok(None) => continue,
                Err(_) => exit::BUG,
            };
            member.ended = true;
            if !self.quiet {
                self.voice.say(&format!(
                    "rehearsal: rank {rank} ended with {code} after {:.1} s",
                    now.as_secs_f64()
                ));
            }
            conductor.ended(now, rank, code);
        }
    }

    fn order(&self, order: Order) {
        let signal = match order {
            Order::Term => Signal::SIGTERM,
            Order::Kill => Signal::SIGKILL,
        };
        // An id is ours until we have collected the process.
        for member in self.ranks.iter().filter(|member| !member.ended) {
            let pid = Pid::from_raw(i32::try_from(member.child.id()).unwrap_or_default());
            if pid.as_raw() > 0 {
                let _ = kill(pid, signal);
            }
        }
    }

    fn grant_wishes(&mut self) {
        let strangers = &mut self.strangers;
        self.wishes.retain(|(address, port, (wanted, there))| {
            if !wanted.exists() {
                return true;
            }
            match helpers::start_stranger(address, *port, there) {
                Ok(child) => strangers.push(child),
                Err(error) => self.voice.say(&format!("rehearsal: no stranger: {error}")),
            }
            false
        });
    }

    /// End what is left; how many processes a rank had left behind.
    fn dismiss(&mut self) -> usize {
        for stranger in &mut self.strangers {
            // One that has ended already is collected all the same.
            let _ = stranger.kill();
            let _ = stranger.wait();
        }
        let left = sweep::sweep();
        let end = Instant::now() + LAST_WORDS;
        while self.talking > 0 {
            match self
                .events
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(Event::Silent) => self.talking -= 1,
                Ok(Event::Signal(_)) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        left
    }
}

/// Turn signals into events; nothing else happens on them from here on.
fn listen(sender: Sender<Event>) -> anyhow::Result<()> {
    let mut signals = Signals::new(signals::wanted()).context("cannot listen to signals")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for number in signals.forever() {
                if sender.send(Event::Signal(number)).is_err() {
                    return;
                }
            }
        })
        .context("no thread for signals")?;
    Ok(())
}

/// Show a rank's talk line by line.
fn show(stream: impl Read, prefix: &str, voice: &dyn Voice) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend_from_slice(prefix.as_bytes());
        match reader.by_ref().take(PIECE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        // Nobody to listen is no reason to stop reading: the rank would stop at a full pipe.
        voice.pass_on(&line);
    }
}
