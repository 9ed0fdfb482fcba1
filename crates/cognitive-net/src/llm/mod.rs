//! The model providers: requests and answer parsing, one file per service. `remote` is the loop shared by all of
//! them. An adapter only translates: it opens no connection, never waits and has no state.

pub(crate) mod anthropic;
mod borrowed_body;
pub(crate) mod calls;
pub(crate) mod compatible_services;
mod echo;
mod endings;
pub(crate) mod frame_value;
pub(crate) mod gemini;
mod measure;
pub(crate) mod media;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod remote;
pub(crate) mod responses;
pub(crate) mod segments;
mod surrogates;
pub(crate) mod terms;
pub(crate) mod thinking;

use cognitive_contract::media::{AcceptedForm, Category, ReportedMedia};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_schema::SchemaTarget;
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::Calls;
use crate::llm::frame_value::FrameValue;
use crate::llm::terms::{Bind, OptionalFeature, Terms};

/// The message for a refusal without a reason.
pub(crate) const REFUSED: &str = "the model refused to answer";

/// The model and the URLs of a service.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The model.
    pub(crate) model: String,
    /// The URL for calls.
    pub(crate) calls: Url,
    /// The URL of the model list.
    pub(crate) list: Url,
    /// The headers of every request; the key is marked sensitive.
    pub(crate) headers: HeaderMap,
}

/// The API of one service.
pub(crate) trait Wire: Send + Sync {
    /// Returns the schema dialect for bound output; `None` if the service supports no schema.
    fn target(&self) -> Option<SchemaTarget>;

    /// Returns the supported output bindings, strictest first.
    fn ladder(&self) -> &'static [Bind];

    /// Returns the features that are never sent, because the service does not support them.
    fn unsupported_features(&self) -> &'static [OptionalFeature];

    /// Returns the model and the URLs.
    fn endpoint(&self) -> &Endpoint;

    /// Returns the format of its streams.
    fn shape(&self) -> Shape {
        Shape::Events
    }

    /// Builds the request for a call. The schema, as JSON text, is present exactly if the terms bind to one.
    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a>;

    /// Returns the outcome of a thinking budget of `tokens` under terms that keep it.
    fn thinking_outcome(&self, tokens: u32, terms: &Terms) -> ThoughtOutcome;

    /// Returns the accepted form of a media category; `None` if the API cannot carry it.
    fn form(&self, category: Category) -> Option<AcceptedForm>;

    /// Returns whether its model is assumed to understand a media category. The configuration can override this.
    fn understands(&self, category: Category) -> bool;

    /// Returns whether the model can add such media to its text.
    fn makes(&self, _: Category) -> bool {
        false
    }

    /// Reads one frame of a stream, or a whole answer: services that ignore the request to stream send the same
    /// members in one document. Text goes to `text`.
    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint>;

    /// Returns the bindings that are known not to work together with tools. Others are found at run time.
    fn unsupported_with_tools(&self) -> &'static [Bind] {
        &[]
    }

    /// Builds the model's turn, which is sent back unchanged with the tool results. `said` is its text.
    fn turn(&self, reading: &Reading, said: &str) -> Value;

    /// Returns the names in the model list.
    fn names(&self, list: &Value) -> Vec<String>;
}

/// The state of an answer, except its text.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are independent facts")]
pub(crate) struct Reading {
    /// The model name reported by the service.
    pub(crate) model: Option<String>,
    /// The reason for the end; without it the answer is not complete.
    pub(crate) finish: Option<Finish>,
    /// The refusal that the model wrote instead of an answer.
    pub(crate) refusal: String,
    /// Set when thoughts arrived. They are not an answer, but they show that the model is working.
    pub(crate) thinks: bool,
    /// The number of bytes of thoughts.
    pub(crate) thought: usize,
    /// Set while the service reports that the model reasons. It may then be silent until the deadline.
    pub(crate) reasons: bool,
    /// The index of the message that is about the work and not the answer, while it arrives.
    pub(crate) commentary: Option<u64>,
    /// Set if a frame contained half a character, which a placeholder replaces until both halves have arrived.
    pub(crate) has_halves: bool,
    /// The token counts of the whole answer; `None` if the service reported none that can be read.
    pub(crate) usage: Option<Usage>,
    /// The counts of the input from a service that reports them before the answer.
    pub(crate) counted_input: Option<Usage>,
    /// Set if the service has ended the answer with a failure. Its counts are final too.
    pub(crate) has_failed: bool,
    /// The media in addition to the text.
    pub(crate) media: Vec<ReportedMedia>,
    /// Set when the service has closed the stream.
    pub(crate) closed: bool,
    /// Set if the body is one document, whose end is the end of the answer.
    pub(crate) is_document: bool,
    /// The text so far of a service that repeats the whole text, in every frame or at the end.
    pub(crate) sum: String,
    /// The requested tool calls.
    pub(crate) calls: Calls,
    /// The parts of the turn that must be sent back with it, in the service's format. Stored only if tools are
    /// offered.
    pub(crate) parts: Vec<Value>,
    /// Set if parts are stored.
    pub(crate) keeps_parts: bool,
    /// The thoughts that must be sent back, for services with a member for them.
    pub(crate) thoughts: Option<String>,
}

impl Reading {
    /// Returns whether the service has reported that the answer is complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.closed || self.finish.is_some()
    }

    /// Records the model name. Every frame repeats it.
    pub(crate) fn name_model(&mut self, name: Option<&FrameValue<'_>>) {
        let name = name.and_then(FrameValue::as_str).unwrap_or_default();
        if !name.is_empty() && self.model.as_deref() != Some(name) {
            self.model = Some(name.to_owned());
        }
    }

    /// Records the reason for the end. A document without a reason has ended too, because no more can follow.
    pub(crate) fn record_stop(&mut self, reason: Option<Finish>) {
        self.finish = reason.or_else(|| self.finish.take()).or(self.is_document.then_some(Finish::Complete));
    }

    /// Returns the calls and records that the model is working, although it writes no text.
    pub(crate) fn calls(&mut self) -> &mut Calls {
        self.thinks = true;
        &mut self.calls
    }

    /// Returns the counts that hold for the whole answer. An answer that was cut off may have cost more than the
    /// service had counted until then.
    pub(crate) fn final_usage(&self) -> Option<Usage> {
        self.usage.filter(|_| self.is_finished() || self.is_document || self.has_failed)
    }

    /// Returns the number of bytes of model output. In addition to `text` bytes, it counts thoughts, calls, the
    /// refusal and media.
    pub(crate) fn output_bytes(&self, text: usize) -> usize {
        let drawn = self.media.iter().map(|medium| medium.base64.len());
        let rest = [self.thought, self.calls.bytes(), self.refusal.len()].into_iter().chain(drawn);
        rest.fold(text, usize::saturating_add)
    }

    /// Stores a part of the turn. Consecutive text parts are merged.
    pub(crate) fn keep_part(&mut self, part: Value) {
        let has_room = self.parts.len() < MAX_PARTS;
        let last = self.parts.last_mut().filter(|last| is_text_alone(last) && is_text_alone(&part));
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(so_far)) => {
                so_far.push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
            }
            _ if has_room => self.parts.push(part),
            _ => {}
        }
    }

    /// Joins the characters that arrived in halves.
    pub(crate) fn settle_halves(&mut self) {
        if !std::mem::take(&mut self.has_halves) {
            return;
        }
        self.calls.each_text(surrogates::settle);
        self.parts.iter_mut().for_each(surrogates::settle_value);
        for text in self.thoughts.iter_mut().chain([&mut self.refusal]) {
            surrogates::settle(text);
        }
    }

    /// Returns the reason for the end. A written refusal takes precedence over a code.
    pub(crate) fn finish(&self) -> Finish {
        match (&self.finish, self.refusal.is_empty()) {
            (_, false) => Finish::Refused(self.refusal.clone()),
            (Some(finish), true) => finish.clone(),
            (None, true) => Finish::Complete,
        }
    }
}

/// Returns the turns without the instructions: each example as two turns, then the input. The flag is true for turns
/// of the model.
pub(crate) fn turns(call: &ModelCall) -> impl Iterator<Item = (bool, &str)> {
    let examples = call.examples.iter();
    let examples =
        examples.flat_map(|example| [(false, example.input.as_str()), (true, example.answer.as_str())]);
    examples.chain([(false, call.input.as_str())])
}

/// Builds the turns in the shape of most services: `role` and `content`.
pub(crate) fn messages(call: &ModelCall) -> Vec<Node<'_>> {
    let role = |is_model: bool| if is_model { "assistant" } else { "user" };
    turns(call).map(|(is_model, text)| message(role(is_model), text)).collect()
}

/// Builds the turns with the instructions as the first message.
pub(crate) fn messages_with_instructions(call: &ModelCall) -> Vec<Node<'_>> {
    let instructions = Node::Json(call.instructions.json());
    let instructions = [Node::object([("role", "system".into()), ("content", instructions)])];
    instructions.into_iter().chain(messages(call)).collect()
}

fn message<'a>(role: &'static str, text: &'a str) -> Node<'a> {
    Node::object([("role", role.into()), ("content", text.into())])
}

/// The most parts of one turn that are stored. No model needs a tenth of them.
const MAX_PARTS: usize = 4096;

/// Returns whether a part has only a text. Parts with a type member are numbered and must not be merged.
fn is_text_alone(part: &Value) -> bool {
    part.as_object().is_some_and(|members| members.len() == 1 && members.contains_key("text"))
}

/// Returns the number of bytes of thoughts in a frame: of chat completions under two names, of Anthropic and of Ollama.
/// Gemini sends none unless requested.
pub(crate) fn thoughts_in(frame: &FrameValue<'_>) -> usize {
    let bytes = |said: Option<&FrameValue<'_>>, name: &str| {
        said.and_then(|said| said.get(name)?.as_str()).map_or(0, str::len)
    };
    let delta = frame.get("choices").and_then(|choices| choices.first()?.get("delta"));
    bytes(delta, "reasoning_content")
        + bytes(delta, "reasoning")
        + bytes(frame.get("delta"), "thinking")
        + bytes(frame.get("message"), "thinking")
}

/// Returns the value at a path such as `/message/content`.
#[expect(
    clippy::manual_pattern_char_comparison,
    reason = "the search for one character is made for long texts; these are short"
)]
pub(crate) fn at<'v, 'a>(value: &'v FrameValue<'a>, path: &str) -> Option<&'v FrameValue<'a>> {
    path.split(|letter| letter == '/').skip(1).try_fold(value, |value, name| value.get(name))
}

/// Returns a text at a path.
pub(crate) fn text_of<'v>(value: &'v FrameValue<'_>, path: &str) -> Option<&'v str> {
    at(value, path).and_then(FrameValue::as_str)
}

/// Returns a count, zero if it is missing.
pub(crate) fn count(value: &FrameValue<'_>, name: &str) -> u64 {
    value.get(name).and_then(FrameValue::as_u64).unwrap_or(0)
}

/// A token count that is not a whole number, or too large for one.
pub(crate) struct UnreadableCount;

/// Returns a token count; `None` if it is missing or null. A count that cannot be read must not pass for zero, because
/// the call would then cost nothing.
pub(crate) fn token_count(usage: &FrameValue<'_>, name: &str) -> Result<Option<u64>, UnreadableCount> {
    match usage.get(name) {
        None | Some(FrameValue::Null) => Ok(None),
        Some(count) => count.as_u64().map(Some).ok_or(UnreadableCount),
    }
}

/// Returns the first candidate. Requests never ask for several, so other indexes are ignored.
pub(crate) fn first_candidate<'v, 'a>(frame: &'v FrameValue<'a>, list: &str) -> Option<&'v FrameValue<'a>> {
    frame.get(list)?.as_list().iter().find(|candidate| count(candidate, "index") == 0)
}

/// Returns the texts at `member` in the list at `list`.
pub(crate) fn names_in(value: &Value, list: &str, member: &str) -> Vec<String> {
    let items = value.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get(member).and_then(Value::as_str)).map(str::to_owned).collect()
}
