//! The recorded jobs, and what the rules ask about them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::project;

/// One recorded job.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) env: BTreeMap<String, String>,
    /// Models file, where it was another than the default one.
    pub(super) models_yaml: Option<String>,
    /// Whether the script was the first public version, which read another table.
    pub(super) first: bool,
    pub(super) files: Vec<String>,
    pub(super) server: Option<Vec<String>>,
    pub(super) router: Option<Vec<String>>,
    pub(super) exported: BTreeMap<String, String>,
}

/// All of them, with the tables that they read.
pub(super) struct Records {
    pub(super) cases: Vec<Case>,
    pub(super) current: Value,
    pub(super) first: Value,
}

/// Take differences from a common base; null takes away.
pub(super) fn patched(base: &Value, change: &Value) -> BTreeMap<String, String> {
    let mut all = base.as_object().unwrap().clone();
    for (name, value) in change.as_object().into_iter().flatten() {
        all.insert(name.clone(), value.clone());
    }
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
        .collect()
}

pub(super) fn records() -> Records {
    let text = std::fs::read_to_string(project("tests/data/recorded.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let strings = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let words = strings(&data["words"]);
    let argv = |list: &Value| -> Option<Vec<String>> {
        list.is_array().then(|| {
            let full = |word: String| match word.strip_prefix('@') {
                Some(number) => words[number.parse::<usize>().unwrap()].clone(),
                None => word,
            };
            strings(list).into_iter().map(full).collect()
        })
    };
    let cases = data["cases"].as_array().unwrap().iter();
    let cases = cases.map(|case| Case {
        name: case["name"].as_str().unwrap().to_owned(),
        env: patched(&data["base"]["env"], &case["env"]),
        models_yaml: case["models_yaml"].as_str().map(str::to_owned),
        first: case["table"] == "first",
        files: case["cwd_files"]
            .as_array()
            .map_or(Vec::new(), |_| strings(&case["cwd_files"])),
        server: argv(&case["server"]),
        router: argv(&case["router"]),
        exported: match &case["exported"] {
            Value::Null => BTreeMap::new(),
            change => patched(&data["base"]["exported"], change),
        },
    });
    Records {
        cases: cases.collect(),
        current: data["tables"]["current"].clone(),
        first: data["tables"]["first"].clone(),
    }
}

/// A case with all that rules look at.
pub(super) struct Job<'a> {
    pub(super) case: &'a Case,
    pub(super) records: &'a Records,
}

impl Job<'_> {
    pub(super) fn var(&self, name: &str) -> &str {
        self.case.env.get(name).map_or("", String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.var(name).parse().ok()
    }

    /// Prefill nodes come first. `None` where the numbers are none.
    pub(super) fn role(&self) -> Option<&'static str> {
        let rank = match self.var("NODE_RANK") {
            "" => self.number("SLURM_PROCID")?,
            rank => rank.parse().ok()?,
        };
        let prefill = self.number("xP")?;
        Some(if rank < prefill { "prefill" } else { "decode" })
    }

    /// A role's mode: by the exact word `true` as the old script read it, or by every spelling.
    pub(super) fn mode(&self, role: &str, exact: bool) -> &'static str {
        let on = |what: &str| {
            let value = self.var(&format!("{}_ENABLE_{what}", role.to_uppercase()));
            value == "true"
                || !exact && ["true", "1", "yes", "on"].contains(&value.to_lowercase().as_str())
        };
        match (on("EP"), on("DP")) {
            // The first version compared EP with a number, so that `true` was never on.
            (true, true) if !(exact && self.case.first) => "ep-dp",
            (_, true) => "tp-dp",
            (_, false) => "tp",
        }
    }

    /// The entry that the old script looked up, as far as the tables of the test data have it.
    pub(super) fn entry(&self) -> Option<&Value> {
        let table = if self.case.first {
            &self.records.first
        } else {
            &self.records.current
        };
        if self.case.models_yaml.is_some() || self.has_no_file() {
            return None;
        }
        table.get(self.var("MODEL_NAME"))
    }

    pub(super) fn has_no_file(&self) -> bool {
        self.is("yaml/missing-file/")
    }

    /// Flags of a mode in the entry.
    pub(super) fn mode_flags(&self, role: &str, mode: &str) -> Vec<String> {
        let Some(entry) = self.entry() else {
            return Vec::new();
        };
        let field = format!("{}_flags", mode.replace('-', "_"));
        let own = &entry[format!("{role}_{field}")];
        let text = own.as_str().or(entry[&field].as_str()).unwrap_or("");
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Whether the name starts so.
    pub(super) fn is(&self, start: &str) -> bool {
        self.case.name.starts_with(start)
    }

    pub(super) fn other(&self, name: &str) -> &Case {
        self.records
            .cases
            .iter()
            .find(|case| case.name == name)
            .unwrap()
    }
}
