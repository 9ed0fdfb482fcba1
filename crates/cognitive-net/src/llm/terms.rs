//! The features of a request, and those that a service has refused: the output binding, temperature, seed and others.
//! A refused request is repeated with fewer features, and successful terms are remembered. Never drops a feature that
//! the service did not complain about.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{DecodeMode, ModelCall};
use cognitive_schema::{ProviderSchema, SchemaTarget};

use crate::complaint::Complaint;
use crate::llm::calls::offers;

/// The binding of the answer to the contract, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bind {
    /// The service enforces the lowered schema.
    Schema,
    /// The service guarantees JSON.
    Json,
    /// Only the prompt describes the contract.
    Prompt,
}

impl Bind {
    pub(crate) fn decode(self) -> DecodeMode {
        match self {
            Self::Schema => DecodeMode::NativeSchema,
            Self::Json => DecodeMode::JsonMode,
            Self::Prompt => DecodeMode::Prompt,
        }
    }
}

/// The features that can be left out of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OptionalFeature {
    /// The temperature.
    Temperature,
    /// The seed.
    Seed,
    /// The request for token counts at the end of a stream.
    StreamUsage,
    /// The name `max_tokens` for the limit in chat completions. Without it, the newer name is used.
    OldTokenName,
    /// Any token limit in chat completions.
    TokenLimit,
    /// The thinking budget in tokens, for services that also have a level or switch. Without it, the level or switch
    /// is used.
    ThinkingBudget,
    /// Any setting for thinking.
    Thinking,
    /// The mark at the end of the cacheable prefix.
    CacheMark,
    /// The tools that the model may call.
    Tools,
    /// Reasoning beside tools, also where it is the model's default. Without it, a request with tools switches it off.
    Reasoning,
    /// The answer as a stream. Without it, the answer arrives whole.
    Stream,
    /// The reasoning in encrypted form, to be sent back with the results of tools. Without it, the model forgets what
    /// it thought before it called them.
    EncryptedReasoning,
    /// The ids of the items that are sent back, for services that look them up and find nothing.
    ItemIds,
}

/// The terms of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The binding.
    pub(crate) bind: Bind,
    /// The bindings refused on the way to these terms.
    refused: BTreeSet<Bind>,
    /// Set if only this schema was refused; other schemas may work.
    schema_is_to_blame: bool,
    without: BTreeSet<OptionalFeature>,
}

impl Terms {
    /// Returns whether the feature may be sent.
    pub(crate) fn keeps(&self, extra: OptionalFeature) -> bool {
        !self.without.contains(&extra)
    }

    /// Returns the terms that this complaint asks for; `None` if a concession would not help.
    pub(crate) fn concede(&self, complaint: &Complaint, ladder: &[Bind], sent: &ModelCall) -> Option<Self> {
        let mut next = self.clone();
        if self.refuses_reasoning(complaint, sent) {
            next.without.insert(OptionalFeature::Reasoning);
            return Some(next);
        }
        for extra in NAMED {
            let was_sent = self.keeps(*extra) && extra.is_sent(self, sent);
            if was_sent && extra.names().iter().any(|name| names(&complaint.words, name)) {
                next.without.insert(*extra);
                return Some(next);
            }
        }
        // The service supports the request, but at another endpoint. Nothing that is left out here helps.
        if complaint.mentions(&["/v1/responses"]) {
            return None;
        }
        let about_format = complaint.mentions(FORMAT);
        let less = ladder.iter().copied().find(|bind| *bind > self.bind && !self.refused.contains(bind));
        // A service that cannot combine tools and a format keeps the tools, because the answer is validated anyway.
        if self.refuses_tools(complaint, sent) && (!about_format || less.is_none()) {
            next.without.insert(OptionalFeature::Tools);
            return Some(next);
        }
        if !about_format && !complaint.mentions(UNSUPPORTED) {
            return None;
        }
        if self.bind == Bind::Schema && complaint.mentions(THIS_SCHEMA) {
            next.schema_is_to_blame = true;
        } else {
            next.refused.insert(self.bind);
        }
        next.bind = less?;
        Some(next)
    }

    /// Returns whether the tools would be accepted without reasoning.
    fn refuses_reasoning(&self, complaint: &Complaint, sent: &ModelCall) -> bool {
        let was_sent =
            self.keeps(OptionalFeature::Reasoning) && OptionalFeature::Reasoning.is_sent(self, sent);
        was_sent && complaint.mentions(OptionalFeature::Reasoning.names()) && complaint.mentions(TOOLS)
    }

    /// Returns whether a request on these terms switches reasoning off for the sake of its tools.
    pub(crate) fn reasoning_is_off(&self, call: &ModelCall) -> bool {
        !self.keeps(OptionalFeature::Reasoning) && OptionalFeature::Reasoning.is_sent(self, call)
    }

    /// Returns whether the service supports no tools. An error in a single tool is not a reason to drop all of them.
    fn refuses_tools(&self, complaint: &Complaint, sent: &ModelCall) -> bool {
        let were_sent = self.keeps(OptionalFeature::Tools) && OptionalFeature::Tools.is_sent(self, sent);
        were_sent && complaint.mentions(TOOLS) && complaint.mentions(&[UNSUPPORTED, NOT_SET_UP].concat())
    }
}

/// The features that complaints name, in the order in which they are dropped.
const NAMED: &[OptionalFeature] = &[
    // Before the settings for thinking, whose words its messages contain.
    OptionalFeature::EncryptedReasoning,
    OptionalFeature::ItemIds,
    OptionalFeature::ThinkingBudget,
    OptionalFeature::Thinking,
    OptionalFeature::Temperature,
    OptionalFeature::Seed,
    OptionalFeature::StreamUsage,
    OptionalFeature::OldTokenName,
    OptionalFeature::TokenLimit,
    OptionalFeature::CacheMark,
    OptionalFeature::Stream,
];

impl OptionalFeature {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Temperature => &["temperature"],
            Self::Seed => &["seed", "random_seed"],
            Self::StreamUsage => &["stream_options", "include_usage"],
            Self::OldTokenName => &["max_tokens"],
            Self::TokenLimit => &["max_completion_tokens"],
            Self::CacheMark => &["cache_control"],
            Self::ThinkingBudget | Self::Thinking => THINKING,
            Self::Tools => TOOLS,
            Self::Reasoning => &["reasoning_effort"],
            // As a whole word, so that `stream_options` does not match.
            Self::Stream => &["stream"],
            Self::EncryptedReasoning => &["encrypted_content", "encrypted content"],
            Self::ItemIds => NOT_STORED,
        }
    }

    /// Returns whether a request on these terms contained the feature.
    fn is_sent(self, terms: &Terms, call: &ModelCall) -> bool {
        match self {
            Self::Temperature | Self::Stream => true,
            Self::StreamUsage => terms.keeps(Self::Stream),
            Self::Seed => call.seed.is_some(),
            Self::OldTokenName => call.max_output_tokens.is_some(),
            // A caller that relies on the limit to bound its cost never loses it.
            Self::TokenLimit => {
                call.max_output_tokens.is_some() && !call.keeps_limit && !terms.keeps(Self::OldTokenName)
            }
            Self::CacheMark => call.has_stable_prefix,
            Self::ThinkingBudget | Self::Thinking => call.thinking.is_some(),
            Self::Reasoning | Self::EncryptedReasoning => offers(call) && terms.keeps(Self::Tools),
            Self::ItemIds => !call.rounds.is_empty(),
            // After the first tool round the tools can no longer be dropped.
            Self::Tools => offers(call) && call.rounds.is_empty(),
        }
    }
}

/// The services' words for thinking. A complaint with one of them is attributed to thinking, whatever else it names.
/// The binding and other features are dropped only after thinking.
const THINKING: &[&str] = &[
    "think",
    "thinking",
    "thinking_budget",
    "thinkingbudget",
    "thinking_level",
    "thinkinglevel",
    "thinking_config",
    "thinkingconfig",
    "enable_thinking",
    "budget_tokens",
    "reasoning",
    "reasoning_effort",
    "effort",
    "chat_template_kwargs",
];

/// The services' words for tools.
const TOOLS: &[&str] = &["tool", "function calling", "functions"];

/// Phrases for an item that a service was asked not to store, and looks up all the same.
pub(crate) const NOT_STORED: &[&str] = &["items are not persisted"];

/// Phrases for a feature that must be enabled on the server first.
const NOT_SET_UP: &[&str] = &["requires", "not enabled", "no endpoints found"];

/// The services' words for an output binding.
const FORMAT: &[&str] = &[
    "response_format",
    "responseformat",
    "json_schema",
    "json_object",
    "jsonschema",
    "output_config",
    "output_format",
    "output format",
    "response_json_schema",
    "response_schema",
    "responseschema",
    "response_mime_type",
    "responsemimetype",
    "response mime type",
    "structured output",
    "json mode",
    "json schema",
    "text.format",
    "grammar",
    "schema",
    "invalid format",
];

/// Phrases for an unsupported feature that the message does not name.
const UNSUPPORTED: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unknown name",
    "unknown field",
    "extra inputs",
    "unrecognized",
];

/// Phrases for an unsupported schema; other schemas may work.
const THIS_SCHEMA: &[&str] = &[
    "invalid schema",
    "invalid_json_schema",
    "invalid json schema",
    "format.schema",
    "compiled grammar",
    "parse grammar",
    "too complex",
    "too many states",
    "too large",
];

/// Returns whether a name occurs as a whole word, so that `seed` does not match `unseeded`.
fn names(words: &str, name: &str) -> bool {
    let part_of_a_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    words.match_indices(name).any(|(start, _)| {
        let before = words.get(..start).and_then(|before| before.chars().next_back());
        let after = words.get(start + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(part_of_a_name) && !after.is_some_and(part_of_a_name)
    })
}

/// The known capabilities of a service. One per provider, shared by all its calls.
#[derive(Debug)]
pub(crate) struct Memory {
    ladder: &'static [Bind],
    target: Option<SchemaTarget>,
    known: Lock<LearnedRefusals>,
}

#[derive(Debug)]
struct LearnedRefusals {
    refused: BTreeSet<Bind>,
    /// The bindings that the service refuses together with tools.
    refused_beside_tools: BTreeSet<Bind>,
    without: BTreeSet<OptionalFeature>,
    /// The hashes of refused schemas, for a service that accepts others.
    bad_schemas: HashSet<u64>,
}

impl Memory {
    /// Creates a memory with the documented limits of the service only.
    pub(crate) fn new(
        ladder: &'static [Bind],
        target: Option<SchemaTarget>,
        without: &[OptionalFeature],
    ) -> Self {
        let without = without.iter().copied().collect();
        let (refused, refused_beside_tools) = (BTreeSet::new(), BTreeSet::new());
        let known = LearnedRefusals { refused, refused_beside_tools, without, bad_schemas: HashSet::new() };
        Self { ladder, target, known: Lock::new(known) }
    }

    /// Adds the bindings that the service refuses together with tools.
    pub(crate) fn without_tools(self, bindings: &[Bind]) -> Self {
        self.known.lock().refused_beside_tools.extend(bindings);
        self
    }

    /// Returns the terms for a call: the strictest binding that is not known to fail.
    pub(crate) fn terms(&self, call: &ModelCall) -> Terms {
        self.terms_with(offers(call), call)
    }

    fn terms_with(&self, tools: bool, call: &ModelCall) -> Terms {
        let schema = self.schema(call);
        let known = self.known.lock();
        let fits = |bind: Bind| match (bind, schema) {
            (Bind::Schema, None) => false,
            (Bind::Schema, Some(schema)) => {
                // Hashing reads the whole schema; usually there is no hash to compare with.
                known.bad_schemas.is_empty() || !known.bad_schemas.contains(&hash(schema))
            }
            (Bind::Json | Bind::Prompt, _) => true,
        };
        let mut refused = known.refused.clone();
        if tools && !known.without.contains(&OptionalFeature::Tools) {
            refused.extend(&known.refused_beside_tools);
        }
        let bind = self.ladder.iter().copied().find(|bind| !refused.contains(bind) && fits(*bind));
        Terms {
            bind: bind.unwrap_or(Bind::Prompt),
            refused,
            schema_is_to_blame: false,
            without: known.without.clone(),
        }
    }

    /// Returns the schema of a call, if it was lowered for this service.
    pub(crate) fn schema<'a>(&self, call: &'a ModelCall) -> Option<&'a ProviderSchema> {
        call.schema.as_deref().filter(|schema| Some(schema.target) == self.target)
    }

    /// Returns the terms to try next.
    pub(crate) fn concede(&self, terms: &Terms, complaint: &Complaint, call: &ModelCall) -> Option<Terms> {
        let next = terms.concede(complaint, self.ladder, call)?;
        if next.keeps(OptionalFeature::Tools) == terms.keeps(OptionalFeature::Tools) {
            return Some(next);
        }
        // A binding refused together with tools may work without them.
        Some(Terms { without: next.without, ..self.terms_with(false, call) })
    }

    /// Records terms that worked after others were refused.
    pub(crate) fn remember(&self, terms: &Terms, call: &ModelCall) {
        let bad = self.schema(call).filter(|_| terms.schema_is_to_blame).map(hash);
        let mut known = self.known.lock();
        known.without.extend(&terms.without);
        if offers(call) && terms.keeps(OptionalFeature::Tools) {
            known.refused_beside_tools.extend(&terms.refused);
        } else {
            known.refused.extend(&terms.refused);
        }
        known.bad_schemas.extend(bad);
    }
}

fn hash(schema: &ProviderSchema) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(schema.text())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cognitive_contract::tools::ToolSpec;
    use serde_json::{Value, json};

    use super::*;

    const ALL: &[Bind] = &[Bind::Schema, Bind::Json, Bind::Prompt];

    fn call(schema: Option<Value>) -> ModelCall {
        let mut call = ModelCall::new(String::new(), String::new(), 0.0);
        let lowered = |schema| Arc::new(ProviderSchema::new(SchemaTarget::OpenAi, schema, Vec::new()));
        call.schema = schema.map(lowered);
        call.seed = Some(1);
        call.max_output_tokens = Some(9);
        call
    }

    fn memory() -> Memory {
        Memory::new(ALL, Some(SchemaTarget::OpenAi), &[])
    }

    fn complaint(text: &str) -> Complaint {
        Complaint::from_body(json!({ "error": { "message": text } }).to_string().as_bytes())
    }

    /// Returns the terms after each of these complaints.
    fn after(complaints: &[&str]) -> Option<Terms> {
        let (memory, call) = (memory(), call(Some(json!({}))));
        let first = Some(memory.terms(&call));
        complaints.iter().fold(first, |terms, text| memory.concede(&terms?, &complaint(text), &call))
    }

    #[test]
    fn bindings_are_loosened_step_by_step() {
        let refusals = [
            "'response_format' of type 'json_schema' is not supported with this model",
            "This response_format type is unavailable now",
        ];
        assert_eq!(after(&refusals[..0]).unwrap().bind, Bind::Schema);
        assert_eq!(after(&refusals[..1]).unwrap().bind, Bind::Json);
        assert_eq!(after(&refusals).unwrap().bind, Bind::Prompt);
        assert_eq!(after(&[refusals[0], refusals[1], refusals[1]]), None);
    }

    #[test]
    fn only_what_was_named_is_given_up() {
        for (text, extra) in [
            (
                "Unsupported value: 'temperature' does not support 0 with this model.",
                OptionalFeature::Temperature,
            ),
            ("`temperature` is deprecated for this model.", OptionalFeature::Temperature),
            ("seed: Extra inputs are not permitted", OptionalFeature::Seed),
            ("Unknown field: stream_options", OptionalFeature::StreamUsage),
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                OptionalFeature::OldTokenName,
            ),
        ] {
            let terms = after(&[text]).unwrap();
            assert_eq!(terms.without, BTreeSet::from([extra]), "{text}");
            assert_eq!(terms.bind, Bind::Schema);
        }
        assert_eq!(after(&["You must not exceed the unseeded limit"]), None);
        assert_eq!(after(&["The model refuses to load"]), None);
    }

    #[test]
    fn the_limit_itself_goes_last() {
        let both = after(&["max_tokens is not supported", "max_completion_tokens is not supported"]).unwrap();
        assert!(!both.keeps(OptionalFeature::OldTokenName) && !both.keeps(OptionalFeature::TokenLimit));
    }

    #[test]
    fn what_works_is_remembered() {
        let memory = memory();
        let with = call(Some(json!({ "type": "object" })));
        let terms = memory.terms(&with);
        let terms = memory.concede(&terms, &complaint("json_schema is not supported"), &with).unwrap();
        let terms = memory.concede(&terms, &complaint("temperature is not supported"), &with).unwrap();
        assert_eq!(memory.terms(&with).bind, Bind::Schema, "not before it worked");
        memory.remember(&terms, &with);
        assert_eq!(memory.terms(&with).bind, Bind::Json);
        assert!(!memory.terms(&with).keeps(OptionalFeature::Temperature));
    }

    #[test]
    fn one_bad_schema_does_not_spoil_the_others() {
        let memory = memory();
        let (bad, good) = (call(Some(json!({ "a": 1 }))), call(Some(json!({ "b": 1 }))));
        let complaint = complaint("Invalid schema for response_format 'answer': 'oneOf' is not permitted");
        let terms = memory.concede(&memory.terms(&bad), &complaint, &bad).unwrap();
        memory.remember(&terms, &bad);
        assert_eq!(memory.terms(&bad).bind, Bind::Json);
        assert_eq!(memory.terms(&good).bind, Bind::Schema);
    }

    fn with_tools(schema: Option<Value>) -> ModelCall {
        let mut call = call(schema);
        call.tools = vec![Arc::new(ToolSpec::new("a", "A.", json!({ "type": "object" })))];
        call
    }

    // Messages of Gemini, Groq and llama.cpp: the tools stay, and the binding is dropped only for calls with tools.
    #[test]
    fn a_service_that_cannot_have_both_keeps_the_tools() {
        for text in [
            "Function calling with a response mime type: 'application/json' is unsupported",
            "json mode cannot be combined with tool/function calling",
            "Cannot use custom grammar constraints with tools.",
        ] {
            let memory = Memory::new(&[Bind::Json, Bind::Prompt], Some(SchemaTarget::OpenAi), &[]);
            let (call, plain) = (with_tools(None), call(None));
            let terms = memory.concede(&memory.terms(&call), &complaint(text), &call).unwrap();
            assert!(terms.keeps(OptionalFeature::Tools) && terms.bind == Bind::Prompt, "{text}");
            memory.remember(&terms, &call);
            assert_eq!(memory.terms(&call).bind, Bind::Prompt);
            assert_eq!(memory.terms(&plain).bind, Bind::Json, "{text}");
        }
    }

    // Messages of Ollama, llama.cpp, vLLM and OpenRouter.
    #[test]
    fn a_service_without_tools_is_asked_without_them() {
        for text in [
            "registry.ollama.ai/library/gemma:latest does not support tools",
            "tools param requires --jinja flag",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            "No endpoints found that support tool use.",
        ] {
            let (memory, call) = (memory(), with_tools(Some(json!({}))));
            let terms = memory.concede(&memory.terms(&call), &complaint(text), &call).unwrap();
            assert!(!terms.keeps(OptionalFeature::Tools) && terms.bind == Bind::Schema, "{text}");
        }
        let bad = "Invalid 'tools[0].function.parameters': 'a' is not a type";
        let (memory, call) = (memory(), with_tools(None));
        assert_eq!(memory.concede(&memory.terms(&call), &complaint(bad), &call), None, "one bad tool");
    }

    #[test]
    fn a_binding_that_would_keep_the_model_from_calling_is_used_for_the_last_answer() {
        let memory = memory().without_tools(&[Bind::Schema, Bind::Json]);
        let mut call = with_tools(Some(json!({})));
        assert_eq!(memory.terms(&call).bind, Bind::Prompt);
        call.answer_now = true;
        assert_eq!(memory.terms(&call).bind, Bind::Schema);
    }

    // LM Studio supports schemas, but no plain JSON mode.
    #[test]
    fn a_service_without_json_mode_may_still_take_schemas() {
        let memory = memory();
        let (with, plain) = (call(Some(json!({}))), call(None));
        let complaint = complaint("'response_format.type' must be 'json_schema' or 'text'");
        let terms = memory.concede(&memory.terms(&plain), &complaint, &plain).unwrap();
        memory.remember(&terms, &plain);
        assert_eq!(memory.terms(&plain).bind, Bind::Prompt);
        assert_eq!(memory.terms(&with).bind, Bind::Schema);
    }

    #[test]
    fn a_schema_for_somebody_else_is_no_schema() {
        let mut other = call(Some(json!({})));
        other.schema = Some(Arc::new(ProviderSchema::new(SchemaTarget::Gemini, json!({}), Vec::new())));
        assert_eq!(memory().terms(&other).bind, Bind::Json);
        assert_eq!(memory().terms(&call(None)).bind, Bind::Json);
    }
}
