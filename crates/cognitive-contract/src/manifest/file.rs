//! `module.yaml` as an author may write it: every field optional, nothing decided yet.
//! `cogn schema` prints the JSON Schema of these types, and loading validates against that same schema,
//! so the documentation, the editor and the runtime cannot disagree.

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
    /// Name of the module; what `cogn run <name>` uses. Lower-case letters, digits and hyphens.
    #[schemars(length(max = 64), regex(pattern = r"^[a-z][a-z0-9-]*$"))]
    pub name: Option<String>,
    /// The module's own version, as Semantic Versioning 2.0. Quote it, so that YAML reads it as text.
    #[schemars(regex(
        pattern = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$"
    ))]
    pub version: Option<String>,
    /// One sentence: what the module is responsible for.
    #[schemars(length(max = 200))]
    pub responsibility: Option<String>,
    /// How much freedom of expression the module has.
    pub tier: Option<Tier>,
    /// How strictly output is judged. Follows the tier unless set.
    pub schema_strictness: Option<SchemaStrictness>,
    /// What the module must not do. Stated in the prompt.
    pub excludes: Option<Vec<String>>,
    /// What the module may reach.
    pub policies: Option<PoliciesFile>,
    /// Which tools the module may use.
    pub tools: Option<ToolsFile>,
    /// Whether and how many insights beyond the schema are allowed.
    pub overflow: Option<OverflowFile>,
    /// Whether enums may be extended with custom values.
    pub enums: Option<EnumsFile>,
    /// What a failure looks like.
    pub failure: Option<FailureFile>,
    /// What the module needs of the model behind it.
    pub runtime_requirements: Option<RequirementsFile>,
    /// Where the sections of the contract stand, as `<file>#<JSON pointer>`.
    pub io: Option<IoFile>,
    /// Which older answer formats are understood.
    pub compat: Option<CompatFile>,
    /// Rules about the control plane.
    pub meta: Option<MetaFile>,
    /// Golden tests, each as `<case>.input.json -> <case>.expected.json`.
    pub tests: Option<Vec<String>>,
    /// How the answer is delivered.
    pub response: Option<ResponseFile>,
    /// Which kinds of media go in and come out. `text` is always included.
    pub modalities: Option<ModalitiesFile>,
    /// Which context the module takes and gives: a block, or the short form `main` / `fork`.
    pub context: Option<ContextFile>,
    /// Which other modules this one is made of.
    pub composition: Option<CompositionFile>,
    /// The most model calls that one run of the module may make, those of its parts, repetitions and tools included. It
    /// can only lower what the operator allows.
    #[schemars(range(min = 1))]
    pub max_calls: Option<u64>,
    /// A thought before the answer, where the model can have one. It is never part of the answer.
    pub thinking: Option<ThinkingRule>,
    /// Who may run the module.
    pub invocation: Option<InvocationFile>,
    /// The module's own error codes, E5000 to E9999, with what they mean.
    pub error_codes: Option<BTreeMap<String, String>>,
    /// Promises of the v1 format. New modules use `policies` and `schema.json` instead.
    pub constraints: Option<ConstraintsFile>,
    /// Legacy output settings of v2.1. Kept, without effect.
    pub output: Option<BTreeMap<String, serde_json::Value>>,
}

/// `allow` or `deny`; booleans are understood too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PolicyFile {
    /// The word.
    Word(Allow),
    /// `true` means allow.
    Flag(bool),
}

/// What the module may reach. Everything is denied unless allowed here.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct PoliciesFile {
    /// Reaching the network.
    pub network: Option<PolicyFile>,
    /// Writing files.
    pub filesystem_write: Option<PolicyFile>,
    /// Changing anything outside.
    pub side_effects: Option<PolicyFile>,
    /// Running code.
    pub code_execution: Option<PolicyFile>,
    /// `false` takes all tools away (v2.5 spelling).
    pub tools_allowed: Option<bool>,
    /// `false` denies the network (v2.5 spelling).
    pub network_allowed: Option<bool>,
    /// Further policies, by name.
    #[serde(flatten)]
    pub other: BTreeMap<String, PolicyFile>,
}

/// Which tools the module may use.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ToolsFile {
    /// What holds for a tool that is in neither list.
    pub policy: Option<ToolPolicy>,
    /// Tools that may be used.
    pub allowed: Option<Vec<String>>,
    /// Tools that may not be used; this list wins.
    pub denied: Option<Vec<String>>,
}

/// Insights beyond the schema (`data.extensions.insights`).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct OverflowFile {
    /// Whether insights are allowed.
    pub enabled: Option<bool>,
    /// Whether insights must say where they belong. `require_suggested_mapping` is the newer name.
    pub recoverable: Option<bool>,
    /// How many insights are allowed.
    #[schemars(range(min = 0, max = 20))]
    pub max_items: Option<u64>,
    /// Whether each insight needs a `suggested_mapping`.
    pub require_suggested_mapping: Option<bool>,
}

/// Whether enums may be extended.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct EnumsFile {
    /// `strict`: declared values only. `extensible`: also `{custom, reason}` where the schema offers it.
    pub strategy: Option<EnumStrategy>,
    /// The member that holds a custom value.
    #[schemars(length(min = 1))]
    pub unknown_tag: Option<String>,
}

/// What a failure looks like.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct FailureFile {
    /// `throw` makes the library API raise; every other surface answers with the envelope either way.
    pub contract: Option<FailureContract>,
    /// Whether a failure may carry `partial_data`.
    pub partial_allowed: Option<bool>,
    /// Whether errors that the model makes must match `#/error`.
    pub must_return_error_schema: Option<bool>,
}

/// What the module needs of the model behind it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct RequirementsFile {
    /// Whether the provider must be able to answer in JSON.
    pub structured_output: Option<bool>,
    /// The longest prompt, in tokens.
    #[schemars(range(min = 1))]
    pub max_input_tokens: Option<u64>,
    /// What would be good to have, such as `json_mode`, `long_context`, `function_calling`, `vision`.
    pub preferred_capabilities: Option<Vec<String>>,
    /// What the module makes no sense without, such as `reasoning` (to weigh, order, review or rewrite) or `long_context`.
    /// A model that is known to lack one is not asked. Other words are allowed.
    pub required_capabilities: Option<Vec<String>>,
}

/// Where the sections of the contract stand.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct IoFile {
    /// What goes in. Default `./schema.json#/input`.
    pub input: Option<String>,
    /// What comes out. Default `./schema.json#/data`.
    #[serde(alias = "output")]
    pub data: Option<String>,
    /// The control plane. Default `./schema.json#/meta`.
    pub meta: Option<String>,
    /// Errors. Default `./schema.json#/error`.
    pub error: Option<String>,
}

/// Which older answer formats are understood.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct CompatFile {
    /// Whether answers without `meta` (v2.1) are wrapped; needs `runtime_auto_wrap` too.
    pub accepts_v21_payload: Option<bool>,
    /// Always true in effect: a v2.2 envelope is a v2.5 envelope.
    pub accepts_v22_payload: Option<bool>,
    /// Whether the runtime wraps older answers.
    pub runtime_auto_wrap: Option<bool>,
    /// Which section wins when `schema.json` has both `data` and `output`.
    pub schema_output_alias: Option<SchemaAlias>,
}

/// Rules about the control plane.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct MetaFile {
    /// Where `meta.risk` comes from.
    pub risk_rule: Option<RiskRule>,
}

/// How the answer is delivered.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ResponseFile {
    /// What is offered. A caller who asks for one envelope always gets one.
    pub mode: Option<Mode>,
    /// Whether a stream carries additions or whole states.
    pub chunk_type: Option<ChunkType>,
    /// Bytes gathered before a flush; 0 flushes at once.
    #[schemars(range(min = 0))]
    pub buffer_size: Option<u64>,
}

/// Which kinds of media go in and come out.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ModalitiesFile {
    /// What the module takes.
    pub input: Option<Vec<InputModality>>,
    /// What the module gives.
    pub output: Option<Vec<OutputModality>>,
}

/// The short form names only the mode.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ContextFile {
    /// `context: fork`.
    Short(ContextMode),
    /// The whole block.
    Block(ContextBlock),
}

/// Which context the module takes and gives.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ContextBlock {
    /// Whether submodules share this module's context or get a copy.
    pub mode: Option<ContextMode>,
    /// What it takes.
    pub accepts: Option<Vec<Accept>>,
    /// What it gives.
    pub emits: Option<Vec<EmitEntry>>,
}

/// A kind of context that the module takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Accept {
    /// Name, such as `conversation_history`, `user_profile`, `session_state`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a run without it is refused.
    #[serde(default)]
    pub required: bool,
    /// How many entries of a conversation are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_turns: Option<u64>,
    /// Which members are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<String>>,
    /// A JSON Schema file in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// How old, in seconds, stored context may be. 0: this request only. -1: any age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1))]
    pub ttl: Option<i64>,
    /// For `previous_result`: the module it must come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_module: Option<String>,
}

/// A kind of context that the module gives.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct EmitEntry {
    /// Name.
    #[serde(rename = "type")]
    pub kind: String,
    /// A JSON Schema file in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// How long, in seconds, it is kept. 0: this request only. -1: for ever.
    #[serde(default)]
    #[schemars(range(min = -1))]
    pub ttl: i64,
    /// Key with `${module}`, `${input_hash}`, `${user_id}`, `${session_id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_pattern: Option<String>,
}

/// Which other modules this one is made of.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct CompositionFile {
    /// How the parts run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
    /// The parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<Vec<Dependency>>,
    /// How deep modules may call modules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_depth: Option<u64>,
    /// Time for the whole composition, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What flows from where to where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataflow: Option<Vec<FlowEntry>>,
    /// For `conditional`: what runs next. The first rule that holds wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Vec<Route>>,
    /// Tolerated as the default `fallback` of all parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// A module that this one needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// A version range such as `^1.2.0`; any version unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether the composition can do without it.
    #[serde(default)]
    pub optional: bool,
    /// The module to use instead; `null` skips it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Time for this part, in milliseconds.
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
    /// When the step is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// How several sources become one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<Aggregate>,
}

/// A rule of a conditional composition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Route {
    /// When the rule holds, such as `$.quick-check.meta.confidence > 0.8`.
    pub condition: String,
    /// The module that runs next; `null` ends with the result so far.
    pub next: Option<String>,
}

/// Who may run the module.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct InvocationFile {
    /// Whether people may: command line, HTTP, WebSocket.
    pub user_invocable: Option<bool>,
    /// Whether agents may: MCP, `@call`, composition.
    pub agent_invocable: Option<bool>,
}

/// Promises of the v1 format.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the format lists independent switches")]
pub struct ConstraintsFile {
    /// Same as `policies.network: deny`.
    #[serde(default)]
    pub no_network: bool,
    /// Same as `policies.side_effects: deny`.
    #[serde(default)]
    pub no_side_effects: bool,
    /// Stated in the prompt.
    #[serde(default)]
    pub no_inventing_data: bool,
    /// The payload must have its own `confidence`.
    #[serde(default)]
    pub require_confidence: bool,
    /// The payload must have a `rationale`.
    #[serde(default)]
    pub require_rationale: bool,
}
