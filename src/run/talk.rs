//! How our own lines look in a job's log: a time of day, the rank, what is wrong, what happened.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats `atom-launch 10:44:00Z rank 0: warning: …`.
#[derive(Debug, Clone, Copy)]
struct Format {
    rank: usize,
}

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
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let date = crate::domain::date::date(now);
        let time = date.split_once('T').map_or("", |(_, time)| time);
        let kind = match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        write!(out, "atom-launch {time} rank {}: {kind}", self.rank)?;
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}

/// Send all our lines through the queue before standard error, so that none of them ever waits for its reader.
pub fn to_stderr(rank: usize, quiet: bool) {
    let level = if quiet { Level::WARN } else { Level::INFO };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .event_format(Format { rank })
        .with_writer(super::console::stderr)
        .finish();
    // Whoever has set one already keeps it.
    let _ = tracing::subscriber::set_global_default(subscriber);
}
