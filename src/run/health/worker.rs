//! The thread that checks.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};

use super::attempt::{Attempt, Progress};
use super::{Order, Sink, Target, WAKE};
use crate::run::event::Answer;

/// So many checks of one endpoint may be open at the same time ...
const OVERLAP: usize = 10;
/// ... and so many of all endpoints together, one each always being allowed.
const OPEN: usize = 2000;
/// So many names are looked up at the same time.
const LOOKUPS: usize = 8;
/// One that is only kept in sight is asked once in so many intervals, but no more rarely than this.
const RARELY: u32 = 5;
const RAREST: Duration = Duration::from_secs(5);
/// A name is looked up again when it is this old and its addresses do not answer.
const STALE: Duration = Duration::from_secs(30);
/// An eager check is repeated this long after its first refusal, and twice as long after each further one.
const EAGER: Duration = Duration::from_millis(50);

/// An endpoint and the checks of it.
struct Watch {
    target: Target,
    addresses: Vec<SocketAddr>,
    asked: Option<Instant>,
    looking_up: bool,
    next: Instant,
    /// Pause after the next refusal, while it is shorter than the interval.
    soon: Option<Duration>,
    /// Whether it is only kept in sight.
    relaxed: bool,
    /// Whether it refused the last check.
    refused: bool,
    /// Open checks, oldest first.
    open: VecDeque<usize>,
}

/// All that the thread owns.
pub(super) struct Worker {
    poll: Poll,
    inbox: Receiver<Order>,
    /// For the threads that look up names.
    orders: Sender<Order>,
    waker: Arc<Waker>,
    interval: Duration,
    timeout: Duration,
    sink: Sink,
    watches: BTreeMap<usize, Watch>,
    attempts: Vec<Option<Attempt>>,
    free: Vec<usize>,
    lookups: usize,
}

impl Worker {
    /// `interval` and `timeout` of every check, in this order.
    pub(super) fn new(
        poll: Poll,
        waker: Arc<Waker>,
        (orders, inbox): (Sender<Order>, Receiver<Order>),
        (interval, timeout): (Duration, Duration),
        sink: Sink,
    ) -> Self {
        Self {
            poll,
            inbox,
            orders,
            waker,
            interval: interval.max(Duration::from_millis(10)),
            timeout,
            sink,
            watches: BTreeMap::new(),
            attempts: Vec::new(),
            free: Vec::new(),
            lookups: 0,
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        while self.take_orders() {
            let now = Instant::now();
            if !self.start_due(now) || !self.end_overdue(now) {
                return;
            }
            let wait = self.next_due(now);
            match self.poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    tracing::error!("health checks stop: {error}");
                    return;
                }
            }
            for event in &events {
                if event.token() != WAKE && !self.go_on(event.token().0) {
                    return;
                }
            }
        }
    }

    /// `false` when it is time to end.
    fn take_orders(&mut self) -> bool {
        loop {
            match self.inbox.try_recv() {
                Ok(Order::Watch(id, target)) => {
                    self.forget(id);
                    let watch = Watch {
                        addresses: target.literal().into_iter().collect(),
                        soon: target.eager.then_some(EAGER),
                        target,
                        asked: None,
                        looking_up: false,
                        next: Instant::now(),
                        relaxed: false,
                        refused: false,
                        open: VecDeque::new(),
                    };
                    self.watches.insert(id, watch);
                }
                Ok(Order::Relax(id)) => {
                    if let Some(watch) = self.watches.get_mut(&id) {
                        watch.relaxed = true;
                    }
                }
                Ok(Order::Unwatch(id)) => self.forget(id),
                Ok(Order::Resolved(id, host, result)) => self.resolved(id, &host, result),
                Err(TryRecvError::Empty) => return true,
                Ok(Order::End) | Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn forget(&mut self, id: usize) {
        if let Some(watch) = self.watches.remove(&id) {
            for key in watch.open {
                self.close(key);
            }
        }
    }

    fn close(&mut self, key: usize) {
        if self.attempts.get_mut(key).and_then(Option::take).is_some() {
            self.free.push(key);
        }
    }

    fn next_due(&self, now: Instant) -> Option<Duration> {
        let starts = self.watches.values().map(|watch| watch.next);
        let ends = self
            .attempts
            .iter()
            .flatten()
            .map(|attempt| attempt.deadline);
        let first = starts.chain(ends).min()?;
        // Whole milliseconds, rounded up: what is due within one of them is dealt with together.
        Some(first.saturating_duration_since(now) + Duration::from_millis(1))
    }

    fn start_due(&mut self, now: Instant) -> bool {
        let rarely = (self.interval * RARELY).min(RAREST).max(self.interval);
        let overlap = (OPEN / self.watches.len().max(1)).clamp(1, OVERLAP);
        let due: Vec<usize> = self
            .watches
            .iter()
            .filter(|(_, watch)| watch.next <= now)
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            let Some(watch) = self.watches.get_mut(&id) else {
                continue;
            };
            // Keep the rhythm, but never catch up on what was missed while we were stopped.
            let interval = if watch.relaxed && !watch.refused {
                rarely
            } else {
                self.interval
            };
            watch.next = (watch.next + interval).max(now + interval / 2);
            if watch.addresses.is_empty() {
                self.look_up(id, now);
            } else if watch.open.len() < overlap && !self.begin(id, 0, false, now) {
                return false;
            }
        }
        true
    }

    fn look_up(&mut self, id: usize, now: Instant) {
        let Some(watch) = self.watches.get_mut(&id) else {
            return;
        };
        if watch.looking_up || self.lookups >= LOOKUPS {
            return;
        }
        let (host, port) = (watch.target.host.clone(), watch.target.port);
        let (orders, waker) = (self.orders.clone(), Arc::clone(&self.waker));
        let started = std::thread::Builder::new()
            .name("lookup".to_owned())
            .stack_size(256 << 10)
            .spawn(move || {
                use std::net::ToSocketAddrs as _;
                let result = (host.as_str(), port).to_socket_addrs();
                let _ = orders.send(Order::Resolved(id, host, result.map(Iterator::collect)));
                let _ = waker.wake();
            });
        if started.is_ok() {
            watch.looking_up = true;
            watch.asked = Some(now);
            self.lookups += 1;
        }
    }

    fn resolved(&mut self, id: usize, host: &str, result: io::Result<Vec<SocketAddr>>) {
        self.lookups = self.lookups.saturating_sub(1);
        let Some(watch) = self
            .watches
            .get_mut(&id)
            .filter(|watch| watch.target.host == host)
        else {
            return;
        };
        watch.looking_up = false;
        match result {
            Ok(addresses) if !addresses.is_empty() => {
                if watch.addresses.is_empty() {
                    watch.next = Instant::now();
                }
                watch.addresses = addresses;
            }
            // Whether anybody still listens shows at the next answer.
            Ok(_) => {
                let _ = self.report(id, Answer::Unresolved("no address".into()));
            }
            Err(error) => {
                let _ = self.report(id, Answer::Unresolved(plain(&error)));
            }
        }
    }

    /// Start a check at one of the addresses. `false` when nobody listens to answers any more.
    fn begin(&mut self, id: usize, address: usize, fallback: bool, now: Instant) -> bool {
        let Some(watch) = self.watches.get(&id) else {
            return true;
        };
        let Some(place) = watch.addresses.get(address) else {
            return true;
        };
        let key = self.free.pop().unwrap_or(self.attempts.len());
        if key == self.attempts.len() {
            self.attempts.push(None);
        }
        let request = watch.target.request(fallback);
        let deadline = now + self.timeout;
        match Attempt::start(self.poll.registry(), Token(key), *place, request, deadline) {
            Ok(mut attempt) => {
                attempt.watch = id;
                attempt.address = address;
                attempt.fallback = fallback;
                self.attempts[key] = Some(attempt);
                if let Some(watch) = self.watches.get_mut(&id) {
                    watch.open.push_back(key);
                }
                true
            }
            Err(error) => {
                self.free.push(key);
                self.failed(id, address, fallback, &error, now)
            }
        }
    }

    /// The connection failed: try the next address of the name, or say so.
    fn failed(
        &mut self,
        id: usize,
        address: usize,
        fallback: bool,
        error: &io::Error,
        now: Instant,
    ) -> bool {
        let Some(watch) = self.watches.get_mut(&id) else {
            return true;
        };
        if address + 1 < watch.addresses.len() {
            return self.begin(id, address + 1, fallback, now);
        }
        if error.kind() == io::ErrorKind::ConnectionRefused
            && let Some(pause) = watch.soon
        {
            watch.next = watch.next.min(now + pause);
            watch.soon = Some(pause * 2).filter(|pause| *pause < self.interval);
        }
        let stale = watch
            .asked
            .is_some_and(|asked| now.duration_since(asked) > STALE);
        if stale {
            self.look_up(id, now);
        }
        let answer = match error.kind() {
            io::ErrorKind::ConnectionRefused => Answer::Refused,
            io::ErrorKind::TimedOut => Answer::Timeout,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Answer::Broken(plain(error)),
            _ => Answer::Unreachable(plain(error)),
        };
        self.report(id, answer)
    }

    /// A socket is ready for the next step of its check.
    fn go_on(&mut self, key: usize) -> bool {
        let Some(attempt) = self.attempts.get_mut(key).and_then(Option::as_mut) else {
            return true; // answered by an earlier event of the same batch
        };
        let answer = match attempt.go_on() {
            Progress::Waits => return true,
            Progress::Answered(answer) => answer,
            Progress::Failed(error) => {
                let (id, address, fallback) = (attempt.watch, attempt.address, attempt.fallback);
                self.settle(key);
                return self.failed(id, address, fallback, &error, Instant::now());
            }
        };
        let (id, address, fallback) = (attempt.watch, attempt.address, attempt.fallback);
        self.settle(key);
        let Some(watch) = self.watches.get(&id) else {
            return true;
        };
        if answer == Answer::Status(404) && !fallback && watch.target.fallback.is_some() {
            return self.begin(id, address, true, Instant::now());
        }
        self.report(id, answer)
    }

    /// A check is over; older ones of the same endpoint can only tell what is no longer so.
    fn settle(&mut self, key: usize) {
        let Some(attempt) = self.attempts.get(key).and_then(Option::as_ref) else {
            return;
        };
        let mut over = Vec::new();
        if let Some(watch) = self.watches.get_mut(&attempt.watch) {
            let count = watch
                .open
                .iter()
                .position(|one| *one == key)
                .map_or(0, |at| at + 1);
            over.extend(watch.open.drain(..count));
        }
        for old in over {
            self.close(old);
        }
    }

    fn end_overdue(&mut self, now: Instant) -> bool {
        let overdue: Vec<(usize, usize, bool)> = self
            .attempts
            .iter()
            .enumerate()
            .filter_map(|(key, attempt)| Some((key, attempt.as_ref()?)))
            .filter(|(_, attempt)| attempt.deadline <= now)
            .map(|(key, attempt)| (key, attempt.watch, attempt.is_connected()))
            .collect();
        for (key, id, connected) in overdue {
            if self.attempts[key].is_some() {
                self.settle(key);
                let answer = if connected {
                    Answer::Busy
                } else {
                    Answer::Timeout
                };
                if !self.report(id, answer) {
                    return false;
                }
            }
        }
        true
    }

    /// Hand on an answer; `false` when nobody listens to them any more.
    fn report(&mut self, id: usize, answer: Answer) -> bool {
        if let Some(watch) = self.watches.get_mut(&id) {
            watch.refused = answer == Answer::Refused;
            if watch.refused {
                // It may be gone: that must not take longer to be seen.
                watch.next = watch.next.min(Instant::now() + self.interval);
            }
        }
        (self.sink)(id, answer)
    }
}

/// An error in words, without the number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
