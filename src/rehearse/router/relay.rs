//! The router's pages, and the way of a completion: one token from a prefill server, the rest from a decode server.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, BufWriter, Read as _, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::registry::{Registry, Side, Worker};
use crate::rehearse::acting::{Acting, say};
use crate::rehearse::http::client::{Answer, Limits, ask};
use crate::rehearse::http::{Exchange, Request, Site};

const CONNECT: Duration = Duration::from_secs(10);

/// The router's pages.
#[derive(Debug)]
pub(super) struct Relay {
    registry: Arc<Registry>,
    acting: Arc<Acting>,
    policies: [String; 2],
    silence: Duration,
    turn: AtomicUsize,
}

/// A request that ends here: status, code, words.
struct Refusal(u16, &'static str, String);

impl Relay {
    pub(super) fn new(arguments: &Arguments, registry: Arc<Registry>, acting: Arc<Acting>) -> Self {
        Self {
            registry,
            acting,
            policies: [
                arguments.prefill_policy.clone(),
                arguments.decode_policy.clone(),
            ],
            silence: arguments.silence,
            turn: AtomicUsize::new(0),
        }
    }

    fn ready(&self) -> bool {
        let some = |side| self.registry.healthy(side).next().is_some();
        some(Side::Prefill) && some(Side::Decode)
    }

    fn models(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = Vec::new();
        for worker in &self.registry.workers {
            if !ids.contains(&worker.model.as_str()) {
                ids.push(&worker.model);
            }
        }
        ids
    }

    fn choose(&self, side: Side, model: &str) -> Result<&Worker, Refusal> {
        let fitting: Vec<&Worker> = self
            .registry
            .healthy(side)
            .filter(|worker| worker.model == model)
            .collect();
        let policy = &self.policies[usize::from(side == Side::Decode)];
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let number = if policy == "random" {
            // A new hasher has random keys.
            usize::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap_or(turn)
        } else {
            // Two choices a request: the turn goes up by two.
            turn / 2
        };
        let (code, role) = match side {
            Side::Prefill => ("no_prefill_workers", "prefill"),
            Side::Decode => ("no_decode_workers", "decode"),
        };
        fitting
            .get(number.checked_rem(fitting.len()).unwrap_or(0))
            .copied()
            .ok_or_else(|| {
                Refusal(
                    503,
                    code,
                    format!("No available {role} workers for model: {model}"),
                )
            })
    }

    fn ask(&self, worker: &Worker, path: &str, body: &Value) -> io::Result<Answer> {
        let limits = Limits {
            connect: CONNECT,
            silence: self.silence,
        };
        ask(&worker.url, path, Some(body.to_string().as_bytes()), limits)
    }

    /// Prefill, then the open answer of the decode server and whether it streams.
    fn dispatch(&self, path: &str, body: &[u8]) -> Result<(Answer, bool), Refusal> {
        let bad = |text: String| Refusal(400, "invalid_request", text);
        let asked: Value = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the body is no JSON: {error}")))?;
        let model = asked["model"]
            .as_str()
            .ok_or_else(|| bad("`model` is missing".to_owned()))?;
        if !self.models().contains(&model) {
            return Err(Refusal(
                503,
                "model_not_found",
                format!("Model not found: {model}"),
            ));
        }
        let prefill = self.choose(Side::Prefill, model)?;
        let decode = self.choose(Side::Decode, model)?;
        let mut first = asked.clone();
        first["stream"] = false.into();
        first["max_tokens"] = 1.into();
        if let Some(fields) = first.as_object_mut() {
            for name in ["stream_options", "max_completion_tokens", "min_tokens"] {
                fields.remove(name);
            }
        }
        first["kv_transfer_params"] = json!({"do_remote_decode": true, "do_remote_prefill": false});
        let mut params = self.prefill(prefill, path, &first)?;
        let (tp, dp) = prefill.sizes;
        params["remote_tp_size"] = tp.into();
        params["remote_dp_size"] = dp.into();
        params["remote_dp_rank"] = 0.into();
        let mut second = asked.clone();
        second["kv_transfer_params"] = params;
        let answer = self.ask(decode, path, &second).map_err(|error| {
            say(&format!("[mesh] decode {} failed: {error}", decode.url));
            Refusal(
                502,
                "decode_server_error",
                format!("Decode server error: {error}"),
            )
        })?;
        Ok((answer, asked["stream"] == true))
    }

    fn prefill(&self, worker: &Worker, path: &str, body: &Value) -> Result<Value, Refusal> {
        let failed = |error: io::Error| {
            say(&format!("[mesh] prefill {} failed: {error}", worker.url));
            Refusal(
                502,
                "prefill_server_error",
                format!("Prefill server error: {error}"),
            )
        };
        let mut answer = self.ask(worker, path, body).map_err(failed)?;
        let text = answer.whole().map_err(failed)?;
        if answer.status >= 300 {
            let text = String::from_utf8_lossy(&text).into_owned();
            let words = format!("Prefill server error ({}): {text}", answer.status);
            return Err(Refusal(answer.status, "prefill_error", words));
        }
        let whole: Value = serde_json::from_slice(&text).map_err(|error| {
            Refusal(
                502,
                "prefill_parse_error",
                format!("Prefill response parse error: {error}"),
            )
        })?;
        match &whole["kv_transfer_params"] {
            params @ Value::Object(_) => Ok(params.clone()),
            _ => Err(Refusal(
                502,
                "prefill_missing_kv_transfer_params",
                "Prefill response missing kv_transfer_params".to_owned(),
            )),
        }
    }

    fn forward<W: Write>(
        &self,
        request: &Request,
        exchange: &mut Exchange<'_, W>,
    ) -> io::Result<()> {
        let (mut answer, streams) = match self.dispatch(&request.path, &request.body) {
            Ok(open) => open,
            Err(Refusal(status, code, text)) => return exchange.error(status, code, &text),
        };
        let kind = answer
            .headers
            .get("content-type")
            .unwrap_or("application/json")
            .to_owned();
        if !streams || answer.status >= 300 {
            let status = answer.status;
            let body = answer.whole()?;
            return exchange.bytes(status, &kind, &body);
        }
        exchange.start(answer.status, &kind)?;
        let mut body = answer.body()?;
        let mut piece = [0; 16384];
        loop {
            // A decode server that dies cuts the client off as well: the end of the stream is never made up.
            match body.read(&mut piece)? {
                0 => return exchange.finish(),
                count => exchange.part(&piece[..count])?,
            }
        }
    }

    fn workers(&self) -> Value {
        let workers: Vec<Value> = self
            .registry
            .workers
            .iter()
            .map(|worker| {
                let side = if worker.side == Side::Prefill { "prefill" } else { "decode" };
                json!({"url": worker.url, "worker_type": side, "model_id": worker.model, "is_healthy": worker.healthy()})
            })
            .collect();
        json!({"total": workers.len(), "workers": workers})
    }
}

impl Site for Relay {
    fn answer(
        &self,
        request: &Request,
        exchange: &mut Exchange<'_, BufWriter<TcpStream>>,
    ) -> io::Result<()> {
        self.acting.before_answer();
        let path = request.path.as_str();
        match (request.method.as_str(), path) {
            ("GET" | "HEAD", "/health" | "/readiness") => {
                self.acting.before_health();
                let ready = path == "/health" || self.ready();
                let (status, word) = if ready {
                    (200, "ok")
                } else {
                    (503, "not ready")
                };
                exchange.json(status, &json!({"status": word}))
            }
            ("GET", "/liveness" | "/health_generate") => {
                exchange.json(200, &json!({"status": "ok"}))
            }
            ("GET", "/v1/models") => {
                let cards: Vec<Value> = self
                    .models()
                    .iter()
                    .map(|id| json!({"id": id, "object": "model", "owned_by": "atom"}))
                    .collect();
                exchange.json(200, &json!({"object": "list", "data": cards}))
            }
            ("GET", "/workers") => exchange.json(200, &self.workers()),
            ("POST", "/v1/completions" | "/v1/chat/completions") => self.forward(request, exchange),
            _ => exchange.error(404, "not_found", &format!("there is no page {path}")),
        }
    }
}
