//! What the first bytes of a program tell: what `execve` refuses, and what fails at once behind it.
//!
//! A server is tried as soon as the rank starts, a workload only once all servers have loaded; by then a forgotten first line
//! has cost the loading of a model.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::{Lookup, look_up};

/// So much of a file the kernel reads to find out what it is.
const HEAD: usize = 256;
/// So many scripts may name each other as their interpreters; the kernel goes no further.
const SCRIPTS: usize = 4;
/// Where formats are registered that the kernel hands to other programs.
const FORMATS: &str = "/proc/sys/fs/binfmt_misc";

/// Why a program cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The end of the sentence "cannot execute PROGRAM: …".
    pub why: String,
    /// What to do.
    pub help: Option<String>,
}

impl Fault {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            help: None,
        }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// What stands against executing a file that is there.
///
/// `search` is the PATH of whoever starts it, which `#!/usr/bin/env NAME` looks on.
pub(super) fn fault(path: &Path, search: Option<&OsStr>) -> Option<Fault> {
    fault_below(path, search, SCRIPTS)
}

fn fault_below(path: &Path, search: Option<&OsStr>, scripts: usize) -> Option<Fault> {
    let data = fs::metadata(path).ok()?;
    if data.is_dir() {
        return Some(Fault::new("it is a folder"));
    }
    if !data.is_file() {
        return Some(Fault::new("it is no regular file"));
    }
    if data.permissions().mode() & 0o111 == 0 {
        let fault = Fault::new("it is not marked executable");
        return Some(fault.help(format!("chmod +x {}", path.display())));
    }
    // What may be executed and not read is a program that is no script.
    let file = File::open(path).ok()?;
    let mut head = Vec::new();
    (&file).take(HEAD as u64).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        return script(path, line, search, scripts);
    }
    if is_registered() {
        return None;
    }
    if head.starts_with(b"\x7fELF") {
        return binary(&file, &head);
    }
    let why = if head.is_empty() {
        "it is empty"
    } else {
        "it is neither a program nor a script with `#!` in its first line"
    };
    Some(Fault::new(why).help("a script starts with a line such as `#!/bin/bash`"))
}

/// Whether the kernel may know more formats than programs and scripts.
fn is_registered() -> bool {
    fs::read_dir(FORMATS)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name() != "register" && entry.file_name() != "status")
}

/// A script by its first line, without the `#!`.
fn script(path: &Path, line: &[u8], search: Option<&OsStr>, scripts: usize) -> Option<Fault> {
    let end = line.iter().position(|byte| *byte == b'\n');
    let line = line[..end.unwrap_or(line.len())].trim_ascii_start();
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    if line.ends_with(b"\r") {
        return Some(
            Fault::new("its first line ends in CR LF, and the system takes the CR for a part of the interpreter's name")
                .help(format!("save it with the line ends of Unix: `sed -i 's/\\r$//' {}`", path.display())),
        );
    }
    let length = line.iter().position(blank).unwrap_or(line.len());
    let interpreter = Path::new(OsStr::from_bytes(&line[..length]));
    let argument = line[length..].trim_ascii();
    let help = format!("mend the first line of {}", path.display());
    let named = |what: &str| {
        let why = format!("its first line names {}, {what}", interpreter.display());
        Some(Fault::new(why).help(help.clone()))
    };
    if interpreter.as_os_str().is_empty() {
        return Some(Fault::new("its first line names no interpreter").help(help));
    }
    if scripts == 0 {
        return named("the last of too many scripts that name each other");
    }
    if fs::metadata(interpreter).is_err() {
        return named("which does not exist");
    }
    if let Some(fault) = fault_below(interpreter, search, scripts - 1) {
        return named(&format!("and that cannot be executed: {}", fault.why));
    }
    if interpreter.file_name() == Some(OsStr::new("env")) {
        return looked_up_by_env(argument, search).map(|why| Fault::new(why).help(help));
    }
    None
}

/// `#!/usr/bin/env NAME`: the system hands on all behind `env` as one word.
fn looked_up_by_env(argument: &[u8], search: Option<&OsStr>) -> Option<String> {
    let whole = String::from_utf8_lossy(argument);
    let name = if let Some(words) = whole.strip_prefix("-S") {
        words
            .split_whitespace()
            .find(|word| !word.starts_with('-') && !word.contains('='))?
    } else if whole.starts_with('-') || whole.contains('=') {
        return None;
    } else if whole.contains([' ', '\t']) {
        return Some(format!(
            "its first line makes env look for `{whole}` as one word (several need `env -S`)"
        ));
    } else {
        &whole
    };
    if name.is_empty() || name.contains(['"', '\'', '\\', '$']) {
        return None;
    }
    match look_up(OsStr::new(name), search) {
        Lookup::Found(_) => None,
        Lookup::Missing(_) => Some(format!(
            "its first line makes env look for `{name}`, which is not on PATH"
        )),
        Lookup::Unusable(_, fault) => Some(format!(
            "its first line makes env look for `{name}`, and that cannot be executed: {}",
            fault.why
        )),
    }
}

/// A program in ELF: made for this machine, whole, and with a loader that is here.
fn binary(file: &File, head: &[u8]) -> Option<Fault> {
    let machine =
        |head: &[u8]| Some((*head.get(4)?, *head.get(5)?, *head.get(18)?, *head.get(19)?));
    let Some(other) = machine(head) else {
        return Some(Fault::new("it is a program that was cut off"));
    };
    let mut own = [0; 20];
    File::open("/proc/self/exe")
        .and_then(|file| file.read_exact_at(&mut own, 0))
        .ok()?;
    // 64 and 32 bits of x86 run on the same machine.
    let x86 = |(_, order, low, high): (u8, u8, u8, u8)| {
        order == 1 && high == 0 && (low == 62 || low == 3)
    };
    let own = machine(&own)?;
    if other != own && !(x86(own) && x86(other)) {
        return Some(
            Fault::new("it is a program for another kind of machine")
                .help("`file` tells which one"),
        );
    }
    let loader = loader(file, head)?;
    (!loader.exists()).then(|| {
        Fault::new(format!("its loader {} does not exist", loader.display()))
            .help("it was built for another C library than this system has: link it statically, or build it here")
    })
}

/// The loader that a 64-bit program asks for.
fn loader(file: &File, head: &[u8]) -> Option<PathBuf> {
    const INTERPRETER: u32 = 3;
    const LONGEST: u64 = 4096;
    let number = |bytes: &[u8], at: usize, size: usize| -> Option<u64> {
        let bytes = bytes.get(at..at + size)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |all, byte| all << 8 | u64::from(*byte)),
        )
    };
    if head.get(4..6)? != [2, 1] {
        return None;
    }
    let (first, size, count) = (
        number(head, 32, 8)?,
        number(head, 54, 2)?,
        number(head, 56, 2)?,
    );
    for index in 0..count {
        let mut entry = [0; 56];
        file.read_exact_at(&mut entry, first.checked_add(index * size)?)
            .ok()?;
        if number(&entry, 0, 4)? == u64::from(INTERPRETER) {
            let (at, length) = (number(&entry, 8, 8)?, number(&entry, 32, 8)?);
            let mut name = vec![0; usize::try_from(length.min(LONGEST)).ok()?];
            file.read_exact_at(&mut name, at).ok()?;
            name.truncate(name.iter().position(|byte| *byte == 0)?);
            return Some(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn why(content: &[u8]) -> String {
        let (folder, path) = written(content);
        let why = fault(&path, None).map_or_else(String::new, |fault| fault.why);
        why.replace(folder.path().to_str().unwrap(), "DIR")
    }

    #[test]
    fn first_lines_are_read_as_the_kernel_reads_them() {
        for good in [
            "#!/bin/sh\n",
            "#! /bin/sh -e\n",
            "#!/bin/sh",
            "#!/usr/bin/env sh\n",
            "#!/usr/bin/env -S sh -e\n",
        ] {
            assert_eq!(why(good.as_bytes()), "", "{good}");
        }
        for (bad, wanted) in [
            (
                "#!/nowhere/sh\n",
                "its first line names /nowhere/sh, which does not exist",
            ),
            (
                "#!/etc\n",
                "its first line names /etc, and that cannot be executed: it is a folder",
            ),
            (
                "#!/etc/passwd\n",
                "its first line names /etc/passwd, and that cannot be executed: it is not marked executable",
            ),
            ("#!\n", "its first line names no interpreter"),
            (
                "#!/bin/sh\r\nx\r\n",
                "its first line ends in CR LF, and the system takes the CR for a part of the interpreter's name",
            ),
            (
                "#!/usr/bin/env no-such-python\n",
                "its first line makes env look for `no-such-python`, which is not on PATH",
            ),
            (
                "#!/usr/bin/env sh -e\n",
                "its first line makes env look for `sh -e` as one word (several need `env -S`)",
            ),
        ] {
            assert_eq!(why(bad.as_bytes()), wanted, "{bad}");
        }
    }

    #[test]
    fn what_is_no_program_is_told() {
        if is_registered() {
            return;
        }
        assert_eq!(why(b""), "it is empty");
        assert_eq!(
            why(b"echo no first line\n"),
            "it is neither a program nor a script with `#!` in its first line"
        );
        assert_eq!(why(b"\x7fELF\x02\x01"), "it is a program that was cut off");
        let own = fs::read("/proc/self/exe").unwrap();
        assert_eq!(why(&own), "");
        let mut other = own[..64].to_vec();
        other[18] ^= 0x55;
        assert_eq!(why(&other), "it is a program for another kind of machine");
    }

    #[test]
    fn a_loader_that_is_not_there_is_named() {
        let mut own = fs::read("/proc/self/exe").unwrap();
        let (_folder, path) = written(&own);
        let file = File::open(&path).unwrap();
        let Some(loader) = loader(&file, &own[..HEAD]) else {
            return;
        };
        let name = loader.as_os_str().as_bytes();
        let at = own
            .windows(name.len())
            .position(|bytes| bytes == name)
            .unwrap();
        own[at + 1] = b'~';
        let seen = why(&own);
        assert!(
            seen.starts_with("its loader /~") && seen.ends_with(" does not exist"),
            "{seen}"
        );
    }

    #[test]
    fn scripts_that_name_each_other_come_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("me");
        fs::write(&path, format!("#!{}\n", path.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let why = fault(&path, None).unwrap().why;
        assert!(why.contains("too many scripts"), "{why}");
    }
}
