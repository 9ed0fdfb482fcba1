//! Linux, macOS and other Unix systems: modes of files, groups of processes, signals and free space.

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

/// The variable that names the user's folder.
pub(crate) const HOME: &str = "HOME";

/// Whether this user's system would start the file as a program.
pub(crate) fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The bytes that a disk has left for this user; `None` if it does not say.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The bytes of memory that a process can still have; `None` if the system does not say, as only Linux does.
#[cfg(feature = "local")]
pub(crate) fn available_memory() -> Option<u64> {
    memory::available(Path::new("/"))
}

/// Creates a folder, with those above it, that only its owner can enter.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a file, or empties it, that its owner can write and everybody can read.
pub(crate) fn create_public_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path)?;
    // A strange umask could have taken rights away, and an older file has its own.
    file.set_permissions(fs::Permissions::from_mode(0o644))?;
    Ok(file)
}

/// Device, inode, and when content and anything else of a file last changed, in nanoseconds since 1970.
pub(crate) fn file_identity(meta: &Metadata) -> (u64, u64, i128, i128) {
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let modified = nanoseconds(meta.mtime(), meta.mtime_nsec());
    (meta.dev(), meta.ino(), modified, nanoseconds(meta.ctime(), meta.ctime_nsec()))
}

/// Lets a program be ended together with all that it starts.
pub(crate) fn lead_a_group(command: &mut Command) {
    command.process_group(0);
}

/// Ends a program that leads a group, and all that it has started.
pub(crate) fn end_group(leader: Option<u32>) {
    let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        let _none_is_left = kill_process_group(leader, Signal::KILL);
    }
}

/// Resolves when whoever looks after this process, or closes its terminal, wants it to end.
pub(crate) async fn told_to_end() {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::hangup()));
    let (Ok(mut terminate), Ok(mut hang_up)) = signals else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

/// Whether the process may still open so many files.
pub(crate) fn files_left(count: usize) -> io::Result<()> {
    (0..count / 2).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>().map(drop)
}

/// Whether a folder belongs to the same user and file system as another one, and nobody else can put files there.
pub(crate) fn is_as_safe_as(folder: &Metadata, other: &Metadata) -> bool {
    const WRITABLE_BY_ALL: u32 = 0o002;
    folder.uid() == other.uid() && folder.dev() == other.dev() && folder.mode() & WRITABLE_BY_ALL == 0
}

/// Creates a file, or empties it, that only its owner can read and write.
#[cfg(feature = "local")]
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Whether a file or folder belongs to the user of this process, and nobody else can write to it.
#[cfg(feature = "local")]
pub(crate) fn is_ours_alone(meta: &Metadata) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    let owner = rustix::process::geteuid().as_raw();
    meta.uid() == owner && meta.mode() & WRITABLE_BY_OTHERS == 0
}
