//! Platform differences: locking a folder for one process at a time.

#[cfg(not(unix))]
mod fallback;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use fallback::hold;
#[cfg(unix)]
pub(crate) use unix::hold;
