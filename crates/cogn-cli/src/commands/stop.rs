//! The signals that end a run before its time: each leaves an envelope and a record, as Ctrl-C does. Ends nothing itself.

use cognitive_contract::Failure;

use crate::printer::Exit;

/// What asked a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// Whoever looks after processes wants it gone.
    Terminate,
    /// The terminal was closed.
    Hangup,
}

impl StopSignal {
    /// Resolves when a signal comes that asks the process to end; never where none can be heard.
    #[cfg(unix)]
    pub(super) async fn arrives() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        // `nohup` has it ignored, and what is listened to is not ignored any more.
        let hangs_up = !is_ignored(SignalKind::hangup().as_raw_value());
        let listen = |kind| signal(kind).ok();
        let mut terminate = listen(SignalKind::terminate());
        let mut hangup = if hangs_up { listen(SignalKind::hangup()) } else { None };
        tokio::select! {
            Ok(()) = tokio::signal::ctrl_c() => Self::Interrupt,
            () = heard(&mut terminate) => Self::Terminate,
            () = heard(&mut hangup) => Self::Hangup,
            else => std::future::pending().await,
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn arrives() -> Self {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Self::Interrupt
    }

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

#[cfg(unix)]
async fn heard(signal: &mut Option<tokio::signal::unix::Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Whether whoever started the process had it ignore a signal. Where the system does not tell, nobody did.
#[cfg(unix)]
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(number - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}
