//! Chat completions: OpenAI, and every service that speaks the same. What differs between them stands in a `Dialect`.
//! Reads no tool calls and no reasoning: an answer is its text.

use cognitive_contract::lower::Target;
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::terms::{Bind, Extra, Terms};
use crate::llm::{Reading, Wire, at, count, messages_with_instructions, names_in, text_of};

/// Where one service differs from the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    /// The words for a schema in `response_format`.
    pub(crate) target: Target,
    /// Which values of `response_format` it takes, the tightest first.
    pub(crate) ladder: &'static [Bind],
    /// What it is known not to take.
    pub(crate) without: &'static [Extra],
    /// How it calls the seed.
    pub(crate) seed: &'static str,
    /// Switches that it needs to be turned on.
    pub(crate) switches: &'static [&'static str],
}

/// `json_schema`, `json_object`, nothing.
pub(crate) const EVERYTHING: &[Bind] = &[Bind::Schema, Bind::Json, Bind::Prompt];

/// OpenAI itself.
pub(crate) const OPENAI: Dialect = Dialect {
    target: Target::OpenAi,
    ladder: EVERYTHING,
    without: &[Extra::OldTokenName],
    seed: "seed",
    switches: &[],
};

/// A service with chat completions.
#[derive(Debug)]
pub(crate) struct OpenAi {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    pub(crate) chat: Url,
    pub(crate) models: Url,
    pub(crate) headers: HeaderMap,
}

impl Wire for OpenAi {
    fn target(&self) -> Option<Target> {
        self.dialect.ladder.contains(&Bind::Schema).then_some(self.dialect.target)
    }

    fn ladder(&self) -> &'static [Bind] {
        self.dialect.ladder
    }

    fn without(&self) -> &'static [Extra] {
        self.dialect.without
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn shape(&self) -> Shape {
        Shape::Events
    }

    fn address(&self) -> &Url {
        &self.chat
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn body(&self, call: &ModelCall, terms: &Terms, schema: Option<&Value>) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| body.insert(name.to_owned(), value);
        set("model", json!(self.model));
        set("messages", Value::Array(messages_with_instructions(call)));
        set("stream", json!(true));
        if terms.keeps(Extra::StreamUsage) {
            set("stream_options", json!({ "include_usage": true }));
        }
        if terms.keeps(Extra::Temperature) {
            set("temperature", json!(call.temperature));
        }
        if let Some(seed) = call.seed.filter(|_| terms.keeps(Extra::Seed)) {
            set(self.dialect.seed, json!(seed & SIGNED));
        }
        if let Some(limit) = call.max_output_tokens.filter(|_| terms.keeps(Extra::TokenLimit)) {
            let old = terms.keeps(Extra::OldTokenName);
            set(if old { "max_tokens" } else { "max_completion_tokens" }, json!(limit));
        }
        for switch in self.dialect.switches {
            set(switch, json!(true));
        }
        if let Some(format) = format(terms.bind, schema) {
            set("response_format", format);
        }
        Value::Object(body)
    }

    fn read(
        &self,
        frame: &Value,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("model"));
        // Groq counts in a member of its own while it streams.
        let usage = frame.get("usage").or_else(|| at(frame, "/x_groq/usage"));
        if let Some(usage) = usage.filter(|usage| usage.is_object()) {
            reading.usage = Some(Usage {
                input_tokens: count(usage, "prompt_tokens"),
                output_tokens: count(usage, "completion_tokens"),
            });
        }
        let Some(choice) = at(frame, "/choices/0") else { return Ok(()) };
        for said in ["/delta", "/message"].iter().filter_map(|place| at(choice, place)) {
            text(text_of(said, "/content").unwrap_or_default());
            reading.refusal.push_str(text_of(said, "/refusal").unwrap_or_default());
        }
        match text_of(choice, "/finish_reason") {
            None | Some("") => {}
            Some(reason) => reading.finish = Some(finish(reason)?),
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

/// Seeds are signed numbers to the services.
const SIGNED: u64 = i64::MAX.unsigned_abs();

fn format(bind: Bind, schema: Option<&Value>) -> Option<Value> {
    match (bind, schema) {
        (Bind::Schema, Some(schema)) => {
            let named = json!({ "name": "answer", "strict": true, "schema": schema });
            Some(json!({ "type": "json_schema", "json_schema": named }))
        }
        (Bind::Schema, None) | (Bind::Prompt, _) => None,
        (Bind::Json, _) => Some(json!({ "type": "json_object" })),
    }
}

/// Why the model stopped. Reasons that are not known are taken as a natural end: whether the answer is whole, the
/// contract will tell.
fn finish(reason: &str) -> Result<Finish, Complaint> {
    match reason {
        "length" | "max_tokens" | "model_length" => Ok(Finish::CutOff),
        "content_filter" | "sensitive" => {
            Ok(Finish::Refused("the content filter stopped the answer".to_owned()))
        }
        "error" | "insufficient_system_resource" | "network_error" => {
            let text = format!("the model stopped: {reason}");
            Err(Complaint { words: text.clone(), text, status: Some(503), wait: None })
        }
        _ => Ok(Finish::Complete),
    }
}
