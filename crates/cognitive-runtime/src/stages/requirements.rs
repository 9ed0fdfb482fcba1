//! Checks whether a provider can serve a module at all. (E4001)
//! A missing preference, or one that a text answer can do without, becomes a warning. Never drops a requirement
//! silently, and chooses nothing: `models.rs` does.

use cognitive_contract::manifest::Manifest;
use cognitive_contract::media::Category;
use cognitive_contract::ports::{FailureKind, Provider};
use cognitive_contract::{ErrorCode, Failure, Warning};
use serde_json::json;

/// The ability of a provider to accept media. A saved reply has it: it was recorded with them.
pub(crate) const MEDIA: &str = "media";

/// Returns the warnings about preferences that a model does not have.
pub(crate) fn warnings(manifest: &Manifest, provider: &dyn Provider) -> Vec<Warning> {
    let mut warnings = not_offered(manifest, provider);
    warnings.extend(no_media_in_the_answer(manifest, provider));
    warnings
}

/// Fails with the reason why a model cannot serve the module at all.
pub(crate) fn check(manifest: &Manifest, provider: &dyn Provider) -> Result<(), Failure> {
    if let Some(failure) = provider.unavailable() {
        return Err(failure.clone());
    }
    if manifest.runtime_requirements.structured_output && !provider.structured_output() {
        let message =
            format!("the module requires JSON, which provider `{}` does not support", provider.name());
        return Err(Failure::new(ErrorCode::ProviderUnavailable, message)
            .with_detail("missing", json!(["structured_output"]))
            .with_detail("provider", json!(provider.name()))
            .with_detail("kind", json!(FailureKind::Unsuitable.word()))
            .with_recoverable(false)
            .suggest("Choose another provider with `--provider`"));
    }
    unsuitable(manifest, provider).map_or(Ok(()), Err)
}

/// Refuses a model that is known to lack a required capability: its answer would look valid without being so.
/// Capabilities that the provider does not report as missing are ignored.
fn unsuitable(manifest: &Manifest, provider: &dyn Provider) -> Option<Failure> {
    let needed = manifest.runtime_requirements.required_capabilities.iter();
    let missing: Vec<&str> =
        needed.map(String::as_str).filter(|needed| provider.lacks().contains(needed)).collect();
    let names = join_names(missing.iter().copied())?;
    let message = format!(
        "the model of provider `{}` is too small for this module; it lacks: {names}",
        provider.name()
    );
    let elsewhere = "Use a larger model: set the key of a service (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, \
                     `GEMINI_API_KEY`), start Ollama, name a server with `--base-url`, or choose one with `--provider`";
    Some(
        Failure::new(ErrorCode::ProviderUnavailable, message)
            .with_detail("provider", json!(provider.name()))
            .with_detail("kind", json!(FailureKind::Unsuitable.word()))
            .with_detail("missing", json!(missing))
            .with_recoverable(false)
            .suggest(elsewhere),
    )
}

fn has(provider: &dyn Provider, wanted: &str) -> bool {
    provider.capabilities().contains(&wanted)
}

fn not_offered(manifest: &Manifest, provider: &dyn Provider) -> Vec<Warning> {
    let wanted = manifest.runtime_requirements.preferred_capabilities.iter();
    let missing = wanted.filter(|wanted| !has(provider, wanted));
    let warning = |wanted| Warning::new("CAPABILITY", format!("the provider does not offer: `{wanted}`"));
    missing.map(warning).collect()
}

/// Warns about media that the provider cannot produce: it can still answer in text. (MEDIA-020)
fn no_media_in_the_answer(manifest: &Manifest, provider: &dyn Provider) -> Option<Warning> {
    let missing =
        |category: &Category| category.is_given(&manifest.modalities.output) && !provider.gives(*category);
    let kinds = join_names(Category::ALL.into_iter().filter(missing).map(Category::word));
    let code = ErrorCode::MultimodalNotSupported.number();
    let warning =
        |kinds| Warning::new(code, format!("the provider does not produce media of the category: {kinds}"));
    kinds.filter(|_| !has(provider, MEDIA)).map(warning)
}

/// Joins names in backticks, each once; `None` if there are none.
fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names.map(|name| format!("`{name}`")) {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    (!seen.is_empty()).then(|| seen.join(", "))
}
