//! How our own lines look on standard error, and how many there are: a time of day and the rank where there is one, what is wrong, what
//! happened.
//!
//! The levels are those of `tracing`: error, warning, info for what everybody wants to know of a job; debug for where things come from and
//! what happens to processes; trace for every question and answer.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::console::{self, Console};
use crate::domain::date::date;

/// The rank whose life this process lives, once that is known.
static RANK: OnceLock<usize> = OnceLock::new();

/// Formats `atom-launch: warning: …`, and for a rank `atom-launch 10:44:00Z rank 0: warning: …`; with milliseconds among many lines.
#[derive(Debug, Clone, Copy)]
struct Format;

impl<S, N> FormatEvent<S, N> for Format
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        out.write_str("atom-launch")?;
        if let Some(rank) = RANK.get() {
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let date = date(now);
            let time = date.split_once('T').map_or("", |(_, time)| time);
            if LevelFilter::current() >= Level::DEBUG {
                let seconds = time.trim_end_matches('Z');
                write!(out, " {seconds}.{:03}Z rank {rank}", now.subsec_millis())?;
            } else {
                write!(out, " {time} rank {rank}")?;
            }
        }
        out.write_str(match *event.metadata().level() {
            Level::ERROR => ": error: ",
            Level::WARN => ": warning: ",
            Level::INFO => ": ",
            Level::DEBUG => ": debug: ",
            Level::TRACE => ": trace: ",
        })?;
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}

/// Where lines go: a rank's through the queue, so that none of them ever waits for its reader; others are there before what follows them.
enum Out {
    Direct(io::Stderr),
    Queue(&'static Console),
}

impl Write for Out {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(stderr) => stderr.write(text),
            Self::Queue(queue) => queue.write(text),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn out() -> Out {
    match RANK.get() {
        Some(_) => Out::Queue(console::stderr()),
        None => Out::Direct(io::stderr()),
    }
}

/// Say what is at least this important from now on.
pub fn to_stderr(most: LevelFilter) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(most)
        .event_format(Format)
        .with_writer(out)
        .finish();
    // Whoever has set one already keeps it.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// From now on the lines are those of a rank.
pub fn of_rank(rank: usize) {
    // A process lives the life of one rank.
    let _ = RANK.set(rank);
}
