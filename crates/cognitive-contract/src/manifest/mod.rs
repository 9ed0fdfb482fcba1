//! The manifest: the permissions and settings of a module, with every default applied.
//! Built once from the author's file; later code never checks whether a field was set.

mod check;
mod defaults;
mod effective;
mod file;
mod words;

use std::collections::BTreeMap;

use cognitive_schema::{Layout, SectionRef};
use serde::Serialize;
use serde_json::Value;

pub use check::{editor_schema, json_schema, known_keys, manifest_schema, unknown_keys, violations};
pub use file::{Accept, CompositionFile, Dependency, EmitEntry, FlowEntry, ManifestFile, OneOrMore, Route};
pub use words::{
    Aggregate, Allow, ChunkType, ContextMode, EnumStrategy, FailureContract, InputModality, Mode,
    OutputModality, Pattern, RiskRule, SchemaAlias, SchemaStrictness, Tier, ToolPolicy,
};

use crate::format::Format;
use crate::insights::Limit;
use crate::thinking::ThinkingRule;
use crate::violation::Violation;

/// A manifest with all defaults applied.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of `ManifestFile`, described there")]
pub struct Manifest {
    pub name: String,
    pub version: String,
    pub responsibility: String,
    pub tier: Tier,
    pub schema_strictness: SchemaStrictness,
    pub excludes: Vec<String>,
    pub policies: Policies,
    pub tools: AllowedTools,
    pub overflow: Overflow,
    pub enums: Enums,
    pub failure: FailureRules,
    pub runtime_requirements: Requirements,
    pub io: BTreeMap<&'static str, String>,
    pub compat: Compat,
    pub meta: MetaRules,
    pub tests: Vec<GoldenTest>,
    pub response: Response,
    pub modalities: Modalities,
    pub context: Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composition: Option<CompositionFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingRule>,
    pub invocation: Invocation,
    pub error_codes: BTreeMap<String, String>,
    pub constraints: Constraints,
}

/// Permissions of the module, in one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `PoliciesFile`")]
pub struct Policies {
    pub network: Allow,
    pub filesystem_write: Allow,
    pub side_effects: Allow,
    pub code_execution: Allow,
    /// `false` if the manifest removes all tools.
    pub tools: bool,
    #[serde(flatten)]
    pub other: BTreeMap<String, Allow>,
}

/// Tools that the module may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `ToolsFile`")]
pub struct AllowedTools {
    pub policy: ToolPolicy,
    pub allowed: Vec<String>,
    pub denied: Vec<String>,
}

/// Insights beyond the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `OverflowFile`")]
pub struct Overflow {
    pub enabled: bool,
    pub max_items: u64,
    pub recoverable: bool,
    pub require_suggested_mapping: bool,
}

impl Overflow {
    /// The limit in the form that the envelope check takes.
    #[must_use]
    pub fn limit(&self) -> Limit {
        Limit {
            enabled: self.enabled,
            max_items: self.max_items,
            mapping_required: self.require_suggested_mapping,
        }
    }
}

/// Rules for custom enum values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `EnumsFile`")]
pub struct Enums {
    pub strategy: EnumStrategy,
    pub unknown_tag: String,
}

/// The form of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `FailureFile`")]
pub struct FailureRules {
    pub contract: FailureContract,
    pub partial_allowed: bool,
    pub must_return_error_schema: bool,
}

/// Requirements on the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `RequirementsFile`")]
pub struct Requirements {
    pub structured_output: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_input_tokens: Option<u64>,
    pub preferred_capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_capabilities: Vec<String>,
}

/// Support for older answer formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `CompatFile`")]
#[expect(clippy::struct_excessive_bools, reason = "the fields are independent switches")]
pub struct Compat {
    pub accepts_v21_payload: bool,
    pub accepts_v22_payload: bool,
    pub runtime_auto_wrap: bool,
    pub schema_output_alias: SchemaAlias,
    /// True if the author explicitly rejects v2.1 answers. An unset field rejects nothing. (D-11)
    #[serde(skip)]
    pub refuses_v21_payload: bool,
}

impl Compat {
    /// Returns whether a v2.1 answer is wrapped; both switches are needed.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.accepts_v21_payload && self.runtime_auto_wrap
    }
}

/// Rules for `meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `MetaFile`")]
pub struct MetaRules {
    pub risk_rule: RiskRule,
}

/// A golden test: two module-relative paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say what the two paths are")]
pub struct GoldenTest {
    pub input: String,
    pub expected: String,
}

/// Delivery of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `ResponseFile`")]
pub struct Response {
    pub mode: Mode,
    pub chunk_type: ChunkType,
    pub buffer_size: u64,
}

/// Media types of input and output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `ModalitiesFile`")]
pub struct Modalities {
    /// True if the author wrote a `modalities` block. Only then is the input searched for media.
    #[serde(skip)]
    pub declared: bool,
    pub input: Vec<InputModality>,
    pub output: Vec<OutputModality>,
}

/// Context that the module accepts and emits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `ContextBlock`")]
pub struct Context {
    pub mode: ContextMode,
    pub accepts: Vec<Accept>,
    pub emits: Vec<EmitEntry>,
}

/// Callers that may run the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `InvocationFile`")]
pub struct Invocation {
    pub user_invocable: bool,
    pub agent_invocable: bool,
}

/// Constraints of the v1 format that have no policy counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[expect(missing_docs, reason = "the fields are those of `ConstraintsFile`")]
pub struct Constraints {
    pub no_inventing_data: bool,
    pub require_confidence: bool,
    pub require_rationale: bool,
}

/// Descriptive fields of the manifest.
const LABELS: [&str; 3] = ["name", "version", "responsibility"];

/// Converts labels to text, because YAML may parse `1.0` as a number. Converts numbers such as `5.0` to integers.
fn normalise(manifest: &mut Value) {
    for label in LABELS {
        if let Some(field) = manifest.get_mut(label)
            && !field.is_string()
            && !field.is_null()
        {
            *field = Value::String(field.to_string());
        }
    }
    make_integral(manifest);
}

fn make_integral(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15);
            if let Some(whole) = whole.and_then(|float| format!("{float:.0}").parse::<i64>().ok()) {
                *value = Value::from(whole);
            }
        }
        Value::Object(members) => members.values_mut().for_each(make_integral),
        Value::Array(items) => items.iter_mut().for_each(make_integral),
        _ => {}
    }
}

impl Manifest {
    /// Reads a manifest that was parsed from YAML or front matter. Returns all violations at once.
    ///
    /// An invalid name, version or responsibility does not prevent a run: these fields are for humans. `validate`
    /// checks them with [`violations`].
    pub fn from_value(value: &Value, format: Format) -> Result<Self, Vec<Violation>> {
        let is_label =
            |violation: &Violation| LABELS.iter().any(|label| violation.path == format!("/{label}"));
        let found: Vec<Violation> = violations(value).into_iter().filter(|each| !is_label(each)).collect();
        if !found.is_empty() {
            return Err(found);
        }
        let mut readable = value.clone();
        normalise(&mut readable);
        let file: ManifestFile = serde_json::from_value(readable).map_err(|error| {
            vec![Violation::new("", crate::code::ErrorCode::InternalError, "type", error.to_string())]
        })?;
        Ok(defaults::resolve(file, format))
    }

    /// The locations of the contract sections, and the enum rules.
    #[must_use]
    pub fn layout(&self) -> Layout {
        let place = |name: &str| self.io.get(name).map(|text| SectionRef::parse(text));
        let accepted = self.context.accepts.iter().filter_map(|accept| accept.schema.as_deref());
        let emitted = self.context.emits.iter().filter_map(|emit| emit.schema.as_deref());
        Layout {
            context: accepted.chain(emitted).map(SectionRef::parse).collect(),
            input: place("input"),
            data: place("data"),
            meta: place("meta"),
            error: place("error"),
            prefer_output: self.compat.schema_output_alias == SchemaAlias::Output,
            strict_enums: self.enums.strategy == EnumStrategy::Strict,
            unknown_tag: self.enums.unknown_tag.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
