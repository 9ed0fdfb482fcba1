//! Checks a value against a compiled schema within fixed limits that no schema and no value can change.
//! Refuses values that cannot be checked within the limits, and reports that as the reason.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::describe;
use super::metered_json::{Meter, MeterStop, MeteredJson, OUTERMOST, is_certain, outermost};
use super::patterns::Effort;
use crate::violation::SchemaViolation;

/// The limits for the check of one value.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// Looks at the value to decide whether it is valid.
    looks: u64,
    /// Looks at the value to explain a refusal.
    looks_back: u64,
    /// Findings of the validator while it explains a refusal, including those of all failing branches.
    findings: u64,
}

/// An answer of 4 KB takes three hundred looks, and a hundred million take about a second. Explaining gets fewer,
/// because each look can leave something in memory. Of the findings, a hundred are shown.
const DEFAULT_ALLOWANCE: Allowance = Allowance { looks: 100_000_000, looks_back: 5_000_000, findings: 2_000 };

/// A compiled schema, ready to check values.
#[derive(Debug)]
pub(super) struct Checker {
    validator: Validator<MeteredJson>,
    /// Cost per character of a text, in eighths of a look.
    character: u64,
    allowance: Allowance,
}

impl Checker {
    /// Creates a checker. `validator` must expect an array and validate each item.
    pub(super) fn new(validator: Validator<MeteredJson>, effort: Effort) -> Self {
        let character = match effort {
            Effort::Light => 1,
            Effort::Heavy => 256,
            Effort::Tried => 2_048,
        };
        Self { validator, character, allowance: DEFAULT_ALLOWANCE }
    }

    /// Returns whether a value satisfies the schema. Collects nothing.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.decide(value) == Ok(true)
    }

    /// Every rule that a value breaks. The yes-or-no path runs first, since most values are valid.
    pub(super) fn violations(&self, value: &Value) -> Vec<SchemaViolation> {
        match self.decide(value) {
            Ok(true) => return Vec::new(),
            Ok(false) => {}
            Err(stop) => return vec![describe::incomplete_check(stop)],
        }
        let mut found = self.explain(value);
        if found.is_empty() {
            found = self.explain_first(value);
        }
        if found.is_empty() {
            found.push(describe::incomplete_check(MeterStop::Findings));
        }
        found
    }

    fn decide(&self, value: &Value) -> Result<bool, MeterStop> {
        let meter = Meter::new(self.allowance.looks, self.allowance.findings, self.character);
        let is_valid = self.validator.is_valid(outermost(value, &meter));
        meter.stop().map_or(Ok(is_valid), Err)
    }

    fn explain(&self, value: &Value) -> Vec<SchemaViolation> {
        let meter = self.pattern_meter();
        tell(self.validator.iter_errors(outermost(value, &meter)))
    }

    /// Explains only the first failure, which is far less work when many parts fail.
    fn explain_first(&self, value: &Value) -> Vec<SchemaViolation> {
        let meter = self.pattern_meter();
        let first = self.validator.validate(outermost(value, &meter)).err();
        tell(first.into_iter())
    }

    fn pattern_meter(&self) -> Meter {
        // Every text has already been matched once, so it costs less here.
        Meter::new(self.allowance.looks_back, self.allowance.findings, (self.character / 8).max(1))
    }
}

fn tell<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> Vec<SchemaViolation> {
    let mut found = describe::findings(errors, is_certain);
    for each in &mut found {
        each.path = each.path.strip_prefix(OUTERMOST).unwrap_or(&each.path).to_owned();
    }
    found
}

#[cfg(test)]
mod tests {
    use jsonschema::{Draft, options_for};
    use serde_json::json;

    use super::*;

    fn checker(schema: Value) -> Checker {
        let lists = json!({ "items": schema });
        Checker::new(options_for().with_draft(Draft::Draft7).build(&lists).unwrap(), Effort::Light)
    }

    fn report(checker: &Checker, value: &Value) -> Vec<String> {
        let found = checker.violations(value);
        found.iter().map(|each| format!("{} {}: {}", each.path, each.rule, each.message)).collect()
    }

    #[test]
    fn findings_carry_nothing_of_the_value() {
        let checker =
            checker(json!({ "anyOf": [{ "required": ["x"] }, { "anyOf": [{ "type": "string" }] }] }));
        let value = json!({ "large": [1, 2, 3] });
        let meter = checker.pattern_meter();
        let errors: Vec<_> = checker.validator.iter_errors(outermost(&value, &meter)).collect();
        let told = format!("{errors:?}");
        assert!(told.contains("AnyOf") && !told.contains("large") && !told.contains("Number(2)"), "{told}");
    }

    #[test]
    fn a_check_that_takes_too_long_ends_in_a_refusal() {
        let mut checker = checker(json!({ "items": { "enum": [[1], [2], [3]] } }));
        let value = json!(vec![json!([3]); 100]);
        assert!(checker.accepts(&value));
        checker.allowance.looks = 500;
        assert!(!checker.accepts(&value));
        let told = report(&checker, &value);
        assert_eq!(told, [" schema: takes too long to check against the contract"]);
    }

    #[test]
    fn a_flood_of_findings_ends_with_those_that_are_certain() {
        let mut checker =
            checker(json!({ "items": { "oneOf": [{ "type": "string" }, { "type": "null" }] } }));
        let value = json!(vec![1; 50]);
        assert_eq!(report(&checker, &value).len(), 50);
        checker.allowance.findings = 10;
        let told = report(&checker, &value);
        // Each item makes three findings. The fourth item is cut off in the middle and says only that no form fits.
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(told[0], "/0 type: expected string");
    }

    #[test]
    fn a_refusal_that_cannot_be_explained_is_still_a_refusal() {
        let inner = json!({ "items": { "type": "string" } });
        let mut checker = checker(json!({ "anyOf": [inner, { "items": { "type": "null" } }] }));
        let value = json!(vec![1; 50]);
        assert_eq!(report(&checker, &value)[0], "/0 type: expected string");
        checker.allowance.findings = 10;
        assert_eq!(report(&checker, &value), [" anyOf: matches none of the allowed forms"]);
        checker.allowance.findings = 0;
        assert_eq!(
            report(&checker, &value),
            [" schema: breaks the contract, and it would take too long to say where"]
        );
    }

    #[test]
    fn a_value_that_nests_too_deeply_is_not_followed() {
        let nested = |depth| (0..depth).fold(json!(0), |inner, _| json!([inner]));
        let checker = checker(json!({ "type": ["array", "integer"], "items": { "$ref": "#/items" } }));
        assert!(checker.accepts(&nested(128)));
        assert_eq!(report(&checker, &nested(129)), [" schema: nests deeper than 128 levels"]);
    }
}
