//! Linux, macOS and other Unix systems: locks the folder itself, so no lock file remains in it.

use std::fs::File;
use std::io;
use std::path::Path;

/// Waits until no other process holds the folder. The system releases the lock when the process ends, even by a crash.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let handle = File::open(folder)?;
    handle.lock()?;
    Ok(handle)
}
