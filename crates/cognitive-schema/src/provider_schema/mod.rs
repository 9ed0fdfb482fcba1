//! The module's envelope contract in the words of a target: what a provider's structured output or a grammar can be
//! bound to, and everything that got lost on the way. Judges nothing: what a dialect cannot say is missing from the
//! hint only, and validation goes on using the contract itself (D-05).
//!
//! Services are told what they understand, and the rest is left out. The grammar of the embedded model is narrowed instead:
//! what it cannot say exactly it says more strictly, so that all it lets through is lawful. What it cannot even say
//! strictly is a loss of [`Effect::Validity`], and with such a loss the embedded model refuses to serve.
//!
//! Three steps, one file each. `envelope` writes the whole envelope of a module as one schema; `normal` brings it to a
//! plain form that needs no other file (no `$ref` except to recursive types, no `allOf`, no keyword that no target
//! knows); `emit` says that form in the dialect of a target.
//!
//! Members stand in this order for every target: `ok`, then `data` with its `rationale` first (or `error`), then
//! `_emitted_context`, then `meta`. A model writes from left to right, so it has done the work before it says how
//! sure it is of it.

mod bounds;
mod conditions;
mod counts;
mod dialect;
mod emit;
mod envelope;
mod except;
mod follow;
mod leaf;
mod list;
mod merge;
mod names;
mod negate;
mod normal;
mod object;
mod order;
mod pattern;
mod sections;
mod stand_in;
mod tool;
mod union;
mod unique;
mod values;

use std::fmt::Display;

use serde::Serialize;
use serde_json::Value;

use crate::validate::Contract;
use dialect::SchemaDialect;
use normal::{MAX_DEPTH, MAX_NODES};

pub use envelope::{EmittedContext, EnvelopeRules, InsightRule};
pub use order::in_order;
pub use sections::{PlainSections, plain_sections};
pub use stand_in::drop_stand_ins;
pub use tool::{ToolSchemas, envelope_outline, tool_schemas};

/// Who a provider schema is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SchemaTarget {
    /// OpenAI and compatible services, `json_schema` with `strict`.
    OpenAi,
    /// Anthropic structured output, `output_config.format`.
    Anthropic,
    /// Gemini `responseJsonSchema`. (The older `responseSchema` knows neither `null` nor closed objects.)
    Gemini,
    /// Ollama `format`.
    Ollama,
    /// The grammar of the embedded model.
    Grammar,
}

impl SchemaTarget {
    /// All targets.
    pub const ALL: [Self; 5] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama, Self::Grammar];

    /// The name on command lines and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Grammar => "grammar",
        }
    }
}

/// What a loss means for an answer that obeys the provider schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effect {
    /// It obeys the contract, too. Some lawful answers cannot be given.
    Tightened,
    /// It obeys the contract, too: no answer is judged by the keyword.
    Annotation,
    /// It may break the contract. Validation finds that out.
    Validity,
    /// There will be none: the service is known not to take a schema of this size.
    Refused,
}

/// A constraint that the target cannot say. Validation still enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// JSON pointer into the envelope schema.
    pub path: String,
    /// The keyword, such as `maxLength`.
    pub keyword: String,
    /// What became of it. The first word is `dropped` (gone), `weakened` (less is asked of the model), `tightened`
    /// (more is asked: not everything that the contract accepts can be answered) or `refused` (the service is known
    /// not to take a schema of this size).
    pub what: String,
    /// What that means for an answer.
    pub effect: Effect,
}

/// The contract of a module in the dialect of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProviderSchema {
    /// For whom.
    pub target: SchemaTarget,
    /// The schema to send.
    pub schema: Value,
    /// Every weakened constraint.
    pub losses: Vec<Loss>,
    /// The schema as text. Every call of a service sends it, so it is written once.
    #[serde(skip)]
    text: String,
}

impl ProviderSchema {
    /// A schema for a target, and what it does not say.
    #[must_use]
    pub fn new(target: SchemaTarget, schema: Value, losses: Vec<Loss>) -> Self {
        let text = schema.to_string();
        Self { target, schema, losses, text }
    }

    /// The schema to send, as text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The losses through which an answer that obeys this schema could still break the contract.
    pub fn gaps(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| loss.effect == Effect::Validity)
    }
}

/// Writes the envelope contract of a module for a target. The same contract always gives the same result, and a bounded
/// one.
///
/// ```
/// use cognitive_schema::{
///     Contract, EnvelopeRules, InsightRule, Layout, SCHEMA_FILE, SchemaFiles, SchemaTarget, provider_schema,
/// };
/// use serde_json::json;
///
/// let schema = json!({
///     "input": {},
///     "data": { "type": "object", "properties": { "greeting": { "type": "string", "maxLength": 80 } } },
/// });
/// let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
/// let contract = Contract::compile(&files, &Layout::default()).unwrap();
///
/// let rules = EnvelopeRules {
///     partial_allowed: true,
///     strict_enums: false,
///     unknown_tag: "custom",
///     rationale_object: false,
///     error_schema_enforced: true,
///     insights: InsightRule { most: 5, mapping_required: true },
///     emits: Vec::new(),
///     risk_words: &["none", "low", "medium", "high"],
///     explain_limit: 280,
///     not_asked: vec!["trace_id"],
/// };
///
/// let written = provider_schema(&contract, &rules, SchemaTarget::Anthropic);
/// let lost = written.losses.iter().find(|loss| loss.path.ends_with("/greeting")).unwrap();
/// assert_eq!((lost.keyword.as_str(), lost.what.as_str()), ("maxLength", "dropped"));
/// ```
#[must_use]
pub fn provider_schema(
    contract: &Contract,
    rules: &EnvelopeRules<'_>,
    target: SchemaTarget,
) -> ProviderSchema {
    let dialect = SchemaDialect::of(target);
    let mut losses = Losses::default();
    let envelope = envelope::write(contract, rules, (dialect.recursion, dialect.rest), &mut losses);
    let schema = emit::envelope(&envelope, dialect, &mut losses);
    ProviderSchema::new(target, schema, losses.list)
}

/// The envelope contract of a module as one Draft-07 schema that needs no other file: what [`Loss::path`] points into.
/// (Targets without recursive types get those unrolled first, so there the paths go deeper.)
#[must_use]
pub fn envelope_schema(contract: &Contract, rules: &EnvelopeRules<'_>) -> Value {
    let form = (dialect::Recursion::Defs, dialect::Rest::LeftOut);
    envelope::write(contract, rules, form, &mut Losses::default())
}

/// The list that grows on the way.
#[derive(Debug, Default)]
struct Losses {
    list: Vec<Loss>,
    /// Whether the schema has more parts than a provider schema may have. From there on the list holds only what can
    /// break a contract: every part beyond the bound would add lines, and the first of them says it all.
    is_too_large: bool,
}

impl Losses {
    fn dropped(&mut self, path: &str, keyword: &str) {
        self.note(path, keyword, "dropped".to_owned(), Effect::Validity);
    }

    fn weakened(&mut self, path: &str, keyword: &str, how: impl Display) {
        self.note(path, keyword, format!("weakened: {how}"), Effect::Validity);
    }

    fn tightened(&mut self, path: &str, keyword: &str, how: impl Display) {
        if !self.is_too_large {
            self.note(path, keyword, format!("tightened: {how}"), Effect::Tightened);
        }
    }

    /// Says once that the schema is too large, at the first place that is not said.
    fn too_large(&mut self, path: &str) {
        if !self.is_too_large {
            self.is_too_large = true;
            let how = format!(
                "the schema has more than {MAX_NODES} parts or {MAX_DEPTH} levels; anything goes from here on"
            );
            self.weakened(path, "properties", how);
        }
    }

    fn refused(&mut self, keyword: &str, why: impl Display) {
        self.note("", keyword, format!("refused: {why}"), Effect::Refused);
    }

    fn note(&mut self, path: &str, keyword: &str, what: String, effect: Effect) {
        // Contracts judge no format, and emitted context that breaks its schema is dropped without harm to the answer.
        let judges_nothing = keyword == "format" || keyword.starts_with("x-");
        let is_beside = path.starts_with("/properties/_emitted_context");
        let effect = match effect {
            Effect::Validity if judges_nothing || is_beside => Effect::Annotation,
            effect => effect,
        };
        self.list.push(Loss { path: path.to_owned(), keyword: keyword.to_owned(), what, effect });
    }
}

#[cfg(test)]
mod tests;
