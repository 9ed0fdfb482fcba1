//! What can be typed. Holds names and help texts only; each command's own options stand in its file, and groups of options
//! that several commands share in the files beside this one.

pub mod input;
pub(crate) mod media;
pub mod provider;
pub mod repeat;

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
    /// Trust `cognitive.yaml` of this folder for this run, or only if it has this sha256
    #[arg(
        long, global = true, value_name = "SHA256", num_args = 0..=1, require_equals = true,
        default_missing_value = "1"
    )]
    pub(crate) trust_project: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module and print its envelope
    Run(Box<commands::run::RunArgs>),
    /// Show exactly what the model would get
    Prompt(commands::prompt::PromptArgs),
    /// Show the schema that a provider would get, and what it cannot express
    Lower(commands::lower::LowerArgs),
    /// Show the parts of a module and what would run
    Compose(commands::compose::ComposeArgs),
    /// List the modules that can be run by name
    List(commands::list::ListArgs),
    /// Show the input, the output and the permissions of a module
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
    /// Run the golden tests of modules
    Test(commands::test::TestArgs),
    /// Grade a module as the published certification does, by its recorded replies
    Verify(commands::verify::VerifyArgs),
    /// Measure how often a module is right on labelled cases
    Eval(commands::eval::EvalArgs),
    /// Show the audit log: which runs were made, and how
    Audit(commands::audit::AuditArgs),
    /// Show, set and remove the context stored between runs
    Context(commands::context::ContextArgs),
    /// Show media as modules and providers would get them
    Media(commands::media::MediaArgs),
    /// Read one document from stdin; this program starts itself with it
    #[command(hide = true, name = cogn::media::DOCUMENT_COMMAND)]
    ReadDocument,
    /// Fetch, check and remove the weights of the embedded model
    Model(commands::model::ModelArgs),
    /// Serve modules over HTTP: one envelope or one stream for every request
    Serve(commands::serve::ServeArgs),
    /// Show what this runtime can do, as JSON
    Capabilities(commands::capabilities::CapabilitiesArgs),
    /// Show what cognitive.yaml of this folder sets, and trust it
    Trust(commands::trust::TrustArgs),
    /// Show what is configured, what is found and what can be reached
    Doctor(commands::doctor::DoctorArgs),
    /// Run conformance vectors against this runtime
    Conformance(commands::conformance::ConformanceArgs),
    /// Print a completion script for a shell
    Completions(commands::completions::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    /// What follows `cogn` in back quotes and after a prompt, as far as it can be typed.
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

    /// Words as a shell splits them, up to a comment, a pipe or an ellipsis.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in line.chars() {
            match (letter, quote) {
                ('#' | '|' | '>' | '…', None) => break,
                ('\'' | '"', None) => quote = Some(letter),
                (letter, Some(open)) if letter == open => quote = None,
                (' ', None) => words.push(String::new()),
                (letter, _) => words.last_mut().unwrap().push(letter),
            }
        }
        words.retain(|word| !word.is_empty() && !word.starts_with('['));
        words
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
