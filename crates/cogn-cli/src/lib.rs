//! `cogn`, the command line of the Cognitive Modules runtime.
//!
//! `main` reads like a table of contents: parse the arguments, find the modules, run one command, turn its verdict into
//! an exit code.
//!
//! This crate is the only writer to the terminal. It wires no provider and no store: the library `cogn` does that for
//! every surface. It contains no rules about modules or envelopes.
//!
//! # Modules
//!
//! - Commands: [`commands`] (one file per command) and `args` (the command line, and groups of options that several
//!   commands share).
//! - Output: [`printer`] (the only writer to the terminal), `text_table`, `view` (an envelope as a card), `figures`
//!   (durations, local times, bars), `draw` (findings with their source line) and `pull_progress`.
//! - Files: `output_paths` (refuses two outputs in one file, and an output over an input), `commands::hand_over` (saves
//!   an answer that stdout did not take), `packages` (gets and installs packages), `project` (configuration and trust),
//!   `editor_schemas` and `watch`.
//! - The process: `allocator` (returns memory after a burst), `process_limits` and `platform`. `bin/cog/main.rs` starts
//!   the program `cogn` next to it.

mod allocator;
mod args;
pub mod commands;
mod draw;
mod editor_schemas;
mod figures;
mod output_paths;
mod packages;
mod platform;
pub mod printer;
mod process_limits;
mod project;
mod pull_progress;
mod text_table;
mod view;
mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::{Cli, Command};
use clap::CommandFactory as _;
use cognitive_setup::{config, media, settings, stores, wiring};
use printer::{Exit, Printer};

/// Returns the full command definition, for generated pages and scripts.
#[must_use]
pub fn command_line() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Parses the command line, runs the command and returns its exit code: 0 good, 1 bad, 2 usage error.
#[must_use]
pub fn main() -> ExitCode {
    let printer = Printer;
    // An internal command: this program starts itself to read one document. It is not documented.
    if std::env::args_os().skip(1).eq([media::DOCUMENT_COMMAND]) {
        return printer.close(commands::media::read_document()).into();
    }
    match commands::completions::serve_completions() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(message) => {
            printer.usage(&message);
            return Exit::Usage.into();
        }
    }
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(message) => {
            printer.usage(&message);
            return printer.close(if message.use_stderr() { Exit::Usage } else { Exit::Good }).into();
        }
    };
    cli.global.chatter().decide();
    project::set_trust_options(cli.global.trust_project, cli.global.config);
    let exit = match &cli.command {
        Command::Run(args) => commands::run::run(args, &wiring::library(), &printer),
        Command::Batch(args) => commands::batch::batch(args, &wiring::library(), &printer),
        Command::Prompt(args) => commands::prompt::prompt(args, &wiring::library(), &printer),
        Command::Compose(args) => commands::compose::compose(args, &wiring::library(), &printer),
        Command::Types(args) => commands::types::types(args, &wiring::library(), &printer),
        Command::Export(args) => commands::export::export(args, &wiring::library(), &printer),
        Command::Import(args) => commands::import::import(args, &wiring::library(), &printer),
        Command::Lower(args) => commands::lower::lower(args, &wiring::library(), &printer),
        Command::List(args) => commands::list::list(args, &wiring::library(), &printer),
        Command::Info(args) => commands::info::info(args, &wiring::library(), &printer),
        Command::Validate(args) => commands::validate::validate(args, &wiring::library(), &printer),
        Command::Check(args) => commands::check::check(args, &wiring::library(), &printer),
        Command::Init(args) => commands::init::init(args, &printer),
        Command::Migrate(args) => commands::migrate::migrate(args, &wiring::library(), &printer),
        Command::Add(args) => commands::add::add(args, &wiring::library(), &printer),
        Command::Remove(args) => commands::remove::remove(args, &printer),
        Command::Update(args) => commands::update::update(args, &wiring::library(), &printer),
        Command::Versions(args) => commands::versions::versions(args, &printer),
        Command::Search(args) => commands::versions::search(args, &printer),
        Command::Pack(args) => commands::pack::pack(args, &wiring::library(), &printer),
        Command::Sign(args) => commands::sign::sign_command(args, &printer),
        Command::Publish(args) => commands::publish::publish(args, &wiring::library(), &printer),
        Command::Registry(args) => commands::registry::registry(args, &printer),
        Command::Explain(args) => commands::explain::explain(args, &printer),
        Command::Schema(args) => commands::schema::schema(args, &printer),
        Command::Test(args) => commands::test::test(args, &wiring::library(), &printer),
        Command::Verify(args) => commands::verify::verify(args, &wiring::library(), &printer),
        Command::Eval(args) => commands::eval::eval(args, &wiring::library(), &printer),
        Command::Train(args) => commands::train::train(args, &wiring::library(), &printer),
        Command::Prices(args) => commands::prices::prices(args, &printer),
        Command::Audit(args) => {
            with_audit_path(|path| commands::audit::audit(args, path, &printer), &printer)
        }
        Command::Review(args) => commands::review::review(args, &wiring::library(), &printer),
        Command::Context(args) => database(|path| commands::context::context(args, path, &printer), &printer),
        Command::Media(args) => commands::media::media(args, &printer),
        Command::Model(args) => commands::model::model(args, &wiring::environment, &printer),
        Command::Serve(args) => commands::serve::serve(args, &wiring::library(), &printer),
        Command::Studio(args) => commands::studio::studio(args, &wiring::library(), &printer),
        Command::Mcp(args) => commands::mcp::mcp(args, &printer),
        Command::Deploy(args) => commands::deploy::deploy(args, &printer),
        Command::Store(args) => commands::store::store(args, |back_up| database(back_up, &printer), &printer),
        Command::Capabilities(args) => {
            commands::capabilities::capabilities(args, &wiring::library(), &printer)
        }
        Command::Trust(args) => commands::trust::trust(args, &printer),
        Command::Doctor(args) => commands::doctor::doctor(args, &wiring::library(), &printer),
        Command::Conformance(args) => commands::conformance::conformance(args, &printer),
        Command::Completions(args) => commands::completions::completions(args, &printer),
        Command::Man(args) => commands::man::man(args, &printer),
    };
    printer.close(exit).into()
}

/// Passes the path of the audit to a command, or reports why there is none.
fn with_audit_path(command: impl FnOnce(&Path) -> Exit, printer: &Printer) -> Exit {
    let off = project::config().is_ok_and(|config| config.audit.enabled == Some(false));
    if off {
        let why = ("the audit log is disabled", "Set `audit: {enabled: true}` in the configuration");
        return with_path(settings::store_path, why, command, printer);
    }
    let homeless = format!("no audit log: {}", stores::no_place());
    with_path(settings::store_path, (&homeless, "Set `COGNITIVE_DB` to a path"), command, printer)
}

/// Passes the path of the database, which also stores context, to a command.
fn database(command: impl FnOnce(&Path) -> Exit, printer: &Printer) -> Exit {
    let homeless = ("no database path is configured", "Set `COGNITIVE_DB` to a path");
    with_path(settings::database, homeless, command, printer)
}

fn with_path(
    find: fn(&config::Config, settings::Environment<'_>) -> Option<PathBuf>,
    (message, hint): (&str, &str),
    command: impl FnOnce(&Path) -> Exit,
    printer: &Printer,
) -> Exit {
    match project::config().map(|config| find(&config, &wiring::environment)) {
        Ok(Some(path)) => command(&path),
        Ok(None) => {
            printer.error(message, Some(hint));
            Exit::Bad
        }
        Err(failure) => {
            printer.error(failure.message(), failure.suggestion());
            Exit::Bad
        }
    }
}
