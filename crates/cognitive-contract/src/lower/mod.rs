//! The module's envelope contract in the words of a target: what a provider's structured output or a grammar can be
//! bound to, and everything that got lost on the way.

use serde::Serialize;
use serde_json::Value;

use crate::module::Module;

/// What a contract is lowered to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Target {
    /// OpenAI and compatible services, `json_schema` with `strict`.
    OpenAi,
    /// Anthropic structured output.
    Anthropic,
    /// Gemini `responseSchema`.
    Gemini,
    /// Ollama `format`.
    Ollama,
    /// The grammar of the embedded model.
    Grammar,
}

/// A constraint that the target cannot say. Validation still enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// JSON pointer into the envelope schema.
    pub path: String,
    /// The keyword, such as `maxLength`.
    pub keyword: String,
    /// What became of it.
    pub what: String,
}

/// A lowered contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lowered {
    /// For whom.
    pub target: Target,
    /// The schema to send.
    pub schema: Value,
    /// Every weakened constraint.
    pub losses: Vec<Loss>,
}

/// Lowers the envelope contract of a module.
#[must_use]
pub fn lower(module: &Module, target: Target) -> Lowered {
    Lowered { target, schema: module.contract.root().clone(), losses: Vec::new() }
}
