use proptest::prelude::*;

use super::*;
use crate::atom::table::Table;

/// A line's problems: kind, the part of the word it points at, argparse's words.
fn problems(line: &[&str], table: &Table) -> Vec<(String, String, String)> {
    parse(line, table)
        .problems
        .into_iter()
        .map(|problem| {
            let kind = format!("{:?}", problem.kind);
            let part = line[problem.word][problem.range].to_owned();
            (kind, part, problem.argparse_message)
        })
        .collect()
}

/// The kind and the place of the one problem of a line.
fn problem(line: &[&str]) -> (String, String) {
    let mut all = problems(line, &Table::builtin());
    assert_eq!(all.len(), 1, "{all:?}");
    let (kind, part, _) = all.remove(0);
    (kind, part)
}

fn error(line: &[&str]) -> Option<String> {
    parse(line, &Table::builtin()).argparse_error()
}

fn value<'w>(line: &[&'w str], dest: &str) -> Option<Value<'w>> {
    // The table lives as long as the program: the built-in one holds nothing of its own.
    static TABLE: std::sync::LazyLock<Table> = std::sync::LazyLock::new(Table::builtin);
    let parsed = parse(line, &TABLE);
    let occurrence = parsed.value_of(dest)?.clone();
    Some(match occurrence.value() {
        Value::Text(_) => Value::Text(occurrence.value.as_ref()?.text),
        Value::Json(_) => Value::Json(occurrence.value.as_ref()?.text),
        Value::Invalid(_) => Value::Invalid(occurrence.value.as_ref()?.text),
        Value::Bare(_) => Value::Bare(occurrence.option.form.bare.is_some().then_some("known")),
        Value::Flag(on) => Value::Flag(on),
        Value::Int(number) => Value::Int(number),
        Value::Float(number) => Value::Float(number),
        Value::Empty => Value::Empty,
    })
}

#[test]
fn a_real_command_line_is_accepted() {
    let line = [
        "--model",
        "/models/DeepSeek-V4-Pro",
        "--host",
        "0.0.0.0",
        "--server-port",
        "8010",
        "--trust-remote-code",
        "-tp",
        "8",
        "--enable-dp-attention",
        "--method",
        "mtp",
        "--num-speculative-tokens",
        "3",
        "--kv_cache_dtype",
        "fp8",
        "--block-size",
        "16",
        "--gpu-memory-utilization",
        "0.85",
        "--no-enable_prefix_caching",
        "--enable-tbo",
        "all",
        "--online_quant_config",
        "{\"global_quant_config\": \"ptpc_fp8\"}",
        "--cudagraph-capture-sizes",
        "[1, 2, 4]",
    ];
    let table = Table::builtin();
    let parsed = parse(&line, &table);
    assert_eq!(
        (parsed.verdict(), parsed.argparse_error()),
        (Verdict::Accepted, None)
    );
    assert!(
        parsed
            .occurrences
            .iter()
            .all(|occurrence| occurrence.ok && !occurrence.abbreviated)
    );
    assert_eq!(value(&line, "tensor_parallel_size"), Some(Value::Int(8)));
    assert_eq!(
        value(&line, "gpu_memory_utilization"),
        Some(Value::Float(0.85))
    );
    assert_eq!(
        value(&line, "enable_prefix_caching"),
        Some(Value::Flag(false))
    );
    assert_eq!(value(&line, "trust_remote_code"), Some(Value::Flag(true)));
    assert_eq!(value(&line, "enable_tbo"), Some(Value::Text("all")));
    assert_eq!(value(&line, "level"), None);
}

#[test]
fn the_last_of_repeated_options_counts() {
    let line = [
        "--method",
        "mtp",
        "--method=eagle3",
        "--max_num_seqs",
        "1",
        "--max-num-seqs",
        "2",
    ];
    assert_eq!(value(&line, "method"), Some(Value::Text("eagle3")));
    assert_eq!(value(&line, "max_num_seqs"), Some(Value::Int(2)));
    assert_eq!(parse(&line, &Table::builtin()).all_of("method").count(), 2);
}

#[test]
fn abbreviations_are_resolved_and_marked() {
    let table = Table::builtin();
    let parsed = parse(&["--served-m=x", "-t", "8", "--model=y"], &table);
    let found: Vec<(&str, bool, Range<usize>)> = parsed
        .occurrences
        .iter()
        .map(|found| {
            (
                found.spelling,
                found.abbreviated,
                found.value.as_ref().unwrap().range.clone(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("--served-model-name", true, 11..12),
            ("-tp", true, 0..1),
            ("--model", false, 8..9)
        ]
    );
    // The twin makes even a unique word ambiguous.
    assert_eq!(
        error(&["--enforce"]).unwrap(),
        "ambiguous option: --enforce could match --enforce-eager, --enforce_eager"
    );
    assert_eq!(
        error(&["-p", "2"]).unwrap(),
        "ambiguous option: -p could match -pp, -pcp"
    );
}

#[test]
fn optional_values_swallow_what_does_not_look_like_an_option() {
    assert_eq!(
        value(&["--enable-tbo"], "enable_tbo"),
        Some(Value::Bare(Some("known")))
    );
    assert_eq!(
        value(&["--enable-tbo", "--model", "m"], "enable_tbo"),
        Some(Value::Bare(Some("known")))
    );
    assert_eq!(
        error(&["--enable-tbo", "true"]).unwrap(),
        "argument --enable-tbo/--enable_tbo: invalid choice: 'true' (choose from 'prefill', 'all')"
    );
}

#[test]
fn words_with_a_dash_can_be_values() {
    assert_eq!(value(&["--level", "-1"], "level"), Some(Value::Int(-1)));
    assert_eq!(
        value(&["--model", "-x y"], "model"),
        Some(Value::Text("-x y"))
    );
    assert_eq!(value(&["--model", "-"], "model"), Some(Value::Text("-")));
    assert_eq!(value(&["--model", ""], "model"), Some(Value::Text("")));
    assert_eq!(
        value(&["--model", "--unknown=a b"], "model"),
        Some(Value::Text("--unknown=a b"))
    );
    assert_eq!(value(&["--model=--"], "model"), Some(Value::Empty));
    assert_eq!(
        error(&["--model", "-x"]).unwrap(),
        "argument --model: expected one argument"
    );
    assert_eq!(
        error(&["--level", "-1e3"]).unwrap(),
        "argument --level: expected one argument"
    );
    assert_eq!(
        error(&["--model", "--", "m"]).unwrap(),
        "argument --model: expected one argument"
    );
}

#[test]
fn every_kind_of_problem_points_at_its_word() {
    let as_pair = |kind: &str, part: &str| (kind.to_owned(), part.to_owned());
    let hint = "Unknown { hint: Some(Hint { spellings: [\"--max-num-seqs\"], foreign: false }) }";
    assert_eq!(
        problem(&["--max-num-sqes=8"]),
        as_pair(hint, "--max-num-sqes")
    );
    assert_eq!(
        problem(&["--frob=1"]),
        as_pair("Unknown { hint: None }", "--frob")
    );
    assert_eq!(problem(&["--model"]), as_pair("MissingValue", "--model"));
    assert_eq!(
        problem(&["--mark-trace=true"]),
        as_pair("UnexpectedValue", "true")
    );
    assert_eq!(
        problem(&["--no-enable_prefix_caching=1"]),
        as_pair("UnexpectedValue", "1")
    );
    assert_eq!(
        problem(&["--mark-trace", "true"]),
        as_pair("UnexpectedWord { after: Some(0) }", "true")
    );
    assert_eq!(
        problem(&["stray"]),
        as_pair("UnexpectedWord { after: None }", "stray")
    );
    assert_eq!(problem(&["-tp=x8"]), as_pair("BadType", "x8"));
    assert_eq!(
        problem(&["--hf-overrides", "{a}"]),
        as_pair("BadType", "{a}")
    );
    assert_eq!(
        problem(&["--method=medusa"]),
        as_pair("BadChoice { since: None }", "medusa")
    );
    assert_eq!(
        problem(&["--dcp_config",]),
        as_pair(
            "RejectedTwin { declared: \"--dcp-config\" }",
            "--dcp_config"
        )
    );
    assert_eq!(
        problem(&["--log-file"]),
        as_pair("Removed { on: Date(2025, 10, 29) }", "--log-file")
    );
    assert_eq!(
        problem(&["--state-checkpoint-slots=4"]),
        as_pair(
            "NotOnMain { used_by: \"InferenceX agentic Kimi-K3 recipe\" }",
            "--state-checkpoint-slots"
        )
    );
    assert_eq!(
        problem(&["-tp8"]),
        as_pair("GluedValue { spelling: \"-tp\" }", "8")
    );
    assert_eq!(problem(&["--help"]), as_pair("Help", "--help"));
}

#[test]
fn an_older_server_says_since_when_newer_ones_accept_a_word() {
    let table = Table::as_of(Date(2026, 6, 1));
    let kinds = |line: &[&str]| -> Vec<String> {
        problems(line, &table)
            .into_iter()
            .map(|(kind, ..)| kind)
            .collect()
    };
    assert_eq!(
        kinds(&["--mark_trace"]),
        ["NotYet { since: Date(2026, 7, 23) }"]
    );
    assert_eq!(
        kinds(&["--chat-template=x"]),
        ["NotYet { since: Date(2026, 8, 3) }"]
    );
    assert_eq!(
        kinds(&["--method", "dspark"]),
        ["BadChoice { since: Some(Date(2026, 7, 20)) }"]
    );
    assert_eq!(
        kinds(&["--load_dummy", "zero"]),
        ["UnexpectedWord { after: Some(0) }"]
    );
    assert_eq!(kinds(&["--dcp_config"]), ["Unknown { hint: None }"]);
    // A twin that is not there yet does not make a word ambiguous.
    assert_eq!(kinds(&["--enforce"]), [""; 0]);
}

#[test]
fn all_problems_are_found_and_the_first_error_is_argparses() {
    let line = ["--frob", "a", "-tp", "x", "--method=y", "--max"];
    let table = Table::builtin();
    let messages: Vec<String> = problems(&line, &table)
        .into_iter()
        .map(|(_, _, message)| message)
        .collect();
    assert_eq!(
        messages[..4],
        [
            "unrecognized arguments: --frob",
            "unrecognized arguments: a",
            "argument --tensor-parallel-size/-tp/--tensor_parallel_size: invalid int value: 'x'",
            "argument --method: invalid choice: 'y' (choose from 'mtp', 'eagle3', 'dspark')",
        ]
    );
    assert!(messages[4].starts_with("ambiguous option: --max could match --max-model-len, "));
    assert_eq!(error(&line).as_ref(), Some(&messages[4]));
    assert_eq!(error(&line[..5]).as_ref(), Some(&messages[2]));
    assert_eq!(
        error(&line[..2]).unwrap(),
        "unrecognized arguments: --frob a"
    );
    assert_eq!(
        error(&["--model", "m", "--", "--help"]).unwrap(),
        "unrecognized arguments: -- --help"
    );
}

#[test]
fn a_line_of_mistakes_is_listed_up_to_a_limit_and_still_judged_by_its_first_error() {
    let mut line = vec!["--frobnicate"; 5000];
    line.extend(["--level=x", "--method=y", "--max", "--max"]);
    let table = Table::builtin();
    let parsed = parse(&line, &table);
    assert_eq!(parsed.problems.len(), MOST_PROBLEMS + 2);
    assert!(
        parsed
            .argparse_error()
            .unwrap()
            .starts_with("ambiguous option: --max could")
    );
    let parsed = parse(&line[..5002], &table);
    assert_eq!(
        parsed.argparse_error().unwrap(),
        "argument --level: invalid int value: 'x'"
    );
    let parsed = parse(&line[..5000], &table);
    assert_eq!(
        parsed.argparse_error().unwrap().len(),
        "unrecognized arguments:".len() + 5000 * 13
    );
}

#[test]
fn help_ends_the_server_before_later_mistakes_and_after_earlier_ones() {
    let verdict = |line: &[&str]| parse(line, &Table::builtin()).verdict();
    assert_eq!(verdict(&["-h"]), Verdict::Help);
    assert_eq!(verdict(&["--frob", "--he", "-tp", "x"]), Verdict::Help);
    assert_eq!(verdict(&["-hh"]), Verdict::Help);
    assert!(matches!(verdict(&["-tp", "x", "-h"]), Verdict::Rejected(_)));
    assert_eq!(
        error(&["-hx"]).unwrap(),
        "argument -h/--help: ignored explicit argument 'x'"
    );
}

#[test]
fn an_option_with_many_values_takes_all_words_up_to_the_next_option() {
    let help = "usage: x\n\n  -h, --help\n  --model MODEL\n  --files [FILES ...]\n  -v\n  -n N\n";
    let table = Table::from_help(help).unwrap();
    let parsed = parse(
        &[
            "--files", "a", "b", "--model", "m", "-vn5", "-vv", "--files",
        ],
        &table,
    );
    assert_eq!(parsed.verdict(), Verdict::Accepted, "{:?}", parsed.problems);
    let found: Vec<(&str, usize, usize)> = parsed
        .occurrences
        .iter()
        .map(|found| (found.spelling, found.word, found.end))
        .collect();
    assert_eq!(
        found,
        [
            ("--files", 0, 3),
            ("--model", 3, 5),
            ("-v", 5, 6),
            ("-n", 5, 6),
            ("-v", 6, 7),
            ("-v", 6, 7),
            ("--files", 7, 8)
        ]
    );
    assert_eq!(parsed.occurrences[3].value.as_ref().unwrap().text, "5");
    assert_eq!(parsed.value_of("files").unwrap().value(), Value::Empty);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any words at all: no panic, and every place that a problem names exists.
    #[test]
    fn any_line_is_read(words in prop::collection::vec(
        prop_oneof!["\\PC{0,12}", "-{0,3}[a-z_=-]{0,8}[ =]?\\PC{0,4}", "(-tp|-h|--model|--enable-tbo|-dc|--level)=?\\PC{0,3}"], 0..8),
        as_of in prop::bool::ANY,
    ) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let table = if as_of { Table::as_of(Date(2026, 6, 1)) } else { Table::builtin() };
        let parsed = parse(&words, &table);
        for problem in &parsed.problems {
            prop_assert!(words[problem.word].get(problem.range.clone()).is_some());
        }
        for found in &parsed.occurrences {
            prop_assert!(found.end <= words.len());
            if let Some(value) = &found.value {
                prop_assert_eq!(&words[value.word][value.range.clone()], value.text);
            }
            prop_assert_eq!(matches!(found.value(), Value::Invalid(_)) && found.ok, false);
        }
        prop_assert_eq!(parsed.verdict() == Verdict::Accepted, parsed.problems.is_empty());
    }

    /// Any help text at all: a table or an error, and a table that can be read against.
    #[test]
    fn any_help_text_is_read(lines in prop::collection::vec(
        prop_oneof!["\\PC{0,20}", "  -{1,2}[a-z]{0,3}( [\\[{]{0,2}[A-Z,.]{0,4}[\\]}]{0,2})?(, -[a-z]{1,2})?(  \\PC{0,5})?"], 0..12)) {
        let text = format!("usage: x\n\n  -h, --help\n  --model M\n{}", lines.join("\n"));
        if let Ok(table) = Table::from_help(&text) {
            parse(&["-h", "--model", "x", "-a", "1"], &table);
        }
    }
}
