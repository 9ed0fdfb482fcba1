//! Provider schemas: single rules, every bundled module, and hostile or generated schemas.

mod bundled;
mod generated;
mod grammar;
mod narrow;
mod order;
mod rules;
mod shape;
mod suite;

use serde_json::{Map, Value, json};

use super::dialect::{OutcomeShape, SchemaDialect};
use super::*;
use crate::validate::{Layout, SCHEMA_FILE, SchemaFiles, SchemaProblem, SectionRef};

/// The inputs of a provider schema.
struct TestModule {
    contract: Contract,
    rules: EnvelopeRules<'static>,
}

fn lower(module: &TestModule, target: SchemaTarget) -> ProviderSchema {
    provider_schema(&module.contract, &module.rules, target)
}

/// The rules from a manifest, limited to the fields that these tests use.
pub(super) fn rules(manifest: &Value) -> EnvelopeRules<'static> {
    let (enabled, most, strict_by_tier) = match manifest["tier"].as_str() {
        Some("exec") => (false, 0, true),
        Some("exploration") => (true, 20, false),
        _ => (true, 5, false),
    };
    let overflow = &manifest["overflow"];
    let most = overflow["max_items"].as_u64().unwrap_or(most);
    let leaked = |value: &Value| value.as_str().map(|text| &*text.to_owned().leak());
    let emits = manifest["context"]["emits"].as_array().into_iter().flatten();
    EnvelopeRules {
        partial_allowed: true,
        strict_enums: manifest["enums"]["strategy"].as_str().map_or(strict_by_tier, |word| word == "strict"),
        unknown_tag: "custom",
        rationale_object: false,
        error_schema_enforced: true,
        insights: InsightRule {
            most: if overflow["enabled"].as_bool().unwrap_or(enabled) { most } else { 0 },
            mapping_required: true,
        },
        emits: emits
            .map(|emit| EmittedContext {
                kind: leaked(&emit["type"]).unwrap(),
                schema: leaked(&emit["schema"]),
            })
            .collect(),
        risk_words: &["none", "low", "medium", "high"],
        explain_limit: 280,
        not_asked: vec!["trace_id", "latency_ms", "usage"],
    }
}

fn compile(rules: EnvelopeRules<'static>, files: &SchemaFiles) -> Result<TestModule, Vec<SchemaProblem>> {
    let context = rules.emits.iter().filter_map(|emit| emit.schema).map(SectionRef::parse).collect();
    let layout = Layout { strict_enums: rules.strict_enums, context, ..Layout::default() };
    Ok(TestModule { contract: Contract::compile(files, &layout)?, rules })
}

fn module(manifest: Value, schema: Value) -> TestModule {
    let rules = rules(&manifest);
    let mut files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema)]);
    let emitted = rules.emits.iter().filter_map(|emit| emit.schema);
    files.extend(emitted.map(|file| (SectionRef::parse(file).file, json!({}))));
    compile(rules, &files).unwrap()
}

/// A module whose data has one additional member, `x`.
fn with_member(x: Value) -> TestModule {
    let data = json!({
        "type": "object", "required": ["rationale", "x"], "additionalProperties": false,
        "properties": { "rationale": { "type": "string" }, "x": x },
    });
    module(json!({}), json!({ "input": {}, "data": data }))
}

/// The payload of a lowered envelope, without the `null` that some targets add.
fn data_of(lowered: &ProviderSchema) -> Value {
    let schema = &lowered.schema;
    match SchemaDialect::for_target(lowered.target).envelope {
        // If no data is possible, a grammar does not offer success.
        OutcomeShape::TwoObjects => {
            schema.pointer("/anyOf/0/properties/data").cloned().unwrap_or(Value::Bool(false))
        }
        OutcomeShape::OneObject => {
            let data = schema.pointer("/properties/data").unwrap();
            let Some(branches) = data.get("anyOf").and_then(Value::as_array) else { return data.clone() };
            let rest: Vec<Value> =
                branches.iter().filter(|branch| **branch != json!({ "type": "null" })).cloned().collect();
            if let [one] = rest.as_slice() { one.clone() } else { json!({ "anyOf": rest }) }
        }
    }
}

/// The lowered form of `x`, and its losses.
fn lowered_member(x: Value, target: SchemaTarget) -> (Value, Vec<String>) {
    let lowered = lower(&with_member(x), target);
    let path = "/properties/data/properties/x";
    let losses = lowered.losses.iter().filter_map(|loss| {
        let below = loss.path.strip_prefix(path)?;
        Some(format!("{below} {} {}", loss.keyword, loss.what).trim().to_owned())
    });
    let losses = losses.collect();
    (data_of(&lowered).pointer("/properties/x").cloned().unwrap_or(Value::Null), losses)
}

/// Compiles as Draft-07. Formats are only a hint in contracts, so they are not validated here.
fn validator(schema: &Value) -> jsonschema::Validator {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft7)
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .unwrap()
}

/// Calls `each` for every schema within a schema.
fn every_schema<'a>(schema: &'a Value, each: &mut impl FnMut(&'a Map<String, Value>)) {
    let Value::Object(members) = schema else { return };
    each(members);
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties" | "$defs", Value::Object(named)) => {
                for schema in named.values() {
                    every_schema(schema, each);
                }
            }
            ("anyOf" | "oneOf" | "allOf", Value::Array(list)) => {
                for schema in list {
                    every_schema(schema, each);
                }
            }
            ("items", Value::Array(list)) => list.iter().for_each(|schema| every_schema(schema, each)),
            ("items" | "additionalItems" | "additionalProperties", schema) => every_schema(schema, each),
            _ => {}
        }
    }
}

/// The invariants of any lowered schema, for any module.
fn check(lowered: &ProviderSchema) {
    let target = lowered.target;
    let schema = &lowered.schema;
    let errors: Vec<String> =
        jsonschema::draft7::meta::validator().iter_errors(schema).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{target:?} is no Draft-07 schema: {errors:?}\n{schema:#}");
    let dialect = SchemaDialect::for_target(target);
    every_schema(schema, &mut |node| {
        for keyword in node.keys() {
            assert!(dialect.has(keyword), "{target:?} does not know `{keyword}`: {schema:#}");
        }
    });
    for loss in &lowered.losses {
        let first = loss.what.split(':').next().unwrap();
        assert!(["dropped", "weakened", "tightened", "refused"].contains(&first), "{loss:?}");
        assert!(loss.path.is_empty() || loss.path.starts_with('/'), "{loss:?}");
    }
    validator(schema);
}

/// Fills in the nulls that a lowered schema requires, as a constrained model would.
fn with_nulls(schema: &Value, defs: &Value, value: &Value) -> Value {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        return with_nulls(defs.pointer(name.trim_start_matches('#')).unwrap(), defs, value);
    }
    if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
        let mut filled = branches.iter().map(|branch| (branch, with_nulls(branch, defs, value)));
        let fits = |branch: &Value, value: &Value| {
            let mut branch = branch.clone();
            branch["$defs"] = defs.get("$defs").cloned().unwrap_or(json!({}));
            validator(&branch).is_valid(value)
        };
        return filled.find(|(branch, value)| fits(branch, value)).map_or(value.clone(), |(_, value)| value);
    }
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let mut filled: Map<String, Value> = members
                .iter()
                .map(|(name, member)| {
                    let below = properties.and_then(|known| known.get(name));
                    (name.clone(), below.map_or(member.clone(), |schema| with_nulls(schema, defs, member)))
                })
                .collect();
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                filled.entry(name.as_str().unwrap()).or_insert(Value::Null);
            }
            Value::Object(filled)
        }
        Value::Array(items) => {
            let below = schema.get("items").unwrap_or(&Value::Bool(true));
            items.iter().map(|item| with_nulls(below, defs, item)).collect()
        }
        _ => value.clone(),
    }
}
