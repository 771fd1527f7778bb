//! One way to run the program in a test: a private folder as working directory and HOME, an environment of PATH and HOME and what the
//! test gives, and exact expectations of status, stdout and stderr.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_atom-launch");
/// Name of the table that [`Test::models`] writes.
pub(crate) const TABLE: &str = "models_atom.yaml";
/// Variables whose value the machine decides.
const OF_THE_MACHINE: [&str; 2] = ["LD_LIBRARY_PATH", "IBDEVICES"];

/// A run of the program: what it is given, and what must come of it.
///
/// Unless told otherwise the status must be 0 and both streams empty. Wherever the folder's path occurs in the output it reads `[DIR]`.
pub(crate) struct Test {
    folder: TempDir,
    before: Vec<OsString>,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    stdin: Vec<u8>,
    status: i32,
    stdout: Option<String>,
    stderr: Option<String>,
}

/// What a run left behind.
pub(crate) struct Run {
    /// The folder, kept until this is dropped.
    pub(crate) folder: TempDir,
    /// Exit code, or 128 and the signal.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Test {
    /// `atom-launch` with words split at blanks.
    pub(crate) fn new(words: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("atom-launch-test-")
            .tempdir()
            .unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let env = BTreeMap::from([("PATH".into(), path), ("HOME".into(), folder.path().into())]);
        Self {
            folder,
            before: Vec::new(),
            args: words.split_whitespace().map(OsString::from).collect(),
            env,
            stdin: Vec::new(),
            status: 0,
            stdout: Some(String::new()),
            stderr: Some(String::new()),
        }
    }

    /// More words, as they are.
    pub(crate) fn args<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Words before all others.
    pub(crate) fn first(mut self, words: &[&str]) -> Self {
        self.args.splice(0..0, words.iter().map(OsString::from));
        self
    }

    /// Words in front of the program: a wrapper that runs it.
    pub(crate) fn under(mut self, words: &[&str]) -> Self {
        self.before = words.iter().map(OsString::from).collect();
        self
    }

    /// A variable.
    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Several variables.
    pub(crate) fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        mut self,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        for (name, value) in pairs {
            self = self.env(name, value);
        }
        self
    }

    /// Take a variable away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.env.remove(OsStr::new(name));
        self
    }

    /// A file in the folder, its parents included.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// An executable file in the folder.
    pub(crate) fn program(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let test = self.file(name, content);
        test.mode(name, 0o755)
    }

    /// Permissions of a file.
    pub(crate) fn mode(self, name: &str, mode: u32) -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    /// A table of models as the file that is read.
    pub(crate) fn models(self, yaml: impl AsRef<[u8]>) -> Self {
        let mut test = self.file(TABLE, yaml);
        if test.args.iter().any(|word| word == "--models-file") {
            return test;
        }
        let option = ["--models-file", TABLE].map(OsString::from);
        // Behind a subcommand, before a possible `--`.
        let subcommands = ["explain", "models", "plan", "check"].map(OsString::from);
        let at = usize::from(
            test.args
                .first()
                .is_some_and(|word| subcommands.contains(word)),
        );
        test.args.splice(at..at, option);
        test
    }

    /// What standard input holds.
    pub(crate) fn stdin(mut self, content: impl AsRef<[u8]>) -> Self {
        self.stdin = content.as_ref().to_vec();
        self
    }

    /// Expect this status.
    pub(crate) fn status(mut self, status: i32) -> Self {
        self.status = status;
        self
    }

    /// Expect exactly this on stdout.
    pub(crate) fn stdout(mut self, text: impl Into<String>) -> Self {
        self.stdout = Some(text.into());
        self
    }

    /// Expect exactly this on stderr.
    pub(crate) fn stderr(mut self, text: impl Into<String>) -> Self {
        self.stderr = Some(text.into());
        self
    }

    /// The caller looks at stdout himself.
    pub(crate) fn any_stdout(mut self) -> Self {
        self.stdout = None;
        self
    }

    /// The caller looks at stderr himself.
    pub(crate) fn any_stderr(mut self) -> Self {
        self.stderr = None;
        self
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The process to start, with all but its streams.
    pub(crate) fn process(&self) -> Command {
        let mut words = self.before.clone();
        words.push(BINARY.into());
        words.extend(self.args.iter().cloned());
        let mut process = Command::new(&words[0]);
        process
            .args(&words[1..])
            .env_clear()
            .envs(&self.env)
            .current_dir(self.folder.path());
        process
    }

    /// Run it and compare.
    #[track_caller]
    pub(crate) fn run(self) -> Run {
        let mut child = self
            .process()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input is no fault of the test.
        let _ = child.stdin.take().unwrap().write_all(&self.stdin);
        let output = child.wait_with_output().unwrap();
        let status = output
            .status
            .code()
            .or_else(|| output.status.signal().map(|signal| 128 + signal))
            .unwrap();
        let stdout = self.shown(&output.stdout);
        let stderr = self.shown(&output.stderr);
        let seen = (status, stdout.as_str(), stderr.as_str());
        let wanted = (
            self.status,
            self.stdout.as_deref().unwrap_or(&stdout),
            self.stderr.as_deref().unwrap_or(&stderr),
        );
        assert!(
            seen == wanted,
            "atom-launch {:?}\n{}",
            self.args,
            [
                compare("status", &wanted.0.to_string(), &seen.0.to_string()),
                compare("stdout", wanted.1, seen.1),
                compare("stderr", wanted.2, seen.2),
            ]
            .concat()
        );
        Run {
            folder: self.folder,
            status,
            stdout,
            stderr,
        }
    }

    /// The command that a dry run shows as JSON. Without a banner, so that stderr holds findings only.
    #[track_caller]
    pub(crate) fn preview(self) -> Preview {
        let mut test = self.any_stdout();
        let given = test.args.iter().any(|word| word == "--quiet");
        let words = ["--dry-run", "--format", "json", "--quiet"].map(OsString::from);
        test.args
            .splice(0..0, words.into_iter().take(if given { 3 } else { 4 }));
        Preview::of_json(&test.run().stdout)
    }

    fn shown(&self, bytes: &[u8]) -> String {
        let folder = self.folder.path().to_str().unwrap();
        String::from_utf8_lossy(bytes).replace(folder, "[DIR]")
    }
}

fn compare(what: &str, wanted: &str, seen: &str) -> String {
    if wanted == seen {
        return String::new();
    }
    format!("--- {what} expected\n{wanted}\n--- {what} seen\n{seen}\n")
}

/// A command as a dry run shows it, without the variables that the machine decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Preview {
    pub(crate) argv: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Preview {
    pub(crate) fn of_json(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).unwrap();
        Self::of_value(&json)
    }

    pub(crate) fn of_value(json: &Value) -> Self {
        let argv = serde_json::from_value(json["argv"].clone()).unwrap();
        let mut env: BTreeMap<String, String> =
            serde_json::from_value(json["env"].clone()).unwrap();
        for name in OF_THE_MACHINE {
            env.remove(name);
        }
        Self { argv, env }
    }

    /// Variables, a blank line, then one flag with its values a line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", visible(value)))
            .collect();
        lines.push(String::new());
        lines.extend(flags(&self.argv));
        lines
    }

    /// What differs from another command, in order: `- --block-size 16`, `+ --block-size 64`.
    pub(crate) fn changes_from(&self, other: &Self) -> Vec<String> {
        changes(&other.lines(), &self.lines())
    }
}

/// Words as lines: a word that starts with `-`, and its values.
pub(crate) fn flags(argv: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in argv {
        let is_flag = word.starts_with('-')
            && !word[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.');
        match lines.last_mut() {
            Some(line) if !is_flag => {
                line.push(' ');
                line.push_str(&visible(word));
            }
            _ => lines.push(visible(word)),
        }
    }
    lines
}

/// A word as it is, in quotes where its end could not be seen.
fn visible(word: &str) -> String {
    let clear = !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c.is_control());
    if clear {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

/// Lines that go and come, by the longest common subsequence.
pub(crate) fn changes(old: &[String], new: &[String]) -> Vec<String> {
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            common[i][j] = if a == b {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut found = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            found.push(format!("- {}", old[i]));
            i += 1;
        } else {
            found.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    found
}

/// The headlines of findings: lines that start with `error[` or `warning[`.
pub(crate) fn headlines(stderr: &str) -> Vec<String> {
    stderr
        .lines()
        .filter(|line| line.starts_with("error[") || line.starts_with("warning["))
        .map(str::to_owned)
        .collect()
}

/// A file of the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Do something for each item on all processors; the first panic is that of the test.
pub(crate) fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(item) = items.get(at) else {
                            return done;
                        };
                        done.push((at, work(item)));
                    }
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|cause| std::panic::resume_unwind(cause))
            })
            .collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What the stand-in of tests/fakes/record.sh noted about its start.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) argv: Vec<String>,
    pub(crate) environ: BTreeMap<String, String>,
    pub(crate) pid: u32,
    /// Soft and hard limit of open files.
    pub(crate) files: String,
    status: String,
}

impl Started {
    /// Read the notes in a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let split = |text: String| -> Vec<String> {
            let words = text
                .strip_suffix('\0')
                .map(|text| text.split('\0').map(str::to_owned));
            words.into_iter().flatten().collect()
        };
        let environ = split(text("environ")).into_iter().map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        });
        Self {
            argv: split(text("argv")),
            environ: environ.collect(),
            pid: text("pid").trim().parse().unwrap(),
            files: text("files")
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
            status: text("status"),
        }
    }

    /// A signal mask as /proc shows it.
    pub(crate) fn mask(&self, name: &str) -> &str {
        let line = self.status.lines().find(|line| line.starts_with(name));
        line.unwrap().split_whitespace().nth(1).unwrap()
    }
}

/// The stand-in's text.
pub(crate) fn stand_in() -> Vec<u8> {
    fs::read(project("tests/fakes/record.sh")).unwrap()
}

impl Test {
    /// `python3` first on PATH is a stand-in that notes how it was started and then does this.
    pub(crate) fn server(self, then: &str) -> Self {
        let tools = self.path("tools");
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        let record = self.path("");
        self.program("tools/python3", stand_in())
            .env("PATH", path)
            .env("RECORD", record)
            .env("THEN", then)
    }
}

impl Run {
    /// How the server was started.
    pub(crate) fn started(&self) -> Started {
        Started::read(self.folder.path())
    }
}
