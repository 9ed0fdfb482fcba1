//! The module that a new composed module calls. It is a bundled one, so that the new module runs without an
//! installation.

use super::Template;
use super::texts::fill;

/// The bundled module that a composed module calls first.
pub(super) struct BundledPart {
    name: &'static str,
    field: &'static str,
    deed: &'static str,
    /// Its recorded reply in the golden case.
    pub(super) reply: &'static str,
}

impl BundledPart {
    /// Returns the summarizer, unless the new module takes its name: it would call itself then.
    pub(super) fn for_template(template: &Template) -> Self {
        match template.name.as_str() {
            "summarizer" => Self {
                name: "text-classifier",
                field: "label",
                deed: "found a label for it",
                reply: include_str!("../../templates/compose/text-classifier.reply.txt"),
            },
            _ => Self {
                name: "summarizer",
                field: "summary",
                deed: "shortened it",
                reply: include_str!("../../templates/compose/summarizer.reply.txt"),
            },
        }
    }

    /// The file with the recorded reply.
    pub(super) fn reply_file(&self) -> String {
        format!("tests/example.{}.reply.txt", self.name)
    }

    pub(super) fn fill(&self, text: &str) -> String {
        fill(text, &[("part", self.name), ("field", self.field), ("deed", self.deed)])
    }
}
