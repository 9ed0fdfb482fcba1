//! The fallback for systems other than Unix, such as Windows: Ctrl-C is the only signal, there are no limits to raise,
//! and a closed stdout is noticed at the next write.

use std::fs::{File, Metadata, OpenOptions};
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ServerSignal, StopSignal};

/// These systems have no such limit.
pub(crate) fn raise_file_limit() -> Option<u64> {
    None
}

/// These systems send no signal for large files.
pub(crate) fn survive_large_files() {}

/// Returns the path of this program.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
}

/// Noticed only at the next write.
pub(crate) fn stdout_hung_up() -> bool {
    false
}

/// Unknown: files have no modes.
pub(crate) fn others_can_read(_: &Path) -> bool {
    false
}

/// Creates a file; fails if it exists.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Returns `None`: hard links can be distinguished only by their names.
pub(crate) fn file_id(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Returns whether file systems usually take `A` and `a` for one name.
pub(crate) fn folds_case() -> bool {
    cfg!(windows)
}

/// Resolves on Ctrl-C.
pub(crate) async fn stop_signal() -> StopSignal {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
    StopSignal::Interrupt
}

/// The signals of a server: Ctrl-C alone.
pub(crate) struct CtrlC(());

pub(crate) use CtrlC as ServerSignals;

impl CtrlC {
    #[expect(clippy::unnecessary_wraps, reason = "on Unix a handler can be refused")]
    pub(crate) fn install() -> io::Result<Self> {
        Ok(Self(()))
    }

    #[expect(clippy::unused_self, reason = "on Unix it has handlers")]
    pub(crate) async fn next(&mut self) -> ServerSignal {
        let _ = tokio::signal::ctrl_c().await;
        ServerSignal::Stop
    }
}

/// Opens a page in the browser: the named program, or the default one of the system.
pub(crate) fn open_page(named: Option<&str>, address: &str) -> io::Result<()> {
    let mut command = match named {
        Some(program) => Command::new(program),
        None => {
            let mut shell = Command::new("cmd");
            shell.args(["/C", "start", ""]);
            shell
        }
    };
    command.arg(address).spawn().map(drop)
}
