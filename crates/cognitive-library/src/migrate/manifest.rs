//! `module.yaml` in v2.2 form: extends a v2.1 manifest, and writes a new one from v1 front matter. Never overwrites an
//! existing key; added keys state the previous defaults.

use cognitive_contract::Manifest;
use cognitive_contract::manifest::Allow;
use cognitive_schema::{SCHEMA_FILE, SectionRef};
use serde_json::{Map, Value, json};

use super::{refs, yaml_text};

/// The new text of `module.yaml` and the list of changes.
pub(super) struct MigratedManifest {
    pub text: String,
    pub steps: Vec<String>,
}

/// The blocks that make a manifest v2.2. Overflow and enums keep their effective values: an author who set the
/// strictness of a v2.1 module chose them.
fn new_blocks(effective: &Manifest) -> [(&'static str, Value); 4] {
    let overflow = &effective.overflow;
    [
        ("tier", json!(effective.tier)),
        (
            "overflow",
            json!({
                "enabled": overflow.enabled,
                "recoverable": overflow.recoverable,
                "max_items": overflow.max_items,
                "require_suggested_mapping": overflow.require_suggested_mapping,
            }),
        ),
        ("enums", json!({ "strategy": effective.enums.strategy })),
        (
            "compat",
            json!({
                "accepts_v21_payload": effective.compat.accepts_v21_payload,
                "runtime_auto_wrap": effective.compat.runtime_auto_wrap,
                "schema_output_alias": effective.compat.schema_output_alias,
            }),
        ),
    ]
}

/// Adds the v2.2 keys to a v2.1 manifest. `None` if no text can express the result.
pub(super) fn migrate_v21(
    text: &str,
    written: &Map<String, Value>,
    effective: &Manifest,
    renamed: bool,
) -> Option<MigratedManifest> {
    let mut steps = Vec::new();
    let mut target = written.clone();
    let mut edited = text.to_owned();
    if renamed {
        let moved = move_pointers(&mut target);
        edited = with_moved_pointers(&edited, &moved);
        steps.extend(moved.iter().map(|(name, _)| format!("`io.{name}` now points to `#/data`")));
    }
    // The manifest before the additions, apart from the moved pointers.
    let old = target.clone();
    if !is_text(target.get("name")) {
        target.insert("name".to_owned(), json!(effective.name));
        steps.push(format!("added `name: {}`, which is the name of the folder", effective.name));
    }
    for (key, value) in new_blocks(effective) {
        // A key without a value was no decision of the author.
        if target.get(key).is_none_or(Value::is_null) {
            steps.push(added_line(key, &value));
            target.insert(key.to_owned(), value);
        }
    }
    if let Some(text) = yaml_text::append(&edited, &old, &target) {
        return Some(MigratedManifest { text, steps });
    }
    let lost = if text.contains('#') { "; comments in it are lost" } else { "" };
    steps.push(format!("rewritten in block style, because its form allows no additions{lost}"));
    yaml_text::render(&target).map(|text| MigratedManifest { text, steps })
}

fn added_line(key: &str, value: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}: {}", word(value)));
            format!("added `{key}: {{{}}}`", members.collect::<Vec<_>>().join(", "))
        }
        _ => format!("added `{key}: {}`", word(value)),
    }
}

fn is_text(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// Points `io` at the renamed section, and renames `io.output` to `io.data`. Returns the new entries by old name.
fn move_pointers(manifest: &mut Map<String, Value>) -> Vec<(String, String)> {
    let Some(Value::Object(io)) = manifest.get_mut("io") else { return Vec::new() };
    let mut moved = Vec::new();
    for (name, place) in io.iter_mut() {
        let Some(text) = place.as_str() else { continue };
        let at = SectionRef::parse(text);
        if at.file == SCHEMA_FILE && refs::moved_pointer(&at.pointer).is_some() {
            moved.push((name.clone(), text.to_owned()));
            *place = json!(text.replacen("#/output", "#/data", 1));
        }
    }
    let position = io.keys().position(|name| name == "output").filter(|_| is_moved(&moved, "output"));
    if let Some((position, place)) = position.and_then(|at| Some((at, io.shift_remove("output")?))) {
        io.shift_insert(position, "data".to_owned(), place);
    }
    moved
}

fn is_moved(moved: &[(String, String)], name: &str) -> bool {
    moved.iter().any(|(each, _)| each == name)
}

fn with_moved_pointers(text: &str, moved: &[(String, String)]) -> String {
    let edits: Vec<_> = moved
        .iter()
        .map(|(name, _)| (format!("/io/{name}"), "#/output".to_owned(), "#/data".to_owned()))
        .collect();
    let text = yaml_text::replace_values(text, &edits);
    if is_moved(moved, "output") { with_renamed_key(&text) } else { text }
}

/// Renames the key `output` in `io` if it is directly before its value as `output:`. Otherwise the text stays
/// unchanged, and the caller compares it with the target.
fn with_renamed_key(text: &str) -> String {
    let renamed = crate::yaml::spans(text).get("/io/output").and_then(|span| {
        let before = text.get(..span.start)?;
        let key = before.trim_end().strip_suffix(':')?.trim_end().trim_end_matches(['"', '\'']);
        let head = key.strip_suffix("output")?;
        Some(format!("{head}data{}", text.get(key.len()..)?))
    });
    renamed.unwrap_or_else(|| text.to_owned())
}

/// Writes the manifest of a v1 module from its front matter. `None` if no text can express the result.
pub(super) fn migrate_v1(
    written: &Map<String, Value>,
    effective: &Manifest,
    renamed: bool,
) -> Option<MigratedManifest> {
    let mut target = v1_manifest(written, effective);
    if renamed {
        move_pointers(&mut target);
    }
    let origin = "# Written by `cogn migrate` from MODULE.md, which is kept for reference.";
    let text = format!("{origin}\n{}", yaml_text::render(&target)?);
    let mut steps = vec!["written from the front matter of `MODULE.md`, which is unchanged".to_owned()];
    for (constraint, policy) in POLICY_CONSTRAINTS {
        if written.get("constraints").and_then(|constraints| constraints.get(constraint))
            == Some(&json!(true))
        {
            steps.push(format!("`constraints.{constraint}` became `policies.{policy}: deny`"));
        }
    }
    yaml_text::says(&text, &target).then_some(MigratedManifest { text, steps })
}

/// The constraints of v1 that are policies in v2, with the name of each policy.
const POLICY_CONSTRAINTS: [(&str, &str); 2] =
    [("no_network", "network"), ("no_side_effects", "side_effects")];

fn v1_manifest(written: &Map<String, Value>, effective: &Manifest) -> Map<String, Value> {
    let mut target = Map::new();
    target.insert("name".to_owned(), json!(effective.name));
    target.insert("version".to_owned(), json!(effective.version));
    target.insert("responsibility".to_owned(), json!(effective.responsibility));
    let [tier, blocks @ ..] = new_blocks(effective);
    let mut add = |key: &str, value: Value| {
        let author = written.get(key).filter(|value| !value.is_null());
        target.insert(key.to_owned(), author.cloned().unwrap_or(value));
    };
    add(tier.0, tier.1);
    add("excludes", json!([]));
    for (key, value) in blocks {
        add(key, value);
    }
    let at = target.keys().position(|key| key == "overflow").unwrap_or(target.len());
    target.shift_insert(at, "policies".to_owned(), Value::Object(policies(written, effective)));
    // Copies all other keys, known or not: the runtime ignores unknown keys, but people may use them.
    for (key, value) in written.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("constraints", Value::Object(constraints)) => {
                let rest = remaining_constraints(constraints);
                if !rest.is_empty() {
                    target.insert(key.clone(), Value::Object(rest));
                }
            }
            _ if target.contains_key(key) => {}
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
    target
}

/// The four policies, written out with their effective values: denied unless the author allowed it.
fn policies(written: &Map<String, Value>, effective: &Manifest) -> Map<String, Value> {
    let mut policies = written.get("policies").and_then(Value::as_object).cloned().unwrap_or_default();
    let held = &effective.policies;
    for (name, word) in [
        ("network", held.network),
        ("filesystem_write", held.filesystem_write),
        ("side_effects", held.side_effects),
        ("code_execution", held.code_execution),
    ] {
        let author = policies.get(name).filter(|value| !value.is_null());
        if word == Allow::Deny || author.is_none() {
            policies.insert(name.to_owned(), json!(word));
        }
    }
    policies
}

/// The constraints that did not become policies.
fn remaining_constraints(constraints: &Map<String, Value>) -> Map<String, Value> {
    let is_policy = |name: &str| POLICY_CONSTRAINTS.iter().any(|(constraint, _)| *constraint == name);
    let rest = constraints.iter().filter(|(name, _)| !is_policy(name));
    rest.map(|(name, value)| (name.clone(), value.clone())).collect()
}
