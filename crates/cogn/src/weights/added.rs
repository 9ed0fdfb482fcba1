//! Models of one's own under names: a file is linked or copied into the user's cache, loaded once by the engine and remembered
//! with its hash, so that what answers later is what was added. Refuses files that the engine cannot compute, and names that
//! are taken. Never changes the file that it is handed.

use std::fs;
#[cfg(feature = "local")]
use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "local")]
use cognitive_contract::{ErrorCode, Failure};
use serde::{Deserialize, Serialize};

#[cfg(feature = "local")]
use super::memory::MemoryNeed;
use super::{KnownWeights, WeightsFolder};
#[cfg(feature = "local")]
use super::{expected::ExpectedWeights, file};
#[cfg(feature = "local")]
use crate::out_file;
use crate::settings::Environment;

/// Longer names nobody can type.
const MAX_NAME: usize = 64;

/// A record of ours is small; whatever else is there is none.
const MAX_RECORD: u64 = 16 << 10;

/// What a record is called, after the name of its model.
const RECORD_ENDING: &str = ".gguf.added";

/// A model of the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedWeights {
    /// The name that it was given.
    #[serde(skip)]
    pub name: String,
    /// Bytes.
    pub length: u64,
    /// The hash of the file when it was added.
    pub sha256: String,
    /// The file that it was made from.
    pub from: String,
}

impl AddedWeights {
    /// The model of this name, if there is one.
    #[must_use]
    pub fn find(name: &str, environment: Environment<'_>) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if !is_name(&name) {
            return None;
        }
        let place = WeightsFolder::of_name(&name, environment)?;
        Self::read(&place.record(), &name)
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(environment: Environment<'_>) -> Vec<Self> {
        let Some(folder) = WeightsFolder::models(environment) else { return Vec::new() };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<Self> = entries
            .filter_map(|entry| {
                let file = entry.file_name();
                let name = file.to_str()?.strip_suffix(RECORD_ENDING).filter(|name| is_name(name))?;
                Self::read(&entry.path(), name)
            })
            .collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    fn read(record: &Path, name: &str) -> Option<Self> {
        let small = fs::metadata(record).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_RECORD);
        let text = if small { fs::read_to_string(record).ok()? } else { return None };
        let read: Self = serde_json::from_str(&text).ok()?;
        Some(Self { name: name.to_owned(), ..read })
    }
}

/// Where the record of a model is, given its file.
pub(super) fn record_of(file: PathBuf) -> PathBuf {
    let mut name = file.into_os_string();
    name.push(".added");
    PathBuf::from(name)
}

/// Whether a model can be called so: small letters, digits, `.`, `_` and `-`, beginning with a letter or a digit. What ends in
/// `.gguf` is a file.
fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = text.bytes().next().is_some_and(letter);
    let rest = text.bytes().all(|byte| letter(byte) || matches!(byte, b'.' | b'_' | b'-'));
    first && rest && text.len() <= MAX_NAME && super::choice::weights_file(text).is_none()
}

/// What became of a file that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedAs {
    /// Its bytes are those of known weights, whose name it has now.
    Known(&'static KnownWeights),
    /// It is a model of the user's own.
    Own(AddedWeights),
}

/// Puts a file under a name: the one that was given, else that of the known weights that it is, else that of the file.
#[cfg(feature = "local")]
pub fn add(file: &Path, name: Option<&str>, environment: Environment<'_>) -> Result<AddedAs, Failure> {
    let shown = file.display();
    let unreadable = |error: io::Error| refused(format!("cannot read `{shown}`: {error}"));
    let source = file.canonicalize().map_err(unreadable)?;
    let length = source.metadata().map_err(unreadable)?;
    if !length.is_file() {
        return Err(refused(format!("it is not a file: `{shown}`")));
    }
    let (length, models) = (length.len(), super::models_or_failure(environment)?);
    let own = name.map_or_else(|| name_of(&source), |name| Ok(name.to_owned()))?;
    free(&own, name.is_some(), environment)?;
    MemoryNeed::of_length(&own, length).check()?;
    let unwritable = |error: io::Error| refused(format!("cannot write to `{}`: {error}", models.display()));
    fs::create_dir_all(&models).map_err(unwritable)?;
    let scratch = tempfile::Builder::new().prefix(".adding").tempdir_in(&models).map_err(unwritable)?;
    let draft = scratch.path().join("model.gguf");
    // A link costs nothing. Over the border of a file system, or where the system forbids it, it is a copy.
    if fs::hard_link(&source, &draft).is_err() {
        file::room(&models, length).map_err(refused)?;
        fs::copy(&source, &draft).map_err(unwritable)?;
    }
    let sha256 = loaded(&draft)?;
    let from = source.display().to_string();
    if let Some(known) = KnownWeights::with_hash(&sha256).filter(|_| name.is_none()) {
        let place = WeightsFolder::in_models(known.name, &models);
        file::install(&draft, &place, &from).map_err(unwritable)?;
        return Ok(AddedAs::Known(known));
    }
    let place = WeightsFolder::in_models(&own, &models);
    let added = AddedWeights { name: own, length, sha256, from };
    let record = serde_json::to_string(&added).unwrap_or_default();
    // The record first: a file without one would be nobody's.
    out_file::write(&place.record(), record.as_bytes()).map_err(unwritable)?;
    fs::rename(&draft, place.file()).map_err(unwritable)?;
    Ok(AddedAs::Own(added))
}

/// There is no engine in this build.
#[cfg(not(feature = "local"))]
pub fn add(_: &Path, _: Option<&str>, _: Environment<'_>) -> Result<AddedAs, cognitive_contract::Failure> {
    let message = "this build has no embedded model";
    Err(cognitive_contract::Failure::new(cognitive_contract::ErrorCode::ProviderUnavailable, message)
        .suggest("Build with the cargo feature `local`, which is on by default"))
}

#[cfg(feature = "local")]
fn refused(message: String) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
}

/// `Qwen3-0.6B.Q8_0.gguf` → `qwen3-0.6b.q8_0`.
#[cfg(feature = "local")]
fn name_of(file: &Path) -> Result<String, Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if is_name(&name) {
        return Ok(name);
    }
    Err(refused(format!("the name of the file is no name of a model: `{name}`"))
        .suggest("Choose one with `--name`: small letters, digits, `.`, `_` and `-`"))
}

/// Refuses names that nobody could type, and those of other models. A known name that nobody asked for is no harm: the file
/// may be that very model.
#[cfg(feature = "local")]
fn free(name: &str, asked: bool, environment: Environment<'_>) -> Result<(), Failure> {
    if !is_name(name) {
        return Err(refused(format!("this is no name of a model: `{name}`"))
            .suggest("Use small letters, digits, `.`, `_` and `-`, and no ending `.gguf`"));
    }
    if KnownWeights::named(name).is_some() && asked {
        return Err(refused(format!("the name belongs to a model that `cogn` knows: `{name}`"))
            .suggest("Choose another with `--name`, or leave it out: the file is recognised by its hash"));
    }
    if AddedWeights::find(name, environment).is_some() {
        return Err(refused(format!("there is a model of this name already: `{name}`")).suggest(format!(
            "Remove it with `cogn model rm {name}`, or choose another name with `--name`"
        )));
    }
    Ok(())
}

/// Loads a file with the engine, which checks all of it, and gives its hash.
#[cfg(feature = "local")]
fn loaded(path: &Path) -> Result<String, Failure> {
    use std::sync::Arc;

    use cognitive_local::{EmbeddedProvider, OpenError};

    // Nobody could fetch this file again, so only what is wrong with it is said.
    let unusable = |error: OpenError| match error {
        OpenError::Load(error) => refused(format!("the file cannot be used as a model: {error}")),
        other => refused(other.to_string()),
    };
    let witness = Arc::new(ExpectedWeights::new(None, None));
    let opened = EmbeddedProvider::open_before(path, Arc::clone(&witness) as Arc<_>);
    opened.and_then(|model| model.load()).map_err(unusable)?;
    witness.found().ok_or_else(|| refused("the file cannot be read".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_typed_and_leads_nowhere_else() {
        for good in ["mine", "qwen3-0.6b.q8_0", "7b"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "Mine", "-x", "x.gguf", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
