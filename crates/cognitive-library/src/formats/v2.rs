//! v2.x: `module.yaml`, `prompt.md`, `schema.json`, and further schema files that these name. Reads each file at most
//! once, and limits the number of files.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use cognitive_contract::Format;
use cognitive_contract::text::pointer;
use cognitive_schema::{DATA_KEYWORDS, SCHEMA_FILE, SectionRef, file_of_ref, names_answered_by_ids};

use super::{ModuleParts, syntax_finding};
use crate::finding::{Finding, FindingLocation, quote};
use crate::folder::{Folder, safe_relative};
use crate::yaml;

const MANIFEST: &str = "module.yaml";
/// The highest number of contract files. A contract of more files is unreadable.
const MAX_FILES: usize = 32;

pub(super) fn read(folder: &Folder) -> ModuleParts {
    let mut parts = ModuleParts::new(Format::V21, MANIFEST);
    if let Some(text) = parts.text(folder, MANIFEST) {
        match yaml::parse(&text) {
            Ok(manifest) => {
                parts.format = Format::from_manifest(&manifest);
                parts.manifest = manifest;
            }
            Err(error) => parts.findings.push(syntax_finding(MANIFEST, error)),
        }
    }
    parts.prompt_text(folder, "prompt.md");
    read_schemas(&mut parts, folder);
    parts
}

/// Reads `schema.json` and every file that it, `io` or `context` names.
pub(super) fn read_schemas(parts: &mut ModuleParts, folder: &Folder) {
    let mut wanted = WantedFiles::default();
    wanted.add(SCHEMA_FILE.to_owned());
    for (name, place) in parts.manifest.get("io").and_then(Value::as_object).into_iter().flatten() {
        let Some(place) = place.as_str() else { continue };
        let file = SectionRef::parse(place).file;
        if let Some(path) = safe_relative(&file) {
            wanted.add(path.to_string_lossy().into_owned());
        } else {
            let at = FindingLocation::Value(pointer("/io", name));
            let message = format!("is outside the module: {}", quote(place));
            parts.findings.push(Finding::error(MANIFEST, at, "manifest/io", message));
        }
    }
    for place in context_schemas(&parts.manifest) {
        // A path that leads out of the module is reported by the checks of the manifest.
        if let Some(path) = safe_relative(&SectionRef::parse(place).file) {
            wanted.add(path.to_string_lossy().into_owned());
        }
    }
    while let Some(file) = wanted.next.pop_front() {
        let Some(schema) = parts.schema(folder, &file) else {
            // The size limit was reported once, and later files would exceed it too.
            if parts.contract.is_spent() {
                return;
            }
            continue;
        };
        wanted.add_named(&schema, &file);
        parts.schemas.insert(file, schema);
    }
    if wanted.too_many {
        let message = format!("the contract is spread over more than {MAX_FILES} files");
        parts.findings.push(Finding::error(SCHEMA_FILE, FindingLocation::File, "schema/files", message));
    }
}

/// The schemas that `context.accepts` and `context.emits` name.
fn context_schemas(manifest: &Value) -> impl Iterator<Item = &str> {
    let lists =
        ["/context/accepts", "/context/emits"].map(|list| manifest.pointer(list).and_then(Value::as_array));
    lists.into_iter().flatten().flatten().filter_map(|entry| entry.get("schema")?.as_str())
}

/// The queue of files to read. Each file enters it once, even if reading it fails.
#[derive(Default)]
struct WantedFiles {
    next: VecDeque<String>,
    seen: HashSet<String>,
    too_many: bool,
}

impl WantedFiles {
    fn add(&mut self, file: String) {
        if self.seen.contains(&file) {
            return;
        }
        if self.seen.len() >= MAX_FILES {
            self.too_many = true;
            return;
        }
        self.seen.insert(file.clone());
        self.next.push_back(file);
    }

    /// Adds the files that `$ref`s name. Forbidden references are reported when the contract is compiled.
    fn add_named(&mut self, schema: &Value, from: &str) {
        let answered = names_answered_by_ids(from, schema);
        let mut known = HashSet::new();
        named_files(schema, &mut |name| {
            if known.insert(name)
                && !answered.contains(name)
                && let Ok(Some(file)) = file_of_ref(name, from)
            {
                self.add(file);
            }
        });
    }
}

/// Visits the part of each `$ref` before the `#`.
fn named_files<'a>(node: &'a Value, visit: &mut impl FnMut(&'a str)) {
    match node {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                visit(reference.split_once('#').map_or(reference, |(file, _)| file));
            }
            // Examples and defaults are data; a `$ref` in them has no meaning.
            for (_, child) in members.iter().filter(|(name, _)| !DATA_KEYWORDS.contains(&name.as_str())) {
                named_files(child, visit);
            }
        }
        Value::Array(items) => {
            for child in items {
                named_files(child, visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read_with(manifest: &str, files: impl IntoIterator<Item = (String, String)>) -> ModuleParts {
        let fixed = [("module.yaml", manifest), ("prompt.md", "p")];
        let fixed = fixed.map(|(file, text)| (file.to_owned(), text.to_owned()));
        let files = fixed.into_iter().chain(files).map(|(file, text)| (file, text.into_bytes()));
        read(&Folder::memory("m", files.collect::<BTreeMap<_, _>>()))
    }

    fn rules(parts: &ModuleParts) -> Vec<String> {
        parts.findings.iter().map(|each| format!("{} {}", each.file, each.rule)).collect()
    }

    #[test]
    fn a_file_that_cannot_be_read_is_tried_once() {
        let schema = r#"{"a": [{"$ref": "b.json#/x"}, {"$ref": "./b.json#/y"}, {"$ref": "c.json"}], "d": {"$ref": "b.json"}}"#;
        let again = r#"[{"$ref": "c.json"}, {"$ref": "schema.json#/a"}]"#;
        let files = [("schema.json", schema), ("c.json", "{"), ("again.json", again)];
        let parts = read_with(
            "io: {input: 'b.json#/x', data: './b.json', meta: again.json}",
            files.map(|(file, text)| (file.to_owned(), text.to_owned())),
        );
        assert_eq!(rules(&parts), ["b.json files/missing", "c.json schema/syntax"]);
    }

    #[test]
    fn ctx_004_schemas_of_context_are_read_with_what_they_name() {
        let manifest = "context: {accepts: [{type: a, schema: ./c/a.json}, {type: b, schema: ../out.json}], emits: [{type: a, schema: c/a.json}, {type: c}]}";
        let files =
            [("schema.json", "{}"), ("c/a.json", r#"{"$ref": "b.json#/x"}"#), ("c/b.json", r#"{"x": {}}"#)];
        let parts = read_with(manifest, files.map(|(file, text)| (file.to_owned(), text.to_owned())));
        assert_eq!(parts.schemas.keys().collect::<Vec<_>>(), ["c/a.json", "c/b.json", "schema.json"]);
        assert_eq!(rules(&parts), [""; 0]);
        let none = read_with(manifest, [("schema.json".to_owned(), "{}".to_owned())]);
        assert_eq!(rules(&none), ["c/a.json files/missing"]);
    }

    #[test]
    fn files_that_are_missing_count_too() {
        let refs: Vec<String> = (0..100).map(|number| format!(r#"{{"$ref": "{number}.json"}}"#)).collect();
        let parts = read_with("a: 1", [("schema.json".to_owned(), format!("[{}]", refs.join(",")))]);
        assert_eq!(parts.findings.len(), MAX_FILES);
        assert_eq!(rules(&parts).last().unwrap(), "schema.json schema/files");
    }

    #[test]
    fn the_files_of_a_contract_are_limited_together() {
        let refs: Vec<String> = (0..12).map(|number| format!(r#"{{"$ref": "{number}.json"}}"#)).collect();
        let large = format!("\"{}\"", "x".repeat(7 << 20));
        let schema = ("schema.json".to_owned(), format!("[{}]", refs.join(",")));
        let files = (0..12).map(|number| (format!("{number}.json"), large.clone())).chain([schema]);
        let parts = read_with("a: 1", files);
        assert_eq!(rules(&parts), ["2.json files/unreadable"]);
        assert_eq!(parts.schemas.len(), 3);
    }
}
