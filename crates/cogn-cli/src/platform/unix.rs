//! Linux, macOS and other Unix systems: signals, process limits, file modes, and the state of stdout.

use std::fs::{File, Metadata, OpenOptions};
use std::future::pending;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cognitive_setup::async_runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{ServerSignal, StopSignal};

/// Raises the limit of open files as far as possible and returns it; `None` means no limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let mut raised = before;
    raised.current = before.maximum;
    if before.current != before.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        return before.current;
    }
    before.maximum
}

/// Turns the signal for a file beyond the system limit (`ulimit -f`) into a write error.
pub(crate) fn survive_large_files() {
    /// SIGXFSZ, on all systems that this program is built for.
    const FILE_TOO_LARGE: i32 = 25;
    if let Ok(runtime) = async_runtime::on_this_thread() {
        let _inside = runtime.enter();
        // A signal that was handled once is never fatal again.
        let _ = signal(SignalKind::from_raw(FILE_TOO_LARGE));
    }
}

/// Returns the path of this program; on Linux it stays valid after the file was moved or replaced.
pub(crate) fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// Returns whether the reader of the pipe behind stdout is gone. This also works while nothing is written.
pub(crate) fn stdout_hung_up() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok()
        && watched.iter().any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Returns whether other users of the machine can read a file.
pub(crate) fn others_can_read(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o077 != 0)
}

/// Creates a file that only its owner can read; fails if it exists.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Returns the device and the number of a file, which all its hard links share.
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it is not known")]
pub(crate) fn file_id(file: &Metadata) -> Option<(u64, u64)> {
    Some((file.dev(), file.ino()))
}

/// Returns whether file systems usually take `A` and `a` for one name.
pub(crate) fn folds_case() -> bool {
    cfg!(target_vendor = "apple")
}

/// Resolves when a signal comes that asks the process to end; never where none can be heard.
pub(crate) async fn stop_signal() -> StopSignal {
    // `nohup` ignores this signal, and installing a handler would undo that.
    let hangs_up = !is_ignored(SignalKind::hangup().as_raw_value());
    let listen = |kind| signal(kind).ok();
    let mut terminate = listen(SignalKind::terminate());
    let mut hangup = if hangs_up { listen(SignalKind::hangup()) } else { None };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => StopSignal::Interrupt,
        () = next_signal(&mut terminate) => StopSignal::Terminate,
        () = next_signal(&mut hangup) => StopSignal::Hangup,
        else => pending().await,
    }
}

async fn next_signal(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        pending::<()>().await;
    }
}

/// Returns whether the parent process made this one ignore a signal; false if the system does not report it.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(number - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// The signals of a server. The handlers are installed when it is created.
pub(crate) struct ServerSignals {
    terminate: Signal,
    /// Absent if the parent process ignores it, as `nohup` does: a handler would undo that.
    hangup: Option<Signal>,
    /// Set if SIGHUP means that the terminal was closed. For a service without a terminal it means to reload.
    has_terminal: bool,
}

impl ServerSignals {
    pub(crate) fn install() -> io::Result<Self> {
        let kind = SignalKind::hangup();
        let hangup = if is_ignored(kind.as_raw_value()) { None } else { Some(signal(kind)?) };
        let has_terminal = File::open("/dev/tty").is_ok();
        Ok(Self { terminate: signal(SignalKind::terminate())?, hangup, has_terminal })
    }

    /// Resolves with the next signal: Ctrl-C and SIGTERM stop a server, SIGHUP stops or reloads it.
    pub(crate) async fn next(&mut self) -> ServerSignal {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => ServerSignal::Stop,
            _ = self.terminate.recv() => ServerSignal::Stop,
            () = next_signal(&mut self.hangup) => {
                if self.has_terminal { ServerSignal::Stop } else { ServerSignal::Reload }
            }
        }
    }
}

/// Opens a page in the browser: the named program, or the default one of the system.
pub(crate) fn open_page(named: Option<&str>, address: &str) -> io::Result<()> {
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // The variable may list several programs; the first one is used.
    let program = named.and_then(|named| named.split(':').next()).unwrap_or(usual);
    let mut browser = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // A thread waits for the browser, so that it does not become a zombie process.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || browser.wait()).map(drop)
}
