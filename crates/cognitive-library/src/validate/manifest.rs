//! The checks of `module.yaml`, or of the front matter of older formats. Reads none of the files it names: loading
//! does. Searches no list once per entry of another, which would be quadratic.

use std::collections::HashSet;

use cognitive_contract::Format;
use cognitive_contract::code::is_module_code;
use cognitive_contract::context::key::pattern_fault;
use cognitive_contract::manifest::{RiskRule, manifest_schema, violations};
use cognitive_contract::policy::{OfferedTool, ToolLaw};
use cognitive_contract::text::pointer;
use cognitive_schema::{ContractPlace, MemberDescription, SCHEMA_FILE, SchemaFiles, SectionRef};
use serde_json::Value;

use super::CheckedModule;
use super::nearest_name::{did_you_mean, nearest};
use super::schema::undescribed_insights;
use crate::finding::{Finding, FindingLocation, Findings, quote};
use crate::json::{JsonPathStep, pointer_of};
use crate::load::manifest_finding;

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    // First, because a misspelt key is the cause of what other checks miss.
    keys(subject, found);
    identity(subject, found);
    format_age(subject, found);
    tier_and_blocks(subject, found);
    codes(subject, found);
    tools(subject, found);
    key_patterns(subject, found);
}

/// Reports key patterns that no run can fill: their context would never be stored.
fn key_patterns(subject: &CheckedModule<'_>, found: &mut Findings) {
    let emits = subject.effective.iter().flat_map(|manifest| &manifest.context.emits);
    for (index, emit) in emits.enumerate() {
        let Some(fault) = emit.key_pattern.as_deref().and_then(pattern_fault) else { continue };
        let place = FindingLocation::Value(format!("/context/emits/{index}/key_pattern"));
        let finding = Finding::error(subject.manifest_file, place, "manifest/key-pattern", fault);
        found.push(
            finding.hint("The variables are `${module}`, `${session_id}`, `${user_id}` and `${input_hash}`"),
        );
    }
}

/// Returns whether a key is absent or has an empty value.
pub(super) fn missing(subject: &CheckedModule<'_>, key: &str) -> bool {
    match subject.written.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn at(key: &str) -> FindingLocation {
    FindingLocation::Value(pointer("", key))
}

const LABELS: [(&str, &str); 3] = [
    ("name", "Add `name: my-module` (lower-case letters, digits, hyphens)"),
    ("version", "Write three numbers as text, such as `version: \"1.0.0\"`"),
    ("responsibility", "Add one sentence: `responsibility: …`"),
];

/// Reports a missing or invalid name, version or responsibility. Loading accepts such a module; its users need them.
pub(crate) fn labels(written: &Value, file: &str) -> Vec<Finding> {
    let violations = violations(written);
    let mut found = Vec::new();
    for (key, hint) in LABELS {
        let empty = match written.get(key) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            Some(_) => false,
        };
        let broken = violations.iter().find(|violation| violation.path == format!("/{key}"));
        let finding = match broken {
            _ if empty => {
                let message = format!("required field is missing: `{key}`");
                Finding::error(file, at(key), "manifest/required", message)
            }
            Some(violation) => manifest_finding(file, violation.clone()),
            None => continue,
        };
        found.push(finding.hint(hint));
    }
    found
}

fn identity(subject: &CheckedModule<'_>, found: &mut Findings) {
    let file = subject.manifest_file;
    found.extend(labels(subject.written, file));
    if missing(subject, "excludes") {
        // One line for both, unless strict mode makes the second one a separate error.
        let both = !subject.strict() && undescribed_insights(subject);
        let (message, hint) = if both {
            (
                "`excludes` is missing or empty, and `$defs.extensions` does not describe insights: the model \
                 is not told what to leave out and what to add",
                "List limits, such as `excludes: [inventing facts]`, and set `overflow: {enabled: false}` \
                 unless you describe insights",
            )
        } else {
            (
                "`excludes` is missing or empty: the model is not told what to leave out",
                "List limits, such as `excludes: [inventing facts]`; the prompt names each of them",
            )
        };
        let finding = match subject.format {
            Format::V0 | Format::V1 => Finding::error(file, at("excludes"), "manifest/excludes", message),
            Format::V21 | Format::V22 | Format::V25 => {
                Finding::warning(file, at("excludes"), "manifest/excludes", message)
            }
        };
        found.push(finding.hint(hint));
    }
    let name = subject.written.get("name").and_then(Value::as_str).unwrap_or_default();
    let folder = subject.folder.name();
    if !name.is_empty() && !folder.is_empty() && subject.folder.path().is_some() && name != folder {
        let folder = quote(&folder);
        let message = format!("`name` is {}, but the name of the folder is {folder}", quote(name));
        found.push(
            Finding::warning(file, at("name"), "manifest/name", message)
                .hint(format!("The folder name is used: the module runs as {folder}")),
        );
    }
}

fn format_age(subject: &CheckedModule<'_>, found: &mut Findings) {
    let file = subject.manifest_file;
    let Some(deprecation) = subject.format.deprecation() else { return };
    if subject.format <= Format::V1 && subject.strict() {
        let message = format!("a {} module cannot be valid v2.2", subject.format);
        let hint = format!("Run `cogn migrate {}`", subject.folder.name());
        found.push(Finding::error(file, FindingLocation::File, "format/old", message).hint(hint));
    } else if !is_new_without_tier(subject) {
        found.push(Finding::warning(file, FindingLocation::File, "format/old", deprecation));
    }
}

/// Returns whether a module that counts as v2.1 is written like v2.2: its contract has a `data` section, so only a key
/// is missing.
fn is_new_without_tier(subject: &CheckedModule<'_>) -> bool {
    subject.format == Format::V21 && subject.root.get("data").is_some()
}

/// Returns the unknown key that is probably a misspelling of `key`.
fn find_misspelling<'a>(subject: &CheckedModule<'a>, key: &str) -> Option<&'a str> {
    let properties = manifest_schema().get("properties").and_then(Value::as_object)?;
    let mut written = subject.written.as_object()?.keys();
    written
        .find(|name| {
            !properties.contains_key(*name)
                && nearest(name, properties.keys().map(String::as_str)) == Some(key)
        })
        .map(String::as_str)
}

fn tier_and_blocks(subject: &CheckedModule<'_>, found: &mut Findings) {
    if subject.format <= Format::V1 {
        return;
    }
    let file = subject.manifest_file;
    // The finding about the misspelt key says all that a warning could add.
    let is_told = !subject.strict() && find_misspelling(subject, "tier").is_some();
    if missing(subject, "tier") && !is_told {
        let message = if is_new_without_tier(subject) {
            "`tier` is missing: `decision` is assumed, and the module counts as format v2.1"
        } else {
            "`tier` is missing; `decision` is assumed"
        };
        let finding = subject.stricter(file, at("tier"), "manifest/tier", message);
        let hint = "Add `tier: exec`, `decision` or `exploration`; `cogn validate --v22` checks the rest";
        found.push(finding.hint(hint));
    }
    if subject.strict() {
        for (block, hint) in [
            ("overflow", "Add `overflow: {enabled: true, max_items: 5}`, or `enabled: false`"),
            ("enums", "Add `enums: {strategy: extensible}`, or `strict`"),
        ] {
            if missing(subject, block) {
                let message = format!("`{block}` is missing");
                found.push(Finding::error(file, at(block), "manifest/block", message).hint(hint));
            }
        }
    }
    if subject.effective.as_ref().is_some_and(|manifest| manifest.meta.risk_rule == RiskRule::CustomFunction)
    {
        let message =
            "`custom_function` has no declared form; the model's own risk is used, as with `explicit`";
        found.push(Finding::warning(
            file,
            FindingLocation::Value("/meta/risk_rule".into()),
            "manifest/risk-rule",
            message,
        ));
    }
}

/// Reports unknown keys, at every depth.
fn keys(subject: &CheckedModule<'_>, found: &mut Findings) {
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), manifest_schema().clone())]);
    let Some(place) = ContractPlace::from_section(&files, &SectionRef::parse("")) else { return };
    unknown_below(subject.written, &place, &mut Vec::new(), &mut |path, key, known| {
        let at = pointer_of(path);
        // The old name of a section, and extension keys of the author.
        if at == "/io/output" || key.starts_with("x-") {
            return;
        }
        let message = format!("unknown key, kept and ignored: {}", quote(key));
        let at = FindingLocation::Key(at.into());
        let finding = Finding::warning(subject.manifest_file, at, "manifest/unknown-key", message);
        found.push(Finding { hint: did_you_mean(key, known.names()), ..finding });
    });
    policies(subject, &place, found);
}

/// Reports policies that the runtime does not know: authors may name their own, but nothing enforces them.
fn policies(subject: &CheckedModule<'_>, place: &ContractPlace<'_>, found: &mut Findings) {
    let MemberDescription::Described(known) = place.member("policies") else { return };
    let (known, written) = (known.names(), subject.written.get("policies").and_then(Value::as_object));
    let is_unknown = |key: &&String| !known.contains(key.as_str()) && !key.starts_with("x-");
    for key in written.into_iter().flat_map(|written| written.keys().filter(is_unknown)) {
        let message = format!("unknown policy, which nothing enforces: {}", quote(key));
        let at = FindingLocation::Key(pointer("/policies", key).into());
        let finding = Finding::warning(subject.manifest_file, at, "manifest/unknown-key", message);
        found.push(Finding { hint: did_you_mean(key, known.iter().copied()), ..finding });
    }
}

fn unknown_below<'v>(
    value: &'v Value,
    place: &ContractPlace<'_>,
    path: &mut Vec<JsonPathStep<'v>>,
    tell: &mut impl FnMut(&[JsonPathStep<'v>], &str, &ContractPlace<'_>),
) {
    for (key, member) in value.as_object().into_iter().flatten() {
        path.push(JsonPathStep::Member(key.into()));
        match place.member(key) {
            MemberDescription::Described(next) => unknown_below(member, &next, path, tell),
            MemberDescription::Undescribed => tell(path, key, place),
            MemberDescription::Open | MemberDescription::Never => {}
        }
        path.pop();
    }
    let MemberDescription::Described(items) = place.items() else { return };
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        path.push(JsonPathStep::Item(at));
        unknown_below(item, &items, path, tell);
        path.pop();
    }
}

/// Reports tools that are listed but never offered: another key denies them, and deny wins. (POL-003, POL-006)
fn tools(subject: &CheckedModule<'_>, found: &mut Findings) {
    let Some(manifest) = &subject.effective else { return };
    let denied: HashSet<&str> = manifest.tools.denied.iter().map(String::as_str).collect();
    let law = ToolLaw { policies: &manifest.policies, lists: Vec::new() };
    for (index, name) in manifest.tools.allowed.iter().enumerate() {
        let message = if denied.contains(name.as_str()) {
            format!("the tool is both allowed and denied, so it is never offered: {}", quote(name))
        } else {
            let Some(refusal) = law.refusal(OfferedTool { name, classes: &[] }) else { continue };
            format!("the tool is listed and never offered: {}", refusal.message())
        };
        let place = FindingLocation::Value(pointer("/tools/allowed", &index.to_string()));
        let finding = Finding::warning(subject.manifest_file, place, "manifest/tools", message);
        found.push(finding.hint("Allow its permissions under `policies`, or remove it from the list"));
    }
}

fn codes(subject: &CheckedModule<'_>, found: &mut Findings) {
    let Some(Value::Object(codes)) = subject.written.get("error_codes") else { return };
    let file = subject.manifest_file;
    for code in codes.keys() {
        if !is_module_code(code) {
            let message = format!("a module's own codes are E5000 to E9999, found: {}", quote(code));
            let place = FindingLocation::Value(pointer("/error_codes", code));
            found.push(Finding::warning(file, place, "manifest/error-codes", message));
        }
    }
    let list = "/error/properties/code/enum";
    let Some(Value::Array(listed)) = subject.root.pointer(list) else { return };
    let listed: HashSet<&str> = listed.iter().filter_map(Value::as_str).collect();
    for code in codes.keys().filter(|code| !listed.contains(code.as_str())) {
        let message = format!("`error_codes` declares {}, which `#{list}` does not list", quote(code));
        found.push(Finding::warning(
            "schema.json",
            FindingLocation::Value(list.into()),
            "schema/error-codes",
            message,
        ));
    }
}
