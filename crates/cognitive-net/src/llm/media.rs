//! Media in requests and answers: the JSON shapes shared by several services, and the accepted formats. The media of
//! a call precede the text of its input, each after a label with its number. Decodes nothing and fetches nothing.

use bytes::Bytes;
use cognitive_contract::media::{AcceptedForm, Category, MediaPart, MediaType, ReportedMedia};
use cognitive_contract::ports::ModelCall;
use serde_json::Value;

use crate::llm::borrowed_body::Node;
use crate::llm::frame_value::FrameValue;
use crate::llm::{Reading, text_of};

const MIB: u64 = 1 << 20;

/// The image types that every vision service accepts. An image that must be made smaller is converted to the first of
/// them.
pub(crate) const IMAGES: &[MediaType] = &[MediaType::Jpeg, MediaType::Png, MediaType::Webp];
/// The image types of services that also accept GIF.
pub(crate) const IMAGES_AND_GIF: &[MediaType] =
    &[MediaType::Jpeg, MediaType::Png, MediaType::Webp, MediaType::Gif];

/// The format in which a service writes the parts of a turn.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// A piece of text.
    pub(crate) text: for<'a> fn(Node<'a>) -> Node<'a>,
    /// A media item.
    pub(crate) part: for<'a> fn(&'a MediaPart) -> Node<'a>,
}

/// Inserts the media of a call into the turn with its input. `first` turns precede the examples, and `member` is the
/// name of a turn's content member.
pub(crate) fn attach<'a>(
    turns: &mut [Node<'a>],
    first: usize,
    member: &'static str,
    call: &'a ModelCall,
    style: Style,
) {
    if call.media.is_empty() {
        return;
    }
    let mut parts = Vec::with_capacity(2 * call.media.len() + 1);
    for medium in &call.media {
        parts.push((style.text)(label(medium)));
        parts.push((style.part)(medium));
    }
    parts.push((style.text)(Node::from(&call.input)));
    set(input_of(turns, first, call), member, Node::List(parts));
}

/// Returns the turn with the input. Each example before it has two turns.
pub(crate) fn input_of<'n, 'a>(
    turns: &'n mut [Node<'a>],
    first: usize,
    call: &ModelCall,
) -> Option<&'n mut Node<'a>> {
    turns.get_mut(first + 2 * call.examples.len())
}

/// Sets a member of an object, replacing an existing one.
pub(crate) fn set<'a>(object: Option<&mut Node<'a>>, member: &'static str, value: Node<'a>) {
    let Some(Node::Object(members)) = object else { return };
    match members.iter_mut().find(|(name, _)| *name == member) {
        Some((_, old)) => *old = value,
        None => members.push((member, value)),
    }
}

/// Returns a label such as `Image 0:`. Instructions and input refer to media by number.
fn label(medium: &MediaPart) -> Node<'static> {
    let kind = match medium.category() {
        Category::Image => "Image",
        Category::Audio => "Audio",
        Category::Video => "Video",
        Category::Document => "Document",
    };
    Value::String(format!("{kind} {}:", medium.index)).into()
}

/// Returns the base64 of a media item.
pub(crate) fn base64(medium: &MediaPart) -> Node<'_> {
    Node::Base64 { before: String::new(), data: &medium.base64 }
}

/// Returns a media item as a data URL.
pub(crate) fn data_url(medium: &MediaPart) -> Node<'_> {
    Node::Base64 { before: format!("data:{};base64,", medium.media_type), data: &medium.base64 }
}

/// Returns whether all media of a call are plain base64, which is written into JSON unescaped. Guards against
/// injection: a quotation mark in the data could rewrite the rest of the request.
pub(crate) fn are_sound(call: &ModelCall) -> bool {
    let sound = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    call.media.iter().all(|medium| medium.base64.iter().all(sound))
}

/// Returns the start of a media item, for comparison with messages of a service.
pub(crate) fn beginning(medium: &MediaPart) -> &str {
    // A message quotes less than this, and comparing megabytes would be slow.
    const ENOUGH: usize = 4 * 1024;
    let data: &Bytes = &medium.base64;
    std::str::from_utf8(data.get(..ENOUGH).unwrap_or(data)).unwrap_or_default()
}

/// Builds a text part with a type member.
pub(crate) fn typed_text(text: Node<'_>) -> Node<'_> {
    Node::object([("type", "text".into()), ("text", text)])
}

/// Accepts images up to `largest` bytes and `longest_side`, above which the service would scale them down itself.
pub(crate) fn images(types: &'static [MediaType], longest_side: u32, largest: u64) -> AcceptedForm {
    AcceptedForm::from_types(types).with_longest_side(longest_side).up_to(largest)
}

/// Accepts PDF up to this many megabytes.
pub(crate) fn pdf(largest: u64) -> AcceptedForm {
    AcceptedForm::from_types(&[MediaType::Pdf]).up_to(largest * MIB)
}

/// Returns how many bytes this much base64 encodes.
pub(crate) const fn bytes_in(base64: u64) -> u64 {
    base64 / 4 * 3
}

/// Returns whether a model generates images. The services have no marker except the name, and other models refuse a
/// request for images.
pub(crate) fn draws(model: &str) -> bool {
    model.contains("image")
}

/// Records a media item of an answer.
pub(crate) fn note(reading: &mut Reading, media_type: &str, base64: &str) {
    if base64.is_empty() {
        return;
    }
    // The model is working, although it writes no text.
    reading.thinks = true;
    reading.media.push(ReportedMedia { media_type: media_type.to_owned(), base64: base64.to_owned() });
}

/// Records the images of a chat completions message: data URLs next to its text.
pub(crate) fn note_images(message: &FrameValue<'_>, reading: &mut Reading) {
    for image in message.get("images").into_iter().flat_map(FrameValue::as_list) {
        let url = text_of(image, "/image_url/url").unwrap_or_default();
        let Some((media_type, data)) = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"))
        else {
            continue;
        };
        note(reading, media_type, data);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::segments::Segments;

    fn part(index: usize, media_type: MediaType, base64: &'static str) -> MediaPart {
        MediaPart::new(index, media_type, Bytes::from_static(base64.as_bytes()))
    }

    #[test]
    fn what_is_not_base64_is_not_sent() {
        let mut call = ModelCall::new(String::new(), String::new(), 0.0);
        assert!(are_sound(&call));
        call.media = vec![part(0, MediaType::Png, "aW1n+/=="), part(1, MediaType::Png, "")];
        assert!(are_sound(&call));
        for wrong in ["aW1n\"", "aW\\n", "aW1n\n", "aW1n ", "äöü"] {
            call.media = vec![part(0, MediaType::Png, "aW1n"), part(1, MediaType::Png, wrong)];
            assert!(!are_sound(&call), "{wrong}");
        }
    }

    #[test]
    fn a_turn_gets_its_media_before_its_text() {
        let mut call = ModelCall::new(String::new(), "look".to_owned(), 0.0);
        call.media = vec![part(2, MediaType::Png, "aW1n"), part(0, MediaType::Pdf, "cGRm")];
        let turn = |role: &'static str| Node::object([("role", role.into()), ("content", "text".into())]);
        let mut turns = vec![turn("system"), turn("user"), turn("assistant")];
        let style = Style { text: |text| text, part: data_url };
        attach(&mut turns, 1, "content", &call, style);
        let written: Value = serde_json::from_str(&Segments::from_body(&Node::List(turns)).text()).unwrap();
        let content = json!([
            "Image 2:",
            "data:image/png;base64,aW1n",
            "Document 0:",
            "data:application/pdf;base64,cGRm",
            "look"
        ]);
        assert_eq!(written[1], json!({ "role": "user", "content": content }));
        assert_eq!((&written[0]["content"], &written[2]["content"]), (&json!("text"), &json!("text")));
    }

    #[test]
    fn only_data_urls_are_media() {
        let mut reading = Reading::default();
        let message = json!({ "content": "", "images": [
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,aW1n" } },
            { "type": "image_url", "image_url": { "url": "https://a.example/x.png" } },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64," } },
            { "type": "image_url" },
        ]});
        for message in [message.to_string(), r#"{"images":null}"#.to_owned()] {
            note_images(&serde_json::from_str(&message).unwrap(), &mut reading);
        }
        let expected = ReportedMedia { media_type: "image/png".to_owned(), base64: "aW1n".to_owned() };
        assert_eq!(reading.media, [expected]);
    }
}
