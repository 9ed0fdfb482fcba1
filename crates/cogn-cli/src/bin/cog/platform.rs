//! Replaces this process with another program: by exec on Unix, elsewhere by a child process, whose exit code it
//! returns.

use std::env;
use std::io;
use std::process::{Command, ExitCode};

/// Replaces this process, so that the program gets its signals, terminal and exit code.
#[cfg(unix)]
pub(crate) fn run(mut program: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    let mut arguments = env::args_os();
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    Err(program.args(arguments).exec())
}

/// Starts the program and returns its exit code.
#[cfg(not(unix))]
pub(crate) fn run(mut program: Command) -> io::Result<ExitCode> {
    let status = program.args(env::args_os().skip(1)).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
