//! The named schemas of `/openapi.json` that do not depend on modules: envelopes, chunks, and the inputs and outputs
//! of the other operations. `meta` and `error` come from the contract, which keeps them in one place. Describes;
//! decides nothing.

use cognitive_contract::envelope_schema;
use cognitive_contract::media::MediaType;
use cognitive_contract::thinking::MAX_THINKING_TOKENS;
use serde_json::{Map, Value, json};

use crate::client_form::{CUSTOM_VALUE, ClientForm, Direction};
use crate::schemas::reference;
use crate::studio::described;

/// Returns a reference to a named schema.
pub(crate) fn named(name: &str) -> Value {
    reference("schemas", name)
}

/// Builds an object schema with these properties, of which `required` are required.
pub(crate) fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if let Some(members) = schema.as_object_mut() {
        if !required.is_empty() {
            members.insert("required".to_owned(), json!(required));
        }
        if !description.is_empty() {
            members.insert("description".to_owned(), json!(description));
        }
    }
    schema
}

pub(crate) fn text() -> Value {
    json!({ "type": "string" })
}

pub(crate) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(crate) fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// Returns all named schemas.
pub(crate) fn all() -> Map<String, Value> {
    let groups = [envelopes(), chunks(), pages(), media(), requests(), described::all()];
    groups.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Schemas with their names.
pub(crate) type Named = Vec<(&'static str, Value)>;

fn envelopes() -> Named {
    let tokens = json!({ "input_tokens": count(), "output_tokens": count(), "total_tokens": count() });
    let short = json!({ "type": "string", "minLength": 1, "maxLength": 32 });
    let partial = json!({ "type": ["object", "null"], "description": "The part of the result that exists" });
    let any = json!({ "type": "object" });
    vec![
        (
            CUSTOM_VALUE,
            object(
                "A value that is not in its closed list",
                &["custom", "reason"],
                json!({ "custom": short, "reason": text() }),
            ),
        ),
        ("Usage", object("Tokens of all calls of a run", &[], tokens)),
        (
            "RunWarning",
            object(
                "A notice that does not change the outcome",
                &["code", "message"],
                json!({ "code": text(), "message": text() }),
            ),
        ),
        ("Meta", meta()),
        ("RunError", run_error()),
        (
            "Success",
            object(
                "The envelope of a success",
                &["ok", "meta", "data"],
                json!({ "ok": { "const": true }, "meta": named("Meta"), "data": any }),
            ),
        ),
        (
            "Failure",
            object(
                "The envelope of a failure",
                &["ok", "meta", "error"],
                json!({
                    "ok": { "const": false },
                    "meta": named("Meta"),
                    "error": named("RunError"),
                    "partial_data": partial,
                }),
            ),
        ),
    ]
}

/// Returns a definition of the published envelope, with `details` replacing some of its properties.
fn of_contract(definition: &str, details: Value) -> Value {
    let published = envelope_schema::json_schema();
    let written =
        published.get("definitions").and_then(|all| all.get(definition)).cloned().unwrap_or_default();
    let mut schema = ClientForm { prefix: "", direction: Direction::Received }.of(&written);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(properties), Value::Object(details)) = (properties, details) {
        properties.extend(details);
    }
    schema
}

fn meta() -> Value {
    of_contract("meta", json!({ "usage": named("Usage"), "warnings": list(named("RunWarning")) }))
}

/// Returns the `meta` schema of a module that adds properties or defines its own risk values; `None` for other
/// modules.
pub(crate) fn own_meta(of_module: &Value) -> Option<Value> {
    let mut schema = meta();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut)?;
    let own = of_module.get("properties").and_then(Value::as_object)?;
    let is_usual = |name: &str, value: &Value| match name {
        "confidence" | "explain" => true,
        "risk" => value.get("enum").is_some(),
        _ => false,
    };
    let own: Vec<_> = own.iter().filter(|(name, value)| !is_usual(name, value)).collect();
    if own.is_empty() {
        return None;
    }
    properties.extend(own.into_iter().map(|(name, value)| (name.clone(), value.clone())));
    Some(schema)
}

fn run_error() -> Value {
    of_contract("error", json!({ "recovery": named("Recovery") }))
}

fn chunks() -> Named {
    let seq = json!({ "type": "integer", "minimum": 1 });
    let yes = json!({ "const": true });
    let any = json!({ "type": "object" });
    let hash = json!({ "type": "string", "pattern": "^[0-9a-f]{6}$" });
    let mut opening_meta = meta();
    if let Some(confidence) = opening_meta.pointer_mut("/properties/confidence") {
        // Null until the model has produced it (STREAM-026).
        *confidence = json!({ "type": ["number", "null"], "minimum": 0, "maximum": 1 });
    }
    let opening = json!({
        "ok": yes, "streaming": yes, "session_id": text(), "resumed": { "type": "boolean" }, "resume_from_seq": seq,
        "meta": named("OpeningMeta"),
    });
    let delta = json!({
        "type": { "const": "delta" }, "seq": seq, "field": text(), "delta": text(), "checkpoint": named("Checkpoint"),
    });
    let snapshot = json!({ "type": { "const": "snapshot" }, "seq": seq, "data": any });
    let numbered = json!({ "anyOf": [named("DeltaText"), named("DataSnapshot")] });
    let percent = json!({ "type": "number", "minimum": 0, "maximum": 100 });
    let percent = object("", &["percent"], json!({ "percent": percent }));
    let last = json!({ "final": yes, "meta": named("Meta"), "data": any });
    let failed = json!({
        "ok": { "const": false }, "streaming": yes, "session_id": text(), "meta": named("Meta"),
        "error": named("RunError"), "partial_data": any,
    });
    let recovery = json!({
        "last_seq": count(), "last_checkpoint": named("Checkpoint"), "retry_after_ms": count(), "max_retries": count(),
    });
    let kinds = ["OpeningChunk", "TextChunk", "ProgressChunk", "FinalChunk", "FailedChunk", "Heartbeat"];
    let (begun, ended) = (["ok", "streaming", "session_id", "meta"], ["final", "meta", "data"]);
    let broken = ["ok", "streaming", "session_id", "meta", "error"];
    vec![
        ("Checkpoint", object("", &["offset", "hash"], json!({ "offset": count(), "hash": hash }))),
        (
            "Recovery",
            object("The state of the stream", &["last_seq", "retry_after_ms", "max_retries"], recovery),
        ),
        ("OpeningMeta", opening_meta),
        ("DeltaText", object("The growth of one field", &["type", "seq", "field", "delta"], delta)),
        ("DataSnapshot", object("All data so far", &["type", "seq", "data"], snapshot)),
        ("OpeningChunk", object("A stream starts or resumes", &begun, opening)),
        ("TextChunk", object("More of the answer", &["chunk"], json!({ "chunk": numbered }))),
        ("ProgressChunk", object("Progress of the run", &["progress"], json!({ "progress": percent }))),
        ("FinalChunk", object("The complete, validated answer", &ended, last)),
        ("FailedChunk", object("The end of a failed stream", &broken, failed)),
        ("Heartbeat", json!({ "type": "object", "maxProperties": 0, "description": "Nothing yet" })),
        ("Chunk", json!({ "description": "One piece of a stream", "anyOf": kinds.map(named) })),
    ]
}

fn pages() -> Named {
    let summary = json!({
        "name": text(), "valid": { "type": "boolean" }, "version": text(), "tier": text(), "responsibility": text(),
        "response_mode": text(),
    });
    let any = json!({ "type": "object" });
    let detail = json!({
        "name": text(), "format": text(), "manifest": any, "schema": any, "warnings": list(named("RunWarning")),
    });
    let health = json!({ "status": { "const": "ok" }, "version": text(), "modules_count": count() });
    let status = json!({ "type": "string", "enum": ["ready", "draining"] });
    let capabilities = json!({
        "runtime": text(), "version": text(), "spec_versions": list(text()), "conformance_level": count(),
        "capabilities": any,
    });
    let declared = ["runtime", "version", "spec_versions", "conformance_level", "capabilities"];
    vec![
        ("ModuleSummary", object("Summary of a module", &["name", "valid"], summary)),
        (
            "ModuleList",
            object(
                "The modules of this server",
                &["modules"],
                json!({ "modules": list(named("ModuleSummary")) }),
            ),
        ),
        (
            "ModuleDetail",
            object(
                "Manifest and schema of a module",
                &["name", "format", "manifest", "schema", "warnings"],
                detail,
            ),
        ),
        ("RuntimeCapabilities", object("Capabilities of the runtime", &declared, capabilities)),
        ("Health", object("The process is alive", &["status", "version", "modules_count"], health)),
        ("Readiness", object("Readiness for requests", &["status"], json!({ "status": status }))),
    ]
}

fn media() -> Named {
    let sums = json!({ "type": "string", "enum": ["sha256", "md5", "crc32"] });
    let digits = json!({ "type": "string", "pattern": "^[0-9a-fA-F]+$" });
    let kinds: Vec<&str> = MediaType::all().map(MediaType::mime).collect();
    let announcement = json!({
        "filename": text(),
        "media_type": { "type": "string", "enum": kinds },
        "size_bytes": { "type": "integer", "minimum": 1 },
        "checksum": named("UploadChecksum"),
    });
    let place = json!({
        "upload_id": text(), "upload_url": text(), "method": { "const": "PUT" }, "expires_at": text(),
        "headers": { "type": "object", "additionalProperties": text() }, "max_size_bytes": count(),
    });
    let ended = json!({ "session_id": text(), "status": { "const": "cancelled" } });
    let required = ["upload_id", "upload_url", "method", "headers", "expires_at", "max_size_bytes"];
    let done = json!({ "upload_id": text(), "status": { "const": "complete" } });
    vec![
        (
            "UploadChecksum",
            object("", &["algorithm", "value"], json!({ "algorithm": sums, "value": digits })),
        ),
        (
            "UploadRequest",
            object("Size and type of an upload", &["filename", "media_type", "size_bytes"], announcement),
        ),
        ("UploadPlace", object("Address for the bytes", &required, place)),
        ("StreamEnd", object("The run is being cancelled", &["session_id", "status"], ended)),
        ("UploadDone", object("All bytes have arrived", &["upload_id", "status"], done)),
    ]
}

fn requests() -> Named {
    let word = |words: &[&str]| json!({ "type": "string", "enum": words });
    let flag = json!({ "type": "boolean" });
    let options = json!({
        "response_mode": word(&["sync", "streaming"]), "chunk_type": word(&["delta", "snapshot"]), "receipt": flag,
        "timeout": { "type": "number", "exclusiveMinimum": 0, "description": "Time limit of each model call, in seconds; at most that of the server" },
        "reask": { "type": "integer", "minimum": 0, "description": "Number of repair attempts after an answer that breaks the contract" },
        "max_calls": { "type": "integer", "minimum": 0, "description": "Maximum number of model calls; at most that of the server" },
        "strict_parse": { "type": "boolean", "description": "Accept only valid JSON from the model" },
        "early_stop": { "type": "boolean", "description": "Stop a call whose answer cannot become valid" },
        "seed": count(), "max_output_tokens": { "type": "integer", "minimum": 1 }, "session": text(),
        "thinking": { "type": "integer", "minimum": 0, "maximum": MAX_THINKING_TOKENS },
        "max_cost": { "type": "number", "minimum": 0, "description": "Maximum cost of the run, in US dollars" },
        "model": { "type": "string", "description": "One of `/v1/models`, for authors" },
        "draft": { "type": "object", "description": "Replacements for files of the module, by path; for authors",
                   "additionalProperties": { "type": ["string", "null"] } },
        "version": { "type": "string", "description": "One of `/v1/modules/{module}/versions`, for authors" },
        "record": { "type": "boolean", "description": "Store the model's reply for a while, so that a test can be made of the answer; for authors" },
        "no_cache": flag, "media_out": word(&["base64", "url"]), "require_streaming": flag,
        "ask_again": { "type": "boolean", "description": "Start a new run if the server of a stream is gone and the stream had not ended" },
        "resume_only": { "type": "boolean", "description": "Do not start a new run if a stream cannot be resumed" },
    });
    let any = json!({ "type": "object" });
    let by_name = json!({
        "module": text(), "input": any, "_options": named("RequestOptions"),
        "args": { "type": "string", "description": "Free text instead of an input; it is not validated" },
    });
    let wrapped = "The input of the module, or `{input, _options}`";
    vec![
        ("RequestOptions", object("Form of the answer", &[], options)),
        ("NamedRun", object("A run of the named module", &["module"], by_name)),
        ("AnyInput", json!({ "type": "object", "description": wrapped })),
    ]
}
