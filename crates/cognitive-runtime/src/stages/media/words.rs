//! The declaration of an item, checked before its bytes are touched: its type, its length, and whether module,
//! runtime and provider accept such media at all. (E1010, E1011, E4011)

use cognitive_contract::manifest::InputModality;
use cognitive_contract::media::{Category, Item, ItemSource, MediaType};
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::json;

/// The declared type of an item; `None` if only its source can tell.
pub(super) type Claim = Option<MediaType>;

/// Returns the declared type of an item, else the type of its file name. (MEDIA-003, MEDIA-012, MEDIA-013)
///
/// A remote caller learns nothing from a file name before it is known whether it may name the file: that is checked
/// when the file is read. (SEC-010)
pub(super) fn claim(item: &Item<'_>, taken: &[InputModality], remote: bool) -> Result<Claim, Failure> {
    match (item.declared, item.source) {
        (Some(declared), _) => {
            MediaType::parse(declared).map(Some).ok_or_else(|| unknown_type(&format!("`{declared}`")))
        }
        (None, ItemSource::File(path)) => {
            let known = MediaType::from_file_name(path, taken).map(Some);
            if remote {
                Ok(known.flatten())
            } else {
                known.ok_or_else(|| unknown_type("the extension of the file"))
            }
        }
        (None, ItemSource::Url(_) | ItemSource::Upload(_) | ItemSource::Base64(_)) => Ok(None),
    }
}

/// Returns the type of an item without a declaration: the type that its source reports, else that of the name in its
/// address.
pub(super) fn source_type(
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
            MediaType::from_file_name(path, taken)
        }
        _ => None,
    };
    by_address.ok_or_else(|| match named {
        Some(named) => unknown_type(&format!("`{named}`")),
        None => unknown_type("an item whose source names no type"),
    })
}

/// Checks whether the module accepts the type. (MEDIA-003)
pub(super) fn check_module_accepts(kind: MediaType, taken: &[InputModality]) -> Result<(), Failure> {
    let category = kind.category();
    if category.is_in(taken) {
        return Ok(());
    }
    let words: Vec<&str> = taken.iter().map(|modality| modality.word()).collect();
    let message = format!("the module does not accept media of the category `{category}`: `{kind}`");
    Err(Failure::new(ErrorCode::UnsupportedMediaType, message)
        .with_detail("media_type", json!(kind.mime()))
        .with_detail("accepted", json!(words))
        .suggest(format!("The module accepts: {}", words.join(", "))))
}

/// The failure for a type that is not in the table.
fn unknown_type(what: &str) -> Failure {
    let known: Vec<&str> = MediaType::all().map(MediaType::mime).collect();
    Failure::new(ErrorCode::UnsupportedMediaType, format!("unknown media type: {}", cut(what, 100)))
        .with_detail("accepted", json!(known))
        .suggest(format!("Send one of: {}", known.join(", ")))
}

/// The failure for a category that this runtime or its provider does not accept. (CAP-011)
pub(super) fn unsupported_category(category: Category, who: &str, available: &[&str]) -> Failure {
    let message = format!("{who} does not accept media of the category: `{category}`");
    let hint = match category {
        Category::Image => "Choose a model that reads images with `--provider` and `--model`",
        Category::Audio => {
            "Choose a model that accepts audio, such as one of `--provider gemini`, or send a transcript"
        }
        Category::Video => {
            "Choose a model that accepts video, such as one of `--provider gemini`, or send single images"
        }
        Category::Document => "Send the text of the document",
    };
    Failure::new(ErrorCode::MultimodalNotSupported, message)
        .with_detail("category", json!(category.word()))
        .with_detail("available", json!(available))
        .suggest(format!("{hint}; `cogn media inspect FILE` shows the types that each provider accepts"))
        .suggest_remotely("Send text instead; `GET /capabilities` lists the accepted media")
}

/// The failure for a type that the provider does not accept although it accepts others of its category: the
/// limitation is here, not with the caller. (CAP-011)
pub(super) fn unsupported_type(kind: MediaType, provider: &str, taken: &[MediaType]) -> Failure {
    let available: Vec<&str> = taken.iter().map(|kind| kind.mime()).collect();
    Failure::new(
        ErrorCode::MultimodalNotSupported,
        format!("provider `{provider}` does not accept: `{kind}`"),
    )
    .with_detail("category", json!(kind.category().word()))
    .with_detail("media_type", json!(kind.mime()))
    .with_detail("available", json!(available))
    .suggest(format!("Send one of: {}", available.join(", ")))
}

/// The kind of an item's source, as in its member `type`.
pub(super) fn source(item: &Item<'_>) -> &'static str {
    match item.source {
        ItemSource::Url(_) => "url",
        ItemSource::Base64(_) => "base64",
        ItemSource::File(_) => "file",
        ItemSource::Upload(_) => "upload_ref",
    }
}
