//! `cogn`, the command line of the Cognitive Modules runtime.
//!
//! `main` reads like a table of contents: parse what was typed, find out where modules are, run one command, turn its
//! verdict into an exit code. Each command is one file below `commands/`.
//!
//! This crate is the only reader of environment variables and the only writer to the terminal. It holds no rule about
//! modules or envelopes; those are in `cognitive-contract`, `cognitive-library` and `cognitive-runtime`.

mod args;
pub mod commands;
pub mod conformance;
mod draw;
pub mod env_vars;
pub mod printer;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use printer::Printer;

/// Parses the command line, runs the command and says how it ended: 0 good, 1 bad, 2 not understood.
#[must_use]
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => {
            let _gone_reader_is_fine = message.print();
            return if message.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let printer = Printer;
    let exit = match &cli.command {
        Command::Run(args) => commands::run::run(args, &wiring::library(), &printer),
        Command::List(args) => commands::list::list(args, &wiring::library(), &printer),
        Command::Info(args) => commands::info::info(args, &wiring::library(), &printer),
        Command::Validate(args) => commands::validate::validate(args, &wiring::library(), &printer),
        Command::Check(args) => commands::check::check(args, &wiring::library(), &printer),
        Command::Init(args) => commands::init::init(args, &printer),
        Command::Migrate(args) => commands::migrate::migrate(args, &wiring::library(), &printer),
        Command::Explain(args) => commands::explain::explain(args, &printer),
        Command::Schema(args) => commands::schema::schema(args, &printer),
        Command::Conformance(args) => commands::conformance::conformance(args, &printer),
        Command::Completions(args) => commands::completions::completions(args, &printer),
    };
    exit.into()
}
