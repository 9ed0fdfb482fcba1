//! The fallback for systems that are no Unix, such as Windows: links are refused by a look before, a child process has no
//! limits but its time, and what is below the user's own folder is closed to others by the system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A link is refused by a look before.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a link"));
    }
    File::open(path)
}

/// The real path that the name leads to now.
pub(crate) fn path_of(_: &File, path: &Path) -> io::Result<Option<PathBuf>> {
    fs::canonicalize(path).map(Some)
}

/// Whether there is a file at the path: nobody takes away what somebody has open.
pub(crate) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Nothing can be limited.
pub(crate) fn confine(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}

/// A new file.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The folder, with those above it.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}
