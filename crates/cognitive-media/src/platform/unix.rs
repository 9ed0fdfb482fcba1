//! Linux, macOS and other Unix systems: opens callers' files, limits child processes, creates private files.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Opens a file. Follows no link at the end of the path, and does not wait for the writer of a pipe.
pub(crate) fn open_nofollow(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Returns whether a file is still the one at a path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let same = |there: fs::Metadata| {
        file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    };
    fs::symlink_metadata(path).is_ok_and(same)
}

/// Returns the path of an open file, as the kernel reports it.
#[cfg(target_os = "linux")]
pub(crate) fn path_of(file: &File, _: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::fd::AsRawFd as _;

    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map(Some)
}

/// Returns the path if it still leads to the open file and through no link; `None` otherwise. For systems that do not
/// report the path.
#[cfg(not(target_os = "linux"))]
pub(crate) fn path_of(file: &File, path: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt as _;

    let (opened, named, real) = (file.metadata()?, fs::symlink_metadata(path)?, fs::canonicalize(path)?);
    let same = (opened.dev(), opened.ino()) == (named.dev(), named.ino()) && real == path;
    Ok(same.then_some(real))
}

/// Limits the CPU seconds and the memory of this process, and forbids it to write files.
pub(crate) fn confine(seconds: u64, memory: u64) -> io::Result<()> {
    let limit = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, seconds)?;
    // Other systems have no data limit that counts mapped memory.
    if cfg!(target_os = "linux") {
        limit(Resource::Data, memory)?;
    }
    // The process must not write files, whatever the document makes the parser do.
    limit(Resource::Fsize, 0)?;
    Ok(())
}

/// Creates a new file that only its owner can read.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Creates the folder and closes it to other users.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}
