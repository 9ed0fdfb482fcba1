//! The models that a plan would call. No model is called, so no key is needed and no weights are opened or downloaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_contract::ports::{
    CallSink, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_runtime::{Ladder, ModelChain};

use crate::embedded_model::EmbeddedUse;
use crate::services::Kind;
use crate::settings::{EMBEDDED, ProviderChoice, Settings};
use crate::wiring::{self, ChosenModels, environment};

/// A placeholder for a key that is never sent.
const NO_KEY: &str = "a plan needs no key";

/// Returns the configured models; none of them can answer.
pub(crate) fn models(settings: &Settings) -> Result<ChosenModels, Failure> {
    let first = model(settings)?;
    let rungs: Vec<Arc<dyn Provider>> =
        settings.rungs.iter().map(|rung| model(&settings.for_rung(rung))).collect::<Result<_, _>>()?;
    let chain = if rungs.is_empty() {
        first.into()
    } else {
        ModelChain::with_ladder(first, Ladder { rungs, rules: settings.climb })
    };
    let mut of_module = BTreeMap::new();
    for (name, decision) in &settings.of_module {
        if let Some(choice) = &decision.model {
            let choice = choice.as_ref().map_err(Failure::clone)?;
            of_module.insert(name.clone(), model(&settings.for_rung(choice))?.into());
        }
    }
    Ok(ChosenModels { chain, of_module, left_out: Vec::new() })
}

fn model(settings: &Settings) -> Result<Arc<dyn Provider>, Failure> {
    match &settings.provider {
        ProviderChoice::Embedded { weights } => Ok(Arc::new(StandIn { model: weights.name() })),
        ProviderChoice::Service(_) | ProviderChoice::Replay => {
            wiring::provider(settings, &environment_with_keys, EmbeddedUse::OneByOne, None)
        }
    }
}

fn environment_with_keys(name: &str) -> Option<String> {
    let is_key = || Kind::all().any(|kind| kind.key_variable() == Some(name));
    environment(name).or_else(|| is_key().then(|| NO_KEY.to_owned()))
}

/// The embedded model, not opened.
struct StandIn {
    model: String,
}

impl Provider for StandIn {
    fn name(&self) -> &str {
        EMBEDDED
    }

    fn is_local(&self) -> bool {
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
        Box::pin(async { Err(ProviderError::Misconfigured("a plan calls no model".to_owned())) })
    }
}
