//! The module that a new composed module calls. It is a bundled one, so that the new module runs without an
//! installation.

use serde_json::{Value, json};

use super::Template;
use super::fill::fill;

/// The bundled module that a composed module calls first.
pub(super) struct BundledPart {
    name: &'static str,
    field: &'static str,
    deed: &'static str,
}

impl BundledPart {
    /// Returns the summarizer, unless the new module takes its name: it would call itself then.
    pub(super) fn of(template: &Template) -> Self {
        match template.name.as_str() {
            "summarizer" => Self { name: "text-classifier", field: "label", deed: "found a label for it" },
            _ => Self { name: "summarizer", field: "summary", deed: "shortened it" },
        }
    }

    /// The file with its recorded reply in the golden case.
    pub(super) fn reply_file(&self) -> String {
        format!("tests/example.{}.reply.txt", self.name)
    }

    /// Its recorded reply.
    pub(super) fn reply(&self) -> Value {
        let data = match self.name {
            "text-classifier" => {
                json!({ "rationale": "The text tells of something without feeling.", "sentiment": "neutral", "label": "text" })
            }
            _ => {
                json!({ "rationale": "The text is short, so little was left out.", "summary": "A short text in which somebody says something." })
            }
        };
        json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "none", "explain": "Done with a short text." }, "data": data })
    }

    pub(super) fn fill(&self, text: &str) -> String {
        fill(text, &[("part", self.name), ("field", self.field), ("deed", self.deed)])
    }
}
