//! Writes the whole envelope of a module as one schema in plain form: what the model writes, not what the runtime adds.
//! Contains only the contract: the sections as written, plus the rules for every envelope.

use serde_json::{Map, Value, json};

use super::Losses;
use super::dialect::{Recursion, UnsupportedRules};
use super::merge::{merge, union_of};
use super::normal::{CustomBranch, SchemaNormaliser, WalkPosition};
use crate::text::pointer;
use crate::validate::{Contract, SCHEMA_FILE};

/// The rules for a module's envelope in addition to its schemas. They come from the manifest and the envelope
/// specification.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a manifest")]
pub struct EnvelopeRules<'a> {
    /// True if an error may include partial data.
    pub partial_allowed: bool,
    /// True if custom enum values are refused.
    pub strict_enums: bool,
    /// The member that holds a custom enum value.
    pub unknown_tag: &'a str,
    /// True if `rationale` may be an object where the author describes one.
    pub rationale_object: bool,
    /// True if errors must satisfy the error schema of the module.
    pub error_schema_enforced: bool,
    /// The rules for insights.
    pub insights: InsightRule,
    /// Context that the module emits, by type.
    pub emits: Vec<EmittedContext<'a>>,
    /// The allowed values of `meta.risk`.
    pub risk_words: &'a [&'a str],
    /// The maximum length of `meta.explain`, in code points.
    pub explain_limit: usize,
    /// Members of `meta` that the model does not write, unless the author requires them.
    pub not_asked: Vec<&'a str>,
}

/// The maximum number of insights, and their required members besides the text.
#[derive(Debug, Clone, Copy)]
pub struct InsightRule {
    /// The maximum number of insights.
    pub most: u64,
    /// True if each insight must have a `suggested_mapping`.
    pub mapping_required: bool,
}

/// One type of context that a module emits.
#[derive(Debug, Clone, Copy)]
pub struct EmittedContext<'a> {
    /// The type.
    pub kind: &'a str,
    /// The file of its schema.
    pub schema: Option<&'a str>,
}

/// Writes the envelope schema. The order is `ok`, the payload, `meta`: the work comes before its rating.
pub(super) fn write(
    contract: &Contract,
    rules: &EnvelopeRules<'_>,
    form: (Recursion, UnsupportedRules),
    losses: &mut Losses,
) -> Value {
    if rules.partial_allowed {
        // A second copy of the data schema with only optional members would cost more than it is worth.
        losses.note_tightened("", "additionalProperties", "no `partial_data` together with an error");
    }
    let mut normal = SchemaNormaliser::new(contract.root(), rules.unknown_tag, form, losses);
    normal.custom = if rules.strict_enums { CustomBranch::Removed } else { CustomBranch::Kept };
    let mut properties = Map::new();
    properties.insert("ok".to_owned(), json!({ "type": "boolean" }));
    properties.insert("data".to_owned(), data(contract, rules, &mut normal));
    properties.insert("error".to_owned(), error(contract, rules, &mut normal));
    if let Some(emitted) = emitted_context(contract, rules, &mut normal) {
        properties.insert("_emitted_context".to_owned(), emitted);
    }
    properties.insert("meta".to_owned(), meta(contract, rules, &mut normal));
    let defs = normal.defs();
    let mut envelope = json!({
        "type": "object",
        "properties": properties,
        "required": ["ok", "meta"],
        "additionalProperties": false,
        "oneOf": [
            { "properties": { "ok": { "const": true }, "error": false }, "required": ["data"] },
            { "properties": { "ok": { "const": false }, "data": false, "_emitted_context": false }, "required": ["error"] },
        ],
    });
    if let (Value::Object(members), false) = (&mut envelope, defs.is_empty()) {
        members.insert("$defs".to_owned(), Value::Object(defs));
    }
    envelope
}

pub(super) fn data<'a>(
    contract: &'a Contract,
    rules: &EnvelopeRules<'_>,
    normal: &mut SchemaNormaliser<'a>,
) -> Value {
    let path = "/properties/data";
    let section = normal.section(contract.data(), path);
    // The oldest formats may have an object there, but only if the author describes one.
    let may_be_object = rules.rationale_object && section.pointer("/properties/rationale").is_some();
    let types = if may_be_object { json!(["string", "object"]) } else { json!("string") };
    let rationale = json!({ "type": types, "minLength": 1 });
    let rule =
        json!({ "type": "object", "required": ["rationale"], "properties": { "rationale": rationale } });
    let mut data = merge(section, rule, path, normal.losses);
    each_object(&mut data, path, &mut |members, path| {
        first(members, "rationale");
        limit_insights(members, rules.insights, path, normal.losses);
    });
    data
}

/// Calls `change` for an object schema, or for each branch of a choice.
fn each_object(schema: &mut Value, path: &str, change: &mut impl FnMut(&mut Map<String, Value>, &str)) {
    let Value::Object(members) = schema else { return };
    let Some(keyword) = union_of(members).map(|(keyword, _)| keyword) else {
        change(members, path);
        return;
    };
    let at = pointer(path, keyword);
    if let Some(Value::Array(branches)) = members.get_mut(keyword) {
        for (index, branch) in branches.iter_mut().enumerate() {
            each_object(branch, &pointer(&at, &index.to_string()), change);
        }
    }
}

fn first(members: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Object(properties)) = members.get_mut("properties")
        && let Some(schema) = properties.shift_remove(name)
    {
        properties.shift_insert(0, name.to_owned(), schema);
    }
}

/// Applies the module's rules for insights: their number and their required members.
fn limit_insights(members: &mut Map<String, Value>, insight: InsightRule, path: &str, losses: &mut Losses) {
    let place = ["properties", "extensions", "properties"];
    let mut at = path.to_owned();
    let mut here = Some(members);
    for token in place {
        here = here.and_then(|members| members.get_mut(token)).and_then(Value::as_object_mut);
        at = pointer(&at, token);
    }
    let Some(Value::Object(insights)) = here.and_then(|members| members.get_mut("insights")) else { return };
    let mut required = vec!["text"];
    required.extend(insight.mapping_required.then_some("suggested_mapping"));
    let members: Map<String, Value> =
        required.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    let rule = json!({
        "type": "array", "maxItems": insight.most,
        "items": { "type": "object", "required": required, "properties": members },
    });
    let written = Value::Object(std::mem::take(insights));
    if let Value::Object(limited) = merge(written, rule, &pointer(&at, "insights"), losses) {
        *insights = limited;
    }
}

pub(super) fn meta<'a>(
    contract: &'a Contract,
    rules: &EnvelopeRules<'_>,
    normal: &mut SchemaNormaliser<'a>,
) -> Value {
    let path = "/properties/meta";
    let section = contract.meta().map_or(Value::Bool(true), |section| normal.section(section, path));
    let risk = section.pointer("/properties/risk");
    // If the author wrote a choice, it is the custom form, and other code has already checked that it is allowed.
    let is_choice = risk.and_then(Value::as_object).is_some_and(|risk| union_of(risk).is_some());
    let words =
        if is_choice { Value::Bool(true) } else { json!({ "type": "string", "enum": rules.risk_words }) };
    let rule = json!({
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": {
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "risk": words,
            "explain": { "type": "string", "maxLength": rules.explain_limit },
        },
    });
    let mut meta = merge(section, rule, path, normal.losses);
    each_object(&mut meta, path, &mut |members, _| leave_out(members, &rules.not_asked));
    meta
}

fn leave_out(members: &mut Map<String, Value>, not_asked: &[&str]) {
    let required = members.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.retain(|name, _| {
            !not_asked.contains(&name.as_str()) || required.iter().any(|each| each == name.as_str())
        });
    }
}

fn error<'a>(contract: &'a Contract, rules: &EnvelopeRules<'_>, normal: &mut SchemaNormaliser<'a>) -> Value {
    let path = "/properties/error";
    let strictness = std::mem::replace(&mut normal.custom, CustomBranch::Kept);
    let section = contract.error().filter(|_| rules.error_schema_enforced);
    let section = section.map_or(Value::Bool(true), |section| normal.section(section, path));
    normal.custom = strictness;
    // A grammar must not lead to a blank text, which no contract accepts. (D-29) Other targets would only have more losses.
    let text = if normal.rest == UnsupportedRules::Narrowed {
        json!({ "type": "string", "minLength": 1 })
    } else {
        json!({ "type": "string" })
    };
    let rule = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": { "code": text, "message": text },
    });
    merge(section, rule, path, normal.losses)
}

/// Writes the schema of context for later runs, by type. A type without a schema gets the schema of the same type in
/// the input's `_context`, since a later run receives it there.
pub(super) fn emitted_context<'a>(
    contract: &'a Contract,
    rules: &EnvelopeRules<'_>,
    normal: &mut SchemaNormaliser<'a>,
) -> Option<Value> {
    if rules.emits.is_empty() {
        return None;
    }
    let input = contract.input();
    let file = &input.place.file;
    let taken = input.schema().pointer("/properties/_context").map(|node| normal.follow(node, file));
    let mut properties = Map::new();
    for emit in &rules.emits {
        let path = pointer("/properties/_emitted_context/properties", emit.kind);
        let known = taken.and_then(|taken| taken.get("properties")).and_then(|known| known.get(emit.kind));
        let schema = match (emit.schema, known) {
            (Some(file), _) if file != SCHEMA_FILE => {
                normal.losses.note_weakened(
                    &path,
                    "$ref",
                    format!("any object: the schema is in another file, `{file}`"),
                );
                json!({ "type": "object" })
            }
            (_, Some(known)) => {
                normal.losses.note_tightened(&path, "properties", "the shape of the input's `_context`");
                normal.schema(known, &WalkPosition::new(file, &path))
            }
            _ => json!({ "type": "object" }),
        };
        properties.insert(emit.kind.to_owned(), schema);
    }
    Some(json!({ "type": "object", "properties": properties, "additionalProperties": false }))
}
