//! The fallback for systems that are no Unix, such as Windows: files have no modes, processes no groups, and a full disk is
//! noticed when it is full.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use tokio::process::Command;

/// The variable that names the user's folder.
pub(crate) const HOME: &str = "USERPROFILE";

/// Whether there is a file; what can be started is said by its ending.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Not known.
pub(crate) fn free_space(_: &Path) -> Option<u64> {
    None
}

/// Not known.
#[cfg(feature = "local")]
pub(crate) fn available_memory() -> Option<u64> {
    None
}

/// Creates a folder with those above it. What is below the user's own folder is closed to others by the system.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Creates a file, or empties it.
pub(crate) fn create_public_file(path: &Path) -> io::Result<File> {
    File::create(path)
}

/// Only the time of the last change is known.
pub(crate) fn file_identity(meta: &Metadata) -> (u64, u64, i128, i128) {
    let since = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    (0, 0, modified, modified)
}

/// There are no groups.
pub(crate) fn lead_a_group(_: &mut Command) {}

/// The program itself is ended by `kill_on_drop`; what it has started stays.
pub(crate) fn end_group(_: Option<u32>) {}

/// Nobody tells.
pub(crate) async fn told_to_end() {
    std::future::pending().await
}

/// Not known before it is tried.
pub(crate) fn files_left(_: usize) -> io::Result<()> {
    Ok(())
}

/// Nobody can tell whose a folder is, so that none is as safe as the current one.
pub(crate) fn is_as_safe_as(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Creates a file, or empties it. What is below the user's own folder is closed to others by the system.
#[cfg(feature = "local")]
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).open(path)
}

/// Nobody can tell whose a file is, so that none counts.
#[cfg(feature = "local")]
pub(crate) fn is_ours_alone(_: &Metadata) -> bool {
    false
}
