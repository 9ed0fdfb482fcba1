//! `cogn completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::printer::{Exit, Printer};

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell to write for
    shell: Shell,
}

/// Prints the script; the user puts it where the shell looks.
pub fn completions(args: &CompletionsArgs, printer: &Printer) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cogn", &mut script);
    printer.out(String::from_utf8_lossy(&script).trim_end());
    Exit::Good
}
