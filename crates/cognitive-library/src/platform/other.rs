//! The fallback for systems that are no Unix, such as Windows. Everything works by name: what is checked and what is opened
//! a moment later can differ if somebody else writes to the same folder in between.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Opens a file for reading. A link is refused by a look before.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.file_type().is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a link"));
    }
    File::open(path)
}

/// Nothing is held: the folder is known by its real path. A link is refused.
pub(crate) fn hold_folder(folder: &Path) -> io::Result<(Option<File>, PathBuf)> {
    if !fs::symlink_metadata(folder)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "not a folder"));
    }
    Ok((None, folder.canonicalize()?))
}

/// Whether the name leads to the folder, and not through a link.
pub(crate) fn is_held_at(_: Option<&File>, held: &Path, path: &Path) -> bool {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    is_folder && path.canonicalize().is_ok_and(|path| path == held)
}

/// Links need rights that few users have, and a kind of link for each kind of target.
pub(crate) fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "links cannot be copied on this system"))
}

/// Files belong to whoever writes them.
pub(crate) fn take_owner_from(_: &Metadata, _: &Path) {}

/// Folders have no mode that could be in the way.
pub(crate) fn make_writable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// There is no such step.
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// There is no such step.
pub(crate) fn rename_to_free_name(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}
