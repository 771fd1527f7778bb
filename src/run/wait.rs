//! Waiting for URLs, with the same checks that a rank makes: for people's own scripts.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::event::{Answer, spoken};
use super::health::{Prober, Sink, Target};

/// How to wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For all of them together.
    pub timeout: Duration,
    /// Between two checks of one.
    pub interval: Duration,
    /// For one check.
    pub probe_timeout: Duration,
    /// Between two lines that say what is missing.
    pub heartbeat: Duration,
}

/// Why a wait ended without all answers, one line for each URL.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// Nothing was asked: these are no URLs.
    Usage(Vec<String>),
    /// These gave no good answer.
    Missing(Vec<String>),
}

/// Wait until every URL answers with a status from 200 to 299.
pub fn wait_for(
    urls: &[String],
    patience: Patience,
    mut say: impl FnMut(String),
) -> Result<(), Failed> {
    let targets: Vec<Result<Target, String>> = urls.iter().map(|url| Target::parse(url)).collect();
    let bad: Vec<String> = targets
        .iter()
        .filter_map(|one| one.as_ref().err().cloned())
        .collect();
    if !bad.is_empty() {
        return Err(Failed::Usage(bad));
    }
    let (sender, answers) = channel();
    let sink: Sink = Box::new(move |id, answer| sender.send((id, answer)).is_ok());
    let prober = Prober::start(patience.interval, patience.probe_timeout, sink)
        .map_err(|error| Failed::Missing(vec![error.to_string()]))?;
    for (id, target) in targets.into_iter().flatten().enumerate() {
        prober.watch(id, target);
    }
    let mut last: Vec<Option<Answer>> = vec![None; urls.len()];
    let begun = Instant::now();
    let mut next_line = begun + patience.heartbeat;
    while last.iter().any(|one| *one != Some(Answer::Ready)) {
        let now = Instant::now();
        let left = patience.timeout.saturating_sub(now.duration_since(begun));
        if left.is_zero() {
            return Err(Failed::Missing(missing(urls, &last)));
        }
        if now >= next_line {
            let so_far = spoken(now.duration_since(begun));
            say(format!(
                "waiting, {so_far} so far: {}",
                missing(urls, &last).join("; ")
            ));
            next_line = now + patience.heartbeat.max(Duration::from_millis(100));
        }
        match answers.recv_timeout(left.min(next_line.saturating_duration_since(now))) {
            Ok((id, answer)) => last[id] = Some(answer),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failed::Missing(missing(urls, &last)));
            }
        }
    }
    Ok(())
}

fn missing(urls: &[String], last: &[Option<Answer>]) -> Vec<String> {
    urls.iter()
        .zip(last)
        .filter(|(_, answer)| **answer != Some(Answer::Ready))
        .map(|(url, answer)| {
            let answer = answer
                .as_ref()
                .map_or_else(|| "no answer yet".to_owned(), Answer::to_string);
            format!("{}: {answer}", crate::domain::secret::hide_inside(url))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    const PATIENCE: Patience = Patience {
        timeout: Duration::from_mins(2),
        interval: Duration::from_millis(20),
        probe_timeout: Duration::from_secs(2),
        heartbeat: Duration::from_secs(30),
    };

    #[test]
    fn the_wait_ends_when_all_are_ready_and_names_those_that_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = format!("http://{}/health", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            }
        });
        assert_eq!(
            wait_for(std::slice::from_ref(&good), PATIENCE, |_| ()),
            Ok(())
        );
        let closed = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let bad = format!("http://{closed}/");
        let mut lines = Vec::new();
        let missing = Err(Failed::Missing(vec![format!("{bad}: connection refused")]));
        let mut wait = |seconds| {
            let short = Patience {
                timeout: Duration::from_secs_f64(seconds),
                heartbeat: Duration::from_millis(100),
                ..PATIENCE
            };
            wait_for(&[good.clone(), bad.clone()], short, |line| lines.push(line))
        };
        // A busy machine needs a while for the answers that are to be there when the time is up.
        assert!(
            [0.3, 3.0, 30.0]
                .into_iter()
                .any(|seconds| wait(seconds) == missing)
        );
        assert!(!lines.is_empty());
        assert!(wait_for(&["ftp://x".to_owned()], PATIENCE, |_| ()).is_err());
    }
}
