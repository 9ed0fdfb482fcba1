//! `GET /openapi.json`: the table of operations and, for each offered module, an operation with its own schemas.
//! Derived from the actual configuration, in the form that client generators read. Broken modules are left out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response};
use cognitive_contract::Module;
use serde_json::{Map, Value, json};

use crate::app::AppState;
use crate::client_form::{ClientForm, Direction, component_prefix, pascal};
use crate::components::{Components, own_meta, schema_reference};
use crate::operations::{OPERATIONS, Operation, OperationAccess, OperationDescription};
use crate::overview::{CombinedOverview, PerModule};
use crate::response;
use crate::{files, schemas};

/// Returns the whole description.
pub(crate) async fn document(State(shared): State<Arc<AppState>>, headers: HeaderMap) -> Response<Body> {
    match shared.description.get(&shared).await {
        Ok(told) => response::overview_response(&headers, told),
        Err(failure) => response::failure(failure),
    }
}

/// The description of all operations. A piece is the text that a module adds to the paths and schemas. Thousands of
/// modules as JSON values would take twenty times the memory.
pub(crate) struct Description;

impl PerModule for Description {
    type Piece = Option<(Box<str>, Box<str>)>;

    fn piece(shared: &AppState, name: &str) -> Self::Piece {
        let module = shared.host.modules.glance(name).ok()?;
        let prefix = component_prefix(name);
        let path = json!({ "post": run_operation(&prefix, &module) });
        let member = |name: &str, value: &Value| format!("{}:{value}", Value::from(name));
        let schemas = schemas_of(&prefix, &module);
        let schemas: Vec<String> = schemas.iter().map(|(name, schema)| member(name, schema)).collect();
        Some((member(&format!("/api/run/{name}"), &path).into(), schemas.join(",").into()))
    }

    fn combine(shared: &AppState, pieces: &[&Self::Piece]) -> CombinedOverview {
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
        CombinedOverview { text: text.into(), most_taken: 0, version: 0 }
    }
}

/// The tags of the operations.
const TAGS: [(&str, &str); 6] = [
    ("modules", "Run a module: its own input in, its own data out"),
    ("runs", "Run any module by name, optionally as a stream"),
    ("catalog", "Modules of this server"),
    ("media", "Uploads for runs, and media of answers"),
    ("studio", "Studio, the page of the server: log in, try, edit, watch, review"),
    ("server", "Health of the server"),
];

/// Returns the description without modules in three parts. The paths of modules go between the first and the second,
/// their schemas between the second and the third.
fn frame(shared: &AppState) -> (String, String, String) {
    let (mut paths, mut components) = (Map::new(), Components::default());
    for operation in &OPERATIONS {
        let Some(described) = &operation.described else { continue };
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(operation.method.to_owned(), general(operation, described, &mut components));
        }
    }
    let about = json!({
        "title": "cogn",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Every run returns one envelope, or a stream that ends with one.",
    });
    let tags: Value =
        TAGS.iter().map(|(name, description)| json!({ "name": name, "description": description })).collect();
    let security = if shared.config.keys.is_empty() { json!([]) } else { json!([{ "key": [] }]) };
    let without_end = |object: Value| {
        let text = object.to_string();
        text.strip_suffix('}').map(str::to_owned).unwrap_or(text)
    };
    let first = format!(
        "{{\"openapi\":\"3.1.0\",\"info\":{about},\"tags\":{tags},\"paths\":{}",
        without_end(Value::Object(paths)),
    );
    let middle =
        format!("}},\"components\":{{\"schemas\":{}", without_end(Value::Object(components.finish())));
    let last = format!(
        "}},\"headers\":{},\"parameters\":{},\"securitySchemes\":{}}},\"security\":{security}}}",
        schemas::headers(),
        schemas::parameters(),
        json!({ "key": { "type": "http", "scheme": "bearer" } }),
    );
    (first, middle, last)
}

/// Returns JSON content with a schema.
fn as_json(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

/// Returns the content type of a JSON lines response.
fn lines() -> Value {
    json!({ "application/x-ndjson": { "schema": { "type": "string", "description": "Lines of JSON" } } })
}

/// Returns the content of a run response: an envelope, or a stream of chunks.
fn envelope_or_stream() -> Value {
    let stream = |kind: &str| {
        let description = format!("{kind}; each is a `Chunk`");
        json!({ "schema": { "type": "string", "description": description }, "x-itemSchema": schema_reference("Chunk") })
    };
    json!({
        "application/json": { "schema": schema_reference("Success") },
        "text/event-stream": stream("Server-sent events"),
        "application/x-ndjson": stream("Lines of JSON"),
    })
}

/// Returns the status and content of a response that is not JSON of a single type.
fn answer_of(path: &str) -> (&'static str, Option<Value>) {
    let content = match path {
        "/ws" => return ("101", None),
        "/run" | "/api/run/{module}" | "/v1/modules/{module}/execute" => envelope_or_stream(),
        "/v1/media/files/{id}" => files::content(),
        "/v1/reviews/export" => lines(),
        "/metrics" => json!({ "text/plain": { "schema": { "type": "string" } } }),
        _ => json!({ "application/json": { "schema": { "type": "object" } } }),
    };
    ("200", Some(content))
}

/// Describes an operation of the table.
fn general(operation: &Operation, described: &OperationDescription, components: &mut Components) -> Value {
    let OperationDescription { id, tag, summary, .. } = described;
    let path = operation.path;
    let (status, content) = match described.gives {
        Some(answer) => ("200", Some(as_json(&components.answer(answer)))),
        None => answer_of(path),
    };
    let is_run = path.contains("/run/") || path == "/run" || path.contains("execute");
    let mut answer = json!({ "description": if status == "101" { "The connection is a WebSocket" } else { "The answer" } });
    if let (Some(answer), Some(content)) = (answer.as_object_mut(), &content) {
        if is_run {
            answer.insert("headers".to_owned(), schemas::headers_of_a_run());
        }
        answer.insert("content".to_owned(), content.clone());
    }
    let mut responses = json!({ status: answer, "default": schemas::failure_response() });
    if let (Some(responses), "/ready") = (responses.as_object_mut(), path) {
        responses
            .insert("503".to_owned(), json!({ "description": "It accepts no runs", "content": content }));
    }
    let in_path = ["module", "id"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if is_run {
        parameters.extend(schemas::run_parameters());
    }
    let query = described.asks.map(|query| components.query(query)).unwrap_or_default();
    parameters.extend(
        query.iter().map(
            |(name, schema)| json!({ "name": name, "in": "query", "required": false, "schema": schema }),
        ),
    );
    let bytes = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    let body = match described.takes {
        Some(body) => Some(as_json(&components.request(body))),
        None => (path == "/v1/media/uploads/{id}").then_some(bytes),
    };
    let mut told = json!({ "operationId": id, "tags": [tag], "summary": summary });
    if let Some(members) = told.as_object_mut() {
        if !parameters.is_empty() {
            members.insert("parameters".to_owned(), Value::Array(parameters));
        }
        if let Some(content) = body {
            members.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        members.insert("responses".to_owned(), responses);
        // Open operations reveal nothing, and a client that logs in has no key yet.
        if operation.access == OperationAccess::Open {
            members.insert("security".to_owned(), json!([]));
        }
    }
    told
}

/// Describes the run of one module as a sync response. Streams are described at `/api/run/{module}`: with a second
/// content type, generators could not type this response.
fn run_operation(prefix: &str, module: &Module) -> Value {
    json!({
        "operationId": format!("run{prefix}"),
        "tags": ["modules"],
        "summary": module.manifest.responsibility,
        "parameters": schemas::module_parameters(),
        "requestBody": { "required": true, "content": as_json(&schema_reference(&format!("{prefix}Input"))) },
        "responses": {
            "200": {
                "description": "The envelope of a success",
                "headers": schemas::headers_of_a_run(),
                "content": as_json(&schema_reference(&format!("{prefix}Ok"))),
            },
            "default": schemas::failure_response(),
        },
    })
}

/// Returns the schemas of one module: its input, its data, and the envelope around them.
fn schemas_of(prefix: &str, module: &Module) -> Vec<(String, Value)> {
    let plain = module.plain_sections();
    let sent = ClientForm { prefix, direction: Direction::Sent };
    let received = ClientForm { prefix, direction: Direction::Received };
    let own_meta = own_meta(&received.rewrite(&plain.meta));
    let name = |what: &str| format!("{prefix}{what}");
    let meta = if own_meta.is_some() { schema_reference(&name("Meta")) } else { schema_reference("Meta") };
    let mut members =
        json!({ "ok": { "const": true }, "meta": meta, "data": schema_reference(&name("Data")) });
    if let (Some(members), Some(emitted)) = (members.as_object_mut(), &plain.emitted_context) {
        members.insert("_emitted_context".to_owned(), received.rewrite(emitted));
    }
    let envelope = json!({ "type": "object", "required": ["ok", "meta", "data"], "properties": members });
    let mut all = vec![
        (name("Input"), sent.rewrite(&plain.input)),
        (name("Data"), received.rewrite(&plain.data)),
        (name("Ok"), envelope),
    ];
    all.extend(own_meta.map(|meta| (name("Meta"), meta)));
    // A recursive type may be used in both directions, so it omits what received values do not guarantee.
    all.extend(plain.defs.iter().map(|(own, schema)| (name(&pascal(own)), received.rewrite(schema))));
    all
}
