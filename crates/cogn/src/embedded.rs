//! The embedded model as a provider: finds its weights, fetches them once where that is allowed, and opens them.
//! Says plainly what such a model is good for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::ports::Provider;
use cognitive_contract::{Envelope, ErrorCode, Failure};
use serde_json::Value;

#[cfg(feature = "local")]
use crate::env_vars;
use crate::settings::{EMBEDDED, Environment, Settings};
#[cfg(feature = "local")]
use crate::weights::PullSources;
use crate::weights::{
    self, BUILT_IN, BuiltIn, PullError, PullProgress, SMOLLM2, WeightsFolder, WeightsState,
};

/// What people should know of an answer of the embedded model.
pub const HONESTY: &str = "answered by the embedded model: it copies and labels; it does not reason";

/// Whether this build has the engine.
pub const IN_THIS_BUILD: bool = cfg!(feature = "local");

/// Whether an envelope holds an answer of the embedded model.
#[must_use]
pub fn answered(envelope: &Envelope) -> bool {
    let model = envelope.meta().extra.get("model").and_then(Value::as_str);
    model.and_then(|model| model.strip_prefix(EMBEDDED)).is_some_and(|rest| rest.starts_with('/'))
}

/// Weights that are at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeightsAtHand {
    /// In a file.
    File(PathBuf),
    /// In this program.
    BuiltIn(BuiltIn),
}

/// The name of weights that are part of this program. Only of the usual ones is it known.
#[must_use]
pub fn built_in_name(weights: &BuiltIn) -> &'static str {
    if weights.sha256 == SMOLLM2.sha256 { SMOLLM2.name } else { "built-in" }
}

/// The weights, if they are at hand: the file that was named, else those in this program, else those in the cache.
#[must_use]
pub fn at_hand(named: Option<&Path>, environment: Environment<'_>) -> Option<WeightsAtHand> {
    if let Some(path) = named {
        return Some(WeightsAtHand::File(path.to_owned()));
    }
    if let Some(weights) = BUILT_IN {
        return Some(WeightsAtHand::BuiltIn(weights));
    }
    let file = WeightsFolder::of(&SMOLLM2, environment)?.file();
    (weights::look(&SMOLLM2, &file) == WeightsState::Right).then_some(WeightsAtHand::File(file))
}

/// What a provider is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmbeddedUse {
    /// One answer after the other, each as fast as can be.
    OneByOne,
    /// Many callers at once, none of whom may starve.
    Server,
}

/// The wish to fetch weights that are not at hand. Without it a provider without weights is a failure.
#[derive(Clone, Copy)]
pub struct WeightsFetch<'a> {
    /// Hears how it goes on.
    pub progress: &'a dyn PullProgress,
    /// Asked before anything is fetched: a run that fails before its call is not worth a download.
    pub before: &'a dyn Fn() -> Result<(), Failure>,
}

/// The provider. Fetches the weights if they are not at hand, where that is wanted and not forbidden.
#[cfg(feature = "local")]
pub(crate) fn provider(
    named: Option<&Path>,
    settings: &Settings,
    environment: Environment<'_>,
    wanted: EmbeddedUse,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<Arc<dyn Provider>, Failure> {
    use cognitive_local::EmbeddedProvider;

    let weights = match at_hand(named, environment) {
        Some(weights) => weights,
        None => WeightsAtHand::File(fetched(settings, environment, fetch)?),
    };
    let opened = match &weights {
        WeightsAtHand::BuiltIn(weights) => {
            Ok(EmbeddedProvider::from_static(built_in_name(weights), weights.bytes, weights.sha256))
        }
        WeightsAtHand::File(path) => {
            EmbeddedProvider::open_before(path, Arc::new(weights::expectation(path, environment)))
        }
    };
    match opened {
        Ok(model) if wanted == EmbeddedUse::Server => Ok(Arc::new(model.for_server())),
        Ok(model) => Ok(Arc::new(model)),
        Err(error) => Err(Failure::new(ErrorCode::ProviderUnavailable, error.to_string()).suggest(format!(
            "Name another file with `{}` or `--model`, or leave both out and run `cogn model pull`",
            env_vars::WEIGHTS
        ))),
    }
}

/// There is no engine in this build.
#[cfg(not(feature = "local"))]
pub(crate) fn provider(
    _: Option<&Path>,
    _: &Settings,
    _: Environment<'_>,
    _: EmbeddedUse,
    _: Option<WeightsFetch<'_>>,
) -> Result<Arc<dyn Provider>, Failure> {
    Err(Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured, and this build has no embedded model")
        .suggest(
            "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, run Ollama and use `--provider ollama`, or \
             build with the cargo feature `local`, which is on by default",
        ))
}

#[cfg(feature = "local")]
fn fetched(
    settings: &Settings,
    environment: Environment<'_>,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<PathBuf, Failure> {
    let known = &SMOLLM2;
    if let Some(fetch) = &fetch {
        (fetch.before)()?;
    }
    if settings.offline {
        let why = format!("fetching is forbidden by `--no-pull` or `{}`", env_vars::OFFLINE);
        return Err(weights::missing(known, &why, &[]));
    }
    let Some(WeightsFetch { progress, .. }) = fetch else {
        return Err(weights::missing(
            known,
            "they are not on this machine, and a library does not fetch them",
            &[],
        ));
    };
    let Some(place) = WeightsFolder::of(known, environment) else {
        let why = format!(
            "no cache folder is configured: neither `{}` nor `{}` is set",
            env_vars::CACHE,
            env_vars::HOME
        );
        return Err(weights::missing(known, &why, &[]));
    };
    progress.note(&format!(
        "fetching the embedded model {} ({}) into {}; this happens once",
        known.name,
        weights::megabytes(known.length),
        place.folder().display()
    ));
    let sources = PullSources::of(environment).within(settings.patience);
    weights::pull(known, &place, &sources, progress)
        .map(|pulled| pulled.path)
        .map_err(|error| unpulled(&error))
}

/// A pull that came to nothing, as a failure.
pub fn unpulled(error: &PullError) -> Failure {
    match error {
        PullError::Cancelled => {
            Failure::cancelled("the download of the embedded model was cancelled by the user")
                .suggest("Run it again; the download resumes where it stopped")
        }
        PullError::Cache(why) => weights::missing(&SMOLLM2, why, &[]),
        PullError::Nowhere(tried) => {
            let reasons: Vec<String> = tried.iter().map(ToString::to_string).collect();
            weights::missing(&SMOLLM2, &format!("no source has them ({})", reasons.join("; ")), tried)
        }
    }
}
