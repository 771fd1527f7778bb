//! The JSON Schema of models files, from the one list of fields.

use serde_json::{Map, Value, json};

use crate::domain::models::{FIELDS, Field, Kind};

/// Draft 2020-12.
pub fn schema() -> Value {
    let properties: Map<String, Value> = FIELDS
        .iter()
        .map(|field| (field.name.to_owned(), of(*field)))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "models_atom.yaml",
        "description": "Models that atom-launch can start: model name → entry. Keys that start with `.` or `x-` are templates for anchors and merge keys.",
        "type": "object",
        "minProperties": 1,
        "patternProperties": {
            "^(\\.|x-)": true,
            "^(?!\\.|x-).+$": {
                "type": ["object", "null"],
                "additionalProperties": false,
                "properties": properties,
            },
        },
        "additionalProperties": false,
        "$defs": definitions(),
    })
}

fn of(field: Field) -> Value {
    let name = match (field.kind, field.name) {
        (Kind::Number, "mem_frac_static") => "fraction",
        (Kind::Number, "scheduler_delay_factor") => "factor",
        (Kind::Number, _) => "count",
        (Kind::Words, _) => "words",
        (Kind::Pairs, _) => "pairs",
        (Kind::JsonText, _) => "json",
        (Kind::NumberList, _) => "counts",
        (Kind::Text, _) => "text",
    };
    json!({"description": field.about, "$ref": format!("#/$defs/{name}")})
}

fn definitions() -> Value {
    let count = json!({"anyOf": [
        {"type": "integer", "minimum": 1, "maximum": 2_147_483_647_u32},
        {"type": "string", "pattern": "^([1-9][0-9]{0,9})?$"},
        {"type": "null"},
    ]});
    json!({
        "words": {
            "description": "One string split by POSIX shell quoting rules, or a list of strings, one item a word.",
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
                {"type": "null"},
            ],
        },
        "pairs": {
            "description": "NAME=VALUE words in one string, a list of them, or a mapping.",
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*="}},
                {
                    "type": "object",
                    "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                    "additionalProperties": {"type": ["string", "number", "boolean"]},
                },
                {"type": "null"},
            ],
        },
        "json": {
            "description": "A string that holds a JSON object, passed on byte for byte, or a mapping.",
            "anyOf": [{"type": "string", "pattern": "^\\s*(\\{[\\s\\S]*\\}\\s*)?$"}, {"type": "object"}, {"type": "null"}],
        },
        "count": count,
        "counts": {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 2_147_483_647_u32}, {"type": "string", "pattern": "^[1-9][0-9]*$"}]}},
                {"type": "string", "pattern": "^\\s*$"},
                {"type": "null"},
            ],
        },
        "fraction": {"anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            {"type": "string", "pattern": "^([0-9.eE+-]+)?$"},
            {"type": "null"},
        ]},
        "factor": {"anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": "^([0-9.eE+-]+)?$"},
            {"type": "null"},
        ]},
        "text": {"type": ["string", "number", "boolean", "null"]},
    })
}
