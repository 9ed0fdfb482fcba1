//! `cog`, an alias of `cogn`: starts the `cogn` beside it with the same arguments, and ends as it ends.

use std::env::{self, consts::EXE_SUFFIX};
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let started =
        env::current_exe().and_then(|own| run(Command::new(own.with_file_name(format!("cogn{EXE_SUFFIX}")))));
    started.unwrap_or_else(|error| {
        let _nothing_more_to_do =
            writeln!(io::stderr(), "error: `cog` cannot start the `cogn` beside it: {error}");
        ExitCode::FAILURE
    })
}

/// Becomes the program: signals, terminal and exit code are its own.
#[cfg(unix)]
fn run(mut program: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    let mut arguments = env::args_os();
    if let Some(name) = arguments.next() {
        program.arg0(name);
    }
    Err(program.args(arguments).exec())
}

#[cfg(not(unix))]
fn run(mut program: Command) -> io::Result<ExitCode> {
    let status = program.args(env::args_os().skip(1)).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
