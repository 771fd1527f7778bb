//! Rows of `explain` as a table and as JSON.

use serde_json::json;

use super::{origin_json, table};
use crate::domain::visible::visible;
use crate::explain::Row;

/// Widest value in the table; JSON has it whole.
const WIDEST: usize = 60;

/// An aligned table: name, value, origin; below each row what it displaced.
pub fn text(rows: &[Row], file: &str) -> String {
    let mut lines = vec![["NAME", "VALUE", "FROM"].map(str::to_owned).to_vec()];
    for row in rows {
        lines.push(vec![
            row.name.clone(),
            shown(&row.value),
            row.source.in_words(file),
        ]);
        for lost in &row.shadowed {
            lines.push(vec![
                "  instead of".into(),
                shown(&lost.value),
                lost.source.in_words(file),
            ]);
        }
    }
    table::aligned(&lines)
}

/// The same of one row in a line: `--block-size 64 from environment BLOCK_SIZE, instead of 16 from default`.
pub fn line(row: &Row, file: &str) -> String {
    let between = match (row.variable, row.value.is_empty()) {
        (true, _) => "=",
        (false, false) => " ",
        (false, true) => "",
    };
    let (value, source) = (shown(&row.value), row.source.in_words(file));
    let mut line = format!("{}{between}{value} from {source}", row.name);
    for lost in &row.shadowed {
        let (value, source) = (shown(&lost.value), lost.source.in_words(file));
        line.push_str(&format!(", instead of {value} from {source}"));
    }
    line
}

fn shown(value: &str) -> String {
    let one_line: String = value
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .collect();
    table::cut(&visible(&one_line), WIDEST)
}

/// The same for programs, with whole values.
pub fn as_json(rows: &[Row], worker: &str, file: &str, sha256: &str) -> serde_json::Value {
    let list = |variable: bool| -> Vec<serde_json::Value> {
        rows.iter()
            .filter(|row| row.variable == variable)
            .map(|row| {
                let shadowed: Vec<_> = row
                    .shadowed
                    .iter()
                    .map(|lost| json!({"value": lost.value, "source": origin_json(&lost.source)}))
                    .collect();
                json!({"name": row.name, "value": row.value, "source": origin_json(&row.source), "shadowed": shadowed})
            })
            .collect()
    };
    json!({
        "schema": 1,
        "worker": worker,
        "models_file": {"name": file, "sha256": sha256},
        "arguments": list(false),
        "variables": list(true),
    })
}
