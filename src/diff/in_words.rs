//! Sets of commands in words.

use std::collections::BTreeSet;

use super::{Combination, MTP};
use crate::domain::topology::{Mode, Role};

/// A set of commands in words: `every command`, `mode tp-dp, ep-dp · role decode · MTP 1`.
pub fn in_words(commands: &[Combination]) -> Vec<String> {
    let set: BTreeSet<Combination> = commands.iter().copied().collect();
    if set.len() == Mode::ALL.len() * Role::ALL.len() * MTP.len() {
        return vec!["every command".into()];
    }
    if let Some(words) = product(&set) {
        return vec![words];
    }
    Mode::ALL
        .into_iter()
        .flat_map(|mode| {
            let part: BTreeSet<Combination> =
                set.iter().copied().filter(|one| one.mode == mode).collect();
            if part.is_empty() {
                return Vec::new();
            }
            product(&part).map_or_else(
                || {
                    part.iter()
                        .map(|one| {
                            format!("mode {} · role {} · MTP {}", one.mode, one.role, one.mtp)
                        })
                        .collect()
                },
                |words| vec![words],
            )
        })
        .collect()
}

/// Words for a set that is a full product of modes, roles and MTP.
fn product(set: &BTreeSet<Combination>) -> Option<String> {
    let modes: BTreeSet<Mode> = set.iter().map(|one| one.mode).collect();
    let roles: BTreeSet<Role> = set.iter().map(|one| one.role).collect();
    let tokens: BTreeSet<u32> = set.iter().map(|one| one.mtp).collect();
    if modes.len() * roles.len() * tokens.len() != set.len() {
        return None;
    }
    let join = |names: Vec<String>| names.join(", ");
    let mut parts = Vec::new();
    if modes.len() < Mode::ALL.len() {
        parts.push(format!(
            "mode {}",
            join(modes.iter().map(ToString::to_string).collect())
        ));
    }
    if roles.len() < Role::ALL.len() {
        parts.push(format!(
            "role {}",
            join(roles.iter().map(ToString::to_string).collect())
        ));
    }
    if tokens.len() < MTP.len() {
        parts.push(format!(
            "MTP {}",
            join(tokens.iter().map(ToString::to_string).collect())
        ));
    }
    Some(parts.join(" · "))
}
