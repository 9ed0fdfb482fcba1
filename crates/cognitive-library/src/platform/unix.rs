//! The file system of Linux, macOS and other Unix systems: opens files without waiting, holds folders open, and
//! exchanges two names in one step where the kernel supports it.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// Opens a file for reading. Does not wait for a pipe, and does not follow a link.
pub(crate) fn open_nofollow(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Holds a folder open and returns a path through its handle, where the system has such paths. Refuses a link.
pub(crate) fn hold_folder(folder: &Path) -> io::Result<(Option<File>, PathBuf)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = File::from(open(folder, flags, Mode::empty())?);
    let through = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
    let same = fs::metadata(&through).is_ok_and(|meta| is_same(&handle, &meta));
    Ok((Some(handle), if same { through } else { folder.to_owned() }))
}

/// Returns whether the path leads to the held folder now.
pub(crate) fn is_held_at(held: Option<&File>, _: &Path, path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    held.is_some_and(|held| found.is_ok_and(|meta| is_same(held, &meta)))
}

fn is_same(handle: &File, other: &Metadata) -> bool {
    handle.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (other.dev(), other.ino()))
}

/// Creates a symbolic link.
pub(crate) fn link(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

/// Copies the owner of a file. Only root can do that; for other users the owner is already right.
pub(crate) fn take_owner_from(like: &Metadata, path: &Path) {
    let _ = lchown(path, Some(like.uid()), Some(like.gid()));
}

/// Makes a folder writable for its owner.
pub(crate) fn make_writable(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Exchanges two folders in one step. Returns `false`, with nothing changed, if the system or file system cannot.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    try_rename(one, other, rustix::fs::RenameFlags::EXCHANGE)
}

/// Renames a folder in one step that fails if the new name is taken. Returns `false` if the system or file system
/// cannot.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
pub(crate) fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<bool> {
    try_rename(from, to, rustix::fs::RenameFlags::NOREPLACE)
}

/// Returns `false` where network file systems or old kernels do not support the flags.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn try_rename(from: &Path, to: &Path, flags: rustix::fs::RenameFlags) -> io::Result<bool> {
    use rustix::fs::{CWD, renameat_with};
    use rustix::io::Errno;

    match renameat_with(CWD, from, CWD, to, flags) {
        Ok(()) => Ok(true),
        Err(error) if [Errno::NOSYS, Errno::INVAL, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&error) => {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Unsupported on this system.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Unsupported on this system.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn rename_to_free_name(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}
