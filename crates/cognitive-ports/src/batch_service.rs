//! The port to batch services, which accept many requests at once, answer within a day and bill half the price.
//! A post (one batch) is sent once and can be queried while its id is known. Its answers are read like those of
//! single calls. Makes no decisions itself.

use std::any::Any;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::ports::PortFuture;
use cognitive_contract::ports::{CallSink, ModelCall, ModelEnd, Provider, ProviderError};

/// A request ready to be sent, with the data needed to read its answer.
#[derive(Clone)]
pub struct PostDraft {
    /// The body of a single call, without the request for a stream.
    pub body: String,
    /// The terms of the request, opaque to all but the service that made it.
    pub terms: Arc<dyn Any + Send + Sync>,
}

/// One request of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostedRequest {
    /// The id that matches the answer to the request: letters, digits and hyphens, at most 64.
    pub id: String,
    /// The request body.
    pub body: String,
}

/// The state of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostState {
    /// In progress, with the number of finished requests.
    Waiting(u64),
    /// Finished: every request has an answer, or will never get one.
    Ended,
    /// The service rejected the whole post.
    Failed(String),
}

/// The reply to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostedReply {
    /// The HTTP response that a single call would have received.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The body.
        body: String,
    },
    /// The service did not process the request; the text is its own word, such as `expired`.
    Lost(String),
}

/// The result of reading the reply to a posted request.
#[derive(Debug)]
pub enum PostOutcome {
    /// The model answered.
    Answered(Box<ModelEnd>),
    /// The service rejects these terms; a new draft uses others.
    OtherTerms,
    /// The request failed with this error. The flag says whether the same request may succeed later.
    Failed(ProviderError, bool),
}

/// The limits of one post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostLimits {
    /// The number of requests.
    pub requests: usize,
    /// The total size of all requests, in bytes.
    pub bytes: usize,
}

/// A callback that receives each answer of a post with the id of its request.
pub type CollectReply<'a> = dyn FnMut(&str, PostedReply) -> Result<(), String> + Send + 'a;

/// A service that accepts many requests at once.
pub trait BatchService: Send + Sync {
    /// This service for single calls, with its name, model and capabilities.
    fn single(&self) -> &dyn Provider;

    /// Returns the limits of one post.
    fn limits(&self) -> PostLimits;

    /// Builds the request for a call, on the strictest terms that are not known to fail.
    fn draft(&self, call: &ModelCall) -> Result<PostDraft, ProviderError>;

    /// Sends a post under a name of ours and returns the id that the service gave it.
    fn post<'a>(
        &'a self,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>>;

    /// Finds the id of a post that may have been sent. Searches by name, or by send time and request count
    /// where the service stores no names.
    fn find<'a>(
        &'a self,
        name: &'a str,
        since: SystemTime,
        count: usize,
    ) -> PortFuture<'a, Result<Option<String>, ProviderError>>;

    /// Returns the state of a post.
    fn state<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<PostState, ProviderError>>;

    /// Hands over the answers of a finished post. `ids` lists its requests in the order in which they were
    /// sent.
    fn collect<'a>(
        &'a self,
        id: &'a str,
        ids: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>>;

    /// Reads a reply in the same way as that of a single call.
    fn read(
        &self,
        call: &ModelCall,
        draft: &PostDraft,
        reply: &PostedReply,
        sink: &mut dyn CallSink,
    ) -> PostOutcome;
}
