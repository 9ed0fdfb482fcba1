//! Writes a folder completely or not at all: first under a hidden name in the same parent, then by a rename. Replaces
//! nothing, even if the target appears in the meantime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

use super::InitError;
use crate::platform;

/// Creates `parent/name` with these files.
pub fn create<T: AsRef<[u8]>>(
    parent: &Path,
    name: &str,
    files: &BTreeMap<String, T>,
) -> Result<PathBuf, InitError> {
    let target = parent.join(name);
    // A dangling link also counts as existing.
    if fs::symlink_metadata(&target).is_ok() {
        return Err(InitError::Exists { path: target });
    }
    let refused = |source| InitError::Write { path: target.clone(), source };
    let draft = write_draft(parent, name, files).map_err(refused)?;
    match rename(draft.path(), &target) {
        Ok(()) => {
            // The folder was renamed, so the temporary name must not be removed.
            let _ = draft.keep();
            Ok(target)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(InitError::Exists { path: target }),
        Err(error) => Err(refused(error)),
    }
}

/// Writes the files into a hidden folder, which is never taken for a module and is removed on failure.
fn write_draft<T: AsRef<[u8]>>(
    parent: &Path,
    name: &str,
    files: &BTreeMap<String, T>,
) -> io::Result<TempDir> {
    fs::create_dir_all(parent)?;
    let draft = tempfile::Builder::new().prefix(&format!(".{name}-")).tempdir_in(parent)?;
    for (path, text) in files {
        let file = draft.path().join(path);
        fs::create_dir_all(file.parent().unwrap_or(draft.path()))?;
        fs::write(file, text)?;
    }
    Ok(draft)
}

/// Renames a folder in one step that fails if the new name is taken.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    if platform::rename_to_free_name(from, to)? { Ok(()) } else { rename_after_a_look(from, to) }
}

/// The fallback: an empty folder that appears between the check and the rename is replaced.
fn rename_after_a_look(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn some_files() -> BTreeMap<String, String> {
        BTreeMap::from([("a".to_owned(), "1".to_owned()), ("t/b".to_owned(), "2".to_owned())])
    }

    #[test]
    fn a_folder_appears_complete_and_alone() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path().join("new/parents");
        let made = create(&parent, "m", &some_files()).unwrap();
        assert_eq!(made, parent.join("m"));
        assert_eq!(entries(&parent), ["m"]);
        assert_eq!(fs::read_to_string(made.join("t/b")).unwrap(), "2");
        // The folder has the same mode as any new folder, although it was created as a temporary one.
        let plain = parent.join("plain");
        fs::create_dir(&plain).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().permissions(), fs::metadata(&plain).unwrap().permissions());
    }

    #[test]
    fn what_is_there_is_never_touched() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("empty")).unwrap();
        fs::write(dir.path().join("file"), "mine").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        let before = entries(dir.path());
        for name in &before {
            let error = create(dir.path(), name, &some_files()).unwrap_err();
            assert!(matches!(&error, InitError::Exists { path } if path.ends_with(name)), "{error}");
            assert!(error.to_string().starts_with("the path already exists: `"));
            assert_eq!(error.hint(), "Choose another name, or move the existing files away");
        }
        assert_eq!(entries(dir.path()), before);
        assert!(entries(&dir.path().join("empty")).is_empty());
        assert_eq!(fs::read_to_string(dir.path().join("file")).unwrap(), "mine");
    }

    #[test]
    fn a_name_that_was_taken_in_the_meantime_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir(&from).unwrap();
        fs::create_dir(&to).unwrap();
        for rename in [rename, rename_after_a_look] {
            assert_eq!(rename(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        fs::remove_dir(&to).unwrap();
        rename_after_a_look(&from, &to).unwrap();
        assert_eq!(entries(dir.path()), ["to"]);
    }

    #[test]
    fn half_a_folder_is_never_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        // `a` cannot be a file and a folder, so the second file fails after the first was written.
        let clash = BTreeMap::from([("a".to_owned(), String::new()), ("a/b".to_owned(), String::new())]);
        let error = create(dir.path(), "m", &clash).unwrap_err();
        assert!(matches!(error, InitError::Write { .. }), "{error}");
        assert!(entries(dir.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_read_only_parent_stays_as_it_is() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let made = create(dir.path(), "m", &some_files());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        match made {
            Err(error) => {
                assert!(matches!(error, InitError::Write { .. }), "{error}");
                assert!(entries(dir.path()).is_empty());
            }
            // Root may write everywhere.
            Ok(_) => assert_eq!(entries(dir.path()), ["m"]),
        }
    }

    #[test]
    fn a_parent_that_is_a_file_is_a_clear_error() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path().join("file");
        fs::write(&parent, "mine").unwrap();
        let error = create(&parent, "m", &some_files()).unwrap_err();
        assert!(error.to_string().starts_with("cannot create `"), "{error}");
        assert_eq!(fs::read_to_string(&parent).unwrap(), "mine");
    }
}
