//! The other module in a composed one. A bundled module, so that a new module runs without installing anything.

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

    pub(super) fn fill(&self, text: &str) -> String {
        fill(text, &[("part", self.name), ("field", self.field), ("deed", self.deed)])
    }
}
