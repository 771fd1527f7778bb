//! The pages of the stand-in server: health, models, facts, counters, and completions in OpenAI's form.

use std::io::{self, BufWriter, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::arguments::Arguments;
use crate::rehearse::acting::Acting;
use crate::rehearse::http::{Exchange, Request, Site};

/// Time between two tokens of a stream, so that clients have something to measure.
const TOKEN_TIME: Duration = Duration::from_millis(1);
/// Tokens of a completion that names no limit: OpenAI's own default.
const DEFAULT_TOKENS: u64 = 16;
/// Longest sequence where the arguments give none.
const LONGEST: u64 = 1 << 20;
/// What is said, over and over.
const WORDS: [&str; 12] = [
    " this",
    " is",
    " a",
    " rehearsal",
    " and",
    " no",
    " model",
    " has",
    " been",
    " asked",
    " for",
    " anything",
];

/// The server's pages.
#[derive(Debug)]
pub(super) struct Server {
    arguments: Arguments,
    acting: Arc<Acting>,
    engine_id: String,
    created: u64,
    requests: AtomicU64,
    running: AtomicU64,
    prompt_tokens: AtomicU64,
    generated_tokens: AtomicU64,
}

/// Which of the two forms is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Chat,
}

/// A request that can be answered.
struct Order {
    form: Form,
    id: String,
    model: String,
    /// One list of answers for each prompt and each of its `n` choices.
    choices: usize,
    prompt_tokens: u64,
    tokens: u64,
    finish: &'static str,
    stream: bool,
    usage_in_stream: bool,
    remote_decode: bool,
}

/// A request that cannot.
struct Refusal(u16, &'static str, String);

impl Server {
    pub(super) fn new(arguments: &Arguments, acting: Arc<Acting>, engine: u32) -> Self {
        Self {
            arguments: arguments.clone(),
            acting,
            engine_id: format!("rehearsal-{engine}"),
            created: now(),
            requests: AtomicU64::new(0),
            running: AtomicU64::new(0),
            prompt_tokens: AtomicU64::new(0),
            generated_tokens: AtomicU64::new(0),
        }
    }

    fn models(&self) -> Value {
        let id = &self.arguments.served;
        let card = json!({
            "id": id, "object": "model", "created": self.created, "owned_by": "atom",
            "max_model_len": self.arguments.max_model_len,
        });
        json!({"object": "list", "data": [card]})
    }

    fn kv_transfer_info(&self) -> Value {
        let (role, port) = self.arguments.kv_role();
        json!({
            "tp_size": self.arguments.inside_tp(), "dp_size": self.arguments.inside_dp(),
            "kv_role": role, "handshake_port": port,
        })
    }

    fn server_info(&self) -> Value {
        json!({
            "model_id": self.arguments.served, "served_model_name": self.arguments.served,
            "tp_size": self.arguments.inside_tp(), "dp_size": self.arguments.inside_dp(),
        })
    }

    fn metrics(&self) -> String {
        let rows = [
            ("requests_total", "counter", &self.requests),
            ("requests_running", "gauge", &self.running),
            ("prompt_tokens_total", "counter", &self.prompt_tokens),
            ("generation_tokens_total", "counter", &self.generated_tokens),
        ];
        let mut text = String::new();
        for (name, kind, value) in rows {
            let value = value.load(Ordering::Relaxed);
            text.push_str(&format!("# TYPE atom:{name} {kind}\natom:{name} {value}\n"));
        }
        text
    }

    fn order(&self, form: Form, body: &[u8]) -> Result<Order, Refusal> {
        let bad = |text: String| Refusal(400, "bad_request", text);
        let asked: Value = serde_json::from_slice(body)
            .map_err(|error| bad(format!("the body is no JSON: {error}")))?;
        if !asked.is_object() {
            return Err(bad("the body is no JSON object".to_owned()));
        }
        let model = asked["model"]
            .as_str()
            .ok_or_else(|| bad("`model` is missing or no text".to_owned()))?;
        // The server ignores a slash at the end; the router does not.
        if model.trim_end_matches('/') != self.arguments.served.trim_end_matches('/') {
            return Err(Refusal(
                404,
                "model_not_found",
                format!("the model `{model}` does not exist"),
            ));
        }
        let (prompts, prompt_tokens) = match form {
            Form::Text => prompts(&asked["prompt"]),
            Form::Chat => messages(&asked["messages"]),
        }
        .map_err(bad)?;
        let limit = ["max_completion_tokens", "max_tokens"]
            .iter()
            .map(|name| &asked[*name])
            .find(|value| !value.is_null());
        let longest = self.arguments.max_model_len.unwrap_or(LONGEST);
        let tokens = match limit.map(|value| value.as_u64().filter(|number| *number > 0)) {
            None => DEFAULT_TOKENS,
            Some(Some(number)) => number,
            Some(None) => return Err(bad("`max_tokens` must be at least 1".to_owned())),
        };
        let n = asked["n"].as_u64().unwrap_or(1).clamp(1, 128);
        Ok(Order {
            form,
            id: format!(
                "{}-{:024x}",
                if form == Form::Text {
                    "cmpl"
                } else {
                    "chatcmpl"
                },
                self.requests.load(Ordering::Relaxed)
            ),
            model: model.to_owned(),
            choices: prompts.saturating_mul(usize::try_from(n).unwrap_or(1)),
            prompt_tokens,
            tokens: tokens.min(longest),
            finish: if limit.is_some() { "length" } else { "stop" },
            stream: asked["stream"].as_bool().unwrap_or(false),
            usage_in_stream: asked["stream_options"]["include_usage"]
                .as_bool()
                .unwrap_or(false),
            remote_decode: asked["kv_transfer_params"]["do_remote_decode"] == true,
        })
    }

    /// What a prefill server hands the router for the decode server.
    fn kv_transfer_params(&self, order: &Order) -> Value {
        let (_, port) = self.arguments.kv_role();
        let host = self.acting.own().listen_at(&self.arguments.host);
        json!({
            "do_remote_prefill": true, "do_remote_decode": false, "remote_engine_id": self.engine_id,
            "remote_host": host, "remote_port": port, "remote_handshake_port": port,
            "remote_block_ids": [0], "transfer_id": order.id,
        })
    }

    fn complete<W: Write>(&self, order: &Order, exchange: &mut Exchange<'_, W>) -> io::Result<()> {
        self.prompt_tokens
            .fetch_add(order.prompt_tokens, Ordering::Relaxed);
        let all = order.tokens.saturating_mul(order.choices as u64);
        self.generated_tokens.fetch_add(all, Ordering::Relaxed);
        if order.stream {
            return self.stream(order, exchange);
        }
        let count = usize::try_from(order.tokens).unwrap_or(usize::MAX);
        let text: String = WORDS.iter().cycle().take(count).copied().collect();
        let choices: Vec<Value> = (0..order.choices)
            .map(|index| match order.form {
                Form::Text => json!({"index": index, "text": text, "logprobs": null, "finish_reason": order.finish}),
                Form::Chat => json!({
                    "index": index, "message": {"role": "assistant", "content": text.trim_start()},
                    "logprobs": null, "finish_reason": order.finish,
                }),
            })
            .collect();
        let mut answer = json!({
            "id": order.id, "object": order.object(false), "created": now(), "model": order.model,
            "choices": choices, "usage": order.usage(),
        });
        if order.remote_decode {
            answer["kv_transfer_params"] = self.kv_transfer_params(order);
        }
        exchange.json(200, &answer)
    }

    fn stream<W: Write>(&self, order: &Order, exchange: &mut Exchange<'_, W>) -> io::Result<()> {
        let created = now();
        exchange.start(200, "text/event-stream; charset=utf-8")?;
        let chunk = |choices: Vec<Value>, usage: Value| {
            let mut chunk = json!({
                "id": order.id, "object": order.object(true), "created": created, "model": order.model, "choices": choices,
            });
            if order.usage_in_stream {
                chunk["usage"] = usage;
            }
            format!("data: {chunk}\n\n")
        };
        let words = WORDS.iter().cycle();
        for (number, word) in (1..=order.tokens).zip(words) {
            let finish = (number == order.tokens).then_some(order.finish);
            let choices =
                (0..order.choices).map(|index| order.piece(index, word, number == 1, finish));
            exchange.part(chunk(choices.collect(), Value::Null).as_bytes())?;
            self.acting.before_answer();
            std::thread::sleep(TOKEN_TIME);
        }
        if order.usage_in_stream {
            exchange.part(chunk(Vec::new(), order.usage()).as_bytes())?;
        }
        exchange.part(b"data: [DONE]\n\n")?;
        exchange.finish()
    }

    fn completion<W: Write>(
        &self,
        form: Form,
        request: &Request,
        exchange: &mut Exchange<'_, W>,
    ) -> io::Result<()> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match self.order(form, &request.body) {
            Ok(order) => {
                self.acting.before_completion();
                self.running.fetch_add(1, Ordering::Relaxed);
                let result = self.complete(&order, exchange);
                self.running.fetch_sub(1, Ordering::Relaxed);
                result
            }
            Err(Refusal(status, code, text)) => exchange.error(status, code, &text),
        }
    }
}

impl Order {
    fn object(&self, chunk: bool) -> &'static str {
        match (self.form, chunk) {
            (Form::Text, _) => "text_completion",
            (Form::Chat, false) => "chat.completion",
            (Form::Chat, true) => "chat.completion.chunk",
        }
    }

    fn usage(&self) -> Value {
        let generated = self.tokens.saturating_mul(self.choices as u64);
        json!({
            "prompt_tokens": self.prompt_tokens, "completion_tokens": generated,
            "total_tokens": self.prompt_tokens.saturating_add(generated),
        })
    }

    fn piece(&self, index: usize, word: &str, first: bool, finish: Option<&str>) -> Value {
        if self.form == Form::Text {
            return json!({"index": index, "text": word, "logprobs": null, "finish_reason": finish});
        }
        let mut delta = json!({"content": if first { word.trim_start() } else { word }});
        if first {
            delta["role"] = "assistant".into();
        }
        json!({"index": index, "delta": delta, "logprobs": null, "finish_reason": finish})
    }
}

/// Number of prompts and of their tokens; a word counts as a token.
fn prompts(value: &Value) -> Result<(usize, u64), String> {
    let words = |text: &str| text.split_whitespace().count() as u64;
    match value {
        Value::String(text) => Ok((1, words(text))),
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_u64) => {
            Ok((1, items.len() as u64))
        }
        Value::Array(items) if !items.is_empty() => {
            let mut tokens = 0;
            for item in items {
                tokens += match item {
                    Value::String(text) => words(text),
                    Value::Array(ids) if ids.iter().all(Value::is_u64) => ids.len() as u64,
                    _ => {
                        return Err(
                            "`prompt` holds something that is neither text nor tokens".to_owned()
                        );
                    }
                };
            }
            Ok((items.len(), tokens))
        }
        _ => Err("`prompt` is missing or empty".to_owned()),
    }
}

fn messages(value: &Value) -> Result<(usize, u64), String> {
    let Some(messages) = value.as_array().filter(|all| !all.is_empty()) else {
        return Err("`messages` is missing or empty".to_owned());
    };
    let mut tokens = 0;
    for message in messages {
        if !message["role"].is_string() {
            return Err("a message has no `role`".to_owned());
        }
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part["text"].as_str())
                    .collect();
                texts.join(" ")
            }
            _ => String::new(),
        };
        tokens += text.split_whitespace().count() as u64;
    }
    Ok((1, tokens))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

impl Site for Server {
    fn answer(
        &self,
        request: &Request,
        exchange: &mut Exchange<'_, BufWriter<TcpStream>>,
    ) -> io::Result<()> {
        self.acting.before_answer();
        let path = request.path.as_str();
        match (request.method.as_str(), path) {
            ("GET" | "HEAD", "/health") => {
                self.acting.before_health();
                exchange.json(200, &json!({"status": "ok"}))
            }
            ("GET", "/v1/models") => exchange.json(200, &self.models()),
            ("GET", "/kv_transfer_info") => exchange.json(200, &self.kv_transfer_info()),
            ("GET", "/server_info") => exchange.json(200, &self.server_info()),
            ("GET", "/metrics") => {
                exchange.bytes(200, "text/plain; version=0.0.4", self.metrics().as_bytes())
            }
            ("POST", "/v1/completions") => self.completion(Form::Text, request, exchange),
            ("POST", "/v1/chat/completions") => self.completion(Form::Chat, request, exchange),
            (_, "/health" | "/v1/models" | "/v1/completions" | "/v1/chat/completions") => exchange
                .error(
                    405,
                    "method_not_allowed",
                    &format!("{path} has no method {}", request.method),
                ),
            _ => exchange.error(404, "not_found", &format!("there is no page {path}")),
        }
    }
}
