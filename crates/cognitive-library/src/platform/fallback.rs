//! The fallback for systems other than Unix, such as Windows. All operations use paths: if another process writes to
//! the same folder meanwhile, the checked file and the opened file can differ.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file for reading. Refuses a link, by a check before opening.
pub(crate) fn open_nofollow(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a link"));
    }
    File::open(path)
}

/// Returns the real path of the folder and no handle. Refuses a link.
pub(crate) fn hold_folder(folder: &Path) -> io::Result<(Option<File>, PathBuf)> {
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
    }
    Ok((None, folder.canonicalize()?))
}

/// Returns whether the path leads to the folder, and not through a link.
pub(crate) fn is_held_at(_: Option<&File>, held: &Path, path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    is_folder && path.canonicalize().is_ok_and(|path| path == held)
}

/// Unsupported: links need special rights, and a different kind of link for each kind of target.
pub(crate) fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "links cannot be copied on this system"))
}

/// Does nothing: a file belongs to the user who writes it.
pub(crate) fn take_owner_from(_: &Metadata, _: &Path) {}

/// Does nothing: folders have no mode that prevents writing.
pub(crate) fn make_writable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Unsupported on these systems.
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Unsupported on these systems.
pub(crate) fn rename_to_free_name(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}
