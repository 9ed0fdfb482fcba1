//! The checks of `schema.json` and `prompt.md`. Paths are stored as steps, and written out only for a finding.

use std::collections::HashSet;

use cognitive_contract::Format;
use cognitive_contract::manifest::{SchemaAlias, SchemaStrictness};
use cognitive_contract::meta::EXPLAIN_LIMIT;
use cognitive_contract::module::explains_envelope;
use cognitive_schema::{ContractPlace, MemberDescription, SchemaFiles, SectionRef, file_of_ref};
use serde_json::{Map, Value};

use super::CheckedModule;
use crate::finding::{Finding, FindingLocation, Findings, Severity, Sources, quote};
use crate::json::{JsonPathStep, pointer_of};

const FILE: &str = "schema.json";
/// The limit for chains of references. Longer ones are unreadable.
const MAX_STEPS: usize = 8;

pub(super) fn check(subject: &CheckedModule<'_>, sources: &Sources, found: &mut Findings) {
    repeated_members(sources, found);
    if !subject.declares_dialect {
        ignored_next_to_ref(subject.root, &mut Vec::new(), found);
    }
    if subject.format >= Format::V21 {
        meta_section(subject, found);
        rationale(subject, found);
        extensions(subject, found);
        optional_members(subject, found);
        prompt(subject, found);
    }
}

/// Keywords that the declared dialect does not have, and that restrict nothing for that reason. (D-25)
pub(super) fn foreign_keywords(subject: &CheckedModule<'_>, written: &SchemaFiles, found: &mut Findings) {
    for problem in cognitive_schema::foreign_keywords(written) {
        let at = FindingLocation::Key(problem.pointer.into());
        let finding = subject.stricter(&problem.file, at, "schema/dialect", problem.message);
        found.push(Finding { hint: problem.hint.map(str::to_owned), ..finding });
    }
}

/// A section of the contract and its position.
struct FoundSection<'a> {
    file: String,
    pointer: String,
    schema: &'a Value,
}

impl FoundSection<'_> {
    /// A location inside the section.
    fn at(&self, below: &str) -> FindingLocation {
        FindingLocation::Value(format!("{}{below}", self.pointer))
    }
}

/// Finds a section by `io` or by its usual name; follows one local `$ref`.
fn section<'a>(subject: &'a CheckedModule<'_>, names: &[&str]) -> Option<FoundSection<'a>> {
    let from_io = subject.effective.as_ref().and_then(|manifest| {
        let place = SectionRef::parse(manifest.io.get(*names.first()?)?);
        Some((place.file, place.pointer))
    });
    let usual = names.iter().map(|name| (FILE.to_owned(), format!("/{name}")));
    from_io.into_iter().chain(usual).find_map(|(file, pointer)| resolve_section(subject, file, pointer))
}

fn resolve_section<'a>(
    subject: &'a CheckedModule<'_>,
    file: String,
    pointer: String,
) -> Option<FoundSection<'a>> {
    let root = subject.schemas.get(&file)?;
    let node = root.pointer(&pointer)?;
    match node.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#')) {
        Some(target) => {
            Some(FoundSection { file, pointer: target.to_owned(), schema: root.pointer(target)? })
        }
        None => Some(FoundSection { file, pointer, schema: node }),
    }
}

/// The file and pointer of a section.
pub(super) fn section_ref(subject: &CheckedModule<'_>, names: &[&str]) -> Option<SectionRef> {
    let FoundSection { file, pointer, .. } = section(subject, names)?;
    Some(SectionRef { file, pointer })
}

/// The contract of a section.
pub(super) fn section_place<'a>(subject: &'a CheckedModule<'_>, names: &[&str]) -> Option<ContractPlace<'a>> {
    ContractPlace::from_section(subject.schemas, &section_ref(subject, names)?)
}

pub(super) fn data_names(subject: &CheckedModule<'_>) -> [&'static str; 2] {
    match subject.effective.as_ref().map(|manifest| manifest.compat.schema_output_alias) {
        Some(SchemaAlias::Output) => ["output", "data"],
        _ => ["data", "output"],
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|each| each == name))
}

fn meta_section(subject: &CheckedModule<'_>, found: &mut Findings) {
    if !subject.strict() {
        return;
    }
    let Some(meta) = section(subject, &["meta"]) else {
        let finding = Finding::error(
            FILE,
            FindingLocation::Value("/meta".into()),
            "schema/meta",
            "section `meta` is missing",
        );
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

fn rationale(subject: &CheckedModule<'_>, found: &mut Findings) {
    let names = data_names(subject);
    let (Some(data), Some(place)) = (section(subject, &names), section_place(subject, &names)) else {
        return;
    };
    // Also through references and inside `allOf`.
    if !matches!(place.member("rationale"), MemberDescription::Described(_)) {
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
        let message = "`rationale` must be a string; no answer could satisfy both contracts";
        let place = data.at("/properties/rationale/type");
        found.push(subject.stricter(&data.file, place, "schema/rationale", message));
    }
    if !requires(data.schema, "rationale") && !place.required_members().contains(&"rationale") {
        let message = "the data section does not require `rationale`, which every success must have";
        let finding = subject.stricter(&data.file, data.at("/required"), "schema/rationale", message);
        found.push(finding.hint("Add `\"rationale\"` to `required`"));
    }
}

/// Returns whether answers may hold insights that the contract does not describe. (VAL-015)
pub(super) fn undescribed_insights(subject: &CheckedModule<'_>) -> bool {
    let enabled = subject.effective.as_ref().is_some_and(|manifest| manifest.overflow.enabled);
    subject.root.is_object()
        && enabled
        && subject.root.pointer("/$defs/extensions").is_none()
        && !describes_insights(subject)
}

fn extensions(subject: &CheckedModule<'_>, found: &mut Findings) {
    // In standard mode, the advice about `excludes` includes this one.
    let is_told = !subject.strict() && super::manifest::missing(subject, "excludes");
    if undescribed_insights(subject) && !is_told {
        let message = "overflow is enabled, but `$defs.extensions` is missing: insights are not described";
        let finding = subject.stricter(
            FILE,
            FindingLocation::Value("/$defs/extensions".into()),
            "schema/extensions",
            message,
        );
        found.push(finding.hint("Define `insights` there, or set `overflow: {enabled: false}`"));
    }
}

/// Returns whether the data section describes `extensions`, directly or at the end of a `$ref` with any name.
fn describes_insights(subject: &CheckedModule<'_>) -> bool {
    let Some(data) = section(subject, &data_names(subject)) else { return false };
    let pointer = format!("{}/properties/extensions", data.pointer);
    let target = follow(subject, data.file, pointer);
    target.is_some_and(|extensions| extensions.pointer("/properties/insights").is_some())
}

/// The schema at a location, after up to `MAX_STEPS` references.
fn follow<'a>(subject: &'a CheckedModule<'_>, mut file: String, mut pointer: String) -> Option<&'a Value> {
    for _ in 0..MAX_STEPS {
        let node = subject.schemas.get(&file)?.pointer(&pointer)?;
        let Some(reference) = node.get("$ref").and_then(Value::as_str) else { return Some(node) };
        if let Some(other) = file_of_ref(reference, &file).ok()? {
            file = other;
        }
        let target = reference.split_once('#').map_or("", |(_, target)| target);
        target.clone_into(&mut pointer);
    }
    None
}

fn optional_members(subject: &CheckedModule<'_>, found: &mut Findings) {
    let high = subject
        .effective
        .as_ref()
        .is_some_and(|manifest| manifest.schema_strictness == SchemaStrictness::High);
    let Some(data) = section(subject, &data_names(subject)).filter(|_| high && subject.strict()) else {
        return;
    };
    let Some(Value::Object(properties)) = data.schema.get("properties") else { return };
    let required = data.schema.get("required").and_then(Value::as_array);
    let required: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    for name in properties.keys().filter(|name| *name != "extensions" && !required.contains(name.as_str())) {
        let message = format!("strictness is high, but {} is optional", quote(name));
        let place = data.at(&cognitive_contract::text::pointer("/properties", name));
        found.push(Finding::warning(&data.file, place, "schema/optional", message));
    }
}

fn prompt(subject: &CheckedModule<'_>, found: &mut Findings) {
    if !subject.strict() {
        return;
    }
    if !explains_envelope(subject.prompt) {
        let message = "the prompt does not explain the envelope";
        let finding = Finding::error("prompt.md", FindingLocation::File, "prompt/envelope", message);
        let hint = "Write `$ENVELOPE` to let the runtime explain it, or describe `meta` (confidence, \
             risk, explain) and `data`";
        found.push(finding.hint(hint));
    }
}

fn repeated_members(sources: &Sources, found: &mut Findings) {
    for pointer in sources.repeated_members(FILE) {
        let message = "duplicate member; only the last one counts";
        found.push(Finding::warning(
            FILE,
            FindingLocation::Value(pointer.clone()),
            "schema/repeated",
            message,
        ));
    }
}

/// Reports siblings of `$ref`: Draft-07 ignores them, which surprises most authors.
fn ignored_next_to_ref<'a>(node: &'a Value, path: &mut Vec<JsonPathStep<'a>>, found: &mut Findings) {
    match node {
        Value::Object(members) => {
            if members.get("$ref").is_some_and(Value::is_string) {
                next_to_ref(members, path, found);
            }
            for (name, child) in members {
                collect_ignored(JsonPathStep::Member(name.into()), child, path, found);
            }
        }
        Value::Array(items) => {
            for (position, child) in items.iter().enumerate() {
                collect_ignored(JsonPathStep::Item(position), child, path, found);
            }
        }
        _ => {}
    }
}

fn collect_ignored<'a>(
    step: JsonPathStep<'a>,
    child: &'a Value,
    path: &mut Vec<JsonPathStep<'a>>,
    found: &mut Findings,
) {
    if child.is_object() || child.is_array() {
        path.push(step);
        ignored_next_to_ref(child, path, found);
        path.pop();
    }
}

/// The siblings of `$ref` that are harmless.
const NOTES: [&str; 6] = ["$ref", "description", "title", "$comment", "examples", "default"];

fn next_to_ref<'a>(members: &'a Map<String, Value>, path: &mut Vec<JsonPathStep<'a>>, found: &mut Findings) {
    for name in members.keys().filter(|name| !NOTES.contains(&name.as_str())) {
        found.push_with(Severity::Warning, || {
            path.push(JsonPathStep::Member(name.into()));
            let place = FindingLocation::Value(pointer_of(path));
            path.pop();
            let message = format!("{} beside `$ref` is ignored", quote(name));
            Finding::warning(FILE, place, "schema/beside-ref", message).hint("Put both into `allOf`")
        });
    }
}
