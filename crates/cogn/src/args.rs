//! What can be typed. Holds names and help texts only; each command's own options stand in its file.

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Parser, Subcommand};

use crate::commands;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// What `--version` says: the program, and the versions of the specification that it understands.
const LONG_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), "\ncognitive: { spec_versions: [\"2.5\", \"2.2\", \"2.1\"] }");

/// The runtime for Cognitive Modules: AI tasks with a contract.
#[derive(Debug, Parser)]
#[command(name = "cogn", version, long_version = LONG_VERSION, about, styles = STYLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module and print its envelope
    Run(commands::run::RunArgs),
    /// List the modules that can be run by name
    List(commands::list::ListArgs),
    /// Show what a module takes, gives and may do
    Info(commands::info::InfoArgs),
    /// Check module folders and point at everything that is wrong
    Validate(commands::validate::ValidateArgs),
    /// Check an envelope or a log of stream chunks
    Check(commands::check::CheckArgs),
    /// Create a new module
    Init(commands::init::InitArgs),
    /// Bring modules of older formats to v2.2
    Migrate(commands::migrate::MigrateArgs),
    /// Explain an error code
    Explain(commands::explain::ExplainArgs),
    /// Print the JSON Schema of module.yaml or of the envelope
    Schema(commands::schema::SchemaArgs),
    /// Run conformance vectors against this runtime
    Conformance(commands::conformance::ConformanceArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}
