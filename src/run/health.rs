//! Health checks: any number of endpoints on one thread, all at the same time.
//!
//! No proxy, no redirect, a time limit of its own for each check. A check that hangs does not hold up the next one: a
//! server that turns healthy is seen within one interval, whatever it did to earlier checks. No deadline is kept here and
//! nothing is decided: each answer goes to the sink as it comes.

mod attempt;
mod target;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use mio::{Poll, Token, Waker};

use super::event::Answer;
pub use target::Target;
use worker::Worker;

/// The token of the waker; those of checks count from 0.
const WAKE: Token = Token(usize::MAX);

/// What receives the answers; `false` ends the prober.
pub type Sink = Box<dyn Fn(usize, Answer) -> bool + Send>;

enum Order {
    Watch(usize, Target),
    Relax(usize),
    Unwatch(usize),
    End,
    Resolved(usize, String, io::Result<Vec<SocketAddr>>),
}

/// The thread that checks.
#[derive(Debug)]
pub struct Prober {
    orders: Sender<Order>,
    waker: Arc<Waker>,
}

impl Prober {
    /// Start the thread: each endpoint is asked once every `interval`, an answer may take `timeout`.
    pub fn start(interval: Duration, timeout: Duration, sink: Sink) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let (orders, inbox) = channel();
        let worker = Worker::new(
            poll,
            Arc::clone(&waker),
            (orders.clone(), inbox),
            (interval, timeout),
            sink,
        );
        std::thread::Builder::new()
            .name("health".to_owned())
            .stack_size(256 << 10)
            .spawn(move || worker.run())?;
        Ok(Self { orders, waker })
    }

    /// Ask an endpoint from now on. An id that is in use is replaced.
    pub fn watch(&self, id: usize, target: Target) {
        self.order(Order::Watch(id, target));
    }

    /// Ask it more rarely from now on, unless it refuses connections.
    pub fn relax(&self, id: usize) {
        self.order(Order::Relax(id));
    }

    /// Ask it no more.
    pub fn unwatch(&self, id: usize) {
        self.order(Order::Unwatch(id));
    }

    fn order(&self, order: Order) {
        // A prober that has ended answers nothing; whoever waits for answers has a deadline.
        let _ = self.orders.send(order);
        let _ = self.waker.wake();
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.order(Order::End);
    }
}

#[cfg(test)]
mod tests;
