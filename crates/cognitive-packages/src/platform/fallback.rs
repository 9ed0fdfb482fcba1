//! The fallback for systems that cannot lock a folder, such as Windows: locks a hidden file inside it.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Waits until no other process holds the folder. The system releases the lock when the process ends, even by a crash.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let path = folder.join(".cogn-guard");
    let handle = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    handle.lock()?;
    Ok(handle)
}
