//! Operations on compositions: paths, conditions, aggregation, ranges, routing, graphs and calls. None of
//! them runs a module.

use std::borrow::Cow;

use cognitive_contract::compose::calls::{Call, directives};
use cognitive_contract::compose::graph::{Graph, ModuleNode, Need};
use cognitive_contract::compose::{
    self, Choice, Condition, Mapping, Path, PathRoot, RoutingRule, Slip, VersionRange,
};
use cognitive_contract::manifest::{Aggregate, Route};
use serde_json::{Value, json};

use super::{Arguments, Outcome, VectorStop, broken_vector};

/// Returns the value at a path.
pub(super) fn map_path(given: Arguments<'_>) -> Outcome {
    let path = Path::parse(given.text("expr")?).map_err(invalid_expression)?;
    Ok(match path.find(given.value("root")?).map(Cow::into_owned) {
        Some(value) => json!({ "value": value }),
        None => json!({ "missing": true }),
    })
}

/// Returns the object that a mapping creates.
pub(super) fn map_object(given: Arguments<'_>) -> Outcome {
    let mut members = Vec::new();
    for (name, path) in given.object("mapping")? {
        let path =
            path.as_str().ok_or_else(|| broken_vector(format!("the path of `{name}` is not a string")))?;
        members.push((name.as_str(), path));
    }
    let mapping = Mapping::parse(members).map_err(|slips| {
        let names: Vec<&str> = slips.iter().map(|(name, _)| *name).collect();
        broken_vector(format!("no paths: {}", names.join(", ")))
    })?;
    Ok(json!({ "value": mapping.apply(given.value("root")?) }))
}

/// Evaluates a condition.
pub(super) fn eval_condition(given: Arguments<'_>) -> Outcome {
    let root = given.value("root")?;
    Ok(match Condition::parse(given.text("expr")?) {
        Ok(condition) => json!({ "result": condition.holds(root) }),
        Err(_) => json!({ "error": true }),
    })
}

/// Aggregates several values into one.
pub(super) fn aggregate(given: Arguments<'_>) -> Outcome {
    let strategy: Aggregate = serde_json::from_value(given.value("strategy")?.clone())
        .map_err(|error| broken_vector(format!("unknown strategy: {error}")))?;
    let value = compose::aggregate(strategy, given.list("values")?.to_vec(), None);
    value.map(|value| json!({ "value": value })).ok_or_else(|| broken_vector("no function is registered"))
}

/// Checks a version against a range.
pub(super) fn semver_match(given: Arguments<'_>) -> Outcome {
    let (range, version) = (given.text("range")?, given.text("version")?);
    let range = VersionRange::parse(range).ok_or_else(|| broken_vector(format!("no range: `{range}`")))?;
    Ok(json!({ "match": range.matches(version) }))
}

/// Selects the next module by routing rules.
pub(super) fn route(given: Arguments<'_>) -> Outcome {
    let mut rules = Vec::new();
    for rule in given.list("routing")? {
        let route: Route = serde_json::from_value(rule.clone())
            .map_err(|error| broken_vector(format!("invalid rule of `routing`: {error}")))?;
        rules.push(RoutingRule {
            condition: Condition::parse(&route.condition).map_err(invalid_expression)?,
            next: route.next,
        });
    }
    Ok(match compose::route(&rules, PathRoot::Value(given.value("root")?)) {
        Choice::Next(name) => json!({ "matched": true, "next": name }),
        Choice::Enough => json!({ "matched": true, "next": null }),
        Choice::NoRule => json!({ "matched": false }),
    })
}

/// Checks that all dependencies of a module can be resolved.
pub(super) fn check_graph(given: Arguments<'_>) -> Outcome {
    let mut graph = Graph::new(given.text("root")?);
    for (name, needs) in given.object("requires")? {
        let names =
            needs.as_array().map(|names| names.iter().map(|name| name.as_str().map(Need::required_module)));
        let needs = names.and_then(Iterator::collect::<Option<_>>);
        let needs =
            needs.ok_or_else(|| broken_vector(format!("the needs of `{name}` are not a list of names")))?;
        graph.add(name, ModuleNode { needs, ..ModuleNode::default() });
    }
    Ok(match graph.check() {
        Ok(_) => json!({ "ok": true }),
        Err(fault) => json!({ "ok": false, "code": fault.code(), "message": fault.message() }),
    })
}

/// Lists the calls in a prompt.
pub(super) fn parse_calls(given: Arguments<'_>) -> Outcome {
    let calls: Vec<Value> = directives(given.text("prompt")?).calls.iter().map(call_json).collect();
    Ok(json!({ "calls": calls }))
}

fn call_json(call: &Call) -> Value {
    let options = &call.options;
    let mut shown = json!({
        "async": options.is_async, "optional": options.optional, "timeout_s": options.timeout.as_secs(),
    });
    if let (Some(tier), Some(members)) = (options.tier, shown.as_object_mut()) {
        members.insert("tier".to_owned(), tier.word().into());
    }
    json!({ "module": call.module, "args": call.written, "options": shown })
}

fn invalid_expression(slip: Slip) -> VectorStop {
    broken_vector(format!("invalid expression at byte {}: {}", slip.span.start, slip.message))
}
