//! The section `review` of a configuration file: which runs people review. The rules of all files apply together, so no
//! file can remove a rule of another.

use cognitive_contract::Failure;
use cognitive_ports::review::{ReviewRule, ReviewRules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules for human review, and the limits of the queue.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewConfig {
    /// Conditions over `meta`. A run that meets one gets the warning `REVIEW` and waits in the queue, with its input
    /// and its envelope. The rules of the project and the user apply together.
    pub rules: Option<Vec<ReviewRuleConfig>>,
    /// Maximum number of waiting runs; 10000 unless set. If the queue is full, the run reports it.
    pub max_open: Option<u64>,
    /// Maximum number of decided runs with stored input and envelope; 50000 unless set. Decisions are always stored.
    pub max_decided: Option<u64>,
}

/// One rule.
#[derive(Debug, Clone, Default, Deserialize, Serialize, PartialEq, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRuleConfig {
    /// The condition, such as `risk in [high]`, `confidence < 0.6` or `!ok && code in [E3003]`. Members: `risk`,
    /// `confidence`,
    /// `calibrated_confidence`, `ok`, `code`, `module`, `model` and `$.meta`.
    pub when: String,
    /// The names of the modules that it applies to; all unless set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

impl ReviewConfig {
    /// Merges the rules of two files.
    pub(crate) fn or(self, other: Self) -> Self {
        let rules = match (self.rules, other.rules) {
            (Some(mut own), Some(others)) => {
                own.extend(others.into_iter().filter(|rule| !own.contains(rule)).collect::<Vec<_>>());
                Some(own)
            }
            (own, others) => own.or(others),
        };
        Self {
            rules,
            max_open: self.max_open.or(other.max_open),
            max_decided: self.max_decided.or(other.max_decided),
        }
    }

    /// Compiles the rules. The error names the position in an invalid rule.
    pub(crate) fn compile(&self) -> Result<ReviewRules, Failure> {
        let rules = self.rules.iter().flatten().enumerate().map(|(at, rule)| {
            ReviewRule::parse(&rule.when, rule.modules.clone()).map_err(|slip| {
                let place = rule.when.get(..slip.span.start).map_or(0, |before| before.chars().count()) + 1;
                let message = format!(
                    "`review.rules[{at}].when`, at character {place}: {}, found: `{}`",
                    slip.message, rule.when
                );
                Failure::config_fault(message)
                    .suggest("Write it as in `risk in [medium, high] || confidence < 0.6`")
            })
        });
        rules.collect::<Result<_, _>>().map(ReviewRules::new)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn config(text: &str) -> Config {
        Config::parse(text).unwrap()
    }

    #[test]
    fn the_rules_of_all_files_hold_together() {
        let own = config("review: {rules: [{when: 'confidence < 0.6'}]}");
        let project = config(
            "review: {max_open: 5, rules: [{when: 'risk in [high]', modules: [m]}, {when: 'confidence < 0.6'}]}",
        );
        let both = project.or(own).review;
        let when: Vec<&str> = both.rules.iter().flatten().map(|rule| rule.when.as_str()).collect();
        assert_eq!((when, both.max_open), (vec!["risk in [high]", "confidence < 0.6"], Some(5)));
        assert!(!both.compile().unwrap().is_empty());
        assert!(config("").review.compile().unwrap().is_empty());
    }

    #[test]
    fn a_wrong_rule_is_shown_with_its_place() {
        let wrong =
            config("review: {rules: [{when: 'ok'}, {when: 'risk > 1'}]}").review.compile().unwrap_err();
        assert!(wrong.message().starts_with("`review.rules[1].when`, at character 1: expected"), "{wrong}");
        assert!(Config::parse("review: {rule: []}").unwrap_err().contains("did you mean `rules`"));
        assert!(Config::parse("review: {rules: [{then: x}]}").is_err());
    }
}
