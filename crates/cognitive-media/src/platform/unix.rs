//! Linux, macOS and other Unix systems: how files of callers are opened, what a child process may take, private files.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Follows no link at the end of the path, and does not wait for whoever writes to a pipe.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Whether a file is still the one at a path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let same = |there: fs::Metadata| {
        file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    };
    fs::symlink_metadata(path).is_ok_and(same)
}

/// The path of what was opened, from the one who opened it; `None` if it was replaced meanwhile.
#[cfg(target_os = "linux")]
pub(crate) fn path_of(file: &File, _: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::fd::AsRawFd as _;

    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map(Some)
}

/// Where the system does not tell: the name must still stand for the same file and lead nowhere else.
#[cfg(not(target_os = "linux"))]
pub(crate) fn path_of(file: &File, path: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt as _;

    let (opened, named, real) = (file.metadata()?, fs::symlink_metadata(path)?, fs::canonicalize(path)?);
    let same = (opened.dev(), opened.ino()) == (named.dev(), named.ino()) && real == path;
    Ok(same.then_some(real))
}

/// From here on the process cannot take more than so many seconds of a processor and bytes of memory, and writes no file.
pub(crate) fn confine(seconds: u64, memory: u64) -> io::Result<()> {
    let limit = |resource, most| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, seconds)?;
    // Elsewhere the data of a process cannot be limited in a way that counts what is mapped.
    if cfg!(target_os = "linux") {
        limit(Resource::Data, memory)?;
    }
    // No file may be written, no matter what the document talks the parser into.
    limit(Resource::Fsize, 0)?;
    Ok(())
}

/// A new file that only its owner can read.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The folder, closed to everybody else.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}
