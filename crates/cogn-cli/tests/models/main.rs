//! `cogn run` with a model: a scripted service in each wire format, real chat servers, a larger embedded model. The envelope, the
//! audit, no leaked key, and network faults. `weights` is about `cogn model`: names, downloads and checks of weights.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use cognitive_testkit::{Act, FakeModel, Home, ProcessOutput, good_answer, stream_reply};
use serde_json::{Value, json};

mod budget;
mod contract;
mod costs;
mod faults;
mod meaning;
mod media;
mod official;
mod previews;
mod prices;
#[cfg(feature = "local")]
mod qwen;
mod recorded;
mod schema;
mod secrets;
mod servers;
mod services;
mod tools;
#[cfg(unix)]
mod weights;

use official::Official;

const KEY: &str = "sk-test-very-secret";

/// A home whose programs have the key of each service.
fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_cogn"));
    home.with("OPENAI_API_KEY", KEY).with("ANTHROPIC_API_KEY", KEY).with("GEMINI_API_KEY", KEY)
}

/// The answer of every successful run.
fn good() -> Value {
    good_answer(&json!({ "rationale": "One topic.", "summary": "Short." }))
}

/// A service that always gives this answer, as a stream.
fn answering(answer: &Value) -> FakeModel {
    FakeModel::script(vec![Act::stream(stream_reply(answer))])
}

/// Runs a bundled module with the service at this address.
fn summarizer(home: &Home, url: &str, more: &[&str]) -> ProcessOutput {
    ask(home, "summarizer", url, &[&["--set", "text=A long text."], more].concat())
}

/// Runs a module with the service at this address.
fn ask(home: &Home, module: &str, url: &str, more: &[&str]) -> ProcessOutput {
    home.cogn(&[&["run", module, "--base-url", url, "--model", "stub"], more].concat())
}

#[test]
fn a_run_asks_the_service_keeps_the_books_and_shows_no_key() {
    let (run, service) = (home(), answering(&good()));
    let output = summarizer(&run, &service.url(), &["--receipt"]).expect_exit(0);
    assert_eq!(output.json["data"]["summary"], "Short.");
    assert_eq!(output.json["meta"]["model"], "openai/stub-1");
    assert_eq!(
        output.json["meta"]["usage"],
        json!({ "input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "cost": 0, "currency": "USD" })
    );
    let receipt = &output.json["meta"]["provenance"];
    assert_eq!(receipt["decode"], "native_schema");
    assert_eq!(receipt["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(receipt["sha256"]["reply"].as_str().unwrap().len(), 64);
    let asked = service.raw_requests();
    assert!(asked[0].contains(KEY), "the service gets the key");
    assert!(asked[0].contains("A long text.") && asked[0].contains("json_schema"));
    assert!(!output.all().contains(KEY));
    let trace = output.json["meta"]["trace_id"].as_str().unwrap().to_owned();
    let books = run.cogn(&["audit", "show", &trace]);
    assert!(books.all().contains("openai/stub-1") && !books.all().contains(KEY), "{}", books.all());
    assert!(!books.all().contains("A long text."), "payloads are kept only when asked for");
    assert!(!run.cogn(&["doctor"]).all().contains(KEY));
}

// S-03, D-06: only when asked for, and every call is counted.
#[test]
fn a_broken_answer_can_be_sent_back_once() {
    let broken = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" }, "data": { "rationale": "r" } });
    let service =
        FakeModel::script(vec![Act::stream(stream_reply(&broken)), Act::stream(stream_reply(&good()))]);
    let output = summarizer(&home(), &service.url(), &["--reask", "1", "--receipt"]).expect_exit(0);
    assert_eq!(output.json["meta"]["provenance"]["reasked"], 1);
    assert_eq!(output.json["meta"]["usage"]["total_tokens"], 36, "the tokens of both calls");
    assert!(service.raw_requests()[1].contains("/data/summary"), "the model is told what was wrong");
}

// D-07, ENV-009, GEN-002: the envelope of a live run has exactly the members of the official schema, in success and
// failure; the final chunk of a stream has its tokens next to `meta`.
#[test]
fn env_009_the_tokens_of_a_live_run_are_in_meta() {
    let mut boastful = good();
    boastful["usage"] = json!({ "input_tokens": 1 });
    boastful["meta"]["usage"] = json!("little");
    let broken = json!({ "ok": true, "meta": good()["meta"], "data": {} });
    let tokens =
        json!({ "input_tokens": 11, "output_tokens": 7, "total_tokens": 18, "cost": 0, "currency": "USD" });
    let official = Official::find();
    for (answer, members) in
        [(good(), "ok meta data"), (boastful, "ok meta data"), (broken, "ok meta error partial_data")]
    {
        let (run, script) = (home(), || vec![Act::stream(stream_reply(&answer))]);
        let output = summarizer(&run, &FakeModel::script(script()).url(), &[]);
        let found: Vec<&str> = output.json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found.join(" "), members, "{}", output.all());
        assert_eq!(output.json["meta"]["usage"], tokens, "{}", output.all());
        let faults = official.as_ref().map(|official| official.faults(&output.json));
        assert_eq!(faults.unwrap_or_default(), Vec::<String>::new(), "{}", output.all());

        let streamed = summarizer(&run, &FakeModel::script(script()).url(), &["--stream"]);
        let last = &streamed.json;
        let (beside, inside) = (last.get("usage"), last["meta"].get("usage"));
        let wanted = if output.exit() == 0 { (Some(&tokens), None) } else { (None, Some(&tokens)) };
        assert_eq!((beside, inside), wanted, "{last}");
    }
}

// ERR-015, PIPE-010: a refused key is E4001, and the message does not contain the key.
#[test]
fn err_015_a_refused_key_is_not_repeated() {
    let complaint = Act::error(401, "invalid_api_key", &format!("Incorrect API key provided: {KEY}"));
    let output = summarizer(&home(), &FakeModel::script(vec![complaint]).url(), &[]);
    assert_eq!((output.exit(), output.json["error"]["code"].as_str()), (1, Some("E4001")));
    assert!(!output.all().contains(KEY), "{}", output.all());
}
