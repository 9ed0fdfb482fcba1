//! `cog`, an alias of `cogn` with identical behaviour.

use std::process::ExitCode;

fn main() -> ExitCode {
    cogn::main()
}
