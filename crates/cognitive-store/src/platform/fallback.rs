//! The fallback for systems other than Unix, such as Windows: files have no modes, and the system protects the user's
//! folder.

use std::fs::{self, FileType, OpenOptions};
use std::io;
use std::path::Path;

/// Returns false, because there are no FIFOs.
pub(crate) fn is_fifo(_: FileType) -> bool {
    false
}

/// Creates a file; fails if it exists.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(path).map(drop)
}

/// Creates a folder and its parents.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Returns false, because the rights are unknown.
pub(crate) fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Does nothing, because files have no modes.
pub(crate) fn close_to_others(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns `None`, because the identity is unknown.
pub(crate) fn file_identity(_: &Path) -> Option<(u64, u64)> {
    None
}
