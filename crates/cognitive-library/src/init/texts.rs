//! The template files below `templates/`. Each mark `<<name>>` in them is replaced by the part of that name. They have no
//! conditions and no loops; Rust code selects optional parts.

use cognitive_contract::manifest::Tier;

/// The texts of a template folder.
pub(super) struct TemplateTexts {
    pub(super) manifest: &'static str,
    pub(super) prompt: &'static str,
    pub(super) schema: &'static str,
    pub(super) input: &'static str,
    pub(super) expected: &'static str,
    pub(super) reply: &'static str,
}

macro_rules! texts {
    ($folder:literal) => {
        TemplateTexts {
            manifest: include_str!(concat!("../../templates/", $folder, "/module.yaml")),
            prompt: include_str!(concat!("../../templates/", $folder, "/prompt.md")),
            schema: include_str!(concat!("../../templates/", $folder, "/schema.json")),
            input: include_str!(concat!("../../templates/", $folder, "/tests/example.input.json")),
            expected: include_str!(concat!("../../templates/", $folder, "/tests/example.expected.json")),
            reply: include_str!(concat!("../../templates/", $folder, "/tests/example.reply.txt")),
        }
    };
}

/// The shortest complete module.
pub(super) const MINIMAL: TemplateTexts = texts!("minimal");

/// Returns the texts of a tier, with every section written out.
pub(super) fn full_texts(tier: Tier) -> TemplateTexts {
    match tier {
        Tier::Exec => texts!("exec"),
        Tier::Decision => texts!("decision"),
        Tier::Exploration => texts!("exploration"),
    }
}

/// Replaces each mark by its part. Replaced text is searched for later marks too, so no part may contain one.
pub(super) fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    parts.iter().fold(template.to_owned(), |text, (name, part)| text.replace(&format!("<<{name}>>"), part))
}

/// Joins blocks of lines with one empty line between them.
pub(super) fn join(blocks: &[String]) -> String {
    blocks.join("\n")
}
