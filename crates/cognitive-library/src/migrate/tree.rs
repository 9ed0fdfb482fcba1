//! Copies and removes folder trees. Copies files, folders and links with their permissions and times. Refuses all other
//! entries, and a tree too large to be a module. Links are copied as links and never followed.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::error::MigrateError;
use crate::folder::open_regular;
use crate::platform;

/// The most bytes that are copied. Sparse files count in full, because the copy is not sparse. A wrong folder would
/// otherwise fill the disk.
const MAX_BYTES: u64 = 256 << 20;
/// The most files, folders and links that are copied. A wrong folder would otherwise be copied for minutes.
const MAX_ENTRIES: usize = 10_000;

/// New content for some files of a tree, by their path in it.
pub(super) type Content<'a> = BTreeMap<PathBuf, &'a str>;

/// Refuses a tree that is too large to be copied. Writes nothing.
pub(super) fn measure(tree: &Path) -> Result<(), MigrateError> {
    measure_by(tree, MAX_BYTES, MAX_ENTRIES)
}

fn measure_by(tree: &Path, most_bytes: u64, most_entries: usize) -> Result<(), MigrateError> {
    let refused = |path: &Path, reason| Err(MigrateError::Unsupported { path: path.to_owned(), reason });
    let (mut bytes, mut entries) = (0_u64, 0_usize);
    let mut largest = (0, tree.to_owned());
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(MigrateError::io("read", &folder))? {
            let path = entry.map_err(MigrateError::io("read", &folder))?.path();
            let meta = fs::symlink_metadata(&path).map_err(MigrateError::io("read", &path))?;
            entries += 1;
            if entries > most_entries {
                return refused(&folder, "the module has more than 10,000 files, some of them here");
            }
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() {
                bytes = bytes.saturating_add(meta.len());
                if meta.len() >= largest.0 {
                    largest = (meta.len(), path);
                }
            }
            if bytes > most_bytes {
                return refused(&largest.1, "the module has more than 256 MiB, much of it here");
            }
        }
    }
    Ok(())
}

/// Copies the tree `from` into the empty folder `to`, with new content for some files, and flushes everything to disk.
/// Creates the files of `content` that are not in the tree.
pub(super) fn copy(from: &Path, to: &Path, content: &Content<'_>) -> Result<(), MigrateError> {
    // A list instead of recursion: the depth of the tree has no limit.
    let mut folders = vec![PathBuf::new()];
    let mut at = 0;
    while let Some(folder) = folders.get(at).cloned() {
        at += 1;
        let source = from.join(&folder);
        for entry in fs::read_dir(&source).map_err(MigrateError::io("read", &source))? {
            let entry = entry.map_err(MigrateError::io("read", &source))?;
            let inside = folder.join(entry.file_name());
            copy_entry(&from.join(&inside), &to.join(&inside), content.get(&inside).copied())?;
            if entry.file_type().map_err(MigrateError::io("read", &source))?.is_dir() {
                folders.push(inside);
            }
        }
    }
    for (inside, text) in
        content.iter().filter(|(inside, _)| fs::symlink_metadata(from.join(inside)).is_err())
    {
        let path = to.join(inside);
        write_file(&path, text.as_bytes(), None).map_err(MigrateError::io("write", &path))?;
    }
    // Inner folders first, and permissions last: a folder without write permission can still be filled.
    for folder in folders.iter().rev() {
        let (source, target) = (from.join(folder), to.join(folder));
        let done = fs::symlink_metadata(&source).and_then(|like| finish_folder(&target, &like));
        done.map_err(MigrateError::io("copy", &source))?;
    }
    Ok(())
}

fn copy_entry(from: &Path, to: &Path, content: Option<&str>) -> Result<(), MigrateError> {
    let like = fs::symlink_metadata(from).map_err(MigrateError::io("read", from))?;
    let kind = like.file_type();
    let copied = if kind.is_dir() {
        fs::create_dir(to)
    } else if kind.is_symlink() {
        fs::read_link(from)
            .and_then(|target| platform::link(&target, to))
            .map(|()| platform::take_owner_from(&like, to))
    } else if kind.is_file() {
        match content {
            Some(text) => write_file(to, text.as_bytes(), Some(&like)),
            None => copy_file(from, to, &like),
        }
    } else {
        let reason = "neither a file nor a folder nor a link";
        return Err(MigrateError::Unsupported { path: from.to_owned(), reason });
    };
    copied.map_err(MigrateError::io("copy", from))
}

fn copy_file(from: &Path, to: &Path, like: &Metadata) -> io::Result<()> {
    let source = open_regular(from)?;
    let mut target = create(to)?;
    // Copies no more than was measured: a file that grows meanwhile could fill the disk.
    if io::copy(&mut source.take(like.len().saturating_add(1)), &mut target)? > like.len() {
        return Err(io::Error::other("it grew while it was copied"));
    }
    copy_ownership(&target, to, like)?;
    target.set_modified(like.modified()?)?;
    target.sync_all()
}

fn write_file(path: &Path, content: &[u8], like: Option<&Metadata>) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(content)?;
    if let Some(like) = like {
        copy_ownership(&file, path, like)?;
    }
    file.sync_all()
}

/// Creates a file that must not exist. A dangling link counts as existing.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Copies owner and permissions to a file. The owner comes first: changing it resets special bits.
fn copy_ownership(file: &File, path: &Path, like: &Metadata) -> io::Result<()> {
    platform::take_owner_from(like, path);
    file.set_permissions(like.permissions())
}

fn finish_folder(folder: &Path, like: &Metadata) -> io::Result<()> {
    sync(folder);
    platform::take_owner_from(like, folder);
    fs::set_permissions(folder, like.permissions())
}

/// Flushes the entries of a folder to disk. Some file systems cannot do it, and there is no alternative.
pub(super) fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// Removes a tree, even with folders that are not writable.
pub(super) fn remove(tree: &Path) -> io::Result<()> {
    if fs::remove_dir_all(tree).is_ok() {
        return Ok(());
    }
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        platform::make_writable(&folder)?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(tree)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn mig_006_a_copy_has_the_same_links_permissions_and_times() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("locked/deep")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("locked/deep/file"), b"\x00\xff").unwrap();
        symlink("../nowhere", from.join("locked/link")).unwrap();
        fs::write(from.join("run"), "old").unwrap();
        fs::set_permissions(from.join("run"), Permissions::from_mode(0o755)).unwrap();
        File::open(from.join("run")).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(9)).unwrap();
        fs::write(from.join("read-only"), "old").unwrap();
        fs::set_permissions(from.join("read-only"), Permissions::from_mode(0o444)).unwrap();
        fs::set_permissions(from.join("locked"), Permissions::from_mode(0o555)).unwrap();

        let content = Content::from([("read-only".into(), "new"), ("fresh".into(), "new")]);
        copy(&from, &to, &content).unwrap();
        assert_eq!(fs::read(to.join("locked/deep/file")).unwrap(), b"\x00\xff");
        assert_eq!(fs::read_link(to.join("locked/link")).unwrap(), Path::new("../nowhere"));
        for (name, mode, text) in [("run", 0o755, "old"), ("read-only", 0o444, "new")] {
            assert_eq!(fs::metadata(to.join(name)).unwrap().mode() & 0o777, mode);
            assert_eq!(fs::read_to_string(to.join(name)).unwrap(), text);
        }
        assert_eq!(fs::metadata(to.join("locked")).unwrap().mode() & 0o777, 0o555);
        assert_eq!(fs::metadata(to.join("run")).unwrap().mtime(), 9);
        assert_eq!(fs::read_to_string(to.join("fresh")).unwrap(), "new");

        remove(&to).unwrap();
        remove(&from).unwrap();
        assert!(!to.exists() && !from.exists());
    }

    #[test]
    fn a_tree_is_measured_as_a_reader_sees_it() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, inner) = (dir.path(), dir.path().join("inner"));
        fs::create_dir(&inner).unwrap();
        File::create(inner.join("holes")).unwrap().set_len(3 << 30).unwrap();
        symlink("/", inner.join("link")).unwrap();
        let reason = |result: Result<(), MigrateError>| result.unwrap_err().to_string();
        let shown = format!("more than 256 MiB, much of it here: `{}`", inner.join("holes").display());
        assert!(reason(measure(tree)).contains(&shown));
        File::create(inner.join("holes")).unwrap();
        measure(tree).unwrap();
        measure_by(tree, 0, 3).unwrap();
        assert!(reason(measure_by(tree, 0, 2)).contains("more than 10,000 files"));
    }

    #[test]
    fn what_takes_the_place_of_a_file_is_neither_waited_for_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "text").unwrap();
        let like = fs::symlink_metadata(path("file")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        symlink("file", path("link")).unwrap();
        fs::write(path("longer"), "text and more").unwrap();
        for name in ["pipe", "link", "longer"] {
            assert!(copy_file(&path(name), &path(&format!("copy of {name}")), &like).is_err(), "{name}");
        }
        copy_file(&path("file"), &path("copy"), &like).unwrap();
        assert_eq!(fs::read_to_string(path("copy")).unwrap(), "text");
    }
}
