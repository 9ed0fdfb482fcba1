//! A provider that asks another one and remembers what each module was told, with the dialect of the schema that it was
//! sent, so that it can be kept beside a test and replayed.
//! Changes nothing on the way in either direction. Of several answers to one module, the last counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::RecordedReply;
use cognitive_contract::lock::Lock;
use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Finish, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};

use crate::host::Host;
use crate::replay::Replay;

/// The recorded reply to the calls of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenReply {
    /// The module was called, and its last answer did not finish.
    Unfinished,
    /// Its last answer, as it can be replayed.
    Reply(RecordedReply),
}

/// The recorded replies of one run, by module. Clones are cheap and share the same record.
#[derive(Debug, Clone, Default)]
pub struct SeenReplies(Arc<Lock<BTreeMap<String, SeenReply>>>);

impl SeenReplies {
    /// All replies so far.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, SeenReply> {
        self.0.lock().clone()
    }

    /// The reply to each module; `None` if one of them did not finish.
    #[must_use]
    pub fn complete_replies(&self) -> Option<BTreeMap<String, RecordedReply>> {
        let replies = self.all().into_iter().map(|(module, seen)| match seen {
            SeenReply::Reply(reply) => Some((module, reply)),
            SeenReply::Unfinished => None,
        });
        replies.collect()
    }

    fn note(&self, module: &str, seen: SeenReply) {
        self.0.lock().insert(module.to_owned(), seen);
    }
}

impl Host {
    /// Returns the same host with recording of model replies, and the record.
    #[must_use]
    pub fn with_recording(&self) -> (Self, SeenReplies) {
        let seen = SeenReplies::default();
        let watch = |provider: &Arc<dyn Provider>| -> Arc<dyn Provider> {
            Arc::new(ReplyRecorder { inner: Arc::clone(provider), seen: seen.clone() })
        };
        let mut host = self.clone();
        host.wrap_models(watch);
        (host, seen)
    }
}

/// A provider that records the replies of another one.
pub struct ReplyRecorder {
    inner: Arc<dyn Provider>,
    seen: SeenReplies,
}

impl ReplyRecorder {
    /// Records the replies of a provider.
    #[must_use]
    pub fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, seen: SeenReplies::default() }
    }

    /// Answers each module with its saved reply; fails for a module without one.
    #[must_use]
    pub fn from_replies(replies: BTreeMap<String, RecordedReply>) -> (Self, SeenReplies) {
        let replies = replies.into_iter().map(|(module, reply)| (module, Replay::from_recorded(reply)));
        let error = ProviderError::Unavailable("no reply is recorded".to_owned());
        let silence = Replay::pieces(Vec::new(), Some(error));
        let seen = SeenReplies::default();
        let inner = Arc::new(SavedReplies { replies: replies.collect(), silence });
        (Self { inner, seen: seen.clone() }, seen)
    }

    /// All replies so far, by module.
    #[must_use]
    pub fn replies(&self) -> BTreeMap<String, SeenReply> {
        self.seen.all()
    }
}

/// Saved replies by module.
struct SavedReplies {
    replies: BTreeMap<String, Replay>,
    silence: Replay,
}

impl Provider for SavedReplies {
    fn name(&self) -> &str {
        self.silence.name()
    }

    fn capabilities(&self) -> &[&str] {
        self.silence.capabilities()
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        self.replies.get(&call.module).unwrap_or(&self.silence).ask(call, sink)
    }
}

impl Provider for ReplyRecorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Provider> {
        Some(&*self.inner)
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            self.seen.note(&call.module, SeenReply::Unfinished);
            let mut ear = ReplyListener { text: String::new(), sink };
            let end = self.inner.ask(call, &mut ear).await;
            // A replay always comes to its natural end, so only such an answer is worth keeping.
            if let Some(end) = end.as_ref().ok().filter(|end| end.finish == Finish::Complete) {
                let reply = RecordedReply::new(ear.text, call.dialect_of(end));
                self.seen.note(&call.module, SeenReply::Reply(reply));
            }
            end
        })
    }
}

struct ReplyListener<'a> {
    text: String,
    sink: &'a mut dyn CallSink,
}

impl CallSink for ReplyListener<'_> {
    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
        self.sink.piece(text);
    }

    fn attempt(&mut self, attempt: Attempt) {
        self.sink.attempt(attempt);
    }

    fn decode_mode(&mut self, decode: DecodeMode) {
        self.sink.decode_mode(decode);
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        self.sink.before_retry()
    }
}
