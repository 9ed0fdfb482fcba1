//! The other module in a composed one. A bundled module, so that a new module runs without installing anything.

use serde_json::{Value, json};

use super::Template;
use super::fill::fill;

/// The bundled module that a composed module asks first.
pub(super) struct BundledPart {
    name: &'static str,
    field: &'static str,
    deed: &'static str,
}

impl BundledPart {
    /// The summarizer, unless the new module takes its name: then it would call itself.
    pub(super) fn of(template: &Template) -> Self {
        match template.name.as_str() {
            "summarizer" => Self { name: "text-classifier", field: "label", deed: "found a label for it" },
            _ => Self { name: "summarizer", field: "summary", deed: "shortened it" },
        }
    }

    /// The file that holds what it said in the golden case.
    pub(super) fn reply_file(&self) -> String {
        format!("tests/example.{}.reply.txt", self.name)
    }

    /// What it said.
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
