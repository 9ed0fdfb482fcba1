//! `module.yaml` as an author may write it: every field is optional, and no default is applied yet.
//! `cogn schema` prints the JSON Schema of these types, and loading validates against the same schema. So the
//! documentation, the editor and the runtime cannot disagree.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{
    Aggregate, Allow, ChunkType, ContextMode, EnumStrategy, FailureContract, InputModality, Mode,
    OutputModality, Pattern, RiskRule, SchemaAlias, SchemaStrictness, Tier, ToolPolicy,
};
use crate::thinking::ThinkingRule;

/// Manifest of a Cognitive Module (`module.yaml`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(title = "Cognitive Module manifest")]
pub struct ManifestFile {
    /// Name of the module, as in `cogn run <name>`. Lower-case letters, digits and hyphens.
    #[schemars(length(max = 64), regex(pattern = r"^[a-z][a-z0-9-]*$"))]
    pub name: Option<String>,
    /// The module's own version, as Semantic Versioning 2.0. Quote it, so that YAML reads it as text.
    #[schemars(regex(
        pattern = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$"
    ))]
    pub version: Option<String>,
    /// The responsibility of the module, in one sentence.
    #[schemars(length(max = 200))]
    pub responsibility: Option<String>,
    /// The module's freedom of expression.
    pub tier: Option<Tier>,
    /// The strictness of output validation. Follows the tier unless set.
    pub schema_strictness: Option<SchemaStrictness>,
    /// Actions that the module must not take. Stated in the prompt.
    pub excludes: Option<Vec<String>>,
    /// Permissions of the module.
    pub policies: Option<PoliciesFile>,
    /// Tools that the module may use.
    pub tools: Option<ToolsFile>,
    /// Rules for insights beyond the schema.
    pub overflow: Option<OverflowFile>,
    /// Rules for custom enum values.
    pub enums: Option<EnumsFile>,
    /// The form of failures.
    pub failure: Option<FailureFile>,
    /// Requirements on the model.
    pub runtime_requirements: Option<RequirementsFile>,
    /// Locations of the contract sections, as `<file>#<JSON pointer>`.
    pub io: Option<IoFile>,
    /// Support for older answer formats.
    pub compat: Option<CompatFile>,
    /// Rules for `meta`.
    pub meta: Option<MetaFile>,
    /// Golden tests, each as `<case>.input.json -> <case>.expected.json`.
    pub tests: Option<Vec<String>>,
    /// Delivery of the answer.
    pub response: Option<ResponseFile>,
    /// Media types of input and output. `text` is always included.
    pub modalities: Option<ModalitiesFile>,
    /// Context that the module accepts and emits: a block, or the short form `main` / `fork`.
    pub context: Option<ContextFile>,
    /// Other modules that this module consists of.
    pub composition: Option<CompositionFile>,
    /// Maximum number of model calls in one run of the module. Calls of its parts, repetitions and tools count. It can
    /// only lower the operator's limit.
    #[schemars(range(min = 1))]
    pub max_calls: Option<u64>,
    /// Thinking before the answer, if the model supports it. It is never part of the answer.
    pub thinking: Option<ThinkingRule>,
    /// Callers that may run the module.
    pub invocation: Option<InvocationFile>,
    /// The module's own error codes, E5000 to E9999, with their meaning.
    pub error_codes: Option<BTreeMap<String, String>>,
    /// Constraints of the v1 format. New modules use `policies` and `schema.json` instead.
    pub constraints: Option<ConstraintsFile>,
    /// Legacy output settings of v2.1. Preserved, without effect.
    pub output: Option<BTreeMap<String, serde_json::Value>>,
}

/// `allow` or `deny`; booleans are accepted too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PolicyFile {
    /// `allow` or `deny`.
    Word(Allow),
    /// `true` means allow.
    Flag(bool),
}

/// Permissions of the module. Everything is denied unless allowed here.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct PoliciesFile {
    /// Network access.
    pub network: Option<PolicyFile>,
    /// Writing files.
    pub filesystem_write: Option<PolicyFile>,
    /// Changes to anything outside the module.
    pub side_effects: Option<PolicyFile>,
    /// Running code.
    pub code_execution: Option<PolicyFile>,
    /// `false` removes all tools (v2.5 spelling).
    pub tools_allowed: Option<bool>,
    /// `false` denies the network (v2.5 spelling).
    pub network_allowed: Option<bool>,
    /// Further policies, by name.
    #[serde(flatten)]
    pub other: BTreeMap<String, PolicyFile>,
}

/// Tools that the module may use.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ToolsFile {
    /// The rule for a tool that is in neither list.
    pub policy: Option<ToolPolicy>,
    /// Allowed tools.
    pub allowed: Option<Vec<String>>,
    /// Denied tools; this list wins.
    pub denied: Option<Vec<String>>,
}

/// Insights beyond the schema (`data.extensions.insights`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct OverflowFile {
    /// Allows insights.
    pub enabled: Option<bool>,
    /// Older name of `require_suggested_mapping`.
    pub recoverable: Option<bool>,
    /// Maximum number of insights.
    #[schemars(range(min = 0, max = 20))]
    pub max_items: Option<u64>,
    /// Requires a `suggested_mapping` in each insight.
    pub require_suggested_mapping: Option<bool>,
}

/// Rules for custom enum values.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct EnumsFile {
    /// `strict`: declared values only. `extensible`: also `{custom, reason}` if the schema offers it.
    pub strategy: Option<EnumStrategy>,
    /// The member that holds a custom value.
    #[schemars(length(min = 1))]
    pub unknown_tag: Option<String>,
}

/// The form of failures.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FailureFile {
    /// `throw` makes the libraries for Rust, Python and TypeScript raise an error that has the envelope; all other interfaces respond with the envelope in any case.
    pub contract: Option<FailureContract>,
    /// Allows `partial_data` in a failure.
    pub partial_allowed: Option<bool>,
    /// Requires errors from the model to match `#/error`.
    pub must_return_error_schema: Option<bool>,
}

/// Requirements on the model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct RequirementsFile {
    /// Requires a provider that can answer in JSON.
    pub structured_output: Option<bool>,
    /// Maximum length of the prompt, in tokens.
    #[schemars(range(min = 1))]
    pub max_input_tokens: Option<u64>,
    /// Preferred capabilities, such as `json_mode`, `long_context`, `function_calling`, `vision`.
    pub preferred_capabilities: Option<Vec<String>>,
    /// Capabilities that the module cannot work without, such as `reasoning` (to weigh, order, review or rewrite) or
    /// `long_context`. A model that is known to lack one is not called. Other words are allowed.
    pub required_capabilities: Option<Vec<String>>,
}

/// Locations of the contract sections.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct IoFile {
    /// The input. Default `./schema.json#/input`.
    pub input: Option<String>,
    /// The payload. Default `./schema.json#/data`.
    #[serde(alias = "output")]
    pub data: Option<String>,
    /// The `meta` section. Default `./schema.json#/meta`.
    pub meta: Option<String>,
    /// Errors. Default `./schema.json#/error`.
    pub error: Option<String>,
}

/// Support for older answer formats.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct CompatFile {
    /// Accepts answers without `meta` (v2.1) and wraps them; also needs `runtime_auto_wrap`.
    pub accepts_v21_payload: Option<bool>,
    /// Always true in effect: a v2.2 envelope is a v2.5 envelope.
    pub accepts_v22_payload: Option<bool>,
    /// Lets the runtime wrap older answers.
    pub runtime_auto_wrap: Option<bool>,
    /// The section that wins if `schema.json` has both `data` and `output`.
    pub schema_output_alias: Option<SchemaAlias>,
}

/// Rules for `meta`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct MetaFile {
    /// The source of `meta.risk`.
    pub risk_rule: Option<RiskRule>,
}

/// Delivery of the answer.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ResponseFile {
    /// The delivery that the module offers. A caller that requests one envelope always gets one.
    pub mode: Option<Mode>,
    /// The content of a chunk: additions or whole states.
    pub chunk_type: Option<ChunkType>,
    /// Bytes to buffer before a flush; 0 flushes immediately.
    #[schemars(range(min = 0))]
    pub buffer_size: Option<u64>,
}

/// Media types of input and output.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ModalitiesFile {
    /// Accepted media types.
    pub input: Option<Vec<InputModality>>,
    /// Emitted media types.
    pub output: Option<Vec<OutputModality>>,
}

/// The context block, or a short form with the mode only.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ContextFile {
    /// `context: fork`.
    Short(ContextMode),
    /// A context block.
    Block(ContextBlock),
}

/// Context that the module accepts and emits.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ContextBlock {
    /// Submodules share this module's context or get a copy.
    pub mode: Option<ContextMode>,
    /// Accepted context.
    pub accepts: Option<Vec<Accept>>,
    /// Emitted context.
    pub emits: Option<Vec<EmitEntry>>,
}

/// A type of context that the module accepts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Accept {
    /// Name, such as `conversation_history`, `user_profile`, `session_state`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Rejects a run without it.
    #[serde(default)]
    pub required: bool,
    /// Maximum number of conversation entries; the newest are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// Members to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// A JSON Schema file in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Maximum age of stored context, in seconds. 0: this request only. -1: any age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub ttl: Option<i64>,
    /// For `previous_result`: the module it must come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_module: Option<String>,
}

/// A type of context that the module emits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct EmitEntry {
    /// Name.
    #[serde(rename = "type")]
    pub kind: String,
    /// A JSON Schema file in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Lifetime in seconds. 0: this request only. -1: unlimited.
    #[serde(default)]
    #[schemars(range(min = -1))]
    pub ttl: i64,
    /// Key pattern with `${module}`, `${input_hash}`, `${user_id}`, `${session_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_pattern: Option<String>,
}

/// Other modules that this module consists of.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CompositionFile {
    /// Execution pattern of the parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<Dependency>>,
    /// Maximum depth of calls between modules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_depth: Option<u64>,
    /// Timeout of the whole composition, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Data flow between the parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataflow: Option<Vec<FlowEntry>>,
    /// For `conditional`: rules that select the next part. The first matching rule wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Vec<Route>>,
    /// Default `fallback` of all parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// A module that this module uses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// A version range such as `^1.2.0`; any version unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The composition can run without it.
    #[serde(default)]
    pub optional: bool,
    /// The module to use instead; `null` skips it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Timeout of this part, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// One name or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMore {
    /// One.
    One(String),
    /// Several, in order.
    Many(Vec<String>),
}

/// A step of the data flow.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct FlowEntry {
    /// `input`, or `<module>.output`.
    pub from: OneOrMore,
    /// A module name, or `output`.
    pub to: OneOrMore,
    /// Target member → path such as `$.data.items[*].id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapping: Option<BTreeMap<String, String>>,
    /// Condition for this step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Method to combine several sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
}

/// A rule of a conditional composition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Route {
    /// Condition of the rule, such as `$.quick-check.meta.confidence > 0.8`.
    pub condition: String,
    /// The module to run next; `null` ends with the result so far.
    pub next: Option<String>,
}

/// Callers that may run the module.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct InvocationFile {
    /// Allows users to run it: command line, HTTP, WebSocket.
    pub user_invocable: Option<bool>,
    /// Allows agents to run it: MCP, `@call`, composition.
    pub agent_invocable: Option<bool>,
}

/// Constraints of the v1 format.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the format lists independent switches")]
pub struct ConstraintsFile {
    /// Same as `policies.network: deny`.
    #[serde(default)]
    pub no_network: bool,
    /// Same as `policies.side_effects: deny`.
    #[serde(default)]
    pub no_side_effects: bool,
    /// Forbids invented data; stated in the prompt.
    #[serde(default)]
    pub no_inventing_data: bool,
    /// The payload must have its own `confidence`.
    #[serde(default)]
    pub require_confidence: bool,
    /// The payload must have a `rationale`.
    #[serde(default)]
    pub require_rationale: bool,
}
