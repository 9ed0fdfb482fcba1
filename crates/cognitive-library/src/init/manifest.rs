//! `module.yaml` of a new module: a block for its tier, a block per feature, and the common blocks. Built as text, not
//! serialised, because the comments matter as much as the values.

use cognitive_contract::manifest::{InputModality, Mode, Tier};

use super::part::BundledPart;
use super::texts::{fill, full_texts, join};
use super::{Feature, Template, name};

pub(super) fn text(template: &Template) -> String {
    let mut blocks = vec![tier(template)];
    if template.has(Feature::Streaming) {
        blocks.push(response(template.tier));
    }
    let media = template.media();
    if !media.is_empty() {
        blocks.push(modalities(&media));
    }
    if template.has(Feature::Context) {
        blocks.push(include_str!("../../templates/context/module.yaml").to_owned());
    }
    if template.has(Feature::Compose) {
        blocks.push(
            BundledPart::for_template(template).fill(include_str!("../../templates/compose/module.yaml")),
        );
    }
    blocks.push(common(&media));
    join(&blocks)
}

fn tier(template: &Template) -> String {
    let parts = [("title", name::title(&template.name)), ("yaml-name", name::yaml(&template.name))];
    fill(full_texts(template.tier).manifest, &parts.each_ref().map(|(mark, part)| (*mark, part.as_str())))
}

/// Decision modules serve people and programs, so they offer both modes. The others get here only if streaming was
/// requested.
fn response(tier: Tier) -> String {
    let (mode, reason) = match tier {
        Tier::Exec => (
            Mode::Streaming,
            "Send the answer piece by piece. Pieces are provisional: confidence and risk are judged at the end.",
        ),
        Tier::Decision => (Mode::Both, "The caller chooses: one envelope, or the answer piece by piece."),
        Tier::Exploration => (
            Mode::Streaming,
            "Send the answer piece by piece. A caller who asks for one envelope still gets one.",
        ),
    };
    let text = include_str!("../../templates/shared/response.yaml");
    fill(text, &[("mode", mode.word()), ("mode-reason", reason)])
}

fn modalities(media: &[InputModality]) -> String {
    let kinds: Vec<&str> = media.iter().map(|kind| kind.word()).collect();
    fill(include_str!("../../templates/media/module.yaml"), &[("kinds", &kinds.join(", "))])
}

fn common(media: &[InputModality]) -> String {
    let sees = media.iter().any(|kind| matches!(kind, InputModality::Image | InputModality::Video));
    let capabilities = if sees { "json_mode, vision" } else { "json_mode" };
    fill(include_str!("../../templates/shared/module.yaml"), &[("capabilities", capabilities)])
}
