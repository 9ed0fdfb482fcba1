//! Whether somebody still reads stdout while a model is at work. A run whose answer nobody would get is called off
//! instead of paid for; `cogn run … --stream | head -1` ends with its first line.

use std::time::Duration;

use cognitive_contract::Failure;

use crate::printer::{Printer, StdoutLoss};

/// How often is looked whether somebody still reads.
const LOOK: Duration = Duration::from_millis(100);

/// Ends when nobody reads stdout any more; otherwise never.
pub(super) async fn gone(printer: &Printer) {
    while printer.lost() != Some(&StdoutLoss::Reader) {
        if hung_up() {
            printer.reader_left();
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why such a run ends.
pub(super) fn unheard() -> Failure {
    Failure::cancelled("the run was cancelled: the reader of stdout has closed it")
        .suggest("Read stdout to its end, or name a file with `--output`")
}

/// Whether the other end of a pipe is closed. The system tells that also while nothing is written.
#[cfg(unix)]
fn hung_up() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdout = std::io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok()
        && watched.iter().any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Elsewhere it is noticed when something is written.
#[cfg(not(unix))]
fn hung_up() -> bool {
    false
}
