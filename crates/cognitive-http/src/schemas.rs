//! The parts of `/openapi.json` that do not depend on modules: failures, chunks, headers and parameters.
//! Describes; decides nothing.

use serde_json::{Map, Value, json};

/// What middleware routes on: name, description and schema of each header.
fn routing() -> [(&'static str, &'static str, Value); 8] {
    let text = || json!({ "type": "string" });
    [
        (
            "Cogn-Ok",
            "Whether the envelope is a success",
            json!({ "type": "string", "enum": ["true", "false"] }),
        ),
        ("Cogn-Confidence", "`meta.confidence`", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        ("Cogn-Risk", "`meta.risk`", text()),
        ("Cogn-Tier", "The tier of the module", json!({ "enum": ["exec", "decision", "exploration"] })),
        ("Cogn-Error-Code", "`error.code` of a failure", text()),
        ("Cogn-Trace-Id", "The id that envelope, audit log and access log share", text()),
        ("Retry-After", "Seconds to wait, with 429", json!({ "type": "integer", "minimum": 1 })),
        ("X-Cognitive-Warning", "Why the answer is not a stream", text()),
    ]
}

/// `components.headers`.
pub(crate) fn headers() -> Value {
    let described = routing().map(|(name, description, schema)| {
        (name.to_owned(), json!({ "description": description, "schema": schema }))
    });
    Value::Object(described.into_iter().collect())
}

/// The headers of the answer to a run.
pub(crate) fn headers_of_a_run() -> Value {
    let named = routing().map(|(name, ..)| (name.to_owned(), reference("headers", name)));
    Value::Object(named.into_iter().collect())
}

/// `components.parameters`: the ways to ask for a stream and to come back to one.
pub(crate) fn parameters() -> Value {
    let mode = json!({ "enum": ["sync", "streaming"] });
    let text = json!({ "type": "string" });
    let table = [
        ("query", "response_mode", "Whether to stream", mode.clone()),
        ("header", "X-Cognitive-Response-Mode", "Whether to stream; comes before the query", mode),
        ("header", "X-Cognitive-Session", "The conversation that stored context belongs to", text.clone()),
        ("header", "Last-Event-ID", "The last event that arrived, `SESSION:NUMBER`", text.clone()),
        ("header", "X-Cognitive-Recovery-Session", "The stream that broke off", text),
        (
            "header",
            "X-Cognitive-Recovery-Seq",
            "The last numbered chunk of it that arrived",
            json!({ "type": "integer", "minimum": 0 }),
        ),
    ];
    let described = table.map(|(place, name, description, schema)| {
        let parameter = json!({ "name": name, "in": place, "description": description, "schema": schema });
        (name.to_owned(), parameter)
    });
    Value::Object(described.into_iter().collect())
}

/// The parameters of a run.
pub(crate) fn of_a_run() -> Value {
    let names =
        parameters().as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    names.iter().map(|name| reference("parameters", name)).collect()
}

/// A reference into `components`.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// The answer that every operation may give instead of its own.
pub(crate) fn failure_response() -> Value {
    json!({
        "description": "The envelope of a failure",
        "headers": headers_of_a_run(),
        "content": { "application/json": { "schema": reference("schemas", "Failure") } },
    })
}

fn meta(confidence: Value) -> Value {
    json!({
        "type": "object",
        "required": ["confidence", "risk", "explain"],
        "properties": { "confidence": confidence, "explain": { "type": "string", "maxLength": 280 } },
    })
}

fn known() -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
}

fn error() -> Value {
    let recovery = json!({
        "type": "object",
        "required": ["last_seq", "retry_after_ms", "max_retries"],
        "properties": {
            "last_seq": { "type": "integer", "minimum": 0 },
            "last_checkpoint": checkpoint(),
            "retry_after_ms": { "type": "integer", "minimum": 0 },
            "max_retries": { "type": "integer", "minimum": 0 },
        },
    });
    json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": { "code": { "type": "string" }, "message": { "type": "string" }, "recovery": recovery },
    })
}

fn checkpoint() -> Value {
    json!({
        "type": "object",
        "required": ["offset", "hash"],
        "properties": {
            "offset": { "type": "integer", "minimum": 0 },
            "hash": { "type": "string", "pattern": "^[0-9a-f]{6}$" },
        },
    })
}

/// The envelope of a failure.
pub(crate) fn failure() -> Value {
    json!({
        "type": "object",
        "required": ["ok", "meta", "error"],
        "properties": {
            "ok": { "const": false },
            "meta": meta(known()),
            "error": error(),
            "partial_data": { "type": "object" },
        },
    })
}

/// One chunk of a stream, of whichever kind.
pub(crate) fn chunk() -> Value {
    let shaped = |required: Value, properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let seq = json!({ "type": "integer", "minimum": 1 });
    let opening = json!({
        "ok": { "const": true },
        "streaming": { "const": true },
        "session_id": { "type": "string" },
        "resumed": { "const": true },
        "resume_from_seq": seq,
        // Null until the model has said it (STREAM-026).
        "meta": meta(json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 })),
    });
    let delta = json!({
        "type": { "const": "delta" },
        "seq": seq,
        "field": { "type": "string" },
        "delta": { "type": "string" },
        "checkpoint": checkpoint(),
    });
    let snapshot = json!({ "type": { "const": "snapshot" }, "seq": seq, "data": { "type": "object" } });
    let numbered = json!({ "oneOf": [
        shaped(json!(["type", "seq", "field", "delta"]), delta),
        shaped(json!(["type", "seq", "data"]), snapshot),
    ] });
    let percent = json!({ "type": "number", "minimum": 0, "maximum": 100 });
    let progress = shaped(json!(["percent"]), json!({ "percent": percent }));
    let last = json!({ "final": { "const": true }, "meta": meta(known()), "data": { "type": "object" } });
    let failed = json!({
        "ok": { "const": false },
        "streaming": { "const": true },
        "session_id": { "type": "string" },
        "meta": meta(known()),
        "error": error(),
        "partial_data": { "type": "object" },
    });
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!("One chunk: opening, text, progress, or the end"));
    let kinds = json!([
        shaped(json!(["ok", "streaming", "session_id", "meta"]), opening),
        shaped(json!(["chunk"]), json!({ "chunk": numbered })),
        shaped(json!(["progress"]), json!({ "progress": progress })),
        shaped(json!(["final", "meta", "data"]), last),
        shaped(json!(["ok", "streaming", "session_id", "meta", "error"]), failed),
        { "type": "object", "maxProperties": 0 },
    ]);
    schema.insert("anyOf".to_owned(), kinds);
    Value::Object(schema)
}
