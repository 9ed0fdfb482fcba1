//! The embedded model as a provider: finds its weights, downloads them once if allowed, and opens them.
//! States the limits of such a model plainly.

use std::path::PathBuf;
#[cfg(feature = "local")]
use std::sync::Arc;

use cognitive_contract::{Envelope, ErrorCode, Failure};
use serde_json::Value;

#[cfg(feature = "local")]
use crate::env_vars;
use crate::settings::{EMBEDDED, Environment, Settings};
use crate::weights::{
    self, BUILT_IN, BuiltIn, KnownWeights, PullError, PullProgress, WeightsChoice, WeightsState,
};
#[cfg(feature = "local")]
use crate::weights::{MemoryNeed, PullSources, WeightsFolder};
#[cfg(feature = "local")]
use cognitive_local::EmbeddedProvider;
#[cfg(not(feature = "local"))]
use cognitive_runtime::Unavailable;

/// The largest download during server start. A supervisor would treat a longer silence as a failure.
#[cfg(feature = "local")]
const MAX_FETCH_OF_SERVER: u64 = 200_000_000;

/// The notice for users about answers of the embedded model.
pub const HONESTY: &str = "answered by the embedded model: it copies and labels; it does not reason";

/// True if this build has the engine.
pub const IN_THIS_BUILD: bool = cfg!(feature = "local");

/// Returns whether an envelope holds an answer of the embedded model.
#[must_use]
pub fn has_embedded_answer(envelope: &Envelope) -> bool {
    let model = envelope.meta().extra.get("model").and_then(Value::as_str);
    model.and_then(|model| model.strip_prefix(EMBEDDED)).is_some_and(|rest| rest.starts_with('/'))
}

/// Weights that are available locally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsAtHand {
    /// In a file.
    File(PathBuf),
    /// In this program.
    BuiltIn(BuiltIn),
}

/// Returns the name of weights that are part of this program: `built-in` if they are not known ones.
#[must_use]
pub fn built_in_name(weights: &BuiltIn) -> &'static str {
    KnownWeights::with_hash(weights.sha256).map_or("built-in", |known| known.name)
}

/// Returns the chosen weights if they are available. If none were named, the weights in this program come first.
#[must_use]
pub fn at_hand(choice: &WeightsChoice, environment: Environment<'_>) -> Option<WeightsAtHand> {
    let is_built_in = |weights: &BuiltIn| match choice {
        WeightsChoice::Usual => true,
        WeightsChoice::Known(known) => known.sha256 == weights.sha256,
        WeightsChoice::Added(_) | WeightsChoice::File(_) => false,
    };
    if let Some(weights) = BUILT_IN.filter(is_built_in) {
        return Some(WeightsAtHand::BuiltIn(weights));
    }
    let file = choice.file(environment)?;
    let found = match choice {
        // A missing user-named file is reported when it is opened.
        WeightsChoice::File(_) => WeightsState::Right,
        WeightsChoice::Added(added) => weights::look_for(added.length, &file),
        WeightsChoice::Usual | WeightsChoice::Known(_) => weights::look(choice.known_weights()?, &file),
    };
    (found == WeightsState::Right).then_some(WeightsAtHand::File(file))
}

/// The workload that a provider is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddedUse {
    /// One answer at a time, each as fast as possible.
    OneByOne,
    /// Many concurrent callers, scheduled fairly.
    Server,
}

/// Permission to download missing weights. Without it, a provider without weights is a failure.
#[derive(Clone, Copy)]
pub struct WeightsFetch<'a> {
    /// Receives the progress.
    pub progress: &'a dyn PullProgress,
    /// Called before a download starts: a run that would fail before its call should not trigger one.
    pub before: &'a dyn Fn() -> Result<(), Failure>,
}

/// Opens the model as a provider. Downloads missing weights if requested and not forbidden. Refuses beforehand a model
/// that does not fit into memory.
#[cfg(feature = "local")]
pub(crate) fn open(
    choice: &WeightsChoice,
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<EmbeddedProvider, Failure> {
    let here = at_hand(choice, environment);
    let need = fits(choice, here.as_ref())?;
    let weights = match here {
        Some(weights) => weights,
        None => WeightsAtHand::File(fetch_weights(choice, settings, environment, wanted, fetch)?),
    };
    let opened = match &weights {
        WeightsAtHand::BuiltIn(weights) => {
            Ok(EmbeddedProvider::from_static(built_in_name(weights), weights.bytes, weights.sha256))
        }
        WeightsAtHand::File(path) => {
            EmbeddedProvider::open_before(path, Arc::new(weights::expectation(path, environment)))
        }
    };
    let opened = opened.map_err(|error| {
        Failure::new(ErrorCode::ProviderUnavailable, error.to_string()).suggest(format!(
            "Name another file with `{}` or `--model`, or leave both out and run `cogn model pull`",
            env_vars::WEIGHTS
        ))
    })?;
    let opened = match need.and_then(|need| need.text_memory()) {
        Some(bytes) => opened.with_text_memory(bytes),
        None => opened,
    };
    Ok(if wanted == EmbeddedUse::Server { opened.for_server() } else { opened })
}

/// Refuses weights that do not fit into memory, and reports how much they need.
#[cfg(feature = "local")]
fn fits(choice: &WeightsChoice, here: Option<&WeightsAtHand>) -> Result<Option<MemoryNeed>, Failure> {
    let need = match here {
        Some(WeightsAtHand::BuiltIn(weights)) => match KnownWeights::with_hash(weights.sha256) {
            Some(known) => Some(MemoryNeed::for_known(known)),
            None => Some(MemoryNeed::for_length(built_in_name(weights), weights.bytes.len() as u64)),
        },
        Some(WeightsAtHand::File(path)) => MemoryNeed::for_choice(choice, Some(path)),
        None => MemoryNeed::for_choice(choice, None),
    };
    need.map(|need| need.check().map(|()| need)).transpose()
}

/// This build has no engine.
#[cfg(not(feature = "local"))]
pub(crate) fn open(
    _: &WeightsChoice,
    _: &Settings,
    _: Environment<'_>,
    _: EmbeddedUse,
    _: Option<WeightsFetch<'_>>,
) -> Result<Unavailable, Failure> {
    Err(Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured, and this build has no embedded model")
        .suggest(
            "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, run Ollama and use `--provider ollama`, or \
             build with the cargo feature `local`, which is on by default",
        ))
}

#[cfg(feature = "local")]
fn fetch_weights(
    choice: &WeightsChoice,
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<PathBuf, Failure> {
    let Some(known) = choice.known_weights() else { return Err(missing_file(&choice.name())) };
    if let Some(fetch) = &fetch {
        (fetch.before)()?;
    }
    if settings.offline {
        let why = format!("downloads are disabled by `--no-pull` or `{}`", env_vars::OFFLINE);
        return Err(weights::missing(known, &why, &[]));
    }
    let Some(WeightsFetch { progress, .. }) = fetch else {
        let why = "they are not on this machine, and a library does not download them";
        return Err(weights::missing(known, why, &[]));
    };
    if wanted == EmbeddedUse::Server && known.length > MAX_FETCH_OF_SERVER {
        let size = weights::megabytes(known.length);
        let why = format!("they are not on this machine, and a server does not download {size} at startup");
        return Err(weights::missing(known, &why, &[]));
    }
    let Some(place) = WeightsFolder::for_weights(known, environment) else {
        let why = format!(
            "no cache folder is configured: neither `{}` nor `{}` is set",
            env_vars::CACHE,
            env_vars::HOME
        );
        return Err(weights::missing(known, &why, &[]));
    };
    progress.note(&weights::announcement(known, &place));
    let sources = PullSources::for_weights(known, environment).with_timeout(settings.patience);
    weights::pull(known, &place, &sources, progress)
        .map(|pulled| pulled.path)
        .map_err(|error| pull_failure(known, &error))
}

/// Reports a user model whose record exists but whose file is missing or truncated.
#[cfg(feature = "local")]
fn missing_file(name: &str) -> Failure {
    Failure::new(
        ErrorCode::ProviderUnavailable,
        format!("the file of the embedded model is missing or truncated: `{name}`"),
    )
    .suggest(format!("Remove it with `cogn model rm {name}`, and add the file again with `cogn model add`"))
    .with_detail("provider", serde_json::json!(EMBEDDED))
}

/// Turns a failed pull into a failure.
pub fn pull_failure(known: &KnownWeights, error: &PullError) -> Failure {
    match error {
        PullError::Cancelled => {
            Failure::cancellation("the download of the embedded model was cancelled by the user")
                .suggest("Run it again; the download resumes where it stopped")
        }
        PullError::Cache(why) => weights::missing(known, why, &[]),
        PullError::Nowhere(tried) => {
            let reasons: Vec<String> = tried.iter().map(ToString::to_string).collect();
            weights::missing(known, &format!("no source provides them ({})", reasons.join("; ")), tried)
        }
    }
}
