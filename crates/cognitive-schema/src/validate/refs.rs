//! The rules for `$ref`: it may only point into the module's own files. Finds links that leave the module or point to
//! nothing, and refuses more of them than can be compiled. Reads no file: the caller passes all of them in.

use serde_json::Value;

use super::walk::{self, PointerStep, visit};
use super::{SchemaFiles, SchemaProblem};
use crate::text::{cut, fits};
use crate::violation::MAX_VIOLATIONS;

/// Characters of a reference that a message quotes.
const SHOWN: usize = 80;

/// Keywords whose value is plain data, in which `$ref` has no meaning.
pub const DATA_KEYWORDS: [&str; 4] = ["enum", "const", "default", "examples"];

/// The module-relative file that a `$ref` in `from` names; `None` for a location in the same file.
/// The error says why the reference is not allowed.
pub fn file_of_ref(reference: &str, from: &str) -> Result<Option<String>, String> {
    let (file, _) = reference.split_once('#').unwrap_or((reference, ""));
    if file.is_empty() {
        return Ok(None);
    }
    let has_scheme = file.split_once(':').is_some_and(|(scheme, _)| {
        scheme.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
    });
    if has_scheme || file.starts_with("//") {
        return Err(format!("`$ref` is never fetched: `{}`", cut(reference, SHOWN)));
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let leaves = || format!("`$ref` leaves the module: `{}`", cut(reference, SHOWN));
    if file.starts_with('/') || file.contains('\\') {
        return Err(leaves());
    }
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(leaves)?;
            }
            name => parts.push(name),
        }
    }
    Ok(Some(parts.join("/")))
}

/// The most references in one module. The validator compiles their targets one after another and compares each with all
/// before. A real module has a few dozen.
pub(super) const MAX_REFERENCES: usize = 2_000;

/// Characters of one reference: enough for any nesting of schemas, and short enough to be quoted.
const MAX_REFERENCE_LENGTH: usize = 1_000;

/// The reference in place of a dynamic one that cannot be resolved within the limits.
pub(super) const ENTANGLED: &str = "#(entangled)";

/// Every reference that cannot be followed.
pub(super) fn problems(files: &SchemaFiles) -> Vec<SchemaProblem> {
    let mut problems = Vec::new();
    let mut references = 0;
    for (file, root) in files {
        visit(root, &mut |node, steps| {
            let Some(reference) = node.get("$ref").and_then(Value::as_str) else { return };
            references += 1;
            let message = match target(files, file, reference) {
                _ if references == MAX_REFERENCES + 1 => {
                    format!("the module has more than {MAX_REFERENCES} references")
                }
                Err(message) if problems.len() < MAX_VIOLATIONS => message,
                _ => return,
            };
            let at = walk::pointer(steps.iter().copied().chain([PointerStep::Name("$ref")]));
            problems.push(SchemaProblem::new(file, at, message));
        });
    }
    problems
}

/// The target of a reference, or why it has none.
pub(super) fn target<'a>(files: &'a SchemaFiles, from: &str, reference: &str) -> Result<&'a Value, String> {
    let shown = cut(reference, SHOWN);
    if !fits(reference, MAX_REFERENCE_LENGTH) {
        return Err(format!("`$ref` has more than {MAX_REFERENCE_LENGTH} characters: `{shown}…`"));
    }
    if reference == ENTANGLED {
        return Err("too many schemas are entangled by `$dynamicRef` or `$recursiveRef`".to_owned());
    }
    let file = file_of_ref(reference, from)?.unwrap_or_else(|| from.to_owned());
    if file.contains('%') {
        // The validator may read it as a different file than this check.
        return Err(format!("`$ref` names a file with percent-encoded characters: `{shown}`"));
    }
    let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
    let Some(root) = files.get(&file) else {
        return Err(format!("`$ref` names a file that is not in the module: `{}`", cut(&file, SHOWN)));
    };
    if fragment.is_empty() || fragment.starts_with('/') {
        let schema = root.pointer(&percent_decoded(fragment));
        return schema.ok_or_else(|| format!("`$ref` points to nothing: `{shown}`"));
    }
    // References to a known `$id` have already become pointers.
    Err(format!("`$ref` names an `$id` that is not in the module: `{shown}`"))
}

pub(super) fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match tail {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        let code = code.map(|(high, low)| high * 16 + low);
        bytes.push(code.unwrap_or(*first));
        rest = match (code, tail) {
            (Some(_), [_, _, after @ ..]) => after,
            _ => tail,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The value of a hexadecimal digit. Accepts nothing else, because the validator must read the same location as this
/// check.
fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sch_010_references_stay_inside_the_module() {
        assert_eq!(file_of_ref("#/$defs/a", "schema.json"), Ok(None));
        assert_eq!(file_of_ref("./types/a.json#/x", "schema.json"), Ok(Some("types/a.json".to_owned())));
        assert_eq!(file_of_ref("../schema.json", "types/a.json"), Ok(Some("schema.json".to_owned())));
        for outside in [
            "https://example.com/a.json",
            "HTTP://x",
            "file:///etc/passwd",
            "//host/x",
            "../a.json",
            "/etc/x",
            "a\\b",
        ] {
            assert!(file_of_ref(outside, "schema.json").is_err(), "{outside}");
        }
    }

    fn messages(schema: Value) -> Vec<String> {
        let files = SchemaFiles::from([("schema.json".to_owned(), schema)]);
        problems(&files)
            .into_iter()
            .map(|problem| format!("{} {}", problem.pointer, problem.message))
            .collect()
    }

    #[test]
    fn a_property_may_be_called_like_a_keyword() {
        let found = messages(json!({ "input": { "properties": { "default": { "$ref": "#/no" } } } }));
        assert_eq!(found, ["/input/properties/default/$ref `$ref` points to nothing: `#/no`"]);
    }

    #[test]
    fn only_hexadecimal_digits_stand_for_a_byte() {
        assert_eq!(percent_decoded("/a%2Fb%25"), "/a/b%");
        assert_eq!(percent_decoded("/%+1/%"), "/%+1/%");
    }

    #[test]
    fn too_many_or_too_long_references_are_refused() {
        let many: Vec<Value> = (0..=MAX_REFERENCES).map(|_| json!({ "$ref": "#/a" })).collect();
        let found = messages(json!({ "a": {}, "many": many }));
        assert_eq!(found, ["/many/2000/$ref the module has more than 2000 references"]);
        let long = format!("#/{}", "x".repeat(5_000));
        let found = messages(json!({ "a": { "$ref": long } }));
        assert!(found[0].starts_with("/a/$ref `$ref` has more than 1000 characters: `#/xxx"), "{found:?}");
        assert!(found[0].len() < 200);
    }

    #[test]
    fn sch_010_dangling_references_are_named_and_data_is_not_searched() {
        let found = messages(
            json!({ "input": { "$ref": "#/$defs/x" }, "data": { "enum": [{ "$ref": "http://x" }] } }),
        );
        assert_eq!(found, ["/input/$ref `$ref` points to nothing: `#/$defs/x`"]);
    }
}
