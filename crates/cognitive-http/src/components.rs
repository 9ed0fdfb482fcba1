//! The named schemas of `/openapi.json` that do not depend on modules. They are derived from the types that the server
//! reads and writes, so that no shape is written a second time. Describes; decides nothing.

use cognitive_contract::editor_schema::drop_null;
use cognitive_contract::stream::Chunk;
use cognitive_contract::{Envelope, Meta, Violation};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::client_form::{CUSTOM_VALUE, ClientForm, Direction, custom_value};
use crate::pages::{ModuleDetail, ModuleList, ServerHealth};
use crate::schemas::reference;

/// Adds a type to the schemas and returns its reference.
pub(crate) type AddSchema = fn(&mut SchemaGenerator) -> Schema;

/// Adds a type that has a name.
pub(crate) fn shape<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    schemas.subschema_for::<T>()
}

/// Returns the members of a query, which needs no name.
pub(crate) fn query<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Schema {
    T::json_schema(schemas)
}

/// Returns a reference to a named schema.
pub(crate) fn schema_reference(name: &str) -> Value {
    reference("schemas", name)
}

/// The named schemas that a description uses.
pub(crate) struct Components {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Default for Components {
    fn default() -> Self {
        let mut answers = settings().for_serialize().into_generator();
        // Every operation may answer with an envelope; streams have no schema of their own in OpenAPI.
        let _named = [shape::<Envelope>(&mut answers), shape::<Chunk>(&mut answers)];
        Self { requests: settings().into_generator(), answers }
    }
}

impl Components {
    /// Returns the schema of a request body.
    pub(crate) fn request(&mut self, add: AddSchema) -> Value {
        client_form(&add(&mut self.requests).to_value())
    }

    /// Returns the schema of a response.
    pub(crate) fn answer(&mut self, add: AddSchema) -> Value {
        client_form(&add(&mut self.answers).to_value())
    }

    /// Returns the parameters of a query: names and schemas.
    pub(crate) fn query(&mut self, add: AddSchema) -> Vec<(String, Value)> {
        let mut schema = add(&mut self.requests);
        describe_absent(&mut schema);
        let members = schema.get("properties").and_then(Value::as_object);
        let forms = members.into_iter().flatten().map(|(name, member)| (name.clone(), client_form(member)));
        forms.collect()
    }

    /// Returns all named schemas.
    pub(crate) fn finish(mut self) -> Map<String, Value> {
        // A type of both directions has the form of a response.
        let mut all = self.requests.take_definitions(true);
        all.extend(self.answers.take_definitions(true));
        let forms = all.into_iter().map(|(name, schema)| (name, client_form(&schema)));
        forms.chain([(CUSTOM_VALUE.to_owned(), custom_value())]).collect()
    }
}

/// Returns the schemas of the types that clients in other languages share with the server, with references into
/// `$defs`.
#[must_use]
pub fn client_types() -> Map<String, Value> {
    let mut schemas = settings().for_serialize().into_generator();
    let types: [AddSchema; 7] = [
        shape::<Envelope>,
        shape::<Chunk>,
        shape::<ModuleList<'_>>,
        shape::<ModuleDetail<'_>>,
        shape::<ServerHealth>,
        shape::<cognitive_runtime::Declaration>,
        shape::<Violation>,
    ];
    for add in types {
        add(&mut schemas);
    }
    schemas.take_definitions(true)
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with_transform(RecursiveTransform(describe_absent))
}

/// Describes optional members as absent, not as null, and leaves out what generators misread: they take a member with
/// a default for a required one.
fn describe_absent(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else { return };
    members.shift_remove("default");
    members.shift_remove("enumDescriptions");
    let required = members.get("required").cloned().unwrap_or_default();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|each| each == name));
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    for (name, member) in properties.into_iter().flatten() {
        if !is_required(name) {
            drop_null(member);
        }
    }
}

fn client_form(schema: &Value) -> Value {
    // A client that validated formats would refuse answers of other versions.
    ClientForm { prefix: "", direction: Direction::Received }.rewrite(schema)
}

/// Returns the `meta` schema of a module that adds properties or defines its own risk values; `None` for other
/// modules.
pub(crate) fn own_meta(of_module: &Value) -> Option<Value> {
    let own = of_module.get("properties").and_then(Value::as_object)?;
    let is_usual = |name: &str, value: &Value| match name {
        "confidence" | "explain" => true,
        "risk" => value.get("enum").is_some(),
        _ => false,
    };
    let own: Vec<_> = own.iter().filter(|(name, value)| !is_usual(name, value)).collect();
    if own.is_empty() {
        return None;
    }
    let mut schema = Components::default().answer(query::<Meta>);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut)?;
    properties.extend(own.into_iter().map(|(name, value)| (name.clone(), value.clone())));
    Some(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::OPERATIONS;

    /// The names that generated clients use.
    const NAMES: &str = "
        AnyInput ArchivedRun CalibrationReport CaseList CaseRequest CheckRequest Checkpoint Chunk
        ChunkType CreateRequest CustomValue DataSnapshot DecisionRequest DeltaText FailedChunk Failure FinalChunk
        FindingList Health Heartbeat JudgeRequest KeptCase LoginRequest Meta ModelList ModuleCase
        ModuleDetail ModuleFiles ModuleFinding ModuleList ModuleSummary ModuleVersion NamedModel
        NamedRun OpeningChunk OpeningMeta PreviewedCall ProgressChunk Readiness Recovery ReplayRequest RequestOptions
        ReviewPage RunDetails RunError RunPage RunPreview RunReplay RunReview RunStats RunWarning
        RuntimeCapabilities SaveRequest SavedModule SessionEnd StreamEnd StudioSession Success TextChunk
        ThinkingRule UploadChecksum UploadDone UploadPlace UploadRequest Usage VerdictList VersionList
        WaterfallNode";

    fn all() -> Map<String, Value> {
        let mut components = Components::default();
        for described in OPERATIONS.iter().filter_map(|operation| operation.described.as_ref()) {
            described.takes.map(|body| components.request(body));
            described.gives.map(|answer| components.answer(answer));
        }
        components.finish()
    }

    #[test]
    fn the_schemas_keep_their_names() {
        let all = all();
        let mut names: Vec<&str> = all.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, NAMES.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn an_optional_member_is_absent_and_has_no_default() {
        let all = all();
        let options = &all["RequestOptions"]["properties"];
        assert_eq!(options["reask"]["type"], "integer");
        assert_eq!(options["response_mode"]["enum"], serde_json::json!(["sync", "streaming"]));
        assert_eq!(all["RunReview"]["properties"]["calibrated_confidence"]["type"], "number");
        assert_eq!(all["RunReview"]["properties"]["state"]["enum"], serde_json::json!(["open", "decided"]));
        assert!(!Value::Object(all).to_string().contains("\"default\":"));
    }

    // Always sent, so a client needs no check for its absence.
    #[test]
    fn a_member_that_is_always_sent_is_required() {
        let all = all();
        let run = &all["ArchivedRun"];
        assert_eq!(run["properties"]["code"]["type"], serde_json::json!(["string", "null"]));
        assert!(run["required"].as_array().unwrap().contains(&"code".into()));
        assert_eq!(all["Meta"]["required"], serde_json::json!(["confidence", "risk", "explain"]));
        assert!(all["Meta"]["properties"]["provenance"].is_object(), "the member of the receipt");
    }
}
