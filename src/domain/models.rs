//! The models file as typed values. Every rule about its text is in `input/`, every rule about its meaning in `resolve/`.

use super::source::{Located, SourceFile, Span};

/// One word of a flag string, and where it stands.
pub type Word = Located<String>;

/// A field of words. Empty but present means "replace the shared field with nothing".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    /// The words in order.
    pub words: Vec<Word>,
    /// The whole value.
    pub span: Span,
}

/// `NAME=VALUE` of an environment field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Name of the variable.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where the pair stands.
    pub span: Span,
}

/// A field of environment pairs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pairs {
    /// The pairs in order.
    pub pairs: Vec<Pair>,
    /// The whole value.
    pub span: Span,
}

/// A JSON object as the text that the server receives; empty means "explicitly none".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(pub Located<String>);

/// A number in its own spelling (`0.90` stays `0.90`), checked against its field's range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number(pub Located<String>);

/// A list of whole numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberList(pub Located<Vec<u64>>);

/// A plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub Located<String>);

/// What a field's value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One string split by POSIX shell rules, or a list of strings.
    Words,
    /// `KEY=VALUE` words in one string, a list of them, or a mapping.
    Pairs,
    /// A string of JSON or a mapping.
    JsonText,
    /// A decimal number, or a string that is one.
    Number,
    /// A list of whole numbers.
    NumberList,
    /// A string.
    Text,
}

/// Name, kind and meaning of a field, for messages, schema and docs.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Key in the file.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// What it is for.
    pub about: &'static str,
}

/// The one list of fields: `(name: kind, meaning)`. The struct, the reader, the schema and the docs come from it.
macro_rules! with_model_fields {
    ($callback:ident) => {
        $callback! {
            env: Pairs, "Environment of the server, in every mode.";
            prefill_env: Pairs, "More environment for prefill workers.";
            decode_env: Pairs, "More environment for decode workers.";
            tp_dp_env: Pairs, "More environment in mode tp-dp.";
            ep_dp_env: Pairs, "More environment in mode ep-dp.";
            flags: Words, "Arguments passed in every mode.";
            prefill_flags: Words, "In place of `flags` for prefill workers.";
            decode_flags: Words, "In place of `flags` for decode workers.";
            tp_dp_flags: Words, "Parallel arguments of mode tp-dp (tensor parallel, data-parallel attention).";
            prefill_tp_dp_flags: Words, "In place of `tp_dp_flags` for prefill workers.";
            decode_tp_dp_flags: Words, "In place of `tp_dp_flags` for decode workers.";
            ep_dp_flags: Words, "Parallel arguments of mode ep-dp (expert parallel, data-parallel attention).";
            prefill_ep_dp_flags: Words, "In place of `ep_dp_flags` for prefill workers.";
            decode_ep_dp_flags: Words, "In place of `ep_dp_flags` for decode workers.";
            mtp_flags: Words, "Speculative decoding: the words before the number of speculative tokens.";
            kv_cache_flags: Words, "KV-cache arguments, such as `--kv_cache_dtype fp8`.";
            hf_overrides: JsonText, "Value of `--hf-overrides`.";
            online_quant_config: JsonText, "Value of `--online_quant_config`.";
            online_quant_dpa_config: JsonText, "Value of `--online_quant_config` in modes with data-parallel attention; without it `online_quant_config` holds there as well.";
            block_size: Number, "Value of `--block-size`: tokens a KV-cache block, from 1.";
            mem_frac_static: Number, "Value of `--gpu-memory-utilization`: fraction of GPU memory, above 0 and at most 1.";
            max_model_len: Number, "Value of `--max-model-len`: tokens, from 1.";
            max_num_seqs: Number, "Value of `--max-num-seqs`: sequences in a batch, from 1.";
            max_num_batched_tokens: Number, "Value of `--max-num-batched-tokens`: tokens a step, from 1.";
            scheduler_delay_factor: Number, "Value of `--scheduler-delay-factor`: a factor of the last prompt's latency, from 0.";
            cudagraph_capture_sizes: NumberList, "Value of `--cudagraph-capture-sizes` for decode and standalone workers: batch sizes, from 1.";
            hf_dir: Text, "Directory under MODEL_DIR where it is not the model's name; a hub cache folder (`models--org--name`) means its snapshot.";
        }
    };
}
pub(crate) use with_model_fields;

macro_rules! define_entry {
    ($($name:ident: $kind:ident, $about:literal;)+) => {
        /// One model of the file. A field that is absent (or null) is `None`.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct ModelEntry {
            /// The model's name and where its entry starts.
            pub name: Located<String>,
            $(#[doc = $about] pub $name: Option<$kind>,)+
        }

        /// All fields of an entry, in the order of the docs.
        pub const FIELDS: &[Field] = &[
            $(Field { name: stringify!($name), kind: Kind::$kind, about: $about },)+
        ];
    };
}
with_model_fields!(define_entry);

impl<T: Default> Default for Located<T> {
    fn default() -> Self {
        Self {
            value: T::default(),
            span: Span::default(),
        }
    }
}

impl ModelEntry {
    /// All fields of words that are present, with their names.
    pub fn words(&self) -> impl Iterator<Item = (&'static str, &Words)> {
        [
            ("flags", &self.flags),
            ("prefill_flags", &self.prefill_flags),
            ("decode_flags", &self.decode_flags),
            ("tp_dp_flags", &self.tp_dp_flags),
            ("prefill_tp_dp_flags", &self.prefill_tp_dp_flags),
            ("decode_tp_dp_flags", &self.decode_tp_dp_flags),
            ("ep_dp_flags", &self.ep_dp_flags),
            ("prefill_ep_dp_flags", &self.prefill_ep_dp_flags),
            ("decode_ep_dp_flags", &self.decode_ep_dp_flags),
            ("mtp_flags", &self.mtp_flags),
            ("kv_cache_flags", &self.kv_cache_flags),
        ]
        .into_iter()
        .filter_map(|(name, words)| words.as_ref().map(|words| (name, words)))
    }

    /// All fields of pairs that are present, with their names.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &Pairs)> {
        [
            ("env", &self.env),
            ("prefill_env", &self.prefill_env),
            ("decode_env", &self.decode_env),
            ("tp_dp_env", &self.tp_dp_env),
            ("ep_dp_env", &self.ep_dp_env),
        ]
        .into_iter()
        .filter_map(|(name, pairs)| pairs.as_ref().map(|pairs| (name, pairs)))
    }
}

/// How the models file was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Compiled into the program.
    BuiltIn,
    /// A path, and the option or variable that named it.
    Path {
        /// As given.
        path: String,
        /// `--models-file`, `ATOM_MODELS_FILE` or `ATOM_WS_PATH`.
        named_by: String,
    },
}

impl Origin {
    /// In words: `built-in`, or the path and what named it.
    pub fn in_words(&self) -> String {
        match self {
            Self::BuiltIn => "built-in".to_owned(),
            Self::Path { path, named_by } => format!("{path} ({named_by})"),
        }
    }
}

/// A whole models file.
#[derive(Debug)]
pub struct ModelsFile {
    /// Where it came from.
    pub origin: Origin,
    /// Its text, for positions and snippets.
    pub file: SourceFile,
    /// SHA-256 of its bytes, lower-case hexadecimal.
    pub sha256: String,
    /// Models in file order; templates are not among them.
    pub entries: Vec<ModelEntry>,
}

impl ModelsFile {
    /// The entry of exactly this name.
    pub fn entry(&self, name: &str) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.name.value == name)
    }

    /// All model names in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.value.as_str())
    }
}
