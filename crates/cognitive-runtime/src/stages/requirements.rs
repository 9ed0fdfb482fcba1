//! Stage 0: can this provider serve this module at all? (E4001)
//! What is only preferred becomes a warning.

use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module, Warning};
use serde_json::json;

/// Checks `runtime_requirements`; the warnings are about what is only preferred.
pub fn check(module: &Module, provider: &dyn Provider) -> Result<Vec<Warning>, Failure> {
    let requirements = &module.manifest.runtime_requirements;
    if requirements.structured_output && !provider.structured_output() {
        let message =
            format!("provider `{}` cannot answer in JSON, which the module requires", provider.name());
        return Err(Failure::new(ErrorCode::ProviderUnavailable, message)
            .with_detail("missing", json!(["structured_output"]))
            .suggest("Choose another provider with `--provider`"));
    }
    let missing = requirements.preferred_capabilities.iter().filter(|wanted| !has(provider, wanted));
    Ok(missing
        .map(|wanted| Warning::new("CAPABILITY", format!("the provider does not offer: `{wanted}`")))
        .collect())
}

fn has(provider: &dyn Provider, wanted: &str) -> bool {
    provider.capabilities().contains(&wanted)
}
