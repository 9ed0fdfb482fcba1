//! `cog`, an alias of `cogn`: starts the `cogn` in the same folder with the same arguments, and returns its exit code.

use std::env::{self, consts::EXE_SUFFIX};
use std::io::{self, Write as _};
use std::process::{Command, ExitCode};

mod platform;

fn main() -> ExitCode {
    let started = env::current_exe()
        .and_then(|own| platform::run(Command::new(own.with_file_name(format!("cogn{EXE_SUFFIX}")))));
    started.unwrap_or_else(|error| {
        let _nothing_more_to_do =
            writeln!(io::stderr(), "error: `cog` cannot start the `cogn` beside it: {error}");
        ExitCode::FAILURE
    })
}
