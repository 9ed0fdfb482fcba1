//! Looks up the lowered contract at a place in the document. Reads the schema only; judges no value.

use serde_json::Value;

use crate::json_cursor::JsonCursor;

/// The keyword of strings that are pieces of the input; its value names the member of the input.
const COPY: &str = "x-copy-from";
/// The keyword of members whose names are listed in the input; its value names the member of the input.
const NAMES: &str = "x-name-from";
/// The keyword of strings about decisions; its value is a template, or a list of templates.
const SAY: &str = "x-say";

/// The parts of a lowered schema, found by place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaParts<'a> {
    schema: &'a Value,
}

impl<'a> SchemaParts<'a> {
    pub(crate) fn new(schema: &'a Value) -> Self {
        Self { schema }
    }

    /// Returns whether the value at this place is one of a few: listed values, tags or booleans.
    pub(crate) fn is_label(self, place: &JsonCursor) -> bool {
        let nodes = self.at(place);
        let mut values: Vec<String> = Vec::new();
        for node in &nodes {
            let Some(listed) = listed_values(node) else { return false };
            values.extend(listed);
        }
        values.sort_unstable();
        values.dedup();
        values.len() > 1
    }

    /// Returns the member of the input from which the value at this place must be copied, if there is one.
    pub(crate) fn copied_from(self, place: &JsonCursor) -> Option<&'a str> {
        self.origin(place, COPY)
    }

    /// Returns the members of the object at this place whose names are listed in the input, in the order of the
    /// grammar. Each comes with the member of the input that lists it.
    pub(crate) fn listed_members(self, place: &JsonCursor) -> Vec<(&'a str, &'a str)> {
        let above = place.path().count().saturating_sub(1);
        let objects = self
            .schemas_along(place, above)
            .into_iter()
            .filter_map(|node| node.get("properties")?.as_object());
        let origin =
            |(name, node): (&'a String, &'a Value)| Some((name.as_str(), node.get(NAMES)?.as_str()?));
        objects.flatten().filter_map(origin).collect()
    }

    /// Returns the templates of the sentence at this place, if it is about decisions.
    pub(crate) fn sentence_templates(self, place: &JsonCursor) -> Option<&'a Value> {
        self.common(place, SAY)
    }

    fn origin(self, place: &JsonCursor, keyword: &str) -> Option<&'a str> {
        self.common(place, keyword)?.as_str()
    }

    /// Returns the value of a keyword at this place, if all schemas that apply here agree.
    fn common(self, place: &JsonCursor, keyword: &str) -> Option<&'a Value> {
        let nodes = self.at(place);
        let first = nodes.first()?.get(keyword)?;
        nodes.iter().all(|node| node.get(keyword) == Some(first)).then_some(first)
    }

    /// Returns the required members of an object at this place, in the order of the grammar.
    pub(crate) fn required_members(self, place: &JsonCursor) -> Vec<&'a str> {
        let above = place.path().count().saturating_sub(1);
        let lists = self.schemas_along(place, above).into_iter().filter_map(|node| node.get("required"));
        lists.filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
    }

    fn at(self, place: &JsonCursor) -> Vec<&'a Value> {
        self.schemas_along(place, usize::MAX)
    }

    /// Returns the schemas at the end of the first `steps` steps: several if there is a choice.
    fn schemas_along(self, place: &JsonCursor, steps: usize) -> Vec<&'a Value> {
        let mut nodes = branches(self.schema);
        for step in place.path().take(steps) {
            let name = step.map(unescape);
            let below = nodes.into_iter().flat_map(|node| match &name {
                Some(name) => member(node, name).into_iter().collect(),
                None => items(node),
            });
            nodes = below.flat_map(branches).collect();
        }
        nodes
    }
}

fn member<'a>(node: &'a Value, name: &str) -> Option<&'a Value> {
    let named = node.get("properties").and_then(|properties| properties.get(name));
    let by_pattern = || node.get("patternProperties")?.as_object()?.values().next();
    named.or_else(|| node.get("additionalProperties").filter(|others| others.is_object())).or_else(by_pattern)
}

/// Returns the schemas that an item may have, at any index.
fn items(node: &Value) -> Vec<&Value> {
    match node.get("items") {
        Some(Value::Array(places)) => {
            let others = node.get("additionalItems").filter(|others| others.is_object());
            places.iter().chain(others).collect()
        }
        items => items.into_iter().collect(),
    }
}

/// Returns a schema, or the branches of a choice, recursively.
fn branches(schema: &Value) -> Vec<&Value> {
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(list) => list.iter().flat_map(branches).collect(),
        None => vec![schema],
    }
}

/// Returns the values that a schema lists; `None` if it is open. `null` does not count as a choice.
fn listed_values(node: &Value) -> Option<Vec<String>> {
    if let Some(values) = node.get("enum").and_then(Value::as_array) {
        return Some(values.iter().map(Value::to_string).collect());
    }
    if let Some(value) = node.get("const") {
        return Some(vec![value.to_string()]);
    }
    match node.get("type").and_then(Value::as_str) {
        Some("boolean") => Some(vec!["true".to_owned(), "false".to_owned()]),
        Some("null") => Some(Vec::new()),
        _ => None,
    }
}

fn unescape(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if !name.contains('\\') {
        return name.into_owned();
    }
    serde_json::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| name.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> JsonCursor {
        let mut place = JsonCursor::default();
        place.advance(text.as_bytes());
        place
    }

    #[test]
    fn labels_are_listed_values_tags_and_booleans() {
        let tagged = |tag: &str| json!({ "properties": { "kind": { "const": tag } }, "required": ["kind"] });
        let schema = json!({ "anyOf": [{ "properties": {
            "mood": { "enum": ["good", "bad"] }, "sure": { "type": "boolean" }, "only": { "const": 1 },
            "text": { "type": "string" }, "list": { "items": { "anyOf": [tagged("a"), tagged("b")] } },
            "maybe": { "anyOf": [{ "enum": ["x", "y"] }, { "type": "null" }] },
        } }, { "properties": { "ok": { "const": false } } }] });
        let shape = SchemaParts::new(&schema);
        for (text, expected) in [
            (r#"{"mood":"#, true),
            (r#"{"sure":"#, true),
            (r#"{"maybe":"#, true),
            (r#"{"list":[{"kind":"#, true),
            (r#"{"only":"#, false),
            (r#"{"text":""#, false),
            (r#"{"absent":"#, false),
        ] {
            assert_eq!(shape.is_label(&at(text)), expected, "{text}");
        }
    }

    #[test]
    fn required_names_belong_to_the_object_that_is_open() {
        let schema = json!({ "properties": { "a\"b": { "required": ["x", "y"] } }, "required": ["a\"b"] });
        let shape = SchemaParts::new(&schema);
        assert_eq!(shape.required_members(&at("{")), ["a\"b"]);
        assert_eq!(shape.required_members(&at(r#"{"a\"b":{"#)), ["x", "y"]);
    }
}
