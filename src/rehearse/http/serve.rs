//! Listening, connections, and a stop that lets the requests in flight end.

use std::io::{self, BufReader, BufWriter, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Exchange, Request};

/// A connection without a request for this long is closed.
const IDLE: Duration = Duration::from_mins(2);

/// The pages of a server.
pub trait Site: Send + Sync + 'static {
    /// Answer a request.
    fn answer(
        &self,
        request: &Request,
        exchange: &mut Exchange<'_, BufWriter<TcpStream>>,
    ) -> io::Result<()>;
}

/// Signals that end a server, as something to wait for.
#[derive(Debug)]
pub struct Stop {
    pipe: UnixStream,
    /// Without a writer the pipe would be at its end.
    _writer: UnixStream,
    which: Arc<AtomicUsize>,
}

impl Stop {
    /// From now on these signals end the server gracefully; before, they kill.
    pub fn on(signals: &[i32]) -> io::Result<Self> {
        let (pipe, writer) = UnixStream::pair()?;
        let which = Arc::new(AtomicUsize::new(0));
        for signal in signals {
            let number = usize::try_from(*signal).unwrap_or_default();
            signal_hook::flag::register_usize(*signal, Arc::clone(&which), number)?;
            signal_hook::low_level::pipe::register(*signal, writer.try_clone()?)?;
        }
        Ok(Self {
            pipe,
            _writer: writer,
            which,
        })
    }

    /// The signal that came last.
    pub fn signal(&self) -> i32 {
        i32::try_from(self.which.load(Ordering::SeqCst)).unwrap_or_default()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Counts the requests in flight.
#[derive(Debug, Default)]
pub struct Gate {
    closing: AtomicBool,
    inside: Mutex<usize>,
    left: Condvar,
}

/// A request in flight.
#[derive(Debug)]
pub struct Inside<'a>(&'a Gate);

impl Gate {
    fn count(&self) -> MutexGuard<'_, usize> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more request.
    pub fn enter(&self) -> Inside<'_> {
        *self.count() += 1;
        Inside(self)
    }

    /// How many requests are in flight.
    pub fn inside(&self) -> usize {
        *self.count()
    }

    /// Whether the server is being stopped.
    pub fn closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Wait until no request is in flight, or for as long as the limit; `true` when none is.
    pub fn drain(&self, limit: Option<Duration>) -> bool {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut count = self.count();
        while *count > 0 {
            let left = end.map_or(IDLE, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            count = self
                .left
                .wait_timeout(count, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |woken| woken.0);
        }
        true
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.left.notify_all();
    }
}

/// Open a port at an address or name.
pub fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let places: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let listener = TcpListener::bind(places.as_slice())?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answer until a signal comes; then the port is closed, and requests in flight go on in their threads.
pub fn serve(
    listener: TcpListener,
    site: &Arc<impl Site>,
    gate: &Arc<Gate>,
    stop: &Stop,
) -> io::Result<()> {
    loop {
        let mut fds = [
            PollFd::new(listener.as_fd(), PollFlags::POLLIN),
            PollFd::new(stop.fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) => {}
            Err(nix::errno::Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        }
        if fds[1]
            .revents()
            .is_some_and(|events| events.contains(PollFlags::POLLIN))
        {
            gate.closing.store(true, Ordering::SeqCst);
            drop(listener);
            return Ok(());
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let (site, gate) = (Arc::clone(site), Arc::clone(gate));
                let thread = std::thread::Builder::new().name("connection".to_owned());
                // A connection that fails is the client's loss, not the server's.
                let _ = thread.spawn(move || connection(stream, site.as_ref(), &gate));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Out of descriptors, or a client that went away: go on, without spinning.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn connection(stream: TcpStream, site: &impl Site, gate: &Gate) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = BufWriter::new(stream);
    loop {
        let request = match Request::read(&mut reader, &mut Direct(writer.get_ref())) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let request = Request {
                    method: String::new(),
                    path: String::new(),
                    headers: super::Headers::default(),
                    body: Vec::new(),
                    modern: true,
                };
                let mut exchange = Exchange {
                    writer: &mut writer,
                    request: &request,
                    keep_alive: false,
                };
                return exchange.error(400, "bad_request", &error.to_string());
            }
            Err(error) => return Err(error),
        };
        let inside = gate.enter();
        let mut exchange = Exchange {
            keep_alive: request.keeps_alive() && !gate.closing(),
            writer: &mut writer,
            request: &request,
        };
        let result = site.answer(&request, &mut exchange);
        let goes_on = exchange.keep_alive;
        drop(inside);
        result?;
        if !goes_on || gate.closing() {
            // Whatever the client still sends is read for a moment, so that closing does not reset the answer away.
            writer.get_ref().shutdown(std::net::Shutdown::Write)?;
            writer
                .get_ref()
                .set_read_timeout(Some(Duration::from_millis(200)))?;
            let _ = reader.get_mut().read(&mut [0; 1024]);
            return Ok(());
        }
    }
}

/// Writes past the buffer.
struct Direct<'a>(&'a TcpStream);

impl io::Write for Direct<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
