//! The chat completions API of OpenAI and compatible services. A `ChatDialect` holds the differences between them.
//! Reasoning is not part of an answer; it is stored only for services that require it in the next request.

use std::borrow::Cow;

use cognitive_contract::media::{AcceptedForm, Category, MediaPart, MediaType};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::{ToolCall, ToolReply};
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::{functions, offers, rounds};
use crate::llm::frame_value::FrameValue;
use crate::llm::media::{self, Style};
use crate::llm::terms::{Bind, OptionalFeature, Terms};
use crate::llm::thinking::ThinkingWords;
use crate::llm::{
    Endpoint, Reading, UnreadableCount, Wire, count, first_candidate, messages_with_instructions, names_in,
    text_of, thinking, token_count,
};

/// The differences of one service from the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChatDialect {
    /// The schema dialect for `response_format`.
    pub(crate) target: SchemaTarget,
    /// The supported values of `response_format`, strictest first.
    pub(crate) ladder: &'static [Bind],
    /// The features that are known to be unsupported.
    pub(crate) without: &'static [OptionalFeature],
    /// The name of the seed member.
    pub(crate) seed: &'static str,
    /// The members that control thinking.
    pub(crate) thinking: ThinkingWords,
    /// Switches that must be set to true.
    pub(crate) switches: &'static [&'static str],
    /// The bindings that block tool calls, or that the service refuses together with tools.
    pub(crate) alone: &'static [Bind],
    /// The media categories that its models are assumed to understand.
    pub(crate) sees: &'static [Category],
    /// The accepted image types.
    pub(crate) images: &'static [MediaType],
    /// The largest image, in bytes.
    pub(crate) largest_image: u64,
}

impl ChatDialect {
    /// Returns the schema dialect for bound output.
    pub(crate) fn target(&self) -> Option<SchemaTarget> {
        self.ladder.contains(&Bind::Schema).then_some(self.target)
    }

    /// Returns the accepted form of a media category.
    pub(crate) fn form(&self, category: Category) -> Option<AcceptedForm> {
        match category {
            Category::Image => Some(media::images(self.images, MAX_SIDE_LENGTH, self.largest_image)),
            Category::Audio => Some(AcceptedForm::from_types(&[MediaType::Wav, MediaType::Mp3])),
            Category::Document => Some(media::pdf(MAX_PDF_SIZE)),
            Category::Video => None,
        }
    }
}

/// `json_schema`, `json_object`, nothing.
pub(crate) const EVERYTHING: &[Bind] = &[Bind::Schema, Bind::Json, Bind::Prompt];

/// OpenAI itself.
pub(crate) const OPENAI: ChatDialect = ChatDialect {
    target: SchemaTarget::OpenAi,
    ladder: EVERYTHING,
    without: &[OptionalFeature::OldTokenName, OptionalFeature::ThinkingBudget],
    seed: "seed",
    thinking: ThinkingWords::Effort,
    switches: &[],
    alone: &[],
    sees: &[Category::Image, Category::Document],
    images: media::IMAGES_AND_GIF,
    largest_image: 20 << 20,
};

/// The service scales larger images down to this side length.
const MAX_SIDE_LENGTH: u32 = 2048;
/// In megabytes: the content of 50 MB of base64.
const MAX_PDF_SIZE: u64 = 35;

/// A service with the chat completions API.
#[derive(Debug)]
pub(crate) struct OpenAi {
    pub(crate) dialect: ChatDialect,
    pub(crate) endpoint: Endpoint,
}

impl Wire for OpenAi {
    fn target(&self) -> Option<SchemaTarget> {
        self.dialect.target()
    }

    fn ladder(&self) -> &'static [Bind] {
        self.dialect.ladder
    }

    fn unsupported_features(&self) -> &'static [OptionalFeature] {
        self.dialect.without
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
        let mut messages = messages_with_instructions(call);
        media::attach(&mut messages, 1, "content", call, PARTS);
        messages.extend(rounds(call, reply));
        set("messages", Node::List(messages));
        let streams = terms.keeps(OptionalFeature::Stream);
        set("stream", streams.into());
        if streams && terms.keeps(OptionalFeature::StreamUsage) {
            set("stream_options", Node::object([("include_usage", true.into())]));
        }
        if terms.keeps(OptionalFeature::Temperature) {
            set("temperature", call.temperature.into());
        }
        if let Some(seed) = call.seed.filter(|_| terms.keeps(OptionalFeature::Seed)) {
            set(self.dialect.seed, (seed & SIGNED).into());
        }
        let takes_limit = call.keeps_limit || terms.keeps(OptionalFeature::TokenLimit);
        if let Some(limit) = thinking::limit(call, terms).filter(|_| takes_limit) {
            let old = terms.keeps(OptionalFeature::OldTokenName);
            set(if old { "max_tokens" } else { "max_completion_tokens" }, limit.into());
        }
        if let Some(tokens) = thinking::thinking_budget(call, terms) {
            for (name, value) in self.dialect.thinking.members(tokens) {
                set(name, value.into());
            }
        }
        for switch in self.dialect.switches {
            set(switch, true.into());
        }
        if call.wants_media && media::draws(&self.endpoint.model) {
            set("modalities", json!(["image", "text"]).into());
        }
        if offers(call) && terms.keeps(OptionalFeature::Tools) {
            set("tools", functions(call));
        }
        if let Some(format) = format(terms.bind, schema) {
            set("response_format", format);
        }
        Node::Object(body)
    }

    fn thinking_outcome(&self, tokens: u32, _: &Terms) -> ThoughtOutcome {
        self.dialect.thinking.outcome(tokens)
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        self.dialect.form(category)
    }

    fn makes(&self, category: Category) -> bool {
        category == Category::Image && media::draws(&self.endpoint.model)
    }

    fn understands(&self, category: Category) -> bool {
        // Audio models are recognised by their name.
        let listens = category == Category::Audio && self.endpoint.model.contains("audio");
        listens || self.dialect.sees.contains(&category)
    }

    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("model"));
        // Groq reports streamed counts in a separate member.
        let usage = frame.get("usage").or_else(|| frame.get("x_groq")?.get("usage"));
        if let Some(counts) = usage.filter(|usage| usage.is_object()) {
            reading.usage = read_usage(counts).ok().flatten();
        }
        let Some(choice) = first_candidate(frame, "choices") else { return Ok(()) };
        // Some services send the accumulated text next to each delta, or an empty delta next to a whole answer.
        let [delta, message] =
            ["delta", "message"].map(|name| choice.get(name).filter(|said| said.is_object()));
        let pieces = if reading.is_document { None } else { delta };
        if let Some(said) = pieces.or(message).or(delta) {
            let mut refusal = String::new();
            let (piece, thought) = match said.get("content") {
                Some(FrameValue::Text(piece)) => (Cow::Borrowed(&**piece), None),
                content => {
                    let mut piece = String::new();
                    let thought = read_content(content, &mut piece, &mut refusal);
                    (Cow::Owned(piece), thought)
                }
            };
            reading.thinks |= thought.is_some();
            reading.thought = reading.thought.saturating_add(thought.unwrap_or_default());
            text(if pieces.is_some() { &piece } else { new_part(&piece, &mut reading.sum) });
            reading.refusal.push_str(&refusal);
            reading.refusal.push_str(said.get("refusal").and_then(FrameValue::as_str).unwrap_or_default());
            read_calls(said, reading);
            media::note_images(said, reading);
        }
        let reason =
            choice.get("finish_reason").and_then(FrameValue::as_str).filter(|reason| !reason.is_empty());
        reading.record_stop(reason.map(finish).transpose()?);
        Ok(())
    }

    fn turn(&self, reading: &Reading, said: &str) -> Value {
        let call = |call: &ToolCall| {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        };
        let calls: Vec<Value> = reading.calls.iter().map(call).collect();
        let mut turn = json!({ "role": "assistant", "content": said, "tool_calls": calls });
        if let (Some(thoughts), Some(turn)) = (&reading.thoughts, turn.as_object_mut()) {
            turn.insert("reasoning_content".to_owned(), json!(thoughts));
        }
        turn
    }

    fn names(&self, list: &Value) -> Vec<String> {
        names_in(list, "data", "id")
    }
}

/// The format of a turn with parts.
const PARTS: Style = Style { text: media::typed_text, part };

fn part(medium: &MediaPart) -> Node<'_> {
    let (kind, content) = match medium.category() {
        // The API has no video part, and `form` refuses videos.
        Category::Image | Category::Video => ("image_url", Node::object([("url", media::data_url(medium))])),
        Category::Audio => {
            let format = medium.media_type.extension();
            ("input_audio", Node::object([("data", media::base64(medium)), ("format", format.into())]))
        }
        Category::Document => {
            let name = Value::String(format!("document-{}.pdf", medium.index));
            ("file", Node::object([("filename", name.into()), ("file_data", media::data_url(medium))]))
        }
    };
    Node::object([("type", kind.into()), (kind, content)])
}

/// Appends the text of a message: a string, or a list of parts, some of them thoughts. Returns the number of bytes of
/// thoughts, if any.
fn read_content(content: Option<&FrameValue<'_>>, text: &mut String, refusal: &mut String) -> Option<usize> {
    match content {
        Some(FrameValue::Text(said)) => text.push_str(said),
        Some(FrameValue::List(parts)) => {
            let thoughts = parts.iter().filter_map(|part| read_content(Some(part), text, refusal));
            return thoughts.reduce(usize::saturating_add);
        }
        Some(part @ FrameValue::Object(_)) => match text_of(part, "/type").unwrap_or("text") {
            "text" | "output_text" => text.push_str(text_of(part, "/text").unwrap_or_default()),
            "refusal" => refusal.push_str(text_of(part, "/refusal").unwrap_or_default()),
            // Thoughts, references and unknown parts are not part of an answer, but they show that the model is
            // working.
            _ => return Some(part.to_string().len()),
        },
        _ => {}
    }
    None
}

/// Returns the new part of a message, if every message repeats the text before it.
fn new_part<'m>(message: &'m str, so_far: &mut String) -> &'m str {
    let new = message.strip_prefix(so_far.as_str()).unwrap_or(message);
    so_far.push_str(new);
    new
}

/// Reads the calls of a delta or a message, and the thoughts that some services require in the next request.
fn read_calls(said: &FrameValue<'_>, reading: &mut Reading) {
    if let Some(thoughts) = said.get("reasoning_content").filter(|_| reading.keeps_parts) {
        let so_far = reading.thoughts.get_or_insert_default();
        so_far.push_str(thoughts.as_str().unwrap_or_default());
    }
    let calls = said.get("tool_calls").into_iter().flat_map(FrameValue::as_list);
    for (place, call) in calls.enumerate() {
        let text = |path: &str| text_of(call, path).unwrap_or_default();
        // In a whole answer calls have no index.
        let index = call.get("index").and_then(FrameValue::as_u64).unwrap_or(place as u64);
        let (name, arguments) = (text("/function/name"), text("/function/arguments"));
        reading.calls().piece(index, text("/id"), name, arguments);
    }
    // The older form of a call. Some services send it empty with every answer.
    if let Some(name) = text_of(said, "/function_call/name").filter(|name| !name.is_empty()) {
        let arguments = text_of(said, "/function_call/arguments").unwrap_or_default();
        reading.calls().piece(0, "", name, arguments);
    }
}

/// Builds the message with a tool result.
fn reply<'a>(call: &'a ToolCall, told: &'a ToolReply) -> Node<'a> {
    let (id, content) = (Node::from(&call.id), Node::from(&told.content));
    Node::object([("role", "tool".into()), ("tool_call_id", id), ("content", content)])
}

/// Services parse seeds as signed 64-bit numbers.
const SIGNED: u64 = i64::MAX.unsigned_abs();

fn format(bind: Bind, schema: Option<&str>) -> Option<Node<'_>> {
    match (bind, schema) {
        (Bind::Schema, Some(schema)) => {
            let named = [("name", "answer".into()), ("strict", true.into()), ("schema", Node::Json(schema))];
            Some(Node::object([("type", "json_schema".into()), ("json_schema", Node::object(named))]))
        }
        (Bind::Schema, None) | (Bind::Prompt, _) => None,
        (Bind::Json, _) => Some(Node::object([("type", "json_object".into())])),
    }
}

/// Maps a finish reason. Unknown reasons count as a normal end; validation against the contract shows whether the
/// answer is whole.
fn finish(reason: &str) -> Result<Finish, Complaint> {
    match reason {
        "length" | "max_tokens" | "model_length" => Ok(Finish::CutOff),
        "content_filter" | "sensitive" => {
            Ok(Finish::Refused("the content filter stopped the answer".to_owned()))
        }
        "error" | "insufficient_system_resource" | "network_error" => {
            let text = format!("the model stopped: {reason}");
            Err(Complaint { words: text.clone(), text, status: Some(503), ..Complaint::default() })
        }
        _ => Ok(Finish::Complete),
    }
}

/// Reads the token counts. Some gateways return them under the names of the upstream service, and some only the total.
pub(crate) fn read_usage(counts: &FrameValue<'_>) -> Result<Option<Usage>, UnreadableCount> {
    let tokens = |name: &str, other: &str| {
        let (one, other) = (token_count(counts, name)?, token_count(counts, other)?);
        Ok::<_, UnreadableCount>(one.max(other))
    };
    let Some(read) = tokens("prompt_tokens", "input_tokens")? else { return Ok(None) };
    let written = match tokens("completion_tokens", "output_tokens")? {
        None => token_count(counts, "total_tokens")?.map(|total| total.saturating_sub(read)),
        written => written,
    };
    let details = ["completion_tokens_details", "output_tokens_details"];
    let details = details.iter().find_map(|name| counts.get(name));
    let thoughts = details.map_or(0, |details| count(details, "reasoning_tokens"));
    let (hits, fills) = cached_tokens(counts);
    let usage = |written| Usage::new(read, written).with_thoughts(thoughts).with_cache(hits, fills);
    Ok(written.map(usage))
}

/// Returns the number of input tokens read from and written to the service's cache, under any of its member names.
fn cached_tokens(counts: &FrameValue<'_>) -> (u64, u64) {
    let details = ["prompt_tokens_details", "input_tokens_details"];
    let details = || details.iter().filter_map(|name| counts.get(name));
    let most = |name: &str| details().map(|details| count(details, name)).max().unwrap_or(0);
    (most("cached_tokens").max(count(counts, "prompt_cache_hit_tokens")), most("cache_write_tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of one frame: the text, and the state after it.
    fn read(frame: &str) -> (String, Reading) {
        let url = || reqwest::Url::parse("http://localhost").unwrap();
        let (calls, list, headers) = (url(), url(), reqwest::header::HeaderMap::new());
        let endpoint = Endpoint { model: String::new(), calls, list, headers };
        let wire = OpenAi { dialect: OPENAI, endpoint };
        let (mut reading, mut said) = (Reading::default(), String::new());
        let value = serde_json::from_str(frame).unwrap();
        wire.read(&value, &mut reading, &mut |text| said.push_str(text)).unwrap();
        (said, reading)
    }

    #[test]
    fn a_frame_says_a_piece_of_text_the_model_and_the_end() {
        let complete = Some(Finish::Complete);
        let filtered = Some(Finish::Refused("the content filter stopped the answer".to_owned()));
        let usual = r#"{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":null,
            "choices":[{"index":0,"delta":{"role":"assistant","content":"a \"b\" \u00e9\n","refusal":null},
            "logprobs":null,"finish_reason":null}],"usage":null}"#;
        for (frame, text, model, finish) in [
            (usual, "a \"b\" é\n", Some("m"), None),
            (r#"{"model":"","choices":[{"delta":{"role":"assistant","content":""}}]}"#, "", None, None),
            (r#"{"model":"m","choices":[{"delta":{},"finish_reason":"stop"}]}"#, "", Some("m"), complete),
            (
                r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}"#,
                "a",
                None,
                Some(Finish::CutOff),
            ),
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}"#, "a", None, None),
            (r#"{"choices":[{"delta":{"content":"a"},"finish_reason":{}}]}"#, "a", None, None),
            (
                r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}],"usage":null}"#,
                "",
                None,
                filtered,
            ),
        ] {
            let (said, reading) = read(frame);
            assert_eq!(
                (said.as_str(), reading.model.as_deref(), reading.finish),
                (text, model, finish),
                "{frame}"
            );
        }
    }

    #[test]
    fn only_the_content_of_the_first_choice_is_text() {
        for (frame, text) in [
            (r#"{"id":{"content":"b"},"choices":[{"delta":{"content":"a"}}]}"#, "a"),
            (r#"{"choices":[{"delta":{"content":"a"}}],"id":{"content":"b"}}"#, "a"),
            (r#"{"id":{"content":"b"},"choices":[{"delta":{"content" :  "a"}}]}"#, "a"),
            (r#"{"id":{"content":"b"},"choices":[{"delta":{"con\u0074ent":"a"}}]}"#, "a"),
            (r#"{"id":{"x\"content":"b"},"choices":[{"delta":{"content" :"a"}}]}"#, "a"),
            (r#"{"id":{"content":"b"},"choices":[{"delta":{"content" :null}}]}"#, ""),
            (r#"{"id":{"content":"b"},"choices":[{"delta":["a"]}]}"#, ""),
            (r#"{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#, "a"),
            (r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#, ""),
            (r#"{"choices":[{"delta":{"content":"a"},"message":{"content":"a"}}]}"#, "a"),
            (r#"{"choices":[]}"#, ""),
        ] {
            assert_eq!(read(frame).0, text, "{frame}");
        }
    }

    #[test]
    fn what_stands_beside_a_piece_of_text_is_read_too() {
        let (said, reading) = read(r#"{"choices":[{"delta":{"content":"a","refusal":"no"}}]}"#);
        assert_eq!((said.as_str(), reading.refusal.as_str()), ("a", "no"));
        let (said, reading) = read(
            r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#,
        );
        assert_eq!((said.as_str(), reading.usage.map(|usage| usage.input_tokens)), ("a", Some(1)));
        let call = r#"{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}"#;
        let (said, reading) =
            read(&format!(r#"{{"choices":[{{"delta":{{"content":"a","tool_calls":[{call}]}}}}]}}"#));
        assert_eq!((said.as_str(), reading.calls.iter().count()), ("a", 1));
    }
}
