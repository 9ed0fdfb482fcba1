//! Models that authors may name besides the one that is configured: `serve.models`, and those of `providers` that nobody has built
//! yet. A service is set up at once, which asks nobody; the embedded model is opened when it is first asked.

use std::sync::Arc;

use cognitive_contract::Failure;
use cognitive_contract::ports::Provider;

use crate::config::Config;
use crate::embedded::EmbeddedUse;
use crate::settings::{ProviderChoice, RungChoice, SettingOverrides, Settings, named_rung};
use crate::wiring;

/// A model that can be built.
pub struct LazyModel {
    /// `provider/model`.
    pub name: String,
    /// Whether what it is asked stays on this machine.
    pub is_local: bool,
    /// Builds it.
    pub make: Arc<dyn Fn() -> Result<Arc<dyn Provider>, Failure> + Send + Sync>,
}

/// The models of these names, and why others cannot be asked. Names are those that `--provider` and `--model` take, with a slash
/// between.
pub fn named_models(
    names: &[String],
    settings: &Settings,
    typed: &SettingOverrides,
    config: &Config,
) -> Result<(Vec<LazyModel>, Vec<String>), Failure> {
    let (mut models, mut left_out) = (Vec::new(), Vec::new());
    // An address that was typed is meant for the model that was typed; the key of another has no business there.
    let typed = &SettingOverrides { base_url: None, ..typed.clone() };
    for name in names {
        let rung = named_rung(name, typed, config, &wiring::environment)?;
        match named_model(rung, settings) {
            Ok(model) => models.push(model),
            Err(failure) => {
                let hint = failure.suggestion().map(|hint| format!(". {hint}")).unwrap_or_default();
                left_out.push(format!("`{name}` cannot be asked: {}{hint}", failure.message()));
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
    let name = provider.destination().unwrap_or_default().asked(provider.name());
    let is_local = provider.stays_here();
    Ok(LazyModel { name, is_local, make: Arc::new(move || Ok(Arc::clone(&provider))) })
}
