//! The embedded model as a provider: finds its weights, fetches them once where that is allowed, and opens them.
//! Says plainly what such a model is good for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::Provider;
use cognitive_contract::{Envelope, ErrorCode, Failure};
use serde_json::Value;

use crate::env_vars;
use crate::printer::Printer;
use crate::settings::{EMBEDDED, Environment};
use crate::weights::{
    self, BUILT_IN, BuiltIn, Found, Place, PullError, SMOLLM2, Screen, Sources, Watch as _,
};

/// What people should know of an answer of the embedded model.
pub(crate) const HONESTY: &str = "answered by the embedded model: it copies and labels; it does not reason";

/// Whether this build has the engine.
pub(crate) const IN_THIS_BUILD: bool = cfg!(feature = "embedded");

/// Whether an envelope holds an answer of the embedded model.
pub(crate) fn answered(envelope: &Envelope) -> bool {
    let model = envelope.meta().extra.get("model").and_then(Value::as_str);
    model.and_then(|model| model.strip_prefix(EMBEDDED)).is_some_and(|rest| rest.starts_with('/'))
}

/// Weights that are at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Weights {
    /// In a file.
    File(PathBuf),
    /// In this program.
    BuiltIn(BuiltIn),
}

/// The name of weights that are part of this program. Only of the usual ones is it known.
pub(crate) fn built_in_name(weights: &BuiltIn) -> &'static str {
    if weights.sha256 == SMOLLM2.sha256 { SMOLLM2.name } else { "built-in" }
}

/// The weights, if they are at hand: the file that was named, else those in this program, else those in the cache.
pub(crate) fn at_hand(named: Option<&Path>, environment: Environment<'_>) -> Option<Weights> {
    if let Some(path) = named {
        return Some(Weights::File(path.to_owned()));
    }
    if let Some(weights) = BUILT_IN {
        return Some(Weights::BuiltIn(weights));
    }
    let file = Place::of(&SMOLLM2, environment)?.file();
    (weights::look(&SMOLLM2, &file) == Found::Right).then_some(Weights::File(file))
}

/// What a provider is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// One answer after the other, each as fast as can be.
    OneByOne,
    /// Many callers at once, none of whom may starve.
    Server,
}

/// Whether weights may be fetched, and how long that may take where the user said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetching {
    pub(crate) forbidden: bool,
    pub(crate) patience: Option<Duration>,
}

/// The provider. Fetches the weights if they are not at hand, unless that is forbidden.
pub(crate) fn provider(
    named: Option<&Path>,
    fetching: Fetching,
    environment: Environment<'_>,
    wanted: Use,
) -> Result<Arc<dyn Provider>, Failure> {
    if !IN_THIS_BUILD {
        return Err(not_built());
    }
    let weights = match at_hand(named, environment) {
        Some(weights) => weights,
        None => Weights::File(fetch(fetching, environment)?),
    };
    open(&weights, environment, wanted)
}

/// Fetches the weights and says so.
fn fetch(fetching: Fetching, environment: Environment<'_>) -> Result<PathBuf, Failure> {
    let known = &SMOLLM2;
    if fetching.forbidden {
        let why = format!("fetching is forbidden by `--no-pull` or `{}`", env_vars::OFFLINE);
        return Err(weights::missing(known, &why, &[]));
    }
    let Some(place) = Place::of(known, environment) else {
        let why = format!("neither `{}` nor `{}` says where to keep them", env_vars::CACHE, env_vars::HOME);
        return Err(weights::missing(known, &why, &[]));
    };
    let printer = Printer;
    let screen = Screen::new(&printer, false);
    screen.note(&format!(
        "fetching the embedded model {} ({}) into {}, this once",
        known.name,
        weights::megabytes(known.length),
        place.folder().display()
    ));
    let pulled = weights::pull(known, &place, &Sources::of(environment).within(fetching.patience), &screen);
    pulled.map(|pulled| pulled.path).map_err(|error| unpulled(&error))
}

/// A pull that came to nothing, as a failure.
pub(crate) fn unpulled(error: &PullError) -> Failure {
    match error {
        PullError::Cancelled => {
            Failure::cancelled("the fetching of the embedded model was cancelled by the user")
                .suggest("Run it again; it goes on where it stopped")
        }
        PullError::Cache(why) => weights::missing(&SMOLLM2, why, &[]),
        PullError::Nowhere(tried) => {
            let reasons: Vec<String> = tried.iter().map(ToString::to_string).collect();
            weights::missing(&SMOLLM2, &format!("nobody gives them ({})", reasons.join("; ")), tried)
        }
    }
}

fn not_built() -> Failure {
    Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured, and this build has no embedded model")
        .suggest(
            "Set `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, run Ollama and use `--provider ollama`, or \
             build with the cargo feature `embedded`, which is on by default",
        )
}

#[cfg(feature = "embedded")]
fn open(weights: &Weights, environment: Environment<'_>, wanted: Use) -> Result<Arc<dyn Provider>, Failure> {
    use cognitive_local::Embedded;
    let opened = match weights {
        Weights::BuiltIn(weights) => {
            Ok(Embedded::from_static(built_in_name(weights), weights.bytes, weights.sha256))
        }
        Weights::File(path) => Embedded::open_before(path, Arc::new(weights::expectation(path, environment))),
    };
    match opened {
        Ok(model) if wanted == Use::Server => Ok(Arc::new(model.for_server())),
        Ok(model) => Ok(Arc::new(model)),
        Err(error) => Err(Failure::new(ErrorCode::ProviderUnavailable, error.to_string()).suggest(format!(
            "Name another file with `{}` or `--model`, or leave both out and run `cogn model pull`",
            env_vars::WEIGHTS
        ))),
    }
}

#[cfg(not(feature = "embedded"))]
fn open(_: &Weights, _: Environment<'_>, _: Use) -> Result<Arc<dyn Provider>, Failure> {
    Err(not_built())
}
