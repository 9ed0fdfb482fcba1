//! Ollama's native chat API, in JSON lines. Thinking is skipped. A prompt that does not fit becomes an error: by
//! default, Ollama would truncate it silently.

use cognitive_contract::media::{AcceptedForm, Category, MediaType};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::{ToolCall, ToolReply};
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::{functions, object, offers, rounds};
use crate::llm::frame_value::FrameValue;
use crate::llm::media;
use crate::llm::terms::{Bind, OptionalFeature, Terms};
use crate::llm::{
    Endpoint, Reading, UnreadableCount, Wire, at, messages_with_instructions, names_in, text_of, thinking,
    token_count,
};

/// The default port of Ollama.
const PORT: u16 = 11_434;
/// Some of its engines use 32-bit seeds.
const SEED: u64 = 0x7FFF_FFFF;

/// The longest image side. No model that Ollama runs uses more than a part of it.
const MAX_SIDE_LENGTH: u32 = 2048;

/// An Ollama server.
#[derive(Debug)]
pub(crate) struct Ollama {
    pub(crate) endpoint: Endpoint,
}

impl Wire for Ollama {
    fn target(&self) -> Option<SchemaTarget> {
        Some(SchemaTarget::Ollama)
    }

    fn ladder(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Json, Bind::Prompt]
    }

    fn unsupported_features(&self) -> &'static [OptionalFeature] {
        &[
            OptionalFeature::StreamUsage,
            OptionalFeature::OldTokenName,
            OptionalFeature::TokenLimit,
            OptionalFeature::ThinkingBudget,
        ]
    }

    /// Its grammar blocks tool calls, and Ollama does not report this.
    fn unsupported_with_tools(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Json]
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a> {
        let mut messages = messages_with_instructions(call);
        attach(&mut messages, call);
        messages.extend(rounds(call, reply));
        let mut body = vec![
            ("model", Node::from(&self.endpoint.model)),
            ("messages", Node::List(messages)),
            ("stream", terms.keeps(OptionalFeature::Stream).into()),
            // Disables silent truncation of the prompt and of the generated text.
            ("truncate", false.into()),
            ("shift", false.into()),
            ("options", options(call, terms)),
        ];
        match (terms.bind, schema) {
            (Bind::Schema, Some(schema)) => body.push(("format", Node::Json(schema))),
            (Bind::Json, _) => body.push(("format", "json".into())),
            (Bind::Schema, None) | (Bind::Prompt, _) => {}
        }
        if let Some(tokens) = thinking::thinking_budget(call, terms) {
            body.push(("think", (tokens > 0).into()));
        }
        if offers(call) && terms.keeps(OptionalFeature::Tools) {
            body.push(("tools", functions(call)));
        }
        Node::Object(body)
    }

    /// Returns the outcome; the API has a switch but no budget.
    fn thinking_outcome(&self, tokens: u32, _: &Terms) -> ThoughtOutcome {
        if tokens == 0 { ThoughtOutcome::Off } else { ThoughtOutcome::Effort }
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        // Some of its engines read no other types.
        let types = &[MediaType::Jpeg, MediaType::Png];
        (category == Category::Image)
            .then(|| AcceptedForm::from_types(types).with_longest_side(MAX_SIDE_LENGTH))
    }

    fn understands(&self, category: Category) -> bool {
        category == Category::Image
    }

    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("model"));
        text(text_of(frame, "/message/content").unwrap_or_default());
        for call in at(frame, "/message/tool_calls").into_iter().flat_map(FrameValue::as_list) {
            let name = text_of(call, "/function/name").unwrap_or_default();
            let id = text_of(call, "/id").unwrap_or_default();
            reading.calls().add_complete(id, name, at(call, "/function/arguments"));
        }
        // A document cannot continue, whatever its `done` member is.
        let is_over = reading.is_document && frame.get("message").is_some_and(FrameValue::is_object);
        if !is_over && frame.get("done").and_then(FrameValue::as_bool) != Some(true) {
            return Ok(());
        }
        reading.closed = true;
        reading.finish = Some(match text_of(frame, "/done_reason") {
            Some("length") => Finish::CutOff,
            _ => Finish::Complete,
        });
        reading.usage = read_usage(frame).ok().flatten();
        Ok(())
    }

    fn turn(&self, reading: &Reading, said: &str) -> Value {
        let call = |call: &ToolCall| json!({ "function": { "name": call.name, "arguments": object(call) } });
        let calls: Vec<Value> = reading.calls.iter().map(call).collect();
        json!({ "role": "assistant", "content": said, "tool_calls": calls })
    }

    /// Returns the model names. A name without a tag means `latest`, so both forms are returned.
    fn names(&self, list: &Value) -> Vec<String> {
        let mut names = names_in(list, "models", "name");
        let short: Vec<String> =
            names.iter().filter_map(|name| name.strip_suffix(":latest")).map(str::to_owned).collect();
        names.extend(short);
        names
    }
}

/// Reads the token counts. The server leaves out the input count if the whole prompt was in its cache.
fn read_usage(frame: &FrameValue<'_>) -> Result<Option<Usage>, UnreadableCount> {
    let read = token_count(frame, "prompt_eval_count")?.unwrap_or(0);
    Ok(token_count(frame, "eval_count")?.map(|written| Usage::new(read, written)))
}

/// Builds the message with a tool result.
fn reply<'a>(call: &'a ToolCall, told: &'a ToolReply) -> Node<'a> {
    let (name, content) = (Node::from(&call.name), Node::from(&told.content));
    Node::object([("role", "tool".into()), ("tool_name", name), ("content", content)])
}

/// Attaches images to the input. They are sent in order, separate from the text, so the text must number them.
fn attach<'a>(messages: &mut [Node<'a>], call: &'a ModelCall) {
    if call.media.is_empty() {
        return;
    }
    let numbers: Vec<String> = call.media.iter().map(|medium| format!("Image {}", medium.index)).collect();
    let text = format!("Attached, in this order: {}.\n\n{}", numbers.join(", "), call.input);
    let images = Node::List(call.media.iter().map(media::base64).collect());
    media::set(media::input_of(messages, 1, call), "content", Value::String(text).into());
    media::set(media::input_of(messages, 1, call), "images", images);
}

fn options(call: &ModelCall, terms: &Terms) -> Node<'static> {
    let mut options = Vec::new();
    if terms.keeps(OptionalFeature::Temperature) {
        options.push(("temperature", call.temperature.into()));
    }
    if let Some(seed) = call.seed.filter(|_| terms.keeps(OptionalFeature::Seed)) {
        options.push(("seed", (seed & SEED).into()));
    }
    if let Some(limit) = thinking::limit(call, terms) {
        options.push(("num_predict", limit.into()));
    }
    Node::Object(options)
}

/// Converts `OLLAMA_HOST` to a base URL. The variable is meant for the server: it may lack the scheme, host or port,
/// and it may be the wildcard address.
pub(crate) fn base_of_host(host: &str) -> String {
    let host = host.trim();
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let place = if place.starts_with(':') { format!("127.0.0.1{place}") } else { place.to_owned() };
    let place = place.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = match (has_port, host.contains("://")) {
        // With a scheme, the default port of the scheme applies.
        (true, _) | (false, true) => String::new(),
        (false, false) => format!(":{PORT}"),
    };
    format!("{scheme}://{place}{port}/{path}").trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_as_people_write_them() {
        for (host, base) in [
            ("127.0.0.1", "http://127.0.0.1:11434"),
            ("0.0.0.0:8000", "http://127.0.0.1:8000"),
            (":8000", "http://127.0.0.1:8000"),
            ("gpu.local", "http://gpu.local:11434"),
            ("http://gpu.local:1/", "http://gpu.local:1"),
            ("https://ollama.example/sub/", "https://ollama.example/sub"),
            ("[::]:5", "http://[::1]:5"),
            ("[::1]", "http://[::1]:11434"),
        ] {
            assert_eq!(base_of_host(host), base, "{host}");
        }
    }
}
