//! User models with a name: a file is linked or copied into the user's cache, loaded once by the engine and recorded
//! with its hash. The model that answers later is therefore the one that was added. Refuses files that the engine
//! cannot compute, and names that are taken. Never changes the source file.

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
use super::{expected_weights::ExpectedWeights, file};
#[cfg(feature = "local")]
use crate::out_file;
use crate::settings::Environment;

/// The maximum length of a name that a user can reasonably type.
const MAX_NAME: usize = 64;

/// A record is small; a larger file is not a record.
const MAX_RECORD: u64 = 16 << 10;

/// The suffix of a record, after the name of its model.
const RECORD_ENDING: &str = ".gguf.added";

/// A model that the user added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedWeights {
    /// The name that the user gave it.
    #[serde(skip)]
    pub name: String,
    /// The length in bytes.
    pub length: u64,
    /// The hash of the file when it was added.
    pub sha256: String,
    /// The source file.
    pub from: String,
}

impl AddedWeights {
    /// Returns the model with this name, if there is one.
    #[must_use]
    pub fn find(name: &str, environment: Environment<'_>) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if !is_name(&name) {
            return None;
        }
        let place = WeightsFolder::from_name(&name, environment)?;
        Self::read(&place.record(), &name)
    }

    /// Returns all added models, sorted by name.
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

/// Returns the path of the record that belongs to a model file.
pub(super) fn record_of(file: PathBuf) -> PathBuf {
    let mut name = file.into_os_string();
    name.push(".added");
    PathBuf::from(name)
}

/// Returns whether a model can have this name: lowercase letters, digits, `.`, `_` and `-`, starting with a letter or a
/// digit. A name that ends in `.gguf` is a file.
fn is_name(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let first = text.bytes().next().is_some_and(letter);
    let rest = text.bytes().all(|byte| letter(byte) || matches!(byte, b'.' | b'_' | b'-'));
    first && rest && text.len() <= MAX_NAME && super::choice::weights_file(text).is_none()
}

/// The result of adding a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedAs {
    /// The file is a copy of known weights and now has their name.
    Known(&'static KnownWeights),
    /// The file is a user model.
    Own(AddedWeights),
}

/// Adds a file under the given name. The default is the name of the known weights with this hash, else the file name.
#[cfg(feature = "local")]
pub fn add(file: &Path, name: Option<&str>, environment: Environment<'_>) -> Result<AddedAs, Failure> {
    let shown = file.display();
    let unreadable = |error: io::Error| unavailable(format!("cannot read `{shown}`: {error}"));
    let source = file.canonicalize().map_err(unreadable)?;
    let length = source.metadata().map_err(unreadable)?;
    if !length.is_file() {
        return Err(unavailable(format!("not a file: `{shown}`")));
    }
    let (length, models) = (length.len(), super::models_or_failure(environment)?);
    let own = name.map_or_else(|| name_of(&source), |name| Ok(name.to_owned()))?;
    free(&own, name.is_some(), environment)?;
    MemoryNeed::for_length(&own, length).check()?;
    let unwritable =
        |error: io::Error| unavailable(format!("cannot write to `{}`: {error}", models.display()));
    fs::create_dir_all(&models).map_err(unwritable)?;
    let scratch = tempfile::Builder::new().prefix(".adding").tempdir_in(&models).map_err(unwritable)?;
    let draft = scratch.path().join("model.gguf");
    // A hard link costs nothing. Across file systems, or where links are forbidden, the file is copied.
    if fs::hard_link(&source, &draft).is_err() {
        file::room(&models, length).map_err(unavailable)?;
        fs::copy(&source, &draft).map_err(unwritable)?;
    }
    let sha256 = load_and_hash(&draft)?;
    let from = source.display().to_string();
    if let Some(known) = KnownWeights::with_hash(&sha256).filter(|_| name.is_none()) {
        let place = WeightsFolder::in_models(known.name, &models);
        file::install(&draft, &place, &from).map_err(unwritable)?;
        return Ok(AddedAs::Known(known));
    }
    let place = WeightsFolder::in_models(&own, &models);
    let added = AddedWeights { name: own, length, sha256, from };
    let record = serde_json::to_string(&added).unwrap_or_default();
    // The record is written first: a model file without a record would be orphaned.
    out_file::write(&place.record(), record.as_bytes()).map_err(unwritable)?;
    fs::rename(&draft, place.file()).map_err(unwritable)?;
    Ok(AddedAs::Own(added))
}

/// This build has no engine.
#[cfg(not(feature = "local"))]
pub fn add(_: &Path, _: Option<&str>, _: Environment<'_>) -> Result<AddedAs, cognitive_contract::Failure> {
    let message = "this build has no embedded model";
    Err(cognitive_contract::Failure::new(cognitive_contract::ErrorCode::ProviderUnavailable, message)
        .suggest("Build with the cargo feature `local`, which is on by default"))
}

#[cfg(feature = "local")]
fn unavailable(message: String) -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, message)
}

/// Derives a name: `Qwen3-0.6B.Q8_0.gguf` → `qwen3-0.6b.q8_0`.
#[cfg(feature = "local")]
fn name_of(file: &Path) -> Result<String, Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if is_name(&name) {
        return Ok(name);
    }
    Err(unavailable(format!("the file name is not a valid model name: `{name}`"))
        .suggest("Choose one with `--name`: lower-case letters, digits, `.`, `_` and `-`"))
}

/// Refuses invalid names and those of other models. A derived name may be a known one, because the file may be that
/// very model.
#[cfg(feature = "local")]
fn free(name: &str, asked: bool, environment: Environment<'_>) -> Result<(), Failure> {
    if !is_name(name) {
        return Err(unavailable(format!("invalid model name: `{name}`"))
            .suggest("Use lower-case letters, digits, `.`, `_` and `-`, without the ending `.gguf`"));
    }
    if KnownWeights::from_name(name).is_some() && asked {
        return Err(unavailable(format!("the name is reserved for a known model: `{name}`"))
            .suggest("Choose another with `--name`, or leave it out: the file is recognised by its hash"));
    }
    if AddedWeights::find(name, environment).is_some() {
        return Err(unavailable(format!("a model of this name exists: `{name}`")).suggest(format!(
            "Remove it with `cogn model rm {name}`, or choose another name with `--name`"
        )));
    }
    Ok(())
}

/// Loads a file with the engine, which verifies all of it, and returns its hash.
#[cfg(feature = "local")]
fn load_and_hash(path: &Path) -> Result<String, Failure> {
    use std::sync::Arc;

    use cognitive_local::{EmbeddedProvider, OpenError};

    // This file cannot be downloaded again, so the hints about downloads are left out.
    let unusable = |error: OpenError| match error {
        OpenError::Load(error) => unavailable(format!("the file cannot be used as a model: {error}")),
        other => unavailable(other.to_string()),
    };
    let witness = Arc::new(ExpectedWeights::new(None, None));
    let opened = EmbeddedProvider::open_before(path, Arc::clone(&witness) as Arc<_>);
    opened.and_then(|model| model.load()).map_err(unusable)?;
    witness.file_hash().ok_or_else(|| unavailable("the file cannot be read".to_owned()))
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
