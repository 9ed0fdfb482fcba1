//! Stage 1b: the media of an input. Finds, fetches, checks and converts them before any model is asked; each item
//! once per run, even if the model is asked again. (E1010–E1020, E4007, E4011)
//! Opens no address and no file itself, and does not change the caller's input before it was hashed.

mod answer_bytes;
mod attached_media;
mod cache;
mod check;
mod produced_media;
mod words;

use bytes::Bytes;
use cognitive_contract::media::{self, Item, MediaFacts, MediaType};
use cognitive_contract::ports::PortFuture;
use cognitive_contract::{Failure, Module};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::check::MediaIntake;
use super::input::ValidInput;
use super::output::JudgedAnswer;
use crate::run::Run;

pub use self::attached_media::{AttachedMedia, attach, describe};
pub(crate) use self::cache::MediaCache;
pub(crate) use self::produced_media::{HINT, insert, may_produce};
use self::words::Claim;

/// The number of items that are fetched and inspected concurrently. Each item may take hundreds of megabytes while it
/// is decoded.
const MAX_AT_ONCE: usize = 4;

/// The media of an input, ready for the provider. Only `collect` creates one.
#[derive(Debug, Clone, Default)]
pub struct MediaSet {
    items: Vec<CheckedMedia>,
}

/// An item that passed all checks.
#[derive(Debug, Clone)]
struct CheckedMedia {
    note: MediaNote,
    content: MediaContent,
}

/// The content of an item for the model.
#[derive(Debug, Clone)]
enum MediaContent {
    /// The unchanged text of the input.
    AsGiven(MediaType),
    /// Base64 of fetched or converted bytes.
    Base64(MediaType, Bytes),
    /// The text of a document.
    Text(String),
    /// No content: a saved reply was recorded with it.
    Unseen,
}

/// One item in the receipt of a run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MediaNote {
    /// Its number among the items.
    pub index: usize,
    /// Its place in the input.
    pub path: String,
    /// Its type; unknown for an item that could not be fetched and does not declare it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<&'static str>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `ok`, `converted`, `text`, `not_loaded` or `failed`.
    pub status: &'static str,
    /// The hash of its bytes. For inline items the hash of the input is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The kind of its source.
    pub source: &'static str,
    /// The facts found in its bytes.
    #[serde(skip)]
    pub facts: Option<MediaFacts>,
}

impl MediaSet {
    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The identity of this set: the hashes of items that the input only refers to.
    pub(crate) fn fingerprint(&self) -> Vec<&str> {
        self.items.iter().filter_map(|item| item.note.sha256.as_deref()).collect()
    }
}

/// Returns whether secrets in objects that look like media items are hidden from the model. True for a module that
/// accepts media, passes its input to others, or is a part. To any other module such objects are business data.
pub(crate) fn hides(module: &Module, is_part: bool) -> bool {
    module.manifest.modalities.declared || is_part || !module.is_standalone()
}

/// Loads and checks the media of an input, and records fetches. Boxed, so that runs without media (the usual case)
/// have a small future.
pub(crate) async fn collect(run: &mut Run<'_, '_>, input: &ValidInput) -> Result<MediaSet, Failure> {
    let found = media::find(&run.module.manifest.modalities, input.value())?;
    if found.is_empty() {
        return Ok(MediaSet::default());
    }
    let gathered = Box::pin(gather(run, &found)).await;
    run.warnings.extend(run.audit.note_fetches(run.module, &run.receipt.media));
    gathered
}

/// Refuses an answer if the bytes of its media do not match their declaration. (D-15)
pub(crate) async fn check_answer(run: &mut Run<'_, '_>, answer: &mut JudgedAnswer) {
    if let Ok(envelope) = &answer.outcome
        && run.module.manifest.modalities.declared
    {
        let found = Box::pin(answer_bytes::unfit_media(run.host, run.module, envelope)).await;
        answer.refuse(run.module, &found);
    }
}

/// Checks the items. The receipt lists every checked item, even if one fails.
async fn gather(run: &mut Run<'_, '_>, found: &[Item<'_>]) -> Result<MediaSet, Failure> {
    let (intake, receipt) = (MediaIntake::new(run), &mut *run.receipt);
    receipt.media_count = found.len();
    let claims = intake.admit(found).map_err(|(item, failure)| {
        receipt.media.extend(item.map(MediaNote::from_failed));
        item.map_or(failure.clone(), |item| at(item, failure))
    })?;
    let checks: Vec<PortFuture<'_, Result<CheckedMedia, Failure>>> = found
        .iter()
        .zip(claims)
        .map(|(item, claim): (&Item<'_>, Claim)| Box::pin(intake.check(item, claim)) as PortFuture<'_, _>)
        .collect();
    // In order, so that the first of several bad items is reported.
    let mut checks = stream::iter(checks).buffered(MAX_AT_ONCE);
    let mut set = MediaSet::default();
    for item in found {
        let Some(checked) = checks.next().await else { break };
        let checked = checked.and_then(|checked| {
            let all = set.items.iter().chain([&checked]);
            intake.within_total(all.filter_map(|item| item.note.bytes).sum())?;
            Ok(checked)
        });
        match checked {
            Ok(checked) => {
                receipt.media.push(checked.note.clone());
                set.items.push(checked);
            }
            Err(failure) => {
                receipt.media.push(MediaNote::from_failed(item));
                return Err(at(item, failure));
            }
        }
    }
    Ok(set)
}

/// Adds the place of an item to a failure.
fn at(item: &Item<'_>, failure: Failure) -> Failure {
    failure.with_detail("path", json!(item.place)).with_detail("index", json!(item.index))
}

impl MediaNote {
    fn new(item: &Item<'_>, status: &'static str) -> Self {
        Self {
            index: item.index,
            path: item.place.clone(),
            media_type: None,
            bytes: None,
            status,
            sha256: None,
            source: words::source(item),
            facts: None,
        }
    }

    /// Returns whether its bytes are in the input.
    fn is_inline(&self) -> bool {
        self.source == "base64"
    }

    /// Its type, if it is known.
    fn kind(&self) -> Option<MediaType> {
        let found = self.facts.as_ref().map(|facts| facts.media_type);
        found.or_else(|| self.media_type.and_then(MediaType::parse))
    }

    fn from_failed(item: &Item<'_>) -> Self {
        let media_type = item.declared.and_then(MediaType::parse).map(MediaType::mime);
        Self { media_type, ..Self::new(item, "failed") }
    }
}

/// Returns `meta.media_processed` and `meta.media_validation`. (MEDIA-022, EXT-MEDIA)
pub(crate) fn meta(count: usize, notes: &[MediaNote]) -> [(&'static str, Value); 2] {
    let processed = notes.iter().map(|note| {
        let mut entry = Map::new();
        entry.insert("index".to_owned(), json!(note.index));
        entry.insert("path".to_owned(), json!(note.path));
        entry.extend(note.media_type.map(|kind| ("media_type".to_owned(), json!(kind))));
        entry.extend(note.bytes.map(|bytes| ("bytes".to_owned(), json!(bytes))));
        entry.insert("status".to_owned(), json!(note.status));
        Value::Object(entry)
    });
    let validated = notes.iter().filter_map(|note| match (&note.facts, note.status) {
        (Some(facts), _) => Some(facts.to_value(note.index)),
        (None, "failed") => Some(json!({ "index": note.index, "valid": false })),
        (None, _) => None,
    });
    [
        ("media_processed", processed.collect()),
        ("media_validation", json!({ "input_count": count, "validated": validated.collect::<Vec<_>>() })),
    ]
}
