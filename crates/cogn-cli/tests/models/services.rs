//! Behaviour of real services: the envelope reports which service failed, how and with which message; paid calls are
//! counted; permanent errors are not retried.

use std::path::{Path, PathBuf};

use cognitive_testkit::{Act, FakeModel, FakeReply, ProcessOutput, stream_reply};
use serde_json::{Value, json};

use crate::{KEY, good, home, summarizer};

/// Returns the folder of recorded answers.
pub(crate) fn wire() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cognitive-net/tests/wire")
}

/// A recorded answer.
pub(crate) fn recorded(path: &Path) -> Act {
    let text = std::fs::read_to_string(path).unwrap();
    let (head, body) = text.split_once("\n\n").unwrap();
    let (status, headers) = head.split_once('\n').unwrap_or((head, ""));
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let headers: String = headers.lines().flat_map(|line| [line, "\r\n"]).collect();
    Act::reply(status, &headers, body)
}

/// Runs a module with a service that always answers like this, and returns the number of requests.
fn run(provider: &str, act: Act, more: &[&str]) -> (ProcessOutput, usize) {
    let service = FakeModel::script(vec![act]);
    let named = ["--provider", provider, "--receipt"];
    let output = summarizer(&home(), &service.url(), &[&named, more].concat());
    let asked = service.raw_requests().len();
    (output, asked)
}

fn replayed(provider: &str, name: &str) -> (ProcessOutput, usize) {
    run(provider, recorded(&wire().join(format!("{name}.http"))), &[])
}

#[test]
fn a_stream_with_the_sum_beside_each_piece_is_one_answer() {
    let event = |frame: &Value| format!("data: {frame}\n\n");
    let text = good().to_string();
    let (mut sum, mut body) = (String::new(), String::new());
    for letter in text.chars() {
        sum.push(letter);
        let choice = json!({ "index": 0, "delta": { "content": letter }, "message": { "content": sum } });
        body += &event(&json!({ "choices": [choice] }));
    }
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "message": { "content": sum }, "finish_reason": "stop" }] });
    body += &event(&end);
    let (output, _) = run("openai", Act::stream(body), &[]);
    assert_eq!((output.exit(), &output.json["data"]), (0, &good()["data"]), "{}", output.all());
}

// D-16: `error.details` has everything for routing on failures, and the code is never that of an internal error.
#[test]
fn every_failure_of_a_provider_says_who_how_and_why() {
    let error = |status: u16, code: &str, message: &str| Act::error(status, code, message);
    let in_band = |value: Value| Act::json(200, &value);
    for (act, code, kind, status, recoverable, said) in [
        (error(401, "x", &format!("bad key {KEY}")), "E4001", "auth", 401, false, "bad key [redacted]"),
        (
            error(404, "x", "The model `m` does not exist"),
            "E4001",
            "model_not_found",
            404,
            false,
            "The model `m` does not exist",
        ),
        (error(429, "insufficient_quota", "Pay first"), "E4001", "quota", 429, false, "Pay first"),
        (error(400, "x", "Unknown thing"), "E4001", "bad_request", 400, false, "Unknown thing"),
        (error(422, "x", "Cannot process"), "E4001", "bad_request", 422, false, "Cannot process"),
        (
            error(400, "x", "prompt is too long: 5 > 4"),
            "E4003",
            "too_long",
            400,
            false,
            "prompt is too long: 5 > 4",
        ),
        (error(400, "content_filter", "Not that."), "E2004", "refused", 400, false, "Not that."),
        (
            in_band(json!({ "error": { "code": 402, "message": "No credits" } })),
            "E4001",
            "quota",
            402,
            false,
            "No credits",
        ),
    ] {
        let (output, asked) = run("openai", act, &[]);
        let error = &output.json["error"];
        assert_eq!((error["code"].as_str(), asked), (Some(code), 1), "{kind}: {}", output.all());
        assert_eq!(error["recoverable"], recoverable, "{kind}: {}", output.all());
        let details = &error["details"];
        assert_eq!(
            [&details["provider"], &details["kind"], &details["status"], &details["provider_message"]],
            [&json!("openai"), &json!(kind), &json!(status), &json!(said)],
            "{}",
            output.all()
        );
        assert!(!output.all().contains(KEY), "{}", output.all());
    }
}

// D-16: a transient error is marked as such, after its retries.
#[test]
fn failures_that_may_pass_are_recoverable() {
    for (act, code, kind, asked_for) in [
        (Act::error(503, "x", "Down"), "E4001", "outage", 3),
        (Act::reply(429, "retry-after: 60\r\n", "{}"), "E4002", "rate_limit", 1),
        (Act::stream("data: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n"), "E2010", "network", 1),
        (Act::reply(200, "content-encoding: gzip\r\n", "x"), "E4001", "malformed", 1),
    ] {
        let (output, asked) = run("openai", act, &[]);
        let error = &output.json["error"];
        assert_eq!(
            (&error["code"], &error["details"]["kind"]),
            (&json!(code), &json!(kind)),
            "{}",
            output.all()
        );
        assert_eq!((error["recoverable"].as_bool(), asked), (Some(kind != "malformed"), asked_for), "{kind}");
        assert_eq!(error["details"]["provider"], "openai");
    }
}

#[test]
fn a_provider_that_is_not_set_up_says_which() {
    let run = home();
    let output = run.cogn(&["run", "summarizer", "--set", "text=a", "--provider", "groq"]);
    let error = &output.json["error"];
    assert_eq!((&error["code"], &error["recoverable"]), (&json!("E4001"), &json!(false)), "{}", output.all());
    assert_eq!(error["details"], json!({ "provider": "groq", "kind": "auth" }));
}

// D-16, D-07: a receipt and the token counts, even if the answer was unusable.
#[test]
fn a_failed_run_has_a_receipt_and_its_tokens() {
    for (provider, name, code, kind, tokens) in [
        ("deepseek", "services/deepseek-400-model", "E4001", "model_not_found", None),
        ("openrouter", "services/openrouter-token-limit", "E2003", "too_long", Some(53)),
        ("gemini", "services/gemini-model-armor", "E2004", "refused", Some(52)),
        ("gemini", "gemini/unexpected-call", "E4007", "", Some(228)),
        ("gemini", "gemini/malformed-call", "E2010", "malformed", Some(228)),
        ("gemini", "gemini/truncated", "E2010", "network", Some(228)),
        // The count at the start of an answer says nothing about its output.
        ("anthropic", "anthropic/truncated", "E2010", "network", Some(211)),
        ("openai", "openai/tools", "E4007", "", Some(228)),
    ] {
        let key = format!("{}_API_KEY", provider.to_uppercase());
        let service = FakeModel::script(vec![recorded(&wire().join(format!("{name}.http")))]);
        let run = home();
        let usual = ["run", "summarizer", "--set", "text=A long text.", "--model", "stub", "--receipt"];
        let place = ["--base-url", &service.url(), "--provider", provider];
        let output = run.run(&[&usual[..], &place[..]].concat(), &[(key.as_str(), KEY)], "");
        let error = &output.json["error"];
        assert_eq!(
            (error["code"].as_str(), service.raw_requests().len()),
            (Some(code), 1),
            "{name}: {}",
            output.all()
        );
        assert_eq!(error["details"]["kind"].as_str().unwrap_or_default(), kind, "{name}: {}", output.all());
        let meta = &output.json["meta"];
        assert_eq!(meta["usage"]["total_tokens"].as_u64(), tokens, "{name}: {}", output.all());
        let attempts = meta["provenance"]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 1, "{name}: {}", output.all());
        assert_eq!(meta["model"].is_string(), tokens.is_some(), "{name}: {}", output.all());
    }
}

#[test]
fn a_guard_speaks_for_itself() {
    let (output, asked) = replayed("gemini", "services/gemini-model-armor");
    let error = &output.json["error"];
    assert!(
        error["message"].as_str().unwrap().contains("violated Responsible AI Safety settings"),
        "{error}"
    );
    assert_eq!((asked, &error["details"]["provider_message"]), (1, &error["message"]));
}

// Unreadable bytes are always reported.
#[test]
fn bytes_that_are_no_text_are_told() {
    let text = good().to_string().replace("Short.", "Sh\u{ff}rt.");
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": "stop" });
    let body = format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [choice] }));
    // Each letter stands for one byte.
    let bytes: Vec<u8> = body.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    let (output, _) = run("openai", Act::stream(bytes), &[]);
    assert_eq!(output.json["data"]["summary"], "Sh\u{fffd}rt.", "{}", output.all());
    let warnings = output.json["meta"]["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "ENCODING"), "{warnings:?}");
    let (output, _) = run("openai", Act::stream(stream_reply(&good())), &[]);
    assert_eq!(output.json["meta"].get("warnings"), None, "{}", output.all());
}

/// A refusal of Groq: the model's JSON is not what was asked for.
fn withheld(reply: &str) -> Act {
    let message =
        "Failed to validate JSON. Please adjust your prompt. See 'failed_generation' for more details.";
    let error = json!({ "message": message, "type": "invalid_request_error", "code": "json_validate_failed",
                        "failed_generation": reply });
    Act::json(400, &json!({ "error": error }))
}

/// Runs the summarizer with Groq, which follows this script.
fn groq(script: Vec<Act>, more: &[&str]) -> (ProcessOutput, Vec<Value>) {
    let service = FakeModel::script(script);
    let place = ["--provider", "groq", "--receipt"];
    let output = summarizer(&home().with("GROQ_API_KEY", KEY), &service.url(), &[&place[..], more].concat());
    (output, service.requests().into_iter().map(|request| request.body).collect())
}

#[test]
fn a_reply_that_the_service_withholds_is_judged_as_the_models() {
    let mut wrong = good();
    wrong["data"]["summary"] = json!(7);
    for (reply, code) in [
        (good().to_string()[..40].to_owned(), "E1000"),
        (String::new(), "E1000"),
        (wrong.to_string(), "E3001"),
    ] {
        let (output, asked) = groq(vec![withheld(&reply)], &[]);
        assert_eq!((&output.json["error"]["code"], asked.len()), (&json!(code), 1), "{}", output.all());
        let attempts = &output.json["meta"]["provenance"]["attempts"];
        assert_eq!((attempts.as_array().unwrap().len(), &attempts[0]["status"]), (1, &json!(400)));

        let fine = Act::stream(stream_reply(&good()));
        let (output, asked) = groq(vec![withheld(&reply), fine], &["--reask", "1"]);
        assert_eq!(output.json["data"]["summary"], "Short.", "{}", output.all());
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[1]["response_format"]["type"], "json_schema", "nothing was conceded");
    }
}

#[test]
fn an_account_that_may_not_stream_a_model_gets_whole_answers() {
    let service = FakeModel::start(|number, request| {
        let message = "Your organization must be verified to stream this model. Please go to: \
                       https://platform.openai.com/settings/organization/general and click on Verify Organization.";
        let error = json!({ "message": message, "type": "invalid_request_error", "param": "stream",
                            "code": "unsupported_value" });
        if request.body["stream"] == json!(true) {
            return FakeReply::Raw(Act::json(400, &json!({ "error": error })));
        }
        // The first answer misses the contract, so that the model is asked again.
        FakeReply::Text(if number < 2 { json!({}) } else { good() }.to_string())
    });
    let output = summarizer(&home(), &service.url(), &["--reask", "1"]).expect_exit(0);
    assert_eq!(output.json["data"]["summary"], "Short.", "{}", output.all());
    let asked = service.requests();
    let streams: Vec<_> = asked.iter().map(|request| request.body["stream"].as_bool().unwrap()).collect();
    assert_eq!(streams, [true, false, false], "one retry, and remembered");
    for request in &asked[1..] {
        assert_eq!(request.body["response_format"]["type"], "json_schema", "only streaming was conceded");
        assert_eq!(request.body.get("stream_options"), None);
    }
}

#[test]
fn the_receipt_names_each_model_of_a_chain_and_a_warning_names_the_one_that_was_down() {
    let service = FakeModel::start(|_, request| {
        if request.path.ends_with("/messages") {
            return FakeReply::Status(401);
        }
        let is_first = request.body["model"] == "small";
        FakeReply::Text(if is_first { "Nothing to say.".to_owned() } else { good().to_string() })
    });
    let run = home().with("OPENAI_BASE_URL", &service.url()).with("GROQ_BASE_URL", &service.url());
    let run =
        run.with("GROQ_API_KEY", KEY).with("ANTHROPIC_BASE_URL", &format!("http://{}", service.address));
    run.write("chain.yaml", "providers: [openai/small, anthropic/claude-sonnet-5, groq/large]\n");
    let usual = ["run", "summarizer", "--set", "text=A long text.", "--config", "chain.yaml", "--receipt"];
    let output = run.cogn(&usual).expect_exit(0);
    let meta = &output.json["meta"];
    assert_eq!(meta["model"], "groq/stub-1", "{}", output.all());
    let left = meta["provenance"]["left"].as_array().unwrap();
    let left: Vec<(&str, &str)> = left
        .iter()
        .map(|rung| (rung["model"].as_str().unwrap(), rung["because"].as_str().unwrap()))
        .collect();
    assert_eq!(left, [("openai/stub-1", "E1000"), ("anthropic/claude-sonnet-5", "E4001")]);
    let warnings = meta["warnings"].as_array().unwrap();
    let told = "`anthropic/claude-sonnet-5` did not answer (E4001), so the next model was asked";
    assert!(warnings.iter().any(|warning| warning["message"] == told), "{warnings:?}");
}

// Vertex AI sends numbers to clients that ask for them.
#[test]
fn a_finish_reason_that_is_a_number_is_a_finish_reason() {
    let whole = good().to_string();
    for (reason, text, code) in [
        (1, whole.as_str(), None),
        (2, &whole[..40], Some("E2003")),
        (3, "", Some("E2004")),
        (5, whole.as_str(), Some("E2010")),
        (99, whole.as_str(), Some("E2010")),
    ] {
        let candidate =
            json!({ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": reason });
        let (output, _) = run("gemini", Act::json(200, &json!({ "candidates": [candidate] })), &[]);
        assert_eq!(output.json["error"]["code"].as_str(), code, "{reason}: {}", output.all());
    }
}
