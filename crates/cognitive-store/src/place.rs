//! Creates or checks the file before `SQLite` opens it: a regular file, readable by its owner only.
//! Refuses anything else at the path, including symbolic links: `SQLite` would create its log and index next to the
//! target of the link. Links in the folder's path are allowed, for example for `~/.cognitive`.

use std::ffi::OsString;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use cognitive_contract::lock::Lock;

use crate::error::Problem;
use crate::platform;

/// Serialises file creation. Closing *any* descriptor of a file releases *all* POSIX locks of the process on it. So
/// an existing database is never opened here, only inspected by name, and a new one is closed before another thread
/// can use it.
static CREATING: Lock<()> = Lock::new(());

/// Creates the missing folder and file, and returns the path without links.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Problem> {
    platform::create_private_folder(folder_of(path))?;
    let path = resolve(path)?;
    let _alone = CREATING.lock();
    // `SQLite` gives its log and index the mode of the database.
    match platform::create_private_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(&path)?,
        other => other?,
    }
    Ok(path)
}

/// Returns the path of an existing store without creating anything; `None` if there is none.
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

/// Resolves links in the folder's path once, so that `SQLite` can be told to follow none.
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

/// Removes the access of other users from a store that was copied or created with an old umask. Only for files
/// already identified as stores.
pub(crate) fn narrow(path: &Path) -> io::Result<()> {
    if !platform::is_open_to_others(path)? {
        return Ok(());
    }
    platform::close_to_others(path)?;
    for suffix in ["-wal", "-shm"] {
        let beside = with_suffix(path, suffix);
        if fs::symlink_metadata(&beside).is_ok_and(|found| found.is_file()) {
            platform::close_to_others(&beside)?;
        }
    }
    Ok(())
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the identity of the file at a path, so that a connection notices when its file was moved. `None` if
/// unknown.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    platform::file_identity(path)
}
