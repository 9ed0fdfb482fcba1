//! Converts answers of old formats: a v2.1 payload becomes an envelope, a v2.1 failure stays a failure.
//! Pure: validates nothing. The usual checks follow.

use serde_json::{Map, Value, json};

use crate::envelope::mistyped_ok;
use crate::manifest::RiskRule;
use crate::meta::{Confidence, EXPLAIN_LIMIT};
use crate::risk;
use crate::risk_level::Risk;
use crate::text;

/// The length of a rationale that becomes `explain`.
pub const EXPLAIN_FROM_RATIONALE: usize = 200;
/// The text of `explain` when nothing else is known.
pub const NO_EXPLANATION: &str = "No explanation provided";

/// Returns whether an answer already has the current shape: `ok` and a `meta` object.
#[must_use]
pub fn is_current(reply: &Map<String, Value>) -> bool {
    reply.get("ok").is_some_and(Value::is_boolean) && reply.get("meta").is_some_and(Value::is_object)
}

/// Wraps an answer of v2.1 or older. An answer in the current shape comes back as it is, and so does one whose `ok` is not
/// a boolean: it is of no version, and wrapping would turn its failure into a success. (D-19)
#[must_use]
pub fn wrap(reply: Map<String, Value>) -> Map<String, Value> {
    if is_current(&reply) || mistyped_ok(&reply).is_some() {
        return reply;
    }
    // A failure stays a failure, even without an `error`; validation reports what is missing.
    if reply.get("ok") == Some(&Value::Bool(false)) {
        return wrap_failure(reply);
    }
    // An answer with both data and an error contradicts itself. It is not resolved here.
    let contradicts = reply.get("error").is_some_and(|error| !error.is_null());
    let is_envelope = reply.get("data").is_some_and(Value::is_object);
    if contradicts && is_envelope {
        return reply;
    }
    let stated = reply.get("meta").and_then(Value::as_object).filter(|_| is_envelope).cloned();
    let payload = match reply.get("data") {
        Some(Value::Object(data)) => data.clone(),
        _ => reply,
    };
    wrap_payload(payload, stated)
}

fn wrap_failure(mut reply: Map<String, Value>) -> Map<String, Value> {
    let message = reply.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
    let explain = message.map_or(NO_EXPLANATION, |message| text::cut(message, EXPLAIN_LIMIT));
    let meta = json!({ "confidence": 0.0, "risk": Risk::High.word(), "explain": explain });
    let mut wrapped = Map::new();
    wrapped.insert("ok".to_owned(), Value::Bool(false));
    wrapped.insert("meta".to_owned(), meta);
    for name in ["error", "partial_data"] {
        if let Some(value) = reply.shift_remove(name) {
            wrapped.insert(name.to_owned(), value);
        }
    }
    wrapped
}

/// Builds `meta` from the payload. Members that the model stated in its own `meta` remain.
fn wrap_payload(payload: Map<String, Value>, stated: Option<Map<String, Value>>) -> Map<String, Value> {
    let risk = risk::aggregate(&payload, RiskRule::MaxChangesRisk).unwrap_or(Risk::Medium);
    let mut meta = stated.unwrap_or_default();
    meta.entry("confidence").or_insert_with(|| confidence_of(&payload));
    meta.entry("risk").or_insert_with(|| json!(risk.word()));
    meta.entry("explain").or_insert_with(|| json!(explain_of(&payload)));
    let mut wrapped = Map::new();
    wrapped.insert("ok".to_owned(), Value::Bool(true));
    wrapped.insert("meta".to_owned(), Value::Object(meta));
    wrapped.insert("data".to_owned(), Value::Object(payload));
    wrapped
}

/// Returns the confidence that a payload states, unchanged and unchecked; 0.5 if it states none. (COMPAT-004,
/// D-11)
#[must_use]
pub fn confidence_of(payload: &Map<String, Value>) -> Value {
    let stated = payload.get("confidence").filter(|stated| !stated.is_null());
    stated.cloned().unwrap_or_else(|| json!(Confidence::DEFAULT))
}

/// The start of the rationale, or a fixed phrase. A v1 rationale may be an object; its JSON text counts then.
#[must_use]
pub fn explain_of(payload: &Map<String, Value>) -> String {
    let rationale = match payload.get("rationale") {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => String::new(),
    };
    if rationale.is_empty() {
        return NO_EXPLANATION.to_owned();
    }
    text::cut(&rationale, EXPLAIN_FROM_RATIONALE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(reply: Value) -> Value {
        Value::Object(wrap(reply.as_object().unwrap().clone()))
    }

    #[test]
    fn compat_002_the_current_shape_is_left_alone() {
        let reply = json!({ "ok": true, "meta": {}, "anything": 1 });
        assert_eq!(wrapped(reply.clone()), reply);
    }

    #[test]
    fn compat_003_to_007_confidence_risk_and_explain_come_from_the_payload() {
        let payload = json!({ "rationale": "because", "confidence": 0.8, "changes": [{ "risk": "high" }] });
        let expected = json!({
            "ok": true, "meta": { "confidence": 0.8, "risk": "high", "explain": "because" }, "data": payload,
        });
        assert_eq!(wrapped(payload.clone()), expected);
        assert_eq!(wrapped(json!({ "ok": true, "data": payload })), expected);
        assert_eq!(
            wrapped(json!({ "a": 1 }))["meta"],
            json!({ "confidence": 0.5, "risk": "medium", "explain": NO_EXPLANATION })
        );
    }

    #[test]
    fn compat_008_a_failure_stays_a_failure() {
        let value = wrapped(
            json!({ "ok": false, "error": { "code": "X", "message": "m" }, "partial_data": { "a": 1 }, "n": 1 }),
        );
        assert_eq!(
            value,
            json!({
                "ok": false, "meta": { "confidence": 0.0, "risk": "high", "explain": "m" },
                "error": { "code": "X", "message": "m" }, "partial_data": { "a": 1 },
            })
        );
    }

    #[test]
    fn compat_008_no_shape_turns_a_failure_into_a_success() {
        for reply in [
            json!({ "ok": false, "data": { "rationale": "refused", "confidence": 0.95 } }),
            json!({ "ok": false, "rationale": "refused" }),
            json!({ "ok": true, "data": { "rationale": "r" }, "error": { "code": "X", "message": "m" } }),
        ] {
            let value = wrapped(reply.clone());
            assert!(value["ok"] == false || value.get("error").is_some(), "{reply} became {value}");
        }
        let stated = wrapped(json!({ "meta": { "risk": "high" }, "data": { "rationale": "r" } }));
        assert_eq!(stated["meta"], json!({ "risk": "high", "confidence": 0.5, "explain": "r" }));
    }

    #[test]
    fn an_ok_that_is_not_a_boolean_is_wrapped_by_nothing_d_19_env_007() {
        for ok in [json!("false"), json!("true"), json!(0), json!(1), json!(null), json!([]), json!({})] {
            for mut reply in [
                json!({ "rationale": "r", "confidence": 0.97 }),
                json!({ "data": { "rationale": "r" } }),
                json!({ "meta": { "confidence": 0.97, "risk": "none", "explain": "e" }, "data": { "rationale": "r" } }),
                json!({ "error": { "code": "X", "message": "m" }, "rationale": "r" }),
            ] {
                reply["ok"] = ok.clone();
                assert_eq!(wrapped(reply.clone()), reply);
            }
        }
        assert_eq!(wrapped(json!({ "rationale": "r" }))["ok"], true, "an absent `ok` is the v2.1 case");
    }

    #[test]
    fn compat_006_013_long_and_structured_rationales() {
        let long = wrapped(json!({ "rationale": "😀".repeat(250) }));
        assert_eq!(long["meta"]["explain"], "😀".repeat(200));
        let object = wrapped(json!({ "rationale": { "decisions": [1] } }));
        assert_eq!(object["meta"]["explain"], r#"{"decisions":[1]}"#);
    }
}
