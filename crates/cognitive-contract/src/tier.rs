//! The gate at the end of a run: an `exec` module passes only with high confidence and low risk.
//! Checks finished successes; never changes one.

use serde_json::json;

use crate::code::ErrorCode;
use crate::envelope::Envelope;
use crate::failure::Failure;
use crate::manifest::Tier;
use crate::meta::{Confidence, RiskValue, Warning};
use crate::risk_level::Risk;

/// The operator's thresholds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// An `exec` answer with less confidence fails with E2001.
    pub exec_min_confidence: Confidence,
    /// A `decision` answer with less confidence carries a warning.
    pub decision_doubt: Confidence,
}

impl Default for Gate {
    fn default() -> Self {
        let of = |value| Confidence::new(value).unwrap_or(Confidence::DEFAULT);
        Self { exec_min_confidence: of(0.9), decision_doubt: of(0.5) }
    }
}

impl Gate {
    /// Returns the failure of a success that may not pass; `None` lets it pass. Checks confidence before risk.
    #[must_use]
    pub fn refusal(&self, tier: Tier, envelope: &Envelope) -> Option<Failure> {
        if tier != Tier::Exec || !envelope.ok() {
            return None;
        }
        let meta = envelope.meta();
        if meta.confidence < self.exec_min_confidence {
            let needed = self.exec_min_confidence.get();
            let message =
                format!("confidence {} is below {needed}, the minimum of tier `exec`", meta.confidence.get());
            return Some(
                Failure::new(ErrorCode::LowConfidence, message)
                    .with_model_view(meta.confidence, meta.risk.level())
                    .with_detail("required_confidence", json!(needed))
                    .suggest("Send more context, or let a person decide on `partial_data`"),
            );
        }
        match &meta.risk {
            RiskValue::Level(Risk::None | Risk::Low) => None,
            RiskValue::Level(risk) => Some(too_risky(&format!("risk `{risk}`"))),
            RiskValue::Custom(_) => Some(too_risky("a custom risk")),
        }
    }

    /// Returns a warning for a success that a person should review.
    #[must_use]
    pub fn warning(&self, tier: Tier, envelope: &Envelope) -> Option<Warning> {
        let confidence = envelope.meta().confidence;
        let doubtful = tier == Tier::Decision && envelope.ok() && confidence < self.decision_doubt;
        doubtful.then(|| {
            let message = format!("confidence {} is below {}", confidence.get(), self.decision_doubt.get());
            Warning::new(ErrorCode::LowConfidence.number(), message)
        })
    }
}

fn too_risky(what: &str) -> Failure {
    let message = format!("tier `exec` allows only risk `none` or `low`, the answer has {what}");
    Failure::new(ErrorCode::ConstraintViolation, message).suggest("Let a person decide on `partial_data`")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn success(confidence: f64, risk: Value) -> Envelope {
        Envelope::from_checked(json!({
            "ok": true, "meta": { "confidence": confidence, "risk": risk, "explain": "e" }, "data": { "rationale": "r" },
        }))
        .unwrap()
    }

    fn refusal(tier: Tier, confidence: f64, risk: Value) -> Option<ErrorCode> {
        Gate::default().refusal(tier, &success(confidence, risk)).map(|failure| failure.code())
    }

    #[test]
    fn tier_002_exactly_the_threshold_passes() {
        assert_eq!(refusal(Tier::Exec, 0.9, json!("low")), None);
        assert_eq!(refusal(Tier::Exec, 0.89, json!("none")), Some(ErrorCode::LowConfidence));
    }

    #[test]
    fn tier_003_meta_004_only_small_known_risks_pass_exec() {
        assert_eq!(refusal(Tier::Exec, 1.0, json!("medium")), Some(ErrorCode::ConstraintViolation));
        assert_eq!(
            refusal(Tier::Exec, 1.0, json!({ "custom": "legal", "reason": "r" })),
            Some(ErrorCode::ConstraintViolation)
        );
        assert_eq!(refusal(Tier::Exec, 0.1, json!("high")), Some(ErrorCode::LowConfidence));
    }

    // EXT-CONF
    #[test]
    fn tier_004_other_tiers_have_no_gate_and_doubt_is_only_a_warning() {
        assert_eq!(refusal(Tier::Decision, 0.1, json!("high")), None);
        assert_eq!(refusal(Tier::Exploration, 0.0, json!("high")), None);
        let warning = Gate::default().warning(Tier::Decision, &success(0.3, json!("low")));
        assert_eq!(warning.unwrap().code, "E2001");
        assert_eq!(Gate::default().warning(Tier::Exploration, &success(0.3, json!("low"))), None);
    }
}
