//! What an option that does not exist may have meant.

use crate::atom::table::{Date, SpellingKind, Table};

/// What may be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint<'t> {
    /// Spellings that the server has: the likely one, or all that together do the work of another server's option.
    pub spellings: Vec<&'t str>,
    /// Whether the word is an option of another server (vLLM, `SGLang`) or a usual slip, not a misspelling.
    pub foreign: bool,
}

/// Longer names are no misspelling of any option.
const LONGEST: usize = 64;

/// The spelling nearest to a name that the server does not know.
pub fn nearest<'t>(name: &str, table: &'t Table) -> Option<Hint<'t>> {
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    if name.len() > LONGEST {
        return None;
    }
    let wanted = normal(name);
    if wanted.is_empty() {
        return None;
    }
    let known: Vec<(String, &str, SpellingKind)> = table
        .options()
        .iter()
        .flat_map(|option| option.spellings.iter())
        .map(|spelling| {
            (
                normal(&spelling.text),
                spelling.text.as_ref(),
                spelling.kind,
            )
        })
        .collect();
    let one = |spelling: &'t str| Hint {
        spellings: vec![spelling],
        foreign: false,
    };
    if let Some((_, same, _)) = known.iter().find(|(normal, ..)| *normal == wanted) {
        return Some(one(same));
    }
    if let Ok(place) = FOREIGN.binary_search_by(|(foreign, _)| (*foreign).cmp(&wanted)) {
        let spellings: Vec<&str> = FOREIGN[place]
            .1
            .iter()
            .filter_map(|spelling| table.exact(spelling).map(|entry| table.text(entry)))
            .collect();
        if !spellings.is_empty() {
            return Some(Hint {
                spellings,
                foreign: true,
            });
        }
    }
    let letters = wanted.chars().count();
    let allowed = match letters {
        0..=2 => 0,
        3..=5 => 1,
        6..=10 => 2,
        _ => 3,
    };
    known
        .iter()
        .filter(|(normal, ..)| normal.len().abs_diff(letters) <= allowed)
        .map(|(normal, text, kind)| (strsim::osa_distance(&wanted, normal), *kind, *text))
        .filter(|(distance, ..)| *distance <= allowed)
        .min_by_key(|(distance, kind, _)| (*distance, *kind == SpellingKind::Twin))
        .map(|(_, _, text)| one(text))
}

/// A name without leading dashes, lower case, with dashes only.
fn normal(name: &str) -> String {
    name.trim_start_matches('-')
        .to_lowercase()
        .replace('_', "-")
}

/// Options of other servers and usual slips, normalised and sorted, and what does their work here.
#[rustfmt::skip]
const FOREIGN: &[(&str, &[&str])] = &[
    ("chunked-prefill-size", &["--max-num-batched-tokens"]),
    ("compilation-config", &["--level", "--cudagraph-mode", "--cudagraph-capture-sizes"]),
    ("context-length", &["--max-model-len"]),
    ("cuda-graph-bs", &["--cudagraph-capture-sizes"]),
    ("cuda-graph-max-bs", &["--cudagraph-capture-sizes"]),
    ("cuda-graph-sizes", &["--cudagraph-capture-sizes"]),
    ("cudagraph-sizes", &["--cudagraph-capture-sizes"]),
    ("disable-cuda-graph", &["--enforce-eager"]),
    ("disable-prefix-caching", &["--no-enable_prefix_caching"]),
    ("disable-radix-cache", &["--no-enable_prefix_caching"]),
    ("disaggregation-mode", &["--kv-transfer-config"]),
    ("disaggregation-transfer-backend", &["--kv-transfer-config"]),
    ("dp", &["-dp"]),
    ("dp-size", &["-dp"]),
    ("eagle-model", &["--draft-model"]),
    ("enable-dbo", &["--enable-tbo"]),
    ("enable-dp", &["--enable-dp-attention"]),
    ("enable-dpa", &["--enable-dp-attention"]),
    ("enable-ep", &["--enable-expert-parallel"]),
    ("enable-ep-moe", &["--enable-expert-parallel"]),
    ("enable-two-batch-overlap", &["--enable-tbo"]),
    ("ep", &["--enable-expert-parallel"]),
    ("ep-size", &["--enable-expert-parallel"]),
    ("expert-parallel-size", &["--enable-expert-parallel"]),
    ("http-port", &["--server-port"]),
    ("json-model-override-args", &["--hf-overrides"]),
    ("load-format", &["--load_dummy"]),
    ("max-batch-size", &["--max-num-seqs"]),
    ("max-num-sequences", &["--max-num-seqs"]),
    ("max-num-tokens", &["--max-num-batched-tokens"]),
    ("max-prefill-tokens", &["--max-num-batched-tokens"]),
    ("max-running-requests", &["--max-num-seqs"]),
    ("max-seq-len", &["--max-model-len"]),
    ("max-total-tokens", &["--max-model-len"]),
    ("mem-frac-static", &["--gpu-memory-utilization"]),
    ("mem-fraction-static", &["--gpu-memory-utilization"]),
    ("model-name", &["--model", "--served-model-name"]),
    ("model-path", &["--model"]),
    ("moe-a2a-backend", &["--all2all-backend"]),
    ("moe-runner-backend", &["--moe-backend"]),
    ("mtp", &["--method", "--num-speculative-tokens"]),
    ("no-prefix-caching", &["--no-enable_prefix_caching"]),
    ("num-spec-tokens", &["--num-speculative-tokens"]),
    ("page-size", &["--block-size"]),
    ("pp", &["-pp"]),
    ("pp-size", &["-pp"]),
    ("quantization", &["--online_quant_config"]),
    ("spec-method", &["--method"]),
    ("speculative-algo", &["--method"]),
    ("speculative-algorithm", &["--method"]),
    ("speculative-config", &["--method", "--num-speculative-tokens", "--draft-model"]),
    ("speculative-draft-model-path", &["--draft-model"]),
    ("speculative-method", &["--method"]),
    ("speculative-model", &["--draft-model"]),
    ("speculative-num-draft-tokens", &["--num-speculative-tokens"]),
    ("speculative-num-steps", &["--num-speculative-tokens"]),
    ("tokenizer-path", &["--model"]),
    ("tp", &["-tp"]),
    ("tp-size", &["-tp"]),
];

/// First day of a spelling on main.
pub(super) fn first_day(spelling: &str) -> Option<Date> {
    let table = Table::builtin();
    let option = table.by_spelling(spelling)?;
    let found = option.spellings.iter().find(|known| known.text == spelling);
    found.map(|known| known.since)
}

/// First day on which main accepted a choice that this server refuses.
pub(super) fn choice_since(dest: &str, value: &str) -> Option<Date> {
    let table = Table::builtin();
    table.by_dest(dest)?.choice_since(value)
}

/// The short option of several letters that a word starts with, when only digits follow.
pub(super) fn glued<'t>(word: &str, table: &'t Table) -> Option<&'t str> {
    let digits_at = word.find(|c: char| c.is_ascii_digit())?;
    let (name, digits) = word.split_at(digits_at);
    let entry = table.exact(name)?;
    (!name.starts_with("--") && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| table.text(entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(name: &str) -> Vec<String> {
        nearest(name, &Table::builtin())
            .map(|hint| {
                hint.spellings
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect()
            })
            .unwrap_or_default()
    }

    #[test]
    fn the_foreign_names_are_sorted_and_point_at_options_that_exist() {
        assert!(FOREIGN.is_sorted_by(|a, b| a.0 < b.0));
        let table = Table::builtin();
        for (foreign, ours) in FOREIGN {
            assert_eq!(&normal(foreign), foreign);
            assert!(
                ours.iter().all(|spelling| table.exact(spelling).is_some()),
                "{foreign}"
            );
            assert!(table.exact(&format!("--{foreign}")).is_none(), "{foreign}");
        }
    }

    #[test]
    fn misspellings_find_the_declared_spelling() {
        assert_eq!(hint("--max-num-seq"), ["--max-num-seqs"]);
        assert_eq!(
            hint("--gpu-memory-utilisation=0.9"),
            ["--gpu-memory-utilization"]
        );
        assert_eq!(hint("--kvcache_dtype"), ["--kv_cache_dtype"]);
        assert_eq!(hint("-max-model-len"), ["--max-model-len"]);
        assert_eq!(
            hint("--no_enable_prefix_caching"),
            ["--no-enable_prefix_caching"]
        );
        assert_eq!(hint("--Enforce_Eager"), ["--enforce-eager"]);
        assert_eq!(hint("--mdoel"), ["--model"]);
    }

    #[test]
    fn options_of_other_servers_are_translated() {
        assert_eq!(hint("--enable-dpa"), ["--enable-dp-attention"]);
        assert_eq!(
            hint("--speculative_config"),
            ["--method", "--num-speculative-tokens", "--draft-model"]
        );
        assert_eq!(hint("--tp"), ["-tp"]);
        assert!(nearest("--page-size", &Table::builtin()).is_some_and(|hint| hint.foreign));
    }

    #[test]
    fn a_stranger_has_no_nearest_option() {
        for name in [
            "--frobnicate",
            "--x",
            "-x",
            "---",
            "-",
            "",
            "--=",
            &"-".repeat(1000),
            &"x".repeat(100_000),
        ] {
            assert_eq!(hint(name), [""; 0], "{name}");
        }
    }
}
