//! Gemini's `streamGenerateContent`. The key is sent in a header, never in the URL. Thoughts are skipped.

use cognitive_contract::media::{AcceptedForm, Category, MediaPart, MediaType};
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use cognitive_contract::thinking::ThoughtOutcome;
use cognitive_contract::tools::{ToolCall, ToolReply, ToolRound};
use cognitive_schema::SchemaTarget;
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::llm::borrowed_body::Node;
use crate::llm::calls::{declaration, offers};
use crate::llm::frame_value::FrameValue;
use crate::llm::media::{self, Style};
use crate::llm::terms::{Bind, OptionalFeature, Terms};
use crate::llm::{
    Endpoint, Reading, UnreadableCount, Wire, at, count, first_candidate, names_in, text_of, thinking,
    token_count, turns,
};

/// The API uses 32-bit seeds.
const SEED: u64 = 0x7FFF_FFFF;

/// The service scales larger images down to this side length.
const MAX_SIDE_LENGTH: u32 = 3072;
/// A request may have 100 MB; this much base64 leaves room for the rest of it.
const MAX_SIZE: u64 = media::bytes_in(95_000_000);
/// In megabytes, for a document inside the request.
const MAX_PDF_SIZE: u64 = 47;

/// Returns the thinking level for models that accept no number. Some models know no level between these.
fn level(tokens: u32) -> &'static str {
    match tokens {
        0 => "minimal",
        1..=4096 => "low",
        _ => "high",
    }
}

/// Gemini.
#[derive(Debug)]
pub(crate) struct Gemini {
    pub(crate) endpoint: Endpoint,
}

impl Gemini {
    fn config<'a>(&self, call: &ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a> {
        let mut config = Vec::new();
        let mut set = |name: &'static str, value: Node<'a>| config.push((name, value));
        if terms.keeps(OptionalFeature::Temperature) {
            set("temperature", call.temperature.into());
        }
        if let Some(seed) = call.seed.filter(|_| terms.keeps(OptionalFeature::Seed)) {
            set("seed", (seed & SEED).into());
        }
        if let Some(limit) = thinking::limit(call, terms) {
            set("maxOutputTokens", limit.into());
        }
        if let Some(tokens) = thinking::thinking_budget(call, terms) {
            let how = if terms.keeps(OptionalFeature::ThinkingBudget) {
                ("thinkingBudget", u64::from(tokens).into())
            } else {
                ("thinkingLevel", level(tokens).into())
            };
            set("thinkingConfig", Node::object([how]));
        }
        if terms.bind != Bind::Prompt {
            set("responseMimeType", "application/json".into());
        }
        // Only image models accept a request for images.
        if call.wants_media && media::draws(&self.endpoint.model) {
            set("responseModalities", json!(["TEXT", "IMAGE"]).into());
        }
        if let Some(schema) = schema {
            set("responseJsonSchema", Node::Json(schema));
        }
        Node::Object(config)
    }
}

impl Wire for Gemini {
    fn target(&self) -> Option<SchemaTarget> {
        Some(SchemaTarget::Gemini)
    }

    fn ladder(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Json, Bind::Prompt]
    }

    fn unsupported_features(&self) -> &'static [OptionalFeature] {
        &[OptionalFeature::StreamUsage, OptionalFeature::OldTokenName, OptionalFeature::TokenLimit]
    }

    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn body<'a>(&'a self, call: &'a ModelCall, terms: &Terms, schema: Option<&'a str>) -> Node<'a> {
        let mut contents: Vec<Node<'a>> = turns(call).map(content).collect();
        media::attach(&mut contents, 0, "parts", call, PARTS);
        contents.extend(call.rounds.iter().flat_map(round));
        let mut body = vec![
            ("systemInstruction", Node::object([("parts", parts(Node::Json(call.instructions.json())))])),
            ("contents", Node::List(contents)),
            ("generationConfig", self.config(call, terms, schema)),
        ];
        if offers(call) && terms.keeps(OptionalFeature::Tools) {
            let tools = call.tools.iter().map(|spec| declaration(spec, "parametersJsonSchema"));
            let tools = Node::object([("functionDeclarations", Node::List(tools.collect()))]);
            body.push(("tools", Node::List(vec![tools])));
        }
        Node::Object(body)
    }

    fn thinking_outcome(&self, tokens: u32, terms: &Terms) -> ThoughtOutcome {
        thinking::budget_or_word(tokens, terms)
    }

    fn form(&self, category: Category) -> Option<AcceptedForm> {
        Some(match category {
            Category::Image => media::images(media::IMAGES, MAX_SIDE_LENGTH, MAX_SIZE),
            Category::Audio => {
                AcceptedForm::from_types(&[MediaType::Mp3, MediaType::Wav, MediaType::Ogg]).up_to(MAX_SIZE)
            }
            Category::Video => {
                AcceptedForm::from_types(&[MediaType::Mp4, MediaType::WebmVideo, MediaType::Quicktime])
                    .up_to(MAX_SIZE)
            }
            Category::Document => media::pdf(MAX_PDF_SIZE),
        })
    }

    fn makes(&self, category: Category) -> bool {
        category == Category::Image && media::draws(&self.endpoint.model)
    }

    fn understands(&self, _: Category) -> bool {
        true
    }

    fn read(
        &self,
        frame: &FrameValue<'_>,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("modelVersion"));
        if let Some(usage) = frame.get("usageMetadata").filter(|usage| usage.is_object()) {
            reading.usage = read_usage(usage).ok().flatten();
        }
        if let Some(reason) =
            text_of(frame, "/promptFeedback/blockReason").filter(|reason| !is_silent(reason))
        {
            let why = text_of(frame, "/promptFeedback/blockReasonMessage").filter(|why| !why.is_empty());
            let why = why.map_or_else(|| format!("the prompt was blocked: {reason}"), str::to_owned);
            reading.finish = Some(Finish::Refused(why));
        }
        let Some(candidate) = first_candidate(frame, "candidates") else { return Ok(()) };
        for part in at(candidate, "/content/parts").into_iter().flat_map(FrameValue::as_list) {
            let thought = part.get("thought").and_then(FrameValue::as_bool).unwrap_or(false);
            text(text_of(part, "/text").filter(|_| !thought).unwrap_or_default());
            if let Some(data) = text_of(part, "/inlineData/data").filter(|_| !thought) {
                media::note(reading, text_of(part, "/inlineData/mimeType").unwrap_or_default(), data);
            }
            let mut is_too_long = false;
            if let Some(call) = part.get("functionCall") {
                let id = text_of(call, "/id").unwrap_or_default();
                let name = text_of(call, "/name").unwrap_or_default();
                let Some(kept) = reading.calls().add_complete(id, name, call.get("args")) else { continue };
                is_too_long = kept.too_long;
            }
            // The part includes its signature, which the service requires in the next request.
            if reading.keeps_parts {
                let mut part = part.to_value();
                if let Some(arguments) = part.pointer_mut("/functionCall/args").filter(|_| is_too_long) {
                    *arguments = json!({});
                }
                reading.keep_part(part);
            }
        }
        let reason = finish_reason(candidate).filter(|reason| !is_silent(reason));
        if reason == Some(UNEXPECTED_CALL) && !reading.keeps_parts {
            // No tools were offered, so only the name of the call is reported; the service does not return the call
            // itself.
            reading.calls().add_complete("", &called_name(candidate), None);
            reading.record_stop(Some(Finish::Complete));
            return Ok(());
        }
        reading.record_stop(reason.map(|reason| finish(reason, candidate)).transpose()?);
        Ok(())
    }

    fn turn(&self, reading: &Reading, _: &str) -> Value {
        json!({ "role": "model", "parts": reading.parts })
    }

    fn names(&self, list: &Value) -> Vec<String> {
        let names = names_in(list, "models", "name");
        names.iter().map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned()).collect()
    }
}

/// Reads the token counts. The service leaves out counts of zero, and the total then tells them from unknown ones.
fn read_usage(usage: &FrameValue<'_>) -> Result<Option<Usage>, UnreadableCount> {
    let tokens = |name: &str| token_count(usage, name);
    let Some(read) = tokens("promptTokenCount")? else { return Ok(None) };
    let thoughts = tokens("thoughtsTokenCount")?;
    let written = match (tokens("candidatesTokenCount")?, thoughts) {
        (None, None) => tokens("totalTokenCount")?.map(|total| total.saturating_sub(read)),
        (answer, thoughts) => Some(answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0))),
    };
    let cached = count(usage, "cachedContentTokenCount");
    let counted =
        |written| Usage::new(read, written).with_thoughts(thoughts.unwrap_or(0)).with_cache(cached, 0);
    Ok(written.map(counted))
}

/// Builds the turn with calls, followed by one user turn with all replies.
fn round(round: &ToolRound) -> [Node<'_>; 2] {
    let replies = round.calls.iter().map(|(call, told)| reply(call, told)).collect();
    [Node::from(&round.turn), Node::object([("role", "user".into()), ("parts", Node::List(replies))])]
}

/// Builds a reply, which must be an object in this API.
fn reply<'a>(call: &'a ToolCall, told: &ToolReply) -> Node<'a> {
    let content: Value = serde_json::from_str(&told.content).unwrap_or_default();
    let response = if told.ok { json!({ "result": content }) } else { content };
    let mut reply = vec![("name", Node::from(&call.name)), ("response", response.into())];
    if !call.id.is_empty() {
        reply.push(("id", Node::from(&call.id)));
    }
    Node::object([("functionResponse", Node::Object(reply))])
}

/// The format of a turn with parts.
const PARTS: Style = Style { text: |text| Node::object([("text", text)]), part };

fn part(medium: &MediaPart) -> Node<'_> {
    let mime = match medium.media_type {
        // The API uses other names for these two types.
        MediaType::Mp3 => "audio/mp3",
        MediaType::Quicktime => "video/mov",
        other => other.mime(),
    };
    let data = Node::object([("mimeType", mime.into()), ("data", media::base64(medium))]);
    Node::object([("inlineData", data)])
}

fn content((is_model, text): (bool, &str)) -> Node<'_> {
    let role = if is_model { "model" } else { "user" };
    Node::object([("role", role.into()), ("parts", parts(text.into()))])
}

fn parts(text: Node<'_>) -> Node<'_> {
    Node::List(vec![Node::object([("text", text)])])
}

/// The finish reason of a model that called a tool that was not offered.
const UNEXPECTED_CALL: &str = "UNEXPECTED_TOOL_CALL";

/// The names of the numbers of finish reasons. Vertex AI sends numbers to clients that ask for them, and gateways pass
/// them on.
const NUMBERED: [&str; 11] = [
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
];

/// Returns the finish reason by name. A number without a name is a reason of a later version.
fn finish_reason<'v>(candidate: &'v FrameValue<'_>) -> Option<&'v str> {
    let number = |number: &FrameValue<'_>| {
        let place = usize::try_from(number.as_u64()?).ok()?;
        Some(NUMBERED.get(place).copied().unwrap_or("OTHER"))
    };
    match candidate.get("finishReason")? {
        FrameValue::Text(name) => Some(name),
        other => number(other),
    }
}

/// Returns whether a reason is empty: proxies fill in every member.
fn is_silent(reason: &str) -> bool {
    reason.is_empty() || reason.ends_with("_UNSPECIFIED")
}

/// Returns the name of a call that was not offered, as far as the service reports it: its message ends with the call
/// as code.
fn called_name(candidate: &FrameValue<'_>) -> String {
    let message = text_of(candidate, "/finishMessage").unwrap_or_default();
    let (_, call) = message.rsplit_once(": ").unwrap_or(("", message));
    let code = call.split_once('(').map_or(call, |(function, _)| function).trim();
    let is_of_a_name = |letter: &char| letter.is_alphanumeric() || "._-".contains(*letter);
    let name: String = code.chars().take_while(is_of_a_name).take(64).collect();
    if name.is_empty() { UNEXPECTED_CALL.to_lowercase() } else { name }
}

/// Maps a finish reason. An answer that a content filter stopped is a refusal, under any name.
fn finish(reason: &str, candidate: &FrameValue<'_>) -> Result<Finish, Complaint> {
    let why = text_of(candidate, "/finishMessage").filter(|why| !why.is_empty());
    match reason {
        "STOP" => Ok(Finish::Complete),
        "MAX_TOKENS" => Ok(Finish::CutOff),
        "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "SPII" | "MODEL_ARMOR" => Ok(refusal_finish(reason, why)),
        _ if ["SAFETY", "PROHIBITED", "RECITATION", "BLOCK"].iter().any(|word| reason.contains(word)) => {
            Ok(refusal_finish(reason, why))
        }
        // `OTHER`, `MALFORMED_FUNCTION_CALL` and future reasons: the generation was aborted, so the text may be
        // incomplete.
        _ => {
            let text = why.map_or_else(
                || format!("the model stopped: {reason}"),
                |why| format!("the model stopped: {reason}: {why}"),
            );
            Err(Complaint::stop(text))
        }
    }
}

fn refusal_finish(reason: &str, why: Option<&str>) -> Finish {
    Finish::Refused(why.map_or_else(|| format!("the answer was stopped: {reason}"), str::to_owned))
}
