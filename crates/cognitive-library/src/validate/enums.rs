//! Extensible enums (`oneOf [enum, {custom, reason}]`) against the strategy of the manifest: an `exec` module that
//! accepts custom values, and a custom form that is never accepted. (ENUM-001, ENUM-005) The module runs in both cases,
//! so neither is an error.

use cognitive_contract::manifest::{EnumStrategy, Tier};
use cognitive_schema::custom_branches;
use serde_json::Value;

use super::CheckedModule;
use crate::finding::{Finding, FindingLocation, Findings, Severity, quote};

pub(super) fn check(subject: &CheckedModule<'_>, found: &mut Findings) {
    let Some(manifest) = &subject.effective else { return };
    match manifest.enums.strategy {
        EnumStrategy::Extensible if manifest.tier == Tier::Exec => open_exec(subject, found),
        EnumStrategy::Extensible => {}
        EnumStrategy::Strict => refused_branches(subject, &manifest.enums.unknown_tag, found),
    }
}

/// Programs act on the answers of an `exec` module at once, and know only the listed values.
fn open_exec(subject: &CheckedModule<'_>, found: &mut Findings) {
    let written = subject.written.pointer("/enums/strategy").is_some();
    let at = if written { "/enums/strategy" } else { "/tier" };
    let message = "an `exec` module with `extensible` lists may answer with a value that no list contains";
    let finding =
        Finding::warning(subject.manifest_file, FindingLocation::Value(at.into()), "manifest/enums", message);
    found.push(
        finding.hint("Write `enums: {strategy: strict}`, or `tier: decision` if new values are intended"),
    );
}

/// A module with strict enums refuses every value of these branches.
fn refused_branches(subject: &CheckedModule<'_>, tag: &str, found: &mut Findings) {
    let by = match subject.written.pointer("/enums/strategy") {
        Some(_) => "`enums.strategy` is `strict`".to_owned(),
        None => {
            let tier = subject.written.get("tier").and_then(Value::as_str).unwrap_or_default();
            format!("`enums.strategy` defaults to `strict` for tier {}", quote(tier))
        }
    };
    for (file, root) in subject.schemas {
        for pointer in custom_branches(root, tag) {
            found.push_with(Severity::Warning, || {
                let message = format!("a value in this form is always rejected: {by}");
                let at = FindingLocation::Value(pointer.clone());
                let hint = "Write `enums: {strategy: extensible}`, or leave this branch out";
                Finding::warning(file, at, "schema/custom-value", message).hint(hint)
            });
        }
    }
}
