//! The texts that the caller of a run sent. A module may pass an address or a file to another module only if
//! the caller named it. A model's text is data and must not make this machine fetch or read something.
//! (POL-001, POL-005, SEC-023)
//! Judges only runs on behalf of other runs; the caller's own input is checked by the media source.

use std::collections::HashSet;
use std::sync::Arc;

use cognitive_contract::context::MEMBER;
use cognitive_contract::manifest::{Allow, Policies};
use cognitive_contract::media::{self, ItemSource};
use cognitive_contract::{ErrorCode, Failure, Module};
use serde_json::{Value, json};

/// The longest text that can be an address or a path, in bytes. Longer texts need not be collected for the
/// comparison.
const MAX_REFERENCE_BYTES: usize = 8 * 1024;

/// The texts of the input that a caller sent. `None` for the root run: its whole input comes from the caller.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallerReferences(Option<Arc<HashSet<Box<str>>>>);

impl CallerReferences {
    /// Returns these texts, or those of `input` if none are known yet: then the input is the caller's own.
    pub(crate) fn or_from_input(&self, input: &Value) -> Self {
        if self.0.is_some() {
            return self.clone();
        }
        let mut texts = HashSet::new();
        let members = input.as_object().into_iter().flatten();
        members.filter(|(name, _)| *name != MEMBER).for_each(|(_, value)| collect(value, &mut texts));
        Self(Some(Arc::new(texts)))
    }

    /// Checks whether a module may have the media of an input. (E4007)
    pub(crate) fn judge(&self, module: &Module, policies: &Policies, input: &Value) -> Result<(), Failure> {
        let Some(texts) = &self.0 else { return Ok(()) };
        for item in media::find(&module.manifest.modalities, input)? {
            let why = match item.source {
                ItemSource::Url(url) if policies.network == Allow::Deny && !texts.contains(url) => {
                    "the policy denies the network, so only addresses that the caller sent are fetched"
                }
                ItemSource::File(path) if !texts.contains(path) => {
                    "only files that the caller named are read"
                }
                // Inline bytes need no fetch, and an upload belongs to the caller anyway.
                ItemSource::Url(_) | ItemSource::File(_) | ItemSource::Base64(_) | ItemSource::Upload(_) => {
                    continue;
                }
            };
            return Err(Failure::new(ErrorCode::PermissionDenied, why)
                .with_detail("path", json!(item.place))
                .with_detail("index", json!(item.index)));
        }
        Ok(())
    }
}

fn collect(value: &Value, texts: &mut HashSet<Box<str>>) {
    match value {
        Value::String(text) if text.len() <= MAX_REFERENCE_BYTES => {
            texts.insert(text.as_str().into());
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|value| collect(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
