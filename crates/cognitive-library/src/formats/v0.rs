//! v0: six files. Deprecated, but existing modules still run.

use serde_json::{Value, json};

use cognitive_contract::Format;
use cognitive_schema::SCHEMA_FILE;

use super::{ModuleParts, front_matter, syntax_finding};
use crate::folder::{Folder, TEXT_LIMIT};
use crate::yaml;

const MANIFEST: &str = "module.md";
const CONSTRAINTS: &str = "constraints.yaml";

pub(super) fn read(folder: &Folder) -> ModuleParts {
    let mut parts = ModuleParts::new(Format::V0, MANIFEST);
    if let Some(text) = parts.text(folder, MANIFEST) {
        match front_matter(&text) {
            Ok((manifest, _)) => parts.manifest = manifest,
            Err(error) => parts.findings.push(syntax_finding(MANIFEST, error)),
        }
    }
    add_constraints(&mut parts, folder);
    parts.prompt_text(folder, "prompt.txt");
    let input = parts.schema(folder, "input.schema.json");
    let output = parts.schema(folder, "output.schema.json");
    if let (Some(input), Some(output)) = (input, output) {
        // Builds one document with two sections, as in every later format. References that start at the root of the old
        // file get the new section as a prefix.
        let document = json!({ "input": rebase(input, "#/input"), "output": rebase(output, "#/output") });
        parts.schemas.insert(SCHEMA_FILE.to_owned(), document);
    }
    parts
}

fn add_constraints(parts: &mut ModuleParts, folder: &Folder) {
    let Ok(text) = folder.read(CONSTRAINTS, TEXT_LIMIT) else { return };
    parts.sources.insert(CONSTRAINTS, text.clone());
    match yaml::parse(&text) {
        Ok(constraints @ Value::Object(_)) => {
            if let Value::Object(manifest) = &mut parts.manifest {
                manifest.entry("constraints").or_insert(constraints);
            }
        }
        Ok(_) => {}
        Err(error) => parts.findings.push(syntax_finding(CONSTRAINTS, error)),
    }
}

fn rebase(mut node: Value, prefix: &str) -> Value {
    match &mut node {
        Value::Object(members) => {
            for (name, child) in members.iter_mut() {
                let moved = match (name.as_str(), child.as_str()) {
                    ("$ref", Some(reference)) => {
                        reference.strip_prefix('#').map(|rest| Value::from(format!("{prefix}{rest}")))
                    }
                    _ => None,
                };
                *child = moved.unwrap_or_else(|| rebase(child.take(), prefix));
            }
        }
        Value::Array(items) => {
            for child in items {
                *child = rebase(child.take(), prefix);
            }
        }
        _ => {}
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fmt_008_references_move_with_their_file() {
        let schema =
            json!({ "properties": { "a": { "$ref": "#/definitions/x" } }, "definitions": { "x": {} } });
        assert_eq!(rebase(schema, "#/input")["properties"]["a"]["$ref"], "#/input/definitions/x");
    }
}
