//! Collects the state of each model, for `cogn model list` and `verify`: known ones, built-in ones, user models. Reads
//! files and changes none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cognitive_setup::embedded_model;
use cognitive_setup::env_vars;
use cognitive_setup::settings::Environment;
use cognitive_setup::weights::{
    self, AddedWeights, BUILT_IN, BuiltIn, KNOWN_WEIGHTS, KnownWeights, WeightsChoice, WeightsFolder,
    WeightsState,
};
use serde::Serialize;

use crate::printer::{BAD, FAINT, GOOD, NOTE};
use crate::text_table::TextTable;

/// One set of weights.
#[derive(Debug, Serialize)]
pub(super) struct ModelRow {
    /// The name in `meta.model`, after `embedded/`.
    pub(super) name: String,
    /// Shorter names for users.
    aliases: Vec<&'static str>,
    pub(super) installed: bool,
    /// The size of the installed file; else of the download.
    bytes: Option<u64>,
    /// The hash of the installed file; absent if it is unreadable.
    pub(super) sha256: Option<String>,
    /// Absent for a file without an expected hash.
    pub(super) verified: Option<bool>,
    licence: Option<&'static str>,
    /// The context length in tokens.
    context: Option<u64>,
    /// The memory that a run needs, in bytes.
    memory: Option<u64>,
    from: Option<String>,
    path: Option<PathBuf>,
    /// The problem, if any.
    pub(super) says: Option<String>,
    /// The command that fixes it.
    #[serde(skip)]
    pub(super) remedy: String,
}

/// The depth of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thoroughness {
    /// A remembered hash is accepted if the file has not changed since.
    Remembered,
    /// Every byte is read.
    Complete,
}

/// Returns every set of weights that could answer.
pub(super) fn rows(environment: Environment<'_>, how: Thoroughness) -> Vec<ModelRow> {
    let named = environment(env_vars::WEIGHTS).map(PathBuf::from);
    let known = KNOWN_WEIGHTS.into_iter().filter_map(|known| cached_row(known, environment, how));
    let added = AddedWeights::all(environment);
    named
        .map(|path| foreign(&path, environment))
        .into_iter()
        .chain(BUILT_IN.map(built_in))
        .chain(known)
        .chain(added.into_iter().filter_map(|added| user_row(added, environment, how)))
        .collect()
}

/// Returns the row of the chosen weights.
pub(super) fn row(
    choice: &WeightsChoice,
    environment: Environment<'_>,
    how: Thoroughness,
) -> Option<ModelRow> {
    match choice {
        WeightsChoice::File(file) => Some(foreign(file, environment)),
        WeightsChoice::Added(added) => user_row(added.clone(), environment, how),
        WeightsChoice::Usual | WeightsChoice::Known(_) => {
            cached_row(choice.known_weights()?, environment, how)
        }
    }
}

/// Returns the row of known weights in the cache, installed or not.
pub(super) fn cached_row(
    known: &KnownWeights,
    environment: Environment<'_>,
    how: Thoroughness,
) -> Option<ModelRow> {
    let place = WeightsFolder::for_weights(known, environment)?;
    let path = place.file();
    let found = match how {
        Thoroughness::Remembered => place.check(known),
        Thoroughness::Complete => weights::check(known, &path),
    };
    let origin = fs::read_to_string(place.origin()).ok().map(|text| text.trim().to_owned());
    let length = fs::metadata(&path).ok().map(|meta| meta.len());
    Some(ModelRow {
        name: known.name.to_owned(),
        aliases: known.aliases.to_vec(),
        installed: found != WeightsState::Nothing,
        bytes: length.or(Some(known.length)),
        sha256: (found == WeightsState::Right).then(|| known.sha256.to_owned()),
        verified: (found != WeightsState::Nothing).then_some(found == WeightsState::Right),
        licence: Some(known.licence),
        context: Some(known.context),
        memory: Some(known.memory()),
        from: origin.filter(|_| found == WeightsState::Right),
        path: Some(path),
        says: says(found),
        remedy: format!("Run `{}`", known.pull_command()),
    })
}

fn says(found: WeightsState) -> Option<String> {
    match found {
        WeightsState::Wrong(why) => Some(why),
        _ => None,
    }
}

/// Returns the row of a user model. It must be unchanged since it was added.
fn user_row(added: AddedWeights, environment: Environment<'_>, how: Thoroughness) -> Option<ModelRow> {
    let path = WeightsFolder::from_name(&added.name, environment)?.file();
    let hash = || match how {
        Thoroughness::Remembered => weights::hash_of(&path, environment),
        Thoroughness::Complete => weights::hash_file(&path),
    };
    let found = match weights::look_for(added.length, &path) {
        WeightsState::Right => match hash() {
            Ok(sha256) if sha256 == added.sha256 => WeightsState::Right,
            Ok(sha256) => WeightsState::Wrong(format!("its sha256 is {sha256}")),
            Err(why) => WeightsState::Wrong(why),
        },
        other => other,
    };
    Some(ModelRow {
        remedy: format!("Remove it with `cogn model rm {}`, and add the file again", added.name),
        name: added.name,
        aliases: Vec::new(),
        installed: found != WeightsState::Nothing,
        bytes: Some(added.length),
        sha256: (found == WeightsState::Right).then_some(added.sha256),
        verified: (found != WeightsState::Nothing).then_some(found == WeightsState::Right),
        licence: None,
        context: None,
        memory: None,
        from: Some(added.from),
        path: Some(path),
        says: says(found),
    })
}

/// Returns the row of the built-in weights. An unknown hash is no error: the build chose another model.
fn built_in(weights: BuiltIn) -> ModelRow {
    let known = KnownWeights::with_hash(weights.sha256);
    ModelRow {
        name: embedded_model::built_in_name(&weights).to_owned(),
        aliases: known.map(|known| known.aliases.to_vec()).unwrap_or_default(),
        installed: true,
        bytes: Some(weights.bytes.len() as u64),
        sha256: Some(weights.sha256.to_owned()),
        verified: known.map(|_| true),
        licence: known.map(|known| known.licence),
        context: known.map(|known| known.context),
        memory: known.map(KnownWeights::memory),
        from: Some("this program".to_owned()),
        path: None,
        says: None,
        remedy: String::new(),
    }
}

/// Returns the row of a file that the user named. It may be any model, so only its magic bytes are checked.
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
        aliases: Vec::new(),
        installed: beginning.is_ok(),
        bytes: fs::metadata(path).ok().map(|meta| meta.len()),
        sha256: says.is_none().then(|| weights::hash_of(path, environment).ok()).flatten(),
        verified: None,
        licence: None,
        context: None,
        memory: None,
        from: Some(env_vars::WEIGHTS.to_owned()),
        path: Some(path.to_owned()),
        says,
        remedy: format!("Name another file with `{}`", env_vars::WEIGHTS),
    }
}

/// Returns the table of all rows. `cogn model path` prints the path of a file.
pub(super) fn table(rows: &[ModelRow]) -> TextTable {
    TextTable::new(["NAME", "STATE", "SIZE", "LICENCE", "CONTEXT", "MEMORY", "FROM"])
        .right(&[2, 4, 5])
        .optional_columns(&[6, 4])
        .with(rows.iter().map(cells))
}

fn cells(row: &ModelRow) -> Vec<String> {
    let state = match (row.installed, row.verified, &row.says) {
        (_, _, Some(why)) => format!("{BAD}{why}{BAD:#}"),
        (false, ..) => format!("{FAINT}not here{FAINT:#}"),
        (true, Some(_), _) => format!("{GOOD}verified{GOOD:#}"),
        (true, None, _) => "not verified".to_owned(),
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let name = row.aliases.first().copied().unwrap_or(&row.name);
    vec![
        format!("{NOTE}{name}{NOTE:#}"),
        state,
        text(row.bytes.map(weights::megabytes)),
        text(row.licence.map(str::to_owned)),
        text(row.context.map(|tokens| tokens.to_string())),
        text(row.memory.map(weights::megabytes)),
        text(row.from.clone()),
    ]
}
