//! Variables that ATOM and aiter read, and variables that only look as if they did.

use super::Date;
use super::env_vars::{AITER, ATOM, REMOVED, SET_BY_SERVER, UNREAD};
use super::find_sorted;

/// How a variable's text is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvKind {
    /// Any text.
    Str,
    /// Python's `int()`; other text raises, often after the weights are loaded.
    Int,
    /// Python's `float()`; other text raises.
    Float,
    /// On for these texts, off for all others, without a word.
    TrueWhen {
        /// The texts.
        texts: &'static [&'static str],
        /// Whether upper case counts as well.
        ignore_case: bool,
    },
    /// Off for these texts, on for all others.
    FalseWhen {
        /// The texts.
        texts: &'static [&'static str],
        /// Whether upper case counts as well.
        ignore_case: bool,
    },
    /// An integer; on when it is not 0.
    NonZero,
    /// On or off; which texts do that is not known (`0` and `1` always work).
    Switch,
    /// Only whether it is set counts.
    Presence,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Names with commas between.
    Names,
    /// Integers with commas between.
    Ints,
}

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reader {
    /// The server and its engines.
    Server,
    /// ATOM as a plugin of another server only.
    Plugin,
    /// ATOM's benchmark scripts only.
    Benchmarks,
    /// The kernel library.
    Aiter,
}

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// How its text is understood.
    pub kind: EnvKind,
    /// Default as text; nothing when unset means something of its own.
    pub default: Option<&'static str>,
    /// Who reads it.
    pub reader: Reader,
    /// First day on main, where that is known.
    pub since: Option<Date>,
    /// What else one should know; empty for nothing.
    pub note: &'static str,
}

impl EnvVar {
    /// Whether setting it changes anything in the server.
    pub fn has_effect(&self) -> bool {
        !(self.note.starts_with("no effect")
            || self.note.starts_with("no reader")
            || self.note.starts_with("ignored"))
    }
}

/// A variable that was read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedVar {
    /// Its name.
    pub name: &'static str,
    /// First day on main.
    pub since: Date,
    /// First day without it.
    pub removed: Date,
    /// What does its work now.
    pub replaced_by: Option<&'static str>,
}

/// A variable that launchers set and that nothing on main reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// Its name.
    pub name: &'static str,
    /// Who sets it.
    pub set_by: &'static str,
}

/// A variable that the server overwrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetByServer {
    /// Its name.
    pub name: &'static str,
    /// What it is set to, and when.
    pub value: &'static str,
}

/// A variable that somebody reads.
pub fn variable(name: &str) -> Option<&'static EnvVar> {
    find_sorted(ATOM, name, |item| item.name).or_else(|| find_sorted(AITER, name, |item| item.name))
}

/// All variables that somebody reads: ATOM's, then aiter's.
pub fn variables() -> impl Iterator<Item = &'static EnvVar> {
    ATOM.iter().chain(AITER)
}

/// A variable that was read once.
pub fn removed(name: &str) -> Option<&'static RemovedVar> {
    find_sorted(REMOVED, name, |item| item.name)
}

/// A variable that launchers set in vain.
pub fn unread(name: &str) -> Option<&'static Unread> {
    find_sorted(UNREAD, name, |item| item.name)
}

/// A variable that the server overwrites.
pub fn set_by_server(name: &str) -> Option<&'static SetByServer> {
    find_sorted(SET_BY_SERVER, name, |item| item.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_sorted_by_name() {
        assert!(ATOM.is_sorted_by(|a, b| a.name < b.name));
        assert!(AITER.is_sorted_by(|a, b| a.name < b.name));
        assert!(REMOVED.is_sorted_by(|a, b| a.name < b.name));
        assert!(UNREAD.is_sorted_by(|a, b| a.name < b.name));
        assert!(SET_BY_SERVER.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn no_variable_is_both_read_and_removed() {
        for item in REMOVED {
            assert_eq!(variable(item.name), None, "{}", item.name);
        }
        for item in UNREAD {
            assert_eq!(variable(item.name), None, "{}", item.name);
        }
    }

    #[test]
    fn variables_are_found_with_what_is_known_of_them() {
        let port = variable("ATOM_DP_MASTER_PORT").unwrap();
        assert_eq!((port.kind, port.default), (EnvKind::Int, Some("29500")));
        assert!(!variable("ATOM_DP_SIZE").unwrap().has_effect());
        assert_eq!(variable("AITER_LOG_LEVEL").unwrap().reader, Reader::Aiter);
        assert_eq!(
            removed("ATOM_CPU_AFFINITY").unwrap().replaced_by,
            Some("ATOM_NUMA_BIND")
        );
        assert!(unread("IBDEVICES").is_some());
        assert!(set_by_server("MASTER_PORT").is_some());
        assert_eq!(variable("ATOM_NO_SUCH_THING"), None);
    }
}
