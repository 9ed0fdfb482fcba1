//! Network faults: each ends in one envelope with the right code, in time, after the right number of requests. The
//! audit lists every attempt, including failed ones.

use std::thread;
use std::time::Instant;

use cognitive_testkit::{
    Act, FakeModel, PATIENCE, ProcessOutput, SELF_SIGNED, SilentAddress, Then, piece, stream_reply,
};
use serde_json::Value;

use crate::{good, home, summarizer};

/// A fault and its expected result.
struct Fault {
    name: &'static str,
    service: Service,
    script: Vec<Act>,
    /// True if the time limit ends it. The service is silent then, and nothing else can end it.
    is_late: bool,
    /// The code; `None` for a run that works in the end.
    code: Option<&'static str>,
    /// The number of requests to the service. A run that its time limit ends may not have come so far.
    requests: usize,
}

/// `--timeout` of a run that its time limit ends, in seconds.
const SHORT: u64 = 1;
/// `--timeout` of the others, and the limit of the configuration, which a short one has to beat: a day.
const LONG: u64 = 86_400;

/// The service that listens, if any.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Service {
    /// A service without TLS, called without TLS.
    Plain,
    /// A service without TLS, called with TLS.
    PlainForTls,
    /// A service with an untrusted certificate.
    SelfSigned,
    /// A service whose certificate is in the trusted file.
    Trusted,
    /// No listener.
    Nobody,
}

fn row(name: &'static str, script: Vec<Act>, code: &'static str, requests: usize) -> Fault {
    Fault { name, service: Service::Plain, script, is_late: false, code: Some(code), requests }
}

fn works(name: &'static str, script: Vec<Act>, requests: usize) -> Fault {
    Fault { code: None, ..row(name, script, "", requests) }
}

fn at(service: Service, fault: Fault) -> Fault {
    Fault { service, ..fault }
}

fn hurried(fault: Fault) -> Fault {
    Fault { is_late: true, ..fault }
}

fn table() -> Vec<Fault> {
    let fine = || Act::stream(stream_reply(&good()));
    let begun = || Act::stream(piece("{\"ok\": tr", None));
    let greeting = || Act::stream(piece("", None));
    let broken = || Act::error(500, "server_error", "The server had an error.");
    let limited = |header: &str| Act::reply(429, header, "{}");
    let full = "This model's maximum context length is 9 tokens, but you asked for 10.";
    let comment = format!(": {}\n\n", "x".repeat(60_000));
    vec![
        // Connection faults.
        at(Service::Nobody, row("connection refused", vec![], "E4001", 0)),
        row("reset before the head", vec![Act::no_response(Then::Reset)], "E4001", 3),
        row("closed before the head", vec![Act::no_response(Then::Close)], "E4001", 3),
        row("reset in the middle of the text", vec![begun().then(Then::Reset)], "E2010", 1),
        row("closed in the middle of the text", vec![begun().then(Then::Close)], "E2010", 1),
        row("closed before the first text", vec![greeting().then(Then::Close)], "E2010", 3),
        works("closed before the first text, then fine", vec![greeting().then(Then::Close), fine()], 2),
        row("a stream without its closing mark", vec![begun()], "E2010", 1),
        // Timeouts.
        hurried(row("no head", vec![Act::no_response(Then::Silence)], "E2002", 1)),
        hurried(row("a head and then silence", vec![Act::stream("").then(Then::Silence)], "E2002", 1)),
        hurried(row("half an answer and then silence", vec![begun().then(Then::Silence)], "E2002", 1)),
        works("an answer whose connection stays open", vec![fine().then(Then::Silence)], 1),
        // Status codes.
        row("429", vec![limited("")], "E4002", 3),
        row("429 that asks for no wait", vec![limited("retry-after: 0\r\n")], "E4002", 3),
        row("429 that asks for too long a wait", vec![limited("retry-after: 31\r\n")], "E4002", 1),
        works("429, then fine", vec![limited("retry-after: 0\r\n"), fine()], 2),
        works("500, then fine", vec![broken(), fine()], 2),
        row("500 for ever", vec![broken()], "E4001", 3),
        row("401", vec![Act::error(401, "invalid_api_key", "Incorrect API key provided.")], "E4001", 1),
        row("a prompt that does not fit", vec![Act::error(400, "context_length_exceeded", full)], "E4003", 1),
        row("400 that nobody can place", vec![Act::error(400, "odd", "No.")], "E4001", 1),
        // TLS faults.
        at(Service::PlainForTls, row("no TLS on the other side", vec![fine()], "E4001", 1)),
        at(Service::SelfSigned, row("a certificate of nobody", vec![fine()], "E4001", 1)),
        at(Service::Trusted, works("the same certificate, trusted", vec![fine()], 1)),
        // Body faults.
        row("a page", vec![Act::reply(200, "content-type: text/html\r\n", "<html></html>")], "E4001", 1),
        row("not JSON", vec![Act::stream("data: hello\n\n")], "E4001", 1),
        row("an endless body", vec![Act::stream(comment).then(Then::Repeat)], "E2010", 1),
        row("cut off by the limit of tokens", vec![Act::stream(piece("{", Some("length")))], "E2003", 1),
        row("stopped by a filter", vec![Act::stream(piece("", Some("content_filter")))], "E2004", 1),
        row("an empty answer", vec![Act::stream(piece("", Some("stop")))], "E1000", 1),
    ]
}

/// The result, as the caller, the service and the audit see it.
struct Outcome {
    output: ProcessOutput,
    /// Returns whether it ended long before any limit except the short one.
    is_in_time: bool,
    requests: usize,
    attempts: usize,
}

fn play(fault: &Fault) -> Outcome {
    let stub = match fault.service {
        Service::SelfSigned | Service::Trusted => {
            Some(FakeModel::script_tls(fault.script.clone(), SELF_SIGNED))
        }
        Service::Plain | Service::PlainForTls => Some(FakeModel::script(fault.script.clone())),
        Service::Nobody => None,
    };
    let silent = SilentAddress::take();
    let place = stub.as_ref().map_or_else(|| silent.address().to_string(), |stub| stub.address.clone());
    let scheme = if matches!(fault.service, Service::Plain | Service::Nobody) { "http" } else { "https" };
    let run =
        if fault.service == Service::Trusted { home().with("SSL_CERT_FILE", SELF_SIGNED) } else { home() };
    run.user_config(&format!("timeout_seconds: {LONG}\n"));
    let limit = if fault.is_late { SHORT } else { LONG }.to_string();
    let started = Instant::now();
    let output = summarizer(&run, &format!("{scheme}://{place}/v1"), &["--timeout", &limit]);
    let is_in_time = started.elapsed() < PATIENCE;
    let books = run.cogn(&["audit", "export"]).out;
    let end: Value = serde_json::from_str(books.lines().last().unwrap()).unwrap();
    let attempts = end["receipt"]["attempts"].as_array().unwrap().len();
    assert_eq!(books.lines().count(), attempts + 1, "each request has a record of its own: {books}");
    Outcome { output, is_in_time, requests: stub.map_or(0, |stub| stub.connections()), attempts }
}

fn judge(fault: &Fault, outcome: &Outcome) -> Vec<String> {
    let Outcome { output, is_in_time, requests, attempts } = outcome;
    let code = output.json["error"]["code"].as_str();
    let mut wrong = Vec::new();
    if (output.exit(), code, &output.json["ok"])
        != (i32::from(fault.code.is_some()), fault.code, &Value::Bool(fault.code.is_none()))
    {
        wrong.push(format!("{}: expected {:?}, found {}", fault.name, fault.code, output.all()));
    }
    let as_often = |count: usize, expected| count == expected || fault.is_late && count < expected;
    if !as_often(*requests, fault.requests) {
        wrong.push(format!("{}: {requests} requests instead of {}", fault.name, fault.requests));
    }
    let expected = if fault.service == Service::Nobody { 3 } else { fault.requests };
    if !as_often(*attempts, expected) {
        wrong.push(format!("{}: {attempts} attempts in the books instead of {expected}", fault.name));
    }
    if !is_in_time {
        wrong.push(format!("{}: took longer than {PATIENCE:?}", fault.name));
    }
    wrong
}

// PIPE-009, PIPE-010, S-02, S-04, S-09: every fault gives one envelope in time, without excess requests.
#[test]
fn pipe_009_010_every_fault_ends_in_its_envelope() {
    let faults = table();
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let runs: Vec<_> = faults.iter().map(|fault| scope.spawn(|| play(fault))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let wrong: Vec<String> =
        faults.iter().zip(&outcomes).flat_map(|(fault, outcome)| judge(fault, outcome)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// S-02: the wait that the service requests is reported to the caller.
#[test]
fn a_wait_that_is_too_long_is_told() {
    let stub = FakeModel::script(vec![Act::reply(429, "retry-after: 31\r\n", "{}")]);
    let output = summarizer(&home(), &stub.url(), &[]);
    assert_eq!(output.json["error"]["details"]["retry_after_seconds"], 31, "{}", output.all());
}
