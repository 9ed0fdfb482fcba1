//! The `cogn` binary. Everything is in the library, so that `cog` is the same program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cogn::main()
}
