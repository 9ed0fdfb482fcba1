//! `schema.json` of a new module and its golden case, whose recorded reply satisfies both. In the schema everything has a
//! description, every list and text of the answer has a limit, and no `$ref` has siblings, which Draft-07 would ignore.

use cognitive_contract::manifest::{InputModality, Tier};

use super::texts::{fill, full_texts};
use super::{Feature, Template};

/// The input member that holds media. It is named after the kind if the module accepts only one.
pub(super) fn media_property(kinds: &[InputModality]) -> &'static str {
    match kinds {
        [InputModality::Image] => "images",
        [InputModality::Audio] => "recordings",
        [InputModality::Video] => "videos",
        [InputModality::Document] => "documents",
        _ => "media",
    }
}

/// The whole schema: four sections and the definitions that they share.
pub(super) fn schema(template: &Template) -> String {
    let (mut required, mut properties, mut definitions) = (String::new(), Vec::new(), Vec::new());
    let media = template.media();
    if !media.is_empty() {
        let name = media_property(&media);
        let kinds: Vec<&str> = media.iter().map(|kind| kind.word()).collect();
        let parts = [("property", name), ("kinds", &kinds.join(", "))];
        required = format!(", \"{name}\"");
        properties.push(fill(include_str!("../../templates/media/property.json"), &parts));
        // Wide on purpose: an unsupported kind of media is refused with its own code, E1010.
        let pattern = if media.contains(&InputModality::Document) {
            "^((image|audio|video)/[a-z0-9.+-]+|application/pdf)$"
        } else {
            "^(image|audio|video)/[a-z0-9.+-]+$"
        };
        definitions
            .push(fill(include_str!("../../templates/media/definition.json"), &[("pattern", pattern)]));
    }
    if template.has(Feature::Context) {
        properties.push(include_str!("../../templates/context/property.json").to_owned());
        definitions.push(include_str!("../../templates/context/definitions.json").to_owned());
    }
    // The number of insights that the manifest of the tier allows.
    let limit = match template.tier {
        Tier::Exec => None,
        Tier::Decision => Some("5"),
        Tier::Exploration => Some("20"),
    };
    definitions
        .extend(limit.map(|limit| {
            fill(include_str!("../../templates/insights/definition.json"), &[("limit", limit)])
        }));
    let definitions = match further_members(&definitions).strip_prefix(',') {
        Some(definitions) => format!(",\n  \"$defs\": {{{definitions}\n  }}"),
        None => String::new(),
    };
    let parts = [
        ("required", &*required),
        ("properties", &further_members(&properties)),
        ("definitions", &definitions),
    ];
    fill(full_texts(template.tier).schema, &parts)
}

/// The members of a JSON object behind its first ones.
fn further_members(members: &[String]) -> String {
    members.iter().flat_map(|member| [",\n", member.trim_end()]).collect()
}

/// The input of the golden case.
pub(super) fn input(template: &Template) -> String {
    let mut members = Vec::new();
    let media = template.media();
    if !media.is_empty() {
        let items: Vec<String> = media.iter().copied().filter_map(media_item).collect();
        let parts = [("property", media_property(&media)), ("items", &items.join(",\n"))];
        members.push(fill(include_str!("../../templates/media/input.json"), &parts));
    }
    if template.has(Feature::Context) {
        members.push(include_str!("../../templates/context/input.json").to_owned());
    }
    fill(full_texts(template.tier).input, &[("members", &further_members(&members))])
}

/// Returns a minimal item of a kind, so that the example needs no other file and no network.
fn media_item(kind: InputModality) -> Option<String> {
    let (media_type, data) = match kind {
        InputModality::Text => return None,
        // A red square of 16 by 16 pixels.
        InputModality::Image => ("image/png", include_str!("../../templates/media/example.png.b64")),
        // A tone of a tenth of a second.
        InputModality::Audio => ("audio/wav", include_str!("../../templates/media/example.wav.b64")),
        // Two red frames of 16 by 16 pixels.
        InputModality::Video => ("video/mp4", include_str!("../../templates/media/example.mp4.b64")),
        // A page with one line of text.
        InputModality::Document => ("application/pdf", include_str!("../../templates/media/example.pdf.b64")),
    };
    let parts = [("media-type", media_type), ("data", data.trim_end())];
    Some(fill(include_str!("../../templates/media/item.json"), &parts).trim_end().to_owned())
}

/// The recorded reply of a model.
pub(super) fn reply(template: &Template) -> String {
    let note =
        if template.media().is_empty() { "" } else { " What came with the text changes nothing about it." };
    let emitted = if template.has(Feature::Context) {
        further_members(&[include_str!("../../templates/context/reply.json").to_owned()])
    } else {
        String::new()
    };
    fill(full_texts(template.tier).reply, &[("media-note", note), ("emitted", &emitted)])
}
