//! Insights: observations of a model beyond its schema, in `data.extensions.insights`, up to a limit.
//! Drops nothing: too many insights fail the run with E3004.

use cognitive_schema::{MAX_VIOLATIONS, OverflowMembers};
use serde_json::{Map, Value};

use crate::code::ErrorCode;
use crate::text::pointer;
use crate::violation::Violation;

const EXTENSIONS: &str = "/data/extensions";
const INSIGHTS: &str = "/data/extensions/insights";

/// The members of an insight in every module.
const MEMBERS: [&str; 3] = ["text", "suggested_mapping", "evidence"];

/// The rule of [`undeclared_members`]. The repair pass drops what breaks it.
pub const UNDECLARED: &str = "undeclared";

/// The most insights that any manifest may allow.
pub const MAX_LIMIT: u64 = 20;

/// The limit on insights, and whether each must name its mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// True if insights are allowed.
    pub enabled: bool,
    /// The maximum number of insights.
    pub max_items: u64,
    /// True if `suggested_mapping` is required.
    pub mapping_required: bool,
}

impl Limit {
    /// The limit without a module.
    pub const WIDEST: Self = Self { enabled: true, max_items: MAX_LIMIT, mapping_required: true };
}

/// Returns the violations of the insights in a payload. Paths are relative to the whole envelope.
#[must_use]
pub fn check(data: &Map<String, Value>, limit: Limit) -> Vec<Violation> {
    let Some(insights) = data.get("extensions").and_then(|extensions| extensions.get("insights")) else {
        return Vec::new();
    };
    let Value::Array(insights) = insights else {
        return vec![shape(INSIGHTS, "expected a list")];
    };
    let mut found = Vec::new();
    if !limit.enabled && !insights.is_empty() {
        found.push(too_many("this module does not allow insights"));
    } else if insights.len() as u64 > limit.max_items {
        let message = format!("expected at most {} insights, found {}", limit.max_items, insights.len());
        found.push(too_many(&message));
    }
    for (index, insight) in insights.iter().enumerate().take(MAX_VIOLATIONS) {
        check_insight(index, insight, limit.mapping_required, &mut found);
    }
    found
}

/// Returns the members below `extensions` that neither the envelope nor the module's schema declares: those of an insight,
/// those beside the insights, and a null instead of them. (D-29)
#[must_use]
pub fn undeclared_members(data: &Map<String, Value>, declared: &OverflowMembers) -> Vec<Violation> {
    let found = |path: String| {
        let message = "expected no member that the schema does not declare";
        Violation::new(path, ErrorCode::SchemaValidationFailed, UNDECLARED, message)
    };
    let Some(extensions) = data.get("extensions") else { return Vec::new() };
    let Value::Object(extensions) = extensions else {
        let is_stray = extensions.is_null() && !declared.may_be_null;
        return is_stray.then(|| found(EXTENSIONS.to_owned())).into_iter().collect();
    };
    let beside = extensions.keys().filter(|name| *name != "insights" && !declared.extensions.contains(name));
    let mut all: Vec<Violation> =
        beside.take(MAX_VIOLATIONS).map(|name| found(pointer(EXTENSIONS, name))).collect();
    let insights = extensions.get("insights").and_then(Value::as_array).into_iter().flatten();
    for (index, insight) in insights.enumerate().take(MAX_VIOLATIONS) {
        let names = insight.as_object().into_iter().flat_map(Map::keys);
        let stray =
            names.filter(|name| !MEMBERS.contains(&name.as_str()) && !declared.insights.contains(name));
        all.extend(
            stray.take(MAX_VIOLATIONS).map(|name| found(pointer(&format!("{INSIGHTS}/{index}"), name))),
        );
    }
    all.truncate(MAX_VIOLATIONS);
    all
}

fn check_insight(index: usize, insight: &Value, mapping_required: bool, found: &mut Vec<Violation>) {
    let path = format!("{INSIGHTS}/{index}");
    let Value::Object(insight) = insight else {
        found.push(shape(&path, "expected an object"));
        return;
    };
    for (member, required) in MEMBERS.into_iter().zip([true, mapping_required, false]) {
        match insight.get(member) {
            Some(Value::String(_)) => {}
            None if !required => {}
            None => found.push(shape(&format!("{path}/{member}"), &format!("`{member}` is missing"))),
            Some(_) => found.push(shape(&format!("{path}/{member}"), "expected a string")),
        }
    }
}

fn too_many(message: &str) -> Violation {
    Violation::new(INSIGHTS, ErrorCode::OverflowLimit, "overflow", message)
}

fn shape(path: &str, message: &str) -> Violation {
    Violation::new(path, ErrorCode::SchemaValidationFailed, "overflow", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn data(count: usize) -> Map<String, Value> {
        let insights =
            vec![json!({ "text": "t", "suggested_mapping": "data.x", "evidence": "line 3" }); count];
        json!({ "extensions": { "insights": insights } }).as_object().unwrap().clone()
    }

    fn codes(data: &Map<String, Value>, limit: Limit) -> Vec<ErrorCode> {
        check(data, limit).iter().map(|violation| violation.code).collect()
    }

    #[test]
    fn over_001_disabled_refuses_any_but_an_empty_list_is_harmless() {
        let off = Limit { enabled: false, max_items: 0, mapping_required: true };
        assert_eq!(codes(&data(1), off), [ErrorCode::OverflowLimit]);
        assert!(codes(&data(0), off).is_empty());
    }

    #[test]
    fn over_002_003_the_limit_is_finite_and_exact() {
        let five = Limit { max_items: 5, ..Limit::WIDEST };
        assert!(codes(&data(5), five).is_empty());
        assert_eq!(codes(&data(6), five), [ErrorCode::OverflowLimit]);
        assert_eq!(codes(&data(21), Limit::WIDEST), [ErrorCode::OverflowLimit]);
    }

    #[test]
    fn over_006_007_each_insight_has_text_and_where_asked_a_mapping() {
        let only_text = json!({ "extensions": { "insights": [{ "text": "t" }] } });
        let only_text = only_text.as_object().unwrap();
        assert_eq!(codes(only_text, Limit::WIDEST), [ErrorCode::SchemaValidationFailed]);
        assert!(codes(only_text, Limit { mapping_required: false, ..Limit::WIDEST }).is_empty());
        let bad = json!({ "extensions": { "insights": [7, { "text": 1, "suggested_mapping": "m", "evidence": 2 }] } });
        assert_eq!(codes(bad.as_object().unwrap(), Limit::WIDEST).len(), 3);
    }
}
