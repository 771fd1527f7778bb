//! The workers that the router knows: how they register, and whether they are healthy.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arguments::{Arguments, HealthChecks};
use crate::rehearse::acting::say;
use crate::rehearse::http::client::{Limits, ask};

/// What the real one adds to its time limit.
const STARTUP_EXTRA: Duration = Duration::from_mins(1);
/// Longest pause between two looks at a worker that is not there.
const LONGEST_PAUSE: u64 = 5;
/// Limits of the questions at the start.
const QUESTION: Limits = Limits {
    connect: Duration::from_secs(5),
    silence: Duration::from_secs(10),
};

/// One of the two roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Prefill,
    Decode,
}

/// A registered worker.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) url: String,
    pub(super) side: Side,
    /// Id of its model.
    pub(super) model: String,
    /// Sizes that a prefill server reports.
    pub(super) sizes: (u64, u64),
    healthy: AtomicBool,
    failures: AtomicU32,
}

impl Worker {
    pub(super) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::SeqCst)
    }
}

/// All registered workers.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) workers: Vec<Worker>,
}

impl Registry {
    /// Wait for every worker, then ask the prefill servers what they are.
    pub(super) fn register(arguments: &Arguments) -> Result<Self, String> {
        let limit = Instant::now() + arguments.startup + STARTUP_EXTRA;
        let wanted = |side: Side, urls: &[String]| -> Vec<(Side, String)> {
            urls.iter().map(|url| (side, url.clone())).collect()
        };
        let mut all = wanted(Side::Prefill, &arguments.prefill);
        all.extend(wanted(Side::Decode, &arguments.decode));
        let mut workers = std::thread::scope(|scope| {
            let jobs: Vec<_> = all
                .into_iter()
                .map(|(side, url)| scope.spawn(move || wait_for(side, url, limit)))
                .collect();
            // A thread that panicked has registered nothing.
            jobs.into_iter()
                .filter_map(|job| job.join().ok().flatten())
                .collect::<Vec<Worker>>()
        });
        for worker in workers.iter_mut().filter(|one| one.side == Side::Prefill) {
            worker.sizes = prefill_sizes(&worker.url)?;
        }
        if !workers.iter().any(|worker| worker.side == Side::Prefill) {
            return Err("ATOM PD mode requires at least one prefill worker".to_owned());
        }
        Ok(Self { workers })
    }

    /// Workers of a side that are healthy.
    pub(super) fn healthy(&self, side: Side) -> impl Iterator<Item = &Worker> {
        self.workers
            .iter()
            .filter(move |worker| worker.side == side && worker.healthy())
    }

    /// Look at every worker for ever.
    pub(super) fn watch(&self, checks: HealthChecks) {
        let limits = Limits {
            connect: checks.limit,
            silence: checks.limit,
        };
        loop {
            std::thread::sleep(checks.interval.max(Duration::from_millis(100)));
            for worker in &self.workers {
                let well = ask(&worker.url, "/health", None, limits)
                    .is_ok_and(|answer| answer.status < 400);
                let failures = if well {
                    0
                } else {
                    worker.failures.load(Ordering::SeqCst).saturating_add(1)
                };
                worker.failures.store(failures, Ordering::SeqCst);
                let healthy = failures < checks.failures;
                if worker.healthy.swap(healthy, Ordering::SeqCst) != healthy {
                    let state = if healthy {
                        "healthy again"
                    } else {
                        "unhealthy"
                    };
                    say(&format!("[mesh] worker {} is {state}", worker.url));
                }
            }
        }
    }
}

fn wait_for(side: Side, url: String, limit: Instant) -> Option<Worker> {
    let mut pause = 1;
    loop {
        match model_of(&url) {
            Ok(model) => {
                say(&format!(
                    "[mesh] worker {url} registered with model {model}"
                ));
                return Some(Worker {
                    url,
                    side,
                    model,
                    sizes: (1, 1),
                    healthy: AtomicBool::new(true),
                    failures: AtomicU32::new(0),
                });
            }
            Err(why) if Instant::now() >= limit => {
                say(&format!("[mesh] worker {url} was not there in time: {why}"));
                return None;
            }
            Err(_) => {}
        }
        let left = limit.saturating_duration_since(Instant::now());
        std::thread::sleep(Duration::from_secs(pause).min(left));
        pause = (pause + 1).min(LONGEST_PAUSE);
    }
}

fn model_of(url: &str) -> Result<String, String> {
    let health = ask(url, "/health", None, QUESTION).map_err(|error| error.to_string())?;
    if health.status >= 400 {
        return Err(format!("/health answered {}", health.status));
    }
    let models = json(url, "/v1/models")?;
    let id = models["data"][0]["id"].as_str();
    id.map(str::to_owned)
        .ok_or_else(|| "/v1/models names no model".to_owned())
}

fn json(url: &str, path: &str) -> Result<Value, String> {
    let mut answer = ask(url, path, None, QUESTION)
        .map_err(|error| format!("GET {url}{path} failed: {error}"))?;
    if answer.status >= 300 {
        return Err(format!("{url}{path} returned {}", answer.status));
    }
    answer
        .json()
        .map_err(|error| format!("parse {url}{path} response: {error}"))
}

/// Sizes of a prefill server, which must say that it is one.
fn prefill_sizes(url: &str) -> Result<(u64, u64), String> {
    let url = url.trim_end_matches('/');
    let info = json(url, "/kv_transfer_info")?;
    let tp = info["tp_size"]
        .as_u64()
        .ok_or_else(|| format!("missing tp_size in {url}/kv_transfer_info response"))?;
    if info["kv_role"] != "kv_producer" {
        return Err(format!(
            "{url} is listed as prefill, but its kv_role is {} and not kv_producer",
            info["kv_role"]
        ));
    }
    Ok((tp, info["dp_size"].as_u64().unwrap_or(1)))
}
