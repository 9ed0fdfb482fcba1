//! What an item says about itself, before anybody touches its bytes: its type, its length, and whether module, runtime
//! and provider take such a thing at all. (E1010, E1011, E4011)

use cognitive_contract::manifest::InputModality;
use cognitive_contract::media::{Category, Item, ItemSource, MediaType};
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

/// The type that an item claims to have; `None` if only its source can tell.
pub(super) type Claim = Option<MediaType>;

/// Reads the claim of an item: what it declares, or what the name of its file says. (MEDIA-003, MEDIA-012, MEDIA-013)
///
/// The name of a file tells nothing to somebody at the other end of a network before it is known whether the file is
/// theirs to name: that comes first, when it is read. (SEC-010)
pub(super) fn claim(item: &Item<'_>, taken: &[InputModality], remote: bool) -> Result<Claim, Failure> {
    match (item.declared, item.source) {
        (Some(declared), _) => {
            MediaType::parse(declared).map(Some).ok_or_else(|| unknown(&format!("`{declared}`")))
        }
        (None, ItemSource::File(path)) => {
            let known = MediaType::of_file_name(path, taken).map(Some);
            if remote {
                Ok(known.flatten())
            } else {
                known.ok_or_else(|| unknown("the extension of the file"))
            }
        }
        (None, ItemSource::Url(_) | ItemSource::Upload(_) | ItemSource::Base64(_)) => Ok(None),
    }
}

/// The type of an item that did not say: what its source says, or else the name in its address.
pub(super) fn named_by_source(
    item: &Item<'_>,
    named: Option<&str>,
    taken: &[InputModality],
) -> Result<MediaType, Failure> {
    if let Some(kind) = named.and_then(MediaType::parse) {
        return Ok(kind);
    }
    let says_nothing = named.is_none_or(|named| named.ends_with("/octet-stream"));
    let by_address = match item.source {
        ItemSource::Url(url) if says_nothing => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            MediaType::of_file_name(path, taken)
        }
        _ => None,
    };
    by_address.ok_or_else(|| match named {
        Some(named) => unknown(&format!("`{named}`")),
        None => unknown("an item whose source names no type"),
    })
}

/// Whether the module takes the kind. (MEDIA-003)
pub(super) fn taken_by_module(kind: MediaType, taken: &[InputModality]) -> Result<(), Failure> {
    let category = kind.category();
    if category.is_in(taken) {
        return Ok(());
    }
    let words: Vec<&str> = taken.iter().map(|modality| modality.word()).collect();
    let message = format!("the module does not take media of the category `{category}`: `{kind}`");
    Err(Failure::new(ErrorCode::UnsupportedMediaType, message)
        .with_detail("media_type", json!(kind.mime()))
        .with_detail("accepted", json!(words))
        .suggest(format!("The module takes: {}", words.join(", "))))
}

/// A type that is not in the table.
fn unknown(what: &str) -> Failure {
    let known: Vec<&str> = MediaType::all().map(MediaType::mime).collect();
    Failure::new(ErrorCode::UnsupportedMediaType, format!("unknown media type: {}", cut(what, 100)))
        .with_detail("accepted", json!(known))
        .suggest(format!("Send one of: {}", known.join(", ")))
}

/// A kind that this runtime or its provider does not take. (CAP-011)
pub(super) fn not_here(category: Category, who: &str, available: &[&str]) -> Failure {
    let message = format!("{who} does not take media of the category: `{category}`");
    let hint = match category {
        Category::Image => "Choose a model that reads images with `--provider` and `--model`",
        Category::Audio => {
            "Choose a model that takes audio, such as one of `--provider gemini`, or send a transcript"
        }
        Category::Video => {
            "Choose a model that takes video, such as one of `--provider gemini`, or send single images"
        }
        Category::Document => "Send the text of the document",
    };
    Failure::new(ErrorCode::MultimodalNotSupported, message)
        .with_detail("category", json!(category.word()))
        .with_detail("available", json!(available))
        .suggest(format!("{hint}; `cogn media inspect FILE` shows what each provider takes"))
        .suggest_remotely("Send text instead; `GET /capabilities` says which media are taken here")
}

/// A type that the provider does not take although it takes others of its kind: the lack is here, not with the caller.
/// (CAP-011)
pub(super) fn type_not_here(kind: MediaType, provider: &str, taken: &[MediaType]) -> Failure {
    let available: Vec<&str> = taken.iter().map(|kind| kind.mime()).collect();
    Failure::new(ErrorCode::MultimodalNotSupported, format!("provider `{provider}` does not take: `{kind}`"))
        .with_detail("category", json!(kind.category().word()))
        .with_detail("media_type", json!(kind.mime()))
        .with_detail("available", json!(available))
        .suggest(format!("Send one of: {}", available.join(", ")))
}

/// Where an item is, in the word of its `type`.
pub(super) fn source(item: &Item<'_>) -> &'static str {
    match item.source {
        ItemSource::Url(_) => "url",
        ItemSource::Base64(_) => "base64",
        ItemSource::File(_) => "file",
        ItemSource::Upload(_) => "upload_ref",
    }
}
