//! The error message of a service, parsed from the many shapes of error bodies, and its classification. Reads only
//! the members meant for people and the codes next to them. Ignores the request that some services echo in their
//! error.

use std::time::Duration;

use crate::llm::frame_value::FrameValue;
use cognitive_contract::ports::FailureKind;

/// The longest plain-text error, in bytes. A longer text is assumed to be a page.
const MAX_LINE_LENGTH: usize = 500;

/// An error reported by a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The message as sent by the service; must be redacted before it is shown.
    pub(crate) text: String,
    /// Message, codes and parameter names in lower case, for searching.
    pub(crate) words: String,
    /// The HTTP status in the body, for errors that arrive with status 200.
    pub(crate) status: Option<u16>,
    /// The delay before a retry, if the body names one.
    pub(crate) wait: Option<Duration>,
    /// Set if the service aborted the generation. A retry costs as much as the first attempt.
    pub(crate) is_stop: bool,
    /// The model's reply, which the service withheld because it is not the JSON that was asked for.
    pub(crate) reply: Option<String>,
}

impl Complaint {
    /// Parses the body of an answer with an error status. An HTML page from a gateway is ignored, because the status
    /// says enough; a single line of text is used.
    pub(crate) fn from_body(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<FrameValue<'_>>(body) else { return Self::from_line(body) };
        let value = value.first().unwrap_or(&value);
        ["error", "message", "detail", "base_resp", "errors", "msg", "error_message", "Message", "title"]
            .iter()
            .find_map(|name| Self::from_member(value, name))
            .unwrap_or_default()
    }

    /// An error for a generation that the service aborted, with the service's explanation.
    pub(crate) fn stop(text: String) -> Self {
        Self { words: text.to_lowercase(), text, is_stop: true, ..Self::default() }
    }

    fn from_line(body: &[u8]) -> Self {
        let mut found = Self::default();
        let line = std::str::from_utf8(body).unwrap_or_default().trim();
        if line.len() <= MAX_LINE_LENGTH && !line.starts_with(['<', '{', '[', '"']) {
            found.say(line);
            found.words = found.words.to_lowercase();
        }
        found
    }

    /// Parses a frame of an answer with a good status; `None` if it is not an error.
    pub(crate) fn from_frame(frame: &FrameValue<'_>) -> Option<Self> {
        let status = frame.get("base_resp").and_then(|status| status.get("status_code")?.as_i64());
        if status.is_some_and(|code| code != 0) {
            return Self::from_member(frame, "base_resp");
        }
        let object = frame.get("object").or_else(|| frame.get("type"));
        if object.and_then(FrameValue::as_str) == Some("error") && frame.get("error").is_none() {
            return Self::from_member(frame, "message");
        }
        Self::from_member(frame, "error")
    }

    fn from_member(value: &FrameValue<'_>, name: &str) -> Option<Self> {
        let inner = value.get(name).filter(|inner| !is_nothing(inner))?;
        let mut found = Self::default();
        found.gather(inner);
        if !inner.is_object() {
            found.gather_codes(value);
        }
        found.words = found.words.to_lowercase();
        Some(found)
    }

    /// Collects the texts in strings, objects and lists.
    fn gather(&mut self, value: &FrameValue<'_>) {
        match value {
            FrameValue::Text(text) => {
                // Gateways often put the JSON of the upstream service into a string.
                match serde_json::from_str::<FrameValue<'_>>(text) {
                    Ok(inner @ (FrameValue::Object(_) | FrameValue::List(_))) => self.gather(&inner),
                    _ => self.say(text),
                }
            }
            FrameValue::List(list) => list.iter().take(8).for_each(|item| self.gather(item)),
            FrameValue::Object(_) => {
                for name in ["error", "message", "msg", "status_msg", "detail"] {
                    value.get(name).into_iter().for_each(|inner| self.gather(inner));
                }
                self.gather_codes(value);
            }
            FrameValue::Null | FrameValue::Bool(_) | FrameValue::Number(_) => {}
        }
    }

    fn say(&mut self, text: &str) {
        if !self.text.contains(text) {
            let gap = if self.text.is_empty() { "" } else { "; " };
            self.text.push_str(gap);
            self.text.push_str(text);
        }
        self.note(text);
    }

    fn note(&mut self, word: &str) {
        self.words.push_str(word);
        self.words.push('\n');
    }

    /// Collects the codes and names next to a message. They are searched, not shown.
    fn gather_codes(&mut self, value: &FrameValue<'_>) {
        // Groq checks the model's JSON itself, and sends the reply beside the error.
        if value.get("code").and_then(FrameValue::as_str) == Some("json_validate_failed") {
            let reply = value.get("failed_generation").and_then(FrameValue::as_str);
            self.reply = Some(reply.unwrap_or_default().to_owned());
        }
        for name in ["type", "code", "status", "param", "status_code", "reason"] {
            match value.get(name) {
                Some(FrameValue::Text(word)) => {
                    self.status = self.status.or(word.parse().ok().and_then(status_of_code));
                    self.note(word);
                }
                Some(FrameValue::Number(number)) => {
                    self.status = self.status.or(number.as_u64().and_then(status_of_code));
                    self.note(&number.to_string());
                }
                _ => {}
            }
        }
        for place in value.get("loc").into_iter().flat_map(FrameValue::as_list) {
            self.note(place.as_str().unwrap_or_default());
        }
        for detail in value.get("details").into_iter().flat_map(FrameValue::as_list) {
            self.note(detail.get("reason").and_then(FrameValue::as_str).unwrap_or_default());
            let delay = detail.get("retryDelay").and_then(FrameValue::as_str).and_then(seconds);
            self.wait = self.wait.or(delay);
        }
    }

    /// Returns whether any of these words occurs.
    pub(crate) fn mentions(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.words.contains(word))
    }

    /// Returns whether the prompt exceeds the model's context.
    pub(crate) fn is_overflow(&self) -> bool {
        // A schema can be too long as well, which is not an overflow of the prompt.
        let size = self.mentions(&["token", "length"]) && !self.mentions(&["schema"]);
        let counted = size && self.mentions(&["exceed", "too long", "too large"]);
        self.mentions(OVERFLOW) || (counted && self.mentions(&["context", "prompt", "input"]))
    }

    /// Returns the configuration problem (account, key or model name), if the error is one. A retry would not help.
    pub(crate) fn configuration(&self) -> Option<FailureKind> {
        CONFIGURATION.iter().find(|(_, words)| self.mentions(words)).map(|(kind, _)| *kind)
    }

    /// Returns whether a "not found" error means that the service does not know the model.
    pub(crate) fn is_about_model(&self) -> bool {
        self.mentions(&["model", "deployment", "no endpoints found"])
    }

    /// Returns whether the answer was cut off by the token limit.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.mentions(&["token limit reached", "tokens reached before", "output token limit"])
    }

    /// Returns whether the account has no credit left. Rate limits are often called quotas too, so only unambiguous
    /// phrases count.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.wait.is_none()
            && self.mentions(&["insufficient_quota", "insufficient balance", "credit balance"])
    }

    /// Returns whether a content filter of the service refused the prompt.
    pub(crate) fn is_refusal(&self) -> bool {
        self.mentions(&[
            "content_filter",
            "policy_violation",
            "bio_policy",
            "cyber_policy",
            "prompt was flagged",
            "data_inspection_failed",
            "datainspectionfailed",
            "input was flagged",
        ])
    }
}

/// Maps a numeric code to an HTTP status. Most services repeat the HTTP status; `MiniMax` uses its own numbers.
fn status_of_code(code: u64) -> Option<u16> {
    match code {
        400..=599 => u16::try_from(code).ok(),
        1002 | 1039 => Some(429),
        1004 | 2049 => Some(401),
        1008 => Some(402),
        2013 => Some(400),
        _ => None,
    }
}

/// Parses `23s` or `1.5s`, Google's duration format.
fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Phrases for a prompt that is too long, collected from real answers. No standard defines them.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "context length",
    "context window",
    "context size",
    "maximum context",
    "exceed_context_size",
    "prompt is too long",
    "input is too long",
    "string_above_max_length",
    "exceeds the maximum number of tokens",
    "exceeded model token limit",
    "range of input length",
    "reduce the length",
    "request too large",
    "request_too_large",
];

/// Phrases for a wrong configuration, for errors whose status does not show it. `Quota` comes first, because services
/// often report an exhausted account with a phrase for a refused key.
const CONFIGURATION: [(FailureKind, &[&str]); 3] = [
    (
        FailureKind::Quota,
        &["insufficient_quota", "insufficient balance", "credit balance is too low", "billing"],
    ),
    (
        FailureKind::Auth,
        &[
            "api_key_invalid",
            "api key not valid",
            "invalid_api_key",
            "invalid api key",
            "invalid_authentication",
            "authentication_error",
            "unauthenticated",
            "permission_error",
            "permission_denied",
            "account_deactivated",
            "user location",
        ],
    ),
    (
        FailureKind::ModelNotFound,
        &[
            "model_not_found",
            "not_found_error",
            "model does not exist",
            "model not exist",
            "unknown model",
            "invalid model",
            "is not a valid model",
            "model names are",
        ],
    ),
];

/// Returns whether an error member is empty. Some proxies send every member, set or not.
fn is_nothing(value: &FrameValue<'_>) -> bool {
    match value {
        FrameValue::Null | FrameValue::Bool(false) => true,
        FrameValue::Number(number) => number.as_f64() == Some(0.0),
        FrameValue::Text(text) => text.trim().is_empty(),
        FrameValue::List(items) => items.iter().all(is_nothing),
        FrameValue::Object(members) => members.iter().all(|(_, member)| is_nothing(member)),
        FrameValue::Bool(true) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(body: &str) -> Complaint {
        Complaint::from_body(body.as_bytes())
    }

    #[test]
    fn every_shape_is_read() {
        for (body, text) in [
            (r#"{"error":{"message":"m","type":"t","code":null,"param":"p"}}"#, "m"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, "m"),
            (r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#, "m"),
            (r#"{"error":"m"}"#, "m"),
            (r#"{"object":"error","message":"m","type":"invalid"}"#, "m"),
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"m","input":"PROMPT"}]}"#,
                "m",
            ),
            (r#"{"object":"error","message":{"detail":[{"msg":"m","loc":["body","x"]}]}}"#, "m"),
            (r#"{"base_resp":{"status_code":1004,"status_msg":"m"}}"#, "m"),
            (r#"{"error":{"message":"{\"error\":{\"message\":\"m\",\"code\":400}}"}}"#, "m"),
            (r#"{"message":"m","errors":[{"message":"n"}]}"#, "m"),
            ("<html>Bad gateway</html>", ""),
            ("404 page not found\n", "404 page not found"),
            (r#"{"error": "cut of"#, ""),
            (r#"{"__type":"ValidationException","Message":"m"}"#, "m"),
            (r#"{"code":1261,"msg":"m"}"#, "m"),
            (r#"{"type":"about:blank","title":"m","status":400}"#, "m"),
            ("", ""),
            ("{}", ""),
            ("null", ""),
            (r#"{"error":{"code":0,"message":""},"message":"m"}"#, "m"),
        ] {
            let found = complaint(body);
            assert_eq!(found.text, text, "{body}");
            assert!(!found.words.contains("PROMPT") && !found.text.contains("PROMPT"));
        }
    }

    #[test]
    fn codes_and_names_are_searched_but_not_shown() {
        let found =
            complaint(r#"{"error":{"message":"No","code":"Unsupported_Value","param":"temperature"}}"#);
        assert_eq!(found.text, "No");
        assert!(found.mentions(&["temperature"]) && found.mentions(&["unsupported_value"]));
    }

    #[test]
    fn google_says_how_long_to_wait() {
        let found = complaint(
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m",
            "details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"23.5s"}]}}"#,
        );
        assert_eq!(found.wait, Some(Duration::from_millis(23_500)));
        assert_eq!(found.status, Some(429));
    }

    #[test]
    fn too_long_prompts_in_the_words_of_each_service() {
        for text in [
            "This model's maximum context length is 8192 tokens. However, you requested 8203 tokens",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
            "Range of input length should be [1, 129024]",
            "Invalid request: Your request exceeded model token limit: 8192",
            "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
            "the request exceeds the available context size, try increasing it",
            "You passed 1015 input tokens. However, the model's context length is only 1024 tokens",
            "the input length exceeds the context length",
            "Trying to keep the first 111490 tokens when context the overflows. the model is loaded with context length",
        ] {
            let body = serde_json::json!({ "error": { "message": text } }).to_string();
            assert!(complaint(&body).is_overflow(), "{text}");
        }
        for text in [
            "max_tokens: 9000 > 8192, which is the maximum",
            "Rate limit exceeded",
            "Bad token",
            "Invalid schema for response_format: In context=('a'), the total length of names exceeds 15000",
        ] {
            let body = serde_json::json!({ "error": { "message": text } }).to_string();
            assert!(!complaint(&body).is_overflow(), "{text}");
        }
    }

    #[test]
    fn frames_complain_only_when_they_do() {
        let frame =
            |text: &str| Complaint::from_frame(&serde_json::from_str(text).unwrap()).map(|found| found.text);
        for nothing in ["null", "false", "\"\"", "{}", "[]", r#"{"code":0,"message":"","param":null}"#] {
            assert_eq!(frame(&format!(r#"{{"choices":[],"error":{nothing}}}"#)), None, "{nothing}");
        }
        assert_eq!(frame(r#"{"message":{"content":"hi"},"done":false}"#), None);
        assert_eq!(frame(r#"{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}"#), None);
        assert_eq!(frame(r#"{"base_resp":{"status_code":2013,"status_msg":"bad"}}"#).as_deref(), Some("bad"));
        assert_eq!(frame(r#"{"type":"error","error":{"message":"m"}}"#).as_deref(), Some("m"));
        assert_eq!(frame(r#"{"object":"error","message":"m","code":400}"#).as_deref(), Some("m"));
        assert_eq!(frame(r#"{"error":"m"}"#).as_deref(), Some("m"));
    }
}
