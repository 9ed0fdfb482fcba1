//! The system limits of this process: the number of connections that the limit of open files allows, and the maximum
//! file size. A server without free file descriptors can neither accept nor refuse a connection.

use crate::platform;

/// The files that a server opens besides connections: the store, the log, media, and system files.
const OWN: u64 = 64;
/// A connection and the model call that it causes.
const PER_CONNECTION: u64 = 2;

/// Returns the number of connections that fit, up to `wanted`; raises the file limit as far as possible.
pub(crate) fn connections(wanted: usize) -> usize {
    platform::raise_file_limit().map_or(wanted, |files| fitting_connections(files, wanted))
}

fn fitting_connections(files: u64, wanted: usize) -> usize {
    let room = files.saturating_sub(OWN) / PER_CONNECTION;
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted)
}

/// Turns the signal for a file beyond the system limit (`ulimit -f`) into a write error. Otherwise the first audit
/// record would kill the process and lose the answer.
pub fn take_limits_as_errors() {
    platform::survive_large_files();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_fit_into_the_files_that_may_be_open() {
        assert_eq!(fitting_connections(256, 10_000), 96);
        assert_eq!(fitting_connections(20_064, 10_000), 10_000);
        assert_eq!(fitting_connections(1 << 20, 10_000), 10_000);
        assert_eq!(fitting_connections(10, 10_000), 1);
    }
}
