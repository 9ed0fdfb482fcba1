//! Code of this crate that depends on the operating system; other systems get a fallback.

/// The process that started this one.
#[cfg(unix)]
pub(crate) fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Not known.
#[cfg(not(unix))]
pub(crate) fn parent() -> u32 {
    0
}

/// Lets processes that this one starts have the default disposition of SIGHUP, SIGINT, SIGQUIT and SIGTERM, also if this one
/// ignores them. The standard library does the same for SIGPIPE, and clears the signal mask.
///
/// A handled signal gets its default disposition in a new program, an ignored one does not. So each ignored signal gets a handler
/// that does nothing, and this process goes on as before. Signals that are not ignored are left alone: Ctrl-C still ends the tests.
#[cfg(unix)]
pub(crate) fn default_signals() {
    use std::sync::Once;

    use tokio::runtime::Builder;
    use tokio::signal::unix::{SignalKind, signal};

    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let inherited =
            [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::quit(), SignalKind::terminate()];
        let ignored = ignored_signals();
        let ignored = inherited.into_iter().filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 1);
        for kind in ignored {
            // The handler outlives the runtime that it is installed with.
            if let Ok(runtime) = Builder::new_current_thread().enable_io().build() {
                let _inside = runtime.enter();
                let _ = signal(kind);
            }
        }
    });
}

/// Processes have no signals.
#[cfg(not(unix))]
pub(crate) fn default_signals() {}

/// The signals that this process ignores, one bit each. 0 where the system does not say: changing a disposition that is the default
/// would keep Ctrl-C from ending the tests.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Lets other users into a folder: a server may be run by one.
#[cfg(unix)]
pub(crate) fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755));
}

/// Nothing is needed.
#[cfg(not(unix))]
pub(crate) fn open_to_all(_: &std::path::Path) {}
