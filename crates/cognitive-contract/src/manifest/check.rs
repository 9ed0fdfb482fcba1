//! Validates manifests against the JSON Schema of our own types, compiled once per process.
//! Does not report missing fields: loading tolerates them, `validate` does not.

use std::sync::OnceLock;

use cognitive_schema::violations_of;
use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{CompositionFile, ManifestFile, make_integral};
use crate::code::ErrorCode;
use crate::compose;
use crate::editor_schema::for_editors;
use crate::violation::{Side, Violation};

/// The JSON Schema of `module.yaml`, generated from [`ManifestFile`].
#[must_use]
pub fn json_schema() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<ManifestFile>().to_value()
}

/// The JSON Schema of `module.yaml` for editors. It rejects unknown keys and requires the keys of a complete module.
#[must_use]
pub fn editor_schema() -> Value {
    let mut schema = for_editors(json_schema(), &["name", "version", "responsibility"]);
    // The old name of this section is still accepted.
    let io = schema.pointer_mut("/definitions/IoFile/properties").and_then(Value::as_object_mut);
    if let Some(io) = io
        && let Some(data) = io.get("data").cloned()
    {
        io.insert("output".to_owned(), data);
    }
    schema
}

/// The manifest schema, built once per process.
#[must_use]
pub fn manifest_schema() -> &'static Value {
    &compiled_schema().schema
}

struct CompiledSchema {
    schema: Value,
    validator: Option<Validator>,
}

fn compiled_schema() -> &'static CompiledSchema {
    static COMPILED: OnceLock<CompiledSchema> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let schema = json_schema();
        let validator = jsonschema::options()
            .with_draft(jsonschema::Draft::Draft7)
            .should_validate_formats(false)
            .offline()
            .build(&schema)
            .ok();
        CompiledSchema { schema, validator }
    })
}

/// Returns every violation that prevents a manifest from loading.
#[must_use]
pub fn violations(manifest: &Value) -> Vec<Violation> {
    let Some(validator) = &compiled_schema().validator else {
        return vec![Violation::new("", ErrorCode::InternalError, "schema", "the manifest schema is broken")];
    };
    if !manifest.is_object() {
        let message = "expected a map of fields such as `name` and `version`";
        return vec![Violation::new("", ErrorCode::InvalidInput, "type", message)];
    }
    let found = violations_of(validator, manifest).into_iter();
    let mut found: Vec<Violation> = found.map(|each| Violation::from_schema(each, Side::Input)).collect();
    if !found.iter().any(|violation| violation.path.starts_with("/composition")) {
        found.extend(composition_violations(manifest));
    }
    found
}

/// Checks the expressions and names of a composition, whose structure the schema has already validated.
fn composition_violations(manifest: &Value) -> Vec<Violation> {
    let Some(mut composition) = manifest.get("composition").cloned() else { return Vec::new() };
    make_integral(&mut composition);
    let file = serde_json::from_value::<Option<CompositionFile>>(composition).ok().flatten();
    file.as_ref().map(compose::violations).unwrap_or_default()
}

/// The top-level keys that the runtime knows.
pub fn known_keys() -> impl Iterator<Item = &'static str> {
    let properties = compiled_schema().schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|map| map.keys().map(String::as_str))
}

/// The top-level keys that the runtime preserves but ignores.
pub fn unknown_keys(manifest: &Value) -> impl Iterator<Item = &str> {
    let keys = manifest.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
    keys.filter(|key| !known_keys().any(|known| known == *key))
}
