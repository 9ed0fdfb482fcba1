//! `cogn man`: the manual pages, generated from the command definitions. One page on stdout, or all of them as files.

use std::path::PathBuf;

use clap_mangen::Man;

use crate::args::Cli;
use crate::printer::{Exit, GOOD, Printer};

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The command, such as `run` or `audit list`; by default the program itself
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, short, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    output: Option<PathBuf>,
}

/// Prints one page, or writes all of them.
pub fn man(args: &ManArgs, printer: &Printer) -> Exit {
    let mut program = Cli::full_command().disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        program.build();
        return page(&program, &args.command, printer);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(program, folder));
    match written {
        Ok(()) => {
            printer.notice(format!(
                "{GOOD}written{GOOD:#}: {0}/cogn.1 and a page for each command; `man -l {0}/cogn.1` shows it",
                folder.display()
            ));
            Exit::Good
        }
        Err(error) => {
            printer.error(&format!("cannot write to `{}`: {error}", folder.display()), None);
            Exit::Bad
        }
    }
}

fn page(program: &clap::Command, words: &[String], printer: &Printer) -> Exit {
    let mut command = program;
    for word in words {
        let Some(found) = command.get_subcommands().find(|known| known.get_name() == word) else {
            let message = format!("unknown command: `{}`", words.join(" "));
            printer.error(&message, Some("`cogn --help` lists the commands"));
            return Exit::Usage;
        };
        command = found;
    }
    let mut text = Vec::new();
    match Man::new(command.clone()).render(&mut text) {
        Ok(()) => {
            printer.print_line(String::from_utf8_lossy(&text).trim_end());
            Exit::Good
        }
        Err(error) => {
            printer.error(&format!("cannot render the page: {error}"), None);
            Exit::Bad
        }
    }
}
