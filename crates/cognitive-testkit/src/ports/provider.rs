//! A model with scripted replies that records its calls.

use std::sync::Mutex;

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};

use super::lock;

/// Returns one reply after the other, each in one piece and at once. The last one repeats.
#[derive(Debug, Default)]
pub struct ScriptedProvider {
    replies: Mutex<Vec<String>>,
    calls: Mutex<Vec<ModelCall>>,
}

impl ScriptedProvider {
    /// A model with these replies. Without any, it completes with an empty text.
    pub fn new<R: ToString>(replies: impl IntoIterator<Item = R>) -> Self {
        let replies = replies.into_iter().map(|reply| reply.to_string()).collect();
        Self { replies: Mutex::new(replies), calls: Mutex::default() }
    }

    /// All calls so far, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<ModelCall> {
        lock(&self.calls).clone()
    }

    /// Sets the reply to all calls from now on.
    pub fn say(&self, reply: impl ToString) {
        *lock(&self.replies) = vec![reply.to_string()];
    }

    fn next_reply(&self) -> Option<String> {
        let mut replies = lock(&self.replies);
        if replies.len() > 1 { Some(replies.remove(0)) } else { replies.first().cloned() }
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        lock(&self.calls).push(call.clone());
        if let Some(reply) = self.next_reply() {
            sink.piece(&reply);
        }
        Box::pin(async { Ok(ModelEnd::complete("m", DecodeMode::Prompt)) })
    }
}
