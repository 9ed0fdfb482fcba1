//! The golden case of a new module: an input, the expectation, and a recorded reply that satisfies it.

use cognitive_contract::manifest::{InputModality, Tier};
use serde_json::{Map, Value, json};

use super::schema::media_property;
use super::{Feature, Template};

/// A red square of 16 by 16 pixels.
const PNG: &str = include_str!("../../templates/media/example.png.b64");
/// A tone of a tenth of a second.
const WAV: &str = include_str!("../../templates/media/example.wav.b64");

/// A red video of two frames of 16 by 16 pixels.
const MP4: &str = include_str!("../../templates/media/example.mp4.b64");
/// A page with one line of text.
const PDF: &str = include_str!("../../templates/media/example.pdf.b64");

/// The input that the caller sends.
pub(super) fn input(template: &Template) -> Value {
    let text = match template.tier {
        Tier::Exec => "The lid of my parcel was broken again. I am really not happy with this.",
        Tier::Decision => {
            "We will move the shop to the new hall in March. The lease of the new hall starts in May."
        }
        Tier::Exploration => "How could a small library win more young readers?",
    };
    let mut input = Map::new();
    input.insert("text".to_owned(), json!(text));
    let kinds = template.media();
    if !kinds.is_empty() {
        let items = kinds.iter().copied().filter_map(media_item).collect();
        input.insert(media_property(&kinds).to_owned(), Value::Array(items));
    }
    if template.has(Feature::Context) {
        input.insert("_context".to_owned(), context());
    }
    Value::Object(input)
}

/// Returns a minimal item of a kind, so that the example needs no other file and no network.
fn media_item(kind: InputModality) -> Option<Value> {
    let inline = |media_type: &str, data: &str| json!({ "type": "base64", "media_type": media_type, "data": data.trim_end() });
    match kind {
        InputModality::Text => None,
        InputModality::Image => Some(inline("image/png", PNG)),
        InputModality::Audio => Some(inline("audio/wav", WAV)),
        InputModality::Video => Some(inline("video/mp4", MP4)),
        InputModality::Document => Some(inline("application/pdf", PDF)),
    }
}

fn context() -> Value {
    json!({
        "conversation_history": [
            { "role": "user", "content": "I will send you a few texts, one after the other." },
            { "role": "assistant", "content": "Good. I am ready for the next one." },
        ],
        "session_state": session_state(1),
    })
}

fn session_state(runs: u64) -> Value {
    json!({ "runs": runs, "notes": ["All texts so far were in English."] })
}

/// The expectation that the answer must satisfy, also when a real model words it differently.
pub(super) fn expected(template: &Template) -> Value {
    match template.tier {
        Tier::Exec => json!({
            "ok": true,
            "category": "complaint",
            "urgent": false,
            "_validate": { "confidence_min": 0.9 },
        }),
        Tier::Decision => json!({
            "ok": true,
            "verdict": "revise",
            "_validate": { "required": ["issues"], "contains": ["contradiction"] },
        }),
        Tier::Exploration => json!({
            "ok": true,
            "_validate": { "required": ["ideas"], "rationale_min_length": 20 },
        }),
    }
}

/// The recorded reply of a model.
pub(super) fn reply(template: &Template) -> Value {
    let (meta, mut data) = match template.tier {
        Tier::Exec => sorted(),
        Tier::Decision => judged(),
        Tier::Exploration => explored(),
    };
    if !template.media().is_empty()
        && let Some(Value::String(rationale)) = data.get_mut("rationale")
    {
        rationale.push_str(" What came with the text changes nothing about it.");
    }
    let mut envelope = Map::new();
    envelope.insert("ok".to_owned(), json!(true));
    envelope.insert("meta".to_owned(), meta);
    envelope.insert("data".to_owned(), data);
    if template.has(Feature::Context) {
        envelope.insert("_emitted_context".to_owned(), json!({ "session_state": session_state(2) }));
    }
    Value::Object(envelope)
}

fn sorted() -> (Value, Value) {
    let meta = json!({
        "confidence": 0.95,
        "risk": "low",
        "explain": "A complaint about a broken lid; nothing is urgent.",
    });
    let data = json!({
        "rationale": "The writer reports damage and says that it makes them unhappy. They ask for nothing, and waiting does no harm.",
        "category": "complaint",
        "urgent": false,
    });
    (meta, data)
}

fn judged() -> (Value, Value) {
    let meta = json!({
        "confidence": 0.9,
        "risk": "medium",
        "explain": "The shop is to move two months before the lease of the new hall starts.",
    });
    let data = json!({
        "rationale": "Both dates are stated plainly and cannot both be meant: in March the hall is not yet leased. One of them has to change, so the text can be saved.",
        "verdict": "revise",
        "issues": [{
            "kind": "contradiction",
            "description": "The move is planned for March, but the lease starts in May",
            "risk": "medium",
        }],
        "suggestion": "Move in May, or have the lease start in March.",
        "extensions": {
            "insights": [{
                "text": "The text does not say who is in charge of the move.",
                "suggested_mapping": "data.open_points",
                "evidence": "We will move the shop",
            }],
        },
    });
    (meta, data)
}

fn explored() -> (Value, Value) {
    let meta = json!({
        "confidence": 0.8,
        "risk": "none",
        "explain": "Three ideas for winning young readers, from a shelf to a reading club.",
    });
    let data = json!({
        "rationale": "A small library has little money but knows its town, so the ideas use people and places that are already there. Building work was left out.",
        "ideas": [
            {
                "title": "A shelf chosen by the young",
                "description": "Let a school class fill one shelf each month and put their names on it.",
                "kind": "quick_win",
            },
            {
                "title": "Open until nine on Fridays",
                "description": "Try late hours for two months and count who comes.",
                "kind": "experiment",
            },
            {
                "title": "A reading club without a book",
                "description": "Meet to talk about whatever everybody is reading, comics included.",
                "kind": { "custom": "habit", "reason": "It has no end, unlike a project or an experiment." },
            },
        ],
        "open_questions": ["Where do young people in the town meet today?"],
        "extensions": {
            "insights": [{
                "text": "Parents often decide whether a child comes at all.",
                "suggested_mapping": "data.people_concerned",
            }],
        },
    });
    (meta, data)
}
