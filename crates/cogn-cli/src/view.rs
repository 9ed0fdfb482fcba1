//! An envelope as a card for people: what came out, how sure, how risky, why.

use cogn::embedded;
use cognitive_contract::{Envelope, Outcome, Risk};
use serde_json::Value;

use crate::printer::{BAD, DOUBT, FAINT, GOOD, HEAD, NOTE};

/// The card, line by line.
pub(crate) fn card(module: &str, envelope: &Envelope) -> Vec<String> {
    let meta = envelope.meta();
    let risk = match meta.risk.level() {
        Risk::None | Risk::Low => GOOD,
        Risk::Medium => DOUBT,
        Risk::High => BAD,
    };
    let word = meta.risk.level().word();
    // No percentage: that would look like a probability of being right, which it is not. (META-002)
    let confidence = meta.confidence.get();
    let mut lines = vec![
        format!("{HEAD}{module}{HEAD:#}  {risk} risk {word} {risk:#}  confidence {confidence:.2}"),
        meta.explain().to_owned(),
    ];
    if embedded::answered(envelope) {
        lines.push(format!("{FAINT}{}{FAINT:#}", embedded::HONESTY));
    }
    match envelope.outcome() {
        Outcome::Success { data } => {
            for (name, value) in data.iter().filter(|(name, _)| *name != "rationale" && *name != "extensions")
            {
                lines.push(format!("\n{NOTE}{name}{NOTE:#}"));
                lines.extend(indented(value));
            }
            if let Some(rationale) = data.get("rationale") {
                lines.push(format!("\n{FAINT}rationale{FAINT:#}"));
                lines.extend(indented(rationale));
            }
            let insights = data.get("extensions").and_then(|extensions| extensions.get("insights"));
            for insight in insights.and_then(Value::as_array).into_iter().flatten() {
                let text = insight.get("text").and_then(Value::as_str).unwrap_or_default();
                lines.push(format!("\n{DOUBT}insight{DOUBT:#} {text}"));
            }
        }
        Outcome::Failure { error, .. } => {
            lines.push(format!("\n{BAD}{}{BAD:#} {}", error.code(), error.message()));
            if let Some(hint) = error.members().get("suggestion").and_then(Value::as_str) {
                lines.push(format!("{NOTE}hint{NOTE:#}: {hint}"));
            }
        }
    }
    for warning in meta.extra.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        let message = warning.get("message").and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("{FAINT}note: {message}{FAINT:#}"));
    }
    lines
}

fn indented(value: &Value) -> Vec<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    text.lines().map(|line| format!("  {line}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn w10_meta_002_confidence_is_no_percentage() {
        let envelope = Envelope::from_value(json!({
            "ok": true, "meta": { "confidence": 0.82, "risk": "low", "explain": "e" }, "data": { "rationale": "r" },
        }));
        let text = card("m", &envelope.unwrap()).join("\n");
        assert!(text.contains("confidence 0.82") && !text.contains('%'), "{text}");
    }

    #[test]
    fn the_card_says_who_does_not_reason() {
        let card_of = |model: &str| {
            let envelope = Envelope::from_value(json!({
                "ok": true,
                "meta": { "confidence": 0.9, "risk": "low", "explain": "e", "model": model },
                "data": { "rationale": "r" },
            }));
            card("m", &envelope.unwrap()).join("\n")
        };
        assert!(card_of("embedded/smollm2-135m-instruct-q4_1").contains("it does not reason"));
        assert!(!card_of("openai/gpt").contains("it does not reason"));
        assert!(!card_of("embeddedish/x").contains("it does not reason"));
    }
}
