//! The limits that the system sets to this process: how many connections the limit of open files leaves room for, and files
//! that grow too large. A server that has used up its files can neither take a connection nor turn one away.

#[cfg(unix)]
use cogn::async_runtime;

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

/// Lets a file that grows beyond the limit of the system (`ulimit -f`) be an error of whoever writes it. Without, the first
/// record of the audit would end the process, and the answer with it.
pub fn take_limits_as_errors() {
    #[cfg(unix)]
    if let Ok(runtime) = async_runtime::on_this_thread() {
        use tokio::signal::unix::{SignalKind, signal};

        /// SIGXFSZ, on all systems that this program is built for.
        const FILE_TOO_LARGE: i32 = 25;
        let _inside = runtime.enter();
        // Once listened to, it is never fatal again.
        let _ = signal(SignalKind::from_raw(FILE_TOO_LARGE));
    }
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
