//! The Messages API of Anthropic. Thinking is not part of an answer and is skipped; there is no seed.

use cognitive_contract::lower::Target;
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::terms::{Bind, Extra, Terms};
use crate::llm::{REFUSED, Reading, Wire, count, messages, names_in, text_of};

/// The version of the API that this file speaks.
pub(crate) const VERSION: &str = "2023-06-01";
/// The API insists on a limit. Every model of today can write this much, thinking included.
const USUAL_LIMIT: u64 = 16_384;

/// Anthropic, or a service that speaks like it.
#[derive(Debug)]
pub(crate) struct Anthropic {
    pub(crate) model: String,
    pub(crate) messages: Url,
    pub(crate) models: Url,
    pub(crate) headers: HeaderMap,
}

impl Wire for Anthropic {
    fn target(&self) -> Option<Target> {
        Some(Target::Anthropic)
    }

    fn ladder(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Prompt]
    }

    fn without(&self) -> &'static [Extra] {
        &[Extra::Seed, Extra::StreamUsage, Extra::OldTokenName, Extra::TokenLimit]
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn shape(&self) -> Shape {
        Shape::Events
    }

    fn address(&self) -> &Url {
        &self.messages
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn body(&self, call: &ModelCall, terms: &Terms, schema: Option<&Value>) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
        set("model", json!(self.model));
        set("max_tokens", json!(call.max_output_tokens.unwrap_or(USUAL_LIMIT)));
        set("system", json!(call.instructions));
        set("messages", Value::Array(messages(call)));
        set("stream", json!(true));
        if terms.keeps(Extra::Temperature) {
            // The scale ends at 1 here.
            set("temperature", json!(call.temperature.min(1.0)));
        }
        if let Some(schema) = schema {
            set("output_config", json!({ "format": { "type": "json_schema", "schema": schema } }));
        }
        Value::Object(body)
    }

    fn read(
        &self,
        frame: &Value,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        match text_of(frame, "/type").unwrap_or_default() {
            "message_start" => opening(frame.get("message").unwrap_or(&Value::Null), reading),
            "content_block_start" => text(text_of(frame, "/content_block/text").unwrap_or_default()),
            "content_block_delta" => text(text_of(frame, "/delta/text").unwrap_or_default()),
            "message_delta" => {
                count_tokens(frame.get("usage"), reading);
                stop(frame.get("delta").unwrap_or(&Value::Null), reading);
            }
            "message_stop" => reading.closed = true,
            // The whole answer at once.
            "message" => {
                opening(frame, reading);
                for block in frame.get("content").and_then(Value::as_array).into_iter().flatten() {
                    text(text_of(block, "/text").unwrap_or_default());
                }
                stop(frame, reading);
            }
            // The API reserves the right to add events.
            _ => {}
        }
        Ok(())
    }

    fn list(&self) -> &Url {
        &self.models
    }

    fn names(&self, list: &Value) -> Vec<String> {
        names_in(list, "data", "id")
    }
}

fn opening(message: &Value, reading: &mut Reading) {
    reading.name_model(message.get("model"));
    count_tokens(message.get("usage"), reading);
}

/// Counts are sums: a later one replaces an earlier one, a missing one replaces nothing.
fn count_tokens(usage: Option<&Value>, reading: &mut Reading) {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
    let so_far = reading.usage.unwrap_or_default();
    let parts = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let input_tokens = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(count(usage, part)));
    reading.usage = Some(Usage {
        input_tokens: if input_tokens == 0 { so_far.input_tokens } else { input_tokens },
        output_tokens: count(usage, "output_tokens").max(so_far.output_tokens),
    });
}

fn stop(place: &Value, reading: &mut Reading) {
    let Some(reason) = text_of(place, "/stop_reason") else { return };
    reading.finish = Some(match reason {
        "max_tokens" | "model_context_window_exceeded" => Finish::CutOff,
        "refusal" => {
            Finish::Refused(text_of(place, "/stop_details/explanation").unwrap_or(REFUSED).to_owned())
        }
        _ => Finish::Complete,
    });
}
