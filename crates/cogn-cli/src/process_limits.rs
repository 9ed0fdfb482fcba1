//! The limits that the system sets to this process: how many connections the limit of open files leaves room for, and files
//! that grow too large. A server that has used up its files can neither take a connection nor turn one away.

use crate::platform;

/// Files that a server has open besides connections: the store, the log, media, and those of the system.
const OWN: u64 = 64;
/// A connection and the call of a model behind it.
const PER_CONNECTION: u64 = 2;

/// How many connections fit, of those that are wanted; the limit is raised as far as this process may.
pub(crate) fn connections(wanted: usize) -> usize {
    platform::raise_file_limit().map_or(wanted, |files| fitting(files, wanted))
}

fn fitting(files: u64, wanted: usize) -> usize {
    let room = files.saturating_sub(OWN) / PER_CONNECTION;
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted)
}

/// Lets a file that grows beyond the limit of the system (`ulimit -f`) be an error of whoever writes it. Without, the first
/// record of the audit would end the process, and the answer with it.
pub fn take_limits_as_errors() {
    platform::survive_large_files();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l_connections_fit_into_the_files_that_may_be_open() {
        assert_eq!(fitting(256, 10_000), 96);
        assert_eq!(fitting(20_064, 10_000), 10_000);
        assert_eq!(fitting(1 << 20, 10_000), 10_000);
        assert_eq!(fitting(10, 10_000), 1);
    }
}
