//! Watches whether stdout is still read during a model call. A run without a reader is cancelled instead of paid for;
//! `cogn run … --stream | head -1` ends with its first line.

use std::time::Duration;

use cognitive_contract::Failure;

use crate::platform;
use crate::printer::{Printer, StdoutLoss};

/// The interval between two checks. A run without a reader continues, and costs, at most this long.
const LOOK: Duration = Duration::from_millis(100);

/// Resolves when stdout has no reader any more.
pub(super) async fn reader_gone(printer: &Printer) {
    while printer.stdout_loss() != Some(&StdoutLoss::Reader) {
        if platform::stdout_hung_up() {
            printer.note_reader_left();
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the reason for the cancellation.
pub(super) fn reader_gone_failure() -> Failure {
    Failure::cancellation("the run was cancelled: the reader closed stdout")
        .suggest("Read stdout to its end, or name a file with `--output`")
}
