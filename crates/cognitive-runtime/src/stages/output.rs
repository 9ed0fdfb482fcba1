//! Stage 5: does the answer keep the contract? Repair once, judge again, apply the rules beyond the schema,
//! settle the risk, pass the tier's gate. (E2001, E3001, E3003–E3006)
//! All law comes from `cognitive-contract`; this file only fixes the order.

use cognitive_contract::module::output_code;
use cognitive_contract::repair::{self, Repair};
use cognitive_contract::tier::Gate;
use cognitive_contract::{
    Confidence, Enforcement, Envelope, ErrorCode, Failure, Module, Violation, Warning, risk, upgrade,
};
use serde_json::{Map, Value};

use super::parse::Draft;

/// What the runtime alone says about a run; a model's word on these is not kept.
const OWNED_BY_RUNTIME: [&str; 6] =
    ["trace_id", "model", "latency_ms", "processing_time_ms", "media_processed", "warnings"];

/// A judged answer: an envelope, and what was done to get there.
#[derive(Debug)]
pub struct Answer {
    /// Success, a failure of the model's own, or a failure that we found.
    pub outcome: Result<Envelope, Failure>,
    /// What repair changed.
    pub repairs: Vec<Repair>,
    /// Notices for `meta.warnings`.
    pub warnings: Vec<Warning>,
}

/// Judges an answer.
#[must_use]
pub fn judge(module: &Module, draft: Draft, enforcement: Enforcement, gate: Gate) -> Answer {
    let Draft { object: original, mut warnings } = draft;
    let mut repairs = Vec::new();
    let outcome = settle(module, &original, enforcement, &mut repairs, &mut warnings)
        .and_then(|envelope| pass_gate(module, gate, envelope, &original, &mut warnings));
    Answer { outcome, repairs, warnings }
}

fn settle(
    module: &Module,
    original: &Map<String, Value>,
    enforcement: Enforcement,
    repairs: &mut Vec<Repair>,
    warnings: &mut Vec<Warning>,
) -> Result<Envelope, Failure> {
    let mut reply = current_shape(module, original, warnings)?;
    let mut found = module.envelope_violations(&reply, enforcement);
    let overflows = |found: &[Violation]| found.iter().any(|each| each.code == ErrorCode::OverflowLimit);
    // Too many insights cannot be repaired, and their code comes before all others.
    if !found.is_empty() && !overflows(&found) {
        if let Value::Object(members) = &mut reply {
            *repairs = repair::repair(members, &found, module.manifest.meta.risk_rule);
        }
        if !repairs.is_empty() {
            found = module.envelope_violations(&reply, enforcement);
        }
    }
    if found.is_empty() && enforcement == Enforcement::Full {
        found = module.rule_violations(&reply);
    }
    if !found.is_empty() {
        return Err(refused(module, original, &found));
    }
    Envelope::from_checked(reply).ok_or_else(|| refused(module, original, &[]))
}

/// Brings the answer into the shape `{ok, meta, …}` where the module lets older shapes through.
fn current_shape(
    module: &Module,
    original: &Map<String, Value>,
    warnings: &mut Vec<Warning>,
) -> Result<Value, Failure> {
    let mut reply = original.clone();
    if let Some(Value::Object(meta)) = reply.get_mut("meta") {
        for member in OWNED_BY_RUNTIME {
            meta.shift_remove(member);
        }
    }
    // A current envelope that only lacks `meta` is repaired; what has another shape is wrapped.
    if module.manifest.compat.wraps() && !upgrade::is_current(&reply) {
        require_promises(module, &reply)?;
        reply = upgrade::wrap(reply);
        warnings.push(Warning::new("DEPRECATED", "the model answered in the v2.1 format; it was wrapped"));
    }
    Ok(Value::Object(reply))
}

/// v1 modules could promise a confidence of their own; a made-up 0.5 would break that promise silently.
fn require_promises(module: &Module, reply: &Map<String, Value>) -> Result<(), Failure> {
    let payload = reply.get("data").and_then(Value::as_object).unwrap_or(reply);
    let is_failure = reply.get("ok") == Some(&Value::Bool(false));
    let confidence = payload.get("confidence").and_then(Value::as_f64).and_then(Confidence::new);
    if module.manifest.constraints.require_confidence && !is_failure && confidence.is_none() {
        let path = if reply.contains_key("data") { "/data/confidence" } else { "/confidence" };
        let message = "the module promises a confidence from 0 to 1";
        let violation =
            Violation::new(path, ErrorCode::SchemaValidationFailed, "require_confidence", message);
        return Err(refused(module, reply, &[violation]));
    }
    Ok(())
}

fn refused(module: &Module, original: &Map<String, Value>, found: &[Violation]) -> Failure {
    Failure::of_violations(output_code(found), found)
        .with_partial(module.partial_data(original))
        .suggest("Run it again, or see `error.details.violations` for what the model got wrong")
}

fn pass_gate(
    module: &Module,
    gate: Gate,
    mut envelope: Envelope,
    original: &Map<String, Value>,
    warnings: &mut Vec<Warning>,
) -> Result<Envelope, Failure> {
    if let Some(data) = envelope.data() {
        let settled = risk::settle(&envelope.meta().risk, data, module.manifest.meta.risk_rule);
        envelope.meta_mut().risk = settled;
    }
    let tier = module.manifest.tier;
    if let Some(refusal) = gate.refusal(tier, &envelope) {
        return Err(refusal.with_partial(module.partial_data(original)));
    }
    warnings.extend(gate.warning(tier, &envelope));
    Ok(envelope)
}
