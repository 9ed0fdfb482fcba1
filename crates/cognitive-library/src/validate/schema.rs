//! What `schema.json` and `prompt.md` should say.

use cognitive_contract::Format;
use cognitive_contract::manifest::{SchemaAlias, SchemaStrictness};
use cognitive_contract::meta::EXPLAIN_LIMIT;
use cognitive_contract::module::explains_envelope;
use cognitive_contract::schema::SectionRef;
use serde_json::Value;

use super::Subject;
use crate::finding::{At, Finding, Sources};
use crate::json;

const FILE: &str = "schema.json";

pub(super) fn check(subject: &Subject<'_>, sources: &Sources) -> Vec<Finding> {
    let mut found = Vec::new();
    repeated_members(sources, &mut found);
    ignored_beside_ref(&subject.root, "", &mut found);
    if subject.format >= Format::V21 {
        meta_section(subject, &mut found);
        rationale(subject, &mut found);
        extensions(subject, &mut found);
        optional_members(subject, &mut found);
        prompt(subject, &mut found);
    }
    found
}

/// A section of the contract and where it stands.
struct Found<'a> {
    file: String,
    pointer: String,
    schema: &'a Value,
}

impl Found<'_> {
    /// A place inside the section.
    fn at(&self, below: &str) -> At {
        At::Value(format!("{}{below}", self.pointer))
    }
}

/// Finds a section by `io` or by its usual name; one step through a local `$ref` is taken.
fn section<'a>(subject: &'a Subject<'_>, names: &[&str]) -> Option<Found<'a>> {
    let from_io = subject.effective.as_ref().and_then(|manifest| {
        let place = SectionRef::parse(manifest.io.get(*names.first()?)?);
        Some((place.file, place.pointer))
    });
    let usual = names.iter().map(|name| (FILE.to_owned(), format!("/{name}")));
    from_io.into_iter().chain(usual).find_map(|(file, pointer)| resolved(subject, file, pointer))
}

fn resolved<'a>(subject: &'a Subject<'_>, file: String, pointer: String) -> Option<Found<'a>> {
    let root = subject.schemas.get(&file)?;
    let node = root.pointer(&pointer)?;
    match node.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
        Some(target) => Some(Found { file, pointer: target.to_owned(), schema: root.pointer(target)? }),
        None => Some(Found { file, pointer, schema: node }),
    }
}

fn data_names(subject: &Subject<'_>) -> [&'static str; 2] {
    match subject.effective.as_ref().map(|manifest| manifest.compat.schema_output_alias) {
        Some(SchemaAlias::Output) => ["output", "data"],
        _ => ["data", "output"],
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|each| each == name))
}

fn meta_section(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    if !subject.strict() {
        return;
    }
    let Some(meta) = section(subject, &["meta"]) else {
        let finding =
            Finding::error(FILE, At::Value("/meta".into()), "schema/meta", "section `meta` is missing");
        found.push(finding.hint("Declare `confidence`, `risk` and `explain` (maxLength 280) there"));
        return;
    };
    for name in ["confidence", "risk", "explain"] {
        if !requires(meta.schema, name) {
            let message = format!("`meta` does not require `{name}`");
            found.push(Finding::error(&meta.file, meta.at("/required"), "schema/meta", message));
        }
    }
    let explain = "/properties/explain";
    match meta.schema.pointer("/properties/explain/maxLength").and_then(Value::as_u64) {
        Some(limit) if limit <= EXPLAIN_LIMIT as u64 => {}
        Some(limit) => {
            let message =
                format!("`explain` may have at most {EXPLAIN_LIMIT} characters, `maxLength` says {limit}");
            let place = meta.at(&format!("{explain}/maxLength"));
            found.push(Finding::error(&meta.file, place, "schema/explain", message));
        }
        None => {
            let message =
                format!("`explain` has no `maxLength`; it may have at most {EXPLAIN_LIMIT} characters");
            let finding = Finding::error(&meta.file, meta.at(explain), "schema/explain", message);
            found.push(finding.hint("Add `\"maxLength\": 280`"));
        }
    }
}

fn rationale(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    let Some(data) = section(subject, &data_names(subject)) else { return };
    if data.schema.pointer("/properties/rationale").is_none() {
        let message = "the data section does not declare `rationale`, which every success must have";
        let finding = subject.stricter(&data.file, data.at("/properties"), "schema/rationale", message);
        found.push(
            finding.hint("Add `\"rationale\": {\"type\": \"string\", \"minLength\": 1}` to its properties"),
        );
    }
    let takes_text = |kind: &Value| {
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|each| each == "string"))
    };
    if data.schema.pointer("/properties/rationale/type").is_some_and(|kind| !takes_text(kind)) {
        let message = "`rationale` has to be a string; no answer could satisfy both contracts";
        let place = data.at("/properties/rationale/type");
        found.push(subject.stricter(&data.file, place, "schema/rationale", message));
    }
    if !requires(data.schema, "rationale") {
        let message = "the data section does not require `rationale`, which every success must have";
        let finding = subject.stricter(&data.file, data.at("/required"), "schema/rationale", message);
        found.push(finding.hint("Add `\"rationale\"` to `required`"));
    }
}

fn extensions(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    let enabled = subject.effective.as_ref().is_some_and(|manifest| manifest.overflow.enabled);
    if enabled && subject.root.pointer("/$defs/extensions").is_none() {
        let message = "overflow is enabled, but `$defs.extensions` is missing: insights are not described";
        let finding =
            subject.stricter(FILE, At::Value("/$defs/extensions".into()), "schema/extensions", message);
        found.push(finding.hint("Define `insights` there, or set `overflow: {enabled: false}`"));
    }
}

fn optional_members(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    let high = subject
        .effective
        .as_ref()
        .is_some_and(|manifest| manifest.schema_strictness == SchemaStrictness::High);
    let Some(data) = section(subject, &data_names(subject)).filter(|_| high && subject.strict()) else {
        return;
    };
    let Some(Value::Object(properties)) = data.schema.get("properties") else { return };
    for name in properties.keys().filter(|name| *name != "extensions" && !requires(data.schema, name)) {
        let message = format!("strictness is high, but `{name}` may be left out");
        let place = data.at(&cognitive_contract::text::pointer("/properties", name));
        found.push(Finding::warning(&data.file, place, "schema/optional", message));
    }
}

fn prompt(subject: &Subject<'_>, found: &mut Vec<Finding>) {
    if !subject.strict() {
        return;
    }
    if !explains_envelope(&subject.prompt) {
        let message = "the prompt does not explain the envelope";
        let finding = Finding::error("prompt.md", At::File, "prompt/envelope", message);
        found.push(finding.hint("Say what goes into `meta` (confidence, risk, explain) and into `data`"));
    }
}

fn repeated_members(sources: &Sources, found: &mut Vec<Finding>) {
    let Some(text) = sources.get(FILE) else { return };
    for pointer in json::index(text).repeated {
        let message = "this member is written twice; only the last one counts";
        found.push(Finding::warning(FILE, At::Value(pointer), "schema/repeated", message));
    }
}

/// In Draft-07 whatever stands beside `$ref` is ignored, which surprises most authors.
fn ignored_beside_ref(node: &Value, at: &str, found: &mut Vec<Finding>) {
    match node {
        Value::Object(members) => {
            let is_ref = members.get("$ref").is_some_and(Value::is_string);
            let notes = ["$ref", "description", "title", "$comment", "examples", "default"];
            for name in members.keys().filter(|name| is_ref && !notes.contains(&name.as_str())) {
                let message = format!("`{name}` beside `$ref` is ignored");
                let pointer = cognitive_contract::text::pointer(at, name);
                let finding = Finding::warning(FILE, At::Value(pointer), "schema/beside-ref", message);
                found.push(finding.hint("Put both into `allOf`"));
            }
            for (name, child) in members {
                ignored_beside_ref(child, &cognitive_contract::text::pointer(at, name), found);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                ignored_beside_ref(child, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}
