//! The named schemas of `/openapi.json` for the operations of Studio. Describes; decides nothing.

use cognitive_contract::recorded_reply::dialect_names;
use serde_json::{Value, json};

use crate::components::{Named, count, list, named, object, text};

/// Returns all of them.
pub(crate) fn all() -> Named {
    [sessions(), models(), modules(), runs(), reviews()].into_iter().flatten().collect()
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

fn or_null(kind: &str) -> Value {
    json!({ "type": [kind, "null"] })
}

fn any() -> Value {
    json!({})
}

fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn counts() -> Value {
    json!({ "type": "object", "additionalProperties": count() })
}

fn envelope() -> Value {
    json!({ "anyOf": [named("Success"), named("Failure")] })
}

fn files() -> Value {
    json!({
        "type": "object",
        "additionalProperties": { "type": ["string", "null"] },
        "description": "File contents by path in the folder of the module; null removes a file",
    })
}

fn sessions() -> Named {
    let has = json!({ "runs": flag(), "payloads": flag(), "review": flag(), "edit": flag() });
    let session = json!({
        "name": or_null("string"), "roles": list(word(&["run", "author", "review", "admin"])), "keyed": flag(),
        "version": text(), "studio": count(), "has": object("", &["runs", "payloads", "review", "edit"], has),
    });
    let all = ["name", "roles", "keyed", "version", "studio", "has"];
    vec![
        ("LoginRequest", object("A key, to be exchanged for a login", &["key"], json!({ "key": text() }))),
        ("StudioSession", object("The caller and their permissions", &all, session)),
        ("SessionEnd", object("", &["status"], json!({ "status": { "const": "ended" } }))),
    ]
}

fn models() -> Named {
    let price = json!({ "input_per_million": text(), "output_per_million": text(), "currency": text(), "as_of": text() });
    let price = object("", &["input_per_million", "output_per_million", "currency", "as_of"], price);
    let model = json!({
        "name": text(), "is_default": flag(), "is_local": flag(), "price": { "anyOf": [price, { "type": "null" }] },
    });
    let request = json!({
        "method": text(), "url": text(), "headers": { "type": "object", "additionalProperties": text() }, "body": any(),
    });
    let request =
        object("Replace the names of variables by keys", &["method", "url", "headers", "body"], request);
    let ceiling = object("", &["cost", "currency"], json!({ "cost": text(), "currency": text() }));
    let call = json!({
        "module": text(), "instructions": text(), "input": text(), "estimated_tokens": count(),
        "examples": list(object("", &["input", "answer"], json!({ "input": text(), "answer": text() }))),
        "request": { "anyOf": [request, { "type": "null" }] },
        "curl": or_null("string"),
        "waits_for": list(text()), "not_sent": text(),
    });
    let call =
        object("A prompt, the modules whose answers it depends on, or why none is sent", &["module"], call);
    let ceiling = json!({ "anyOf": [ceiling, { "type": "null" }] });
    let preview = json!({ "calls": list(named("PreviewedCall")), "ceiling": ceiling });
    vec![
        (
            "NamedModel",
            object("A model that a run may name", &["name", "is_default", "is_local", "price"], model),
        ),
        ("ModelList", object("", &["models"], json!({ "models": list(named("NamedModel")) }))),
        ("PreviewedCall", call),
        ("RunPreview", object("A run that is not made", &["calls", "ceiling"], preview)),
    ]
}

fn modules() -> Named {
    let finding = json!({
        "severity": text(), "file": text(), "line": or_null("integer"), "column": or_null("integer"), "rule": text(),
        "message": text(), "hint": or_null("string"),
    });
    let finding = object("A finding of validation", &["severity", "file", "rule", "message"], finding);
    let findings = || list(named("ModuleFinding"));
    let file = json!({ "path": text(), "text": or_null("string"), "bytes": count() });
    let shown = json!({
        "editable": flag(), "hash": text(), "files": list(object("", &["path", "text", "bytes"], file)),
        "findings": findings(), "tests": list(object("", &["name"], json!({ "name": text() }))),
    });
    let case = json!({ "id": text(), "set": text(), "input": any(), "expect": any() });
    let new = json!({
        "kind": word(&["golden", "example", "case"]), "name": text(), "input": any(), "envelope": envelope(),
        "reply": { "type": "string", "description": "The raw text of the model" },
        "reply_dialect": {
            "type": "string", "enum": dialect_names().collect::<Vec<_>>(),
            "description": "The dialect of the schema that was sent to the provider; `none` without this member",
        },
    });
    let version = json!({
        "id": text(), "version": or_null("string"), "origin": text(), "is_current": flag(), "at": text(), "about": text(),
    });
    let wrong = json!({ "place": text(), "expected": text(), "got": text() });
    let wrong = list(object("", &["place", "expected", "got"], wrong));
    let verdict = object("", &["right", "wrong"], json!({ "right": flag(), "wrong": wrong }));
    let judged = json!({ "set": text(), "id": text(), "envelopes": list(envelope()) });
    vec![
        (
            "ModuleVersion",
            object(
                "A version of a module that can be run",
                &["id", "version", "origin", "is_current"],
                version,
            ),
        ),
        ("VersionList", object("", &["versions"], json!({ "versions": list(named("ModuleVersion")) }))),
        ("JudgeRequest", object("Answers to one case", &["set", "id", "envelopes"], judged)),
        ("VerdictList", object("One for each answer", &["verdicts"], json!({ "verdicts": list(verdict) }))),
        ("ModuleFinding", finding),
        ("FindingList", object("", &["findings"], json!({ "findings": findings() }))),
        (
            "ModuleFiles",
            object("The folder of a module", &["editable", "hash", "files", "findings", "tests"], shown),
        ),
        ("CheckRequest", object("", &["files"], json!({ "files": files() }))),
        ("SaveRequest", object("", &["hash", "files"], json!({ "hash": text(), "files": files() }))),
        ("SavedModule", object("", &["hash", "findings"], json!({ "hash": text(), "findings": findings() }))),
        ("ModuleCase", object("An input and its expectation", &["id", "set", "input"], case)),
        ("CaseList", object("", &["cases"], json!({ "cases": list(named("ModuleCase")) }))),
        ("CaseRequest", object("An answer to save", &["kind", "name", "input", "envelope"], new)),
        (
            "KeptCase",
            object(
                "",
                &["paths", "hash", "findings", "recorded"],
                json!({ "paths": list(text()), "hash": text(), "findings": findings(), "recorded": flag() }),
            ),
        ),
    ]
}

fn runs() -> Named {
    let run = json!({
        "run_id": text(), "trace_id": text(), "ts": text(), "module": text(), "version": text(), "model": text(),
        "ok": flag(), "code": or_null("string"), "risk": text(), "confidence": number(), "latency_ms": number(),
        "usage": { "anyOf": [named("Usage"), { "type": "null" }] }, "cost": or_null("number"), "key": or_null("string"),
        "user": or_null("string"), "has_payload": flag(), "unfinished": flag(), "parent_span": or_null("string"),
    });
    let required =
        ["run_id", "trace_id", "ts", "module", "version", "model", "ok", "has_payload", "unfinished"];
    let node = json!({
        "name": text(), "module": text(), "start_ms": number(), "duration_ms": number(), "ok": flag(),
        "code": or_null("string"), "children": list(named("WaterfallNode")),
    });
    let totals = |mut first: Value| {
        let members = json!({
            "runs": count(), "parts": count(), "failures": count(), "unfinished": count(), "p50_ms": or_null("number"),
            "p95_ms": or_null("number"), "p99_ms": or_null("number"), "input_tokens": count(), "output_tokens": count(),
            "cost": number(),
        });
        if let (Some(first), Value::Object(members)) = (first.as_object_mut(), members) {
            first.extend(members);
        }
        object("", &["runs", "failures"], first)
    };
    let stats = json!({
        "from": or_null("string"), "to": or_null("string"), "buckets": list(totals(json!({ "at": text() }))),
        "codes": counts(), "models": counts(), "modules": counts(), "confidence": list(count()), "totals": totals(json!({})),
    });
    let tree = json!({ "anyOf": [named("WaterfallNode"), { "type": "null" }] });
    let details = json!({
        "run": named("ArchivedRun"), "records": list(json!({ "type": "object" })), "tree": tree, "input": any(),
        "envelope": envelope(),
    });
    let change = json!({ "path": text(), "before": any(), "after": any() });
    let replay =
        json!({ "before": envelope(), "after": envelope(), "diff": list(object("", &["path"], change)) });
    vec![
        ("ArchivedRun", object("Summary of a run", &required, run)),
        (
            "RunPage",
            object(
                "",
                &["runs", "next"],
                json!({ "runs": list(named("ArchivedRun")), "next": or_null("string") }),
            ),
        ),
        (
            "RunStats",
            object(
                "Statistics over time",
                &["buckets", "codes", "models", "modules", "confidence", "totals"],
                stats,
            ),
        ),
        (
            "WaterfallNode",
            object(
                "A unit of work with its duration",
                &["name", "start_ms", "duration_ms", "children"],
                node,
            ),
        ),
        ("RunDetails", object("Details of a run", &["run", "records", "tree"], details)),
        ("ReplayRequest", object("", &[], json!({ "model": text(), "draft": files(), "version": text() }))),
        ("RunReplay", object("The same run, twice", &["before", "after", "diff"], replay)),
    ]
}

fn reviews() -> Named {
    let verdict = || word(&["approve", "reject", "correct"]);
    let decision = json!({ "verdict": verdict(), "reason": text(), "by": or_null("string"), "at": text(), "data": any() });
    let review = json!({
        "id": text(), "at": text(), "state": word(&["open", "decided"]), "module": text(), "version": text(), "model": text(),
        "ok": flag(), "code": or_null("string"), "risk": text(), "confidence": number(), "calibrated_confidence": number(),
        "explain": text(), "rule": text(), "run_id": text(), "trace_id": text(), "key": or_null("string"),
        "user": or_null("string"), "tenant": or_null("string"), "input": any(), "envelope": envelope(),
        "decision": object("", &["verdict", "reason", "at"], decision),
    });
    let required = ["id", "at", "state", "module", "risk", "confidence", "explain", "rule"];
    let asked = json!({
        "verdict": verdict(), "reason": text(),
        "data": { "type": "object", "description": "The corrected data; only with `correct`" },
    });
    let page = json!({ "reviews": list(named("RunReview")), "open": count(), "next": or_null("string") });
    let bin = json!({
        "from": number(), "to": number(), "count": count(), "right": count(), "mean_confidence": or_null("number"),
    });
    let report = json!({
        "decisions": count(), "bins": list(object("", &["from", "to", "count", "right"], bin)),
        "raw_error": or_null("number"), "calibrated_error": or_null("number"), "curve": list(list(number())),
    });
    let with = |mut members: Value, more: Value| {
        if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
            members.extend(more);
        }
        members
    };
    let of_model = with(report.clone(), json!({ "module": text(), "model": text() }));
    let of_model = object("", &["module", "model", "decisions", "bins", "curve"], of_model);
    let report = with(report, json!({ "models": list(of_model) }));
    vec![
        ("RunReview", object("A run that waits for review, or was reviewed", &required, review)),
        ("ReviewPage", object("", &["reviews", "open", "next"], page)),
        ("DecisionRequest", object("The decision of a reviewer", &["verdict"], asked)),
        ("CalibrationReport", object("Accuracy of confidence", &["decisions", "bins", "curve"], report)),
    ]
}
