//! `cogn init NAME`: creates a new valid module.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use cognitive_contract::manifest::{InputModality, Tier};
use cognitive_library::init::{EXAMPLE_TEXT, Feature, Template, create};
use serde_json::json;

use crate::editor_schemas;
use crate::printer::{Exit, GOOD, NOTE, Printer};

/// Options of `init`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that people type")]
pub struct InitArgs {
    /// Name of the module: lower-case letters, digits, hyphens
    name: String,
    /// The tier: how strictly the module is checked
    #[arg(long, value_enum, default_value_t = TierName::Decision)]
    tier: TierName,
    /// Allow streaming of the answer
    #[arg(long)]
    streaming: bool,
    /// Accept this kind of media; repeatable
    #[arg(long, value_enum, value_name = "KIND")]
    media: Vec<MediaName>,
    /// Read and store context between runs
    #[arg(long)]
    context: bool,
    /// Compose the module from other modules
    #[arg(long)]
    compose: bool,
    /// Write every section, with comments and its own envelope; implied by `--media`, `--context` and `--compose`
    #[arg(long)]
    full: bool,
    /// Parent folder of the new module
    #[arg(long, value_name = "DIR", default_value = "cognitive/modules")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TierName {
    /// Acts without a person: closed enums, confidence at least 0.9
    Exec,
    /// Helps a person to decide
    Decision,
    /// Research and ideas
    Exploration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MediaName {
    Image,
    Audio,
    Video,
    Document,
}

/// Creates the module and prints the next steps.
pub fn init(args: &InitArgs, printer: &Printer) -> Exit {
    let (place, shown_place) = editor_schemas::place_for(&args.dir);
    let template = Template { editor_schema: Some(shown_place), ..template(args) };
    let path = match create(&args.dir, &template) {
        Ok(path) => path,
        Err(error) => {
            printer.error(&error.to_string(), Some(&error.hint()));
            return Exit::Bad;
        }
    };
    // The module works without schemas; only editor support is missing.
    if let Err(error) = editor_schemas::write(&place) {
        printer.warning(&format!("cannot write schemas for editors to `{}`: {error}", place.display()));
    }
    let next = next(args, &template, &path);
    if args.json {
        printer.json(&json!({ "name": args.name, "path": path, "next": next }));
        return Exit::Good;
    }
    printer.err(format!("{GOOD}created{GOOD:#} {}", path.display()));
    printer.err("next:");
    for command in next {
        printer.err(format!("  {NOTE}{command}{NOTE:#}"));
    }
    Exit::Good
}

fn template(args: &InitArgs) -> Template {
    let tier = match args.tier {
        TierName::Exec => Tier::Exec,
        TierName::Decision => Tier::Decision,
        TierName::Exploration => Tier::Exploration,
    };
    let media = args.media.iter().map(|kind| match kind {
        MediaName::Image => Feature::Media(InputModality::Image),
        MediaName::Audio => Feature::Media(InputModality::Audio),
        MediaName::Video => Feature::Media(InputModality::Video),
        MediaName::Document => Feature::Media(InputModality::Document),
    });
    let switches = [
        (args.streaming, Feature::Streaming),
        (args.context, Feature::Context),
        (args.compose, Feature::Compose),
    ];
    let chosen = switches.into_iter().filter(|(on, _)| *on).map(|(_, feature)| feature);
    let plain = Template { full: args.full, ..Template::new(args.name.as_str(), tier) };
    media.chain(chosen).fold(plain, Template::with)
}

/// Returns the next steps; each command works as printed, without a key if possible.
fn next(args: &InitArgs, template: &Template, path: &Path) -> [String; 3] {
    // A module in a default folder is found by name; elsewhere its path is needed.
    let usual = args.dir == Path::new("cognitive/modules") || args.dir == Path::new(".cognitive/modules");
    let by = if usual { args.name.clone() } else { path_label(path) };
    let example = path.join("tests/example");
    // Without training, no embedded model is confident enough for the gate of `exec`.
    let run = if template.is_minimal() && template.tier != Tier::Exec {
        format!("cogn run {by} --set text=\"{EXAMPLE_TEXT}\"")
    } else if args.compose {
        format!("cogn compose plan {by}")
    } else {
        let example = example.display();
        format!("cogn run {by} {example}.input.json --provider replay --reply {example}.reply.txt --pretty")
    };
    [run, format!("cogn test {by}"), format!("cogn validate {by} --v22")]
}

/// Formats a path so that it cannot be mistaken for a name.
fn path_label(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(std::path::MAIN_SEPARATOR) { text } else { format!("./{text}") }
}
