//! The server's variables: which the launcher sets, and in which order they override each other.
//!
//! What is inherited · base, each only where the caller has not set it · what a shared node needs · `env` · role · mode · `--env`.

use super::Inputs;
use super::topology::Slot;
use crate::domain::codes::ENV_CONFLICT;
use crate::domain::command::EnvVar;
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::models::{ModelEntry, Pair, Pairs};
use crate::domain::provenance::{Shadowed, Source, Sourced};
use crate::domain::secret;
use crate::domain::topology::{Mode, Role};

/// Python and log settings that the server gets unless the caller has his own.
const BASE: [(&str, &str); 8] = [
    ("PYTHONUNBUFFERED", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
    ("SAFETENSORS_FAST_GPU", "1"),
    ("VLLM_LOG_LEVEL", "WARNING"),
    ("ATOM_LOG_LEVEL", "WARNING"),
    ("AITER_LOG_LEVEL", "WARNING"),
    ("LOG_LEVEL", "WARNING"),
    ("LOGLEVEL", "WARNING"),
];

/// Folders that servers of one node must not share: compile caches race.
const CACHES: [(&str, &str); 7] = [
    ("HOME", ""),
    ("XDG_CACHE_HOME", "/.cache"),
    ("TORCHINDUCTOR_CACHE_DIR", "/inductor"),
    ("TRITON_CACHE_DIR", "/triton"),
    ("AITER_CACHE_DIR", "/aiter"),
    ("AITER_JIT_DIR", "/aiter/jit"),
    ("FLYDSL_RUNTIME_CACHE_DIR", "/flydsl"),
];

/// The fields of pairs that apply to a role in a mode, in the order in which they apply.
pub fn fields(entry: &ModelEntry, role: Role, mode: Mode) -> Vec<(&'static str, &Pairs)> {
    let wanted: &[&str] = match (role, mode) {
        (Role::Prefill, Mode::Tp) => &["env", "prefill_env"],
        (Role::Prefill, Mode::TpDp) => &["env", "prefill_env", "tp_dp_env"],
        (Role::Prefill, Mode::EpDp) => &["env", "prefill_env", "ep_dp_env"],
        (Role::Decode, Mode::Tp) => &["env", "decode_env"],
        (Role::Decode, Mode::TpDp) => &["env", "decode_env", "tp_dp_env"],
        (Role::Decode, Mode::EpDp) => &["env", "decode_env", "ep_dp_env"],
        (Role::Standalone, Mode::Tp) => &["env"],
        (Role::Standalone, Mode::TpDp) => &["env", "tp_dp_env"],
        (Role::Standalone, Mode::EpDp) => &["env", "ep_dp_env"],
    };
    entry
        .pairs()
        .filter(|(name, _)| wanted.contains(name))
        .collect()
}

/// Keys that the fields of one role and mode set to two values.
pub fn conflicts(entry: &ModelEntry, role: Role, mode: Mode) -> Vec<Diagnostic> {
    let mut seen: Vec<(&'static str, &Pair)> = Vec::new();
    let mut problems = Vec::new();
    for (field, pairs) in fields(entry, role, mode) {
        for pair in &pairs.pairs {
            match seen.iter().find(|(_, earlier)| earlier.name == pair.name) {
                Some((_, earlier)) if earlier.value == pair.value => {}
                Some((other, earlier)) => {
                    let shown = |pair: &Pair| secret::shown(&pair.name, &pair.value).into_owned();
                    problems.push(
                        Diagnostic::error(
                            ENV_CONFLICT,
                            Place::File(pair.span),
                            format!(
                                "{} is set to {} by `{field}` and to {} by `{other}` of model `{}`, which apply together",
                                pair.name,
                                shown(pair),
                                shown(earlier),
                                entry.name.value
                            ),
                        )
                        .also(earlier.span, "other value")
                        .help("keep one, or move it into the role's or mode's own field"),
                    );
                }
                None => seen.push((field, pair)),
            }
        }
    }
    problems
}

struct Builder<'a> {
    inputs: Inputs<'a>,
    vars: Vec<EnvVar>,
}

impl Builder<'_> {
    fn inherited(&self, name: &str) -> Option<Shadowed> {
        self.inputs.environment.get(name).map(|value| Shadowed {
            value: value.to_owned(),
            source: Source::Environment(name.to_owned()),
        })
    }

    /// Set a variable over whatever it had.
    fn set(&mut self, name: &str, value: String, source: Source) {
        if let Some(known) = self.vars.iter_mut().find(|var| var.name == name) {
            let lost = Shadowed {
                value: std::mem::replace(&mut known.value, value),
                source: std::mem::replace(&mut known.source, source),
            };
            known.shadowed.insert(0, lost);
            return;
        }
        let shadowed = self.inherited(name).into_iter().collect();
        self.vars.push(EnvVar {
            name: name.to_owned(),
            value,
            source,
            shadowed,
        });
    }

    /// Set a variable only where the caller has not.
    fn set_if_unset(&mut self, name: &str, value: &str, source: Source) {
        if !self.inputs.environment.is_set(name) {
            self.set(name, value.to_owned(), source);
        }
    }

    fn base(&mut self, slot: &Slot, host_ip: Option<&Sourced<String>>) {
        for (name, value) in BASE {
            self.set_if_unset(name, value, Source::Default);
        }
        let host = self.inputs.host;
        self.library_path(host.mooncake_dir.as_deref(), host.rocm_lib.as_deref());
        if !host.rdma_devices.is_empty() {
            let devices = host.rdma_devices.join(",");
            self.set_if_unset(
                "IBDEVICES",
                &devices,
                Source::Derived("RDMA devices of this node".into()),
            );
        }
        if let Some(host_ip) = host_ip.filter(|_| slot.role != Role::Standalone) {
            match host_ip.source {
                Source::CommandLine(_) => self.set(
                    "ATOM_HOST_IP",
                    host_ip.value.clone(),
                    host_ip.source.clone(),
                ),
                _ => self.set_if_unset("ATOM_HOST_IP", &host_ip.value, host_ip.source.clone()),
            }
        }
    }

    /// Put folders before LD_LIBRARY_PATH; never an empty element, which would mean the working directory.
    fn library_path(&mut self, mooncake: Option<&str>, rocm: Option<&str>) {
        let inherited = self
            .inputs
            .environment
            .get("LD_LIBRARY_PATH")
            .unwrap_or_default();
        let has = |folder: &&str| inherited.split(':').any(|known| known == *folder);
        let folders: Vec<&str> = [mooncake, rocm]
            .into_iter()
            .flatten()
            .filter(|folder| !has(folder))
            .collect();
        if folders.is_empty() {
            return;
        }
        let mut value = folders.join(":");
        if !inherited.is_empty() {
            value.push(':');
            value.push_str(inherited);
        }
        self.set(
            "LD_LIBRARY_PATH",
            value,
            Source::Derived("libraries of mooncake and ROCm on this node".into()),
        );
    }

    /// What keeps several servers of a node apart.
    fn shared_node(&mut self, slot: &Slot) {
        let why = || Source::Derived(format!("worker {} of a shared node", slot.slot));
        let Some(base) = slot.dp_base else {
            return;
        };
        if let Some(gpus) = &slot.gpus {
            self.set("HIP_VISIBLE_DEVICES", gpus.join(","), why());
        }
        self.set("ATOM_DP_MASTER_PORT", slot.dp_master.to_string(), why());
        self.set("ATOM_DP_BASE_PORT", base.to_string(), why());
        // Only the compile caches are split: the hub cache with the weights stays where it is.
        if let Some(home) = self.inputs.environment.get("HOME") {
            let hub = format!("{}/.cache/huggingface", home.trim_end_matches('/'));
            self.set_if_unset("HF_HOME", &hub, why());
        }
        for (name, below) in CACHES {
            let folder = format!(
                "{}/{}{below}",
                self.inputs.settings.worker_cache.value, slot.name
            );
            self.set(name, folder, why());
        }
    }

    fn model(&mut self, role: Role, mode: Mode) {
        for (field, pairs) in fields(self.inputs.entry, role, mode) {
            for pair in &pairs.pairs {
                let source = self.inputs.field(field, pair.span);
                let known = self.vars.iter().any(|var| {
                    var.name == pair.name
                        && var.value == pair.value
                        && matches!(var.source, Source::ModelsFile { .. })
                });
                if !known {
                    self.set(&pair.name, pair.value.clone(), source);
                }
            }
        }
    }
}

/// All variables that the launcher sets for a worker, sorted by name.
pub fn variables(
    inputs: Inputs<'_>,
    slot: &Slot,
    mode: Mode,
    host_ip: Option<&Sourced<String>>,
    found: &mut Diagnostics,
) -> Vec<EnvVar> {
    for problem in conflicts(inputs.entry, slot.role, mode) {
        found.push(problem);
    }
    let mut builder = Builder {
        inputs,
        vars: Vec::new(),
    };
    builder.base(slot, host_ip);
    builder.shared_node(slot);
    builder.model(slot.role, mode);
    for (name, value) in &inputs.settings.env {
        builder.set(name, value.clone(), Source::CommandLine("--env".into()));
    }
    let mut vars = builder.vars;
    vars.sort_by(|a, b| a.name.cmp(&b.name));
    vars
}
