//! `cogn model`: the models that run in this process. Downloads known ones, adds user files, shows paths and
//! verification results, and removes models. Changes nothing outside the user's cache.

mod rows;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cognitive_contract::{ErrorCode, Failure};
use cognitive_setup::embedded_model::{self, WeightsAtHand};
use cognitive_setup::env_vars;
use cognitive_setup::settings::{EMBEDDED, Environment, offline};
use cognitive_setup::weights::{
    self, AddedAs, KNOWN_WEIGHTS, KnownWeights, PullError, PullProgress as _, PullSources, SMOLLM2,
    WeightsChoice, WeightsFolder, WeightsState,
};
use serde_json::json;

use self::rows::{ModelRow, Thoroughness, cached_row, row, rows};
use super::fail;
use crate::args::candidates;
use crate::printer::{Exit, GOOD, Printer};
use crate::pull_progress::TerminalProgress;

/// Options of `model`.
#[derive(Debug, clap::Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    command: Option<ModelCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ModelCommand {
    /// List the models with their state, size, licence, context and memory
    List(ModelForm),
    /// Fetch a model: smollm2, qwen-0.5b or qwen-1.5b
    Pull(PullArgs),
    /// Add your own GGUF file under a name; loads it once to check it
    Add(AddArgs),
    /// Print the path of a model; exit 1 if it is not on this machine
    Path(NamedArgs),
    /// Remove a model from the cache
    Rm(NamedArgs),
    /// Compare length and sha256 with the expected values
    Verify(NamedArgs),
}

#[derive(Debug, Default, clap::Args)]
struct ModelForm {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct NamedArgs {
    /// The model; by default the usual one, for `verify` all on this machine
    #[arg(value_name = "NAME", add = candidates::models())]
    name: Option<String>,
    #[command(flatten)]
    form: ModelForm,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    /// The model: smollm2 (the usual one), qwen-0.5b or qwen-1.5b
    #[arg(value_name = "NAME", add = candidates::models())]
    name: Option<String>,
    #[command(flatten)]
    form: ModelForm,
    /// Give up after this many seconds; 600 unless set, and more for large models
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct AddArgs {
    /// A GGUF file; linked if possible, otherwise copied
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the model; by default the name of the file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    form: ModelForm,
}

/// Runs the subcommand; the default is to list.
pub fn model(args: &ModelArgs, environment: Environment<'_>, printer: &Printer) -> Exit {
    let done = weights::models_or_failure(environment).and_then(|_| match &args.command {
        None => Ok(list(&ModelForm::default(), environment, printer)),
        Some(ModelCommand::List(form)) => Ok(list(form, environment, printer)),
        Some(ModelCommand::Pull(args)) => pull(args, environment, printer),
        Some(ModelCommand::Add(args)) => add(args, environment, printer),
        Some(ModelCommand::Path(args)) => path(args, environment, printer),
        Some(ModelCommand::Rm(args)) => rm(args, environment, printer),
        Some(ModelCommand::Verify(args)) => verify(args, environment, printer),
    });
    done.unwrap_or_else(|failure| fail(&failure, printer))
}

/// Resolves a name to weights.
fn named_weights(name: &str, environment: Environment<'_>) -> Result<WeightsChoice, Failure> {
    let bare = name.strip_prefix(EMBEDDED).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    WeightsChoice::from_name(bare, environment).ok_or_else(|| unknown_model(name))
}

fn unknown_model(name: &str) -> Failure {
    let names: Vec<&str> = KNOWN_WEIGHTS.iter().map(|known| known.short()).collect();
    Failure::new(ErrorCode::ProviderUnavailable, format!("unknown embedded model: `{name}`")).suggest(
        format!(
            "Use one of: {}; `cogn model list` shows all, `cogn model add FILE` adds your own file",
            names.join(", ")
        ),
    )
}

fn list(form: &ModelForm, environment: Environment<'_>, printer: &Printer) -> Exit {
    let rows = rows(environment, Thoroughness::Remembered);
    if form.json {
        printer.json(&rows);
        return Exit::Good;
    }
    printer.table(&rows::table(&rows));
    if !rows.iter().any(|row| row.installed) {
        printer.err("`cogn model pull` downloads the default model; so does the first run that needs it");
    }
    Exit::Good
}

fn pull(args: &PullArgs, environment: Environment<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let known: &KnownWeights = match args.name.as_deref() {
        None => &SMOLLM2,
        Some(name) => named_weights(name, environment)?.known_weights().ok_or_else(|| {
            let message = format!("your own file has no download source: `{name}`");
            Failure::new(ErrorCode::ProviderUnavailable, message).suggest("`cogn model add FILE` adds a file")
        })?,
    };
    let Some(place) = WeightsFolder::for_weights(known, environment) else { return Ok(Exit::Bad) };
    let there = weights::look(known, &place.file()) == WeightsState::Right;
    if offline(environment) && !there {
        let why = format!("downloads are disabled by `{}`", env_vars::OFFLINE);
        return Err(weights::missing(known, &why, &[]));
    }
    let screen = TerminalProgress::new(printer, true);
    if !there {
        screen.note(&weights::announcement(known, &place));
    }
    let patience = args.timeout.map(|seconds| Duration::from_secs(seconds.max(1)));
    let sources = PullSources::for_weights(known, environment).with_timeout(patience);
    let pulled = match weights::pull(known, &place, &sources, &screen) {
        Ok(pulled) => pulled,
        Err(error) => {
            let verdict = fail(&embedded_model::pull_failure(known, &error), printer);
            return Ok(if error == PullError::Cancelled { Exit::Cancelled } else { verdict });
        }
    };
    if args.form.json {
        printer.json(&cached_row(known, environment, Thoroughness::Remembered));
        return Ok(Exit::Good);
    }
    printer.err(match pulled.from {
        Some(from) => format!("{GOOD}downloaded{GOOD:#} {} from {from}; sha256 matches", known.name),
        None => format!("{} is already downloaded; sha256 matches", known.name),
    });
    printer.print_line(pulled.path.display().to_string());
    Ok(Exit::Good)
}

fn add(args: &AddArgs, environment: Environment<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let added = weights::add(&args.file, args.name.as_deref(), environment)?;
    let (choice, said) = match added {
        AddedAs::Known(known) => {
            let said = format!("{GOOD}added{GOOD:#} {}: length and sha256 match", known.short());
            (WeightsChoice::Known(known), said)
        }
        AddedAs::Own(added) => {
            let size = weights::megabytes(added.length);
            let said = format!("{GOOD}added{GOOD:#} {} ({size}); sha256 {}", added.name, added.sha256);
            (WeightsChoice::Added(added), said)
        }
    };
    if args.form.json {
        printer.json(&row(&choice, environment, Thoroughness::Remembered));
        return Ok(Exit::Good);
    }
    printer.err(said);
    if let Some(file) = choice.file(environment) {
        printer.print_line(file.display().to_string());
    }
    Ok(Exit::Good)
}

/// Returns the named weights; else the file in the environment, else the default weights.
fn choose_weights(name: Option<&str>, environment: Environment<'_>) -> Result<WeightsChoice, Failure> {
    let by_environment =
        || environment(env_vars::WEIGHTS).map(|file| WeightsChoice::File(PathBuf::from(file)));
    name.map_or_else(
        || Ok(by_environment().unwrap_or(WeightsChoice::Usual)),
        |name| named_weights(name, environment),
    )
}

fn path(args: &NamedArgs, environment: Environment<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let choice = choose_weights(args.name.as_deref(), environment)?;
    let found = embedded_model::at_hand(&choice, environment);
    if args.form.json {
        let (path, built_in) = match found {
            Some(WeightsAtHand::File(path)) => (Some(path), false),
            Some(WeightsAtHand::BuiltIn(_)) => (None, true),
            None => (None, false),
        };
        let path = path.filter(|path| path.is_file());
        printer.json(&json!({ "path": path, "built_in": built_in }));
        return Ok(if path.is_some() { Exit::Good } else { Exit::Bad });
    }
    match found {
        Some(WeightsAtHand::File(path)) if path.is_file() => {
            printer.print_line(path.display().to_string());
            Ok(Exit::Good)
        }
        Some(WeightsAtHand::BuiltIn(_)) => {
            printer.err("the weights are built in");
            Ok(Exit::Bad)
        }
        _ => {
            let place = choice.file(environment).unwrap_or_default();
            let remedy = row(&choice, environment, Thoroughness::Remembered).map(|row| row.remedy);
            printer.error(&format!("no weights at: `{}`", place.display()), remedy.as_deref());
            Ok(Exit::Bad)
        }
    }
}

fn rm(args: &NamedArgs, environment: Environment<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let choice =
        args.name.as_deref().map_or(Ok(WeightsChoice::Usual), |name| named_weights(name, environment))?;
    let place = match &choice {
        WeightsChoice::File(file) => {
            let message = format!("cannot remove a file outside the cache: `{}`", file.display());
            return Err(Failure::new(ErrorCode::ProviderUnavailable, message)
                .suggest("Name a model of `cogn model list`"));
        }
        other => WeightsFolder::from_name(&other.name(), environment),
    };
    let Some(place) = place else { return Ok(Exit::Bad) };
    let mut removed = false;
    // The record last: while it exists, the name remains usable.
    for path in
        [place.file(), place.packed_path(), place.part(), place.origin(), place.hashes(), place.record()]
    {
        match fs::remove_file(&path) {
            Ok(()) => removed = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                printer.error(&format!("cannot remove `{}`: {error}", path.display()), None);
                return Ok(Exit::Bad);
            }
        }
    }
    let file = place.file();
    if args.form.json {
        printer.json(&json!({ "path": file, "removed": removed }));
        return Ok(Exit::Good);
    }
    let what = if removed { "removed" } else { "nothing to remove at" };
    printer.err(format!("{what} {}", file.display()));
    Ok(Exit::Good)
}

/// The exit code is good only if at least one set of weights exists and all are verified.
fn verify(args: &NamedArgs, environment: Environment<'_>, printer: &Printer) -> Result<Exit, Failure> {
    let rows: Vec<ModelRow> = match args.name.as_deref() {
        Some(name) => {
            row(&named_weights(name, environment)?, environment, Thoroughness::Complete).into_iter().collect()
        }
        None => installed_rows(rows(environment, Thoroughness::Complete)),
    };
    let good = rows.iter().all(|row| row.installed && row.says.is_none());
    let exit = if good { Exit::Good } else { Exit::Bad };
    if args.form.json {
        printer.json(&rows);
        return Ok(exit);
    }
    for row in &rows {
        report(row, printer);
    }
    Ok(exit)
}

/// Returns the installed rows. Missing default weights are listed only if no others are installed.
fn installed_rows(rows: Vec<ModelRow>) -> Vec<ModelRow> {
    let others = rows.iter().any(|row| row.installed);
    let is_missed = |row: &ModelRow| !others && row.name == SMOLLM2.name;
    rows.into_iter().filter(|row| row.installed || row.says.is_some() || is_missed(row)).collect()
}

fn report(row: &ModelRow, printer: &Printer) {
    match (&row.says, row.installed, row.verified) {
        (Some(why), ..) => {
            printer.error(&format!("`{}` is not the expected file: {why}", row.name), Some(&row.remedy));
        }
        (None, false, _) => {
            printer.error(&format!("`{}` is not on this machine", row.name), Some(&row.remedy));
        }
        (None, true, Some(_)) => printer.print_line(format!("{}: length and sha256 match", row.name)),
        (None, true, None) => {
            let sha256 = row.sha256.as_deref().unwrap_or("unknown");
            printer
                .print_line(format!("{}: GGUF; the expected sha256 is unknown, found: {sha256}", row.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: ModelArgs,
    }

    #[test]
    fn every_form_can_be_typed() {
        for words in [
            "model",
            "model list --json",
            "model pull",
            "model pull qwen-0.5b --timeout 5",
            "model add x.gguf --name mine --json",
            "model path --json",
            "model path qwen-0.5b",
            "model rm mine --json",
            "model verify qwen-1.5b --json",
        ] {
            assert!(Typed::try_parse_from(words.split(' ')).is_ok(), "{words}");
        }
        assert!(Typed::try_parse_from(["model", "fetch"]).is_err());
        assert!(Typed::try_parse_from(["model", "add"]).is_err());
    }
}
