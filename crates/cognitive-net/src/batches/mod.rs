//! Batches of requests at half the price: the batch endpoints of OpenAI, Anthropic and Gemini, one file for each. A
//! request has the body of a single call, and its answer is parsed by the code for single calls. Never waits for a
//! batch: the caller polls its state. A batch whose creation response was lost can be found again.

mod anthropic;
mod gemini;
mod openai;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cognitive_contract::ports::{
    Attempt, CallSink, FailedTry, FailureKind, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
};
use cognitive_ports::batch_service::{
    BatchService, CollectReply, PostDraft, PostLimits, PostOutcome, PostState, PostedReply, PostedRequest,
};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::Url;
use serde_json::Value;
use tokio::time::timeout;

use crate::config::{ProviderConfig, remote};
use crate::fault::Reporter;
use crate::kind::Kind;
use crate::llm::remote::Remote;
use crate::llm::segments::Segments;
use crate::llm::terms::Terms;
use crate::service::{Answer, Trouble};

/// The time limit for one request and its answer. Large, because the upload of a batch can be hundreds of megabytes.
const TIME: Duration = Duration::from_mins(10);
/// The longest answer, in bytes, of an endpoint that does not return a results file. Without it, a wrong address
/// could fill the memory.
const MAX_DOCUMENT_LENGTH: usize = 256 << 20;
/// The longest answer to one request, in bytes. Without it, a file without line breaks would fill the memory.
const MAX_LINE_LENGTH: usize = 64 << 20;

/// The protocol of one service's batch endpoint.
trait PostWire: Send + Sync {
    /// The limits of one batch.
    fn limits(&self) -> PostLimits;

    /// Submits a batch and returns its id.
    fn post<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>>;

    /// The URL that lists the newest batches.
    fn list(&self, batch_client: &BatchClient) -> Url;

    /// Returns the id of the wanted batch if the list contains it.
    fn in_list(&self, list: &Value, wanted: &WantedPost<'_>) -> Option<String>;

    /// The URL of the state of a batch.
    fn place(&self, batch_client: &BatchClient, id: &str) -> Url;

    /// Parses the state of a batch.
    fn state(&self, post: &Value) -> PostState;

    /// Passes the answers of an ended batch to `take`.
    fn collect<'a>(
        &'a self,
        batch_client: &'a BatchClient,
        post: Value,
        ids: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>>;
}

/// A batch that may have been submitted.
struct WantedPost<'a> {
    name: &'a str,
    since: SystemTime,
    count: u64,
}

/// An HTTP connection to a service, for everything but single calls.
struct BatchClient {
    remote: Remote,
}

/// A service that accepts batches of requests.
struct PostService {
    batch_client: BatchClient,
    wire: Box<dyn PostWire>,
}

/// Returns the batch service of a provider. Fails if the kind has no batch endpoint or the configuration is
/// incomplete. Makes no request.
pub fn batch_service(config: &ProviderConfig) -> Result<Arc<dyn BatchService>, ProviderError> {
    let wire: Box<dyn PostWire> = match config.kind {
        Kind::OpenAi => Box::new(openai::OpenAiPosts),
        Kind::Anthropic => Box::new(anthropic::AnthropicPosts),
        Kind::Gemini => Box::new(gemini::GeminiPosts),
        other => {
            let why = format!("{other} has no known batch endpoint: openai, anthropic and gemini have one");
            return Err(ProviderError::Misconfigured(why));
        }
    };
    Ok(Arc::new(PostService { batch_client: BatchClient { remote: remote(config)? }, wire }))
}

impl BatchClient {
    /// Builds a URL of the service: replaces the path suffix of the calls URL with `path`.
    fn at(&self, calls_end: &str, path: &str) -> Url {
        let mut url = self.remote.wire.endpoint().calls.clone();
        let base = url.path().strip_suffix(calls_end).unwrap_or(url.path()).to_owned();
        url.set_path(&format!("{base}{path}"));
        url.set_query(None);
        url
    }

    fn model(&self) -> &str {
        &self.remote.wire.endpoint().model
    }

    fn reporter(&self) -> Reporter<'_> {
        Reporter { name: self.remote.name, redactor: &self.remote.redactor, call: None }
    }

    /// Sends a request and waits for the head of a successful answer.
    async fn ask(
        &self,
        method: Method,
        url: &Url,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<Answer<'_>, ProviderError> {
        let mut headers: HeaderMap = self.remote.wire.endpoint().headers.clone();
        if let Some(kind) =
            Some(kind).filter(|kind| !kind.is_empty()).and_then(|kind| HeaderValue::from_str(kind).ok())
        {
            headers.insert(CONTENT_TYPE, kind);
        }
        let place = self.remote.service.place(url, &headers)?;
        let reporter = self.reporter();
        let sent = self.remote.service.ask(method, &place, Segments::from_bytes(body));
        let answer = timeout(TIME, sent).await.map_err(|_| ProviderError::Timeout)?;
        let answer = answer.map_err(|trouble| reporter.transport(&trouble).error)?;
        reporter.success(answer).await
    }

    async fn get(&self, url: &Url) -> Result<Value, ProviderError> {
        let answer = self.ask(Method::GET, url, "", Vec::new()).await?;
        self.document(answer).await
    }

    async fn post_json(&self, url: &Url, body: Vec<u8>) -> Result<Value, ProviderError> {
        let answer = self.ask(Method::POST, url, "application/json", body).await?;
        self.document(answer).await
    }

    async fn document(&self, mut answer: Answer<'_>) -> Result<Value, ProviderError> {
        let mut text = Vec::new();
        while let Some(piece) = self.piece(&mut answer).await? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_DOCUMENT_LENGTH {
                return Err(self.reporter().unreadable("an answer above the size limit").error);
            }
        }
        let not_json = |_| self.reporter().unreadable("something that is not JSON; check the address").error;
        serde_json::from_slice(&text).map_err(not_json)
    }

    async fn piece(&self, answer: &mut Answer<'_>) -> Result<Option<bytes::Bytes>, ProviderError> {
        let next = timeout(TIME, answer.next(usize::MAX)).await.map_err(|_| ProviderError::Timeout)?;
        next.map_err(|trouble: Trouble| self.reporter().transport(&trouble).error)
    }

    /// Reads a JSON lines file of any length line by line.
    async fn lines(
        &self,
        url: &Url,
        mut take: impl FnMut(Value) -> Result<(), String> + Send,
    ) -> Result<(), ProviderError> {
        let mut answer = self.ask(Method::GET, url, "", Vec::new()).await?;
        let (mut rest, mut is_over) = (Vec::new(), false);
        while !is_over {
            match self.piece(&mut answer).await? {
                Some(piece) => rest.extend_from_slice(&piece),
                None => {
                    is_over = true;
                    rest.push(b'\n');
                }
            }
            while let Some(end) = memchr::memchr(b'\n', &rest) {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                let line = serde_json::from_slice(&line)
                    .map_err(|_| self.reporter().unreadable("a line that is not JSON").error)?;
                take(line).map_err(ProviderError::Unexpected)?;
            }
            if rest.len() > MAX_LINE_LENGTH {
                return Err(self.reporter().unreadable("a line above the size limit").error);
            }
        }
        Ok(())
    }

    /// Returns an error for an unexpected answer of the service.
    fn odd(&self, what: &str) -> ProviderError {
        self.reporter().unreadable(what).error
    }
}

/// Returns the id of an object that the service has created.
fn id_of(made: &Value, batch_client: &BatchClient, member: &str) -> Result<String, ProviderError> {
    let id = made.get(member).and_then(Value::as_str).filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| batch_client.odd("a batch without an id"))
}

impl BatchService for PostService {
    fn single(&self) -> &dyn Provider {
        &self.batch_client.remote
    }

    fn limits(&self) -> PostLimits {
        self.wire.limits()
    }

    fn draft(&self, call: &ModelCall) -> Result<PostDraft, ProviderError> {
        let remote = &self.batch_client.remote;
        let terms = remote.memory.terms(call);
        let text = remote.body(call, &terms).into_text();
        let body = text.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let Some(Value::Object(mut body)) = body else {
            return Err(ProviderError::Unexpected("a request is not JSON".to_owned()));
        };
        body.shift_remove("stream");
        body.shift_remove("stream_options");
        Ok(PostDraft { body: Value::Object(body).to_string(), terms: Arc::new(terms) })
    }

    fn post<'a>(
        &'a self,
        name: &'a str,
        requests: &'a [PostedRequest],
    ) -> PortFuture<'a, Result<String, ProviderError>> {
        self.wire.post(&self.batch_client, name, requests)
    }

    fn find<'a>(
        &'a self,
        name: &'a str,
        since: SystemTime,
        count: usize,
    ) -> PortFuture<'a, Result<Option<String>, ProviderError>> {
        Box::pin(async move {
            let list = self.batch_client.get(&self.wire.list(&self.batch_client)).await?;
            Ok(self.wire.in_list(&list, &WantedPost { name, since, count: count as u64 }))
        })
    }

    fn state<'a>(&'a self, id: &'a str) -> PortFuture<'a, Result<PostState, ProviderError>> {
        Box::pin(async move {
            let post = self.batch_client.get(&self.wire.place(&self.batch_client, id)).await?;
            Ok(self.wire.state(&post))
        })
    }

    fn collect<'a>(
        &'a self,
        id: &'a str,
        ids: &'a [String],
        take: &'a mut CollectReply<'_>,
    ) -> PortFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let post = self.batch_client.get(&self.wire.place(&self.batch_client, id)).await?;
            self.wire.collect(&self.batch_client, post, ids, take).await
        })
    }

    fn read(
        &self,
        call: &ModelCall,
        draft: &PostDraft,
        reply: &PostedReply,
        sink: &mut dyn CallSink,
    ) -> PostOutcome {
        let Some(terms) = draft.terms.downcast_ref::<Terms>() else {
            return PostOutcome::Failed(
                ProviderError::Unexpected("a draft of another service".to_owned()),
                false,
            );
        };
        let (status, body) = match reply {
            PostedReply::Answer { status, body } => (*status, body.as_str()),
            PostedReply::Lost(why) => {
                let why = format!("the batch endpoint did not process this request: {why}");
                // The batch never ran this request, so the service does not bill it.
                let mut attempt = Attempt::new(terms.bind.decode(), why.clone(), Duration::ZERO);
                attempt.status = Some(503);
                attempt.failed = Some(FailedTry::new(FailureKind::Outage));
                sink.attempt(attempt);
                return PostOutcome::Failed(ProviderError::Unavailable(why), true);
            }
        };
        match self.batch_client.remote.read_posted(call, terms, (status, body), sink) {
            Ok(end) => PostOutcome::Answered(Box::<ModelEnd>::new(end)),
            Err((_, Some(less))) => {
                // These terms are not known to work yet, but the refused ones would fail again.
                self.batch_client.remote.memory.remember(&less, call);
                PostOutcome::OtherTerms
            }
            Err((fault, None)) => {
                let passes = fault.failed.as_ref().is_some_and(|failed| failed.passes);
                PostOutcome::Failed(fault.error, passes)
            }
        }
    }
}
