//! Sync responses: always an envelope, with the right status and the headers that middleware routes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cognitive_contract::ports::{AuditLog, AuditRecord, DropCounts, Provider};
use cognitive_runtime::Host;
use serde_json::{Value, json};

use crate::support::{ANSWER, Script, Server, ask, client, json_of, module_cache, roomy};

// API-003: the run path and its aliases answer alike.
#[tokio::test]
async fn api_003_every_path_to_a_run_gives_the_same_envelope() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let input = json!({ "text": "winter snow" });
    let requests = [
        ("/api/run/words", input.clone()),
        ("/v1/modules/words/execute", json!({ "input": input, "_options": {} })),
        ("/run", json!({ "module": "words", "input": input })),
    ];
    for (path, body) in requests {
        let request = client().post(server.url(path)).header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let headers = response.headers().clone();
        let envelope = json_of(response).await;
        assert_eq!(envelope["data"]["words"][1]["text"], "snow", "{path}");
        assert_eq!(headers["cogn-ok"], "true");
        assert_eq!(headers["cogn-confidence"], "0.9");
        assert_eq!(headers["cogn-risk"], "low");
        assert_eq!(headers["cogn-tier"], "decision");
        assert_eq!(
            headers["cogn-trace-id"].to_str().unwrap(),
            envelope["meta"]["trace_id"].as_str().unwrap()
        );
        assert!(!headers.contains_key("access-control-allow-origin"), "API-009: CORS is off");
    }
}

#[tokio::test]
async fn api_004_whatever_is_wrong_with_a_request_the_answer_is_an_envelope() {
    let mut config = roomy();
    config.body_limit = 1_000;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let json_type = "application/json";
    let long = json!({ "text": "x".repeat(2_000) }).to_string();
    let table: [(&str, &str, &str, &str, u16, &str); 18] = [
        ("POST", "/api/run/words", json_type, "{nope", 400, "E1000"),
        ("POST", "/api/run/words", json_type, "", 400, "E1000"),
        ("POST", "/api/run/words", json_type, r#"{"text": 7}"#, 400, "E1001"),
        ("POST", "/api/run/words", json_type, r#"{"_options": 7}"#, 400, "E1001"),
        ("POST", "/api/run/words", json_type, &long, 413, "E1005"),
        ("POST", "/api/run/words", "text/plain", r#"{"text": "a"}"#, 415, "E1010"),
        ("POST", "/api/run/absent", json_type, "{}", 404, "E4006"),
        ("POST", "/api/run/..%2f..%2fetc", json_type, "{}", 404, "E4006"),
        ("POST", "/run", json_type, r#"{"text": "a"}"#, 400, "E1001"),
        ("POST", "/run", json_type, "[1]", 400, "E1001"),
        ("POST", "/run", json_type, r#"{"module": "words", "args": 7}"#, 400, "E1001"),
        ("POST", "/run", json_type, r#"{"module": "words", "args": "a", "input": {}}"#, 400, "E1001"),
        ("POST", "/run", json_type, r#"{"module": "absent", "args": "a"}"#, 404, "E4006"),
        ("GET", "/nothing/here", json_type, "", 404, "E1006"),
        ("DELETE", "/api/run/words", json_type, "", 405, "E1006"),
        ("GET", "/ws", json_type, "", 400, "E1001"),
        ("TRACE", "/ws", json_type, "", 405, "E1006"),
        ("POST", "/api/run/words?response_mode=sync&response_mode=sync", json_type, "{}", 400, "E1001"),
    ];
    for (method, path, kind, body, status, code) in table {
        let request =
            client().request(method.parse().unwrap(), server.url(path)).header("content-type", kind);
        let response = request.body(body.to_owned()).send().await.unwrap();
        let what = format!("{method} {path} {body:.30}");
        assert_eq!(response.status().as_u16(), status, "{what}");
        assert_eq!(response.headers()["cogn-error-code"], code, "{what}");
        let envelope = json_of(response).await;
        assert_eq!((&envelope["ok"], &envelope["error"]["code"]), (&json!(false), &json!(code)), "{what}");
        assert!(envelope["meta"]["explain"].is_string(), "{what}");
    }
}

#[tokio::test]
async fn api_003_what_can_be_read_about_the_server() {
    let script = Script::free(&ANSWER);
    let server = Server::start(&script, "both", roomy()).await;
    let get = async |path: &str| client().get(server.url(path)).send().await.unwrap();
    let health = json_of(get("/health").await).await;
    assert_eq!(health["status"], "ok");
    assert_eq!(json_of(get("/ready").await).await["status"], "ready");
    let modules = json_of(get("/api/modules").await).await;
    let modules = modules["modules"].as_array().unwrap();
    assert_eq!(modules.len() as u64, health["modules_count"].as_u64().unwrap());
    let words = modules.iter().find(|module| module["name"] == "words").unwrap();
    assert_eq!((&words["version"], &words["valid"]), (&json!("1.0.0"), &json!(true)));
    let info = json_of(get("/api/modules/words").await).await;
    assert_eq!(info["manifest"]["response"]["mode"], "both");
    assert!(!info.to_string().contains(server.folder.path().to_str().unwrap()), "no folder is shown");
    assert_eq!(get("/api/modules/absent").await.status(), 404);
    ask(&server, "application/json").send().await.unwrap();
    let metrics = get("/metrics").await.text().await.unwrap();
    assert!(
        metrics.contains("cogn_runs_total{module=\"words\",model=\"script/stub\",outcome=\"ok\"} 1"),
        "{metrics}"
    );
    assert!(
        metrics
            .contains("cogn_tokens_total{module=\"words\",model=\"script/stub\",kind=\"output_tokens\"} 5"),
        "{metrics}"
    );
    let docs = get("/docs").await;
    assert!(docs.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
}

// CAP-003: the server declares the same capabilities as the library.
#[tokio::test]
async fn cap_001_003_the_declaration_has_its_shape() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let told = json_of(client().get(server.url("/capabilities")).send().await.unwrap()).await;
    let own = json!(cognitive_runtime::declaration(&cognitive_contract::Capabilities::default()));
    assert_eq!(told, own);
    assert_eq!(told["capabilities"]["supported_transports"], json!(["sse", "websocket", "ndjson"]));
}

#[tokio::test]
async fn each_module_is_an_operation_with_its_own_schemas() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let document = json_of(client().get(server.url("/openapi.json")).send().await.unwrap()).await;
    assert_eq!(document["openapi"], "3.1.0");
    let operation = &document["paths"]["/api/run/words"]["post"];
    assert_eq!((&operation["operationId"], &operation["tags"]), (&json!("runWords"), &json!(["modules"])));
    let schemas = &document["components"]["schemas"];
    let json = |part: &Value| part["content"]["application/json"]["schema"]["$ref"].clone();
    assert_eq!(json(&operation["requestBody"]), "#/components/schemas/WordsInput");
    assert_eq!(schemas["WordsInput"]["required"], json!(["text"]));
    assert_eq!(json(&operation["responses"]["200"]), "#/components/schemas/WordsOk");
    assert_eq!(schemas["WordsOk"]["required"], json!(["ok", "meta", "data"]));
    assert_eq!(schemas["WordsOk"]["properties"]["data"]["$ref"], "#/components/schemas/WordsData");
    assert_eq!(schemas["WordsData"]["properties"]["words"]["items"]["required"], json!(["text"]));
    assert_eq!(json(&operation["responses"]["default"]), "#/components/schemas/Failure");
    assert_eq!(schemas["Meta"]["properties"]["risk"]["enum"], json!(["none", "low", "medium", "high"]));
    assert_eq!(
        operation["responses"]["200"]["content"].as_object().unwrap().len(),
        1,
        "one type for clients"
    );
    let general = &document["paths"]["/api/run/{module}"]["post"];
    let stream = &general["responses"]["200"]["content"]["text/event-stream"]["x-itemSchema"]["$ref"];
    assert_eq!(stream, "#/components/schemas/Chunk");
    assert_eq!(
        operation["responses"]["default"]["headers"]["Retry-After"]["$ref"],
        "#/components/headers/Retry-After"
    );
    assert!(general["parameters"].to_string().contains("Last-Event-ID"));
    assert_eq!(document["paths"]["/health"]["get"]["security"], json!([]), "no key is needed there");
    every_reference_leads_somewhere(&document, &document);
    every_operation_has_a_name_and_typed_answers(&document);
    no_schema_is_a_boolean(schemas);
}

fn every_operation_has_a_name_and_typed_answers(document: &Value) {
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut ids = std::collections::HashSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id), "{id} twice");
            assert!(tags.contains(&&operation["tags"][0]), "{path}");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let typed = |content: &Value| content["schema"].is_object();
                let content = answer["content"].as_object();
                let is_typed =
                    content.is_some_and(|content| !content.is_empty() && content.values().all(typed));
                assert!(is_typed || status == "101", "{path} {status}");
            }
        }
    }
}

/// Client generators reject `true` and `false` where a schema is expected.
fn no_schema_is_a_boolean(part: &Value) {
    if let Some(properties) = part.get("properties").and_then(Value::as_object) {
        assert!(properties.values().all(Value::is_object), "{part}");
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        assert!(part[keyword].as_array().is_none_or(|all| all.iter().all(Value::is_object)), "{part}");
    }
    assert!(part.get("items").is_none_or(Value::is_object), "{part}");
    match part {
        Value::Object(members) => members.values().for_each(no_schema_is_a_boolean),
        Value::Array(items) => items.iter().for_each(no_schema_is_a_boolean),
        _ => {}
    }
}

fn every_reference_leads_somewhere(document: &Value, part: &Value) {
    match part {
        Value::Object(members) => {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                let pointer =
                    target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leaves the document"));
                assert!(document.pointer(pointer).is_some(), "{target}");
            }
            members.values().for_each(|each| every_reference_leads_somewhere(document, each));
        }
        Value::Array(items) => items.iter().for_each(|each| every_reference_leads_somewhere(document, each)),
        _ => {}
    }
}

// S-41: files are checked for changes on every run.
#[tokio::test]
async fn a_changed_module_is_used_at_once() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    assert_eq!(ask(&server, "application/json").send().await.unwrap().status(), 200);
    let schema = server.folder.path().join("cognitive/modules/words/schema.json");
    let stricter = std::fs::read_to_string(&schema).unwrap().replace(
        r#""required": ["text"], "properties": {"text": {"type": "string"}}},"#,
        r#""required": ["text", "more"]},"#,
    );
    std::fs::write(&schema, stricter).unwrap();
    let response = ask(&server, "application/json").send().await.unwrap();
    assert_eq!(response.headers()["cogn-error-code"], "E1001");
}

// S-05: one trace from the caller through the envelope and back.
#[tokio::test]
async fn s_05_a_trace_goes_through() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request =
        ask(&server, "application/json").header("traceparent", format!("00-{id}-00f067aa0ba902b7-01"));
    let response = request.send().await.unwrap();
    let parent = response.headers()["traceparent"].to_str().unwrap().to_owned();
    assert!(parent.starts_with(&format!("00-{id}-")), "{parent}");
    assert_eq!(json_of(response).await["meta"]["trace_id"], id);
}

async fn post(server: &Server, path: &str, body: impl Into<reqwest::Body>) -> reqwest::Response {
    let request = client().post(server.url(path)).header("content-type", "application/json");
    request.body(body).send().await.unwrap()
}

// D-14, C-32, STREAM-021: a stream has to be requested. A v2.2 module in tier exploration, which streams by default,
// answers a plain request with one envelope and no warning about streaming.
#[tokio::test]
async fn a_plain_request_gets_one_envelope_whatever_the_module_offers() {
    let server = Server::start(&Script::free(&ANSWER), "streaming", roomy()).await;
    let manifest = server.folder.path().join("cognitive/modules/words/module.yaml");
    let streaming = std::fs::read_to_string(&manifest).unwrap();
    let v22 =
        "name: words\nversion: 1.0.0\nresponsibility: Find words\nexcludes: [prose]\ntier: exploration\n";
    let input = json!({ "text": "winter snow" }).to_string();
    let named = json!({ "module": "words", "input": { "text": "winter snow" } }).to_string();
    for text in [streaming.as_str(), v22] {
        std::fs::write(&manifest, text).unwrap();
        for (path, body) in
            [("/api/run/words", &input), ("/v1/modules/words/execute", &input), ("/run", &named)]
        {
            for accept in [
                None,
                Some("*/*"),
                Some("application/*"),
                Some("text/html, */*;q=0.8"),
                Some("text/event-stream;q=0.1, */*"),
            ] {
                let mut request = client()
                    .post(server.url(path))
                    .header("content-type", "application/json")
                    .body(body.clone());
                if let Some(accept) = accept {
                    request = request.header("accept", accept);
                }
                let response = request.send().await.unwrap();
                assert_eq!(response.headers()["content-type"], "application/json", "{path} {accept:?}");
                let envelope = json_of(response).await;
                assert_eq!(envelope["data"]["words"][1]["text"], "snow", "{path} {accept:?}");
                assert!(envelope["meta"].get("warnings").is_none(), "{envelope}");
            }
        }
        for accept in ["text/event-stream", "application/json;q=0.5, text/event-stream"] {
            let response = ask(&server, accept).send().await.unwrap();
            assert_eq!(response.headers()["content-type"], "text/event-stream", "{accept}");
        }
        let by_word =
            ask(&server, "*/*").header("x-cognitive-response-mode", "streaming").send().await.unwrap();
        assert_eq!(
            by_word.headers()["content-type"],
            "text/event-stream",
            "EXT-NEG: the header is asked first"
        );
    }
}

// C-56, PROMPT-006: free text is not validated by the input schema over HTTP, as on the command line.
#[tokio::test]
async fn args_of_a_request_are_not_judged_by_the_input_schema() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    let prompt = server.folder.path().join("cognitive/modules/words/prompt.md");
    std::fs::write(prompt, "Find the words in: $ARGUMENTS").unwrap();
    let response =
        post(&server, "/run", json!({ "module": "words", "args": "winter snow" }).to_string()).await;
    assert_eq!(response.status(), 200);
    assert_eq!(json_of(response).await["data"]["words"][0]["text"], "winter");
    let options = json!({ "response_mode": "streaming", "chunk_type": "snapshot" });
    let body = json!({ "module": "words", "args": "winter snow", "_options": options });
    let response = post(&server, "/run", body.to_string()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream", "options count as they do elsewhere");
}

// Invalid JSON gets the same message on every path.
#[tokio::test]
async fn broken_json_is_e1000_on_every_path() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    for broken in ["{nope", "", "{\"module\": \"words\", \"input\": {\"text\": \"a\"}", "\u{0}"] {
        let [by_path, by_body] =
            [post(&server, "/api/run/words", broken).await, post(&server, "/run", broken).await];
        for response in [&by_path, &by_body] {
            assert_eq!(
                (response.status().as_u16(), &response.headers()["cogn-error-code"]),
                (400, &"E1000".parse().unwrap()),
                "{broken}"
            );
        }
        let (mut by_path, mut by_body) = (json_of(by_path).await, json_of(by_body).await);
        assert_eq!(by_path["error"]["details"]["source"], "caller");
        for answer in [&mut by_path, &mut by_body] {
            answer["meta"]
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !matches!(name.as_str(), "trace_id" | "latency_ms"));
        }
        assert_eq!(
            (&by_path["error"], &by_path["meta"]["explain"]),
            (&by_body["error"], &by_body["meta"]["explain"]),
            "{broken}"
        );
    }
    for path in ["/api/run/words", "/run"] {
        let response = post(&server, path, vec![b'{', 0xff, b'}']).await;
        assert_eq!(response.headers()["cogn-error-code"], "E1000", "{path}");
        let explain = json_of(response).await["meta"]["explain"].to_string();
        assert!(explain.starts_with("\"Input validation failed"), "{explain}");
    }
    // The byte order mark that some editors write before JSON is accepted.
    let marked = "\u{feff}{\"module\": \"words\", \"input\": {\"text\": \"a\"}}";
    assert_eq!(post(&server, "/run", marked).await.status(), 200);
}

// D-21: nothing was wrong with the request.
#[tokio::test]
async fn d_21_an_answer_that_is_not_json_is_no_bad_request() {
    let server = Server::start(&Script::free(&["no JSON"]), "both", roomy()).await;
    let response = ask(&server, "application/json").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["cogn-error-code"]),
        (422, &"E1000".parse().unwrap())
    );
    assert_eq!(json_of(response).await["error"]["details"]["source"], "model");
}

/// An audit log that may be out of reach, and that has lost three records.
#[derive(Default)]
struct FarLog(AtomicBool);

impl AuditLog for FarLog {
    fn record(&self, _: &AuditRecord) -> Result<(), String> {
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Relaxed) { Err("gone".to_owned()) } else { Ok(()) }
    }

    fn drop_counts(&self) -> DropCounts {
        let mut counts = DropCounts::default();
        counts.lost = 3;
        counts
    }
}

// A balancer must not send runs to a server that has to refuse them all.
#[tokio::test]
async fn a_server_that_cannot_write_required_records_is_not_ready() {
    for is_required in [true, false] {
        let (folder, modules) = module_cache("both");
        let log = Arc::new(FarLog::default());
        let mut host = Host::new(Arc::new(modules), Script::free(&ANSWER) as Arc<dyn Provider>);
        host.audit = Some(Arc::clone(&log) as Arc<dyn AuditLog>);
        host.audit_required = is_required;
        let server = Server::with_host(folder, host, roomy()).await;
        let ready = || async {
            let response = client().get(server.url("/ready")).send().await.unwrap();
            (response.status().as_u16(), json_of(response).await["status"].clone())
        };
        assert_eq!(ready().await, (200, json!("ready")));
        log.0.store(true, Ordering::Relaxed);
        assert_eq!(ready().await, if is_required { (503, json!("no_audit")) } else { (200, json!("ready")) });
        let metrics = client().get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
        assert!(metrics.lines().any(|line| line == "cogn_audit_lost_total 3"), "{metrics}");
        log.0.store(false, Ordering::Relaxed);
        assert_eq!(ready().await, (200, json!("ready")));
    }
}
