//! The fallback for systems other than Unix, such as Windows: no file modes, no process groups, and no check for free
//! disk space.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use tokio::process::Command;

/// The variable for the user's home folder.
pub(crate) const HOME: &str = "USERPROFILE";

/// Returns whether the file exists; on these systems the extension makes a file executable.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Unknown on these systems.
pub(crate) fn free_space(_: &Path) -> Option<u64> {
    None
}

/// Unknown on these systems.
#[cfg(feature = "local")]
pub(crate) fn available_memory() -> Option<u64> {
    None
}

/// Creates a folder with its parents. The system protects folders below the user's home.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Creates or truncates a file.
pub(crate) fn create_public_file(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Only the modification time is available.
pub(crate) fn file_identity(meta: &Metadata) -> (u64, u64, i128, i128) {
    let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    (0, 0, modified, modified)
}

/// These systems have no process groups.
pub(crate) fn lead_a_group(_: &mut Command) {}

/// `kill_on_drop` kills the program itself; its child processes keep running.
pub(crate) fn end_group(_: Option<u32>) {}

/// Never resolves: these systems have no such signal.
pub(crate) async fn shutdown_signal() {
    std::future::pending().await
}

/// Unknown before a file is opened.
pub(crate) fn files_left(_: usize) -> io::Result<()> {
    Ok(())
}

/// The owner of a folder is unknown, so no folder counts as safe.
pub(crate) fn is_as_safe_as(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Creates or truncates a file. The system protects files below the user's home.
#[cfg(feature = "local")]
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).open(path)
}

/// The owner of a file is unknown, so no file counts.
#[cfg(feature = "local")]
pub(crate) fn is_private_to_user(_: &Metadata) -> bool {
    false
}
