//! Builds the `_context` of an input from raw application data. The application's data may be untidy; the module gets
//! clean context. Sends nothing, and declares nothing on the module's behalf.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::MEMBER;
use crate::envelope::Envelope;

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Neither of them: a summary or a note.
    System,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The author of the turn.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The time, as of RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

impl Turn {
    /// A turn without a timestamp.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), timestamp: None }
    }

    /// Sets the timestamp, as of RFC 3339.
    #[must_use]
    pub fn at(mut self, timestamp: impl Into<String>) -> Self {
        self.timestamp = Some(timestamp.into());
        self
    }
}

/// Builds context from raw data.
///
/// ```
/// use cognitive_contract::context::{ContextBuilder, Role, Turn};
/// use serde_json::json;
///
/// let input = ContextBuilder::new()
///     .conversation(&[Turn::new(Role::User, "Review the login function")])
///     .user_profile(json!({ "expertise_level": "expert" }))
///     .session_state(json!({ "issues_found": 2 }))
///     .into_input(json!({ "code": "# Fix the SQL injection" }));
/// assert_eq!(input["_context"]["session_state"]["issues_found"], 2);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it builds"]
pub struct ContextBuilder {
    max_turns: usize,
    context: Map<String, Value>,
}

impl Default for ContextBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl ContextBuilder {
    /// A builder that keeps the last ten turns of a conversation.
    pub fn new() -> Self {
        Self { max_turns: 10, context: Map::new() }
    }

    /// Sets how many of the last turns later calls keep; at least one.
    pub fn max_turns(mut self, turns: usize) -> Self {
        self.max_turns = turns.max(1);
        self
    }

    /// Adds the conversation without its oldest turns.
    pub fn conversation(self, turns: &[Turn]) -> Self {
        let (_, recent) = turns.split_at(turns.len().saturating_sub(self.max_turns));
        let recent = json!(recent);
        self.with("conversation_history", recent)
    }

    /// Adds the conversation, with the oldest turns replaced by one turn that `summarise` writes. Calls it only if
    /// turns are left out.
    pub fn summarised_conversation(self, turns: &[Turn], summarise: impl FnOnce(&[Turn]) -> String) -> Self {
        if turns.len() <= self.max_turns {
            return self.conversation(turns);
        }
        let (older, recent) = turns.split_at(turns.len().saturating_sub(self.max_turns - 1));
        let summary = Turn::new(Role::System, summarise(older));
        let kept: Vec<&Turn> = [&summary].into_iter().chain(recent).collect();
        let kept = json!(kept);
        self.with("conversation_history", kept)
    }

    /// Adds facts about the user.
    pub fn user_profile(self, profile: Value) -> Self {
        self.with("user_profile", profile)
    }

    /// Adds the state of the session.
    pub fn session_state(self, state: Value) -> Self {
        self.with("session_state", state)
    }

    /// Adds the answer of an earlier module. A failure has no result and changes nothing.
    pub fn previous_result(self, module: &str, envelope: &Envelope) -> Self {
        match envelope.data() {
            Some(data) => {
                let result = json!({ "module": module, "meta": envelope.meta(), "data": data });
                self.with("previous_result", result)
            }
            None => self,
        }
    }

    /// Adds context of any type; a later value of the same type replaces the earlier one.
    pub fn with(mut self, kind: &str, value: Value) -> Self {
        self.context.insert(kind.to_owned(), value);
        self
    }

    /// Returns the context by type.
    #[must_use]
    pub fn build(self) -> Map<String, Value> {
        self.context
    }

    /// Adds this context to an input object. Other values are returned unchanged; a module rejects them anyway.
    #[must_use]
    pub fn into_input(self, mut input: Value) -> Value {
        if let Value::Object(members) = &mut input {
            members.insert(MEMBER.to_owned(), Value::Object(self.context));
        }
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(count: usize) -> Vec<Turn> {
        (0..count).map(|number| Turn::new(Role::User, number.to_string())).collect()
    }

    fn contents(context: &Map<String, Value>) -> Vec<&str> {
        let turns = context["conversation_history"].as_array().unwrap();
        turns.iter().map(|turn| turn["content"].as_str().unwrap()).collect()
    }

    #[test]
    fn ctx_060_the_last_ten_of_twelve_messages_are_kept() {
        let context = ContextBuilder::new()
            .conversation(&turns(12))
            .user_profile(json!({ "expertise_level": "expert" }))
            .session_state(json!({ "n": 1 }))
            .build();
        assert_eq!(contents(&context), (2..12).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(
            context.keys().collect::<Vec<_>>(),
            ["conversation_history", "user_profile", "session_state"]
        );
    }

    // CTX-013: omitted turns can be summarised.
    #[test]
    fn ctx_013_older_turns_become_a_summary() {
        let builder = || ContextBuilder::new().max_turns(3);
        let sum = |older: &[Turn]| format!("{} earlier turns", older.len());
        let context = builder().summarised_conversation(&turns(5), sum).build();
        assert_eq!(contents(&context), ["3 earlier turns", "3", "4"]);
        assert_eq!(context["conversation_history"][0]["role"], "system");
        let short =
            builder().summarised_conversation(&turns(3), |_| unreachable!("nothing to sum up")).build();
        assert_eq!(contents(&short), ["0", "1", "2"]);
    }

    #[test]
    fn ctx_015_a_result_is_handed_on_with_the_module_it_comes_from() {
        let answer = json!({
            "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        });
        let envelope = Envelope::from_value(answer).unwrap();
        let context = ContextBuilder::new().previous_result("code-analyzer", &envelope).build();
        let result = &context["previous_result"];
        assert_eq!((&result["module"], &result["data"]["rationale"]), (&json!("code-analyzer"), &json!("r")));
        assert_eq!(result["meta"]["risk"], "low");
    }

    #[test]
    fn a_time_is_told_only_if_there_is_one() {
        let turn = Turn::new(Role::Assistant, "a");
        assert_eq!(json!(turn), json!({ "role": "assistant", "content": "a" }));
        assert_eq!(json!(turn.at("2026-02-01T10:00:05Z"))["timestamp"], "2026-02-01T10:00:05Z");
    }
}
