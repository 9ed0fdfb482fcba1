//! The official schema of envelopes, if it is next to this checkout. It is not part of the project, so tests are
//! skipped without it.

use std::path::Path;

use cognitive_testkit::{Lack, skip};
use serde_json::Value;

/// The official schema of one envelope.
pub(crate) struct Official(jsonschema::Validator);

impl Official {
    /// Loads the schema; `None`, after `skip`, if it is missing.
    pub(crate) fn find() -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/schemas");
        let Ok(text) = std::fs::read_to_string(folder.join("response-envelope.schema.json")) else {
            skip(Lack::Shared);
            return None;
        };
        let schema = serde_json::from_str(&text).unwrap();
        Some(Self(jsonschema::draft7::new(&schema).unwrap()))
    }

    /// Returns all schema violations of an envelope, ignoring the context that a module may emit.
    pub(crate) fn faults(&self, envelope: &Value) -> Vec<String> {
        let mut envelope = envelope.clone();
        envelope.as_object_mut().unwrap().shift_remove("_emitted_context");
        self.0.iter_errors(&envelope).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
    }
}
