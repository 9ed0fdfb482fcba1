//! The processing of one item: its declaration, its bytes, their facts, and the form that the provider accepts. Every
//! limit is checked before the work that it limits. (SEC-002, MEDIA-004)

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cognitive_contract::compose::plan::AnswerSource;
use cognitive_contract::manifest::InputModality;
use cognitive_contract::media::{
    AcceptedForm, Category, FormedMedia, Item, ItemSource, MediaFacts, MediaLimits, MediaSource, MediaType,
    Reference, WantedMedia, decoded_length, judge, too_large,
};
use cognitive_contract::ports::Provider;
use cognitive_contract::{ErrorCode, Failure, Module};
use serde_json::json;

use super::cache::{FittedMedia, KnownMedia, MediaCache};
use super::words::{Claim, check_module_accepts, claim, source_type, unsupported_category, unsupported_type};
use super::{CheckedMedia, MediaContent, MediaNote};
use crate::host::RunOptions;
use crate::receipt::sha256;
use crate::run::Run;
use crate::stages::requirements;

/// The context that is needed to check the items of one run.
pub(super) struct MediaIntake<'a> {
    source: Option<&'a Arc<dyn MediaSource>>,
    provider: &'a dyn Provider,
    limits: &'a MediaLimits,
    /// The categories that the runtime accepts; an operator may restrict them.
    offered: &'a [String],
    taken: &'a [InputModality],
    keep_metadata: bool,
    /// Set if the receipt also needs the hash of items that the hash of the input already covers.
    hash_all: bool,
    module: &'a Module,
    options: &'a RunOptions,
    /// The media that the run shares with others.
    cache: Option<&'a MediaCache>,
    /// Set if the run sends its media to a model. A composition that answers from its parts does not.
    sends: bool,
}

impl<'a> MediaIntake<'a> {
    pub(super) fn new(run: &Run<'a, '_>) -> Self {
        let (host, module) = (run.host, run.module);
        let composition = module.composition().ok().flatten();
        Self {
            source: host.media.as_ref(),
            provider: run.provider,
            limits: &host.media_limits,
            offered: &host.capabilities.multimodal.input,
            taken: &module.manifest.modalities.input,
            keep_metadata: host.keep_metadata,
            hash_all: run.plan.settings.wants_receipt(),
            module,
            options: run.options,
            cache: run.lineage.media.as_deref(),
            sends: composition.is_none_or(|composition| composition.plan.answer == AnswerSource::Prompt),
        }
    }

    /// Checks the declarations of all items. The error names the item, if it is about one.
    pub(super) fn admit<'i>(
        &self,
        items: &'i [Item<'i>],
    ) -> Result<Vec<Claim>, (Option<&'i Item<'i>>, Failure)> {
        if items.len() > self.limits.most {
            let message = format!("{} media items were sent, the limit is {}", items.len(), self.limits.most);
            let failure = Failure::new(ErrorCode::MediaTooLarge, message);
            return Err((None, failure.suggest("Send fewer items, or several requests")));
        }
        let mut claims = Vec::with_capacity(items.len());
        let mut inline = 0_u64;
        for item in items {
            let judged = claim(item, self.taken, self.options.remote).and_then(|claim| {
                claim.map_or(self.check_any(), |kind| self.check_accepted(kind))?;
                Ok(claim)
            });
            let claim = judged.map_err(|failure| (Some(item), failure))?;
            if let (ItemSource::Base64(text), Some(kind)) = (item.source, claim) {
                let length = decoded_length(text);
                let most = self.limits.bytes_of(kind.category());
                if length > most {
                    return Err((Some(item), too_large(kind.category(), length, most)));
                }
                inline = inline.saturating_add(length);
            }
            claims.push(claim);
        }
        self.within_total(inline).map_err(|failure| (None, failure))?;
        Ok(claims)
    }

    /// Checks the total number of bytes of the run's items. (S-28)
    pub(super) fn within_total(&self, bytes: u64) -> Result<(), Failure> {
        if bytes <= self.limits.together {
            return Ok(());
        }
        let most = self.limits.together;
        let message = format!("the media items exceed the limit of {most} bytes in total");
        Err(Failure::new(ErrorCode::MediaTooLarge, message)
            .with_detail("limit_bytes", json!(most))
            .suggest("Send smaller items, or several requests"))
    }

    /// Checks that module, runtime and provider accept at least one category, for an item without a declared type.
    fn check_any(&self) -> Result<(), Failure> {
        let mut refused = None;
        for category in Category::ALL.into_iter().filter(|category| category.is_in(self.taken)) {
            match self.check_category(category) {
                Ok(()) => return Ok(()),
                Err(failure) => refused = refused.or(Some(failure)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Checks whether module, runtime and provider accept a type; in this order, so that the nearest reason is
    /// reported.
    fn check_accepted(&self, kind: MediaType) -> Result<(), Failure> {
        check_module_accepts(kind, self.taken)?;
        self.check_category(kind.category())?;
        // Images are converted to an accepted type, and documents to text. Audio and video are sent unchanged.
        let category = kind.category();
        let is_sent_as_it_is = matches!(category, Category::Audio | Category::Video);
        match self.provider.takes(category).filter(|_| is_sent_as_it_is && self.source.is_some()) {
            Some(form) if !form.types.contains(&kind) => {
                Err(unsupported_type(kind, self.provider.name(), form.types))
            }
            _ => Ok(()),
        }
    }

    fn check_category(&self, category: Category) -> Result<(), Failure> {
        if self.source.is_none() {
            let refused = || unsupported_category(category, "this runtime", &[]);
            return if self.is_replayed() { Ok(()) } else { Err(refused()) };
        }
        if !self.offered.iter().any(|offered| offered == category.word()) {
            let available: Vec<&str> = self.offered.iter().map(String::as_str).collect();
            return Err(unsupported_category(category, "this runtime", &available));
        }
        if category != Category::Document && self.form(category).is_none() {
            let takes = |category: &Category| self.provider.takes(*category).is_some();
            let available: Vec<&str> = Category::ALL.into_iter().filter(takes).map(Category::word).collect();
            return Err(unsupported_category(
                category,
                &format!("provider `{}`", self.provider.name()),
                &available,
            ));
        }
        Ok(())
    }

    /// A saved reply was recorded with its media; without a source they are not needed again.
    fn is_replayed(&self) -> bool {
        self.provider.capabilities().contains(&requirements::MEDIA)
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        let mut form = self.provider.takes(category)?;
        form.keep_metadata |= self.keep_metadata;
        Some(form)
    }

    /// Processes one item completely. Reuses the results of other runs below the same root run.
    pub(super) async fn check(&self, item: &Item<'_>, claim: Claim) -> Result<CheckedMedia, Failure> {
        let Some(source) = self.source else { return unchecked_media(item, claim) };
        let shared = self.cache.map(|cache| cache.entry(item, self.module.folder.as_deref()));
        let entry = shared.unwrap_or_default();
        let known = &mut *entry.0.lock().await;
        let is_inline = matches!(item.source, ItemSource::Base64(_));
        let kind = match claim {
            Some(kind) if is_inline => kind,
            None if is_inline => source_type(item, None, self.taken)?,
            _ => self.load(source.as_ref(), item, claim, known).await?,
        };
        let facts = self.examine(source.as_ref(), item, kind, known).await?;
        let mut note = MediaNote::new(item, "ok");
        note.media_type = Some(facts.media_type.mime());
        note.bytes = Some(facts.bytes);
        if !is_inline || self.hash_all {
            note.sha256 = Some(sha256(&[&known.bytes(item)?]));
        }
        let mut content = MediaContent::Unseen;
        if self.sends {
            let fitted = self.fit(source.as_ref(), item, &facts, known).await?;
            (note.status, content) = (fitted.status, fitted.content);
        }
        note.facts = Some(facts);
        Ok(CheckedMedia { note, content })
    }

    /// Loads a referenced item, and determines its type if it is not declared.
    async fn load(
        &self,
        source: &dyn MediaSource,
        item: &Item<'_>,
        claim: Claim,
        known: &mut KnownMedia,
    ) -> Result<MediaType, Failure> {
        let largest = self.most_of(claim).min(self.limits.together);
        let is_small = |bytes: &Bytes| u64::try_from(bytes.len()).is_ok_and(|length| length <= largest);
        // Bytes that exceed this module's limit are loaded again, so that the source refuses them with its own
        // message.
        if !known.bytes.as_ref().is_some_and(is_small) {
            let reference = match item.source {
                ItemSource::Url(url) => Reference::Url(url),
                ItemSource::File(path) => Reference::File(path),
                ItemSource::Upload(id) | ItemSource::Base64(id) => Reference::Upload(id),
            };
            let mut wanted = WantedMedia::new(reference, largest);
            wanted.remote = self.options.remote;
            wanted.owner = self.options.uploads_of.as_deref().or(self.options.user.as_deref());
            wanted.folder = self.module.folder.as_deref();
            let loaded = source.load(&wanted).await?;
            known.replace(loaded.bytes, loaded.media_type);
        }
        let kind = match claim {
            Some(kind) => kind,
            None => source_type(item, known.named.as_deref(), self.taken)?,
        };
        self.check_accepted(kind)?;
        Ok(kind)
    }

    /// Inspects the bytes: checksum, type and limits must match.
    async fn examine(
        &self,
        source: &dyn MediaSource,
        item: &Item<'_>,
        kind: MediaType,
        known: &mut KnownMedia,
    ) -> Result<MediaFacts, Failure> {
        if let Some(checksum) = &item.checksum {
            source.verify(known.bytes(item)?, checksum).await?;
        }
        let facts = match &known.facts {
            Some((taken_for, facts)) if *taken_for == kind => facts.clone(),
            _ => {
                let facts = source.examine(known.bytes(item)?, kind).await?;
                (known.facts, known.fitted) = (Some((kind, facts.clone())), None);
                facts
            }
        };
        judge(&facts, self.limits)?;
        Ok(facts)
    }

    /// Converts the item to the form that the provider accepts.
    async fn fit(
        &self,
        source: &dyn MediaSource,
        item: &Item<'_>,
        facts: &MediaFacts,
        known: &mut KnownMedia,
    ) -> Result<FittedMedia, Failure> {
        let form = self.form(facts.media_type.category());
        if let Some((made_for, fitted)) = &known.fitted
            && *made_for == form
        {
            return Ok(fitted.clone());
        }
        let bytes = known.bytes(item)?;
        let fitted = source.fit(bytes.clone(), facts, form.as_ref()).await?;
        if matches!(item.source, ItemSource::Base64(_)) {
            known.bytes = None;
        }
        let (status, content) = match (fitted, item.source) {
            (FormedMedia::AsItIs, ItemSource::Base64(_)) if self.cache.is_none() => {
                ("ok", MediaContent::AsGiven(facts.media_type))
            }
            (FormedMedia::AsItIs, ItemSource::Base64(text)) => {
                // The bytes are freed before the text is allocated.
                drop(bytes);
                let text = without_breaks(text.to_owned(), Some(facts.bytes));
                ("ok", MediaContent::Base64(facts.media_type, Bytes::from(text)))
            }
            (FormedMedia::AsItIs, _) => ("ok", MediaContent::Base64(facts.media_type, encode(&bytes))),
            (FormedMedia::Changed { media_type, bytes }, _) => {
                ("converted", MediaContent::Base64(media_type, encode(&bytes)))
            }
            (FormedMedia::Text(text), _) => ("text", MediaContent::Text(text)),
        };
        let fitted = FittedMedia { status, content };
        known.fitted = Some((form, fitted.clone()));
        Ok(fitted)
    }

    /// The size limit of an item; for an unknown type the largest limit of the accepted categories.
    fn most_of(&self, claim: Claim) -> u64 {
        let of_module = Category::ALL.into_iter().filter(|category| category.is_in(self.taken));
        match claim {
            Some(kind) => self.limits.bytes_of(kind.category()),
            None => of_module.map(|category| self.limits.bytes_of(category)).max().unwrap_or(0),
        }
    }
}

/// An item for a saved reply: its declaration is checked, its bytes are not needed.
fn unchecked_media(item: &Item<'_>, claim: Claim) -> Result<CheckedMedia, Failure> {
    let mut note = MediaNote::new(item, "not_loaded");
    note.media_type = claim.map(MediaType::mime);
    if let ItemSource::Base64(text) = item.source {
        note.bytes = u64::try_from(decode(text)?.len()).ok();
        note.status = "ok";
    }
    Ok(CheckedMedia { note, content: MediaContent::Unseen })
}

/// Decodes base64: the standard alphabet, padding, and nothing else except line breaks. (MEDIA-010)
pub(super) fn decode(text: &str) -> Result<Bytes, Failure> {
    // Line breaks are rare, so they are removed only after decoding has failed.
    let decoded = STANDARD.decode(text).or_else(|first| match first {
        _ if text.contains(BREAKS) => STANDARD.decode(text.replace(BREAKS, "")),
        _ => Err(first),
    });
    decoded.map(Bytes::from).map_err(|_| {
        let why = if text.starts_with("data:") { "it begins with `data:`" } else { "it is not valid base64" };
        Failure::new(
            ErrorCode::MediaDecodeFailed,
            format!("the data of a media item cannot be decoded: {why}"),
        )
        .suggest("Send base64 in the standard alphabet, with padding and without a `data:` prefix")
    })
}

/// The characters that a base64 text may contain in addition to its digits.
const BREAKS: [char; 2] = ['\r', '\n'];

/// Removes the line breaks of a base64 text that encodes `bytes`; returns the same text if it has none.
pub(super) fn without_breaks(text: String, bytes: Option<u64>) -> String {
    // It has been decoded, so it contains only digits, padding and breaks: its length shows whether it has breaks.
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let digits = bytes.and_then(|bytes| base64::encoded_len(bytes, true));
    if digits == Some(text.len()) { text } else { text.replace(BREAKS, "") }
}

fn encode(bytes: &Bytes) -> Bytes {
    Bytes::from(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_010_breaks_do_not_reach_the_provider() {
        for (text, left) in [("QUJD", "QUJD"), ("QU\r\nI=\n", "QUI="), ("QUJD\n", "QUJD"), ("", "")] {
            let bytes = u64::try_from(decode(text).unwrap().len()).ok();
            assert_eq!(without_breaks(text.to_owned(), bytes), left);
            assert_eq!(without_breaks(text.to_owned(), None), left);
        }
    }

    #[test]
    fn media_010_base64_is_strict_except_for_line_breaks() {
        assert_eq!(decode("QUJD").unwrap(), "ABC");
        assert_eq!(decode("QU\r\nI=\n").unwrap(), "AB");
        for broken in ["QUI", "QU I=", "QU-_", "data:image/png;base64,QUJD", "QQ=", "QR==", "@@@@", "QUI=\nQ"]
        {
            assert_eq!(decode(broken).unwrap_err().code(), ErrorCode::MediaDecodeFailed, "{broken}");
        }
    }
}
