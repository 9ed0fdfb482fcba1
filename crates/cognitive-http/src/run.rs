//! `POST /api/run/{module}`: returns one envelope or one stream. Both come from the same run; a sync response is the
//! collected stream.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, StatusCode};
use cognitive_contract::code::Blame;
use cognitive_contract::stream::{Chunk, ChunkWriter};
use cognitive_contract::{Confidence, Envelope, ErrorCode, Failure, Meta, Module, Risk, Warning};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Delivery, Host, ModuleRef, RunOptions, RunRequest, Stream, session_id};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::app::AppState;
use crate::auth::Client;
use crate::counted_run::{CountedRun, ModelCallFlag, called_model};
use crate::intake::on_blocking_thread;
use crate::limits::StreamPermit;
use crate::memory_budget::MemoryClaim;
use crate::request::{self, Content, LeftOff, Options, ParsedRunRequest, Query};
use crate::response;
use crate::session::{Reader, Resumption, Session};
use crate::studio::choice::ChosenRun;
use crate::{files, transport};
use crate::{other_servers, shared_streams};

/// A request for a run, without its module.
pub(crate) struct Incoming {
    pub(crate) client: Arc<Client>,
    pub(crate) headers: HeaderMap,
    pub(crate) query: Query,
    /// `Ok` if the client may run once more, which has then been counted.
    pub(crate) rate: Result<(), Failure>,
    /// The memory reservation of the request.
    pub(crate) claim: MemoryClaim,
}

/// Answers a run request with an envelope or a stream. `module` is the result of the lookup before the body was read.
pub(crate) async fn answer(
    shared: &Arc<AppState>,
    name: &str,
    module: Result<Arc<Module>, Failure>,
    body: Content,
    incoming: Incoming,
) -> Response<Body> {
    let answered = if incoming.claim.is_heavy() {
        let (shared, name) = (Arc::clone(shared), name.to_owned());
        on_blocking_thread(async move { try_answer(&shared, &name, module, body, incoming).await }).await
    } else {
        try_answer(shared, name, module, body, incoming).await
    };
    match answered {
        Ok(response) => response,
        Err(failure) => response::failure(failure),
    }
}

async fn try_answer(
    shared: &Arc<AppState>,
    name: &str,
    module: Result<Arc<Module>, Failure>,
    body: Content,
    incoming: Incoming,
) -> Result<Response<Body>, Failure> {
    let Incoming { client, headers, query, rate, claim } = incoming;
    let client = &*client;
    // Looking up a missing module costs as much as a run, so it counts against the rate limit.
    let found = module.or_else(|failure| rate.clone().and(Err(failure)));
    let read = request::read(&headers, &query, body, found.as_deref().is_ok_and(takes_input));
    let mut ask = match (read, &found) {
        (Ok(ask), _) if found.is_ok() || ask.options.replaces_files() => ask,
        (_, Err(failure)) => return Err(failure.clone()),
        (read, Ok(_)) => read?,
    };
    // Headers keep the read buffer of the connection alive, which is not needed while a model answers.
    drop(headers);
    let mut warnings = Vec::new();
    let (capabilities, transport) = (&shared.host.capabilities, ask.framing.transport());
    if let Some(left_off) = ask.left_off.take() {
        if !capabilities.carries(transport) {
            return Err(no_such_transport(shared));
        }
        match resume(shared, client, name, &left_off, ask.options.ask_again).await? {
            Some((reader, opening)) => {
                if rate.is_ok() && client.is_limited {
                    refund(shared, client).await;
                }
                let module = found?;
                return Ok(respond(shared, &module, &ask, reader, Some(opening)));
            }
            None if ask.options.resume_only => return Err(no_such_stream()),
            None => warnings.push(Warning::new(
                ErrorCode::SessionExpired.number(),
                "the stream is unknown or has expired; this is a new one",
            )),
        }
    }
    rate?;
    let ChosenRun { host, module, seen } = shared.choose(client, name, found, &mut ask.options).await?;
    let agreed = capabilities.agree(module.manifest.response.mode, ask.wanted, transport);
    forbidden_fallback(&ask.options, agreed.streaming)?;
    warnings.extend(agreed.warning);
    let mut options = options(client, &ask.options)?;
    options.trace_id = Some(client.trace.id.clone());
    options.spans = shared.place(&client.trace, Some(&client.trace.span));
    options.warnings = warnings;
    let request = RunRequest {
        module: ModuleRef::from_module(name, Arc::clone(&module)),
        input: std::mem::replace(&mut ask.input, RunInput::Raw(String::new())),
        options,
    };
    if !agreed.streaming {
        // The parsed body stays as large, so its memory stays reserved until the answer is complete.
        let _claim = claim;
        let _busy = shared.count_run();
        let mut envelope = whole_envelope(shared, &host, request).await;
        if let Some(replies) = seen.and_then(|seen| seen.complete_replies()) {
            shared.replies.keep(&client.name, &client.trace.id, replies);
        }
        files::publish(shared, client.uploader(), ask.options.media_out, &mut envelope).await;
        let mut response = response::envelope(&envelope, Some(module.manifest.tier.word()));
        if !envelope.ok() && *shared.ending.borrow() {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        return Ok(response);
    }
    let mut reader = start(shared, &host, client, request, &ask.options, permit(shared, client)?, claim);
    // STREAM-017: a failure before the first chunk is an ordinary response; nothing has been sent yet.
    let failed_at_once = reader.peek().await.and_then(|first| first.envelope);
    if let Some(envelope) = failed_at_once {
        return Ok(response::envelope(&envelope, Some(module.manifest.tier.word())));
    }
    Ok(respond(shared, &module, &ask, reader, None))
}

/// Runs a module to its envelope. The run is counted, and shutdown waits for it.
pub(crate) async fn whole_envelope(shared: &Arc<AppState>, host: &Host, request: RunRequest) -> Envelope {
    let (was_asked, name) = (AtomicBool::default(), request.module.name().to_owned());
    let counted = CountedRun::begin(shared, host, &name, &was_asked);
    let _busy = shared.count_run();
    let mut sink = ModelCallFlag(&was_asked);
    let envelope = cognitive_runtime::run_until(host, request, &mut sink, shared.shutdown_deadline()).await;
    counted.finish(&envelope);
    envelope
}

/// Returns whether the module's own input has a member called `input`.
pub(crate) fn takes_input(module: &Module) -> bool {
    let properties = module.contract.input().schema().get("properties");
    properties.is_some_and(|properties| properties.get("input").is_some())
}

fn respond(
    shared: &AppState,
    module: &Module,
    ask: &ParsedRunRequest,
    reader: Reader,
    opening: Option<(String, Bytes)>,
) -> Response<Body> {
    let tier = module.manifest.tier.word();
    transport::response(ask.framing, reader, opening, shared.config.heartbeat, tier, ask.trailers)
}

/// The failure for a transport that is disabled while others can stream (CAP-002).
pub(crate) fn no_such_transport(shared: &AppState) -> Failure {
    let others = &shared.host.capabilities.supported_transports;
    let there_is = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    Failure::new(ErrorCode::StreamingNotSupported, "this transport is not enabled for streams")
        .with_detail("supported_transports", json!(others))
        .suggest(format!("Use one of these transports: {there_is}; or request one envelope"))
}

/// Builds the run options of a client. The operator's options are in the host.
pub(crate) fn options(client: &Client, asked: &Options) -> Result<RunOptions, Failure> {
    let mut options = RunOptions::default();
    options.key = client.user().map(str::to_owned);
    options.user.clone_from(&options.key);
    options.uploads_of = Some(client.uploader().to_owned());
    options.remote = true;
    options.session = asked.session()?;
    options.settings = asked.settings()?;
    Ok(options)
}

/// Fails if the client accepts only a stream and there is none (CAP-013).
pub(crate) fn forbidden_fallback(asked: &Options, streaming: bool) -> Result<(), Failure> {
    if !asked.require_streaming || streaming {
        return Ok(());
    }
    Err(cognitive_runtime::stream::not_streamed())
}

/// Counts a run against the client's rate limit (S-29).
pub(crate) fn within_rate(shared: &AppState, client: &Client) -> Result<(), Failure> {
    if !client.is_limited {
        return Ok(());
    }
    shared.limits.run(&client.name, Instant::now()).map_err(out_of_rate)
}

/// Counts a run across all servers with shared state. If that is unavailable, this server counts alone.
pub(crate) async fn within_shared_rate(shared: &AppState, client: &Client) -> Result<(), Failure> {
    let (Some(state), Some((interval, burst))) = (&shared.config.shared, shared.limits.rate()) else {
        return within_rate(shared, client);
    };
    if !client.is_limited {
        return Ok(());
    }
    match state.take_run(&client.name, interval, burst).await {
        Ok(taken) => taken.map_err(out_of_rate),
        Err(reason) => {
            shared.config.complain(&format!("runs are counted on this server only: {reason}"));
            within_rate(shared, client)
        }
    }
}

/// Refunds a run that was counted but did not take place.
async fn refund(shared: &AppState, client: &Client) {
    match (&shared.config.shared, shared.limits.rate()) {
        (Some(state), Some((interval, _))) => {
            // If the refund fails, the client is charged for one run too many.
            let _ = state.refund(&client.name, interval).await;
        }
        _ => shared.limits.refund(&client.name),
    }
}

/// The failure for a client that has used up its runs of this minute.
pub(crate) fn out_of_rate(wait: Duration) -> Failure {
    too_much("too many runs per minute", wait)
}

/// Returns a permit for one more stream (STREAM-023).
pub(crate) fn permit(shared: &AppState, client: &Client) -> Result<StreamPermit, Failure> {
    if shared.sessions.is_full() {
        return Err(too_much("the memory limit of all streams is reached", Duration::from_secs(1)));
    }
    shared
        .limits
        .stream(&client.name)
        .ok_or_else(|| too_much("too many streams at once", Duration::from_secs(1)))
}

/// The failure for a request above the current capacity.
pub(crate) fn too_much(what: &str, wait: Duration) -> Failure {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    // This server is at its limit, not the provider behind it.
    Failure::new(ErrorCode::RateLimited, what)
        .with_blame(Blame::Runtime)
        .with_detail("retry_after_seconds", json!(seconds))
        .suggest(format!("Wait {seconds} seconds and try again"))
}

/// Starts a run that outlives the connection, and returns the first reader of its stream.
pub(crate) fn start(
    shared: &Arc<AppState>,
    host: &Arc<Host>,
    client: &Client,
    request: RunRequest,
    asked: &Options,
    permit: StreamPermit,
    claim: MemoryClaim,
) -> Reader {
    let kept = !shared.config.replay.is_zero();
    let session =
        Session::new(session_id(), &client.name, request.module.name(), kept, &shared.sessions.burden);
    let reader = Reader::new(&session, 0);
    shared.sessions.insert(&session);
    shared_streams::publish(shared, &session);
    let owner = client.uploader().to_owned();
    let (chunk_type, media_out) = (asked.chunk_type, asked.media_out);
    let (shared, host) = (Arc::clone(shared), Arc::clone(host));
    let (watched, places) = (Arc::clone(&session), Arc::clone(&shared.long_answers));
    let is_heavy = claim.is_heavy();
    // Boxed here: it has ten kilobytes, and each function that it is passed through would copy them.
    let work = Box::pin(async move {
        let _claim = claim;
        let _last_word = LastWord(Arc::clone(&shared), Arc::clone(&session));
        let started = Instant::now();
        let module = request.module.name().to_owned();
        // The last chunk is held back until its media are stored at the URLs that it names.
        let mut last = None;
        let send = |chunk: Chunk| {
            if chunk.kind().is_terminal() {
                last = Some(chunk);
            } else {
                session.push(chunk);
                shared.sessions.relieve();
            }
        };
        let mut stream = Stream::with_session(session.id.clone(), send);
        if let Some(wanted) = chunk_type {
            stream = stream.with_chunk_type(wanted);
        }
        let stop = stop(&shared, &session);
        let was_asked = AtomicBool::default();
        let delivery = stream.run_until(&host, request, &mut ModelCallFlag(&was_asked), stop).await;
        drop(stream);
        let (envelope, mut rest) = match delivery {
            Delivery::Streamed(envelope) => (envelope, last.into_iter().collect()),
            Delivery::Whole(envelope) => (envelope.clone(), last_chunk(&session, envelope)),
        };
        if let Some(Chunk::Final { envelope, .. }) = rest.last_mut() {
            files::publish(&shared, &owner, media_out, envelope).await;
        }
        // A client that has received the last chunk can start its next stream at once.
        drop(permit);
        end(&shared, &session, rest);
        let asked = called_model(&host, &module, &was_asked, &envelope);
        shared.metrics.count_run(&module, &envelope, asked.as_deref(), started.elapsed());
    });
    if is_heavy {
        tokio::spawn(on_blocking_thread(work));
    } else {
        tokio::spawn(until_long(watched, places, work));
    }
    reader
}

/// Streams with longer answers continue outside the serving threads, because parsing and checking such an answer
/// would delay other requests.
const LONG_ANSWER: usize = 1 << 20;

/// Polls the work of a stream, and moves it to a separate thread once its answer is long and a permit is free.
async fn until_long(
    session: Arc<Session>,
    places: Arc<Semaphore>,
    mut work: Pin<Box<impl Future<Output = ()> + Send + 'static>>,
) {
    let place = poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending if session.text() > LONG_ANSWER => match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => Poll::Ready(Some(place)),
            Err(_) => Poll::Pending,
        },
        Poll::Pending => Poll::Pending,
    })
    .await;
    if place.is_some() {
        on_blocking_thread(work).await;
    }
}

/// Guarantees that every stream ends (STREAM-004), so that no client waits for a run that was aborted.
struct LastWord(Arc<AppState>, Arc<Session>);

impl Drop for LastWord {
    fn drop(&mut self) {
        if !self.1.has_ended() {
            let failure =
                Failure::new(ErrorCode::InternalError, "internal error of the server: the run was aborted");
            end(&self.0, &self.1, last_chunk(&self.1, failure.into_envelope()));
        }
    }
}

/// Returns a whole answer as the last chunk, for a channel that carries only streams.
fn last_chunk(session: &Session, envelope: Envelope) -> Vec<Chunk> {
    ChunkWriter::new(session.id.clone(), 0).finish(envelope)
}

/// Sends the remaining chunks, which end with the last one of the stream.
fn end(shared: &AppState, session: &Session, rest: Vec<Chunk>) {
    for chunk in rest {
        session.push(chunk);
        shared.sessions.relieve();
    }
    shared.sessions.record_end(session, shared.config.replay);
}

/// Resolves when the run has to end early, with the reason.
async fn stop(shared: &AppState, session: &Session) -> Failure {
    tokio::select! {
        () = session.wait_for_abandonment(shared.config.grace) => {
            Failure::cancellation("the client disconnected").suggest("Ask again")
        }
        () = tokio::time::sleep(shared.config.stream_limit) => {
            let seconds = shared.config.stream_limit.as_secs();
            Failure::new(ErrorCode::StreamTimeout, format!("the stream exceeded its limit of {seconds} seconds"))
                .suggest("Send less input, or ask the operator for more time")
        }
        reason = session.wait_for_cancellation() => {
            reason.unwrap_or_else(|| Failure::cancellation("the run was cancelled"))
        }
    }
}

/// The failure for a stream that is unknown, expired, or owned by another client.
fn no_such_stream() -> Failure {
    Failure::new(ErrorCode::SessionExpired, "the stream is unknown or has expired")
        .suggest("Send the request again without recovery data")
}

/// `DELETE /v1/streams/{id}`: cancels a run, on whichever server it runs. A client of server-sent events has no other
/// way to cancel, because a lost connection may resume.
pub(crate) async fn cancel(shared: &AppState, client: &Client, id: &str) -> Result<(), Failure> {
    if let Some(session) = shared.sessions.find(id, &client.name).filter(|session| !session.is_followed()) {
        session.cancel(other_servers::cancelled_by_client());
        return Ok(());
    }
    let is_known = other_servers::cancel_stream(shared, id, &client.name).await?;
    is_known.then_some(()).ok_or_else(no_such_stream)
}

type ResumedStream = (Reader, (String, Bytes));

/// Resumes a stream where a client left off; `None` if it does not exist (EXT-REC).
async fn resume(
    shared: &Arc<AppState>,
    client: &Client,
    module: &str,
    left_off: &LeftOff,
    ask_again: bool,
) -> Result<Option<ResumedStream>, Failure> {
    if shared.config.replay.is_zero() {
        return Err(Failure::new(
            ErrorCode::RecoveryNotSupported,
            "stream recovery is disabled on this server",
        )
        .suggest("Send the request again without recovery data"));
    }
    let found = match shared.sessions.get(&left_off.session, &client.name, module) {
        None => shared_streams::find(shared, &left_off.session, &client.name, module).await,
        own => own,
    };
    let Some(session) = found.filter(|session| !(ask_again && session.was_cut_off())) else {
        return Ok(None);
    };
    if session.is_crowded() {
        return Err(too_much("too many connections read this stream", Duration::from_secs(1)));
    }
    let Some(Resumption { from, next_seq, agreed }) = session.resume(&left_off.place) else {
        return Err(Failure::new(
            ErrorCode::SessionExpired,
            "this part of the stream is no longer available",
        )
        .suggest("Send the request again without recovery data"));
    };
    let mut meta = Meta::new(Confidence::ZERO, Risk::Medium, "Resumed");
    if !agreed {
        let what = "the checkpoint does not match; the stream starts again";
        meta.warn(&Warning::new(ErrorCode::CheckpointInvalid.number(), what));
    }
    let opening = Chunk::resumption(session.id.clone(), &meta, next_seq);
    let json = serde_json::to_vec(&opening).unwrap_or_default();
    let id = format!("{}:{from}", session.id);
    Ok(Some((Reader::new(&session, from), (id, json.into()))))
}
