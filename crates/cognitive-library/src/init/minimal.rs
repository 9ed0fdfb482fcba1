//! The shortest complete module: a manifest of seven lines, a prompt of four, a contract of two members, and a golden
//! test. The runtime supplies the rest, such as the form of the envelope. The team is a decision (`x-decide`), so the
//! embedded model weighs it and can be trained.

use std::collections::BTreeMap;

use cognitive_contract::manifest::Tier;
use cognitive_schema::SCHEMA_FILE;

use super::texts::{MINIMAL, fill};
use super::{Feature, Template, name};

/// The text of the example, which `cogn init` also suggests for a first run.
pub const EXAMPLE_TEXT: &str = "I was charged twice this month.";

pub(super) fn files(template: &Template) -> BTreeMap<String, String> {
    let files = [
        ("module.yaml", manifest(template)),
        ("prompt.md", MINIMAL.prompt.to_owned()),
        (SCHEMA_FILE, MINIMAL.schema.to_owned()),
        ("tests/example.input.json", fill(MINIMAL.input, &[("text", EXAMPLE_TEXT)])),
        ("tests/example.expected.json", MINIMAL.expected.to_owned()),
        ("tests/example.reply.txt", MINIMAL.reply.to_owned()),
    ];
    files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
}

fn manifest(template: &Template) -> String {
    let tier = match template.tier {
        Tier::Exec => "exec",
        Tier::Decision => "decision",
        Tier::Exploration => "exploration",
    };
    // As in the full form: decision modules serve people and programs; the others stream only on request.
    let response = match template.tier {
        _ if !template.has(Feature::Streaming) => "",
        Tier::Decision => "\nresponse: {mode: both}",
        Tier::Exec | Tier::Exploration => "\nresponse: {mode: streaming}",
    };
    let name = name::yaml(&template.name);
    let parts = [("yaml-name", name.as_str()), ("tier", tier), ("response", response)];
    fill(MINIMAL.manifest, &parts)
}
