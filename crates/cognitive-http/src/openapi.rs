//! `GET /openapi.json`: the table of routes and, for each installed module, an operation with its own schemas.
//! Written from what the server really has; a module that is broken is left out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use cognitive_contract::{Module, lower};
use serde_json::{Map, Value, json};

use crate::answer;
use crate::app::Shared;
use crate::routes::OPERATIONS;
use crate::{files, schemas, uploads};

/// The whole description, made anew every second at most: modules come and go.
pub(crate) async fn document(State(shared): State<Arc<Shared>>) -> Response<Body> {
    match shared.description.get(&shared, |shared| describe(shared).to_string().into()).await {
        Ok(text) => answer::json_text(StatusCode::OK, text),
        Err(failure) => answer::failure(failure),
    }
}

fn describe(shared: &Shared) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    schemas.insert("Failure".to_owned(), schemas::failure());
    schemas.insert("Chunk".to_owned(), schemas::chunk());
    for operation in &OPERATIONS {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(operation.method.to_owned(), general(operation.path, operation.summary));
        }
    }
    for name in shared.host.modules.names() {
        let Ok(module) = shared.host.modules.module(&name) else { continue };
        let key = format!("module-{name}");
        paths.insert(format!("/api/run/{name}"), json!({ "post": of_module(&name, &key, &module) }));
        let mut root = module.contract.root().clone();
        anchor(&mut root, &format!("{key}/x-module"));
        schemas.insert(key.clone(), json!({ "x-module": root, "type": "object" }));
        let mut envelope = lower::envelope_schema(&module);
        anchor(&mut envelope, &format!("{key}-envelope"));
        schemas.insert(format!("{key}-envelope"), envelope);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "cogn",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every run answers with one envelope, or with a stream that ends with one.",
        },
        "jsonSchemaDialect": "http://json-schema.org/draft-07/schema#",
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": schemas::headers(),
            "parameters": schemas::parameters(),
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
        "security": if shared.config.keys.is_empty() { json!([]) } else { json!([{ "key": [] }]) },
    })
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
