//! Whether somebody still reads stdout while a model is at work. A run whose answer nobody would get is called off
//! instead of paid for; `cogn run … --stream | head -1` ends with its first line.

use std::time::Duration;

use cognitive_contract::Failure;

use crate::platform;
use crate::printer::{Printer, StdoutLoss};

/// How often is looked whether somebody still reads.
const LOOK: Duration = Duration::from_millis(100);

/// Ends when nobody reads stdout any more; otherwise never.
pub(super) async fn gone(printer: &Printer) {
    while printer.lost() != Some(&StdoutLoss::Reader) {
        if platform::stdout_hung_up() {
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
