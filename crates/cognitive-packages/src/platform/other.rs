//! The fallback for systems that cannot lock a folder, such as Windows: a hidden file in it is locked.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Waits until nobody else holds the folder. The system lets go of it when the process ends, however it ends.
pub(crate) fn hold(folder: &Path) -> io::Result<File> {
    let path = folder.join(".cogn-guard");
    let handle = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    handle.lock()?;
    Ok(handle)
}
