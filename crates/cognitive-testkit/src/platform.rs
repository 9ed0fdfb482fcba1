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
