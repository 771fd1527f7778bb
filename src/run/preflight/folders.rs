//! Folders for logs: whether they can be written, by writing something.

use std::fs;
use std::io;
use std::path::Path;

use crate::domain::diagnostic::{Diagnostic, Place};

use super::LOG_FOLDER;

/// More than a file system keeps beside a file's name: a full disk still takes a file without content.
const TRIAL: [u8; 8192] = [b'.'; 8192];

/// What stands against writing logs.
pub(super) fn logs(folder: &Path) -> Option<Diagnostic> {
    let trial = folder.join(format!(".atom-launch-{}", std::process::id()));
    let result = fs::create_dir_all(folder).and_then(|()| fs::write(&trial, TRIAL));
    let _ = fs::remove_file(&trial);
    let error = result.err()?;
    let help = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room, or ",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make it writable for this user, or "
        }
        _ => "",
    };
    let why = in_the_way(folder).unwrap_or_else(|| error.to_string());
    let text = sentence("log folder", "--log-dir", folder, &why);
    let place = Place::Input("--log-dir".into());
    Some(
        Diagnostic::error(LOG_FOLDER, place, text)
            .help(format!("{help}give a folder with `--log-dir`")),
    )
}

/// What stands against a copy of the logs at the end: no reason to lose the job, whose logs are elsewhere. Nothing is made yet, since
/// the workload may make the folder itself.
pub(super) fn collected(folder: &Path) -> Option<Diagnostic> {
    let why = in_the_way(folder)?;
    let text = sentence("folder of collected logs", "--collect-logs", folder, &why);
    let place = Place::Input("--collect-logs".into());
    Some(Diagnostic::warning(LOG_FOLDER, place, text).help("give a folder with `--collect-logs`"))
}

fn sentence(what: &str, option: &str, folder: &Path, why: &str) -> String {
    let folder = folder.display();
    format!("{what} {folder} ({option}) cannot be written: {why}")
}

/// What is there in place of the folder, or of one above it.
fn in_the_way(folder: &Path) -> Option<String> {
    let other = folder
        .ancestors()
        .filter(|above| fs::symlink_metadata(above).is_ok())
        .find(|above| !above.is_dir())?;
    let what = match fs::metadata(other) {
        Ok(data) if data.is_file() => "a file",
        Ok(_) => "no folder",
        Err(_) => "a link that leads nowhere",
    };
    Some(if other == folder {
        format!("it is {what}")
    } else {
        format!("{} is {what}", other.display())
    })
}
