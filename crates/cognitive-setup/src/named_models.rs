//! Models that authors may name in addition to the configured one: those of `serve.models`, and those of `providers`
//! that are not built yet. Services are set up at once, without a request; the embedded model is opened on first use.

use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_contract::ports::Provider;

use crate::config::Config;
use crate::embedded_model::EmbeddedUse;
use crate::settings::{ProviderChoice, RungChoice, SettingOverrides, Settings, named_rung};
use crate::wiring;

/// A model that can be built.
pub struct LazyModel {
    /// `provider/model`.
    pub name: String,
    /// True if inputs stay on this machine.
    pub is_local: bool,
    /// Builds it.
    pub make: Arc<dyn Fn() -> Result<Arc<dyn Provider>, Failure> + Send + Sync>,
}

/// Returns the models of these names, and the reasons why others are unavailable. A name is `provider/model`, with the
/// values that `--provider` and `--model` accept.
pub fn named_models(
    names: &[String],
    settings: &Settings,
    typed: &SettingOverrides,
    config: &Config,
) -> Result<(Vec<LazyModel>, Vec<String>), Failure> {
    let (mut models, mut left_out) = (Vec::new(), Vec::new());
    // A typed address belongs to the typed model; the key of another model must not be sent there.
    let typed = &SettingOverrides { base_url: None, ..typed.clone() };
    for name in names {
        let rung = named_rung(name, typed, config, &wiring::environment)?;
        match named_model(rung, settings) {
            Ok(model) => models.push(model),
            Err(failure) => {
                let hint = failure.suggestion().map(|hint| format!(". {hint}")).unwrap_or_default();
                left_out.push(format!("model `{name}` is unavailable: {}{hint}", failure.message()));
            }
        }
    }
    Ok((models, left_out))
}

fn named_model(rung: RungChoice, settings: &Settings) -> Result<LazyModel, Failure> {
    let is_embedded = matches!(rung.provider, ProviderChoice::Embedded { .. });
    let own = settings.for_rung(&rung);
    let name = rung.name;
    let build = move || wiring::provider(&own, &wiring::environment, EmbeddedUse::Server, None);
    if is_embedded {
        return Ok(LazyModel { name, is_local: true, make: Arc::new(build) });
    }
    let provider = build()?;
    let name = provider.destination().unwrap_or_default().model_label(provider.name());
    let is_local = provider.is_local();
    Ok(LazyModel { name, is_local, make: Arc::new(move || Ok(Arc::clone(&provider))) })
}
