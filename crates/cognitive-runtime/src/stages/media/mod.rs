//! Stage 1b: the media of an input. Found, fetched, checked and brought into the form that the provider takes, before
//! any model is asked; each item once per run, whatever is tried again later. (E1010–E1020, E4007, E4011)
//! Opens no address and no file itself, and leaves what the caller sent as it is until the input has been hashed.

mod attached;
mod cache;
mod check;
mod given_back;
mod produced;
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

pub use self::attached::{Attached, attach, describe};
pub(crate) use self::cache::MediaCache;
pub(crate) use self::produced::{HINT, insert, may_produce};
use self::words::Claim;

/// How many items are fetched and looked into at the same time.
const MAX_AT_ONCE: usize = 4;

/// The media of an input, ready for the provider. Only `collect` makes one.
#[derive(Debug, Clone, Default)]
pub struct MediaSet {
    items: Vec<Checked>,
}

/// One item that has passed.
#[derive(Debug, Clone)]
struct Checked {
    note: MediaNote,
    content: MediaContent,
}

/// What the model gets of an item.
#[derive(Debug, Clone)]
enum MediaContent {
    /// What stands in the input, untouched.
    AsGiven(MediaType),
    /// Base64 of what was fetched or changed.
    Base64(MediaType, Bytes),
    /// The text of a document.
    Text(String),
    /// Nothing: a saved reply was written with it.
    Unseen,
}

/// One item in the receipt of a run.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct MediaNote {
    /// Its number among the items.
    pub index: usize,
    /// Where it stands in the input.
    pub path: String,
    /// What it is; unknown for an item that could not be fetched and does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<&'static str>,
    /// How many bytes it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// `ok`, `converted`, `text`, `not_loaded` or `failed`.
    pub status: &'static str,
    /// The hash of its bytes. That of the input covers the items that stand in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Where its bytes came from.
    pub source: &'static str,
    /// What was found in its bytes.
    #[serde(skip)]
    pub facts: Option<MediaFacts>,
}

impl MediaSet {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What makes this set another one: the bytes of items that the input only refers to.
    pub(crate) fn fingerprint(&self) -> Vec<&str> {
        self.items.iter().filter_map(|item| item.note.sha256.as_deref()).collect()
    }
}

/// Whether objects that look like media items are hidden from the model as such: those of a module that takes media, of one
/// that hands its input to others, and of one that was handed it. To any other module they are business data.
pub(crate) fn hides(module: &Module, is_part: bool) -> bool {
    module.manifest.modalities.declared || is_part || !module.stands_alone()
}

/// Gets and checks the media of an input, and records what was fetched. Most runs have no media, so they make no room for
/// the work.
pub(crate) async fn collect(run: &mut Run<'_, '_>, input: &ValidInput) -> Result<MediaSet, Failure> {
    let found = media::find(&run.module.manifest.modalities, input.value())?;
    if found.is_empty() {
        return Ok(MediaSet::default());
    }
    let gathered = Box::pin(gather(run, &found)).await;
    run.warnings.extend(run.audit.note_fetches(run.module, &run.receipt.media));
    gathered
}

/// Refuses an answer if the bytes of its media are not what it says. (D-15)
pub(crate) async fn check_answer(run: &mut Run<'_, '_>, answer: &mut JudgedAnswer) {
    if let Ok(envelope) = &answer.outcome
        && run.module.manifest.modalities.declared
    {
        let found = Box::pin(given_back::unfit_media(run.host, run.module, envelope)).await;
        answer.refuse(run.module, &found);
    }
}

/// The receipt knows of every item that was looked at, also when one of them fails.
async fn gather(run: &mut Run<'_, '_>, found: &[Item<'_>]) -> Result<MediaSet, Failure> {
    let (intake, receipt) = (MediaIntake::new(run), &mut *run.receipt);
    receipt.media_count = found.len();
    let claims = intake.admit(found).map_err(|(item, failure)| {
        receipt.media.extend(item.map(MediaNote::failed));
        item.map_or(failure.clone(), |item| at(item, failure))
    })?;
    let checks: Vec<PortFuture<'_, Result<Checked, Failure>>> = found
        .iter()
        .zip(claims)
        .map(|(item, claim): (&Item<'_>, Claim)| Box::pin(intake.check(item, claim)) as PortFuture<'_, _>)
        .collect();
    // In order, so that of several bad items the first is told of.
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
                receipt.media.push(MediaNote::failed(item));
                return Err(at(item, failure));
            }
        }
    }
    Ok(set)
}

/// Says which item a failure is about.
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

    /// Whether its bytes stand in the input.
    fn is_inline(&self) -> bool {
        self.source == "base64"
    }

    /// What it is, as far as that is known.
    fn kind(&self) -> Option<MediaType> {
        let found = self.facts.as_ref().map(|facts| facts.media_type);
        found.or_else(|| self.media_type.and_then(MediaType::parse))
    }

    fn failed(item: &Item<'_>) -> Self {
        let media_type = item.declared.and_then(MediaType::parse).map(MediaType::mime);
        Self { media_type, ..Self::new(item, "failed") }
    }
}

/// `meta.media_processed` and `meta.media_validation`. (MEDIA-022, EXT-MEDIA)
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
