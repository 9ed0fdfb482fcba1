//! How many connections the system's limit of open files leaves room for. A server that has used up its files can neither
//! take a connection nor turn one away: those who come wait until somebody else has gone.

/// Files that a server has open besides connections: the store, the log, media, and those of the system.
const OWN: u64 = 64;
/// A connection and the call of a model behind it.
const PER_CONNECTION: u64 = 2;

/// How many connections fit, of those that are wanted; the limit is raised as far as this process may.
pub(crate) fn connections(wanted: usize) -> usize {
    allowed().map_or(wanted, |files| fitting(files, wanted))
}

fn fitting(files: u64, wanted: usize) -> usize {
    let room = files.saturating_sub(OWN) / PER_CONNECTION;
    usize::try_from(room).unwrap_or(usize::MAX).clamp(1, wanted)
}

/// The files that this process may have open; `None` is no limit.
#[cfg(unix)]
fn allowed() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let mut raised = before;
    raised.current = before.maximum;
    if before.current != before.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        return before.current;
    }
    before.maximum
}

#[cfg(not(unix))]
fn allowed() -> Option<u64> {
    None
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
