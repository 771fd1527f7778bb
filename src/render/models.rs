//! The list of models.

use serde_json::json;

use super::table;
use crate::domain::models::ModelsFile;
use crate::domain::topology::Mode;
use crate::resolve::model::Summary;

/// An aligned table.
pub fn text(summaries: &[Summary<'_>]) -> String {
    let mut rows = vec![
        ["MODEL", "MODES", "SPECULATIVE", "KV CACHE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for summary in summaries {
        let modes: Vec<&str> = summary.modes.iter().map(|mode| Mode::name(*mode)).collect();
        let or_dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        rows.push(vec![
            summary.name.to_owned(),
            modes.join(" "),
            or_dash(&summary.method),
            or_dash(&summary.kv_cache_dtype),
        ]);
    }
    table::aligned(&rows)
}

/// The same for programs.
pub fn as_json(models: &ModelsFile, summaries: &[Summary<'_>]) -> serde_json::Value {
    let entries: Vec<_> = summaries
        .iter()
        .map(|summary| {
            json!({
                "name": summary.name,
                "line": summary.line,
                "modes": summary.modes,
                "method": summary.method,
                "kv_cache_dtype": summary.kv_cache_dtype,
            })
        })
        .collect();
    json!({
        "schema": 1,
        "models_file": {"name": models.file.name, "sha256": models.sha256},
        "models": entries,
    })
}
