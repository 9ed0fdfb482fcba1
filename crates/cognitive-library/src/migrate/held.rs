//! The folder of a module, opened once. What is read through it is in that very folder, also where somebody puts another
//! folder or a link under its name in the meantime.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// A folder that is held open.
pub(super) struct Held {
    handle: File,
    path: PathBuf,
}

impl Held {
    /// Opens a folder. A link is none.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = File::from(open(folder, flags, Mode::empty())?);
        let through = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let same = fs::metadata(&through).is_ok_and(|meta| is_same(&handle, &meta));
        Ok(Self { handle, path: if same { through } else { folder.to_owned() } })
    }

    /// A path that leads into the folder itself, where the system has such paths; else its name.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder has this name now.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|meta| is_same(&self.handle, &meta))
    }
}

fn is_same(handle: &File, other: &Metadata) -> bool {
    handle.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (other.dev(), other.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s06_what_was_opened_stays_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("m")).unwrap();
        fs::write(path("m/file"), "ours").unwrap();
        fs::create_dir(path("victim")).unwrap();
        fs::write(path("victim/file"), "private").unwrap();
        let held = Held::open(&path("m")).unwrap();
        assert!(held.is_at(&path("m")) && !held.is_at(&path("victim")));
        fs::rename(path("m"), path("moved")).unwrap();
        std::os::unix::fs::symlink("victim", path("m")).unwrap();
        assert!(!held.is_at(&path("m")) && held.is_at(&path("moved")));
        assert!(Held::open(&path("m")).is_err(), "a link is no folder");
        #[cfg(target_os = "linux")]
        assert_eq!(fs::read_to_string(held.path().join("file")).unwrap(), "ours");
    }
}
