//! The command line. Holds names and help texts only. Each command has its own options in its file; options that
//! several commands share are in the files beside this one.

pub(crate) mod candidates;
mod help;
pub mod input;
pub(crate) mod media;
pub mod modules;
pub mod provider;
pub mod repeat;
pub(crate) mod reply;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::printer::Chatter;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The text of `--version`: the program, and the supported versions of the specification.
const LONG_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), "\ncognitive: { spec_versions: [\"2.5\", \"2.2\", \"2.1\"] }");

/// The runtime for Cognitive Modules: AI tasks with a contract.
#[derive(Debug, Parser)]
#[command(name = "cogn", version, long_version = LONG_VERSION, about, styles = STYLES, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// The options of every command, before its name or after it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// When to use colour: in a terminal, always, or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto, hide_possible_values = true)]
    color: ColorWhen,
    /// Show more on stderr: decisions and their sources
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    verbose: bool,
    /// Show only errors on stderr
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Read this file instead of `cognitive.yaml` of the project, and trust it
    #[arg(long, global = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
    /// Trust `cognitive.yaml` of the project for this run, or only if it has this sha256
    #[arg(
        long, global = true, value_name = "SHA256", num_args = 0..=1, require_equals = true,
        default_missing_value = "1"
    )]
    pub(crate) trust_project: Option<String>,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// In a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always, also in a pipe
    Always,
    /// Never
    Never,
}

impl ColorWhen {
    /// Applies the choice to this process.
    pub(crate) fn decide(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }

    /// Reads the colour options before the command line is parsed, so that a parse error has the right colours.
    fn from_words(words: impl Iterator<Item = String>) -> Option<Self> {
        let mut words = words.take_while(|word| word != "--");
        while let Some(word) = words.next() {
            let value = match word.strip_prefix("--color") {
                Some("") => words.next(),
                Some(value) => value.strip_prefix('=').map(str::to_owned),
                None => None,
            };
            if let Some(when) = value.and_then(|value| Self::from_str(&value, false).ok()) {
                return Some(when);
            }
        }
        None
    }
}

impl GlobalArgs {
    /// The verbosity of the output.
    pub(crate) fn chatter(&self) -> Chatter {
        match (self.quiet, self.verbose) {
            (true, _) => Chatter::Quiet,
            (false, true) => Chatter::Verbose,
            (false, false) => Chatter::Usual,
        }
    }
}

impl Cli {
    /// Parses the command line, and chooses the colours of its messages.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        ColorWhen::from_words(words).unwrap_or(ColorWhen::Auto).decide();
        let mut command = Self::full_command();
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }

    /// Returns the complete command line, with commands in groups.
    pub(crate) fn full_command() -> clap::Command {
        help::in_groups(Self::command())
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module and print its envelope
    Run(Box<commands::run::RunArgs>),
    /// Run a module on every row of a file; resumes after interruption
    Batch(Box<commands::batch::BatchArgs>),
    /// Show the exact prompt that the model would get
    Prompt(commands::prompt::PromptArgs),
    /// Show the schema that a provider would get, and what it cannot express
    Lower(commands::lower::LowerArgs),
    /// Show the parts of a module and the order of their runs
    Compose(commands::compose::ComposeArgs),
    /// List the modules that can be run by name
    List(commands::list::ListArgs),
    /// Show the input, the output and the permissions of a module
    Info(commands::info::InfoArgs),
    /// Validate your modules and show every finding with its place
    Validate(commands::validate::ValidateArgs),
    /// Check an envelope or a log of stream chunks
    Check(commands::check::CheckArgs),
    /// Create a new module
    Init(commands::init::InitArgs),
    /// Migrate modules of older formats to v2.2
    Migrate(commands::migrate::MigrateArgs),
    /// Install packages, or everything in `cognitive.lock`
    #[command(visible_alias = "install")]
    Add(commands::add::PackageAddArgs),
    /// Remove installed packages
    #[command(visible_alias = "uninstall")]
    Remove(commands::remove::RemoveArgs),
    /// Update installed packages from their sources
    Update(commands::update::UpdateArgs),
    /// List the versions of a package
    Versions(commands::versions::VersionsArgs),
    /// Search an index of packages
    Search(commands::versions::SearchArgs),
    /// Pack a module into one reproducible archive
    Pack(commands::pack::PackArgs),
    /// Sign a package, or generate a key pair
    Sign(commands::sign::SignArgs),
    /// Publish a module to an OCI registry
    Publish(commands::publish::PublishArgs),
    /// Write the index of a folder of packages
    Registry(commands::registry::RegistryArgs),
    /// Explain an error code
    Explain(commands::explain::ExplainArgs),
    /// Print the JSON Schema of `module.yaml`, the envelope and other files, or write all for editors
    Schema(commands::schema::SchemaArgs),
    /// Generate the types of modules for Python, TypeScript or Rust
    Types(commands::types::TypesArgs),
    /// Export a module to the format of another tool
    Export(commands::export::ModuleExportArgs),
    /// Import a prompt of another tool as a module, and list the losses
    Import(commands::import::ImportArgs),
    /// Run the golden tests of your modules
    Test(commands::test::TestArgs),
    /// Grade a module by its recorded replies, as the published certification does
    Verify(commands::verify::VerifyArgs),
    /// Measure the accuracy of a module on labelled cases
    Eval(commands::eval::EvalArgs),
    /// Train the decisions of an embedded model on labelled cases
    Train(commands::train::TrainArgs),
    /// Show model prices
    Prices(commands::prices::PricesArgs),
    /// Show the audit log of runs and model calls
    Audit(commands::audit::AuditArgs),
    /// Review runs that wait for a decision, and compare confidence with the decisions
    Review(commands::review::ReviewArgs),
    /// Show, set and remove the context stored between runs
    Context(commands::context::ContextArgs),
    /// Show media as modules and providers would get them
    Media(commands::media::MediaArgs),
    /// Fetch, add, check and remove the models that run in this process
    Model(commands::model::ModelArgs),
    /// Serve modules over HTTP: one envelope or one stream per request
    Serve(commands::serve::ServeArgs),
    /// Start a local server and open Studio, to try, compare, watch, edit and review modules
    Studio(commands::studio::StudioArgs),
    /// Offer modules as tools to agents, over the Model Context Protocol
    Mcp(commands::mcp::McpArgs),
    /// Register the durable worker with its server
    Deploy(commands::deploy::DeployArgs),
    /// Copy the database from a file to a server, or back
    Store(commands::store::StoreArgs),
    /// Show what this runtime can do, as JSON
    Capabilities(commands::capabilities::CapabilitiesArgs),
    /// Show what `cognitive.yaml` of the project sets, and trust it
    Trust(commands::trust::TrustArgs),
    /// Show the settings in effect, the models and modules found, and any problems
    Doctor(commands::doctor::DoctorArgs),
    /// Run conformance vectors against this runtime
    Conformance(commands::conformance::ConformanceArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page of a command, or write all of them
    Man(commands::man::ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// The commands in back quotes or after a prompt that name `cogn` and could be run.
    fn commands(page: &str) -> Vec<Vec<String>> {
        let quoted = page
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|text| text.starts_with("cogn ") && !text.contains('\n'));
        let typed =
            page.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| line.starts_with("cogn "));
        quoted.chain(typed).map(words).collect()
    }

    /// Words as a shell splits them, up to a comment, a pipe, the background or an ellipsis.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in line.chars() {
            match (letter, quote) {
                ('#' | '|' | '>' | '&' | '…', None) => break,
                ('\'' | '"', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (' ', None) => words.push(String::new()),
                (letter, _) => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty() && !word.starts_with('['));
        words
    }

    /// Every command and command below it, by the words that are typed.
    fn every_command(of: &clap::Command, words: &str, found: &mut Vec<(String, clap::Command)>) {
        for command in of.get_subcommands() {
            let words = format!("{words} {}", command.get_name());
            every_command(command, &words, found);
            found.push((words, command.clone()));
        }
    }

    // One letter, one meaning. `-a` of `migrate` is how its published documentation spells `--all`; it is not shown.
    #[test]
    fn a_short_option_means_the_same_everywhere() {
        let mut root = Cli::full_command();
        root.build();
        let mut commands = Vec::new();
        every_command(&root, "cogn", &mut commands);
        let mut meanings: std::collections::BTreeMap<char, String> = std::collections::BTreeMap::new();
        for (words, command) in &commands {
            for option in command.get_arguments() {
                let letters = option
                    .get_short()
                    .into_iter()
                    .chain(option.get_visible_short_aliases().into_iter().flatten());
                for letter in letters {
                    let long = option.get_long().unwrap_or_default().to_owned();
                    let known = meanings.entry(letter).or_insert_with(|| long.clone());
                    assert_eq!(*known, long, "-{letter} of `{words}`");
                }
            }
        }
        for (letter, long) in
            [('m', "model"), ('a', "args"), ('n', "dry-run"), ('o', "output"), ('p', "provider")]
        {
            assert_eq!(meanings.get(&letter).map(String::as_str), Some(long));
        }
    }

    #[test]
    fn colours_are_decided_before_anything_is_read() {
        let typed = |words: &str| ColorWhen::from_words(words.split(' ').map(str::to_owned));
        assert_eq!(typed("run x --color always"), Some(ColorWhen::Always));
        assert_eq!(typed("--color=never frobnicate"), Some(ColorWhen::Never));
        assert_eq!(typed("run x --colour=never"), None);
        assert_eq!(typed("run -- --color always"), None);
    }

    #[test]
    fn every_command_in_the_documents_exists() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut checked = 0;
        for page in [
            "README.md",
            "CONTRIBUTING.md",
            "docs/composition.md",
            "docs/context.md",
            "docs/errors.md",
            "docs/media.md",
            "docs/serving.md",
            "docs/trust.md",
            "docs/examples-and-evaluation.md",
        ] {
            let text = std::fs::read_to_string(format!("{root}/{page}")).unwrap();
            for command in commands(&text) {
                let refused = Cli::try_parse_from(&command).err().map(|error| error.kind());
                // A command may be mentioned without what it needs; it may not have options that do not exist.
                let fine = matches!(
                    refused,
                    None | Some(
                        ErrorKind::MissingRequiredArgument
                            | ErrorKind::DisplayHelp
                            | ErrorKind::DisplayVersion
                    )
                );
                assert!(fine, "{page} tells people to type {command:?}: {refused:?}");
                checked += 1;
            }
        }
        assert!(checked > 40, "{checked}");
    }
}
