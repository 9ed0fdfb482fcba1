//! Linux, macOS and other Unix systems: signals, limits of the process, modes of files, and who still reads a pipe.

use std::fs::{File, Metadata, OpenOptions};
use std::future::{Future, pending};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cogn::async_runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::StopSignal;

/// The files that this process may have open, after the limit was raised as far as it may; `None` is no limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let mut raised = before;
    raised.current = before.maximum;
    if before.current != before.maximum && setrlimit(Resource::Nofile, raised).is_err() {
        return before.current;
    }
    before.maximum
}

/// Lets a file that grows beyond the limit of the system (`ulimit -f`) be an error of whoever writes it.
pub(crate) fn survive_large_files() {
    /// SIGXFSZ, on all systems that this program is built for.
    const FILE_TOO_LARGE: i32 = 25;
    if let Ok(runtime) = async_runtime::on_this_thread() {
        let _inside = runtime.enter();
        // Once listened to, it is never fatal again.
        let _ = signal(SignalKind::from_raw(FILE_TOO_LARGE));
    }
}

/// This very program; on Linux also after its file was moved or replaced by a newer one.
pub(crate) fn this_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// Whether the other end of the pipe behind stdout is closed. The system tells that also while nothing is written.
pub(crate) fn stdout_hung_up() -> bool {
    let stdout = io::stdout();
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once)).is_ok()
        && watched.iter().any(|end| end.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}

/// Whether other users of the machine can read a file.
pub(crate) fn others_can_read(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o077 != 0)
}

/// Creates a file that only its owner can read; one that is there already is an error.
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
    // `nohup` has it ignored, and what is listened to is not ignored any more.
    let hangs_up = !is_ignored(SignalKind::hangup().as_raw_value());
    let listen = |kind| signal(kind).ok();
    let mut terminate = listen(SignalKind::terminate());
    let mut hangup = if hangs_up { listen(SignalKind::hangup()) } else { None };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => StopSignal::Interrupt,
        () = heard(&mut terminate) => StopSignal::Terminate,
        () = heard(&mut hangup) => StopSignal::Hangup,
        else => pending().await,
    }
}

async fn heard(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        pending::<()>().await;
    }
}

/// Whether whoever started the process had it ignore a signal. Where the system does not tell, nobody did.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(number - 1).is_ok_and(|bit| mask.checked_shr(bit).unwrap_or(0) & 1 == 1)
}

/// Listens from now on, and resolves when a server is to stop: on Ctrl-C and on SIGTERM.
pub(crate) fn server_stop() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Opens a page in the browser: the program that somebody named, or the one of the system.
pub(crate) fn open_page(named: Option<&str>, address: &str) -> io::Result<()> {
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // Several may be named; the first is meant.
    let program = named.and_then(|named| named.split(':').next()).unwrap_or(usual);
    let mut browser = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Somebody has to hear of its end, which may be long after.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || browser.wait()).map(drop)
}
