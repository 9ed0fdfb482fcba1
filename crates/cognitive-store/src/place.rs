//! The file before `SQLite` touches it: a regular file in an existing folder, readable by its owner only.
//! Refuses whatever else stands at the path, symbolic links included: the log and the index would be created beside
//! the target, in a folder that nobody chose. Links on the way to the folder are fine, `~/.cognitive` may be one.

use std::ffi::OsString;
use std::fs::{self, FileType, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Problem;

/// Closing *any* descriptor of a file drops *all* POSIX locks that the process holds on it. So an existing database is
/// never opened here, only looked at by its name, and a new one is closed before a second thread can have seen it.
static CREATING: Mutex<()> = Mutex::new(());

/// Creates what is missing and gives the path without links.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Problem> {
    create_folder(folder_of(path))?;
    let path = resolve(path)?;
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    match create_file(&path) {
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
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_fifo(&kind) {
        return "a FIFO";
    }
    "a device or a socket"
}

/// `SQLite` gives its log and its index the mode of the database, so they follow.
#[cfg(unix)]
fn create_file(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    // `create_new` follows no link and opens no FIFO.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // A strange umask could have taken the owner's own rights.
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn create_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}

/// Folders that exist keep their mode; they may be shared with other files.
#[cfg(unix)]
fn create_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Takes everybody else's rights to a store that came with more, by a copy or an old umask. Only for files that have
/// turned out to be ours.
#[cfg(unix)]
pub(crate) fn narrow(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let others = fs::symlink_metadata(path)?.permissions().mode() & 0o077;
    if others == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    for suffix in ["-wal", "-shm"] {
        let beside = beside(path, suffix);
        if fs::symlink_metadata(&beside).is_ok_and(|found| found.is_file()) {
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn narrow(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg_attr(not(unix), expect(dead_code, reason = "only `narrow` asks"))]
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Which file a path stands for, so that a connection notices when its own was moved away. `None` where unknown.
#[cfg(unix)]
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}
