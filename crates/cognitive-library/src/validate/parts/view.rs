//! The contract of a module as its callers see it: its input, and the envelope of its answer. Built from the module's
//! own files; compiles nothing and checks no value.

use cognitive_contract::{Module, envelope_schema};
use cognitive_schema::{ContractPlace, SchemaFiles, SectionRef, in_draft_07};
use serde_json::{Map, Value, json};

/// The file that is added to those of the module. No module file can have this name.
const ENVELOPE: &str = ":envelope";

/// The input and output contract of a module.
pub(in crate::validate) struct ContractView {
    files: SchemaFiles,
    input: SectionRef,
    data: SectionRef,
}

impl ContractView {
    /// Builds the view of a module that was loaded from these files.
    pub(in crate::validate) fn new(files: SchemaFiles, module: &Module) -> Self {
        let mut files = in_draft_07(&files).into_owned();
        let contract = &module.contract;
        let reference = |place: &SectionRef| json!({ "$ref": format!("{}#{}", place.file, place.pointer) });
        let general = envelope_schema::json_schema();
        let meta = general.pointer("/definitions/meta").cloned().unwrap_or(Value::Bool(true));
        let own_meta = contract.meta().map(|meta| reference(&meta.place));
        let metas: Vec<Value> = [meta].into_iter().chain(own_meta).collect();
        // Every success has a rationale and may have insights, whatever its own schema declares.
        let mut common = json!({
            "type": "object", "additionalProperties": false, "properties": { "rationale": { "type": "string" } },
        });
        if let Some(members) = common.pointer_mut("/properties").filter(|_| module.manifest.overflow.enabled)
            && let Value::Object(members) = members
        {
            members.insert("extensions".to_owned(), Value::Bool(true));
        }
        let mut properties = Map::new();
        properties.insert("ok".to_owned(), json!({ "type": "boolean" }));
        properties.insert("meta".to_owned(), json!({ "anyOf": metas }));
        properties.insert("data".to_owned(), json!({ "anyOf": [reference(&contract.data().place), common] }));
        properties.insert("_emitted_context".to_owned(), json!({ "type": "object" }));
        properties.insert("usage".to_owned(), json!({ "type": "object" }));
        let envelope = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        files.insert(ENVELOPE.to_owned(), envelope);
        Self { files, input: contract.input().place.clone(), data: contract.data().place.clone() }
    }

    /// The input.
    pub(in crate::validate) fn input(&self) -> Option<ContractPlace<'_>> {
        ContractPlace::from_section(&self.files, &self.input)
    }

    /// The data of a successful answer.
    pub(in crate::validate) fn data(&self) -> Option<ContractPlace<'_>> {
        ContractPlace::from_section(&self.files, &self.data)
    }

    /// The whole envelope of a successful answer. Failures are never passed on.
    pub(in crate::validate) fn envelope(&self) -> Option<ContractPlace<'_>> {
        let root = SectionRef { file: ENVELOPE.to_owned(), pointer: String::new() };
        ContractPlace::from_section(&self.files, &root)
    }
}
