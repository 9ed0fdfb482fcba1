//! `GET /openapi.json`: the table of routes and, for each installed module, an operation with its own schemas.
//! Written from what the server really has; a module that is broken is left out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use cognitive_contract::Module;
use serde_json::{Map, Value, json};

use crate::app::Shared;
use crate::overview::{PerModule, Told};
use crate::response;
use crate::routes::OPERATIONS;
use crate::{files, schemas, uploads};

/// The whole description.
pub(crate) async fn document(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response<Body> {
    match shared.description.get(&shared).await {
        Ok(told) => response::told(&headers, told),
        Err(failure) => response::failure(failure),
    }
}

/// The description of everything. A piece is what a module adds to the paths and to the schemas, as text: thousands of
/// modules as values would take twenty times as much.
pub(crate) struct Description;

impl PerModule for Description {
    type Piece = Option<(Box<str>, Box<str>)>;

    fn piece(shared: &Shared, name: &str) -> Self::Piece {
        let module = shared.host.modules.glance(name).ok()?;
        let key = format!("module-{name}");
        let path = json!({ "post": of_module(name, &key, &module) });
        let mut root = module.contract.root().clone();
        anchor(&mut root, &format!("{key}/x-module"));
        let mut envelope = module.envelope_schema();
        anchor(&mut envelope, &format!("{key}-envelope"));
        let schema = json!({ "x-module": root, "type": "object" });
        let member = |name: String, value: &Value| format!("{}:{value}", Value::from(name));
        let schemas = [member(key.clone(), &schema), member(format!("{key}-envelope"), &envelope)];
        Some((member(format!("/api/run/{name}"), &path).into(), schemas.join(",").into()))
    }

    fn together(shared: &Shared, pieces: &[&Self::Piece]) -> Told {
        let (first, middle, last) = frame(shared);
        let mut text = first;
        for (paths, _) in pieces.iter().filter_map(|piece| piece.as_ref()) {
            text.extend([",", paths]);
        }
        text.push_str(&middle);
        for (_, schemas) in pieces.iter().filter_map(|piece| piece.as_ref()) {
            text.extend([",", schemas]);
        }
        text.push_str(&last);
        Told { text: text.into(), most_taken: 0, version: 0 }
    }
}

/// The description without modules, in three parts: theirs stand between the first and the second, and between that and
/// the third.
fn frame(shared: &Shared) -> (String, String, String) {
    let mut paths = Map::new();
    for operation in &OPERATIONS {
        let Some(summary) = operation.summary else { continue };
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(operation.method.to_owned(), general(operation.path, summary));
        }
    }
    let about = json!({
        "title": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Every run answers with one envelope, or with a stream that ends with one.",
    });
    let schemas = json!({ "Failure": schemas::failure(), "Chunk": schemas::chunk() });
    let security = if shared.config.keys.is_empty() { json!([]) } else { json!([{ "key": [] }]) };
    let without_end = |object: Value| {
        let text = object.to_string();
        text.strip_suffix('}').map(str::to_owned).unwrap_or(text)
    };
    let first = format!(
        "{{\"openapi\":\"3.1.0\",\"info\":{about},\"jsonSchemaDialect\":{},\"paths\":{}",
        json!("http://json-schema.org/draft-07/schema#"),
        without_end(Value::Object(paths)),
    );
    let middle = format!("}},\"components\":{{\"schemas\":{}", without_end(schemas));
    let last = format!(
        "}},\"headers\":{},\"parameters\":{},\"securitySchemes\":{}}},\"security\":{security}}}",
        schemas::headers(),
        schemas::parameters(),
        json!({ "key": { "type": "http", "scheme": "bearer" } }),
    );
    (first, middle, last)
}

/// An operation of the fixed table.
fn general(path: &str, summary: &str) -> Value {
    let mut operation = json!({
        "summary": summary,
        "responses": {
            "200": { "description": "The answer" },
            "default": schemas::failure_response(),
        },
    });
    // Whether the server lives is no secret.
    if matches!(path, "/health" | "/ready")
        && let Some(members) = operation.as_object_mut()
    {
        members.insert("security".to_owned(), json!([]));
    }
    let Some(members) = operation.as_object_mut() else { return operation };
    if path.contains("{module}") {
        let parameter =
            json!({ "name": "module", "in": "path", "required": true, "schema": { "type": "string" } });
        members.insert("parameters".to_owned(), json!([parameter]));
    }
    if path.contains("{id}") {
        let parameter =
            json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
        members.insert("parameters".to_owned(), json!([parameter]));
    }
    if let Some(content) = files::described(path) {
        let bytes = json!({ "description": "The bytes", "content": content });
        let responses = json!({ "200": bytes, "default": schemas::failure_response() });
        members.insert("responses".to_owned(), responses);
    }
    if let Some(body) = uploads::described(path) {
        members.insert("requestBody".to_owned(), body);
    }
    if path.contains("run") || path.contains("execute") {
        let body = match path {
            "/run" => json!({
                "type": "object",
                "required": ["module"],
                "properties": {
                    "module": { "type": "string" },
                    "input": { "type": "object" },
                    "args": { "type": "string" },
                },
            }),
            _ => json!({ "type": "object" }),
        };
        members.insert(
            "requestBody".to_owned(),
            json!({ "required": true, "content": { "application/json": { "schema": body } } }),
        );
    }
    operation
}

/// The run of one module, with its own schemas.
fn of_module(name: &str, key: &str, module: &Module) -> Value {
    let mut input = module.contract.input().schema().clone();
    anchor(&mut input, &format!("{key}/x-module"));
    let envelope = json!({ "$ref": format!("#/components/schemas/{key}-envelope") });
    json!({
        "operationId": format!("run-{name}"),
        "summary": module.manifest.responsibility,
        "parameters": schemas::of_a_run(),
        "requestBody": { "required": true, "content": { "application/json": { "schema": input } } },
        "responses": {
            "200": {
                "description": "The envelope of a success, or a stream of chunks",
                "headers": schemas::headers_of_a_run(),
                "content": {
                    "application/json": { "schema": envelope },
                    "text/event-stream": { "x-itemSchema": schemas::reference("schemas", "Chunk") },
                    "application/x-ndjson": { "x-itemSchema": schemas::reference("schemas", "Chunk") },
                },
            },
            "default": schemas::failure_response(),
        },
    })
}

/// Points the references of a module's schema at the place where the whole of it stands in this document.
fn anchor(schema: &mut Value, place: &str) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(target) if name == "$ref" => {
                        let pointer = target.strip_prefix("schema.json").unwrap_or(target);
                        if let Some(pointer) = pointer.strip_prefix('#') {
                            *target = format!("#/components/schemas/{place}{pointer}");
                        }
                    }
                    other => anchor(other, place),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| anchor(item, place)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_point_into_the_document() {
        let mut schema = json!({ "a": { "$ref": "#/$defs/x" }, "b": [{ "$ref": "schema.json#/data" }] });
        anchor(&mut schema, "module-m/x-module");
        assert_eq!(schema["a"]["$ref"], "#/components/schemas/module-m/x-module/$defs/x");
        assert_eq!(schema["b"][0]["$ref"], "#/components/schemas/module-m/x-module/data");
    }
}
