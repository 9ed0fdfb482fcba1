//! The models that would be asked, for a plan: nobody is asked, so no key is needed and no weights are opened or fetched.

use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_contract::ports::{
    CallSink, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_runtime::Ladder;

use crate::embedded::EmbeddedUse;
use crate::services::Kind;
use crate::settings::{EMBEDDED, ProviderChoice, Settings};
use crate::wiring::{self, ChosenModels, environment};

/// What stands in for a key that nobody sends.
const NO_KEY: &str = "a plan needs no key";

/// The models of the settings, none of which answers.
pub fn models(settings: &Settings) -> Result<ChosenModels, Failure> {
    let provider = model(settings)?;
    let mut rungs = Vec::new();
    for rung in &settings.rungs {
        let (provider, refused_address) = (rung.provider.clone(), rung.refused_address.clone());
        rungs.push(model(&Settings { provider, refused_address, rungs: Vec::new(), ..settings.clone() })?);
    }
    let ladder = (!rungs.is_empty()).then(|| Ladder { rungs, rules: settings.climb });
    Ok(ChosenModels { provider, ladder, left_out: Vec::new() })
}

fn model(settings: &Settings) -> Result<Arc<dyn Provider>, Failure> {
    match &settings.provider {
        ProviderChoice::Embedded { weights } => Ok(Arc::new(StandIn { model: weights.name() })),
        ProviderChoice::Service { .. } | ProviderChoice::Replay => {
            wiring::provider(settings, &environment_with_keys, EmbeddedUse::OneByOne, None)
        }
    }
}

fn environment_with_keys(name: &str) -> Option<String> {
    let is_key = || Kind::all().any(|kind| kind.key_variable() == Some(name));
    environment(name).or_else(|| is_key().then(|| NO_KEY.to_owned()))
}

/// The embedded model, unopened.
struct StandIn {
    model: String,
}

impl Provider for StandIn {
    fn name(&self) -> &str {
        EMBEDDED
    }

    fn stays_here(&self) -> bool {
        true
    }

    fn destination(&self) -> Option<Destination> {
        Some(Destination { model: Some(self.model.clone()), address: None })
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        _: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async { Err(ProviderError::Misconfigured("a plan asks no model".to_owned())) })
    }
}
