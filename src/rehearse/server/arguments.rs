//! The server's words, read as its own parser reads them.

use serde_json::Value as Json;

use crate::atom::argparse::{Occurrence, Parsed, Value, Verdict, parse};
use crate::atom::table::{Arity, OptionSpec, Table};

/// Name that argparse gives the program.
const PROGRAM: &str = "openai_server.py";
/// Where the explanation of an option stands in the help.
const HELP_COLUMN: usize = 24;

/// What the stand-in needs of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arguments {
    /// Text of `--model`.
    pub(super) model: String,
    /// Id of the model in requests.
    pub(super) served: String,
    /// Address to listen at.
    pub(super) host: String,
    /// HTTP port.
    pub(super) port: u16,
    /// Longest sequence, where it is given.
    pub(super) max_model_len: Option<u64>,
    tp: u64,
    dp: u64,
    dp_attention: bool,
    kv: Json,
}

/// What the server does with its words.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// Starts.
    Serve(Arguments),
    /// Prints its help.
    Help(String),
    /// Refuses them (2).
    Refused(String),
    /// Takes them and ends with an exception before it loads (1).
    Fails(String),
}

impl Arguments {
    /// Tensor-parallel size as the engine sees it: 1 with data-parallel attention.
    pub(super) fn inside_tp(&self) -> u64 {
        if self.dp_attention { 1 } else { self.tp }
    }

    /// Data-parallel size as the engine sees it.
    pub(super) fn inside_dp(&self) -> u64 {
        if self.dp_attention {
            self.tp.saturating_mul(self.dp)
        } else {
            self.dp
        }
    }

    /// Role in KV transfer, and its port: as `/kv_transfer_info` gives them.
    pub(super) fn kv_role(&self) -> (Json, Json) {
        let port = |config: &Json| match config.get("handshake_port") {
            Some(port) => port.clone(),
            None => Json::from(6301),
        };
        let role = |config: &Json| {
            config
                .get("kv_role")
                .cloned()
                .filter(|role| !role.is_null())
        };
        if role(&self.kv).is_some() || self.kv["kv_connector"] != "multi" {
            return (role(&self.kv).unwrap_or(Json::Null), port(&self.kv));
        }
        let inner = self.kv["connectors"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let producer = inner.iter().find(|one| one["kv_role"] == "kv_producer");
        let any = producer.or_else(|| inner.iter().find(|one| role(one).is_some()));
        any.map_or((Json::Null, port(&self.kv)), |one| {
            (role(one).unwrap_or(Json::Null), port(one))
        })
    }

    /// First port and number of ports of a producer's side channel.
    pub(super) fn handshake_block(&self) -> Option<(u16, u64)> {
        let (role, port) = self.kv_role();
        let first = u16::try_from(port.as_u64()?).ok()?;
        let count = self.inside_tp().saturating_mul(self.inside_dp());
        (role == "kv_producer").then_some((first, count))
    }
}

/// Read the words after the module's name.
pub(super) fn read(words: &[&str]) -> Reading {
    let table = Table::builtin();
    let parsed = parse(words, &table);
    match parsed.verdict() {
        Verdict::Help => return Reading::Help(help(&table)),
        Verdict::Rejected(message) => {
            return Reading::Refused(format!("{}{PROGRAM}: error: {message}\n", usage(&table)));
        }
        Verdict::Accepted => {}
    }
    let values = Values {
        table: &table,
        parsed: &parsed,
    };
    match arguments(&values) {
        Ok(arguments) => Reading::Serve(arguments),
        Err(exception) => {
            Reading::Fails(format!("Traceback (most recent call last):\n{exception}"))
        }
    }
}

struct Values<'a> {
    table: &'a Table,
    parsed: &'a Parsed<'a, 'a>,
}

impl Values<'_> {
    fn default(&self, dest: &str) -> Option<&str> {
        self.table.by_dest(dest)?.form.default.as_deref()
    }

    fn text(&self, dest: &str) -> Option<String> {
        match self.parsed.value_of(dest).map(Occurrence::value) {
            Some(Value::Text(text) | Value::Json(text)) => Some(text.to_owned()),
            Some(_) => None,
            None => self
                .default(dest)
                .map(|text| text.trim_matches('\'').to_owned()),
        }
    }

    fn number(&self, dest: &str) -> Option<i128> {
        match self.parsed.value_of(dest).map(Occurrence::value) {
            Some(Value::Int(number)) => Some(number),
            Some(_) => None,
            None => self.default(dest)?.parse().ok(),
        }
    }

    fn flag(&self, dest: &str) -> bool {
        matches!(
            self.parsed.value_of(dest).map(Occurrence::value),
            Some(Value::Flag(true))
        )
    }
}

fn arguments(values: &Values<'_>) -> Result<Arguments, String> {
    let tp = values.number("tensor_parallel_size").unwrap_or(1);
    if !(1..=8).contains(&tp) {
        return Err(format!(
            "AssertionError: tensor_parallel_size must be from 1 to 8, got {tp}"
        ));
    }
    let dp = values.number("data_parallel_size").unwrap_or(1);
    let port = values.number("server_port").unwrap_or(8000);
    let port = u16::try_from(port)
        .map_err(|_| format!("OverflowError: bind(): port must be 0-65535, got {port}"))?;
    let model = values.text("model").unwrap_or_default();
    Ok(Arguments {
        served: values
            .text("served_model_name")
            .unwrap_or_else(|| model.clone()),
        model,
        host: values.text("host").unwrap_or_else(|| "0.0.0.0".to_owned()),
        port,
        max_model_len: values
            .number("max_model_len")
            .and_then(|number| u64::try_from(number).ok()),
        tp: u64::try_from(tp).unwrap_or(1),
        dp: u64::try_from(dp).unwrap_or(1).max(1),
        dp_attention: values.flag("enable_dp_attention"),
        kv: kv_transfer(values.text("kv_transfer_config").as_deref())?,
    })
}

/// JSON; or a Python literal, which the engine understands and `/kv_transfer_info` does not.
fn kv_transfer(text: Option<&str>) -> Result<Json, String> {
    let text = text.unwrap_or("{}").trim();
    let literal = text.starts_with('{') && text.ends_with('}');
    match serde_json::from_str::<Json>(text) {
        Ok(config) => Ok(config),
        Err(_) if literal || text.is_empty() => Ok(Json::Object(serde_json::Map::new())),
        Err(error) => Err(format!(
            "ValueError: --kv-transfer-config is neither JSON nor a literal: {error}"
        )),
    }
}

fn value_name(option: &OptionSpec) -> String {
    let name = if option.form.choices.is_empty() {
        option.dest.to_uppercase()
    } else {
        format!("{{{}}}", option.form.choices.join(","))
    };
    match option.form.arity {
        Arity::None | Arity::BooleanPair => String::new(),
        Arity::Optional => format!(" [{name}]"),
        Arity::Required => format!(" {name}"),
        Arity::Many => format!(" [{name} ...]"),
    }
}

/// The usage as argparse prints it, one option a line.
fn usage(table: &Table) -> String {
    let head = format!("usage: {PROGRAM} ");
    let options: Vec<String> = table
        .options()
        .iter()
        .map(|option| {
            let first = option
                .spellings
                .first()
                .map_or("", |spelling| &spelling.text);
            let value = value_name(option);
            match option.form.arity {
                Arity::BooleanPair => {
                    let all: Vec<&str> = option
                        .spellings
                        .iter()
                        .map(|one| one.text.as_ref())
                        .collect();
                    format!("[{}]", all.join(" | "))
                }
                _ => format!("[{first}{value}]"),
            }
        })
        .collect();
    let break_line = format!("\n{}", " ".repeat(head.len()));
    format!("{head}{}\n", options.join(&break_line))
}

fn help(table: &Table) -> String {
    let mut text = usage(table);
    text.push_str("\nStand-in of a rehearsal for ATOM's OpenAI server: the same options, nothing is computed.\n\noptions:\n");
    for option in table.options() {
        let value = value_name(option);
        let spellings: Vec<String> = option
            .spellings
            .iter()
            .map(|spelling| format!("{}{value}", spelling.text))
            .collect();
        text.push_str(&format!("  {}\n", spellings.join(", ")));
        let default = option.form.default.as_deref().unwrap_or("None");
        let explained = if option.is_help() {
            "show this help message and exit".to_owned()
        } else {
            format!("(default: {default})")
        };
        text.push_str(&format!("{:HELP_COLUMN$}{explained}\n", ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(line: &str) -> Arguments {
        let words: Vec<&str> = line.split(' ').collect();
        match read(&words) {
            Reading::Serve(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sizes_are_given_as_the_engine_sees_them() {
        let plain = served("--model m -tp 8");
        assert_eq!((plain.inside_tp(), plain.inside_dp()), (8, 1));
        assert_eq!((plain.port, plain.host.as_str()), (8000, "0.0.0.0"));
        assert_eq!(plain.kv_role(), (Json::Null, Json::from(6301)));
        assert_eq!(plain.handshake_block(), None);
        let producer = served(
            r#"--model m/ -tp 4 --enable-dp-attention --server-port 8010 --kv-transfer-config {"kv_role":"kv_producer","handshake_port":7000}"#,
        );
        assert_eq!((producer.inside_tp(), producer.inside_dp()), (1, 4));
        assert_eq!(producer.handshake_block(), Some((7000, 4)));
        assert_eq!(producer.served, "m/");
        let multi = served(
            r#"--model m --kv-transfer-config {"kv_connector":"multi","connectors":[{"kv_role":"kv_consumer"},{"kv_role":"kv_producer","handshake_port":7}]}"#,
        );
        assert_eq!(multi.kv_role(), (Json::from("kv_producer"), Json::from(7)));
    }

    #[test]
    fn bad_words_are_refused_in_argparses_words() {
        let Reading::Refused(text) = read(&["--model", "m", "--block-size", "x"]) else {
            panic!("accepted");
        };
        assert!(text.starts_with("usage: openai_server.py [-h]\n"), "{text}");
        assert!(
            text.ends_with(
                "\nopenai_server.py: error: argument --block-size/--block_size: invalid int value: 'x'\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_the_parser_takes_can_still_end_early() {
        assert!(matches!(
            read(&["--model", "m", "-tp", "16"]),
            Reading::Fails(_)
        ));
        assert!(matches!(
            read(&["--model", "m", "--kv-transfer-config", "nonsense"]),
            Reading::Fails(_)
        ));
        let literal = served("--model m --kv-transfer-config {'kv_role':'kv_producer'}");
        assert_eq!(literal.kv_role().0, Json::Null);
    }

    #[test]
    fn the_help_can_be_read_as_the_real_servers_can() {
        let Reading::Help(text) = read(&["-h"]) else {
            panic!("no help");
        };
        let read_back = Table::from_help(&text).unwrap();
        let known = Table::builtin();
        let forms = |table: &Table| -> Vec<_> {
            let options = table.options().iter();
            options
                .map(|option| (option.dest.clone(), option.form.arity))
                .collect()
        };
        assert_eq!(forms(&read_back), forms(&known));
    }
}
