//! Builds the envelope of a composition from the envelopes of its parts. (COMP-051, COMP-081)
//! Its confidence is at most that of the least confident part, and its risk at least that of the riskiest. Everything
//! it says about the parts comes from their answers.

use serde_json::{Map, Value};

use crate::meta::{Confidence, EXPLAIN_LIMIT, Meta};
use crate::risk_level::Risk;
use crate::text::cut;

/// A part that answered: its name and its envelope.
pub type AnsweredPart<'a> = (&'a str, &'a Value);

/// Builds the `meta` of the composition.
#[must_use]
pub fn meta(parts: &[AnsweredPart<'_>]) -> Meta {
    let metas = || parts.iter().filter_map(|(_, envelope)| envelope.get("meta"));
    let confidences = metas().map(|meta| {
        let stated = meta.get("confidence").and_then(Value::as_f64).and_then(Confidence::new);
        stated.unwrap_or(Confidence::ZERO)
    });
    let least = |one: Confidence, other: Confidence| if other < one { other } else { one };
    let risk = metas().map(|meta| meta.get("risk").map_or(Risk::Medium, risk_of)).max();
    let explains = parts.iter().filter_map(|(name, envelope)| {
        let explain = envelope.pointer("/meta/explain").and_then(Value::as_str)?;
        Some((*name, explain))
    });
    let confidence = confidences.reduce(least).unwrap_or(Confidence::ZERO);
    Meta::new(confidence, risk.unwrap_or(Risk::Medium), &explain(&explains.collect::<Vec<_>>()))
}

/// Parses one of the four levels; a custom risk counts as medium.
fn risk_of(risk: &Value) -> Risk {
    risk.as_str().and_then(Risk::parse).unwrap_or(Risk::Medium)
}

/// Joins the explanations of all parts; cuts each to an equal share if they are too long.
fn explain(parts: &[(&str, &str)]) -> String {
    let joined = |limit: usize| {
        let each = parts.iter().enumerate().map(|(place, (name, explain))| {
            // An explanation before a `;` needs no final period.
            let explain = if place + 1 < parts.len() { explain.trim_end_matches('.') } else { explain };
            cut(&format!("{name}: {explain}"), limit).to_owned()
        });
        each.collect::<Vec<_>>().join("; ")
    };
    let all = joined(EXPLAIN_LIMIT);
    if all.chars().count() <= EXPLAIN_LIMIT {
        return all;
    }
    let room = (EXPLAIN_LIMIT + 2) / parts.len().max(1);
    joined(room.saturating_sub(2).max(1))
}

/// Adds a `rationale` built from the parts' rationales if the data has none, because every answer needs one.
pub fn add_rationale(data: &mut Map<String, Value>, parts: &[AnsweredPart<'_>]) {
    let has_one = data.get("rationale").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if has_one {
        return;
    }
    let lines = parts.iter().filter_map(|(name, envelope)| {
        let rationale = envelope.pointer("/data/rationale").and_then(Value::as_str)?;
        Some(format!("{name}: {rationale}"))
    });
    let lines: Vec<String> = lines.collect();
    let text = if lines.is_empty() { "No part gave a reason.".to_owned() } else { lines.join("\n\n") };
    data.insert("rationale".to_owned(), Value::String(text));
}

/// The partial data of a failed composition: the data of each finished part by its name, with `_` for `-`; null for a
/// failed part.
#[must_use]
pub fn partial_data<'a>(parts: impl IntoIterator<Item = (&'a str, Option<&'a Value>)>) -> Map<String, Value> {
    let member = |(name, envelope): (&str, Option<&Value>)| {
        let data = envelope.and_then(|envelope| envelope.get("data")).cloned().unwrap_or(Value::Null);
        (name.replace('-', "_"), data)
    };
    parts.into_iter().map(member).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope(confidence: f64, risk: Value, explain: &str) -> Value {
        json!({ "ok": true, "meta": { "confidence": confidence, "risk": risk, "explain": explain },
                "data": { "rationale": format!("because {explain}") } })
    }

    #[test]
    fn comp_051_the_least_sure_and_the_riskiest_part_count() {
        let (one, two) = (envelope(0.9, json!("low"), "fine"), envelope(0.6, json!("high"), "not fine"));
        let meta = meta(&[("a", &one), ("b", &two)]);
        assert_eq!((meta.confidence.get(), meta.risk.level()), (0.6, Risk::High));
        assert_eq!(meta.explain(), "a: fine; b: not fine");
        let custom = envelope(0.9, json!({ "custom": "odd", "reason": "x" }), "");
        assert_eq!(super::meta(&[("a", &one), ("c", &custom)]).risk.level(), Risk::Medium);
        assert_eq!(super::meta(&[]).confidence, Confidence::ZERO);
    }

    #[test]
    fn comp_051_every_part_has_its_say_in_280_characters() {
        let long = envelope(0.9, json!("low"), &"é".repeat(280));
        let parts: Vec<AnsweredPart<'_>> = ["first", "second", "third"].map(|name| (name, &long)).into();
        let meta = meta(&parts);
        assert!(meta.explain().chars().count() <= 280);
        assert!(meta.explain().contains("third: éé"), "{}", meta.explain());
        let many: Vec<AnsweredPart<'_>> = vec![("m", &long); 500];
        assert_eq!(super::meta(&many).explain().chars().count(), 280);
    }

    #[test]
    fn comp_051_an_answer_without_a_reason_gets_those_of_its_parts() {
        let one = envelope(0.9, json!("low"), "x");
        let mut data = Map::from_iter([("results".to_owned(), json!([]))]);
        add_rationale(&mut data, &[("a", &one), ("b", &one)]);
        assert_eq!(data["rationale"], "a: because x\n\nb: because x");
        add_rationale(&mut data, &[]);
        assert_eq!(data["rationale"], "a: because x\n\nb: because x");
        let mut empty = Map::new();
        add_rationale(&mut empty, &[]);
        assert!(!empty["rationale"].as_str().unwrap().is_empty());
    }

    #[test]
    fn comp_081_partial_results_by_name() {
        let done = json!({ "data": { "n": 1 } });
        let partial = partial_data([("code-analysis", Some(&done)), ("security-scan", None)]);
        assert_eq!(Value::Object(partial), json!({ "code_analysis": { "n": 1 }, "security_scan": null }));
    }
}
