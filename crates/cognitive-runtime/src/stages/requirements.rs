//! Stage 0: can this provider serve this module at all, and this runtime what module and input ask for? (E4001, E4011)
//! What is only preferred, and what a text answer can do without, becomes a warning. Nothing is left out in silence.

use cognitive_contract::manifest::{Manifest, OutputModality};
use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module, Warning, text};
use serde_json::{Map, Value, json};

use super::input::ValidInput;

/// The ability of a provider to take media. A saved reply has it: it was written with them.
pub(crate) const MEDIA: &str = "media";

/// Checks what the module requires, and whether the input can be given to the model whole.
pub fn check(module: &Module, input: &ValidInput, provider: &dyn Provider) -> Result<Vec<Warning>, Failure> {
    let manifest = &module.manifest;
    if manifest.runtime_requirements.structured_output && !provider.structured_output() {
        let message =
            format!("provider `{}` cannot answer in JSON, which the module requires", provider.name());
        return Err(Failure::new(ErrorCode::ProviderUnavailable, message)
            .with_detail("missing", json!(["structured_output"]))
            .suggest("Choose another provider with `--provider`"));
    }
    let takes_media = has(provider, MEDIA);
    if let Some(place) = first_medium(manifest, input.value()).filter(|_| !takes_media) {
        return Err(no_media(&place));
    }
    let mut warnings = not_offered(manifest, provider);
    warnings.extend(no_media_in_the_answer(manifest).filter(|_| !takes_media));
    Ok(warnings)
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

/// Where the first media item stands. Only modules that speak of modalities have any: to the others such an object is
/// business data. (MEDIA-002)
fn first_medium(manifest: &Manifest, input: &Value) -> Option<String> {
    let members = input.as_object().filter(|_| manifest.modalities.declared)?;
    members.iter().find_map(|(name, value)| medium_below(value, text::pointer("", name)))
}

fn medium_below(value: &Value, place: String) -> Option<String> {
    match value {
        Value::Object(members) if is_medium(members) => Some(place),
        Value::Object(members) => {
            members.iter().find_map(|(name, value)| medium_below(value, text::pointer(&place, name)))
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(at, item)| medium_below(item, text::pointer(&place, &at.to_string())))
        }
        _ => None,
    }
}

/// A kind of source, and the member that goes with it. (MEDIA-001)
fn is_medium(members: &Map<String, Value>) -> bool {
    let kind = members.get("type").and_then(Value::as_str);
    let sources = [("url", "url"), ("base64", "data"), ("file", "path")];
    sources.iter().any(|(word, companion)| kind == Some(word) && members.contains_key(*companion))
}

/// (CAP-011)
fn no_media(place: &str) -> Failure {
    let message = format!("media are not handled yet, so this item would not reach the model: `{place}`");
    Failure::new(ErrorCode::MultimodalNotSupported, message)
        .with_detail("path", json!(place))
        .with_detail("available", json!([]))
        .suggest("Send a transcript or a description in a text member, if the module has one")
}

fn no_media_in_the_answer(manifest: &Manifest) -> Option<Warning> {
    let kinds = manifest.modalities.output.iter().filter(|kind| **kind != OutputModality::Text);
    let kinds = listed(kinds.map(|kind| kind.word()));
    let code = ErrorCode::MultimodalNotSupported.number();
    kinds.map(|kinds| Warning::new(code, format!("media in answers are not handled yet: {kinds}")))
}

/// Names in backticks, each once; `None` if there are none.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names.map(|name| format!("`{name}`")) {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    (!seen.is_empty()).then(|| seen.join(", "))
}
