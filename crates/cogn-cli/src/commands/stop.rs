//! The signals that cancel a run: each leaves an envelope and a record, as Ctrl-C does. Ends nothing itself.

use cognitive_contract::Failure;

pub(super) use crate::platform::StopSignal;
use crate::printer::Exit;

impl StopSignal {
    /// Returns the reason for the cancellation.
    pub(super) fn failure(self) -> Failure {
        let message = match self {
            Self::Interrupt => "the run was cancelled by the user",
            Self::Terminate => "the run was cancelled: the process received a termination signal",
            Self::Hangup => "the run was cancelled: its terminal was closed",
        };
        Failure::cancellation(message).suggest("Run it again")
    }

    /// Returns the exit code, as shells report it.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Cancelled,
            Self::Terminate => Exit::Signalled(15),
            Self::Hangup => Exit::Signalled(1),
        }
    }
}
