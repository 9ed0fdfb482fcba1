//! The module's envelope contract in the dialect of a target, for a provider's structured output or a grammar, with a
//! list of all losses. Validates nothing: a rule that a dialect cannot express is missing only from the provider
//! schema, and validation still uses the contract itself (D-05).
//!
//! For services, inexpressible rules are left out. The grammar of the embedded model is narrowed instead: it replaces
//! an inexpressible rule by a stricter one, so that everything it allows is valid. A rule without a stricter form is a
//! loss of [`Effect::Validity`], and with such a loss the embedded model refuses to serve.
//!
//! Three steps, one file each. `envelope` writes the whole envelope of a module as one schema. `normal` converts it to
//! a self-contained plain form (no `$ref` except to recursive types, no `allOf`, no keyword that no target knows).
//! `emit` writes that form in the dialect of a target.
//!
//! Members have this order for every target: `ok`, then `data` with its `rationale` first (or `error`), then
//! `_emitted_context`, then `meta`. A model writes from left to right, so it does the work before it rates its
//! confidence.

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
use dialect::{OptionalNotation, OutcomeShape, SchemaDialect};
use normal::{MAX_DEPTH, MAX_NODES};

pub use envelope::{EmittedContext, EnvelopeRules, InsightRule};
pub use order::in_order;
pub use sections::{PlainSections, plain_sections};
pub use stand_in::drop_stand_ins;
pub use tool::{ToolSchemas, envelope_outline, tool_schemas};

/// The target of a provider schema.
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

    /// The name on the command line and in JSON.
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

    /// The target of a name on a command line or in JSON. The embedded model may be called by its provider's name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = if word == "embedded" { "grammar" } else { word };
        Self::ALL.into_iter().find(|target| target.word() == word)
    }

    /// Returns whether a model that is bound to such a schema has to write `null` for an optional member that is absent.
    #[must_use]
    pub fn writes_null_for_absent(self) -> bool {
        SchemaDialect::for_target(self).optional != OptionalNotation::Absent
    }

    /// Returns whether it has to write `null` for the one of `data` and `error` that does not apply.
    pub(crate) fn null_means_other_outcome(self) -> bool {
        SchemaDialect::for_target(self).envelope == OutcomeShape::OneObject
    }
}

/// The effect of a loss on an answer that matches the provider schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effect {
    /// The answer also satisfies the contract, but some valid answers are impossible.
    Tightened,
    /// The answer also satisfies the contract, since the keyword validates nothing.
    Annotation,
    /// The answer may break the contract. Validation detects that.
    Validity,
    /// No answer: the service is known to refuse a schema of this size.
    Refused,
}

/// A constraint that the target cannot express. Validation still enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// JSON pointer into the envelope schema.
    pub path: String,
    /// The keyword, such as `maxLength`.
    pub keyword: String,
    /// The change to the constraint. The first word is one of these:
    /// - `dropped`: removed.
    /// - `weakened`: the model is asked for less.
    /// - `tightened`: the model is asked for more, so some valid answers are impossible.
    /// - `refused`: the service is known to refuse a schema of this size.
    pub what: String,
    /// The effect on an answer.
    pub effect: Effect,
}

/// The contract of a module in the dialect of a target.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProviderSchema {
    /// The target of the schema.
    pub target: SchemaTarget,
    /// The schema to send.
    pub schema: Value,
    /// Every changed or dropped constraint.
    pub losses: Vec<Loss>,
    /// The serialized schema, cached because every call of a service sends it.
    #[serde(skip)]
    text: String,
}

impl ProviderSchema {
    /// Creates a provider schema from a schema and its losses.
    #[must_use]
    pub fn new(target: SchemaTarget, schema: Value, losses: Vec<Loss>) -> Self {
        let text = schema.to_string();
        Self { target, schema, losses, text }
    }

    /// The schema to send, serialized.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The losses through which a matching answer could still break the contract.
    pub fn gaps(&self) -> impl Iterator<Item = &Loss> {
        self.losses.iter().filter(|loss| loss.effect == Effect::Validity)
    }
}

/// Writes the envelope contract of a module for a target. The result is deterministic and bounded in size.
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
    let dialect = SchemaDialect::for_target(target);
    let mut losses = Losses::default();
    let envelope = envelope::write(contract, rules, (dialect.recursion, dialect.rest), &mut losses);
    let schema = emit::envelope(&envelope, dialect, &mut losses);
    ProviderSchema::new(target, schema, losses.finish())
}

/// The envelope contract of a module as one self-contained Draft-07 schema, to which [`Loss::path`] refers.
/// (For targets without recursive types, those are unrolled first, so their paths go deeper.)
#[must_use]
pub fn envelope_schema(contract: &Contract, rules: &EnvelopeRules<'_>) -> Value {
    let form = (dialect::Recursion::Defs, dialect::UnsupportedRules::LeftOut);
    envelope::write(contract, rules, form, &mut Losses::default())
}

/// The maximum number of losses that are listed of those that can break a contract, and of the others. A small schema
/// with references that double at each step has hundreds of thousands, and the first thousand say enough.
const MAX_LOSSES: usize = 1_000;

/// Collects the losses.
#[derive(Debug, Default)]
struct Losses {
    list: Vec<Loss>,
    /// The number of losses that can break a contract, and of the others, with those that are not listed.
    counts: (usize, usize),
    /// True if the schema exceeds the maximum number of parts. After that, only losses that can break a contract are
    /// recorded, since every further part would add lines of the same meaning.
    is_too_large: bool,
}

impl Losses {
    fn note_dropped(&mut self, path: &str, keyword: &str) {
        self.note(path, keyword, "dropped".to_owned(), Effect::Validity);
    }

    fn note_weakened(&mut self, path: &str, keyword: &str, how: impl Display) {
        self.note(path, keyword, format!("weakened: {how}"), Effect::Validity);
    }

    fn note_tightened(&mut self, path: &str, keyword: &str, how: impl Display) {
        if !self.is_too_large {
            self.note(path, keyword, format!("tightened: {how}"), Effect::Tightened);
        }
    }

    /// Records once that the schema is too large, at the first location that is left out.
    fn too_large(&mut self, path: &str) {
        if !self.is_too_large {
            self.is_too_large = true;
            let how = format!(
                "the schema has more than {MAX_NODES} parts or {MAX_DEPTH} levels; any value is allowed \
                 from here on"
            );
            self.note_weakened(path, "properties", how);
        }
    }

    fn note_refused(&mut self, keyword: &str, why: impl Display) {
        self.note("", keyword, format!("refused: {why}"), Effect::Refused);
    }

    fn note(&mut self, path: &str, keyword: &str, what: String, effect: Effect) {
        // Contracts do not validate formats, and emitted context that breaks its schema is dropped without harm to the
        // answer.
        let judges_nothing = keyword == "format" || keyword.starts_with("x-");
        let is_beside = path.starts_with("/properties/_emitted_context");
        let effect = match effect {
            Effect::Validity if judges_nothing || is_beside => Effect::Annotation,
            effect => effect,
        };
        let count = match effect {
            // Few, and the reason why a service refuses the schema must not be lost.
            Effect::Refused => &mut 0,
            Effect::Validity => &mut self.counts.0,
            Effect::Tightened | Effect::Annotation => &mut self.counts.1,
        };
        *count += 1;
        if *count <= MAX_LOSSES {
            self.list.push(Loss { path: path.to_owned(), keyword: keyword.to_owned(), what, effect });
        }
    }

    /// Returns the list. The last entries count those that are not listed.
    fn finish(mut self) -> Vec<Loss> {
        for (count, effect) in [(self.counts.0, Effect::Validity), (self.counts.1, Effect::Tightened)] {
            if let Some(more) = count.checked_sub(MAX_LOSSES).filter(|more| *more > 0) {
                let (path, keyword, what) = (String::new(), "…".to_owned(), format!("and {more} more"));
                self.list.push(Loss { path, keyword, what, effect });
            }
        }
        self.list
    }
}

#[cfg(test)]
mod tests;
