//! The file before `SQLite` touches it: a regular file in an existing folder, readable by its owner only.
//! Refuses whatever else stands at the path, symbolic links included: the log and the index would be created beside
//! the target, in a folder that nobody chose. Links on the way to the folder are fine, `~/.cognitive` may be one.

use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Problem;
use crate::platform;

/// Closing *any* descriptor of a file drops *all* POSIX locks that the process holds on it. So an existing database is
/// never opened here, only looked at by its name, and a new one is closed before a second thread can have seen it.
static CREATING: Mutex<()> = Mutex::new(());

/// Creates what is missing and gives the path without links.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Problem> {
    platform::create_private_folder(folder_of(path))?;
    let path = resolve(path)?;
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    // `SQLite` gives its log and its index the mode of the database, so they follow.
    match platform::create_private_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(&path)?,
        other => other?,
    }
    Ok(path)
}

/// Looks for a store without creating anything. `None` if there is none.
pub(crate) fn look(path: &Path) -> Result<Option<PathBuf>, Problem> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let path = resolve(path)?;
    check(&path)?;
    Ok(Some(path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Links in the folder's path are followed here, once, so that `SQLite` can be told to follow none.
fn resolve(path: &Path) -> Result<PathBuf, Problem> {
    let name = path.file_name().ok_or(Problem::NotAFile("a directory"))?;
    Ok(fs::canonicalize(folder_of(path))?.join(name))
}

fn check(path: &Path) -> Result<(), Problem> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_file() { Ok(()) } else { Err(Problem::NotAFile(name_of(kind))) }
}

fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() {
        return "a directory";
    }
    if kind.is_symlink() {
        return "a symbolic link";
    }
    if platform::is_fifo(kind) { "a FIFO" } else { "a device or a socket" }
}

/// Takes everybody else's rights to a store that came with more, by a copy or an old umask. Only for files that have
/// turned out to be ours.
pub(crate) fn narrow(path: &Path) -> io::Result<()> {
    if !platform::is_open_to_others(path)? {
        return Ok(());
    }
    platform::close_to_others(path)?;
    for suffix in ["-wal", "-shm"] {
        let beside = beside(path, suffix);
        if fs::symlink_metadata(&beside).is_ok_and(|found| found.is_file()) {
            platform::close_to_others(&beside)?;
        }
    }
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Which file a path stands for, so that a connection notices when its own was moved away. `None` where unknown.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    platform::file_identity(path)
}
