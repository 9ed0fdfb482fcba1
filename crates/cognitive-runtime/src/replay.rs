//! A provider that answers with saved text. Authors debug with it, and golden tests replay recorded replies, without
//! a key or a network.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cognitive_contract::RecordedReply;
use cognitive_contract::media::{AcceptedForm, Category, MediaType};
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Destination, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
    Usage,
};

use cognitive_contract::tools::FUNCTION_CALLING;
use cognitive_schema::SchemaTarget;

use crate::stages::requirements;

/// The saved pieces of one reply, and its end.
#[derive(Debug)]
pub struct Replay {
    pieces: Vec<String>,
    error: Option<ProviderError>,
    usage: Option<Usage>,
    dialect: Option<SchemaTarget>,
    calls: AtomicUsize,
}

impl Replay {
    /// A reply that was recorded. It arrives as one piece and is read as it was read when it came. (D-18)
    #[must_use]
    pub fn from_recorded(reply: RecordedReply) -> Self {
        Self { dialect: reply.dialect, ..Self::text(reply.text) }
    }

    /// A reply that arrives as one piece, of a provider that was sent no schema.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::pieces(vec![text.into()], None)
    }

    /// A reply in pieces that may end in an error.
    #[must_use]
    pub fn pieces(pieces: Vec<String>, error: Option<ProviderError>) -> Self {
        Self { pieces, error, usage: None, dialect: None, calls: AtomicUsize::new(0) }
    }

    /// Sets the token usage that the reply reports.
    #[must_use]
    pub fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Provider for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn capabilities(&self) -> &[&str] {
        &["json_mode", requirements::MEDIA, FUNCTION_CALLING]
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        Some(AcceptedForm::from_types(match category {
            Category::Image => &[MediaType::Png, MediaType::Jpeg, MediaType::Webp, MediaType::Gif],
            Category::Audio => &[MediaType::Mp3, MediaType::Wav, MediaType::Ogg, MediaType::WebmAudio],
            Category::Video => &[MediaType::Mp4, MediaType::WebmVideo, MediaType::Quicktime],
            Category::Document => &[MediaType::Pdf],
        }))
    }

    fn destination(&self) -> Option<Destination> {
        None
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::Relaxed);
            for piece in &self.pieces {
                sink.piece(piece);
            }
            let outcome = self.error.as_ref().map_or_else(|| "ok".to_owned(), ToString::to_string);
            let mut attempt = Attempt::new(DecodeMode::Replay, outcome, Duration::ZERO);
            attempt.usage = self.usage.filter(|_| self.error.is_some());
            sink.attempt(attempt);
            let mut end = ModelEnd::complete("saved-reply", DecodeMode::Replay);
            end.usage = self.usage;
            end.replayed = self.dialect;
            self.error.clone().map_or(Ok(end), Err)
        })
    }
}
