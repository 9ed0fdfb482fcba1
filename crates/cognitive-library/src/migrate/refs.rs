//! Updates references inside the contract files when `#/output` becomes `#/data`. Leaves data alone: a `$ref` in
//! `enum`, `const`, `default` and `examples` is not a reference.

use cognitive_schema::{SCHEMA_FILE, file_of_ref};
use serde_json::Value;

/// Returns the new pointer of a location in the renamed `output` section; `None` for any other location.
pub(super) fn moved_pointer(pointer: &str) -> Option<String> {
    let rest = pointer.strip_prefix("/output")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("/data{rest}"))
}

/// Updates every reference of a document to the renamed section; returns their number.
pub(super) fn follow(document: &mut Value, file: &str) -> usize {
    let mut followed = 0;
    visit(document, RefMemberNames::Keywords, &mut |reference| {
        if let Some(moved) = moved_reference(reference, file) {
            *reference = moved;
            followed += 1;
        }
    });
    followed
}

fn moved_reference(reference: &str, file: &str) -> Option<String> {
    let (document, pointer) = reference.split_once('#')?;
    let target = file_of_ref(reference, file).ok()?.unwrap_or_else(|| file.to_owned());
    let moved = moved_pointer(pointer).filter(|_| target == SCHEMA_FILE)?;
    Some(format!("{document}#{moved}"))
}

/// The kind of member names in an object: schema keywords, or names that the author chose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RefMemberNames {
    Keywords,
    Chosen,
}

const DATA_KEYWORDS: [&str; 4] = ["enum", "const", "default", "examples"];
const NAME_MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependencies"];

fn visit(node: &mut Value, names: RefMemberNames, each: &mut impl FnMut(&mut String)) {
    match node {
        Value::Object(members) => {
            for (name, child) in members {
                let keyword = (names == RefMemberNames::Keywords).then_some(name.as_str());
                match (keyword, child) {
                    (Some("$ref"), Value::String(reference)) => each(reference),
                    (Some(data), _) if DATA_KEYWORDS.contains(&data) => {}
                    (Some(map), child) if NAME_MAPS.contains(&map) => {
                        visit(child, RefMemberNames::Chosen, each);
                    }
                    (_, child) => visit(child, RefMemberNames::Keywords, each),
                }
            }
        }
        Value::Array(items) => {
            for child in items {
                visit(child, RefMemberNames::Keywords, each);
            }
        }
        _ => {}
    }
}

/// The target of a section's reference. `None` if the section is not a reference, or points into another file.
pub(super) fn target<'a>(document: &'a Value, section: &Value) -> Option<&'a Value> {
    document.pointer(section.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// The final target of a chain of references.
pub(super) fn end<'a>(document: &'a Value, section: &Value) -> Option<&'a Value> {
    let mut found = target(document, section)?;
    // Circles were refused when the module was loaded. The bound makes the loop finite without that check.
    for _ in 0..100 {
        match target(document, found) {
            Some(next) => found = next,
            None => return Some(found),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mig_002_references_follow_the_renamed_section_from_every_file() {
        let mut schema = json!({
            "input": { "$ref": "#/output/properties/a" },
            "data": { "properties": { "kids": { "items": { "$ref": "#/output" } }, "out": { "$ref": "#/outputs" } } },
        });
        assert_eq!(follow(&mut schema, "schema.json"), 2);
        assert_eq!(schema["input"]["$ref"], "#/data/properties/a");
        assert_eq!(schema["data"]["properties"]["out"]["$ref"], "#/outputs");
        let mut other = json!({ "a": { "$ref": "../schema.json#/output" }, "b": { "$ref": "#/output" } });
        assert_eq!(follow(&mut other, "types/a.json"), 1);
        assert_eq!(other, json!({ "a": { "$ref": "../schema.json#/data" }, "b": { "$ref": "#/output" } }));
    }

    #[test]
    fn data_that_looks_like_a_reference_and_fields_called_like_keywords_are_told_apart() {
        let mut schema = json!({
            "data": {
                "enum": [{ "$ref": "#/output" }],
                "properties": { "default": { "$ref": "#/output" }, "$ref": { "const": { "$ref": "#/output" } } },
            },
        });
        assert_eq!(follow(&mut schema, "schema.json"), 1);
        assert_eq!(schema["data"]["properties"]["default"]["$ref"], "#/data");
    }

    #[test]
    fn a_chain_of_references_ends_at_its_target() {
        let schema = json!({ "a": { "$ref": "#/b" }, "b": { "$ref": "#/c" }, "c": { "type": "object" } });
        assert_eq!(target(&schema, &schema["a"]), Some(&schema["b"]));
        assert_eq!(end(&schema, &schema["a"]), Some(&schema["c"]));
        assert_eq!(target(&schema, &schema["c"]), None);
        assert_eq!(target(&schema, &json!({ "$ref": "other.json#/x" })), None);
    }
}
