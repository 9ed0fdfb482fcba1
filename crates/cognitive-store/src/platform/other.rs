//! The fallback for systems that are no Unix, such as Windows: files have no modes, and what is below the user's own folder
//! is closed to others by the system.

use std::fs::{self, FileType, OpenOptions};
use std::io;
use std::path::Path;

/// There are none.
pub(crate) fn is_fifo(_: FileType) -> bool {
    false
}

/// Creates a file; one that is there already is an error.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}

/// Creates a folder with those above it.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Not known.
pub(crate) fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// There is nothing to take.
pub(crate) fn close_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Not known.
pub(crate) fn file_identity(_: &Path) -> Option<(u64, u64)> {
    None
}
