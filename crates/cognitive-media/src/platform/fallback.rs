//! The fallback for systems other than Unix, such as Windows. A check before opening refuses links. A child process has
//! only a time limit. The system protects the user's own folder from other users.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Refuses a link, by a check before opening.
pub(crate) fn open_nofollow(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a link"));
    }
    File::open(path)
}

/// Returns the real path that the name leads to now.
pub(crate) fn path_of(_: &File, path: &Path) -> io::Result<Option<PathBuf>> {
    fs::canonicalize(path).map(Some)
}

/// Returns whether a file exists at the path: these systems do not delete an open file.
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Does nothing: these systems have no such limits.
pub(crate) fn confine(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}

/// Creates a new file.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates the folder and its parents.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}
