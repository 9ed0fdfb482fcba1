//! The result of a call: the envelope as structured content and as text, and a content block for each media item. The
//! client's model thereby sees an image instead of base64. In the text, a media item names the block with its bytes.
//! The structured content is the unchanged envelope.

use cognitive_contract::Envelope;
use cognitive_contract::media::{Category, MediaType, embedded_media};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

use crate::suggestion::{self, ToolWording};

/// The longest base64 of one block, in bytes: services refuse images above about 5 MB, and a refused image ends a
/// conversation.
const MAX_BLOCK_LENGTH: usize = 5_000_000;
/// The base64 limit for all blocks of a result, in bytes.
const MAX_BLOCKS_LENGTH: usize = 20_000_000;
/// The most blocks of a result. Every block goes into the conversation and costs tokens.
const MAX_BLOCKS: usize = 16;

/// The member of a media item in the text that names the location of its bytes.
const BYTES_IN: &str = "bytes_in";

/// Returns the result for an envelope. Clients show either the text or the structure, so both have the same content.
pub(crate) fn envelope_result(envelope: &Envelope, wording: ToolWording) -> CallToolResult {
    let mut structured = serde_json::to_value(envelope).unwrap_or_default();
    suggestion::reword(&mut structured, wording);
    let media: Vec<_> =
        embedded_media(envelope).into_iter().map(|each| (each.place, each.media_type)).collect();
    let content = if media.is_empty() {
        vec![ContentBlock::text(structured.to_string())]
    } else {
        with_media(&mut structured, media)
    };
    tool_result(structured, content, !envelope.ok())
}

/// Returns the result for a value that is not the answer of a module, such as a list or a failure without a run.
pub(crate) fn value_result(value: Value, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(value.to_string())];
    tool_result(value, content, is_error)
}

fn tool_result(structured: Value, content: Vec<ContentBlock>, is_error: bool) -> CallToolResult {
    let mut result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = Some(structured);
    result
}

/// Returns the text without base64, and a block for each media item. Leaves the envelope unchanged.
fn with_media(structured: &mut Value, media: Vec<(String, MediaType)>) -> Vec<ContentBlock> {
    // The base64 is moved out meanwhile, so that the copy for the text does not duplicate it.
    let lend = |(place, media_type): (String, MediaType)| {
        let base64 = std::mem::take(medium_at(structured, &place)?.get_mut("data")?);
        Some((place, media_type, base64))
    };
    let taken: Vec<_> = media.into_iter().filter_map(lend).collect();
    let mut text = structured.clone();
    let source = answer_uri(structured);
    let mut blocks = Vec::new();
    let mut room = MAX_BLOCKS_LENGTH;
    for (place, media_type, base64) in taken {
        let bytes = base64.as_str().unwrap_or_default();
        let fits = bytes.len() <= MAX_BLOCK_LENGTH.min(room) && blocks.len() < MAX_BLOCKS;
        if fits {
            room -= bytes.len();
            blocks.push(block(bytes, media_type, || format!("{source}/data{place}")));
        }
        if let Some(medium) = medium_at(&mut text, &place) {
            medium.shift_remove("data");
            // The text itself is the first block.
            let place = if fits { format!("content[{}]", blocks.len()) } else { "structuredContent".into() };
            medium.insert(BYTES_IN.to_owned(), json!(place));
        }
        if let Some(data) = medium_at(structured, &place).and_then(|medium| medium.get_mut("data")) {
            *data = base64;
        }
    }
    blocks.insert(0, ContentBlock::text(text.to_string()));
    blocks
}

/// Returns the object of a media item.
fn medium_at<'a>(envelope: &'a mut Value, place: &str) -> Option<&'a mut Map<String, Value>> {
    envelope.get_mut("data")?.pointer_mut(place)?.as_object_mut()
}

/// Returns a URI that distinguishes the parts of an answer. It cannot be read; the block has the whole content.
fn answer_uri(envelope: &Value) -> String {
    let trace = envelope.pointer("/meta/trace_id").and_then(Value::as_str).unwrap_or("unknown");
    format!("cognitive://answers/{trace}")
}

/// Images and audio have their own block types in the protocol; other media become embedded resources.
fn block(base64: &str, media_type: MediaType, uri: impl FnOnce() -> String) -> ContentBlock {
    match media_type.category() {
        Category::Image => ContentBlock::image(base64, media_type.mime()),
        Category::Audio => ContentBlock::audio(base64, media_type.mime()),
        Category::Video | Category::Document => {
            ContentBlock::resource(ResourceContents::blob(base64, uri()).with_mime_type(media_type.mime()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(data: Value) -> Envelope {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "e", "trace_id": "t" });
        Envelope::from_value(json!({ "ok": true, "meta": meta, "data": data })).unwrap()
    }

    fn medium(media_type: &str, data: &str) -> Value {
        json!({ "type": "base64", "media_type": media_type, "data": data, "width": 1 })
    }

    fn shown(envelope: &Envelope) -> Value {
        serde_json::to_value(envelope_result(envelope, ToolWording::Search)).unwrap()
    }

    // MEDIA-017
    #[test]
    fn media_017_each_medium_is_a_block_and_the_text_says_which() {
        let data = json!({ "rationale": "r", "all": [medium("image/png", "UE5H"), medium("audio/wav", "V0FW")],
            "film": medium("video/mp4", "TVA0"), "link": { "type": "url", "media_type": "image/png", "url": "https://a/b" } });
        let envelope = answer(data);
        let result = shown(&envelope);
        assert_eq!(result["structuredContent"], serde_json::to_value(&envelope).unwrap());
        assert_eq!(
            result["structuredContent"].to_string(),
            serde_json::to_string(&envelope).unwrap(),
            "members stay in their order"
        );
        assert_eq!(result["content"][1], json!({ "type": "image", "data": "UE5H", "mimeType": "image/png" }));
        assert_eq!(result["content"][2], json!({ "type": "audio", "data": "V0FW", "mimeType": "audio/wav" }));
        let film =
            json!({ "uri": "cognitive://answers/t/data/film", "mimeType": "video/mp4", "blob": "TVA0" });
        assert_eq!(result["content"][3], json!({ "type": "resource", "resource": film }));
        assert_eq!(result["content"].as_array().unwrap().len(), 4, "a link has no bytes");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        let said =
            json!({ "type": "base64", "media_type": "image/png", "width": 1, "bytes_in": "content[1]" });
        assert_eq!(text["data"]["all"][0], said);
        assert_eq!(text["data"]["film"]["bytes_in"], "content[3]");
        assert_eq!(text["data"]["link"], envelope.data().unwrap()["link"]);
        assert_eq!(text["meta"], result["structuredContent"]["meta"]);
    }

    #[test]
    fn what_is_too_large_for_a_client_is_in_the_structure_alone() {
        let (large, small) = ("A".repeat(MAX_BLOCK_LENGTH + 4), "A".repeat(MAX_BLOCK_LENGTH));
        let result = shown(&answer(json!({ "rationale": "r", "one": medium("image/png", &large) })));
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() < 1_000 && text.contains(r#""bytes_in":"structuredContent""#), "{text}");
        assert_eq!(result["structuredContent"]["data"]["one"]["data"], json!(large));
        let many = vec![medium("image/png", &small); 5];
        let result = shown(&answer(json!({ "rationale": "r", "many": many })));
        assert_eq!(result["content"].as_array().unwrap().len(), 1 + MAX_BLOCKS_LENGTH / MAX_BLOCK_LENGTH);
        let many = vec![medium("image/png", "UE5H"); MAX_BLOCKS + 1];
        let result = shown(&answer(json!({ "rationale": "r", "many": many })));
        assert_eq!(result["content"].as_array().unwrap().len(), 1 + MAX_BLOCKS);
    }
}
