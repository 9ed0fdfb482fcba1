//! Linux, macOS and other Unix systems: a folder can be locked itself, so nothing is left in it.

use std::fs::File;
use std::io;
use std::path::Path;

/// Waits until nobody else holds the folder. The system lets go of it when the process ends, however it ends.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let handle = File::open(folder)?;
    handle.lock()?;
    Ok(handle)
}
