//! Speculative decoding: method, draft model, number of tokens.

use super::View;
use crate::domain::codes;
use crate::domain::diagnostic::Diagnostics;

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
                    .help("set `--mtp` or DECODE_MTP_SIZE to at most 4"),
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
    if rate.is_some() && length.is_some() {
        found.push(view.error(codes::ACCEPTANCE, "spec_decode_acceptance_rate", "`--spec-decode-acceptance-rate` and `--spec-decode-acceptance-length` exclude each other"));
    }
    if rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        found.push(view.error(
            codes::ACCEPTANCE,
            "spec_decode_acceptance_rate",
            "`--spec-decode-acceptance-rate` must be from 0 to 1",
        ));
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of tokens")]
    let most = view.int("num_speculative_tokens").unwrap_or(1) as f64 + 1.0;
    if length.is_some_and(|length| !(1.0..=most).contains(&length)) {
        found.push(view.error(codes::ACCEPTANCE, "spec_decode_acceptance_length", format!("`--spec-decode-acceptance-length` must be from 1 to {most}, one more than the speculative tokens")));
    }
}
