//! Our reading of a line against Python's argparse, for thousands of lines, good and broken.
//!
//! The other side is the stand-in server in `tests/fakes`, one process for all lines. `ATOM_TEST_PYTHON` names another
//! interpreter, `ATOM_TEST_LINES` another number of lines, `ATOM_TEST_SEED` another seed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "the helpers of a test fail as the test does"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use atom_launch::atom::argparse::{Occurrence, Parsed, Value, Verdict, parse};
use atom_launch::atom::table::{Arity, Form, OptionSpec, SpellingKind, Table, ValueType};
use serde_json::{Value as Json, json};

fn python() -> Command {
    let program = std::env::var_os("ATOM_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(program);
    command
        .args(["-m", "atom.entrypoints.openai_server"])
        .env(
            "PYTHONPATH",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fakes"),
        )
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1")
        .env("PYTHON_COLORS", "0")
        .env_remove("FAKE_ATOM_DATE")
        .env_remove("FAKE_ATOM_RECORD")
        .env_remove("FAKE_ATOM_MODE");
    command
}

/// What Python says about each line: its version, its defaults, its answers.
struct Answers {
    version: (u64, u64, u64),
    defaults: BTreeMap<String, Json>,
    lines: Vec<Json>,
}

fn ask_python(lines: &[Vec<String>], date: Option<&str>) -> Answers {
    let mut command = python();
    command.env("FAKE_ATOM_MODE", "parse-lines");
    if let Some(date) = date {
        command.env("FAKE_ATOM_DATE", date);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tests need python3");
    let mut input = String::new();
    for line in lines {
        writeln!(input, "{}", json!(line)).unwrap();
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let mut output = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Json>(&line.unwrap()).unwrap());
    let head = output.next().expect("the stand-in says its version");
    let answers: Vec<Json> = output.collect();
    writer.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(answers.len(), lines.len());
    let part = |at: usize| head["version"][at].as_u64().unwrap();
    Answers {
        version: (part(0), part(1), part(2)),
        defaults: serde_json::from_value(head["defaults"].clone()).unwrap(),
        lines: answers,
    }
}

/// A value as Python prints it: a type and a text.
#[derive(Debug, Clone, PartialEq)]
enum Shown {
    Nothing,
    Bool(bool),
    Int(i128),
    Float(String),
    Text(String),
    Json(Json),
    /// JSON that `serde_json` cannot hold (NaN, lone surrogates, huge numbers): only that there is one is compared.
    OddJson,
    EmptyList,
}

fn shown_float(number: f64) -> String {
    if number.is_nan() {
        "nan".to_owned()
    } else {
        format!("{number:e}")
    }
}

/// Python's integers have no limit; ours end at 128 bits.
fn saturated(text: &str) -> i128 {
    text.parse().unwrap_or(if text.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    })
}

/// Python's `null` is an option that was not given, and `[]` is what `--x=--` gives as well.
fn shown_json(text: &str) -> Shown {
    match serde_json::from_str(text) {
        Ok(Json::Null) => Shown::Nothing,
        Ok(Json::Array(items)) if items.is_empty() => Shown::EmptyList,
        Ok(value) => Shown::Json(value),
        Err(_) => Shown::OddJson,
    }
}

fn of_python(value: &Json) -> Shown {
    let Some([kind, text]) = value.as_array().map(Vec::as_slice) else {
        return Shown::Nothing;
    };
    let text = text.as_str().unwrap();
    match kind.as_str().unwrap() {
        "bool" => Shown::Bool(text == "True"),
        "int" => Shown::Int(saturated(text)),
        "float" => Shown::Float(shown_float(text.parse().unwrap())),
        "str" => Shown::Text(text.to_owned()),
        "json" => shown_json(text),
        "list" if text == "[]" => Shown::EmptyList,
        kind => panic!("unexpected {kind}: {text}"),
    }
}

fn of_ours(occurrence: &Occurrence<'_, '_>) -> Shown {
    match occurrence.value() {
        Value::Flag(on) => Shown::Bool(on),
        Value::Bare(text) => text.map_or(Shown::Nothing, |text| Shown::Text(text.to_owned())),
        Value::Text(text) => Shown::Text(text.to_owned()),
        Value::Int(number) => Shown::Int(number),
        Value::Float(number) => Shown::Float(shown_float(number)),
        Value::Json(text) => shown_json(text),
        Value::Empty => Shown::EmptyList,
        Value::Invalid(text) => panic!("`{text}` was accepted"),
    }
}

fn default_of(option: &OptionSpec) -> Shown {
    let Some(text) = option.form.default.as_deref() else {
        return Shown::Nothing;
    };
    match option.form.value_type {
        ValueType::Bool => Shown::Bool(text == "true"),
        ValueType::Int => Shown::Int(text.parse().unwrap()),
        ValueType::Float => Shown::Float(shown_float(text.parse().unwrap())),
        ValueType::Str | ValueType::Choice => Shown::Text(text.to_owned()),
        ValueType::Json => shown_json(text),
    }
}

/// All values of a line that are not the default.
fn our_values(parsed: &Parsed<'_, '_>, table: &Table) -> BTreeMap<String, Shown> {
    let mut values = BTreeMap::new();
    for option in table.options() {
        let Some(occurrence) = parsed.value_of(&option.dest) else {
            continue;
        };
        let value = of_ours(occurrence);
        if value != default_of(option) {
            values.insert(option.dest.to_string(), value);
        }
    }
    values
}

/// Messages of newer Pythons without what only looks different.
fn compared(message: &str) -> String {
    match message.split_once("(choose from ") {
        Some((before, choices)) => {
            format!("{before}(choose from {})", choices.replace(['\'', ')'], ""))
        }
        None => message.to_owned(),
    }
}

fn compare(lines: &[Vec<String>], table: &Table, date: Option<&str>) {
    let answers = ask_python(lines, date);
    for option in table.options().iter().filter(|option| !option.is_help()) {
        let python = answers.defaults.get(option.dest.as_ref()).map(of_python);
        assert_eq!(python, Some(default_of(option)), "{}", option.dest);
    }
    assert_eq!(answers.defaults.len() + 1, table.options().len());
    // Later versions report in another order, and read a few odd words differently: see the head of `argparse/mod.rs`.
    let version = answers.version;
    let same_order = version < (3, 12, 5);
    let same_corners = version < (3, 11, 9) || ((3, 12, 0)..(3, 12, 3)).contains(&version);
    let corner = |word: &String| {
        let short = word.starts_with('-') && !word.starts_with("--");
        word.ends_with("=--") || (short && word.len() > 2 && table.by_spelling(word).is_none())
    };
    let (mut accepted, mut kinds) = (0, BTreeMap::<String, usize>::new());
    for (line, python) in lines.iter().zip(&answers.lines) {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let parsed = parse(&words, table);
        let verdict = parsed.verdict();
        let about = format!(
            "line {}\nPython says {python}\nwe say {verdict:?}",
            json!(line)
        );
        if !same_corners && line.iter().any(corner) {
            continue;
        }
        if python["ok"] == true {
            assert_eq!(verdict, Verdict::Accepted, "{about}");
            assert!(parsed.problems.is_empty(), "{about}");
            let theirs: BTreeMap<String, Shown> = python["values"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(dest, value)| (dest.clone(), of_python(value)))
                .collect();
            assert_eq!(our_values(&parsed, table), theirs, "{about}");
            accepted += 1;
        } else if python["help"] == true {
            assert!(!same_order || verdict == Verdict::Help, "{about}");
            *kinds.entry("help".to_owned()).or_default() += 1;
        } else {
            assert!(!parsed.problems.is_empty(), "{about}");
            let theirs = python["error"].as_str().unwrap();
            if same_order {
                assert_eq!(parsed.argparse_error().as_deref(), Some(theirs), "{about}");
            } else if verdict != Verdict::Help {
                assert!(parsed.argparse_error().is_some(), "{about}");
                let ours = parsed
                    .problems
                    .iter()
                    .map(|problem| &problem.argparse_message);
                let known = theirs.starts_with("unrecognized arguments")
                    || ours
                        .map(|ours| compared(ours))
                        .any(|ours| ours == compared(theirs));
                assert!(known, "{about}");
            }
            let kind = [
                "ambiguous",
                "invalid choice",
                "invalid int",
                "invalid float",
                "invalid loads",
                "expected one",
                "ignored explicit",
                "unrecognized",
            ]
            .into_iter()
            .find(|kind| theirs.contains(kind))
            .unwrap_or("another");
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
    }
    println!("{} lines, {accepted} accepted, {kinds:?}", lines.len());
    // A generator that only makes one kind of line proves nothing.
    if lines.len() >= 1000 {
        assert!(
            accepted * 4 > lines.len(),
            "{accepted} of {} accepted",
            lines.len()
        );
        assert!(kinds.len() >= 8, "{kinds:?}");
    }
}

/// `SplitMix64`: the same lines on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(count).unwrap()).unwrap()
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

#[rustfmt::skip]
const INTS: &[&str] = &[
    "0", "8", "16384", "-1", "+5", " 8 ", "1_000", "007", "-0", "٣", "99999999999999999999",
];
#[rustfmt::skip]
const NO_INTS: &[&str] = &[
    "", "0x10", "1e3", "1.5", "abc", "8x", "_1", "1__0", "五", "it's", "\"", "a\\b", "é\u{301}", "a=b", "=8", "\u{a0}\u{200b}",
    "a\tb", "\u{1}", "+-1", "8 8",
];
#[rustfmt::skip]
const FLOATS: &[&str] = &[
    "0.9", "1", "-0.5", ".5", "5.", "1e3", "inf", "-inf", "nan", "1_0.5", " 0.90\n", "٠.٥", "1e999", "0.0",
];
#[rustfmt::skip]
const NO_FLOATS: &[&str] = &[
    "", "0.9f", "1,5", "0x1p3", "1._5", "nan1", "-", "90%", "--5",
];
#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "m", "/models/a b", "", "-", "[1,2,4]", "{}", "-1", "-1.5", "-٣", "a=b", "🙂", "-x y", "--un known", "--mod=a b",
    "true", "=", "it's \"x\"", "-5\n",
];
#[rustfmt::skip]
const JSONS: &[&str] = &[
    "{}", "{\"a\": [1, 2.5, null, true]}", "null", "3", "\"x\"", "[]", " {\"k\":\"v\"} ", "NaN", "{\"a\": \"b=c\"}", "-Infinity",
    "{\"a\":1,\"a\":2}", "\"\\ud800\"", "1e999", "-1", "{\"é\":\"\\u00e9\"}",
];
#[rustfmt::skip]
const NO_JSONS: &[&str] = &[
    "", "{", "{a:1}", "{'a':1}", "{\"a\":1,}", "01", "1.", "nul", "True", "[1 2]", "\"\n\"", "{}x", "\u{feff}{}",
    "'{}'", "x y",
];
#[rustfmt::skip]
const STRAY: &[&str] = &[
    "true", "8", "-5", "-1.5", "", "-", "--", "-x", "--frob", "--frob=1", "--frob=a b", "-tp8", "-tp=8", "-t", "-d",
    "-p", "-h", "--he", "-hh", "-hx", "-h=1", "-h=", "-dc", "-dc=2", "-t=8", "-pcp=--", "--=", "--=x", "---", "-=",
    "--no-enable", "--no_enable_prefix_caching", "--dcp_config", "{}", "--no-enable-p", "--log-file", "--model-path",
    "-é", "- x", "-5x", "--m", "--max", "--enable_e", "--kv", "--state-checkpoint-slots", "-tpx", "--\u{a0}", "-1_0",
    "-.5", "-1.", "-1e3", "--mode", "--model ", "--server", "-1\n", "--tensor", "-tp ", "--method=", "--trust",
];

struct Generator<'t> {
    random: Random,
    options: Vec<&'t OptionSpec>,
}

impl Generator<'_> {
    fn value(&mut self, option: &OptionSpec, good: bool) -> String {
        let choices: Vec<&str> = option.form.choices.iter().map(AsRef::as_ref).collect();
        let text = match (option.form.value_type, good) {
            (ValueType::Int, true) => self.random.of(INTS),
            (ValueType::Int, false) => self.random.of(NO_INTS),
            (ValueType::Float, true) => self.random.of(FLOATS),
            (ValueType::Float, false) => self.random.of(NO_FLOATS),
            (ValueType::Json, true) => self.random.of(JSONS),
            (ValueType::Json, false) => self.random.of(NO_JSONS),
            (ValueType::Choice, true) => self.random.of(&choices),
            (ValueType::Choice, false) => self.random.of(&["", "FP8", "none", "fp8 ", "it's"]),
            (ValueType::Str | ValueType::Bool, _) => self.random.of(TEXTS),
        };
        text.to_owned()
    }

    /// The words of one option, of a line that may be broken.
    fn option(&mut self, good: bool, words: &mut Vec<String>) {
        let option = self.options[self.random.below(self.options.len())];
        let arity = option.form.arity;
        let place = self.random.below(option.spellings.len());
        let full = option.spellings[place].text.as_ref();
        let mut name = full.to_owned();
        if self.random.percent(25) {
            // Half of the abbreviations keep nearly all letters, so that many are unambiguous.
            let letters = full.chars().count();
            let least = if good || self.random.percent(50) {
                letters.saturating_sub(3)
            } else {
                2
            };
            let keep = least.max(2) + self.random.below(letters.saturating_sub(least.max(2)) + 1);
            name = full.chars().take(keep).collect();
        }
        if !good && self.random.percent(15) {
            match self.random.below(5) {
                0 => name = name.replace('-', "_"),
                1 => name = name.to_uppercase(),
                2 => name.push('s'),
                3 => name = name.replacen("--", "-", 1),
                _ => name = name.replacen("--", "--no-", 1),
            }
        }
        let wants_value = match arity {
            Arity::None | Arity::BooleanPair => !good && self.random.percent(40),
            Arity::Optional => self.random.percent(60),
            Arity::Required | Arity::Many => good || self.random.percent(85),
        };
        if !wants_value {
            words.push(name);
            return;
        }
        let good_value = good || self.random.percent(60);
        let value = self.value(option, good_value);
        match self.random.below(10) {
            0..4 => words.push(format!("{name}={value}")),
            4 if !good => words.push(format!("{name}{value}")),
            4 if self.random.percent(10) => words.push(format!("{name}=--")),
            _ => words.extend([name, value]),
        }
    }

    fn line(&mut self) -> Vec<String> {
        let good = self.random.percent(50);
        let mut words = Vec::new();
        for _ in 0..self.random.below(if good { 8 } else { 5 }) {
            let good = good || self.random.percent(60);
            self.option(good, &mut words);
        }
        if !good && self.random.percent(45) {
            let at = self.random.below(words.len() + 1);
            words.insert(at, self.random.of(STRAY).to_owned());
        }
        if !good && self.random.percent(5) {
            words.push("--".to_owned());
            self.option(true, &mut words);
        }
        words
    }
}

fn number_from(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn lines(table: &Table, count: u64, seed: u64) -> Vec<Vec<String>> {
    let mut generator = Generator {
        random: Random(seed),
        options: table
            .options()
            .iter()
            .filter(|option| !option.is_help())
            .collect(),
    };
    (0..count).map(|_| generator.line()).collect()
}

#[test]
fn generated_lines_are_read_as_python_reads_them() {
    let table = Table::builtin();
    let count = number_from("ATOM_TEST_LINES", 6000);
    let mut lines = lines(&table, count, number_from("ATOM_TEST_SEED", 20_261_201));
    // Every stray word alone, before and after a good option, and as the value of one.
    for stray in STRAY {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        lines.push(words(&[stray]));
        lines.push(words(&["--model", stray]));
        lines.push(words(&["--load_dummy", stray, "--enforce-eager"]));
        lines.push(words(&[stray, "-tp", "8"]));
        lines.push(words(&["-tp", "x", stray]));
        lines.push(words(&[stray, "8"]));
    }
    compare(&lines, &table, None);
}

#[test]
fn older_servers_are_read_as_python_reads_them() {
    for date in ["2026-03-29", "2026-05-30", "2026-07-20"] {
        let table = Table::as_of(date.parse().unwrap());
        compare(&lines(&table, 500, 7), &table, Some(date));
    }
}

/// What a table says about an option, without what no help text tells.
fn outline(table: &Table) -> Vec<(String, String, Form)> {
    table
        .options()
        .iter()
        .map(|option| {
            (
                option.dest.to_string(),
                option.argparse_name(),
                option.form.clone(),
            )
        })
        .collect()
}

fn help_text(columns: &str) -> String {
    let output = python()
        .arg("--help")
        .env("COLUMNS", columns)
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_help_of_the_stand_in_gives_back_the_built_in_table() {
    for columns in ["20", "80", "400"] {
        let table = Table::from_help(&help_text(columns)).unwrap();
        assert_eq!(
            outline(&table),
            outline(&Table::builtin()),
            "{columns} columns"
        );
    }
}

/// The same text as other Pythons print it: up to 3.12 the value follows each spelling, from 3.13 on only the last.
#[test]
fn the_help_of_other_pythons_gives_back_the_built_in_table() {
    for text in [
        include_str!("help/python-3.12.txt"),
        include_str!("help/python-3.13.txt"),
    ] {
        let table = Table::from_help(text).unwrap();
        assert_eq!(
            outline(&table),
            outline(&Table::builtin()),
            "after a refresh of the tables print them again"
        );
    }
}

#[test]
fn the_stand_in_rejects_a_line_with_status_2_and_argparses_words() {
    let words = ["--model", "m", "--max-num-seqs", "many", "--frob"];
    let output = python().args(words).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let ours = parse(&words, &Table::builtin()).argparse_error().unwrap();
    let last = stderr.lines().last().unwrap();
    assert!(last.ends_with(&format!(": error: {ours}")), "{last}");
}

#[test]
fn the_stand_in_records_what_it_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.json");
    let output = python()
        .args(["--model", "m", "-tp", "8"])
        .env("FAKE_ATOM_RECORD", &path)
        .env("FAKE_ATOM_MODE", "exit:7")
        .env("SOME_VARIABLE", "some value")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7));
    let record: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record["argv"], json!(["--model", "m", "-tp", "8"]));
    assert_eq!(record["environ"]["SOME_VARIABLE"], "some value");
    assert!(record["nofile"]["hard"].is_i64());
    assert_eq!(record["SigIgn"].as_str().map(str::len), Some(16));
}

#[test]
fn the_stand_in_serves_until_it_is_told_to_end() {
    let mut child = python()
        .args(["--model", "m"])
        .env("FAKE_ATOM_MODE", "serve")
        .env("FAKE_ATOM_TERM_CODE", "9")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "serving\n");
    let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn the_rust_table_and_the_middle_form_agree() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fakes/atom/options.json"
    ))
    .unwrap();
    let facts: Json = serde_json::from_str(&text).unwrap();
    let kind = |kind: SpellingKind| match kind {
        SpellingKind::Declared => "declared",
        SpellingKind::Twin => "twin",
        SpellingKind::Negation => "negation",
    };
    let form = |form: &Form| {
        let default = form.default.as_deref().map(|text| match form.value_type {
            ValueType::Str | ValueType::Choice => json!(text),
            _ => serde_json::from_str(text).unwrap(),
        });
        let arity = match form.arity {
            Arity::None => "none",
            Arity::Optional => "optional",
            Arity::Required => "required",
            Arity::BooleanPair => "boolean-pair",
            Arity::Many => "many",
        };
        let value_type = format!("{:?}", form.value_type).to_lowercase();
        json!({ "arity": arity, "type": value_type, "choices": form.choices, "bare": form.bare, "default": default })
    };
    let join = |mut a: Json, b: Json| {
        let Json::Object(b) = b else {
            panic!("no object")
        };
        a.as_object_mut().unwrap().extend(b);
        a
    };
    let options: Vec<Json> = Table::builtin()
        .options()
        .iter()
        .map(|option| {
            let spellings: Vec<Json> = option
                .spellings
                .iter()
                .map(|spelling| json!([spelling.text, kind(spelling.kind), spelling.since.to_string()]))
                .collect();
            let earlier: Vec<Json> = option
                .earlier
                .iter()
                .map(|earlier| join(json!({ "until": earlier.until.to_string() }), form(&earlier.form)))
                .collect();
            let layer = format!("{:?}", option.layer).to_lowercase();
            let group = (!option.group.is_empty()).then_some(option.group);
            let head = json!({ "dest": option.dest, "group": group, "layer": layer, "content": option.content,
                "since": option.since.to_string(), "spellings": spellings, "earlier": earlier });
            join(head, form(&option.form))
        })
        .collect();
    assert_eq!(facts["options"], json!(options));
    for gone in facts["removed"].as_array().unwrap() {
        let known = atom_launch::atom::table::removed_option(gone[0].as_str().unwrap()).unwrap();
        assert_eq!(
            *gone,
            json!([
                known.spelling,
                known.since.to_string(),
                known.removed.to_string()
            ])
        );
    }
    for twin in facts["rejected_twins"].as_array().unwrap() {
        let known = atom_launch::atom::table::rejected_twin(twin[0].as_str().unwrap()).unwrap();
        assert_eq!(*twin, json!([known.spelling, known.declared]));
    }
    for branch in facts["not_on_main"].as_array().unwrap() {
        let known = atom_launch::atom::table::not_on_main(branch[0].as_str().unwrap()).unwrap();
        assert_eq!(*branch, json!([known.spelling, known.used_by]));
    }
}
