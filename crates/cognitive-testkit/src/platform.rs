//! What this crate asks of one kind of operating system; elsewhere there is a fallback.

/// The process that started this one.
#[cfg(unix)]
pub(crate) fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Not known.
#[cfg(not(unix))]
pub(crate) fn parent() -> u32 {
    0
}

/// Lets other users into a folder: a server may be run by one.
#[cfg(unix)]
pub(crate) fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755));
}

/// Nothing is needed.
#[cfg(not(unix))]
pub(crate) fn open_to_all(_: &std::path::Path) {}
