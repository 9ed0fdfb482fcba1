//! Replaces a whole folder, or removes it. A kill at any moment leaves the old folder or the new one, on systems that can
//! exchange folders: new content is written under a hidden name first, and the old folder is renamed before it is
//! removed. Follows no link: a link at the target is an error, never a way out of the parent.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::platform;

/// The prefix of folders that are being written or removed. Hidden folders are never modules.
pub(crate) const STAGED: &str = ".cogn-staged-";
/// The age after which a staged folder belongs to a killed process: writing one takes moments.
const ABANDONED: Duration = Duration::from_mins(10);

/// Writes `parent/name` and replaces an existing folder. The name must be a single path component.
pub fn put_folder<T: AsRef<[u8]>>(
    parent: &Path,
    name: &str,
    files: &BTreeMap<String, T>,
) -> io::Result<PathBuf> {
    let target = single(parent, name)?;
    fs::create_dir_all(parent)?;
    let is_there = is_folder(&target)?;
    let staged = write_staged(parent, files)?;
    let swapped =
        if is_there { exchange(&staged, &target) } else { fs::rename(&staged, &target).map(|()| None) };
    match swapped {
        Ok(old) => {
            sync(parent);
            // The old folder has a hidden name now. If it cannot be removed, it does no harm, and `remove_staged` tries
            // again.
            let _tried_again_later = old.map(fs::remove_dir_all);
            Ok(target)
        }
        Err(error) => {
            let _tried_again_later = fs::remove_dir_all(&staged);
            Err(error)
        }
    }
}

/// Removes `parent/name`; returns `false` if it does not exist.
pub fn remove_folder(parent: &Path, name: &str) -> io::Result<bool> {
    let target = single(parent, name)?;
    if !is_folder(&target)? {
        return Ok(false);
    }
    let staged = new_staged(parent)?;
    // A rename replaces an empty folder in one step.
    fs::rename(&target, &staged)?;
    sync(parent);
    fs::remove_dir_all(&staged)?;
    Ok(true)
}

/// Removes the leftovers of killed processes from a folder of modules. Call it only when no other process writes there.
pub fn remove_staged(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGED) {
            let _does_no_harm = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes leftovers that have not changed for a while. Safe while other processes write.
pub(crate) fn remove_abandoned(parent: &Path) {
    let is_old = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|found| found.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age >= ABANDONED))
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(STAGED) || !is_old(&entry) {
            continue;
        }
        let path = entry.path();
        let _does_no_harm = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
}

fn single(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name => Ok(parent.join(name)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a folder")),
    }
}

/// Returns whether the folder exists. Any other file type at the path is an error.
pub(crate) fn is_folder(target: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(target) {
        Ok(there) if there.is_dir() => Ok(true),
        Ok(_) => Err(io::Error::new(io::ErrorKind::NotADirectory, "a link or a file has its name")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn new_staged(parent: &Path) -> io::Result<PathBuf> {
    Ok(tempfile::Builder::new().prefix(STAGED).tempdir_in(parent)?.keep())
}

fn write_staged<T: AsRef<[u8]>>(parent: &Path, files: &BTreeMap<String, T>) -> io::Result<PathBuf> {
    let staged = new_staged(parent)?;
    let written = files.iter().try_for_each(|(path, bytes)| {
        let file = staged.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&staged))?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(file)?;
        file.write_all(bytes.as_ref())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(staged),
        Err(error) => {
            let _tried_again_later = fs::remove_dir_all(&staged);
            Err(error)
        }
    }
}

/// Exchanges both folders, in one step where the system supports it. Returns the new path of the old one. Elsewhere a
/// kill between the two renames leaves the old folder under its hidden name.
pub(crate) fn exchange(staged: &Path, target: &Path) -> io::Result<Option<PathBuf>> {
    if platform::exchange(staged, target)? {
        return Ok(Some(staged.to_owned()));
    }
    let parent = target.parent().unwrap_or(target);
    let aside = new_staged(parent)?;
    fs::rename(target, &aside)?;
    match fs::rename(staged, target) {
        Ok(()) => Ok(Some(aside)),
        Err(error) => {
            fs::rename(&aside, target)?;
            Err(error)
        }
    }
}

pub(crate) fn sync(folder: &Path) {
    // Some file systems cannot do it, and there is no alternative.
    let _best_effort = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("a".to_owned(), text.to_owned()), ("t/b".to_owned(), "2".to_owned())])
    }

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_takes_the_place_of_another_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        put_folder(dir.path(), "m", &files("1")).unwrap();
        fs::write(dir.path().join("m/extra"), "old").unwrap();
        put_folder(dir.path(), "m", &files("new")).unwrap();
        assert_eq!(entries(dir.path()), ["m"]);
        assert_eq!(entries(&dir.path().join("m")), ["a", "t"]);
        assert_eq!(fs::read_to_string(dir.path().join("m/a")).unwrap(), "new");
        assert!(remove_folder(dir.path(), "m").unwrap());
        assert!(!remove_folder(dir.path(), "m").unwrap());
        assert!(entries(dir.path()).is_empty());
    }

    #[test]
    fn a_folder_that_cannot_be_written_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        put_folder(dir.path(), "m", &files("1")).unwrap();
        // `a` cannot be both a file and a folder.
        let clash = BTreeMap::from([("a".to_owned(), "x"), ("a/b".to_owned(), "y")]);
        assert!(put_folder(dir.path(), "m", &clash).is_err());
        assert_eq!(entries(dir.path()), ["m"]);
        assert_eq!(fs::read_to_string(dir.path().join("m/a")).unwrap(), "1");
    }

    #[test]
    fn nothing_outside_of_the_parent_has_a_name_here() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path().join("modules");
        put_folder(dir.path(), "mine", &files("1")).unwrap();
        fs::create_dir(&parent).unwrap();
        for name in ["../mine", "..", ".", "", "/", "a/b", "mine/"] {
            assert!(put_folder(&parent, name, &files("2")).is_err(), "{name}");
            assert!(remove_folder(&parent, name).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("mine/a")).unwrap(), "1");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_its_place_is_neither_followed_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        put_folder(dir.path(), "mine", &files("1")).unwrap();
        std::os::unix::fs::symlink("mine", dir.path().join("link")).unwrap();
        assert!(put_folder(dir.path(), "link", &files("2")).is_err());
        assert!(remove_folder(dir.path(), "link").is_err());
        // The staged content is removed as well.
        assert_eq!(entries(dir.path()), ["link", "mine"]);
        assert_eq!(fs::read_to_string(dir.path().join("mine/a")).unwrap(), "1");
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next() {
        let dir = tempfile::tempdir().unwrap();
        write_staged(dir.path(), &files("half")).unwrap();
        fs::create_dir(dir.path().join(".mine")).unwrap();
        remove_staged(dir.path());
        assert_eq!(entries(dir.path()), [".mine"]);
    }
}
