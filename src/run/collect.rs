//! Copies a rank's own files into a common folder at the end.

use std::fs;
use std::path::{Path, PathBuf};

/// Copy files into a folder, which is made when it is missing. What could not be copied is returned, as one sentence each.
pub fn copy(files: &[PathBuf], folder: &Path) -> Vec<String> {
    if let Err(error) = fs::create_dir_all(folder) {
        return vec![format!(
            "cannot collect logs in {}: {error}",
            folder.display()
        )];
    }
    files
        .iter()
        .filter(|file| file.exists())
        .filter_map(|file| {
            let to = folder.join(file.file_name()?);
            if same(file, &to) {
                return None; // copying a file onto itself would empty it
            }
            let error = fs::copy(file, &to).err()?;
            Some(format!(
                "cannot copy {} to {}: {error}",
                file.display(),
                to.display()
            ))
        })
        .collect()
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_never_onto_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("prefill-0.log");
        fs::write(&log, "text").unwrap();
        let missing = folder.path().join("router-0.log");
        let files = [log.clone(), missing];
        let to = folder.path().join("deep/er");
        assert_eq!(copy(&files, &to), Vec::<String>::new());
        assert_eq!(
            fs::read_to_string(to.join("prefill-0.log")).unwrap(),
            "text"
        );
        assert_eq!(copy(&files, folder.path()), Vec::<String>::new());
        assert_eq!(fs::read_to_string(&log).unwrap(), "text");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("blocked");
        fs::write(&blocked, "").unwrap();
        let problems = copy(&[], &blocked.join("out"));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("blocked/out"), "{problems:?}");
    }
}
