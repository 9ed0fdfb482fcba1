//! Linux, macOS and other Unix systems: modes, kinds and identities of files.

use std::fs::{self, DirBuilder, FileType, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

/// Returns whether it is a named pipe.
pub(crate) fn is_fifo(kind: FileType) -> bool {
    kind.is_fifo()
}

/// Creates a file that only its owner can read. Fails if the path exists, so it follows no link and opens no FIFO.
pub(crate) fn create_private_file(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    // An unusual umask could have removed the owner's rights.
    file.set_permissions(Permissions::from_mode(0o600))
}

/// Creates a folder that only its owner can enter, and its parents. Existing folders keep their mode, because they
/// may hold other files.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns whether other users have any right to a file.
pub(crate) fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(fs::symlink_metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// Removes all rights of other users to a file.
pub(crate) fn close_to_others(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

/// Returns device and inode of the file at a path; `None` if unknown.
pub(crate) fn file_identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}
