//! The media cache of one root run, by source: each item is fetched, inspected and converted once, and the run and
//! its parts use the same bytes. The checked bytes are the bytes that are sent. Lives as long as the root run. A run
//! without parts has no cache, so that it frees media as early as possible.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use cognitive_contract::Failure;
use cognitive_contract::lock::Lock;
use cognitive_contract::media::{AcceptedForm, Item, ItemSource, MediaFacts, MediaType};
use futures_util::lock::Mutex as AsyncMutex;

use super::MediaContent;
use super::check::decode;
use crate::receipt::sha256;

/// The media of a root run and its parts.
#[derive(Default)]
pub(crate) struct MediaCache(Lock<Vec<(MediaKey, Arc<CachedMedia>)>>);

/// The source of an item's bytes. A relative path means a different file for each module folder.
#[derive(PartialEq, Eq)]
enum MediaKey {
    Url(String),
    File(String, Option<PathBuf>),
    Upload(String),
    /// The hash of the base64 text.
    Inline(String),
}

/// One item. The first user processes it; others wait and use the result.
#[derive(Default)]
pub(super) struct CachedMedia(pub(super) AsyncMutex<KnownMedia>);

/// The known facts of an item.
#[derive(Default)]
pub(super) struct KnownMedia {
    /// Its bytes. Those of an inline item are freed once its form is known: then the text is enough.
    pub(super) bytes: Option<Bytes>,
    /// The type that its source named.
    pub(super) named: Option<String>,
    /// The assumed type, and the facts found in its bytes.
    pub(super) facts: Option<(MediaType, MediaFacts)>,
    /// The requested form, and the item in that form.
    pub(super) fitted: Option<(Option<AcceptedForm>, FittedMedia)>,
}

/// An item as it is sent, and its status.
#[derive(Clone)]
pub(super) struct FittedMedia {
    pub(super) status: &'static str,
    pub(super) content: MediaContent,
}

impl MediaCache {
    /// The entry of an item, created on first use.
    pub(super) fn entry(&self, item: &Item<'_>, folder: Option<&Path>) -> Arc<CachedMedia> {
        let key = match item.source {
            ItemSource::Url(url) => MediaKey::Url(url.to_owned()),
            ItemSource::File(path) => MediaKey::File(path.to_owned(), folder.map(Path::to_owned)),
            ItemSource::Upload(id) => MediaKey::Upload(id.to_owned()),
            ItemSource::Base64(text) => MediaKey::Inline(sha256(&[text.as_bytes()])),
        };
        let mut items = self.0.lock();
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
    /// The bytes of an item that was loaded or is inline.
    pub(super) fn bytes(&mut self, item: &Item<'_>) -> Result<Bytes, Failure> {
        if let (None, ItemSource::Base64(text)) = (&self.bytes, item.source) {
            self.bytes = Some(decode(text)?);
        }
        Ok(self.bytes.clone().unwrap_or_default())
    }

    /// Replaces the bytes and discards all facts.
    pub(super) fn replace(&mut self, bytes: Bytes, named: Option<String>) {
        *self = Self { bytes: Some(bytes), named, facts: None, fitted: None };
    }
}
