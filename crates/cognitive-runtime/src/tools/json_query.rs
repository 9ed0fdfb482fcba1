//! `json_query`: returns one value of a JSON document that the model passes, by JSON Pointer or by a path such as
//! `$.items[*].price`, the language of compositions. Calculates nothing and accesses nothing but the document.

use cognitive_contract::compose::Path;
use cognitive_contract::ports::PortFuture;
use cognitive_contract::tools::{Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

/// The tool `json_query`.
#[derive(Debug, Clone, Copy)]
pub struct JsonQuery;

const DESCRIPTION: &str = "Looks up a value in a JSON document. The path is a JSON Pointer such as `/items/0/price`, or \
     a path such as `$.items[0].price`, `$.items[*].price` (all of them) or `$.items.length` (how many).";

impl Tool for JsonQuery {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": {
                "value": { "description": "The document: any JSON value, or a string that holds JSON" },
                "path": { "type": "string", "description": "Where to look" },
            },
            "required": ["value", "path"],
            "additionalProperties": false,
        });
        ToolSpec::new("json_query", DESCRIPTION, parameters)
    }

    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let value = arguments.get("value").unwrap_or(&Value::Null);
        let found = query(value, path);
        Box::pin(async { found.map(|found| json!({ "found": found.is_some(), "value": found })) })
    }
}

/// The value at a path, or `None`. An invalid path is an error.
fn query(value: &Value, path: &str) -> Result<Option<Value>, ToolError> {
    // Models often pass a document as the text that they have read.
    let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
    let value = parsed.as_ref().unwrap_or(value);
    if path.is_empty() || path.starts_with('/') {
        return Ok(value.pointer(path).cloned());
    }
    let path = Path::parse(path)
        .map_err(|slip| ToolError::new(format!("the path cannot be read: {}", slip.message)))?;
    Ok(path.find(value).map(std::borrow::Cow::into_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        json!({ "items": [{ "price": 2 }, { "price": 3 }], "a/b": { "~": null } })
    }

    #[test]
    fn pointers_and_paths_lead_to_values() {
        for (path, expected) in [
            ("", document()),
            ("$", document()),
            ("/items/1/price", json!(3)),
            ("$.items[1].price", json!(3)),
            ("$.items[*].price", json!([2, 3])),
            ("$.items.length", json!(2)),
            ("/a~1b/~0", json!(null)),
        ] {
            assert_eq!(query(&document(), path).unwrap(), Some(expected), "{path}");
        }
        assert_eq!(query(&json!(document().to_string()), "/items/0/price").unwrap(), Some(json!(2)));
        assert_eq!(query(&json!("plain"), "").unwrap(), Some(json!("plain")));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_no_error_and_one_that_is_none_is() {
        for path in ["/items/2", "$.items[2]", "/x/y"] {
            assert_eq!(query(&document(), path).unwrap(), None, "{path}");
        }
        for path in ["items", "$.", "$[", "$.a b"] {
            assert!(query(&document(), path).is_err(), "{path}");
        }
    }
}
