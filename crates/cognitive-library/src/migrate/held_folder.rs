//! The folder of a module, opened once. All reads go to that folder, even if another process puts another folder or a
//! link at its path in the meantime.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::platform;

/// A folder that is held open, where the system supports it.
pub(super) struct HeldFolder {
    handle: Option<File>,
    path: PathBuf,
}

impl HeldFolder {
    /// Opens a folder. Refuses a link.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let (handle, path) = platform::hold_folder(folder)?;
        Ok(Self { handle, path })
    }

    /// A path that leads into the open folder itself, where the system has such paths; otherwise its name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the path leads to this folder now.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        platform::is_held_at(self.handle.as_ref(), &self.path, path)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_opened_stays_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("m")).unwrap();
        fs::write(path("m/file"), "ours").unwrap();
        fs::create_dir(path("victim")).unwrap();
        fs::write(path("victim/file"), "private").unwrap();
        let held = HeldFolder::open(&path("m")).unwrap();
        assert!(held.is_at(&path("m")) && !held.is_at(&path("victim")));
        fs::rename(path("m"), path("moved")).unwrap();
        std::os::unix::fs::symlink("victim", path("m")).unwrap();
        assert!(!held.is_at(&path("m")) && held.is_at(&path("moved")));
        assert!(HeldFolder::open(&path("m")).is_err(), "a link is not a folder");
        #[cfg(target_os = "linux")]
        assert_eq!(fs::read_to_string(held.path().join("file")).unwrap(), "ours");
    }
}
