//! The media of one root run, by their source: each is fetched, looked into and brought into the provider's form once, and
//! the run and all of its parts use the same bytes. What was checked is what is sent. Lives as long as the root run; a run
//! without parts has none, so that it holds nothing longer than it needs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::media::{AcceptedForm, Item, ItemSource, MediaFacts, MediaType};
use futures_util::lock::Mutex as AsyncMutex;

use super::MediaContent;
use super::check::decode;
use crate::receipt::sha256;

/// The media of a root run and its parts.
#[derive(Default)]
pub(crate) struct MediaCache(Mutex<Vec<(MediaKey, Arc<CachedMedia>)>>);

/// Where the bytes of an item come from. A relative path means another file beside another folder.
#[derive(PartialEq, Eq)]
enum MediaKey {
    Url(String),
    File(String, Option<PathBuf>),
    Upload(String),
    /// The hash of the base64 text.
    Inline(String),
}

/// One item. The first to need it works on it, others wait and find the work done.
#[derive(Default)]
pub(super) struct CachedMedia(pub(super) AsyncMutex<KnownMedia>);

/// What is known of an item so far.
#[derive(Default)]
pub(super) struct KnownMedia {
    /// Its bytes. Those of an inline item are let go once its form is known: the text is enough then.
    pub(super) bytes: Option<Bytes>,
    /// The type that its source named.
    pub(super) named: Option<String>,
    /// What it was taken for, and what its bytes show.
    pub(super) facts: Option<(MediaType, MediaFacts)>,
    /// The form that was asked for, and what was made of the item.
    pub(super) fitted: Option<(Option<AcceptedForm>, FittedMedia)>,
}

/// An item as it is sent, and how it came to be so.
#[derive(Clone)]
pub(super) struct FittedMedia {
    pub(super) status: &'static str,
    pub(super) content: MediaContent,
}

impl MediaCache {
    /// The item, whoever asked for it first.
    pub(super) fn entry(&self, item: &Item<'_>, folder: Option<&Path>) -> Arc<CachedMedia> {
        let key = match item.source {
            ItemSource::Url(url) => MediaKey::Url(url.to_owned()),
            ItemSource::File(path) => MediaKey::File(path.to_owned(), folder.map(Path::to_owned)),
            ItemSource::Upload(id) => MediaKey::Upload(id.to_owned()),
            ItemSource::Base64(text) => MediaKey::Inline(sha256(&[text.as_bytes()])),
        };
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match items.iter().find(|(known, _)| *known == key) {
            Some((_, item)) => Arc::clone(item),
            None => {
                let item = Arc::<CachedMedia>::default();
                items.push((key, Arc::clone(&item)));
                item
            }
        }
    }
}

impl fmt::Debug for MediaCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaCache").finish_non_exhaustive()
    }
}

impl KnownMedia {
    /// The bytes of an item that was loaded, or that stands in the input.
    pub(super) fn bytes(&mut self, item: &Item<'_>) -> Result<Bytes, Failure> {
        if let (None, ItemSource::Base64(text)) = (&self.bytes, item.source) {
            self.bytes = Some(decode(text)?);
        }
        Ok(self.bytes.clone().unwrap_or_default())
    }

    /// Other bytes have come, of which nothing is known.
    pub(super) fn replace(&mut self, bytes: Bytes, named: Option<String>) {
        *self = Self { bytes: Some(bytes), named, facts: None, fitted: None };
    }
}
