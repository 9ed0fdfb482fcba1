//! Linux, macOS and other Unix systems: file modes, process groups, signals and free space.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

#[cfg(feature = "local")]
use super::memory;

/// The variable for the user's home folder.
pub(crate) const HOME: &str = "HOME";

/// Returns whether the file is executable.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns the free bytes of a disk for this user; `None` if unknown.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Returns the bytes of memory that a process can still allocate; `None` if unknown. Only Linux reports it.
#[cfg(feature = "local")]
pub(crate) fn available_memory() -> Option<u64> {
    memory::available(Path::new("/"))
}

/// Creates a folder, with its parents, that only its owner can enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates or truncates a file that its owner can write and everyone can read.
pub(crate) fn create_public_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
    // The umask may have removed permissions, and an existing file keeps its own.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    Ok(file)
}

/// Returns device, inode, and the times of the last change of content (mtime) and of any attribute (ctime), in
/// nanoseconds since 1970.
pub(crate) fn file_identity(meta: &Metadata) -> (u64, u64, i128, i128) {
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let modified = nanoseconds(meta.mtime(), meta.mtime_nsec());
    (meta.dev(), meta.ino(), modified, nanoseconds(meta.ctime(), meta.ctime_nsec()))
}

/// Starts a program in its own process group, so that it can be killed with its children.
pub(crate) fn lead_a_group(command: &mut Command) {
    command.process_group(0);
}

/// Kills a process group: its leader and all children.
pub(crate) fn end_group(leader: Option<u32>) {
    let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        let _none_is_left = kill_process_group(leader, Signal::KILL);
    }
}

/// Resolves when the process gets SIGTERM, or SIGHUP from a closed terminal.
pub(crate) async fn shutdown_signal() {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut hang_up)) = signals else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

/// Checks that the process can still open this many files.
pub(crate) fn files_left(count: usize) -> io::Result<()> {
    (0..count / 2).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>().map(drop)
}

/// Returns whether a folder has the same owner and file system as another one and is not world-writable.
pub(crate) fn is_as_safe_as(folder: &Metadata, other: &Metadata) -> bool {
    const WRITABLE_BY_ALL: u32 = 0o002;
    folder.uid() == other.uid() && folder.dev() == other.dev() && folder.mode() & WRITABLE_BY_ALL == 0
}

/// Creates or truncates a file that only its owner can read and write.
#[cfg(feature = "local")]
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Returns whether a file or folder belongs to the user of this process and only that user can write to it.
#[cfg(feature = "local")]
pub(crate) fn is_private_to_user(meta: &Metadata) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let owner = rustix::process::geteuid().as_raw();
    meta.uid() == owner && meta.mode() & WRITABLE_BY_OTHERS == 0
}
