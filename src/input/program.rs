//! Where a program is, as the system looks for it, and why it cannot be started: the same words before the start, at it, and for every kind
//! of program. The one place that knows what a PATH means.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::libc::{E2BIG, ENOEXEC};

use crate::exit;

/// Where programs are without a PATH, as the C library has it.
const USUAL: &str = "/bin:/usr/bin";

/// What stands at a program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A file that may be executed.
    Found(PathBuf),
    /// Something that may not be, and why not.
    Unusable(PathBuf, &'static str),
    /// Nothing.
    Missing,
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
    let mut best = Lookup::Missing;
    for file in candidates(name, path) {
        match at(file) {
            Lookup::Missing => {}
            found @ Lookup::Found(_) => return found,
            unusable @ Lookup::Unusable(..) => best = unusable,
        }
    }
    best
}

fn at(file: PathBuf) -> Lookup {
    let why = match fs::metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "a folder above it may not be entered"
        }
        Err(_) => return Lookup::Missing,
        Ok(data) if data.is_dir() => "it is a folder",
        Ok(data) if data.permissions().mode() & 0o111 == 0 => "it is not marked executable",
        Ok(_) => return Lookup::Found(file),
    };
    Lookup::Unusable(file, why)
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
        let help = match error.raw_os_error() {
            Some(ENOEXEC) => {
                Some("it is neither a program nor a script with `#!` in its first line")
            }
            Some(E2BIG) => {
                Some("arguments and environment together are larger than the system allows")
            }
            _ => None,
        };
        if let Some(help) = help {
            return Self {
                help: Some(help.to_owned()),
                ..Self::unusable(error.to_string())
            };
        }
        match Self::of_lookup(program, path, &lookup) {
            Some(failure) => failure,
            None if error.kind() == io::ErrorKind::NotFound => {
                Self::unusable("the interpreter that its first line names does not exist")
            }
            None => Self::unusable(error.to_string()),
        }
    }

    fn of_lookup(program: &OsStr, path: Option<&OsStr>, lookup: &Lookup) -> Option<Self> {
        let why = match lookup {
            Lookup::Found(_) => return None,
            Lookup::Unusable(file, why) => {
                let help = format!("chmod +x {}", file.display());
                return Some(Self {
                    help: file.is_file().then_some(help),
                    ..Self::unusable(*why)
                });
            }
            Lookup::Missing if program.as_encoded_bytes().contains(&b'/') => {
                "there is no such file".to_owned()
            }
            Lookup::Missing => match path {
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
        let unmarked = Lookup::Unusable(plain.clone(), "it is not marked executable");
        assert_eq!(look_up(plain.as_os_str(), None), unmarked);
        let path = format!("{}:/nowhere:/usr/bin:/bin", folder.path().display());
        let path = Some(OsStr::new(&path));
        assert_eq!(look_up(OsStr::new("bench.txt"), path), unmarked);
        assert!(matches!(look_up(OsStr::new("sh"), path), Lookup::Found(_)));
        assert!(matches!(look_up(OsStr::new("sh"), None), Lookup::Found(_)));
        let home = folder.path().as_os_str();
        assert_eq!(
            look_up(home, None),
            Lookup::Unusable(folder.path().into(), "it is a folder")
        );
        assert_eq!(
            look_up(OsStr::new("no-such-program"), path),
            Lookup::Missing
        );
        assert_eq!(look_up(OsStr::new(""), path), Lookup::Missing);
    }

    #[test]
    fn a_missing_interpreter_line_is_told_from_a_missing_program() {
        let missing = io::Error::from(io::ErrorKind::NotFound);
        let of = |program: &OsStr| Failure::of_error(program, None, &missing).code;
        assert_eq!(of(OsStr::new("./no-such-file")), exit::NOT_FOUND);
        assert_eq!(of(OsStr::new("sh")), exit::CANNOT_EXECUTE);
    }
}
