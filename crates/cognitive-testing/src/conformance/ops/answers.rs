//! Operations on answers: envelopes, error codes and streams of chunks.

use cognitive_contract::code::canonical;
use cognitive_contract::envelope::{self, Strictness};
use cognitive_contract::module::output_code;
use cognitive_contract::{Enforcement, ErrorCode, Module, Violation, stream, wrap_v21};
use serde_json::{Value, json};

use super::{Arguments, Outcome, broken_vector, files, json_of};

/// Checks a finished envelope, against the common contract or that of a module.
pub(super) fn validate_envelope(given: Arguments<'_>) -> Outcome {
    let value = given.value("envelope")?;
    let (found, code) = if given.get("module").is_some() {
        let found = by_module(&files::module(given.child("module")?)?, value);
        let code = output_code(&found);
        (found, code)
    } else {
        let found = envelope::check(value, Strictness::default());
        let code = common_code(&found);
        (found, code)
    };
    Ok(if found.is_empty() { json!({ "valid": true }) } else { json!({ "valid": false, "code": code }) })
}

/// The violations that a run would find, in the order in which it checks.
fn by_module(module: &Module, value: &Value) -> Vec<Violation> {
    let found = module.envelope_violations(value, Enforcement::Full);
    if found.is_empty() { module.rule_violations(value) } else { found }
}

/// The code without a module, where only the contract applies: E3001 for a violation, E3004 for too many
/// insights.
fn common_code(found: &[Violation]) -> ErrorCode {
    let overflows = found.iter().any(|violation| violation.code == ErrorCode::OverflowLimit);
    if overflows { ErrorCode::OverflowLimit } else { ErrorCode::SchemaValidationFailed }
}

/// Converts a v2.1 answer into the current envelope.
pub(super) fn wrap_v21(given: Arguments<'_>) -> Outcome {
    Ok(json!({ "envelope": wrap_v21::wrap(given.object("response")?.clone()) }))
}

/// Normalizes a code in any spelling to its number.
pub(super) fn normalize_code(given: Arguments<'_>) -> Outcome {
    Ok(json!({ "code": canonical(given.text("code")?) }))
}

/// Returns the catalogue entry of a code.
pub(super) fn error_info(given: Arguments<'_>) -> Outcome {
    let text = given.text("code")?;
    let code =
        ErrorCode::find(text).ok_or_else(|| broken_vector(format!("the catalogue has no code `{text}`")))?;
    Ok(json!({ "name": code.name(), "recoverable": code.recoverable() }))
}

/// Checks a list of chunks against the rules for producers.
pub(super) fn check_stream(given: Arguments<'_>) -> Outcome {
    Ok(json!({ "valid": stream::check_log(given.list("chunks")?).is_empty() }))
}

/// Returns the capabilities that this runtime declares.
#[expect(clippy::unnecessary_wraps, reason = "all operations are in one table")]
pub(super) fn get_capabilities(_: Arguments<'_>) -> Outcome {
    let mut capabilities = cognitive_contract::Capabilities::default();
    capabilities.take_media(&cognitive_contract::media::MediaLimits::default());
    Ok(json!({ "capabilities": cognitive_runtime::declaration(&capabilities) }))
}

/// Assembles the envelope from chunks, as a reader does.
pub(super) fn assemble_stream(given: Arguments<'_>) -> Outcome {
    let envelope = stream::assemble(given.list("chunks")?.iter().cloned());
    Ok(json!({ "envelope": json_of(&envelope)? }))
}
