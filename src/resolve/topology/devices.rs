//! Which GPUs of a node a worker can see: its slice where workers share a node, all that the variables leave where it is alone.

use std::borrow::Cow;

use crate::domain::codes::{INVALID_SETTING, TOO_FEW_GPUS};
use crate::domain::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::domain::environment::Environment;
use crate::domain::settings::Settings;
use crate::domain::topology::Role;
use crate::domain::visible::visible;

/// What ROCm's driver leaves of a node's GPUs, before HIP counts them anew.
const OF_DRIVER: &str = "ROCR_VISIBLE_DEVICES";
/// What HIP leaves of those; the second is read where the first is not set.
const OF_HIP: [&str; 2] = ["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];

/// The GPUs that a server of the job could use.
pub(super) struct Devices {
    names: Vec<String>,
    /// The input that leaves so many.
    from: &'static str,
    /// Whether the variables could be read; else that there are too few only follows.
    known: bool,
}

impl Devices {
    /// Read the variables; what is wrong with them is a finding.
    pub(super) fn read(
        settings: &Settings,
        environment: &Environment,
        found: &mut Diagnostics,
    ) -> Self {
        let given =
            |(name, _): &&(String, String)| name == OF_DRIVER || OF_HIP.contains(&name.as_str());
        let mut environment = Cow::Borrowed(environment);
        for (name, value) in settings.env.iter().filter(given) {
            environment.to_mut().insert(name, value);
        }
        let environment = environment.as_ref();
        let before = found.0.len();
        let of_driver = list(OF_DRIVER, environment, found);
        let count = of_driver
            .as_ref()
            .map_or(settings.gpus_per_node.value as usize, Vec::len);
        let of_hip = OF_HIP
            .into_iter()
            .find(|name| environment.is_set(name))
            .and_then(|name| Some((name, list(name, environment, found)?)));
        if let Some((from, names)) = of_hip {
            let outside = names.iter().find(|device| {
                of_driver.is_some() && device.parse().is_ok_and(|index: usize| index >= count)
            });
            if let Some(device) = outside {
                let message = format!(
                    "variable {from} names GPU {device}, but {OF_DRIVER} leaves {count}, which are counted from 0"
                );
                found.push(
                    Diagnostic::error(INVALID_SETTING, Place::Input(from.into()), message)
                        .help("set one of the two variables only"),
                );
            }
            let known = found.0.len() == before;
            return Self { names, from, known };
        }
        let from = if of_driver.is_some() {
            OF_DRIVER
        } else {
            "--gpus-per-node"
        };
        Self {
            names: (0..count).map(|gpu| gpu.to_string()).collect(),
            from,
            known: found.0.len() == before,
        }
    }

    /// The slice of a worker that shares its node, from a GPU on.
    pub(super) fn slice(
        &self,
        settings: &Settings,
        role: Role,
        first: u32,
        worker: &str,
        found: &mut Diagnostics,
    ) -> Option<Vec<String>> {
        let tp = settings.tp.get(role).value;
        let range = first as usize..(first + tp) as usize;
        let slice = self.names.get(range).map(<[String]>::to_vec);
        if slice.is_none() && self.known {
            let wanted = if tp == 1 {
                format!("GPU {first}")
            } else {
                format!("GPUs {first} to {}", first + tp - 1)
            };
            let help = "use smaller tensor-parallel sizes, fewer workers, or `--layout spread`";
            found.push(self.too_few(worker, &wanted).help(help));
        }
        slice
    }

    /// A worker that has its node for itself sees what the variables leave.
    pub(super) fn check_alone(
        &self,
        settings: &Settings,
        role: Role,
        worker: &str,
        found: &mut Diagnostics,
    ) {
        let tp = settings.tp.get(role).value;
        // More than the node has is said of the size itself.
        if self.known
            && self.from != "--gpus-per-node"
            && tp <= settings.gpus_per_node.value
            && self.names.len() < tp as usize
        {
            let wanted = if tp == 1 {
                "a GPU".to_owned()
            } else {
                format!("{tp} GPUs")
            };
            let help = format!("unset {}, or use a smaller tensor-parallel size", self.from);
            found.push(self.too_few(worker, &wanted).help(help));
        }
    }

    fn too_few(&self, worker: &str, wanted: &str) -> Diagnostic {
        let message = format!(
            "worker {worker} needs {wanted} of its node, but {} gives {}",
            self.from,
            self.names.len()
        );
        Diagnostic::error(TOO_FEW_GPUS, Place::Input(self.from.into()), message)
    }
}

/// The entries of a list of GPUs. They are shared out by their place, so one that stands there twice would serve two workers.
fn list(
    name: &'static str,
    environment: &Environment,
    found: &mut Diagnostics,
) -> Option<Vec<String>> {
    let mut wrong = |message: String| {
        found.push(
            Diagnostic::error(INVALID_SETTING, Place::Input(name.into()), message)
                .help(format!("name each GPU of the node once: `{name}=0,1,2,3`")),
        );
    };
    if environment.not_utf8(name) {
        wrong(format!("variable {name} is not UTF-8"));
    }
    let text = environment.get(name)?;
    let entries: Vec<String> = text
        .split(',')
        .map(|device| device.trim().to_owned())
        .collect();
    for (position, device) in entries.iter().enumerate() {
        if device.is_empty() {
            wrong(format!("variable {name} has an empty entry"));
        } else if device.starts_with('-') {
            wrong(format!(
                "variable {name} has the entry {}, which hides all GPUs from there on",
                visible(device)
            ));
        } else if entries[..position].contains(device) {
            wrong(format!(
                "variable {name} names GPU {} twice",
                visible(device)
            ));
        }
    }
    Some(entries)
}
