//! What `$ref` may point to: places inside the module's own files. Finds links that leave the module, that
//! point to nothing, and circles that would never end. Reads no file: all of them are handed in.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{SchemaFiles, SchemaProblem};
use crate::text::pointer;

/// Keywords whose value is plain data, in which `$ref` means nothing.
pub const DATA_KEYWORDS: [&str; 4] = ["enum", "const", "default", "examples"];

/// The module-relative file that a `$ref` in `from` names; `None` for a place in the same file.
/// The error says why a reference is not allowed.
pub fn file_of_ref(reference: &str, from: &str) -> Result<Option<String>, String> {
    let (file, _) = reference.split_once('#').unwrap_or((reference, ""));
    if file.is_empty() {
        return Ok(None);
    }
    let has_scheme = file.split_once(':').is_some_and(|(scheme, _)| {
        scheme.chars().all(|each| each.is_ascii_alphanumeric() || "+-.".contains(each))
    });
    if has_scheme || file.starts_with("//") {
        return Err(format!("`$ref` is never fetched: `{reference}`"));
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let leaves = || format!("`$ref` leaves the module: `{reference}`");
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

/// Every reference that cannot be followed, and every circle of references that consumes nothing.
pub(super) fn problems(files: &SchemaFiles) -> Vec<SchemaProblem> {
    let mut problems = Vec::new();
    for (file, root) in files {
        visit(root, "", Names::Keywords, &mut |node, at| {
            if let Some(reference) = node.get("$ref").and_then(Value::as_str)
                && let Err(message) = target(files, file, reference)
            {
                problems.push(SchemaProblem::new(file, pointer(at, "$ref"), message));
            }
        });
    }
    if problems.is_empty() {
        find_circles(files, &mut problems);
    }
    problems
}

/// Whether the member names of an object are keywords or names that the author chose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Keywords,
    Chosen,
}

/// Keywords whose value maps chosen names to schemas.
const NAME_MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependencies"];

/// Calls `each` for every object that can be a schema, with its pointer.
fn visit<'a>(node: &'a Value, at: &str, names: Names, each: &mut impl FnMut(&'a Value, &str)) {
    match node {
        Value::Object(members) => {
            if names == Names::Keywords {
                each(node, at);
            }
            for (name, child) in members {
                let is_keyword = names == Names::Keywords;
                if is_keyword && DATA_KEYWORDS.contains(&name.as_str()) {
                    continue;
                }
                let chosen = is_keyword && NAME_MAPS.contains(&name.as_str());
                visit(child, &pointer(at, name), if chosen { Names::Chosen } else { Names::Keywords }, each);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                visit(child, &format!("{at}/{index}"), Names::Keywords, each);
            }
        }
        _ => {}
    }
}

/// The file and pointer that a reference leads to, if it leads anywhere.
fn target(files: &SchemaFiles, from: &str, reference: &str) -> Result<(String, String), String> {
    let file = file_of_ref(reference, from)?.unwrap_or_else(|| from.to_owned());
    let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
    let Some(root) = files.get(&file) else {
        return Err(format!("`$ref` names a file that is not in the module: `{file}`"));
    };
    if fragment.is_empty() || fragment.starts_with('/') {
        let decoded = percent_decoded(fragment);
        return match root.pointer(&decoded) {
            Some(_) => Ok((file, decoded)),
            None => Err(format!("`$ref` points to nothing: `{reference}`")),
        };
    }
    // An anchor (`"$id": "#name"`) is legal Draft-07 but no module needs one, and it hides circles.
    Err(format!("`$ref` has to be a JSON pointer: `{reference}`"))
}

fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match tail {
            [high, low, ..] if *first == b'%' => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = match (code, tail) {
            (Some(_), [_, _, after @ ..]) => after,
            _ => tail,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Keywords that judge the same value again instead of a part of it. A circle through these never ends.
const SAME_VALUE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE: [&str; 4] = ["not", "if", "then", "else"];

/// How many schemas may judge one value through references. Honest modules stay below a hundred; a few lines of
/// `allOf` that double at each step reach billions.
const MOST_JUDGES: u64 = 10_000;

fn find_circles(files: &SchemaFiles, problems: &mut Vec<SchemaProblem>) {
    let mut walk = Walk { files, open: HashSet::new(), judges: HashMap::new() };
    for (file, root) in files {
        visit(root, "", Names::Keywords, &mut |node, at| {
            if !problems.is_empty() || !node.get("$ref").is_some_and(Value::is_string) {
                return;
            }
            let message = match walk.judges(file.clone(), at.to_owned()) {
                None => "`$ref` leads back to itself without reading any further into the value",
                Some(judges) if judges > MOST_JUDGES => "`$ref` fans out into too many schemas",
                Some(_) => return,
            };
            problems.push(SchemaProblem::new(file, pointer(at, "$ref"), message));
        });
    }
}

struct Walk<'a> {
    files: &'a SchemaFiles,
    open: HashSet<(String, String)>,
    judges: HashMap<(String, String), u64>,
}

impl Walk<'_> {
    /// How many schemas judge a value that the schema at this place judges; `None` if they never end.
    fn judges(&mut self, file: String, at: String) -> Option<u64> {
        let place = (file, at);
        if let Some(known) = self.judges.get(&place) {
            return Some(*known);
        }
        // A chain this long is as good as endless, and the walk itself must not exhaust the stack.
        if self.open.len() > 500 || !self.open.insert(place.clone()) {
            return None;
        }
        let mut judges = 1_u64;
        for (file, at) in self.neighbours(&place.0, &place.1) {
            judges = judges.saturating_add(self.judges(file, at)?);
        }
        self.open.remove(&place);
        self.judges.insert(place, judges);
        Some(judges)
    }

    fn neighbours(&self, file: &str, at: &str) -> Vec<(String, String)> {
        let Some(Value::Object(members)) = self.files.get(file).and_then(|root| root.pointer(at)) else {
            return Vec::new();
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return target(self.files, file, reference).into_iter().collect();
        }
        let mut places = Vec::new();
        for keyword in SAME_VALUE.iter().filter(|keyword| members.contains_key(**keyword)) {
            places.push((file.to_owned(), pointer(at, keyword)));
        }
        for keyword in SAME_VALUE_LISTS {
            let branches = members.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
            let list = pointer(at, keyword);
            places.extend((0..branches).map(|index| (file.to_owned(), format!("{list}/{index}"))));
        }
        places
    }
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
    fn circles_that_consume_nothing_are_refused_and_recursive_types_are_not() {
        for circle in [
            json!({ "input": { "$ref": "#/input" } }),
            json!({ "input": { "$ref": "#/a" }, "a": { "allOf": [{ "$ref": "#/input" }] } }),
            json!({ "input": { "not": { "$ref": "#/input" } } }),
        ] {
            assert_eq!(messages(circle).len(), 1);
        }
        let tree = json!({ "data": { "properties": { "kids": { "items": { "$ref": "#/data" } } } } });
        assert!(messages(tree).is_empty());
    }

    #[test]
    fn a_schema_that_doubles_at_every_step_is_refused() {
        let mut schema = json!({ "d30": {} });
        for step in 0..30 {
            let next = json!({ "$ref": format!("#/d{}", step + 1) });
            schema[format!("d{step}")] = json!({ "allOf": [next, next] });
        }
        assert_eq!(messages(schema), ["/d0/allOf/0/$ref `$ref` fans out into too many schemas"]);
    }

    #[test]
    fn a_property_may_be_called_like_a_keyword() {
        let found = messages(json!({ "input": { "properties": { "default": { "$ref": "#/no" } } } }));
        assert_eq!(found, ["/input/properties/default/$ref `$ref` points to nothing: `#/no`"]);
    }

    #[test]
    fn sch_010_dangling_references_are_named_and_data_is_not_searched() {
        let found = messages(
            json!({ "input": { "$ref": "#/$defs/x" }, "data": { "enum": [{ "$ref": "http://x" }] } }),
        );
        assert_eq!(found, ["/input/$ref `$ref` points to nothing: `#/$defs/x`"]);
    }
}
