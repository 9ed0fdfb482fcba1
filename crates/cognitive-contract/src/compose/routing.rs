//! What runs next: the rules of a conditional composition, and when a repetition ends. (COMP-004, COMP-005)
//! Rules are asked in order and the first that holds wins. Runs nothing itself.

use serde_json::Value;

use super::cursor::Slip;
use super::expr::Condition;
use super::path::Root;

/// A compiled rule of `routing`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// When it holds.
    pub condition: Condition,
    /// The module that runs next; `None` ends with the result so far.
    pub next: Option<String>,
}

/// What the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This module runs next.
    Next(&'a str),
    /// The result so far is the answer.
    Enough,
    /// No rule holds: the result so far is the answer, with a warning.
    NoRule,
}

/// Asks the rules in order.
#[must_use]
pub fn route<'a>(rules: &'a [Rule], root: Root<'_>) -> Choice<'a> {
    match rules.iter().find(|rule| rule.condition.holds(root)) {
        Some(Rule { next: Some(name), .. }) => Choice::Next(name),
        Some(Rule { next: None, .. }) => Choice::Enough,
        None => Choice::NoRule,
    }
}

/// The most rounds of a repetition that anybody may ask for.
pub const MOST_ROUNDS: u32 = 100;

/// A repetition: run again until the condition holds. It has no form in a manifest; callers of the runtime ask for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeat {
    until: Condition,
    rounds: u32,
}

/// What a repetition does after a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The condition does not hold yet.
    Again,
    /// The condition holds.
    Done,
    /// It does not hold, and there is no further round.
    GiveUp,
}

impl Repeat {
    /// Compiles the condition. At least one round is run and at most [`MOST_ROUNDS`].
    pub fn parse(until: &str, rounds: u32) -> Result<Self, Slip> {
        Ok(Self { until: Condition::parse(until)?, rounds: rounds.clamp(1, MOST_ROUNDS) })
    }

    /// Judges the envelope of round `finished`, counted from 1.
    #[must_use]
    pub fn after(&self, finished: u32, envelope: &Value) -> Round {
        if self.until.holds(envelope) {
            Round::Done
        } else if finished < self.rounds {
            Round::Again
        } else {
            Round::GiveUp
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(condition: &str, next: Option<&str>) -> Rule {
        Rule { condition: Condition::parse(condition).unwrap(), next: next.map(str::to_owned) }
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
            assert_eq!(route(&rules, Root::Named(&[("quick-check", &envelope)])), choice, "{confidence}");
        }
        assert_eq!(route(&[], Root::Value(&Value::Null)), Choice::NoRule);
    }

    #[test]
    fn comp_005_a_repetition_ends_by_its_condition_or_by_its_count() {
        let repeat = Repeat::parse("$.meta.confidence > 0.9", 3).unwrap();
        let (unsure, sure) =
            (json!({ "meta": { "confidence": 0.5 } }), json!({ "meta": { "confidence": 0.95 } }));
        assert_eq!(repeat.after(1, &sure), Round::Done);
        assert_eq!(repeat.after(2, &unsure), Round::Again);
        assert_eq!(repeat.after(3, &unsure), Round::GiveUp);
        assert_eq!(repeat.after(3, &sure), Round::Done);
        assert_eq!(Repeat::parse("false", 0).unwrap().after(1, &unsure), Round::GiveUp);
        assert_eq!(Repeat::parse("false", u32::MAX).unwrap().after(MOST_ROUNDS, &unsure), Round::GiveUp);
        assert!(Repeat::parse("until done", 3).is_err());
    }
}
