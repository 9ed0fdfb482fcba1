//! The loop shared by all providers: send, read, concede unsupported features, wait, retry, report. Knows HTTP and
//! time, but no service. No state outlives the future: dropping it closes the connection.

mod feed;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use cognitive_contract::address::bare_url;
use cognitive_contract::media::{AcceptedForm, Category};
use cognitive_contract::ports::{
    CallSink, Destination, FailureKind, Finish, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
    RenderedRequest,
};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::FUNCTION_CALLING;
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_schema::{ProviderSchema, SchemaTarget};
use hyper::Method;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::complaint::Complaint;
use crate::config::is_loopback;
use crate::fault::{Fault, MEDIA, Reporter};
use crate::frames::{Frames, Unreadable};
use crate::kind::Kind;
use crate::llm::calls::offers;
use crate::llm::echo::Echo;
use crate::llm::endings::{no_answer, not_json, too_late, too_long, unreadable};
use crate::llm::frame_value::FrameValue;
use crate::llm::measure::Measure;
use crate::llm::media;
use crate::llm::segments::Segments;
use crate::llm::surrogates;
use crate::llm::terms::{Bind, Memory, NOT_STORED, OptionalFeature, Terms};
use crate::llm::{Reading, Wire, thinking, thoughts_in};
use crate::redact::Redactor;
use crate::retry::{Pause, RetryDecision, retry_after, wait};
use crate::secret::Secret;
use crate::service::{Answer, MAX_BODY_LENGTH, Place, Service, Trouble};

use feed::Feed;

/// The least time allowed to the first token. Calls with a timeout above one minute get half of it instead, for
/// example because a large model must be loaded first. (S-04)
const FIRST_TOKEN: Duration = Duration::from_secs(30);
/// The longest silence within a stream; after it the stream counts as dead. (S-04)
const SILENCE: Duration = Duration::from_mins(1);
/// The silence of a model that reasons, which only the deadline ends.
const REASONING: Duration = Duration::from_hours(24);
/// The wait after the last text, when only token counts can follow.
const AFTERTHOUGHT: Duration = Duration::from_secs(2);
/// The wait after the closing mark. Nothing can follow, but a body read to its end leaves a reusable connection.
const FAREWELL: Duration = Duration::from_millis(100);
/// The number of frames read before the task yields. Without it, a fast service would occupy a thread while its
/// buffers are full, and two hundred such streams would block all other work.
const FRAMES_AT_ONCE: usize = 8;
/// The longest answer with images in addition to its text. Current images have up to 16 megapixels.
const MAX_BODY_WITH_MEDIA_LENGTH: usize = 64 * 1024 * 1024;
/// The most concessions per call; there are fewer kinds of concessions than this.
const CONCESSIONS: usize = 8;

/// A model behind an HTTP API.
pub(crate) struct Remote {
    pub(crate) name: &'static str,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) service: Service,
    /// The URL for calls.
    pub(crate) calls: Place,
    /// The URL of the model list.
    pub(crate) list: Place,
    pub(crate) memory: Memory,
    pub(crate) redactor: Redactor,
    pub(crate) pause: Arc<dyn Pause>,
    /// The media categories from the configuration; `None` for those documented by the service.
    pub(crate) media: Option<Vec<Category>>,
    /// What audit and metrics show of the requests. Made once: it takes several searches for secrets.
    pub(crate) destination: OnceLock<Destination>,
}

impl Provider for Remote {
    fn name(&self) -> &str {
        self.name
    }

    fn identity(&self) -> String {
        format!("{} {}", bare_url(self.wire.endpoint().calls.as_str()), self.wire.endpoint().model)
    }

    fn telemetry_name(&self) -> &str {
        Kind::parse(self.name).map_or(self.name, Kind::telemetry_name)
    }

    fn target(&self) -> Option<SchemaTarget> {
        self.wire.target()
    }

    fn capabilities(&self) -> &[&str] {
        &["json_mode", FUNCTION_CALLING]
    }

    fn takes(&self, category: Category) -> Option<AcceptedForm> {
        let taken = match &self.media {
            Some(named) => named.contains(&category),
            None => self.wire.understands(category),
        };
        self.wire.form(category).filter(|_| taken)
    }

    fn gives(&self, category: Category) -> bool {
        self.wire.makes(category)
    }

    fn destination(&self) -> Option<Destination> {
        let made = self.destination.get_or_init(|| Destination {
            model: Some(self.wire.endpoint().model.clone()),
            address: Some(self.redactor.clean(&bare_url(self.wire.endpoint().calls.as_str()))),
        });
        Some(made.clone())
    }

    fn render_request(&self, call: &ModelCall) -> Option<RenderedRequest> {
        let terms = self.memory.terms(call);
        let text = self.body(call, &terms).into_text()?;
        let variable = Kind::parse(self.name).and_then(Kind::key_variable).unwrap_or("KEY");
        let shown = |(name, value, is_secret): (String, String, bool)| {
            let key = self.redactor.key().map(Secret::reveal).filter(|key| value.contains(key));
            let shown = match key {
                Some(key) => value.replace(key, &format!("${variable}")),
                None if is_secret => "[redacted]".to_owned(),
                None => self.redactor.hide(&value),
            };
            (name, shown)
        };
        Some(RenderedRequest {
            method: Method::POST.to_string(),
            url: self.redactor.clean(&bare_url(self.wire.endpoint().calls.as_str())),
            headers: self.calls.application_headers().map(shown).collect(),
            body: serde_json::from_str(&text).ok()?,
        })
    }

    fn is_local(&self) -> bool {
        is_loopback(&self.wire.endpoint().calls)
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(self.tries(call, sink))
    }
}

impl Remote {
    /// Runs attempts until one succeeds or the time of the call is over.
    async fn tries(&self, call: &ModelCall, sink: &mut dyn CallSink) -> Result<ModelEnd, ProviderError> {
        if !media::are_sound(call) {
            return Err(ProviderError::Unexpected("a media item is not base64".to_owned()));
        }
        let deadline = deadline_after(call.timeout);
        let mut terms = self.memory.terms(call);
        let said = offers(call).then(String::new);
        let mut feed = Feed::new(sink, said, Echo::new(self.redactor.key()));
        let (mut retries, mut concessions) = (0, 0);
        loop {
            let started = Instant::now();
            (feed.status, feed.usage, feed.model) = (None, None, None);
            let outcome = self.one_try(call, &terms, &mut feed, deadline).await;
            feed.report(terms.bind, started, &outcome);
            let fault = match outcome {
                Ok(end) => {
                    if concessions > 0 {
                        self.memory.remember(&terms, call);
                    }
                    return Ok(end);
                }
                Err(fault) if feed.begun => return Err(fault.after_text()),
                Err(fault) => fault,
            };
            if let Some(less) = self.reduced_terms(&terms, &fault, call).filter(|_| concessions < CONCESSIONS)
            {
                terms = less;
                concessions += 1;
                feed.sink.before_retry().await?;
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Some(time) = wait(fault.again, retries, left, self.pause.jitter()) else {
                return Err(fault.error);
            };
            self.pause.sleep(time).await;
            retries += 1;
            feed.sink.before_retry().await?;
        }
    }

    /// Returns the terms for the next attempt, if the service refused the current ones.
    fn reduced_terms(&self, terms: &Terms, fault: &Fault, call: &ModelCall) -> Option<Terms> {
        let about_the_request = match fault.error {
            ProviderError::Rejected(_) => true,
            // Some servers answer 500 to a schema that they cannot convert to a grammar.
            ProviderError::Unavailable(_) => fault
                .complaint
                .as_ref()
                .is_some_and(|complaint| complaint.mentions(&["grammar", "schema", "tools param"])),
            // A router that knows no server with tool support reports that the model does not exist, and a service
            // that looks up items which it has not stored, that they do not.
            ProviderError::Misconfigured(_) => fault.complaint.as_ref().is_some_and(|complaint| {
                complaint.mentions(&["support tool use"]) || complaint.mentions(NOT_STORED)
            }),
            _ => false,
        };
        let complaint = fault.complaint.as_ref().filter(|_| about_the_request)?;
        // Fewer features do not give a model vision.
        if !call.media.is_empty() && complaint.mentions(MEDIA) {
            return None;
        }
        self.memory.concede(terms, complaint, call)
    }

    /// Runs one attempt. Every wait ends at the deadline; an outer timer would add a second timer to each of them.
    async fn one_try(
        &self,
        call: &ModelCall,
        terms: &Terms,
        feed: &mut Feed<'_>,
        deadline: Instant,
    ) -> Result<ModelEnd, Fault> {
        let reporter = Reporter { name: self.name, redactor: &self.redactor, call: Some(call) };
        // An image, and an answer that is not streamed, arrive in one piece, when they are complete.
        let is_whole = call.wants_media || !terms.keeps(OptionalFeature::Stream);
        let first = if is_whole { call.timeout } else { FIRST_TOKEN.max(call.timeout / 2) };
        let first = deadline_after(first).min(deadline);
        let sent = timeout_at(first, self.send(call, terms)).await.map_err(|_| too_late())?;
        let answer = sent.map_err(|trouble| reporter.transport(&trouble))?;
        let status = answer.status();
        feed.status = Some(status.as_u16());
        if !status.is_success() {
            let told = self.refused_or_failed(answer, terms, feed, reporter);
            return timeout_at(deadline, told).await.unwrap_or_else(|_| Err(too_late()));
        }
        feed.sink.decode_mode(terms.bind.decode());
        let mut reading = Reading { keeps_parts: feed.said.is_some(), ..Reading::default() };
        let read = self.read(&mut reading, answer, first, deadline, feed, reporter).await;
        feed.end_text();
        reading.settle_halves();
        self.redact(&mut reading);
        // Counted tokens were paid for, whatever the outcome.
        feed.note(&reading);
        read?;
        if !reading.is_finished() {
            let why = "it ended without its final event";
            return Err(reporter.interruption_fault(why, FailureKind::Network, RetryDecision::Later));
        }
        Ok(self.whole_end(call, terms, reading, feed))
    }

    /// Builds the end of a complete answer.
    fn whole_end(&self, call: &ModelCall, terms: &Terms, mut reading: Reading, feed: &Feed<'_>) -> ModelEnd {
        let mut end = self.end(&reading, terms.bind);
        end.media = std::mem::take(&mut reading.media);
        end.thinking = call.thinking.map(|tokens| {
            if thinking::thinking_budget(call, terms) == Some(tokens) {
                self.wire.thinking_outcome(tokens, terms)
            } else {
                ThoughtOutcome::Ignored
            }
        });
        end.without_tools = offers(call) && !terms.keeps(OptionalFeature::Tools);
        end.tool_calls = reading.calls.iter().cloned().collect();
        end.more_calls = reading.calls.dropped_count();
        if let Some(said) = feed.said.as_ref().filter(|_| !reading.calls.is_empty()) {
            end.turn = self.wire.turn(&reading, said);
        }
        end
    }

    /// Reads an answer that arrived as a whole, for example from a batch. An error includes the terms for the next
    /// attempt, if the service refused the current ones.
    pub(crate) fn read_posted(
        &self,
        call: &ModelCall,
        terms: &Terms,
        (status, body): (u16, &str),
        sink: &mut dyn CallSink,
    ) -> Result<ModelEnd, (Fault, Option<Terms>)> {
        let reporter = Reporter { name: self.name, redactor: &self.redactor, call: Some(call) };
        let said = offers(call).then(String::new);
        let mut feed = Feed::new(sink, said, Echo::new(self.redactor.key()));
        feed.status = Some(status);
        let started = Instant::now();
        let outcome = if (200..300).contains(&status) {
            self.read_document(call, terms, body, &mut feed, reporter)
        } else {
            let fault = reporter.status(status, None, body.as_bytes());
            self.refusal(status, fault, terms, &mut feed, reporter)
        };
        feed.report(terms.bind, started, &outcome);
        outcome.map_err(|fault| {
            let less = self.reduced_terms(terms, &fault, call);
            (fault, less)
        })
    }

    fn read_document(
        &self,
        call: &ModelCall,
        terms: &Terms,
        body: &str,
        feed: &mut Feed<'_>,
        reporter: Reporter<'_>,
    ) -> Result<ModelEnd, Fault> {
        feed.sink.decode_mode(terms.bind.decode());
        let mut reading =
            Reading { keeps_parts: feed.said.is_some(), is_document: true, ..Reading::default() };
        let read = self.frame(body, &mut reading, feed, reporter);
        feed.end_text();
        reading.settle_halves();
        self.redact(&mut reading);
        feed.note(&reading);
        read?;
        Ok(self.whole_end(call, terms, reading, feed))
    }

    /// Removes the secrets from everything that an answer has beside its text: every part is repeated in envelopes,
    /// records, metrics or traces. [`Echo`] does the same for the text while it arrives.
    fn redact(&self, reading: &mut Reading) {
        let clean = |text: &mut String| self.redactor.remove(text);
        reading.model.iter_mut().filter(|name| **name != self.wire.endpoint().model).for_each(clean);
        reading.calls.each_member(clean);
        reading.thoughts.iter_mut().for_each(clean);
        reading.parts.iter_mut().for_each(|part| each_text(part, &clean));
        reading.media.iter_mut().for_each(|medium| clean(&mut medium.media_type));
    }

    async fn send(&self, call: &ModelCall, terms: &Terms) -> Result<Answer<'_>, Trouble> {
        self.service.ask(Method::POST, &self.calls, self.body(call, terms)).await
    }

    pub(crate) fn body(&self, call: &ModelCall, terms: &Terms) -> Segments {
        let schema = self.memory.schema(call).filter(|_| terms.bind == Bind::Schema);
        Segments::from_body(&self.wire.body(call, terms, schema.map(ProviderSchema::text)))
    }

    /// Handles an error status. A prompt blocked by a content filter is an answer of the service, not a failure.
    /// (S-09)
    async fn refused_or_failed(
        &self,
        answer: Answer<'_>,
        terms: &Terms,
        feed: &mut Feed<'_>,
        reporter: Reporter<'_>,
    ) -> Result<ModelEnd, Fault> {
        let status = answer.status().as_u16();
        if answer.status().is_redirection() {
            return Err(reporter.redirect_fault(status, location(answer.headers())));
        }
        let asked = retry_after(answer.headers(), SystemTime::now());
        let fault = reporter.status(status, asked, &answer.beginning().await);
        self.refusal(status, fault, terms, feed, reporter)
    }

    fn refusal(
        &self,
        status: u16,
        fault: Fault,
        terms: &Terms,
        feed: &mut Feed<'_>,
        reporter: Reporter<'_>,
    ) -> Result<ModelEnd, Fault> {
        let about_the_answer = matches!(status, 400 | 403 | 422);
        let complaint = fault.complaint.as_deref().filter(|_| about_the_answer);
        if complaint.is_some_and(|complaint| complaint.reply.is_some()) {
            feed.sink.decode_mode(terms.bind.decode());
        }
        let Some(finish) = complaint.and_then(|complaint| feed.ending(complaint, reporter)) else {
            return Err(self.with_other_api(status, fault));
        };
        feed.end_text();
        let reading = Reading { finish: Some(finish), ..Reading::default() };
        Ok(self.end(&reading, terms.bind))
    }

    /// Adds the remedy if the service, or its model, has only the other of OpenAI's APIs.
    fn with_other_api(&self, status: u16, fault: Fault) -> Fault {
        let path = self.wire.endpoint().calls.path();
        let says = |told: fn(&Complaint) -> bool| fault.complaint.as_deref().is_some_and(told);
        let remedy = if path.ends_with(OpenAiApi::Chat.path()) {
            let is_meant = says(|complaint| complaint.mentions(&["v1/responses"]));
            is_meant.then_some("Set `api: responses`, or `--api responses`: the model needs that API")
        } else {
            let is_unknown = matches!(status, 404 | 405) && !says(Complaint::is_about_model);
            let is_meant = is_unknown && path.ends_with(OpenAiApi::Responses.path());
            is_meant.then_some("Set `api: chat`, or `--api chat`, if the service has only that API")
        };
        if remedy.is_some() { fault.with_remedy(remedy) } else { fault }
    }

    /// Reads an answer until the service reports its end or the body ends. The model must begin before `first`.
    async fn read(
        &self,
        reading: &mut Reading,
        mut answer: Answer<'_>,
        first: Instant,
        deadline: Instant,
        feed: &mut Feed<'_>,
        reporter: Reporter<'_>,
    ) -> Result<(), Fault> {
        let unreadable = |why| unreadable(why, reporter);
        let draws = reporter.call.is_some_and(|call| call.wants_media);
        let longest = if draws { MAX_BODY_WITH_MEDIA_LENGTH } else { MAX_BODY_LENGTH };
        let mut frames = self.frames(answer.headers(), longest).map_err(unreadable)?;
        let mut measure = Measure::new(longest);
        let mut read_at_once = 0;
        loop {
            let begun = feed.begun || reading.thinks || reading.is_finished();
            let until = if begun { deadline.min(Instant::now() + patience(reading)) } else { first };
            let piece = match timeout_at(until, answer.next(usize::MAX)).await {
                Ok(Ok(piece)) => piece,
                // An answer reported as complete stays complete, however the connection ends.
                Ok(Err(_)) | Err(_) if reading.is_finished() => return Ok(()),
                Ok(Err(trouble)) => return Err(reporter.transport(&trouble)),
                Err(_) => return Err(too_late()),
            };
            if reading.closed {
                return Ok(());
            }
            let mut rest = piece.as_deref().unwrap_or_default();
            measure.count_received(rest.len());
            while let Some(frame) = frames.next(&mut rest).map_err(unreadable)? {
                self.frame(&frame, reading, feed, reporter)?;
                read_at_once += 1;
                if read_at_once == FRAMES_AT_ONCE {
                    read_at_once = 0;
                    tokio::task::yield_now().await;
                }
            }
            let said = reading.output_bytes(feed.length);
            measure.check(said, frames.is_document()).map_err(|excess| too_long(excess, reporter))?;
            if piece.is_none() {
                reading.is_document = frames.is_document();
                if let Some(frame) = frames.last() {
                    self.frame(&frame, reading, feed, reporter)?;
                }
                return Ok(());
            }
        }
    }

    /// Creates a decoder for the body of an answer. One event may be as long as the whole answer.
    fn frames(&self, headers: &HeaderMap, longest: usize) -> Result<Frames, Unreadable> {
        let header =
            |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let packing = header(CONTENT_ENCODING);
        if !packing.is_empty() && !packing.eq_ignore_ascii_case("identity") {
            return Err(Unreadable::Packed);
        }
        Frames::new(header(CONTENT_TYPE), self.wire.shape(), longest)
    }

    fn frame(
        &self,
        frame: &str,
        reading: &mut Reading,
        feed: &mut Feed<'_>,
        reporter: Reporter<'_>,
    ) -> Result<(), Fault> {
        if frame.trim() == "[DONE]" {
            reading.closed = true;
        }
        if reading.closed {
            return Ok(());
        }
        let mended;
        let value = match serde_json::from_str(frame) {
            Ok(value) => value,
            Err(error) => {
                mended = surrogates::repair_frame(frame).ok_or_else(|| not_json(&error, reporter))?;
                let value = serde_json::from_str(&mended).map_err(|_| not_json(&error, reporter))?;
                feed.seam.get_or_insert_default();
                reading.has_halves = true;
                value
            }
        };
        // A whole answer may be a list of what would have been frames; then each item reports whether it is the last.
        let values = match &value {
            FrameValue::List(values) => {
                reading.is_document = false;
                values.as_slice()
            }
            value => std::slice::from_ref(value),
        };
        for value in values {
            let thought = thoughts_in(value);
            reading.thinks |= thought > 0;
            reading.thought = reading.thought.saturating_add(thought);
            let read = self.wire.read(value, reading, &mut |text| feed.text(text));
            reading.has_failed |= read.is_err();
            match Complaint::from_frame(value).map_or(read, Err) {
                Ok(()) => {}
                Err(complaint) => match feed.ending(&complaint, reporter) {
                    Some(finish) => reading.finish = Some(finish),
                    None => return Err(reporter.frame(complaint)),
                },
            }
        }
        if reading.is_document && !reading.is_finished() {
            return Err(no_answer(frame, reporter));
        }
        Ok(())
    }

    fn end(&self, reading: &Reading, bind: Bind) -> ModelEnd {
        let model = reading.model.as_deref().unwrap_or(&self.wire.endpoint().model);
        let mut end = ModelEnd::complete(model, bind.decode());
        end.finish = match reading.finish() {
            // Content filters send free text, and a gateway may have added more to it.
            Finish::Refused(why) => Finish::Refused(self.redactor.hide(&why)),
            other => other,
        };
        end.usage = reading.usage;
        end
    }
}

/// Applies a change to every text in a value, names of members excepted.
fn each_text(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| each_text(member, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the target of a redirect.
pub(crate) fn location(headers: &HeaderMap) -> Option<&str> {
    headers.get(LOCATION)?.to_str().ok()
}

/// Returns the moment when a duration that starts now has elapsed.
fn deadline_after(time: Duration) -> Instant {
    // A duration beyond the range of the clock is no limit; a day is used instead.
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_hours(24))
}

fn patience(reading: &Reading) -> Duration {
    if reading.closed {
        FAREWELL
    } else if reading.is_finished() {
        AFTERTHOUGHT
    } else if reading.reasons {
        REASONING
    } else {
        SILENCE
    }
}
