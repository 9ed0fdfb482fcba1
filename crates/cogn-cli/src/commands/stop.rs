//! The signals that end a run before its time: each leaves an envelope and a record, as Ctrl-C does. Ends nothing itself.

use cognitive_contract::Failure;

pub(super) use crate::platform::StopSignal;
use crate::printer::Exit;

impl StopSignal {
    /// Why the run ends.
    pub(super) fn failure(self) -> Failure {
        let message = match self {
            Self::Interrupt => "the run was cancelled by the user",
            Self::Terminate => "the run was cancelled: the process was told to end",
            Self::Hangup => "the run was cancelled: its terminal was closed",
        };
        Failure::cancelled(message).suggest("Run it again")
    }

    /// How the command ends, as shells know it.
    pub(super) fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Cancelled,
            Self::Terminate => Exit::Signalled(15),
            Self::Hangup => Exit::Signalled(1),
        }
    }
}
