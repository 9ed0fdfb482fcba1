//! Gemini's `streamGenerateContent`. The key travels in a header, never in the address. Thoughts are skipped.

use cognitive_contract::lower::Target;
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::terms::{Bind, Extra, Terms};
use crate::llm::{Reading, Wire, at, count, names_in, text_of, turns};

/// Seeds are 32-bit numbers here.
const SEED: u64 = 0x7FFF_FFFF;

/// Gemini.
#[derive(Debug)]
pub(crate) struct Gemini {
    pub(crate) model: String,
    pub(crate) generate: Url,
    pub(crate) models: Url,
    pub(crate) headers: HeaderMap,
}

impl Wire for Gemini {
    fn target(&self) -> Option<Target> {
        Some(Target::Gemini)
    }

    fn ladder(&self) -> &'static [Bind] {
        &[Bind::Schema, Bind::Json, Bind::Prompt]
    }

    fn without(&self) -> &'static [Extra] {
        &[Extra::StreamUsage, Extra::OldTokenName, Extra::TokenLimit]
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn shape(&self) -> Shape {
        Shape::Events
    }

    fn address(&self) -> &Url {
        &self.generate
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn body(&self, call: &ModelCall, terms: &Terms, schema: Option<&Value>) -> Value {
        json!({
            "systemInstruction": { "parts": [{ "text": call.instructions }] },
            "contents": turns(call).map(content).collect::<Vec<Value>>(),
            "generationConfig": config(call, terms, schema),
        })
    }

    fn read(
        &self,
        frame: &Value,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("modelVersion"));
        if let Some(usage) = frame.get("usageMetadata") {
            reading.usage = Some(Usage {
                input_tokens: count(usage, "promptTokenCount"),
                output_tokens: count(usage, "candidatesTokenCount")
                    .saturating_add(count(usage, "thoughtsTokenCount")),
            });
        }
        if let Some(reason) = text_of(frame, "/promptFeedback/blockReason") {
            reading.finish = Some(Finish::Refused(format!("the prompt was blocked: {reason}")));
        }
        let Some(candidate) = at(frame, "/candidates/0") else { return Ok(()) };
        for part in at(candidate, "/content/parts").and_then(Value::as_array).into_iter().flatten() {
            let thought = part.get("thought").and_then(Value::as_bool).unwrap_or(false);
            text(text_of(part, "/text").filter(|_| !thought).unwrap_or_default());
        }
        if let Some(reason) = text_of(candidate, "/finishReason") {
            reading.finish = Some(finish(reason, candidate)?);
        }
        Ok(())
    }

    fn list(&self) -> &Url {
        &self.models
    }

    fn names(&self, list: &Value) -> Vec<String> {
        let names = names_in(list, "models", "name");
        names.iter().map(|name| name.strip_prefix("models/").unwrap_or(name).to_owned()).collect()
    }
}

fn content((is_model, text): (bool, &str)) -> Value {
    json!({ "role": if is_model { "model" } else { "user" }, "parts": [{ "text": text }] })
}

fn config(call: &ModelCall, terms: &Terms, schema: Option<&Value>) -> Value {
    let mut config = Map::new();
    let mut set = |name: &str, value: Value| config.insert(name.to_owned(), value);
    if terms.keeps(Extra::Temperature) {
        set("temperature", json!(call.temperature));
    }
    if let Some(seed) = call.seed.filter(|_| terms.keeps(Extra::Seed)) {
        set("seed", json!(seed & SEED));
    }
    if let Some(limit) = call.max_output_tokens {
        set("maxOutputTokens", json!(limit));
    }
    if terms.bind != Bind::Prompt {
        set("responseMimeType", json!("application/json"));
    }
    if let Some(schema) = schema {
        set("responseJsonSchema", schema.clone());
    }
    Value::Object(config)
}

fn finish(reason: &str, candidate: &Value) -> Result<Finish, Complaint> {
    match reason {
        "STOP" => Ok(Finish::Complete),
        "MAX_TOKENS" => Ok(Finish::CutOff),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => {
            let why = text_of(candidate, "/finishMessage");
            let why = why.map_or_else(|| format!("the answer was stopped: {reason}"), str::to_owned);
            Ok(Finish::Refused(why))
        }
        // `OTHER` and whatever may be added: the model did not end by itself, and its text cannot be trusted to be whole.
        _ => {
            let text = format!("the model stopped: {reason}");
            Err(Complaint { words: text.to_lowercase(), text, status: Some(503), wait: None })
        }
    }
}
