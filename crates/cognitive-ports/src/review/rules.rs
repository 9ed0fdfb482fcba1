//! Selects the runs that need human review, by conditions over `meta`, compiled once at process start. They use the
//! expression language of compositions, with short names for the permitted fields. Never reads `data`: routing of runs
//! does not need their content.

use cognitive_contract::Risk;
use cognitive_contract::compose::{Condition, Path, PathRoot, Slip};
use cognitive_contract::envelope::{Envelope, ErrorBody};
use cognitive_contract::meta::CALIBRATED_CONFIDENCE;
use serde_json::{Value, json};

/// The fields that a rule may read without `$.`.
const NAMES: [&str; 7] = ["risk", "confidence", CALIBRATED_CONFIDENCE, "ok", "code", "module", "model"];
/// The rest of `meta`, as in `$.meta.usage.cost`.
const META: &str = "meta";
/// Names that only rules about failures use.
const OF_FAILURES: [&str; 2] = ["ok", "code"];

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewRule {
    condition: Condition,
    modules: Vec<String>,
    /// True if the rule mentions failures. A failure has no result to review, so other rules ignore it.
    is_about_failures: bool,
    /// True if the rule reads more of `meta` than the names.
    reads_meta: bool,
}

/// The input of rules.
#[derive(Debug, Clone, Copy)]
pub struct ReviewFacts<'a> {
    /// The name of the module.
    pub module: &'a str,
    /// `provider/model`; empty if no model was called.
    pub model: &'a str,
    /// The answer. Its payload is not read.
    pub envelope: &'a Envelope,
}

/// All rules of a process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReviewRules(Vec<ReviewRule>);

impl ReviewRule {
    /// Compiles a rule for these modules, or for all if the list is empty. An error carries its position.
    pub fn parse(when: &str, modules: Vec<String>) -> Result<Self, Slip> {
        let condition = Condition::parse_with_names(when, &NAMES)?;
        let mut names = Vec::new();
        for (path, span) in condition.paths() {
            match path.first_member() {
                Some(name) if name == META || NAMES.contains(&name) => names.push(name.to_owned()),
                _ => return Err(Slip::new(span, "expected a member of `meta`, the only subject of rules")),
            }
        }
        check_risk(&condition)?;
        let mentions = |wanted: &[&str]| names.iter().any(|name| wanted.contains(&name.as_str()));
        let (is_about_failures, reads_meta) = (mentions(&OF_FAILURES), mentions(&[META]));
        Ok(Self { condition, modules, is_about_failures, reads_meta })
    }

    /// The source text of the condition.
    #[must_use]
    pub fn source(&self) -> &str {
        self.condition.source()
    }

    fn matches(&self, facts: ReviewFacts<'_>) -> bool {
        let ReviewFacts { module, model, envelope } = facts;
        if !(self.modules.is_empty() || self.modules.iter().any(|name| name == module)) {
            return false;
        }
        if !(envelope.ok() || self.is_about_failures) {
            return false;
        }
        let meta = envelope.meta();
        let whole = if self.reads_meta { json!(meta) } else { Value::Null };
        let calibrated = meta.extra.get(CALIBRATED_CONFIDENCE).cloned().unwrap_or_default();
        let members = [
            ("risk", &json!(meta.risk.level().word())),
            ("confidence", &json!(meta.confidence.get())),
            (CALIBRATED_CONFIDENCE, &calibrated),
            ("ok", &json!(envelope.ok())),
            ("code", &json!(envelope.error().map(ErrorBody::code))),
            ("module", &json!(module)),
            ("model", &json!(model)),
            (META, &whole),
        ];
        self.condition.holds(PathRoot::Named(&members))
    }
}

/// Rejects two mistakes that would silently let risky answers pass. As text, `high` sorts before `low`, and an unknown
/// word never matches.
fn check_risk(condition: &Condition) -> Result<(), Slip> {
    let is_risk = |path: &Path| path.first_member() == Some("risk");
    if let Some((_, span)) = condition.orders().into_iter().find(|(path, _)| is_risk(path)) {
        return Err(Slip::new(
            span,
            "expected a list of risks, such as `risk in [medium, high]`, because risks have no order here",
        ));
    }
    let words = condition.equalities().into_iter().filter(|(path, ..)| is_risk(path));
    for (_, value, span) in words {
        if value.as_str().and_then(Risk::parse).is_none() {
            return Err(Slip::new(span, format!("expected one of `{}`", Risk::WORDS.join("`, `"))));
        }
    }
    Ok(())
}

impl ReviewRules {
    /// A list of rules; the first match wins.
    #[must_use]
    pub fn new(rules: Vec<ReviewRule>) -> Self {
        Self(rules)
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first rule that matches a run.
    #[must_use]
    pub fn first_match(&self, facts: ReviewFacts<'_>) -> Option<&ReviewRule> {
        self.0.iter().find(|rule| rule.matches(facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cognitive_contract::failure::Failure;
    use cognitive_contract::{Confidence, ErrorCode};

    fn answer(confidence: f64, risk: &str) -> Envelope {
        let meta =
            json!({ "confidence": confidence, "risk": risk, "explain": "e", "usage": { "cost": 0.2 } });
        Envelope::from_value(json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } })).unwrap()
    }

    fn holds(when: &str, envelope: &Envelope) -> bool {
        let rule = ReviewRule::parse(when, Vec::new()).unwrap_or_else(|slip| panic!("{when}: {slip:?}"));
        let facts = ReviewFacts { module: "m", model: "p/one", envelope };
        ReviewRules::new(vec![rule]).first_match(facts).is_some()
    }

    #[test]
    fn rules_speak_about_meta_by_name() {
        let risky = answer(0.9, "high");
        for when in [
            "risk in [high]",
            "risk in [medium, high] && confidence > 0.5",
            "confidence < 0.95",
            "model in ['p/one'] && module == 'm'",
            "$.meta.usage.cost > 0.1",
            "calibrated_confidence == null",
            "true",
        ] {
            assert!(holds(when, &risky), "{when}");
        }
        for when in ["confidence < 0.6", "risk in [low]", "calibrated_confidence < 0.6", "!ok"] {
            assert!(!holds(when, &risky), "{when}");
        }
        let mut calibrated = answer(0.9, "low");
        calibrated.meta_mut().extra.insert(CALIBRATED_CONFIDENCE.to_owned(), json!(0.4));
        assert!(holds("calibrated_confidence < 0.6", &calibrated));
    }

    #[test]
    fn a_failure_is_meant_only_by_rules_that_mention_it() {
        let failure = Failure::new(ErrorCode::Timeout, "m").into_envelope();
        assert_eq!(failure.meta().confidence, Confidence::ZERO);
        assert!(
            !holds("confidence < 0.6", &failure) && !holds("risk in [high, medium, low, none]", &failure)
        );
        let code = failure.error().unwrap().code().to_owned();
        assert!(holds("!ok", &failure) && holds(&format!("code in [{code}]"), &failure));
        assert!(!holds("code in [E9999]", &failure));
    }

    #[test]
    fn a_rule_for_some_modules_leaves_others_alone() {
        let envelope = answer(0.1, "low");
        let rules = ReviewRules::new(vec![ReviewRule::parse("true", vec!["a".to_owned()]).unwrap()]);
        let matches =
            |module| rules.first_match(ReviewFacts { module, model: "", envelope: &envelope }).is_some();
        assert!(matches("a") && !matches("b"));
    }

    #[test]
    fn what_would_never_hold_or_look_at_data_is_refused_with_its_place() {
        for (when, place, word) in [
            ("$.data.label == 'x'", "$.data.label", "of `meta`"),
            ("confidence < 0.6 && $.input.x", "$.input.x", "of `meta`"),
            ("risk >= 'medium'", "risk >= 'medium'", "no order"),
            ("risk in [hihg]", "hihg", "one of `none`"),
            ("risk == 1", "1", "one of `none`"),
            ("confidnce < 0.6", "confidnce", "one of `risk`"),
        ] {
            let slip = ReviewRule::parse(when, Vec::new()).unwrap_err();
            assert_eq!(when.get(slip.span.clone()), Some(place), "{when}: {slip:?}");
            assert!(slip.message.contains(word), "{when}: {slip:?}");
        }
    }
}
