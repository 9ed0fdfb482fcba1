//! Ollama's own chat API, in JSON lines. Thinking is skipped. A prompt that does not fit is an error here: left alone,
//! Ollama would cut it and answer as if nothing had happened.

use cognitive_contract::lower::Target;
use cognitive_contract::ports::{Finish, ModelCall, Usage};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};

use crate::complaint::Complaint;
use crate::frames::Shape;
use crate::llm::terms::{Bind, Extra, Terms};
use crate::llm::{Reading, Wire, count, messages_with_instructions, names_in, text_of};

/// The port that Ollama listens on unless told otherwise.
const PORT: u16 = 11_434;
/// Seeds are 32-bit numbers to some of its engines.
const SEED: u64 = 0x7FFF_FFFF;

/// An Ollama server.
#[derive(Debug)]
pub(crate) struct Ollama {
    pub(crate) model: String,
    pub(crate) chat: Url,
    pub(crate) tags: Url,
    pub(crate) headers: HeaderMap,
}

impl Wire for Ollama {
    fn target(&self) -> Option<Target> {
        Some(Target::Ollama)
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
        Shape::Lines
    }

    fn address(&self) -> &Url {
        &self.chat
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn body(&self, call: &ModelCall, terms: &Terms, schema: Option<&Value>) -> Value {
        let mut body = json!({
            "model": self.model,
            "messages": messages_with_instructions(call),
            "stream": true,
            // Neither the prompt nor what was written may silently fall out of the window.
            "truncate": false,
            "shift": false,
            "options": options(call, terms),
        });
        let format = match (terms.bind, schema) {
            (Bind::Schema, Some(schema)) => Some(schema.clone()),
            (Bind::Json, _) => Some(json!("json")),
            (Bind::Schema, None) | (Bind::Prompt, _) => None,
        };
        if let (Some(format), Some(body)) = (format, body.as_object_mut()) {
            body.insert("format".to_owned(), format);
        }
        body
    }

    fn read(
        &self,
        frame: &Value,
        reading: &mut Reading,
        text: &mut dyn FnMut(&str),
    ) -> Result<(), Complaint> {
        reading.name_model(frame.get("model"));
        text(text_of(frame, "/message/content").unwrap_or_default());
        if frame.get("done").and_then(Value::as_bool) != Some(true) {
            return Ok(());
        }
        reading.closed = true;
        reading.finish = Some(match text_of(frame, "/done_reason") {
            Some("length") => Finish::CutOff,
            _ => Finish::Complete,
        });
        if frame.get("eval_count").is_some() {
            reading.usage = Some(Usage {
                input_tokens: count(frame, "prompt_eval_count"),
                output_tokens: count(frame, "eval_count"),
            });
        }
        Ok(())
    }

    fn list(&self) -> &Url {
        &self.tags
    }

    /// A name without a tag means the tag `latest`, so both are known.
    fn names(&self, list: &Value) -> Vec<String> {
        let mut names = names_in(list, "models", "name");
        let short: Vec<String> =
            names.iter().filter_map(|name| name.strip_suffix(":latest")).map(str::to_owned).collect();
        names.extend(short);
        names
    }
}

fn options(call: &ModelCall, terms: &Terms) -> Value {
    let mut options = Map::new();
    if terms.keeps(Extra::Temperature) {
        options.insert("temperature".to_owned(), json!(call.temperature));
    }
    if let Some(seed) = call.seed.filter(|_| terms.keeps(Extra::Seed)) {
        options.insert("seed".to_owned(), json!(seed & SEED));
    }
    if let Some(limit) = call.max_output_tokens {
        options.insert("num_predict".to_owned(), json!(limit));
    }
    Value::Object(options)
}

/// `OLLAMA_HOST` as a base address: it is written for the server, so it may lack the scheme, the host or the port, and
/// may name the address that means "listen everywhere".
pub(crate) fn base_of_host(host: &str) -> String {
    let host = host.trim();
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let place = if place.starts_with(':') { format!("127.0.0.1{place}") } else { place.to_owned() };
    let place = place.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let has_port = place.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = match (has_port, host.contains("://")) {
        // With a scheme the author means its port.
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
