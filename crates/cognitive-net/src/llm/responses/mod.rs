//! The Responses API of OpenAI and compatible services. Nothing is stored at the service: every request carries the
//! whole conversation, and the reasoning of earlier turns goes back in encrypted form.

mod models;
mod reader;

use cognitive_contract::media::{AcceptedForm, Category, MediaPart};
use cognitive_contract::ports::ModelCall;
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::{ToolCall, ToolReply, ToolRound, ToolSpec};
use cognitive_ports::openai_api::OpenAiApi;
use cognitive_schema::SchemaTarget;
use reqwest::Url;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::kind::Kind;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::{declaration, offers};
use crate::llm::frame_value::FrameValue;
use crate::llm::media::{self, Style};
use crate::llm::openai::ChatDialect;
use crate::llm::terms::{Bind, OptionalFeature, Terms};
use crate::llm::{Endpoint, Reading, Wire, messages_with_instructions, names_in, thinking};

/// A service with the Responses API.
#[derive(Debug)]
pub(crate) struct Responses {
    /// The differences of the service in its other API, of which those in schemas, tools and media apply here too.
    pub(crate) dialect: ChatDialect,
    pub(crate) endpoint: Endpoint,
}

/// Returns the API for a model: the configured one, that of a pasted URL, or the one that the model needs.
pub(crate) fn api_for(configured: Option<OpenAiApi>, kind: Kind, base: &Url, model: &str) -> OpenAiApi {
    let path = base.path().trim_end_matches('/');
    let pasted = || OpenAiApi::ALL.into_iter().find(|api| path.ends_with(api.path()));
    // The names of other services and their models say nothing: many serve both APIs, and most only one.
    let needed = || kind == Kind::OpenAi && models::needs_responses(model);
    let known = || if needed() { OpenAiApi::Responses } else { OpenAiApi::Chat };
    configured.or_else(pasted).unwrap_or_else(known)
}

impl Wire for Responses {
    fn target(&self) -> Option<SchemaTarget> {
        self.dialect.target()
    }

    fn ladder(&self) -> &'static [Bind] {
        self.dialect.ladder
    }

    fn unsupported_features(&self) -> &'static [OptionalFeature] {
        &[
            OptionalFeature::Seed,
            OptionalFeature::StreamUsage,
            OptionalFeature::OldTokenName,
            OptionalFeature::TokenLimit,
            OptionalFeature::ThinkingBudget,
        ]
    }

    fn unsupported_with_tools(&self) -> &'static [Bind] {
        self.dialect.alone
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a> {
        let mut body = Vec::with_capacity(12);
        let mut set = |name: &'static str, value: Node<'a>| body.push((name, value));
        set("model", Node::from(&self.endpoint.model));
        // The instructions are part of the input, because JSON mode demands the word there.
        let mut input = messages_with_instructions(call);
        media::attach(&mut input, 1, "content", call, PARTS);
        let keeps_ids = terms.keeps(OptionalFeature::ItemIds);
        input.extend(call.rounds.iter().flat_map(|round| items(round, keeps_ids)));
        set("input", Node::List(input));
        set("store", false.into());
        set("stream", terms.keeps(OptionalFeature::Stream).into());
        if terms.keeps(OptionalFeature::Temperature) {
            set("temperature", call.temperature.into());
        }
        if let Some(limit) = thinking::limit(call, terms) {
            set("max_output_tokens", limit.into());
        }
        if let Some(tokens) = thinking::thinking_budget(call, terms) {
            set("reasoning", Node::object([("effort", thinking::effort(tokens).into())]));
        }
        if offers(call) && terms.keeps(OptionalFeature::Tools) {
            set("tools", Node::List(call.tools.iter().map(|spec| function(spec)).collect()));
            if terms.keeps(OptionalFeature::EncryptedReasoning) {
                set("include", Node::List(vec!["reasoning.encrypted_content".into()]));
            }
        }
        if let Some(format) = format(terms.bind, schema) {
            set("text", Node::object([("format", format)]));
        }
        Node::Object(body)
    }

    fn thinking_outcome(&self, tokens: u32, _: &Terms) -> ThoughtOutcome {
        if tokens == 0 { ThoughtOutcome::Off } else { ThoughtOutcome::Effort }
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        match category {
            Category::Image | Category::Document => self.dialect.form(category),
            Category::Audio | Category::Video => None,
        }
    }

    fn understands(&self, category: Category) -> bool {
        self.dialect.sees.contains(&category)
    }

    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reader::read(frame, reading, text)
    }

    fn turn(&self, reading: &Reading, _: &str) -> Value {
        let mut left: Vec<&ToolCall> = reading.calls.iter().collect();
        let mut items = Vec::with_capacity(reading.parts.len());
        for part in &reading.parts {
            match word(part, "type").unwrap_or_default() {
                "function_call" => {
                    let id = word(part, "call_id").unwrap_or_default();
                    if let Some(place) = left.iter().position(|call| call.id == id) {
                        items.push(call_item(part, left.remove(place)));
                    }
                }
                // The service does not know the content of an item that it has not stored.
                "reasoning" if !has_content(part) => {}
                _ => items.push(part.clone()),
            }
        }
        let bare = json!({ "type": "function_call" });
        items.extend(left.into_iter().map(|call| call_item(&bare, call)));
        Value::Array(items)
    }

    fn names(&self, list: &Value) -> Vec<String> {
        names_in(list, "data", "id")
    }
}

/// The format of a turn with parts.
const PARTS: Style = Style { text, part };

fn text(text: Node<'_>) -> Node<'_> {
    Node::object([("type", "input_text".into()), ("text", text)])
}

fn part(medium: &MediaPart) -> Node<'_> {
    match medium.category() {
        Category::Document => {
            let name = Value::String(format!("document-{}.pdf", medium.index));
            let data = media::data_url(medium);
            Node::object([("type", "input_file".into()), ("filename", name.into()), ("file_data", data)])
        }
        // `form` refuses sounds and videos.
        Category::Image | Category::Audio | Category::Video => {
            let url = media::data_url(medium);
            Node::object([("type", "input_image".into()), ("image_url", url), ("detail", "auto".into())])
        }
    }
}

/// Builds a tool declaration. Strict arguments would demand schemas in a dialect that tools need not follow.
fn function(spec: &ToolSpec) -> Node<'_> {
    let mut function = declaration(spec, "parameters");
    if let Node::Object(members) = &mut function {
        members.insert(0, ("type", "function".into()));
        members.push(("strict", false.into()));
    }
    function
}

/// Builds the items of a turn with calls, followed by the results.
fn items(round: &ToolRound, keeps_ids: bool) -> impl Iterator<Item = Node<'_>> {
    let turn = round.turn.as_array().into_iter().flatten();
    let turn = turn.map(move |item| if keeps_ids { Node::from(item) } else { without_id(item).into() });
    turn.chain(round.calls.iter().map(result))
}

fn result((call, told): &(ToolCall, ToolReply)) -> Node<'_> {
    let (id, output) = (Node::from(&call.id), Node::from(&told.content));
    Node::object([("type", "function_call_output".into()), ("call_id", id), ("output", output)])
}

fn without_id(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.shift_remove("id");
    }
    item
}

/// Returns the item of a call, with the call as it was stored.
fn call_item(item: &Value, call: &ToolCall) -> Value {
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.insert("call_id".to_owned(), json!(call.id));
        members.insert("name".to_owned(), json!(call.name));
        members.insert("arguments".to_owned(), json!(call.arguments));
    }
    item
}

/// Returns a member that is a text.
fn word<'v>(item: &'v Value, name: &str) -> Option<&'v str> {
    item.get(name).and_then(Value::as_str)
}

/// Returns whether a reasoning item can be sent back: encrypted, or as the text that some servers send.
fn has_content(item: &Value) -> bool {
    let is_text = |content: &Value| content.as_array().is_some_and(|parts| !parts.is_empty());
    word(item, "encrypted_content").is_some() || item.get("content").is_some_and(is_text)
}

fn format(bind: Bind, schema: Option<&str>) -> Option<Node<'_>> {
    match (bind, schema) {
        (Bind::Schema, Some(schema)) => Some(Node::object([
            ("type", "json_schema".into()),
            ("name", "answer".into()),
            ("schema", Node::Json(schema)),
            ("strict", true.into()),
        ])),
        (Bind::Schema, None) | (Bind::Prompt, _) => None,
        (Bind::Json, _) => Some(Node::object([("type", "json_object".into())])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_the_configured_one_that_of_a_pasted_address_or_the_needed_one() {
        use OpenAiApi::{Chat, Responses};
        let (own, pasted) = ("https://api.openai.com/v1", "https://h/v1/responses/");
        for (configured, kind, base, model, expected) in [
            (None, Kind::OpenAi, own, "gpt-5.4-mini", Chat),
            (None, Kind::OpenAi, own, "gpt-5.6-luna", Responses),
            (None, Kind::Compatible, own, "gpt-5.6-luna", Chat),
            (None, Kind::OpenRouter, own, "openai/gpt-5.6-luna", Chat),
            (None, Kind::Compatible, pasted, "m", Responses),
            (None, Kind::OpenAi, "https://h/v1/chat/completions", "gpt-6-sol", Chat),
            (Some(Chat), Kind::OpenAi, own, "gpt-6-sol", Chat),
            (Some(Responses), Kind::Vllm, own, "m", Responses),
            (Some(Chat), Kind::OpenAi, pasted, "m", Chat),
        ] {
            let found = api_for(configured, kind, &Url::parse(base).unwrap(), model);
            assert_eq!(found, expected, "{configured:?} {kind} {base} {model}");
        }
    }
}
