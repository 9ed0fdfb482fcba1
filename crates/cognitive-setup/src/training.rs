//! Trains an embedded model on the labelled cases of a module, for `cogn train`. Other models cannot be trained,
//! because they do not expose their hidden states. Writes no file.

use cognitive_contract::ports::Example;
use cognitive_contract::trained_model::{TrainingCase, TrainingProgress, TrainingReport};
use cognitive_contract::{ErrorCode, Failure, Module};

use crate::embedded_model::WeightsFetch;
use crate::settings::{Environment, ProviderChoice, Settings};

/// The inputs of a training.
pub struct TrainingInput<'a> {
    /// The resolved settings, which name the model.
    pub settings: &'a Settings,
    /// The module.
    pub module: &'a Module,
    /// The worked examples of the module, as a model gets them.
    pub examples: &'a [Example],
    /// The labelled cases of the module.
    pub cases: &'a [TrainingCase],
    /// Receives the progress.
    pub progress: &'a (dyn Fn(TrainingProgress) + Sync),
    /// Returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Trains the resolved model. Downloads its weights if requested.
pub fn train(
    wish: &TrainingInput<'_>,
    environment: Environment<'_>,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<TrainingReport, Failure> {
    let ProviderChoice::Embedded { weights } = &wish.settings.provider else {
        return Err(Failure::new(
            ErrorCode::ProviderUnavailable,
            "only a model that runs in this process can be trained",
        )
        .suggest("Name one with `--model embedded/NAME`; `cogn model list` shows them"));
    };
    with_model(wish, weights, environment, fetch)
}

#[cfg(feature = "local")]
fn with_model(
    wish: &TrainingInput<'_>,
    weights: &crate::weights::WeightsChoice,
    environment: Environment<'_>,
    fetch: Option<WeightsFetch<'_>>,
) -> Result<TrainingReport, Failure> {
    use cognitive_contract::ports::{Provider as _, ProviderError};
    use cognitive_local::TrainingPlan;

    use crate::embedded_model::{self, EmbeddedUse};

    let model = embedded_model::open(weights, wish.settings, environment, EmbeddedUse::OneByOne, fetch)?;
    let Some(contract) = model.target().map(|target| wish.module.provider_schema(target)) else {
        return Err(Failure::new(ErrorCode::InternalError, "the embedded model has no contract"));
    };
    let plan = TrainingPlan {
        contract: &contract,
        examples: wish.examples,
        cases: wish.cases,
        progress: wish.progress,
        stop: wish.stop,
    };
    model.train(&plan).map_err(|error| match error {
        ProviderError::Interrupted(why) => Failure::cancellation(&why),
        error => Failure::new(ErrorCode::ProviderUnavailable, error.to_string()),
    })
}

#[cfg(not(feature = "local"))]
fn with_model(
    _: &TrainingInput<'_>,
    _: &crate::weights::WeightsChoice,
    _: Environment<'_>,
    _: Option<WeightsFetch<'_>>,
) -> Result<TrainingReport, Failure> {
    Err(Failure::new(ErrorCode::ProviderUnavailable, "this build has no embedded model to train")
        .suggest("Build with the cargo feature `local`, which is on by default"))
}
