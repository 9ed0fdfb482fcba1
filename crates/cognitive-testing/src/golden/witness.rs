//! A provider that asks another one and remembers what each module was told, so that it can be kept beside the case.
//! Changes nothing on the way in either direction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cognitive_contract::ports::{
    Attempt, CallSink, DecodeMode, Destination, Finish, ModelCall, ModelEnd, PortFuture, Provider,
    ProviderError,
};
use cognitive_runtime::Replay;
use cognitive_schema::SchemaTarget;

/// What was seen of the calls of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SeenReply {
    /// It was asked, and its last answer did not come to its natural end.
    Unfinished,
    /// Its last answer.
    Reply(String),
}

/// The provider of one run.
pub(super) struct ReplyWitness {
    inner: Arc<dyn Provider>,
    seen: Mutex<BTreeMap<String, SeenReply>>,
}

impl ReplyWitness {
    /// Watches a provider.
    pub(super) fn new(inner: Arc<dyn Provider>) -> Self {
        Self { inner, seen: Mutex::default() }
    }

    /// Answers each module with its saved reply; where there is none it has nothing to say.
    pub(super) fn of_replies(replies: BTreeMap<String, String>) -> Self {
        let replies = replies.into_iter().map(|(module, text)| (module, Replay::text(text)));
        let error = ProviderError::Unavailable("no reply is recorded".to_owned());
        let silence = Replay::pieces(Vec::new(), Some(error));
        Self::new(Arc::new(Recorded { replies: replies.collect(), silence }))
    }

    /// What was seen so far, by module.
    pub(super) fn seen(&self) -> BTreeMap<String, SeenReply> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, module: &str, seen: SeenReply) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(module.to_owned(), seen);
    }
}

/// Saved replies by module.
struct Recorded {
    replies: BTreeMap<String, Replay>,
    silence: Replay,
}

impl Provider for Recorded {
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

impl Provider for ReplyWitness {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn stays_here(&self) -> bool {
        self.inner.stays_here()
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.inner.target()
    }

    fn structured_output(&self) -> bool {
        self.inner.structured_output()
    }

    fn destination(&self) -> Option<Destination> {
        self.inner.destination()
    }

    fn capabilities(&self) -> &[&str] {
        self.inner.capabilities()
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            self.note(&call.module, SeenReply::Unfinished);
            let mut ear = ReplyListener { text: String::new(), sink };
            let end = self.inner.ask(call, &mut ear).await;
            // A replay always comes to its natural end, so only such an answer is worth keeping.
            if end.as_ref().is_ok_and(|end| end.finish == Finish::Complete) {
                self.note(&call.module, SeenReply::Reply(ear.text));
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

    fn bound(&mut self, decode: DecodeMode) {
        self.sink.bound(decode);
    }

    fn before_retry(&mut self) -> PortFuture<'_, Result<(), ProviderError>> {
        self.sink.before_retry()
    }
}
