//! `cogn completions SHELL`: prints a script that asks this program for completions, for `cogn` and `cog`. The
//! completions therefore match this version and folder: commands, options, modules, providers and codes.

use clap_complete::Shell;
use clap_complete::env::{CompleteEnv, Shells};
use cognitive_setup::env_vars;

use crate::args::Cli;
use crate::printer::{Exit, Printer};

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script; the user installs it in the shell.
pub fn completions(args: &CompletionsArgs, printer: &Printer) -> Exit {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&args.shell.to_string()) else {
        printer.error(&format!("no completions for shell: `{}`", args.shell), None);
        return Exit::Bad;
    };
    let mut script = Vec::new();
    for name in ["cogn", "cog"] {
        if let Err(error) = shell.write_registration(env_vars::COMPLETE, name, name, name, &mut script) {
            printer.error(&format!("cannot write the script: {error}"), None);
            return Exit::Bad;
        }
    }
    printer.print_line(String::from_utf8_lossy(&script).trim_end());
    Exit::Good
}

/// Answers a shell that requests completions; returns `false` if there is no such request.
pub(crate) fn serve_completions() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(Cli::full_command)
        .var(env_vars::COMPLETE)
        .try_complete(std::env::args_os(), here.as_deref())
}
