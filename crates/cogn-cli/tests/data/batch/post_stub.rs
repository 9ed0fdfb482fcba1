//! A stub service with the batch endpoints of OpenAI, Anthropic and Gemini. It holds every batch until the test
//! releases it. A request with `fails` is refused; one with `expires` expires in its first batch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use cognitive_testkit::{Act, FakeModel, FakeReply, FakeRequest, PATIENCE, Then, good_answer};
use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Post {
    /// Name and body of each request.
    requests: Vec<(String, Value)>,
    metadata: Value,
}

#[derive(Default)]
pub(crate) struct StubState {
    pub(crate) posts: Mutex<Vec<Post>>,
    files: Mutex<HashMap<String, String>>,
    /// The number of requests for the state of a batch.
    polls: (Mutex<usize>, Condvar),
    pub(crate) lets_go: AtomicBool,
    /// Accepts the next batch without a response.
    pub(crate) is_mute_once: AtomicBool,
}

impl StubState {
    /// Returns the number of requests so far.
    pub(crate) fn polls(&self) -> usize {
        *self.polls.0.lock().unwrap()
    }

    /// Waits until a client has asked so often in all.
    pub(crate) fn until_polled(&self, times: usize) {
        let polls = self.polls.0.lock().unwrap();
        let waited = self.polls.1.wait_timeout_while(polls, PATIENCE, |polls| *polls < times).unwrap();
        assert!(*waited.0 >= times, "{} of {times} polls", waited.0);
    }
}

/// The service, and where it is.
pub(crate) fn serve() -> (Arc<StubState>, String) {
    let state = Arc::new(StubState::default());
    let served = Arc::clone(&state);
    let model = FakeModel::start(move |_, request| FakeReply::Raw(answer(request, &served)));
    (state, model.url().trim_end_matches("/v1").to_owned())
}

fn answer(request: &FakeRequest, state: &StubState) -> Act {
    let (head, body) = request.text.split_once("\r\n\r\n").unwrap();
    let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let method = head.split(' ').next().unwrap();
    let path = request.path.split('?').next().unwrap();
    let (status, reply) = route(method, path, body, state, &format!("http://{host}"));
    match status {
        0 => Act::no_response(Then::Close),
        status => Act::reply(status, "content-type: application/json\r\n", reply),
    }
}

fn route(method: &str, path: &str, body: &str, state: &StubState, base: &str) -> (u16, String) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match (method, parts.as_slice()) {
        ("POST", ["v1", "files"]) => {
            let mut files = state.files.lock().unwrap();
            let id = format!("file-{}", files.len());
            let lines: Vec<&str> = body.lines().filter(|line| line.starts_with('{')).collect();
            files.insert(id.clone(), lines.join("\n"));
            (200, json!({ "id": id, "object": "file" }).to_string())
        }
        ("POST", ["v1", "batches"]) => {
            let made: Value = serde_json::from_str(body).unwrap();
            let file = state.files.lock().unwrap()[made["input_file_id"].as_str().unwrap()].clone();
            let line = |line: &str| -> (String, Value) {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!((&line["method"], &line["url"]), (&json!("POST"), &made["endpoint"]));
                (line["custom_id"].as_str().unwrap().to_owned(), line["body"].clone())
            };
            posted(state, file.lines().map(line).collect(), made["metadata"].clone(), |at| openai(state, at))
        }
        ("GET", ["v1", "batches"]) => list(state, |at| openai(state, at), "data"),
        ("GET", ["v1", "batches", id]) => polled(state, id, |at| openai(state, at)),
        ("GET", ["v1", "files", file, "content"]) => (200, openai_answers(state, file)),
        ("POST", ["v1", "messages", "batches"]) => {
            let made: Value = serde_json::from_str(body).unwrap();
            let each = |one: &Value| (one["custom_id"].as_str().unwrap().to_owned(), one["params"].clone());
            let requests = made["requests"].as_array().unwrap().iter().map(each).collect();
            posted(state, requests, Value::Null, |at| anthropic(state, at, base))
        }
        ("GET", ["v1", "messages", "batches"]) => list(state, |at| anthropic(state, at, base), "data"),
        ("GET", ["v1", "messages", "batches", id]) => polled(state, id, |at| anthropic(state, at, base)),
        ("GET", ["v1", "messages", "batches", id, "results"]) => (200, anthropic_answers(state, number(id))),
        ("POST", ["v1beta", "models", model]) if model.ends_with(":batchGenerateContent") => {
            let made: Value = serde_json::from_str(body).unwrap();
            let each =
                |one: &Value| (one["metadata"]["key"].as_str().unwrap().to_owned(), one["request"].clone());
            let requests = made["batch"]["input_config"]["requests"]["requests"].as_array().unwrap();
            let name = made["batch"]["display_name"].clone();
            posted(state, requests.iter().map(each).collect(), name, |at| gemini(state, at))
        }
        ("GET", ["v1beta", "batches"]) => list(state, |at| gemini(state, at), "operations"),
        ("GET", ["v1beta", "batches", id]) => polled(state, id, |at| gemini(state, at)),
        other => (404, json!({ "error": { "message": format!("{other:?}") } }).to_string()),
    }
}

fn posted(
    state: &StubState,
    requests: Vec<(String, Value)>,
    metadata: Value,
    shown: impl Fn(usize) -> Value,
) -> (u16, String) {
    for (_, body) in &requests {
        assert!(body.get("stream").is_none(), "{body}");
    }
    let at = {
        let mut posts = state.posts.lock().unwrap();
        posts.push(Post { requests, metadata });
        posts.len() - 1
    };
    if state.is_mute_once.swap(false, Ordering::SeqCst) {
        return (0, String::new());
    }
    (200, shown(at).to_string())
}

fn polled(state: &StubState, id: &str, shown: impl Fn(usize) -> Value) -> (u16, String) {
    let known = state.posts.lock().unwrap().len();
    if number(id) >= known {
        return (404, json!({ "error": { "message": "no such batch" } }).to_string());
    }
    let reply = shown(number(id)).to_string();
    *state.polls.0.lock().unwrap() += 1;
    state.polls.1.notify_all();
    (200, reply)
}

fn list(state: &StubState, shown: impl Fn(usize) -> Value, member: &str) -> (u16, String) {
    let known = state.posts.lock().unwrap().len();
    (200, json!({ member: (0..known).map(shown).collect::<Vec<_>>() }).to_string())
}

fn number(id: &str) -> usize {
    id.rsplit(['-', '_', '/']).next().unwrap().parse().unwrap_or(usize::MAX)
}

fn is_over(state: &StubState) -> bool {
    state.lets_go.load(Ordering::SeqCst)
}

fn openai(state: &StubState, at: usize) -> Value {
    let posts = state.posts.lock().unwrap();
    let file = |name: &str| if is_over(state) { json!(format!("{name}-{at}")) } else { Value::Null };
    json!({
        "id": format!("batch_{at}"),
        "object": "batch",
        "status": if is_over(state) { "completed" } else { "in_progress" },
        "output_file_id": file("output"),
        "error_file_id": file("errors"),
        "request_counts": { "total": posts[at].requests.len(), "completed": 0, "failed": 0 },
        "metadata": posts[at].metadata,
    })
}

fn openai_answers(state: &StubState, file: &str) -> String {
    let posts = state.posts.lock().unwrap();
    let is_errors = file.starts_with("errors");
    let mut lines = String::new();
    for (id, body) in &posts[number(file)].requests {
        let (is_error, response, error) = match fate(id, body) {
            Fate::Fails => {
                let error = json!({ "error": { "message": "not that", "type": "invalid_request_error" } });
                (true, json!({ "status_code": 400, "body": error }), Value::Null)
            }
            Fate::Expires => (true, Value::Null, json!({ "code": "batch_expired", "message": "too late" })),
            Fate::Answers => {
                let body = if body.get("input").is_some() { response_body() } else { completion_body() };
                (false, json!({ "status_code": 200, "body": body }), Value::Null)
            }
        };
        if is_error == is_errors {
            lines += &json!({ "custom_id": id, "response": response, "error": error }).to_string();
            lines.push('\n');
        }
    }
    lines
}

fn completion_body() -> Value {
    let choice = json!({ "index": 0, "message": { "content": said() }, "finish_reason": "stop" });
    let usage = json!({ "prompt_tokens": 100, "completion_tokens": 20 });
    json!({ "model": "gpt-4.1-mini", "choices": [choice], "usage": usage })
}

fn response_body() -> Value {
    let part = json!({ "type": "output_text", "text": said() });
    let message = json!({ "type": "message", "role": "assistant", "content": [part] });
    json!({ "object": "response", "model": "gpt-5.6-luna", "status": "completed", "output": [message],
            "usage": { "input_tokens": 100, "output_tokens": 20 } })
}

fn anthropic(state: &StubState, at: usize, base: &str) -> Value {
    let posts = state.posts.lock().unwrap();
    let count = posts[at].requests.len();
    json!({
        "id": format!("msgbatch_{at}"),
        "type": "message_batch",
        "processing_status": if is_over(state) { "ended" } else { "in_progress" },
        "request_counts": { "processing": count, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0 },
        "created_at": "2999-01-01T00:00:00Z",
        "results_url": is_over(state).then(|| format!("{base}/v1/messages/batches/msgbatch_{at}/results")),
    })
}

fn anthropic_answers(state: &StubState, at: usize) -> String {
    let posts = state.posts.lock().unwrap();
    // The results are not in the order of the requests.
    let lines = posts[at].requests.iter().rev().map(|(id, body)| {
        let result = match fate(id, body) {
            Fate::Fails => {
                let error = json!({ "type": "invalid_request_error", "message": "not that" });
                json!({ "type": "errored", "error": { "type": "error", "error": error } })
            }
            Fate::Expires => json!({ "type": "expired" }),
            Fate::Answers => json!({ "type": "succeeded", "message": {
                "type": "message", "role": "assistant", "model": "claude-sonnet-5", "stop_reason": "end_turn",
                "content": [{ "type": "text", "text": said() }],
                "usage": { "input_tokens": 100, "output_tokens": 20 },
            } }),
        };
        format!("{}\n", json!({ "custom_id": id, "result": result }))
    });
    lines.collect()
}

fn gemini(state: &StubState, at: usize) -> Value {
    let posts = state.posts.lock().unwrap();
    let replies = posts[at].requests.iter().map(|(id, body)| match fate(id, body) {
        Fate::Fails => json!({ "error": { "code": 3, "message": "not that" } }),
        Fate::Expires => json!({ "error": { "code": 4, "message": "too late" } }),
        Fate::Answers => json!({ "response": {
            "candidates": [{ "content": { "parts": [{ "text": said() }] }, "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120 },
            "modelVersion": "gemini-2.5-flash",
        } }),
    });
    let replies: Vec<Value> = replies.collect();
    let state_word = if is_over(state) { "BATCH_STATE_SUCCEEDED" } else { "BATCH_STATE_RUNNING" };
    let mut post = json!({
        "name": format!("batches/{at}"),
        "metadata": { "displayName": posts[at].metadata, "state": state_word },
    });
    if is_over(state) {
        post["done"] = json!(true);
        post["response"] = json!({ "inlinedResponses": { "inlinedResponses": replies } });
    }
    post
}

enum Fate {
    Answers,
    Fails,
    Expires,
}

fn fate(id: &str, body: &Value) -> Fate {
    let text = body.to_string();
    if text.contains("fails") {
        Fate::Fails
    } else if text.contains("expires") && id.ends_with("-0") {
        Fate::Expires
    } else {
        Fate::Answers
    }
}

fn said() -> String {
    let data = json!({ "rationale": "One topic.", "sentiment": "positive", "label": "x" });
    good_answer(&data).to_string()
}
