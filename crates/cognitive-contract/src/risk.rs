//! Derives `meta.risk` from the payload: never lower than the riskiest change or issue.
//! Changes only `meta.risk`, and only on successes.

use serde_json::{Map, Value};

use crate::manifest::RiskRule;
use crate::meta::RiskValue;
use crate::risk_level::Risk;

/// Returns the highest risk among the entries that the rule names; `None` if there are none. An entry with a
/// missing or unknown risk counts as medium.
#[must_use]
pub fn aggregate(data: &Map<String, Value>, rule: RiskRule) -> Option<Risk> {
    let list = match rule {
        RiskRule::MaxChangesRisk => "changes",
        RiskRule::MaxIssuesRisk => "issues",
        RiskRule::Explicit | RiskRule::CustomFunction => return None,
    };
    let entries = data.get(list)?.as_array()?;
    entries.iter().map(risk_of_entry).max()
}

fn risk_of_entry(entry: &Value) -> Risk {
    entry.get("risk").and_then(Value::as_str).and_then(Risk::parse).unwrap_or(Risk::Medium)
}

/// Returns the risk of a success: the model's own, raised to the risk of its payload.
#[must_use]
pub fn settle(stated: &RiskValue, data: &Map<String, Value>, rule: RiskRule) -> RiskValue {
    match aggregate(data, rule) {
        Some(found) if found > stated.level() => RiskValue::Level(found),
        _ => stated.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn riskiest(data: Value, rule: RiskRule) -> Option<Risk> {
        aggregate(data.as_object().unwrap(), rule)
    }

    #[test]
    fn risk_001_002_the_riskiest_entry_of_the_named_list() {
        let data =
            json!({ "changes": [{ "risk": "none" }, { "risk": "low" }], "issues": [{ "risk": "high" }] });
        assert_eq!(riskiest(data.clone(), RiskRule::MaxChangesRisk), Some(Risk::Low));
        assert_eq!(riskiest(data, RiskRule::MaxIssuesRisk), Some(Risk::High));
    }

    #[test]
    fn risk_003_004_explicit_and_custom_aggregate_nothing() {
        let data = json!({ "changes": [{ "risk": "high" }] });
        assert_eq!(riskiest(data.clone(), RiskRule::Explicit), None);
        assert_eq!(riskiest(data, RiskRule::CustomFunction), None);
    }

    #[test]
    fn risk_005_006_unknown_is_medium_and_nothing_is_nothing() {
        assert_eq!(riskiest(json!({ "changes": [{}] }), RiskRule::MaxChangesRisk), Some(Risk::Medium));
        assert_eq!(
            riskiest(json!({ "changes": [{ "risk": "severe" }, 3] }), RiskRule::MaxChangesRisk),
            Some(Risk::Medium)
        );
        assert_eq!(riskiest(json!({ "changes": [] }), RiskRule::MaxChangesRisk), None);
        assert_eq!(riskiest(json!({}), RiskRule::MaxChangesRisk), None);
    }

    #[test]
    fn risk_007_the_models_higher_value_is_kept() {
        let data = json!({ "changes": [{ "risk": "low" }] });
        let settled =
            |stated| settle(&RiskValue::Level(stated), data.as_object().unwrap(), RiskRule::MaxChangesRisk);
        assert_eq!(settled(Risk::High), RiskValue::Level(Risk::High));
        assert_eq!(settled(Risk::None), RiskValue::Level(Risk::Low));
    }
}
