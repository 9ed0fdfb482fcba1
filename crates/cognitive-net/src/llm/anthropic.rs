//! The Messages API of Anthropic. Thinking is not part of an answer and is skipped. The API has no seed.

use cognitive_contract::media::{AcceptedForm, Category, MediaPart};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::{LEAST_THOUGHT, ThoughtOutcome};
use cognitive_contract::tools::{ToolCall, ToolReply, ToolRound};
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::declaration;
use crate::llm::frame_value::FrameValue;
use crate::llm::media::{self, Style};
use crate::llm::terms::{Bind, OptionalFeature, Terms};
use crate::llm::{
    Endpoint, REFUSED, Reading, UnreadableCount, Wire, count, messages, names_in, text_of, thinking,
    token_count,
};

/// The API version that this file implements.
pub(crate) const VERSION: &str = "2023-06-01";
/// The default token limit, which the API requires. Every current model supports it, thinking included.
const DEFAULT_LIMIT: u64 = 16_384;

/// The shortest prefix worth caching: no model caches fewer than 512 tokens, and a token has at least one byte.
const MIN_KEPT_BYTES: usize = 512;

/// The service scales larger images down to this side length.
const MAX_SIDE_LENGTH: u32 = 1568;
/// Five megabytes per image as base64, the smallest limit among the platforms that serve the model.
const MAX_IMAGE_SIZE: u64 = media::bytes_in(5 << 20);
/// In megabytes: fits as base64 into a request of 32 MB, with room for the rest of the request.
const MAX_PDF_SIZE: u64 = 22;

/// Anthropic, or a service with the same API.
#[derive(Debug)]
pub(crate) struct Anthropic {
    pub(crate) endpoint: Endpoint,
}

impl Wire for Anthropic {
    fn target(&self) -> Option<SchemaTarget> {
        Some(SchemaTarget::Anthropic)
    }

    fn ladder(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Prompt]
    }

    fn unsupported_features(&self) -> &'static [OptionalFeature] {
        &[
            OptionalFeature::Seed,
            OptionalFeature::StreamUsage,
            OptionalFeature::OldTokenName,
            OptionalFeature::TokenLimit,
        ]
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a> {
        let mut body = Vec::with_capacity(8);
        let mut set = |name: &'static str, value: Node<'a>| body.push((name, value));
        set("model", Node::from(&self.endpoint.model));
        let thought = thinking::thinking_budget(call, terms);
        let budget =
            u64::from(thought.filter(|tokens| *tokens > 0).map_or(0, |tokens| tokens.max(LEAST_THOUGHT)));
        let limit = call.max_output_tokens.unwrap_or(DEFAULT_LIMIT);
        set("max_tokens", limit.saturating_add(budget).into());
        let is_marked = is_worth_keeping(call) && terms.keeps(OptionalFeature::CacheMark);
        let instructions = Node::Json(call.instructions.json());
        let ends_prefix = is_marked && call.examples.is_empty();
        set("system", if ends_prefix { mark_cacheable(instructions) } else { instructions });
        let mut messages = messages(call);
        if let Some(example) = call.examples.last().filter(|_| is_marked) {
            let last = messages.get_mut(2 * call.examples.len() - 1);
            media::set(last, "content", mark_cacheable(Node::from(&example.answer)));
        }
        media::attach(&mut messages, 0, "content", call, PARTS);
        messages.extend(call.rounds.iter().flat_map(round));
        set("messages", Node::List(messages));
        set("stream", terms.keeps(OptionalFeature::Stream).into());
        let by_number = terms.keeps(OptionalFeature::ThinkingBudget);
        match thought {
            Some(0) if by_number => set("thinking", Node::object([("type", "disabled".into())])),
            // Newer models cannot disable thinking and refuse the setting.
            None | Some(0) => {}
            Some(_) if by_number => {
                let members = [("type", "enabled".into()), ("budget_tokens", budget.into())];
                set("thinking", Node::object(members));
            }
            Some(_) => set("thinking", Node::object([("type", "adaptive".into())])),
        }
        // Models accept no temperature while they think.
        if terms.keeps(OptionalFeature::Temperature) && budget == 0 {
            // The API's scale ends at 1.
            set("temperature", call.temperature.min(1.0).into());
        }
        // A conversation with calls must declare its tools until the end, even if no more calls are allowed.
        if !call.tools.is_empty() && terms.keeps(OptionalFeature::Tools) {
            let tools = call.tools.iter().map(|spec| declaration(spec, "input_schema"));
            set("tools", Node::List(tools.collect()));
            if call.answer_now {
                set("tool_choice", Node::object([("type", "none".into())]));
            }
        }
        let mut output = Vec::new();
        if let Some(schema) = schema {
            let format = Node::object([("type", "json_schema".into()), ("schema", Node::Json(schema))]);
            output.push(("format", format));
        }
        if let Some(tokens) = thought.filter(|tokens| *tokens > 0 && !by_number) {
            output.push(("effort", thinking::effort(tokens).into()));
        }
        if !output.is_empty() {
            set("output_config", Node::Object(output));
        }
        Node::Object(body)
    }

    fn thinking_outcome(&self, tokens: u32, terms: &Terms) -> ThoughtOutcome {
        match tokens {
            0 if !terms.keeps(OptionalFeature::ThinkingBudget) => ThoughtOutcome::Ignored,
            _ => thinking::budget_or_word(tokens, terms),
        }
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        match category {
            Category::Image => Some(media::images(media::IMAGES_AND_GIF, MAX_SIDE_LENGTH, MAX_IMAGE_SIZE)),
            Category::Document => Some(media::pdf(MAX_PDF_SIZE)),
            Category::Audio | Category::Video => None,
        }
    }

    fn understands(&self, category: Category) -> bool {
        matches!(category, Category::Image | Category::Document)
    }

    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        match text_of(frame, "/type").unwrap_or_default() {
            "message_start" => opening(frame.get("message").unwrap_or(&FrameValue::Null), reading),
            "content_block_start" => {
                let block = frame.get("content_block").unwrap_or(&FrameValue::Null);
                text(text_of_block(block));
                begin_block(block, count(frame, "index"), reading);
            }
            "content_block_delta" => {
                text(frame.get("delta").map(text_of_block).unwrap_or_default());
                add_to_block(frame, reading);
            }
            "message_delta" => {
                count_tokens(frame.get("usage"), reading);
                stop(frame.get("delta").unwrap_or(&FrameValue::Null), reading)?;
            }
            "message_stop" => reading.closed = true,
            // The whole answer in one document.
            "message" => {
                opening(frame, reading);
                count_tokens(frame.get("usage"), reading);
                let blocks = frame.get("content").into_iter().flat_map(FrameValue::as_list);
                for (place, block) in blocks.enumerate() {
                    text(text_of_block(block));
                    begin_block(block, place as u64, reading);
                }
                stop(frame, reading)?;
            }
            // The API may add event types.
            _ => {}
        }
        Ok(())
    }

    fn turn(&self, reading: &Reading, _: &str) -> Value {
        let block = |(place, block): (usize, &Value)| {
            let mut block = block.clone();
            if let Some(members) =
                block.as_object_mut().filter(|members| is_call(members.get("type").and_then(Value::as_str)))
            {
                members.insert("input".to_owned(), reading.calls.arguments(place as u64)?);
            }
            // The service sends empty text blocks but refuses to receive them. Null blocks represent calls that were
            // not stored.
            (!block.is_null() && block.get("text").and_then(Value::as_str) != Some("")).then_some(block)
        };
        let blocks: Vec<Value> = reading.parts.iter().enumerate().filter_map(block).collect();
        json!({ "role": "assistant", "content": blocks })
    }

    fn names(&self, list: &Value) -> Vec<String> {
        names_in(list, "data", "id")
    }
}

/// Returns whether the service should cache the text before the input for the module's next call.
fn is_worth_keeping(call: &ModelCall) -> bool {
    let examples = call.examples.iter().map(|example| example.input.len() + example.answer.len());
    call.has_stable_prefix && examples.fold(call.instructions.len(), usize::saturating_add) >= MIN_KEPT_BYTES
}

/// Marks the last text that is the same in every call. The service caches everything up to the mark, including tools.
fn mark_cacheable(text: Node<'_>) -> Node<'_> {
    let mark = Node::object([("type", "ephemeral".into())]);
    Node::List(vec![Node::object([("type", "text".into()), ("text", text), ("cache_control", mark)])])
}

/// Builds the turn with calls, followed by one user turn with all replies.
fn round(round: &ToolRound) -> [Node<'_>; 2] {
    let replies = round.calls.iter().map(reply).collect();
    [Node::from(&round.turn), Node::object([("role", "user".into()), ("content", Node::List(replies))])]
}

fn reply((call, told): &(ToolCall, ToolReply)) -> Node<'_> {
    let mut block = vec![
        ("type", "tool_result".into()),
        ("tool_use_id", Node::from(&call.id)),
        ("content", Node::from(&told.content)),
    ];
    if !told.ok {
        block.push(("is_error", true.into()));
    }
    Node::Object(block)
}

/// Returns the text of a block or delta. Blocks of other types may have a text member that the model did not write.
fn text_of_block<'v>(block: &'v FrameValue<'_>) -> &'v str {
    let is_text = matches!(text_of(block, "/type"), None | Some("text" | "text_delta"));
    text_of(block, "/text").filter(|_| is_text).unwrap_or_default()
}

/// Returns whether a block of this type is a call for the caller to run. Calls that the service runs itself (`server_tool_use`,
/// `mcp_tool_use`) are ignored.
fn is_call(kind: Option<&str>) -> bool {
    kind == Some("tool_use")
}

/// Starts a block; in a whole answer it is complete. Blocks are numbered without gaps, so the index is the position.
fn begin_block(block: &FrameValue<'_>, index: u64, reading: &mut Reading) {
    let mut is_kept = true;
    if is_call(block.get("type").and_then(FrameValue::as_str)) {
        // In a stream the input is empty here and follows in deltas.
        let has_members =
            |input: &&FrameValue<'_>| matches!(input, FrameValue::Object(members) if !members.is_empty());
        let input = block.get("input").filter(has_members);
        let input = input.map(ToString::to_string).unwrap_or_default();
        let text = |path: &str| text_of(block, path).unwrap_or_default();
        is_kept = reading.calls().piece(index, text("/id"), text("/name"), &input);
    }
    if reading.keeps_parts {
        reading.keep_part(if is_kept { block.to_value() } else { Value::Null });
    }
}

/// Extends a block: arguments go to their call; text, thoughts and their signature to the turn.
fn add_to_block(frame: &FrameValue<'_>, reading: &mut Reading) {
    let index = count(frame, "index");
    if let Some(json) = text_of(frame, "/delta/partial_json") {
        reading.thinks = true;
        reading.calls.append_arguments(index, json);
    }
    let place = usize::try_from(index).ok().and_then(|index| reading.parts.get_mut(index));
    let Some(block) = place.and_then(Value::as_object_mut) else { return };
    for (member, path) in
        [("text", "/delta/text"), ("thinking", "/delta/thinking"), ("signature", "/delta/signature")]
    {
        let Some(more) = text_of(frame, path) else { continue };
        if let Value::String(so_far) = block.entry(member).or_insert_with(|| json!("")) {
            so_far.push_str(more);
        }
    }
}

/// The format of a turn with parts.
const PARTS: Style = Style { text: media::typed_text, part };

fn part(medium: &MediaPart) -> Node<'_> {
    let kind = if medium.category() == Category::Document { "document" } else { "image" };
    let source = Node::object([
        ("type", "base64".into()),
        ("media_type", medium.media_type.mime().into()),
        ("data", media::base64(medium)),
    ]);
    Node::object([("type", kind.into()), ("source", source)])
}

fn opening(message: &FrameValue<'_>, reading: &mut Reading) {
    reading.name_model(message.get("model"));
    reading.counted_input = message.get("usage").and_then(|usage| counted_input(usage).ok()?);
}

/// Returns the counts of the input. They are cumulative: a later count replaces an earlier one.
fn counted_input(usage: &FrameValue<'_>) -> Result<Option<Usage>, UnreadableCount> {
    let tokens = |name: &str| token_count(usage, name);
    let read = tokens("cache_read_input_tokens")?.unwrap_or(0);
    let written = tokens("cache_creation_input_tokens")?.unwrap_or(0);
    let Some(input) = tokens("input_tokens")? else { return Ok(None) };
    let input = input.saturating_add(read).saturating_add(written);
    Ok(Some(Usage::new(input, 0).with_cache(read, written)))
}

/// Updates the token counts at the end of an answer. The count at its beginning has almost no output, so it is never
/// taken for that of the answer.
fn count_tokens(usage: Option<&FrameValue<'_>>, reading: &mut Reading) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    reading.usage = read_usage(usage, reading).ok().flatten();
}

fn read_usage(usage: &FrameValue<'_>, reading: &Reading) -> Result<Option<Usage>, UnreadableCount> {
    let here = counted_input(usage)?;
    let input = here.filter(|count| count.input_tokens > 0).or(reading.counted_input).or(here);
    let (Some(input), Some(output_tokens)) = (input, token_count(usage, "output_tokens")?) else {
        return Ok(reading.usage);
    };
    let so_far = reading.usage.unwrap_or_default();
    let thoughts = usage.get("output_tokens_details").map_or(0, |details| count(details, "thinking_tokens"));
    let counted = Usage::new(input.input_tokens, output_tokens.max(so_far.output_tokens));
    let counted = counted.with_thoughts(thoughts.max(so_far.thinking_tokens));
    Ok(Some(counted.with_cache(input.cache_read_tokens, input.cache_write_tokens)))
}

fn stop(place: &FrameValue<'_>, reading: &mut Reading) -> Result<(), Complaint> {
    let reason = text_of(place, "/stop_reason").filter(|reason| !reason.is_empty());
    let finish = |reason| match reason {
        "max_tokens" | "model_context_window_exceeded" => Ok(Finish::CutOff),
        "refusal" => {
            Ok(Finish::Refused(text_of(place, "/stop_details/explanation").unwrap_or(REFUSED).to_owned()))
        }
        // The service paused while it ran its own tools, and expects a request to continue.
        "pause_turn" => Err(Complaint::stop("the model stopped: pause_turn".to_owned())),
        _ => Ok(Finish::Complete),
    };
    reading.record_stop(reason.map(finish).transpose()?);
    Ok(())
}
