//! The workload that is run when none is given: one completion through the router, and its text on stdout.

use std::time::Duration;

use serde_json::json;

use super::acting::say;
use super::http::client::{Limits, ask};
use crate::exit;
use crate::input;
use crate::render;

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(10),
    silence: Duration::from_mins(1),
};

/// Ask and print.
pub(super) fn run() -> u8 {
    let environment = input::environment();
    let Some(router) = environment.get("ROUTER_URL") else {
        say("check: ROUTER_URL is not set: this is the workload of a rehearsal");
        return exit::USAGE;
    };
    match completion(router) {
        Ok(text) => {
            say(&format!("check: {router} completed a prompt:"));
            // A reader that went away is no error.
            let _ = render::to_stdout(format!("{text}\n").as_bytes());
            exit::OK
        }
        Err(why) => {
            say(&format!("check: {router} completed nothing: {why}"));
            exit::FOUND
        }
    }
}

fn completion(router: &str) -> Result<String, String> {
    let router = router.trim_end_matches('/');
    let ask = |path: &str, body: Option<&[u8]>| {
        let mut answer =
            ask(router, path, body, LIMITS).map_err(|error| format!("{path}: {error}"))?;
        let value = answer.json().map_err(|error| format!("{path}: {error}"))?;
        if answer.status == 200 {
            Ok(value)
        } else {
            Err(format!("{path}: HTTP {}: {value}", answer.status))
        }
    };
    let models = ask("/v1/models", None)?;
    let model = models["data"][0]["id"]
        .as_str()
        .ok_or("/v1/models names no model")?;
    let request =
        json!({"model": model, "prompt": "Is anybody there?", "max_tokens": 12, "temperature": 0});
    let answer = ask("/v1/completions", Some(request.to_string().as_bytes()))?;
    let text = answer["choices"][0]["text"]
        .as_str()
        .ok_or_else(|| format!("/v1/completions: no text in {answer}"))?;
    Ok(text.trim().to_owned())
}
