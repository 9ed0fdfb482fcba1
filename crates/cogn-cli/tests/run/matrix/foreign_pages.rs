//! A page of another origin that calls a server without keys: it runs modules and sees no past run. (S-19)

use cognitive_testkit::{FakeModel, TestServer};
use serde_json::json;

#[test]
fn a_page_of_another_origin_runs_modules_and_sees_no_past_run() {
    let answer = json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
        "data": { "rationale": "r" },
    });
    let service = FakeModel::with_answer(&answer);
    let url = service.url();
    let home = crate::home();
    home.user_config("audit: {payloads: true}\n");
    let schema = json!({ "input": { "type": "object" }, "data": { "type": "object" } });
    home.module("words", "name: words\nversion: 1.0.0\nresponsibility: Find words\n", "Find.", &schema);
    let environment = [("OPENAI_API_KEY", "sk-test-test-test"), ("OPENAI_BASE_URL", url.as_str())];
    let private = home.run(&["run", "words", "--set", "text=PRIVATE CONTRACT"], &environment, "");
    assert_eq!(private.envelope()["ok"], true, "{private:?}");
    let server = TestServer::start(&home, &["--cors", "https://app.example"], &environment);
    let foreign = [("origin", "https://app.example")];
    let (status, _) = server.ask("POST /api/run/words", &foreign, "{}");
    assert_eq!(status, 200, "it may run modules");
    let (_, listed) = server.ask("GET /v1/runs", &[], "");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["runs"][0]["run_id"].as_str().unwrap();
    for path in ["/v1/runs", "/v1/runs/stats", &format!("/v1/runs/{id}"), "/metrics", "/v1/reviews"] {
        let (status, body) = server.ask(&format!("GET {path}"), &foreign, "");
        assert_eq!(status, 403, "{path}: {body}");
        assert!(!body.contains("PRIVATE"), "{path}: {body}");
        let (status, _) = server.ask(&format!("GET {path}"), &[], "");
        assert_eq!(status, 200, "{path} for the user of this machine");
    }
}
