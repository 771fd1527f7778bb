//! The commands that a models file means on any machine: what `diff` and `check` look at.

use super::topology::{self, Placement};
use super::{Inputs, server};
use crate::domain::diagnostic::Diagnostics;
use crate::domain::environment::{Environment, HostFacts, ModelFolder};
use crate::domain::models::{ModelEntry, ModelsFile};
use crate::domain::provenance::{Source, Sourced};
use crate::domain::settings::Settings;
use crate::domain::topology::{Mode, Role};
use crate::plan::WorkerPlan;

/// Resolves entries in surroundings that are the same everywhere: no job, no variables, no devices.
#[derive(Debug)]
pub struct Neutral {
    environment: Environment,
    host: HostFacts,
    prepared: Vec<Prepared>,
}

/// A mode and a role.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Mode.
    pub mode: Mode,
    /// Role.
    pub role: Role,
    position: usize,
}

/// All of a case that does not depend on the entry, resolved once.
#[derive(Debug)]
struct Prepared {
    settings: Settings,
    placement: Placement,
}

impl Prepared {
    fn new(settings: &Settings, environment: &Environment, (mode, role): (Mode, Role)) -> Self {
        let mut settings = settings.clone();
        settings.role = Some(Sourced::default_of(role));
        for setting in [
            &mut settings.mode.prefill,
            &mut settings.mode.decode,
            &mut settings.mode.standalone,
        ] {
            *setting = as_option("--mode", mode);
        }
        let placement = topology::place(&settings, environment, &mut Diagnostics::default());
        Self {
            settings,
            placement,
        }
    }
}

/// As if on the command line, so that messages name what a reader could type.
fn as_option<T>(option: &str, value: T) -> Sourced<T> {
    Sourced::new(value, Source::CommandLine(option.into()))
}

/// Every mode and role: modes in the order of tables, in each of them the roles.
fn modes_and_roles() -> impl Iterator<Item = (Mode, Role)> {
    Mode::ALL
        .into_iter()
        .flat_map(|mode| Role::ALL.map(|role| (mode, role)))
}

impl Neutral {
    /// Surroundings for the settings of a job that gives none but a folder and an address.
    pub fn new(settings: &Settings) -> Self {
        let environment = Environment::default();
        let prepared = modes_and_roles()
            .map(|case| Prepared::new(settings, &environment, case))
            .collect();
        Self {
            environment,
            host: HostFacts::default(),
            prepared,
        }
    }

    /// Every case, by mode and then by role.
    pub fn cases() -> impl Iterator<Item = Case> {
        modes_and_roles()
            .enumerate()
            .map(|(position, (mode, role))| Case {
                mode,
                role,
                position,
            })
    }

    /// What an entry runs in a case with so many speculative tokens; findings that stop it are added.
    pub fn worker(
        &mut self,
        models: &ModelsFile,
        entry: &ModelEntry,
        case: Case,
        mtp: u32,
        found: &mut Diagnostics,
    ) -> WorkerPlan {
        // Set in place: a file of 10,000 models is resolved a hundred thousand times, and settings are large.
        let Prepared {
            settings,
            placement,
        } = &mut self.prepared[case.position];
        settings.model = Some(Sourced::default_of(entry.name.value.clone()));
        settings.mtp = as_option("--mtp", mtp);
        let inputs = Inputs {
            settings,
            models,
            entry,
            environment: &self.environment,
            host: &self.host,
            folder: &ModelFolder::Plain,
        };
        server::worker(inputs, placement, &placement.slots[0], found)
    }
}
