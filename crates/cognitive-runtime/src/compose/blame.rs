//! The party that is blamed when a part refuses its input. (D-21) The message of a part blames its caller, and the
//! caller of a part is the composition: only the origin of the refused members tells who caused it.

use std::borrow::Cow;

use cognitive_contract::code::ErrorLayer;
use cognitive_contract::compose::MemberOrigin;
use cognitive_contract::{ErrorCode, Failure};
use serde_json::{Value, json};

use super::child::FailedChild;

impl FailedChild {
    /// Blames the origin of the refused members, if the part refused its input. `origin` finds that of a JSON pointer
    /// into the input; an empty pointer is the whole input.
    pub(crate) fn with_blame_at<'o>(self, origin: impl Fn(&str) -> MemberOrigin<'o>) -> Self {
        let Self { name, failure } = self;
        let code = failure.code();
        // E1000 is about text that is not JSON. The input of a part is JSON, so a model wrote that text.
        if code.layer() != ErrorLayer::Input || code == ErrorCode::ParseError {
            return Self { name, failure };
        }
        let refused = refused_pointers(&failure);
        let origins: Vec<(&str, MemberOrigin<'_>)> = refused.iter().map(|at| (&**at, origin(at))).collect();
        let part = origins.iter().find_map(|(at, origin)| match origin {
            MemberOrigin::Part(from) => Some((*at, *from)),
            MemberOrigin::Caller(_) | MemberOrigin::Author => None,
        });
        let message = failure.message();
        let violations = failure.details().get("violations").cloned();
        let with_violations = |failure: Failure| match &violations {
            Some(violations) => failure.with_detail("violations", violations.clone()),
            None => failure,
        };
        let failure = if let Some((at, from)) = part {
            let why = format!("it refused the answer of `{from}`: {message}");
            with_violations(Failure::new(ErrorCode::ConstraintViolation, why))
                .with_detail("from_part", json!(from))
                .with_detail("to_part", json!(name))
                .with_detail("pointer", json!(at))
                .suggest(format!("Narrow `data` in the schema of `{from}` to what `{name}` accepts"))
        } else if let Some((at, _)) = origins.iter().find(|(_, origin)| *origin == MemberOrigin::Author) {
            let why = format!("it refused the input that the composition sends: {message}");
            with_violations(Failure::module_at_fault(why))
                .with_detail("to_part", json!(name))
                .with_detail("pointer", json!(at))
                .suggest(format!("Check what `module.yaml` or `prompt.md` passes to `{name}`"))
        } else {
            in_caller_terms(failure, &origins)
        };
        Self { name, failure }
    }
}

/// The pointers of the refused members.
fn refused_pointers(failure: &Failure) -> Vec<Cow<'static, str>> {
    let details = failure.details();
    let text = |value: &Value| value.as_str().map(|text| Cow::Owned(text.to_owned()));
    let violations = details.get("violations").and_then(Value::as_array).into_iter().flatten();
    let mut found: Vec<Cow<'static, str>> = violations.filter_map(|each| text(each.get("path")?)).collect();
    if found.is_empty() {
        // A medium.
        found.extend(details.get("path").and_then(text).filter(|path| path.starts_with('/')));
    }
    if found.is_empty() {
        found.push(Cow::Borrowed(""));
    }
    found
}

/// The violations with pointers into the input of the composition.
fn in_caller_terms(failure: Failure, origins: &[(&str, MemberOrigin<'_>)]) -> Failure {
    let Some(Value::Array(mut violations)) = failure.details().get("violations").cloned() else {
        return failure;
    };
    for (violation, (_, origin)) in violations.iter_mut().zip(origins) {
        if let (Some(path), MemberOrigin::Caller(at)) = (violation.get_mut("path"), origin) {
            *path = json!(at);
        }
    }
    failure.with_detail("violations", Value::Array(violations))
}
