//! Headers, parameters and references of `/openapi.json`; `components` has the schemas. Describes; decides nothing.

use serde_json::{Value, json};

/// The headers for middleware: name, description and schema of each.
fn routing() -> [(&'static str, &'static str, Value); 8] {
    let text = || json!({ "type": "string" });
    [
        ("Cogn-Ok", "True for a success", json!({ "type": "string", "enum": ["true", "false"] })),
        ("Cogn-Confidence", "`meta.confidence`", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        ("Cogn-Risk", "`meta.risk`", text()),
        (
            "Cogn-Tier",
            "The tier of the module",
            json!({ "type": "string", "enum": ["exec", "decision", "exploration"] }),
        ),
        ("Cogn-Error-Code", "`error.code` of a failure", text()),
        ("Cogn-Trace-Id", "The id in envelope, audit log and access log", text()),
        ("Retry-After", "Seconds to wait, with 429", json!({ "type": "integer", "minimum": 1 })),
        ("X-Cognitive-Warning", "Reason why the answer is not a stream", text()),
    ]
}

/// `components.headers`.
pub(crate) fn headers() -> Value {
    let described = routing().map(|(name, description, schema)| {
        (name.to_owned(), json!({ "description": description, "schema": schema }))
    });
    Value::Object(described.into_iter().collect())
}

/// The headers of a run response.
pub(crate) fn headers_of_a_run() -> Value {
    let named = routing().map(|(name, ..)| (name.to_owned(), reference("headers", name)));
    Value::Object(named.into_iter().collect())
}

/// `components.parameters`: the parameters that request a stream or resume one.
pub(crate) fn parameters() -> Value {
    let mode = json!({ "type": "string", "enum": ["sync", "streaming"] });
    let text = json!({ "type": "string" });
    let table = [
        ("query", "response_mode", "Stream the answer", mode.clone()),
        ("header", "X-Cognitive-Response-Mode", "Stream the answer; overrides the query", mode),
        ("header", "X-Cognitive-Session", "The conversation that stored context belongs to", text.clone()),
        ("header", "Last-Event-ID", "The last received event, `SESSION:NUMBER`", text.clone()),
        ("header", "X-Cognitive-Recovery-Session", "The interrupted stream", text),
        (
            "header",
            "X-Cognitive-Recovery-Seq",
            "The number of its last received chunk",
            json!({ "type": "integer", "minimum": 0 }),
        ),
    ];
    let described = table.map(|(place, name, description, schema)| {
        let parameter = json!({ "name": name, "in": place, "description": description, "schema": schema });
        (name.to_owned(), parameter)
    });
    Value::Object(described.into_iter().collect())
}

/// The parameters of the run of one module. The parameters of streams belong to the operations that return streams.
pub(crate) fn module_parameters() -> Value {
    json!([reference("parameters", "X-Cognitive-Session")])
}

/// The parameters of a run that may be streamed.
pub(crate) fn run_parameters() -> Vec<Value> {
    let names =
        parameters().as_object().map(|all| all.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    names.iter().map(|name| reference("parameters", name)).collect()
}

/// A reference into `components`.
pub(crate) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// The failure response that any operation may return.
pub(crate) fn failure_response() -> Value {
    json!({
        "description": "The envelope of a failure",
        "headers": headers_of_a_run(),
        "content": { "application/json": { "schema": reference("schemas", "Failure") } },
    })
}
