//! The port to services that take many requests at once, answer them within a day and bill half for it. A post is sent once and
//! can be asked about for as long as its id is known; its answers are read like those of single calls. Decides nothing itself.

use std::any::Any;
use std::sync::Arc;
use std::time::SystemTime;

use crate::port_future::PortFuture;
use crate::ports::{CallSink, ModelCall, ModelEnd, Provider, ProviderError};

/// A request as it would be sent, with what has to be known of it when its answer is read.
#[derive(Clone)]
pub struct PostDraft {
    /// The body of a single call, without the wish for a stream.
    pub body: String,
    /// On which terms it is made; only the service that made it knows what they are.
    pub terms: Arc<dyn Any + Send + Sync>,
}

/// One of the requests of a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostedRequest {
    /// What its answer will be found by: letters, digits and hyphens, at most 64.
    pub id: String,
    /// What is sent.
    pub body: String,
}

/// How far a post is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostState {
    /// The service is at it; so many requests are done.
    Waiting(u64),
    /// There is nothing more to wait for: every request has an answer, or will never have one.
    Ended,
    /// The service took none of it.
    Failed(String),
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostedReply {
    /// What a single call would have been answered.
    Answer {
        /// The status of HTTP.
        status: u16,
        /// The body.
        body: String,
    },
    /// The service did not come to it, in its own word, such as `expired`.
    Lost(String),
}

/// How the answer of a posted request reads.
#[derive(Debug)]
pub enum PostOutcome {
    /// The model answered.
    Answered(Box<ModelEnd>),
    /// The service does not take the request on these terms; a new draft has others.
    OtherTerms,
    /// It failed, for this reason; whether the same request may work another time.
    Failed(ProviderError, bool),
}

/// The most that one post may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostLimits {
    /// Requests.
    pub requests: usize,
    /// Bytes of all requests together.
    pub bytes: usize,
}

/// Takes what answers of a post are collected.
pub type CollectReply<'a> = dyn FnMut(&str, PostedReply) -> Result<(), String> + Send + 'a;

/// A service that takes many requests at once.
pub trait BatchService: Send + Sync {
    /// The same service for single calls: its name, its model, what it takes.
    fn single(&self) -> &dyn Provider;

    /// The most that one post may hold.
    fn limits(&self) -> PostLimits;

    /// The request for a call, on the tightest terms that are not known to fail.
    fn draft(&self, call: &ModelCall) -> Result<PostDraft, ProviderError>;

    /// Sends a post under a name of ours and says by which id the service knows it.
    fn post<'a>(
        &'a self,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>>;

    /// The id of a post that may have been sent, by its name, or where services keep no names by when it was sent and how many
    /// requests it had.
    fn find<'a>(
        &'a self,
        name: &'a str,
        since: SystemTime,
        count: usize,
    ) -> PortFuture<'a, Result<Option<String>, ProviderError>>;

    /// How far a post is.
    fn state<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<PostState, ProviderError>>;

    /// Hands over the answers of a post that has ended. `ids` are those of its requests, in the order in which they were sent.
    fn collect<'a>(
        &'a self,
        id: &'a str,
        ids: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>>;

    /// Reads an answer as that of a single call is read.
    fn read(
        &self,
        call: &ModelCall,
        draft: &PostDraft,
        reply: &PostedReply,
        sink: &mut dyn CallSink,
    ) -> PostOutcome;
}
