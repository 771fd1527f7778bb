//! Where a program is, as the system looks for it, and why it cannot be started: the same words before the start, at it, and for every kind
//! of program. The one place that knows what a PATH means.

mod head;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::libc::E2BIG;

use crate::exit;
pub use head::Fault;

/// Where programs are without a PATH, as the C library has it.
const USUAL: &str = "/bin:/usr/bin";

/// What stands at a program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A file that may be executed.
    Found(PathBuf),
    /// Something that may not be, and why not.
    Unusable(PathBuf, Fault),
    /// Nothing; why, where there is more to say.
    Missing(Option<Fault>),
}

/// Where a program may be: itself when its name holds a slash, else in each folder of the PATH. No name, no place.
pub fn candidates(name: &OsStr, path: Option<&OsStr>) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    if name.as_encoded_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .map(|folder| folder.join(name))
        .collect()
}

/// The first candidate that may be executed; else the last one that is there.
pub fn look_up(name: &OsStr, path: Option<&OsStr>) -> Lookup {
    if name.as_encoded_bytes().contains(&b'/') {
        return at(name.into(), path);
    }
    let mut best = Lookup::Missing(None);
    for file in candidates(name, path) {
        match at(file, path) {
            Lookup::Missing(_) => {}
            found @ Lookup::Found(_) => return found,
            unusable @ Lookup::Unusable(..) => best = unusable,
        }
    }
    best
}

fn at(file: PathBuf, path: Option<&OsStr>) -> Lookup {
    let fault = match fs::metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Some(Fault::new("a folder above it may not be entered"))
        }
        Err(_) => return Lookup::Missing(missing(&file)),
        Ok(_) => head::fault(&file, path),
    };
    match fault {
        Some(fault) => Lookup::Unusable(file, fault),
        None => Lookup::Found(file),
    }
}

/// What more there is to say of a file that is not there.
fn missing(file: &Path) -> Option<Fault> {
    if let Ok(target) = fs::read_link(file) {
        let target = target.display();
        return Some(Fault::new(format!(
            "it is a link to {target}, which does not exist"
        )));
    }
    let whole = "a relative path starts at the working directory: give the whole path";
    file.is_relative()
        .then(|| match std::env::current_dir() {
            Ok(here) => Fault::new(format!("there is no such file in {}", here.display())),
            Err(_) => Fault::new("the working directory is gone"),
        })
        .map(|fault| fault.help(whole))
}

/// A start that did not happen, or would not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// 126: the program is there; 127: it is not.
    pub code: u8,
    /// The end of the sentence "cannot execute PROGRAM: …".
    pub why: String,
    /// How to put it right, where naming another program is not the only way.
    pub help: Option<String>,
}

impl Failure {
    /// A program that is there.
    pub fn unusable(why: impl Into<String>) -> Self {
        Self {
            code: exit::CANNOT_EXECUTE,
            why: why.into(),
            help: None,
        }
    }

    /// What stands against a program, as far as its file shows it; `path` is the PATH that it is looked for on.
    pub fn foreseen(program: &OsStr, path: Option<&OsStr>) -> Option<Self> {
        Self::of_lookup(program, path, &look_up(program, path))
    }

    /// What an error of the system means for a program.
    pub fn of_error(program: &OsStr, path: Option<&OsStr>, error: &io::Error) -> Self {
        let lookup = look_up(program, path);
        if error.raw_os_error() == Some(E2BIG) {
            let help = "arguments and environment together are larger than the system allows";
            return Self {
                help: Some(help.to_owned()),
                ..Self::unusable(error.to_string())
            };
        }
        match Self::of_lookup(program, path, &lookup) {
            Some(failure) => failure,
            None => Self::unusable(error.to_string()),
        }
    }

    fn of_lookup(program: &OsStr, path: Option<&OsStr>, lookup: &Lookup) -> Option<Self> {
        let why = match lookup {
            Lookup::Found(_) => return None,
            Lookup::Unusable(_, Fault { why, help }) => {
                return Some(Self {
                    help: help.clone(),
                    ..Self::unusable(why)
                });
            }
            Lookup::Missing(Some(Fault { why, help })) => {
                return Some(Self {
                    code: exit::NOT_FOUND,
                    why: why.clone(),
                    help: help.clone(),
                });
            }
            Lookup::Missing(None) if program.as_encoded_bytes().contains(&b'/') => {
                "there is no such file".to_owned()
            }
            Lookup::Missing(None) => match path {
                Some(path) => format!("it is not on PATH ({})", path.to_string_lossy()),
                None => format!("no PATH is set, and it is not in {USUAL}"),
            },
        };
        Some(Self {
            code: exit::NOT_FOUND,
            why,
            help: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_exec_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("bench.txt");
        fs::write(&plain, "no program").unwrap();
        let why = |lookup| match lookup {
            Lookup::Unusable(_, fault) => fault.why,
            other => panic!("{other:?}"),
        };
        let unmarked = "it is not marked executable";
        assert_eq!(why(look_up(plain.as_os_str(), None)), unmarked);
        let path = format!("{}:/nowhere:/usr/bin:/bin", folder.path().display());
        let path = Some(OsStr::new(&path));
        assert_eq!(why(look_up(OsStr::new("bench.txt"), path)), unmarked);
        assert!(matches!(look_up(OsStr::new("sh"), path), Lookup::Found(_)));
        assert!(matches!(look_up(OsStr::new("sh"), None), Lookup::Found(_)));
        let home = folder.path().as_os_str();
        assert_eq!(why(look_up(home, None)), "it is a folder");
        for nothing in ["no-such-program", ""] {
            let lookup = look_up(OsStr::new(nothing), path);
            assert_eq!(lookup, Lookup::Missing(None));
        }
    }

    #[test]
    fn what_is_gone_once_more_is_told_from_what_was_never_there() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let of = |program: &OsStr| Failure::of_error(program, None, &missing).code;
        assert_eq!(of(OsStr::new("./no-such-file")), exit::NOT_FOUND);
        assert_eq!(of(OsStr::new("sh")), exit::CANNOT_EXECUTE);
    }
}
