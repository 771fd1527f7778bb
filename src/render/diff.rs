//! A comparison of two models files for a terminal, a program, or a comment on a pull request.

use serde_json::json;

use super::count;
use crate::diff::{Change, Comparison, Edit, ModelDiff, Status, in_words};
use crate::domain::models::ModelsFile;

fn lines(change: &Change) -> impl Iterator<Item = String> {
    let sign = |edit: &Edit| if edit.added { '+' } else { '-' };
    let arguments = change
        .arguments
        .iter()
        .map(move |edit| format!("{} {}", sign(edit), edit.text));
    let variables = change
        .variables
        .iter()
        .map(move |edit| format!("{} env {}", sign(edit), edit.text));
    let problems = change.problems.iter().map(move |edit| {
        let when = match (edit.added, change.was_impossible) {
            (true, true) => "still not possible",
            (true, false) => "no longer possible",
            (false, _) => "was not possible",
        };
        format!("{} {when}: {}", sign(edit), edit.text)
    });
    let all: Vec<String> = problems.chain(arguments).chain(variables).collect();
    all.into_iter()
}

fn status(model: &ModelDiff) -> &'static str {
    match model.status {
        Status::Added => " (new model)",
        Status::Removed => " (removed)",
        Status::Changed => "",
    }
}

fn closing(comparison: &Comparison) -> String {
    let changed = comparison.models.len();
    if changed == 0 {
        return format!(
            "no resolved command changes ({} compared)\n",
            count(comparison.compared, "model")
        );
    }
    format!(
        "{} of {} with changed commands\n",
        changed,
        count(comparison.compared, "model")
    )
}

/// For a terminal.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for model in &comparison.models {
        out.push_str(&format!("{}{}\n", model.model, status(model)));
        for change in shown(model) {
            for words in in_words(&change.commands) {
                out.push_str(&format!("  {words}:\n"));
            }
            for line in lines(change) {
                out.push_str(&format!("    {line}\n"));
            }
        }
        out.push('\n');
    }
    out + &closing(comparison)
}

/// A removed model needs no list of what is gone.
fn shown(model: &ModelDiff) -> &[Change] {
    if model.status == Status::Removed {
        &[]
    } else {
        &model.changes
    }
}

/// For a comment on a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::from("## Resolved commands\n\n");
    for model in &comparison.models {
        out.push_str(&format!(
            "### `{}`{}\n\n",
            model.model.replace('`', "'"),
            status(model)
        ));
        for change in shown(model) {
            let fence = if lines(change).any(|line| line.contains("```")) {
                "````"
            } else {
                "```"
            };
            out.push_str(&format!(
                "{}\n\n{fence}diff\n",
                in_words(&change.commands).join("; ")
            ));
            for line in lines(change) {
                out.push_str(&line);
                out.push('\n');
            }
            out.push_str(&format!("{fence}\n\n"));
        }
    }
    out + &closing(comparison)
}

/// For programs.
pub fn as_json(comparison: &Comparison, old: &ModelsFile, new: &ModelsFile) -> serde_json::Value {
    let side = |file: &ModelsFile| json!({"name": file.file.name, "sha256": file.sha256});
    let edits = |list: &[Edit]| -> Vec<serde_json::Value> {
        list.iter()
            .map(|edit| json!({"op": if edit.added { "+" } else { "-" }, "text": edit.text}))
            .collect()
    };
    let models: Vec<_> = comparison
        .models
        .iter()
        .map(|model| {
            let changes: Vec<_> = model
                .changes
                .iter()
                .map(|change| {
                    json!({
                        "commands": change.commands,
                        "arguments": edits(&change.arguments),
                        "variables": edits(&change.variables),
                        "problems": edits(&change.problems),
                    })
                })
                .collect();
            json!({"model": model.model, "status": model.status, "changes": changes})
        })
        .collect();
    json!({"schema": 1, "old": side(old), "new": side(new), "compared": comparison.compared, "models": models})
}
