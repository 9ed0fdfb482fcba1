//! `prompt.md` of a new module: the task of its tier, the input of the model, and the envelope it answers with.

use cognitive_contract::manifest::{InputModality, Tier};

use super::part::BundledPart;
use super::texts::{fill, full_texts, join};
use super::{Feature, Template, contract, name};

/// The instructions for returning context, in the list of members and in the example.
const EMITTED_NOTE: &str = "
- `_emitted_context`, beside `data`: `session_state` for the next run, with `runs` (this one included) and `notes` \
(what the next run should know).";
const EMITTED: &str = r#",
  "_emitted_context": {
    "session_state": { "runs": 1, "notes": ["This was the first text."] }
  }"#;

pub(super) fn text(template: &Template) -> String {
    let emits = template.has(Feature::Context);
    let parts = [
        ("title", name::title(&template.name)),
        ("given", input_section(template).trim_end().to_owned()),
        ("emitted-note", if emits { EMITTED_NOTE.to_owned() } else { String::new() }),
        ("emitted", if emits { EMITTED.to_owned() } else { String::new() }),
    ];
    let mut blocks = vec![fill(
        full_texts(template.tier).prompt,
        &parts.each_ref().map(|(mark, part)| (*mark, part.as_str())),
    )];
    // As in the bundled media modules: `$INPUT` is the whole input as JSON and would repeat every item as base64.
    if template.media().is_empty() {
        blocks.push(include_str!("../../templates/shared/input.md").to_owned());
    }
    join(&blocks)
}

/// The input of the model: media, fields, context, results of other modules.
fn input_section(template: &Template) -> String {
    let mut blocks = Vec::new();
    let media = template.media();
    if !media.is_empty() {
        blocks.push(include_str!("../../templates/media/prompt.md").to_owned());
    }
    blocks.push(fields(template.tier, &media));
    if template.has(Feature::Context) {
        blocks.push(include_str!("../../templates/context/prompt.md").to_owned());
    }
    if template.has(Feature::Compose) {
        blocks.push(
            BundledPart::for_template(template).fill(include_str!("../../templates/compose/prompt.md")),
        );
    }
    join(&blocks)
}

fn fields(tier: Tier, media: &[InputModality]) -> String {
    let text = match tier {
        Tier::Exec => "the text to sort",
        Tier::Decision => "the text to judge",
        Tier::Exploration => "the question or topic to think about",
    };
    let media_field = if media.is_empty() {
        String::new()
    } else {
        format!("\n- `{}`: one to ten items, shown above in the same order.", contract::media_property(media))
    };
    fill(include_str!("../../templates/shared/fields.md"), &[("text", text), ("media-field", &media_field)])
}
