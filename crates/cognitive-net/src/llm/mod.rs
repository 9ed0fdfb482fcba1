//! The model providers: what a service is asked and how its answer is read, one file per service; `remote` is the loop
//! that all of them share. An adapter only translates. It opens no connection, waits for nothing and remembers nothing.

pub(crate) mod anthropic;
mod borrowed;
pub(crate) mod calls;
pub(crate) mod compatible;
mod echo;
mod endings;
pub(crate) mod gemini;
mod halves;
mod measure;
pub(crate) mod media;
pub(crate) mod ollama;
pub(crate) mod openai;
pub(crate) mod remote;
pub(crate) mod segments;
pub(crate) mod terms;
pub(crate) mod thinking;

use cognitive_contract::media::{AcceptedForm, Category, Reported};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_schema::SchemaTarget;
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::borrowed::Node;
use crate::llm::calls::Calls;
use crate::llm::terms::{Bind, Extra, Terms};

/// What is said of a model that does not say why it refuses.
pub(crate) const REFUSED: &str = "the model refused to answer";

/// Which model is asked, and where; the same for every service.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The model that is asked.
    pub(crate) model: String,
    /// Where calls go.
    pub(crate) calls: Url,
    /// Where it lists its models.
    pub(crate) list: Url,
    /// What goes with every request; the key is marked as not to be shown.
    pub(crate) headers: HeaderMap,
}

/// One service's way of being asked.
pub(crate) trait Wire: Send + Sync {
    /// What an answer can be bound to.
    fn target(&self) -> Option<SchemaTarget>;

    /// The bindings that it takes, the tightest first.
    fn ladder(&self) -> &'static [Bind];

    /// What it is never sent: it is known not to take it, or has no such thing.
    fn without(&self) -> &'static [Extra];

    /// Which model is asked, and where.
    fn endpoint(&self) -> &Endpoint;

    /// How it sends answers.
    fn shape(&self) -> Shape {
        Shape::Events
    }

    /// The request for a call. The schema is there, as JSON text, exactly if the terms bind to one.
    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a>;

    /// What becomes of the wish for a thought of so many tokens, on terms that keep it.
    fn thought(&self, tokens: u32, terms: &Terms) -> ThoughtOutcome;

    /// In which form it can be sent a kind of media; `None` if it has no words for it.
    fn form(&self, category: Category) -> Option<AcceptedForm>;

    /// Whether its model is taken to understand a kind of media unless its user says otherwise.
    fn sees(&self, category: Category) -> bool;

    /// Whether the model makes such media beside its text.
    fn makes(&self, _: Category) -> bool {
        false
    }

    /// Reads one frame of an answer, or a whole answer: services that ignore the wish for a stream send the same
    /// members in one piece. Text goes to `text`.
    fn read(&self, frame: &Value, reading: &mut Reading, text: &mut dyn FnMut(&str))
    -> Result<(), Complaint>;

    /// The bindings that it does not take beside tools; found out for the others by asking.
    fn without_beside_tools(&self) -> &'static [Bind] {
        &[]
    }

    /// The model's turn, to be sent back as it was when the tools that it asks for were called. `said` is its text.
    fn turn(&self, reading: &Reading, said: &str) -> Value;

    /// The names in its list of models.
    fn names(&self, list: &Value) -> Vec<String>;
}

/// What is known of an answer besides its text.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Reading {
    /// The model as the service names it.
    pub(crate) model: Option<String>,
    /// Why it ended; without this the answer is not complete.
    pub(crate) finish: Option<Finish>,
    /// What the model says instead of an answer.
    pub(crate) refusal: String,
    /// Whether the model thinks aloud. That is no answer, but the model is at work.
    pub(crate) thinks: bool,
    /// How many bytes of thoughts there were.
    pub(crate) thought: usize,
    /// Whether some frame held half a character, for which something stands in until all is there.
    pub(crate) has_halves: bool,
    /// Tokens.
    pub(crate) usage: Option<Usage>,
    /// Media beside the text.
    pub(crate) media: Vec<Reported>,
    /// The service said that nothing more will come.
    pub(crate) closed: bool,
    /// Whether the body is one document, whose end is the end of the answer.
    pub(crate) is_document: bool,
    /// What a service has said that repeats all of it in every frame.
    pub(crate) sum: String,
    /// The tools that the model wants called.
    pub(crate) calls: Calls,
    /// Parts of the turn that have to be sent back with it, in the service's words. Kept only if tools are offered.
    pub(crate) parts: Vec<Value>,
    /// Whether they are.
    pub(crate) keeps_parts: bool,
    /// Thoughts that have to be sent back, where a service has a member for them.
    pub(crate) thoughts: Option<String>,
}

impl Reading {
    /// Whether the service said that the answer is complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.closed || self.finish.is_some()
    }

    /// Notes the model's name. Every frame repeats it.
    pub(crate) fn name_model(&mut self, name: Option<&Value>) {
        let name = name.and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && self.model.as_deref() != Some(name) {
            self.model = Some(name.to_owned());
        }
    }

    /// Notes why the model stopped. A document without a reason is over all the same: there can be no more of it.
    pub(crate) fn stopped(&mut self, reason: Option<Finish>) {
        self.finish = reason.or_else(|| self.finish.take()).or(self.is_document.then_some(Finish::Complete));
    }

    /// Takes note that the model asks for a tool: it is at work, although it says nothing.
    pub(crate) fn calls(&mut self) -> &mut Calls {
        self.thinks = true;
        &mut self.calls
    }

    /// How many bytes the model has said, when so many of them were text: what it thinks, asks for and draws counts too.
    pub(crate) fn said(&self, text: usize) -> usize {
        let drawn = self.media.iter().map(|medium| medium.base64.len());
        let rest = [self.thought, self.calls.bytes(), self.refusal.len()].into_iter().chain(drawn);
        rest.fold(text, usize::saturating_add)
    }

    /// Keeps a part of the turn. Text that goes on where text was is one part with it.
    pub(crate) fn keep_part(&mut self, part: Value) {
        let has_room = self.parts.len() < MAX_PARTS;
        let last = self.parts.last_mut().filter(|last| is_text_alone(last) && is_text_alone(&part));
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(so_far)) => so_far.push_str(text_of(&part, "/text").unwrap_or_default()),
            _ if has_room => self.parts.push(part),
            _ => {}
        }
    }

    /// Puts the characters together that came in halves.
    pub(crate) fn settle_halves(&mut self) {
        if !std::mem::take(&mut self.has_halves) {
            return;
        }
        self.calls.each_text(halves::settle);
        self.parts.iter_mut().for_each(halves::settle_value);
        for text in self.thoughts.iter_mut().chain([&mut self.refusal]) {
            halves::settle(text);
        }
    }

    /// Why it ended. A refusal in words says more than the code for one.
    pub(crate) fn finish(&self) -> Finish {
        match (&self.finish, self.refusal.is_empty()) {
            (_, false) => Finish::Refused(self.refusal.clone()),
            (Some(finish), true) => finish.clone(),
            (None, true) => Finish::Complete,
        }
    }
}

/// What is said before the answer, without the instructions: each example as two turns, then the input. The flag says
/// whether the model is the speaker.
pub(crate) fn turns(call: &ModelCall) -> impl Iterator<Item = (bool, &str)> {
    let examples = call.examples.iter();
    let examples =
        examples.flat_map(|example| [(false, example.input.as_str()), (true, example.answer.as_str())]);
    examples.chain([(false, call.input.as_str())])
}

/// The turns in the form that most services take: `role` and `content`.
pub(crate) fn messages(call: &ModelCall) -> Vec<Node<'_>> {
    let role = |is_model: bool| if is_model { "assistant" } else { "user" };
    turns(call).map(|(is_model, text)| message(role(is_model), text)).collect()
}

/// The same with the instructions as the first of them.
pub(crate) fn messages_with_instructions(call: &ModelCall) -> Vec<Node<'_>> {
    let instructions = Node::Json(call.instructions.json());
    let instructions = [Node::object([("role", "system".into()), ("content", instructions)])];
    instructions.into_iter().chain(messages(call)).collect()
}

fn message<'a>(role: &'static str, text: &'a str) -> Node<'a> {
    Node::object([("role", role.into()), ("content", text.into())])
}

/// The most parts of one turn that are kept to be sent back. No model needs a tenth of them.
const MAX_PARTS: usize = 4096;

/// Whether a part has a text and nothing else, not even the name of its kind: parts that have one are numbered.
fn is_text_alone(part: &Value) -> bool {
    part.as_object().is_some_and(|members| members.len() == 1 && members.contains_key("text"))
}

/// Where services send thoughts: chat completions under two names, Anthropic, Ollama. Gemini sends none unasked.
const THOUGHTS: [(&str, &[&str]); 3] = [
    ("/choices/0/delta", &["reasoning_content", "reasoning"]),
    ("/delta", &["thinking"]),
    ("/message", &["thinking"]),
];

/// How many bytes of thoughts a frame carries.
pub(crate) fn thoughts_in(frame: &Value) -> usize {
    let thoughts = THOUGHTS.iter().filter_map(|(place, names)| Some((at(frame, place)?, names)));
    let texts = thoughts.flat_map(|(said, names)| names.iter().filter_map(|name| said.get(*name)?.as_str()));
    texts.map(str::len).sum()
}

/// What stands at a path such as `/choices/0`. The names in our paths need no escapes, so unlike a JSON pointer this
/// allocates nothing; it is asked several times for every frame.
#[expect(
    clippy::manual_pattern_char_comparison,
    reason = "the search for one character is made for long texts; these are short"
)]
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(|letter| letter == '/').skip(1).try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

/// A text member.
pub(crate) fn text_of<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    at(value, path).and_then(Value::as_str)
}

/// A count, zero if it is missing.
pub(crate) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// The candidate that was asked for. Who is told to give several numbers them; nobody was, so the first one counts.
pub(crate) fn first_candidate<'a>(frame: &'a Value, list: &str) -> Option<&'a Value> {
    let candidates = frame.get(list).and_then(Value::as_array).into_iter().flatten();
    let is_first = |candidate: &&Value| candidate.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
    candidates.into_iter().find(is_first)
}

/// The texts at `member` in the list at `list`.
pub(crate) fn names_in(value: &Value, list: &str, member: &str) -> Vec<String> {
    let items = value.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.get(member).and_then(Value::as_str)).map(str::to_owned).collect()
}
