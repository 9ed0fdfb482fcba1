//! Selects the next module by the rules of a conditional composition. (COMP-004)
//! Rules are evaluated in order and the first match wins. Runs nothing itself.

use super::expr::Condition;
use super::path::PathRoot;

/// A compiled rule of `routing`.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingRule {
    /// The condition of the rule.
    pub condition: Condition,
    /// The next module; `None` ends with the result so far.
    pub next: Option<String>,
}

/// The decision of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This module runs next.
    Next(&'a str),
    /// The result so far is the answer.
    Enough,
    /// No rule matches: the result so far is the answer, with a warning.
    NoRule,
}

/// Evaluates the rules in order.
#[must_use]
pub fn route<'a>(rules: &'a [RoutingRule], root: PathRoot<'_>) -> Choice<'a> {
    match rules.iter().find(|rule| rule.condition.holds(root)) {
        Some(RoutingRule { next: Some(name), .. }) => Choice::Next(name),
        Some(RoutingRule { next: None, .. }) => Choice::Enough,
        None => Choice::NoRule,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rule(condition: &str, next: Option<&str>) -> RoutingRule {
        RoutingRule { condition: Condition::parse(condition).unwrap(), next: next.map(str::to_owned) }
    }

    #[test]
    fn comp_004_the_first_rule_that_holds_wins() {
        let rules = [
            rule("$.quick-check.meta.confidence > 0.9", None),
            rule("$.quick-check.meta.confidence > 0.5", Some("deep-analysis")),
            rule("$.quick-check.meta.confidence > 0.2", Some("exploration-mode")),
        ];
        for (confidence, choice) in [
            (0.95, Choice::Enough),
            (0.9, Choice::Next("deep-analysis")),
            (0.5, Choice::Next("exploration-mode")),
            (0.1, Choice::NoRule),
        ] {
            let envelope = json!({ "meta": { "confidence": confidence } });
            assert_eq!(route(&rules, PathRoot::Named(&[("quick-check", &envelope)])), choice, "{confidence}");
        }
        assert_eq!(route(&[], PathRoot::Value(&Value::Null)), Choice::NoRule);
    }
}
