//! Speculative decoding: method, draft model, number of tokens.

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::{Diagnostics, Help, MTP};

/// Most speculative tokens of mtp and eagle3, in every image looked at (B5).
const MOST_TOKENS: i128 = 4;

pub(super) fn check(view: &View<'_>, found: &mut Diagnostics) {
    match view.text("method") {
        None => without_method(view, found),
        Some(method) => with_method(view, method, found),
    }
}

/// B2: a draft or a number without a method is ignored.
fn without_method(view: &View<'_>, found: &mut Diagnostics) {
    // A method that is misspelt is another finding; these would only follow from it.
    if view.parsed.value_of("method").is_some() {
        return;
    }
    for dest in [
        "draft_model",
        "num_speculative_tokens",
        "spec_decode_acceptance_length",
        "spec_decode_acceptance_rate",
    ] {
        if view.get(dest).is_some() {
            found.push(
                view.warning(
                    codes::SPECULATION_WITHOUT_METHOD,
                    dest,
                    format!(
                        "`--{}`{} is ignored without `--method`",
                        dest.replace('_', "-"),
                        view.within(dest)
                    ),
                )
                .help("add `--method mtp`, `--method eagle3` or `--method dspark`"),
            );
        }
    }
}

fn with_method(view: &View<'_>, method: &str, found: &mut Diagnostics) {
    let within = view.within("method");
    let draft = view.get("draft_model").is_some();
    // B3, B4
    if method == "eagle3" && !draft {
        found.push(
            view.error(
                codes::DRAFT_MODEL,
                "method",
                format!("`--method eagle3`{within} needs `--draft-model`: the server refuses it"),
            )
            .help("add `--draft-model PATH-OR-HUB-ID`"),
        );
    }
    if method == "mtp" && draft {
        found.push(
            view.error(codes::DRAFT_MODEL, "draft_model", format!("`--draft-model`{} does not go with `--method mtp`: the layers are in the model itself", view.within("draft_model")))
                .help("remove `--draft-model`, or use `--method eagle3`"),
        );
    }
    // B1, B5
    match view.int("num_speculative_tokens") {
        Some(tokens) if tokens <= 0 => {
            found.push(view.warning(
                codes::SPECULATIVE_TOKENS,
                "num_speculative_tokens",
                format!(
                    "`--num-speculative-tokens {tokens}` switches `--method {method}`{within} off"
                ),
            ));
        }
        Some(tokens) if tokens > MOST_TOKENS && method != "dspark" => {
            found.push(
                view.error(codes::SPECULATIVE_TOKENS, "num_speculative_tokens", format!("{tokens} speculative tokens with `--method {method}`{within}: the server takes 1 to {MOST_TOKENS}"))
                    .help(Help::give("with `mtp_flags` the number comes from ", MTP, "")),
            );
        }
        _ => {}
    }
    acceptance(view, found);
}

/// B6: the options that simulate an acceptance.
fn acceptance(view: &View<'_>, found: &mut Diagnostics) {
    let rate = view.float("spec_decode_acceptance_rate");
    let length = view.float("spec_decode_acceptance_length");
    let dest = if rate.is_some() {
        "spec_decode_acceptance_rate"
    } else {
        "spec_decode_acceptance_length"
    };
    let mut refused = false;
    let mut refuse = |dest: &str, what: &str, found: &mut Diagnostics| {
        refused = true;
        found.push(view.refuse(codes::ACCEPTANCE, dest, what));
    };
    if (rate.is_some() || length.is_some()) && confidence_schedule(view) {
        refuse(
            dest,
            "does not go with \"confidence_schedule\" of `--dspark-config`: the server refuses it",
            found,
        );
    }
    if rate.is_some() && length.is_some() {
        refuse(
            dest,
            "and `--spec-decode-acceptance-length` exclude each other",
            found,
        );
    }
    if rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        refuse("spec_decode_acceptance_rate", "must be from 0 to 1", found);
    }
    let tokens = match view.int("num_speculative_tokens") {
        // Without a job the number is not known yet; dspark takes more.
        _ if view.case.gpus.is_none() && view.text("method") == Some("dspark") => i128::MAX,
        _ if view.case.gpus.is_none() => MOST_TOKENS,
        tokens => tokens.unwrap_or(1),
    };
    let most = tokens.saturating_add(1);
    #[expect(clippy::cast_precision_loss, reason = "a handful of tokens")]
    if length.is_some_and(|length| !(1.0..=most as f64).contains(&length)) {
        let dest = "spec_decode_acceptance_length";
        refuse(
            dest,
            &format!("must be from 1 to {most}, one more than the speculative tokens"),
            found,
        );
    }
    if !refused && (rate.is_some() || length.is_some()) {
        let flag = dest.replace('_', "-");
        found.push(view.warning(codes::ACCEPTANCE, dest, format!("`--{flag}`{} simulates the acceptance: throughput is made up, and what the server answers means nothing", view.within(dest))));
    }
}

/// Whether `--dspark-config` switches its confidence schedule on.
fn confidence_schedule(view: &View<'_>) -> bool {
    view.text("dspark_config")
        .and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok())
        .and_then(|config| config.get("confidence_schedule")?.as_bool())
        .unwrap_or(false)
}
