//! Every kind of finding: its stable name, one line, and the long text of `check --explain`. docs/lints.md is made from this list.

use super::diagnostic::Code;

/// Who finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Loading a models file.
    Loading,
    /// `check`, and the checks before a launch.
    Check,
    /// Resolving a job: settings, topology, addresses.
    Job,
}

/// One kind of finding.
#[derive(Debug, Clone, Copy)]
pub struct Description {
    /// Kebab-case name.
    pub code: Code,
    /// Where it is found.
    pub found: Found,
    /// One line.
    pub summary: &'static str,
    /// Why it matters and what to do.
    pub explanation: &'static str,
}

macro_rules! codes {
    ($($found:ident $constant:ident = $name:literal, $summary:literal, $explanation:literal;)+) => {
        $(#[doc = $summary] pub const $constant: Code = Code($name);)+

        /// All kinds, in the order of the docs.
        pub const ALL: &[Description] = &[
            $(Description { code: $constant, found: Found::$found, summary: $summary, explanation: $explanation },)+
        ];
    };
}

codes! {
    Loading UNREADABLE_FILE = "unreadable-file", "a file cannot be read",
        "It does not exist, is a directory, is larger than 4 MiB, or is not UTF-8. A byte-order mark and CRLF line ends are fine.";
    Loading YAML_SYNTAX = "yaml-syntax", "the file is not readable as YAML",
        "The reader stops at the first such place, so other mistakes of the file show only once this one is mended. Tabs in the indentation and a missing line break between two entries are the usual causes.";
    Loading NO_MODELS = "no-models", "the file holds no model",
        "It is empty, or everything in it is a template (a name that starts with `.` or `x-`).";
    Loading DUPLICATE_MODEL = "duplicate-model", "a model is there twice",
        "Most YAML readers keep the last entry and drop the first without a word, so that one of two people's work is lost.";
    Loading DUPLICATE_KEY = "duplicate-key", "a field, variable or key is there twice",
        "Most YAML and JSON readers keep the last one without a word.";
    Loading UNKNOWN_FIELD = "unknown-field", "a field that no model has",
        "It would be ignored, and the model would run without it. The fields are listed at the head of models_atom.yaml.";
    Loading WRONG_TYPE = "wrong-type", "a value of the wrong kind",
        "For example a list where a number is wanted, or fields that are not indented below their model.";
    Loading BAD_WORDS = "bad-words", "a string that does not split into words",
        "Strings of words follow the quoting rules of a POSIX shell, without any expansion. A quote that is never closed and an unquoted `#`, which a shell would take for a comment, are errors.";
    Loading BAD_PAIR = "bad-pair", "no NAME=VALUE",
        "Environment fields hold NAME=VALUE words, a list of them, or a mapping. A name has letters, digits and `_`, and starts with no digit.";
    Loading BAD_JSON = "bad-json", "no JSON object",
        "The value goes to the server byte for byte, so it must be one JSON object without repeated keys. A YAML mapping works as well and needs no quotes.";
    Loading BAD_NUMBER = "bad-number", "no number that the field takes",
        "Numbers are decimal and keep their spelling. A leading zero is refused, since some readers take it for an octal number; so are exponents where a whole number is wanted.";

    Check UNKNOWN_FLAG = "unknown-flag", "a flag that the server does not have",
        "The server's parser exits with 2 as soon as it starts. The built-in table is that of ATOM's main branch; `check --server-help` checks against the help text of an image, `check --atom-date` against main as of a day.";
    Check AMBIGUOUS_FLAG = "ambiguous-flag", "an abbreviation that fits several flags",
        "The server's parser takes the beginning of a flag only where it fits one alone.";
    Check ABBREVIATED_FLAG = "abbreviated-flag", "the beginning of a flag instead of the flag",
        "The server accepts it today; the next option that starts the same way makes it an error, and a typo can silently mean another option.";
    Check MISSING_VALUE = "missing-value", "a flag without its value",
        "A value that starts with a dash needs the form `--flag=-value`.";
    Check UNEXPECTED_VALUE = "unexpected-value", "a value for a flag that takes none",
        "Switches are on when they are there; `=true` is refused.";
    Check BAD_VALUE = "bad-value", "a value of the wrong type",
        "The server's parser reads whole numbers and numbers as Python does.";
    Check BAD_CHOICE = "bad-choice", "a value outside the flag's choices",
        "The server's parser exits with 2.";
    Check UNEXPECTED_WORD = "unexpected-word", "a word that belongs to no flag",
        "The server takes no positional arguments.";
    Check FLAG_WITH_BLANK = "flag-with-blank", "a flag and its value in one word",
        "In a list every item is one word, and after `--` every shell word is: `--flag value` in one of them is a single, unknown word.";
    Check LAUNCHER_FLAG = "launcher-flag", "a flag that the launcher sets",
        "What describes a worker (model, port, tensor-parallel size, KV transfer) comes from the job; the launcher's checks, ports and health waits rely on it. A tuning value has a field of its own; in another field it comes first and loses.";
    Check REPEATED_FLAG = "repeated-flag", "a flag that is passed twice",
        "The server keeps the last value. In extra arguments that is how a value is overridden on purpose.";
    Check PORT_FLAG = "port-flag", "`--port` where `--server-port` is meant",
        "ATOM's `--port` only becomes MASTER_PORT, and nothing listens there.";
    Check MTP_FLAGS_END = "mtp-flags-end", "`mtp_flags` does not end in `--num-speculative-tokens`",
        "The number of speculative tokens of the job is put right behind the field's last word.";
    Check DRAFT_MODEL = "draft-model", "a draft model is missing or too many",
        "`--method eagle3` needs `--draft-model`, `--method mtp` refuses it. The server notices before it starts its workers.";
    Check SPECULATION_WITHOUT_METHOD = "speculation-without-method", "speculative options without a method",
        "The server ignores them without a word.";
    Check SPECULATIVE_TOKENS = "speculative-tokens", "a number of speculative tokens that the server refuses or ignores",
        "1 to 4 for mtp and eagle3; 0 switches speculation off although a method is named.";
    Check ACCEPTANCE = "acceptance", "simulated acceptance of speculative tokens",
        "What the server answers then means nothing, so it is for measurements only. Rate and length exclude each other; a rate is from 0 to 1, a length from 1 to one more than the speculative tokens.";
    Check TBO_ON_DECODE = "tbo-on-decode", "two-batch overlap for prefill on a decode worker",
        "Bare `--enable-tbo` means prefill only, since the option exists. A decode worker has almost no prefill, so the model is only wrapped for nothing; decode needs `--enable-tbo all`.";
    Check TBO_WITH_SPECULATION = "tbo-with-speculation", "two-batch overlap of decode together with speculation",
        "The server does not refuse it, but the split decode batches carry no speculative metadata; its code calls it unsupported.";
    Check TENSOR_PARALLEL_SIZE = "tensor-parallel-size", "`-tp` outside 1 to 8",
        "The server asserts it: a worker cannot span nodes.";
    Check PARALLEL_SIZE = "parallel-size", "a parallel size below 1",
        "The server asserts it.";
    Check MORE_RANKS_THAN_GPUS = "more-ranks-than-gpus", "more ranks than GPUs",
        "The surplus workers fail. With data-parallel attention `-tp 8` alone gives 8 data-parallel ranks; `-dp 8` on top asks for 64.";
    Check PARALLEL_COMBINATION = "parallel-combination", "parallel sizes that do not go together",
        "Pipeline parallelism excludes data-parallel attention and `-dp`, and needs `--enforce-eager`; `-dcp` must divide `-tp`.";
    Check NEEDS_EXPERT_PARALLEL = "needs-expert-parallel", "an option that needs expert parallelism",
        "`--moe-backend mega` and `--eplb-enable` work only with `--enable-expert-parallel`.";
    Check OUT_OF_RANGE = "out-of-range", "a number that the server cannot work with",
        "The parser takes it; it shows as a failure after the weights are loaded.";
    Check BLOCK_SIZE = "block-size", "a KV-cache block that most models refuse",
        "Models without MLA need a multiple of 16, MiniMax-M3 of 128; DeepSeek-V4 takes 256 whatever is asked for. The server notices after the weights are loaded.";
    Check CAPTURE_SIZES = "capture-sizes", "CUDA-graph sizes that fail",
        "The value must be a list. `1,2,4` or a bare number pass the parser and fail after the weights are loaded, and so do sizes that are all above the largest possible batch.";
    Check BATCH_WITHOUT_GRAPH = "batch-without-graph", "decode batches larger than the largest CUDA graph",
        "They run eagerly, which is far slower; a benchmark at that concurrency measures something else.";
    Check BAD_JSON_FLAG = "bad-json-flag", "a flag whose JSON is no object",
        "The engine and the HTTP process may even read it differently.";
    Check UNKNOWN_JSON_KEY = "unknown-json-key", "a JSON key that the server does not have",
        "Most options ignore it without a word, so that a misspelt key changes nothing; `--dspark-config`, `--dcp-config` and `--eplb-config` refuse it.";
    Check QUANT_FORMAT = "quant-format", "an online quantisation format that does not exist",
        "The server takes ptpc_fp8, per_block_fp8, per_block128_fp8, mxfp4 and mxfp8.";
    Check KV_TRANSFER = "kv-transfer", "a KV-transfer configuration that cannot work",
        "Unknown connectors fail after the weights are loaded; a misspelt role silently means consumer; a port as text fails when an offset is added.";
    Check VARIABLE_COMBINATION = "variable-combination", "a variable that contradicts an argument",
        "ATOM_MLA_PAGE_SIZE and ATOM_USE_TRITON_MLA_SHUFFLE_KV want `--block-size 64`, ATOM_USE_UNIFIED_ATTN 128 or 64; KV events work with one data-parallel rank only.";
    Check NO_EFFECT = "no-effect", "an option that changes nothing here",
        "The server accepts it and does what it would do without it.";
    Check UNKNOWN_VARIABLE = "unknown-variable", "an ATOM_ or AITER_ variable that nothing known reads",
        "Probably misspelt; or newer than the built-in table.";
    Check ENV_WITHOUT_EFFECT = "env-without-effect", "a variable that the server does not read, or overwrites",
        "It was removed, is read by other programs only, or the server sets it itself.";
    Check BAD_VARIABLE_VALUE = "bad-variable-value", "a value that the variable's reader takes differently",
        "Most of ATOM's switches are on for `1` only: `true` switches them off without a word. Numbers that are none raise, often after the weights are loaded.";
    Check ENV_TWICE = "env-twice", "a variable that is set twice to the same value",
        "Harmless today; the next change will be made to one of the two.";
    Check ENV_CONFLICT = "env-conflict", "a variable with two values in fields that apply together",
        "`env`, the role's and the mode's field are joined; which of two values wins must not depend on their order.";
    Check SECRET_IN_FILE = "secret-in-file", "something that looks like a secret",
        "The models file is shared and reviewed. The server inherits the job's environment, so a token is best exported there.";
    Check LOADER_VARIABLE = "loader-variable", "a variable that changes which code is loaded",
        "LD_PRELOAD, PYTHONPATH and their like replace what the image and the job have set, for every process of the server.";
    Check LAUNCHER_VARIABLE = "launcher-variable", "a variable that the launcher sets for each worker",
        "A value in the file is the same for all workers, where each needs its own.";
    Check YAML_DIFFERS = "yaml-differs", "a plain value that another YAML reader takes differently",
        "PyYAML, which the old script used, follows YAML 1.1: yes, no, on and off are booleans, 010 is eight, 1:30 is ninety, 2026-01-02 is a date, and 1e3 is a string. Quotes settle it.";
    Check MODE_WITHOUT_FLAGS = "mode-without-flags", "a mode that the model has no flags for",
        "The old script silently ran plain tensor parallelism instead.";
    Check MODE_NOT_SWITCHED_ON = "mode-not-switched-on", "a mode's flags do not switch on what the mode means",
        "tp-dp means `--enable-dp-attention`; ep-dp means `--enable-expert-parallel` as well.";
    Check BLURRED_MODE = "blurred-mode", "a switch of one mode in the flags of another",
        "What the banner, the file names and the results call one mode would be another.";
    Check IDENTICAL_MODES = "identical-modes", "two modes that run the same command",
        "A benchmark of the two compares a command with itself.";
    Check FIELD_WITHOUT_EFFECT = "field-without-effect", "a field that no command ever uses",
        "Its mode cannot run, so nothing ever reads it.";
    Check MTP_WITHOUT_FLAGS = "mtp-without-flags", "speculative decoding for a model without `mtp_flags`",
        "The old script ran without speculation and said otherwise.";

    Job INVALID_SETTING = "invalid-setting", "an option or variable with an unusable value",
        "Numbers are decimal, booleans are true/false, 1/0, yes/no or on/off, ports are 1 to 65535. All such mistakes are reported together.";
    Job CONTRADICTION = "contradiction", "two settings that exclude each other",
        "Nothing is chosen for you. An option on the command line settles most of them.";
    Job MISSPELT_VARIABLE = "misspelt-variable", "a variable that looks like one of ours misspelt",
        "It is not read.";
    Job ENV_FILE = "env-file", "a line of an env file that is not taken as a shell would",
        "Nothing is expanded.";
    Job NO_MODEL = "no-model", "no model is given",
        "Name one with `--model` or MODEL_NAME.";
    Job UNKNOWN_MODEL = "unknown-model", "the model is not in the models file",
        "The old script went on with an empty configuration.";
    Job NO_MODEL_FOLDER = "no-model-folder", "no folder of models is set",
        "The server gets the model's bare name, which it takes for a folder below its working directory or a hub id.";
    Job UNCLEAR_SNAPSHOT = "unclear-snapshot", "a hub cache folder without a clear snapshot",
        "Name the snapshot itself with `--model-path`.";
    Job WHICH_WORKER = "which-worker", "it is not clear which worker this process is",
        "Set NODE_RANK or `--rank`; with several workers on a node also `--worker`, or use `atom-launch node`.";
    Job RANK_OUTSIDE_TOPOLOGY = "rank-outside-topology", "a rank that the job does not have",
        "The old script started one more decode server.";
    Job TOO_FEW_NODES = "too-few-nodes", "fewer addresses than ranks",
        "The router would get URLs without a host.";
    Job TOO_MANY_NODES = "too-many-nodes", "more addresses than ranks",
        "The surplus nodes are allocated and idle.";
    Job NO_ADDRESSES = "no-addresses", "no addresses of the nodes",
        "A single worker can start without; the router and the waits cannot.";
    Job NO_HOST_ADDRESS = "no-host-address", "no address for KV transfer",
        "Give it with `--host-ip`, or all nodes with IPADDRS.";
    Job LOOPBACK_ADDRESS = "loopback-address", "a loopback address among others",
        "Other ranks would reach themselves. The usual cause is a node that resolves its own name through /etc/hosts.";
    Job TENSOR_PARALLEL_TOO_LARGE = "tensor-parallel-too-large", "a tensor-parallel size above 8 or above the node's GPUs",
        "One worker is one node's.";
    Job TOO_FEW_GPUS = "too-few-gpus", "a packed layout that needs more GPUs than the node has",
        "Use smaller sizes, fewer workers, or `--layout spread`.";
    Job PORT_USED_TWICE = "port-used-twice", "a port twice on one node",
        "The second server would die after loading; a clash of handshake ports is silent and breaks transfers.";
    Job EPHEMERAL_PORT = "ephemeral-port", "a port that the system hands out to others",
        "Linux gives ports 32768 to 60999 to outgoing connections, and the server's own random ports are among them. By the time a server has loaded, its port may be taken.";
    Job ROUTER_POLICY = "router-policy", "a routing policy that the router refuses",
        "atomesh ends at once, after the job has its nodes. `power_of_two` needs two workers to choose from.";
    Job ROUTER_FLAG = "router-flag", "a flag that the router refuses",
        "atomesh takes no abbreviations and no underscores, and most of its flags only once; the launcher passes some of them itself.";
    Job WORKERS_DISAGREE = "workers-disagree", "prefill and decode workers that do not fit each other",
        "The router matches model ids by their text, a transfer needs one connector on both sides, and KV caches of another form cannot be handed over.";
    Job KV_CACHE_DTYPE_UNUSED = "kv-cache-dtype-unused", "KV_CACHE_DTYPE says something else than what is passed",
        "Job scripts still export it; nothing reads it.";
    Job BAD_FAULT = "bad-fault", "a fault of a rehearsal that cannot be",
        "A fault says who (`rank=N`, `role=ROLE`, `worker=NAME`), what (`kind=…`) and, where that kind has a moment, when (`at=…`). It must concern a process of the job.";
}

/// The description of a code.
pub fn describe(name: &str) -> Option<&'static Description> {
    ALL.iter().find(|description| description.code.0 == name)
}

/// All names.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|description| description.code.0)
}

/// The table of docs/lints.md.
pub fn markdown() -> String {
    let mut text = String::new();
    for (found, title) in [
        (Found::Check, "Found by `check`, and before a launch"),
        (Found::Loading, "Found when a models file is loaded"),
        (Found::Job, "Found when a job is resolved"),
    ] {
        text.push_str(&format!("## {title}\n\n"));
        for description in ALL.iter().filter(|description| description.found == found) {
            text.push_str(&format!(
                "### {}\n\n{}. {}\n\n",
                description.code.0,
                capitalised(description.summary),
                description.explanation
            ));
        }
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + chars.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_unique() {
        let mut seen = std::collections::HashSet::new();
        for description in ALL {
            let name = description.code.0;
            assert!(seen.insert(name), "{name} twice");
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
                "{name}"
            );
        }
    }
}
