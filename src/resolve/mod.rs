//! Typed inputs → plan. Every function here is pure: no file, no environment, no clock.
//!
//! The parts and their order are those of the command (`server.rs`); each rule has one place: `model.rs` which entry and which path,
//! `topology/` who runs where, `parallel.rs` what a mode and a speculation mean, `tuning.rs` numbers and their precedence,
//! `transfer.rs` KV transfer and quantisation, `child_env.rs` variables, `router.rs` the router. `neutral.rs` resolves an entry
//! outside of any job. `own.rs` says which of a job's ranks and workers this process is, `node.rs` what a rank has to do.

pub mod child_env;
pub mod model;
pub mod neutral;
pub mod node;
pub mod own;
pub mod parallel;
pub mod router;
pub mod server;
pub mod topology;
pub mod transfer;
pub mod tuning;

use crate::domain::diagnostic::Diagnostics;
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::{ModelEntry, ModelsFile};
use crate::domain::provenance::{Shadowed, Source};
use crate::domain::settings::Settings;
use crate::domain::source::Span;
use crate::plan::{JobPlan, ModelsOrigin, WorkerPlan};
use topology::Placement;

/// Everything that a command is resolved from.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Command line and environment.
    pub settings: &'a Settings,
    /// The models file.
    pub models: &'a ModelsFile,
    /// The chosen entry of it.
    pub entry: &'a ModelEntry,
    /// What the child inherits.
    pub environment: &'a Environment,
    /// This host.
    pub host: &'a HostFacts,
    /// What the model's folder is.
    pub folder: &'a ModelFolder,
}

impl Inputs<'_> {
    /// A field of the models file as an origin.
    pub fn field(&self, field: &'static str, span: Span) -> Source {
        Source::ModelsFile {
            field,
            span,
            position: self.models.file.position(span.start),
        }
    }

    /// A value of the models file that lost.
    pub fn lost(&self, field: &'static str, span: Span, value: String) -> Shadowed {
        Shadowed {
            value,
            source: self.field(field, span),
        }
    }
}

/// A setting with its value, for messages: `PREFILL_TP_SIZE=16`, `--prefill-tp 16`, or the option with its default.
pub fn named(source: &Source, option: &str, value: impl std::fmt::Display) -> String {
    match source {
        Source::CommandLine(option) => format!("`{option} {value}`"),
        Source::Environment(variable) => format!("{variable}={value}"),
        Source::ModelsFile { field, .. } => format!("`{field}: {value}`"),
        Source::Default => format!("{option} (default {value})"),
        Source::Derived(how) => format!("{value} ({how})"),
    }
}

/// The plan of the whole job: every rank, and the router.
pub fn job(inputs: Inputs<'_>, placement: &Placement, found: &mut Diagnostics) -> JobPlan {
    let workers: Vec<WorkerPlan> = placement
        .slots
        .iter()
        .map(|slot| server::worker(inputs, placement, slot, found))
        .collect();
    let router = placement
        .has_router
        .then(|| router::plan(inputs.settings, placement, &workers));
    JobPlan {
        model: inputs
            .settings
            .model
            .as_ref()
            .map_or_else(String::new, |model| model.value.clone()),
        entry: inputs.entry.name.value.clone(),
        models: ModelsOrigin {
            origin: inputs.models.origin.clone(),
            name: inputs.models.file.name.clone(),
            sha256: inputs.models.sha256.clone(),
        },
        layout: inputs.settings.layout.value,
        ranks: placement.ranks,
        workers,
        router,
    }
}
