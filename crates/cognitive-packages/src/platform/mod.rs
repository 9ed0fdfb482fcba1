//! Platform differences: locking a folder for one process at a time.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(crate) use other::hold;
#[cfg(unix)]
pub(crate) use unix::hold;
