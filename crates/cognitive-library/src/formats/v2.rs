//! v2.x: `module.yaml`, `prompt.md`, `schema.json`, and the further schema files that these name.

use std::collections::VecDeque;

use serde_json::Value;

use cognitive_contract::Format;
use cognitive_contract::schema::{DATA_KEYWORDS, SCHEMA_FILE, SectionRef, file_of_ref};

use super::Parts;
use crate::finding::{At, Finding};
use crate::folder::{Folder, TEXT_LIMIT, safe_relative};
use crate::yaml;

const MANIFEST: &str = "module.yaml";
/// More files than this make no contract that anybody could read.
const MOST_FILES: usize = 32;

pub(super) fn read(folder: &Folder) -> Parts {
    let mut parts = Parts::new(Format::V21, MANIFEST);
    if let Some(text) = parts.text(folder, MANIFEST, TEXT_LIMIT) {
        match yaml::parse(&text) {
            Ok(manifest) => {
                parts.format = Format::of_manifest(&manifest);
                parts.manifest = manifest;
            }
            Err(error) => {
                let at = error.offset.map_or(At::File, At::Offset);
                parts.findings.push(Finding::error(MANIFEST, at, "manifest/syntax", error.message));
            }
        }
    }
    parts.prompt_text(folder, "prompt.md");
    read_schemas(&mut parts, folder);
    parts
}

/// Reads `schema.json` and, from there and from `io`, every file that is named.
pub(super) fn read_schemas(parts: &mut Parts, folder: &Folder) {
    let mut wanted = VecDeque::from([SCHEMA_FILE.to_owned()]);
    for (name, place) in parts.manifest.get("io").and_then(Value::as_object).cloned().into_iter().flatten() {
        let Some(place) = place.as_str() else { continue };
        let file = SectionRef::parse(place).file;
        if let Some(path) = safe_relative(&file) {
            wanted.push_back(path.to_string_lossy().into_owned());
        } else {
            let at = At::Value(format!("/io/{name}"));
            let message = format!("points out of the module: `{place}`");
            parts.findings.push(Finding::error(MANIFEST, at, "manifest/io", message));
        }
    }
    while let Some(file) = wanted.pop_front() {
        if parts.schemas.contains_key(&file) {
            continue;
        }
        if parts.schemas.len() >= MOST_FILES {
            let message = format!("the contract is spread over more than {MOST_FILES} files");
            parts.findings.push(Finding::error(SCHEMA_FILE, At::File, "schema/files", message));
            return;
        }
        let Some(schema) = parts.schema(folder, &file) else { continue };
        named_files(&schema, &file, &mut wanted);
        parts.schemas.insert(file, schema);
    }
}

/// The files that `$ref`s name. References that are not allowed are reported when the contract is compiled.
fn named_files(node: &Value, from: &str, wanted: &mut VecDeque<String>) {
    match node {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str)
                && let Ok(Some(file)) = file_of_ref(reference, from)
            {
                wanted.push_back(file);
            }
            // Examples and defaults are data; a `$ref` in them means nothing.
            for (_, child) in members.iter().filter(|(name, _)| !DATA_KEYWORDS.contains(&name.as_str())) {
                named_files(child, from, wanted);
            }
        }
        Value::Array(items) => {
            for child in items {
                named_files(child, from, wanted);
            }
        }
        _ => {}
    }
}
