//! The provider with a toy model: order, cancellation, panics and reports.

use std::sync::mpsc as threads;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use cognitive_contract::ports::{Attempt, DecodeMode, Finish};
use cognitive_schema::ProviderSchema;
use serde_json::{Value, json};

use super::*;
use crate::toy::Toy;

#[derive(Debug, Default)]
struct Heard {
    text: String,
    pieces: usize,
    attempts: Vec<Attempt>,
}

impl CallSink for Heard {
    fn piece(&mut self, text: &str) {
        self.text.push_str(text);
        self.pieces += 1;
    }

    fn attempt(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
    }
}

fn embedded(toy: &Arc<Toy>) -> EmbeddedProvider {
    let toy = Arc::clone(toy);
    EmbeddedProvider::new("toy", move || Ok(Arc::clone(&toy) as Arc<dyn LanguageModel>))
}

fn call(input: &str) -> ModelCall {
    let mut call = ModelCall::new("Say what mood the text is in. ".repeat(20), input.to_owned(), 0.7);
    let schema = json!({
        "type": "object", "required": ["mood", "text", "list"], "additionalProperties": false, "properties": {
            "mood": { "enum": ["good", "bad"] }, "text": { "type": "string", "maxLength": 60 },
            "list": { "type": "array", "maxItems": 3, "items": { "type": "integer", "minimum": 0, "maximum": 99 } },
        },
    });
    call.schema = Some(Arc::new(ProviderSchema::new(SchemaTarget::Grammar, schema, Vec::new())));
    call
}

async fn ask(embedded: &EmbeddedProvider, call: &ModelCall) -> (Result<ModelEnd, ProviderError>, Heard) {
    let mut heard = Heard::default();
    let end = embedded.ask(call, &mut heard).await;
    (end, heard)
}

/// A gate before computations: reports each one, and lets it continue on request.
struct Gate {
    reached: threads::Receiver<usize>,
    open: threads::Sender<()>,
}

fn gated(mut toy: Toy) -> (Arc<Toy>, Gate) {
    let (tell, reached) = threads::channel();
    let (open, wait) = threads::channel();
    let (tell, wait) = (Mutex::new(tell), Mutex::new(wait));
    toy.gate = Some(Box::new(move |count| {
        // If the receiver is gone, the computation continues.
        let _ = tell.lock().unwrap_or_else(PoisonError::into_inner).send(count);
        let _ = wait.lock().unwrap_or_else(PoisonError::into_inner).recv();
    }));
    (Arc::new(toy), Gate { reached, open })
}

#[tokio::test]
async fn an_answer_comes_in_pieces_with_its_usage_and_one_attempt() {
    let embedded = embedded(&Arc::new(Toy::wordy())).with_name("tiny");
    assert_eq!((embedded.name(), embedded.target()), ("embedded", Some(SchemaTarget::Grammar)));
    let (end, heard) = ask(&embedded, &call("fine")).await;
    let end = end.unwrap();
    assert_eq!((end.model.as_str(), end.decode, end.finish), ("tiny", DecodeMode::Grammar, Finish::Complete));
    let value: Value = serde_json::from_str(&heard.text).unwrap();
    assert!(value["mood"].is_string() && heard.pieces > 3, "{value}");
    let usage = end.usage.unwrap();
    assert!(usage.input_tokens > 50 && usage.output_tokens > 10, "{usage:?}");
    assert_eq!(heard.attempts.len(), 1);
    assert_eq!((heard.attempts[0].decode, heard.attempts[0].outcome.as_str()), (DecodeMode::Grammar, "ok"));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_text_also_without_one_and_also_in_a_used_session() {
    let toy = Arc::new(Toy::wordy());
    let (used, fresh) = (embedded(&toy), embedded(&Arc::new(Toy::wordy())));
    let (_, first) = ask(&used, &call("one")).await;
    let before = toy.computed.load(Ordering::SeqCst);
    let (_, other) = ask(&used, &call("two")).await;
    let prompt = toy.computed.load(Ordering::SeqCst) - before;
    assert!(prompt * 2 < before, "the instructions are read once: {prompt} after {before}");
    let (_, again) = ask(&used, &call("one")).await;
    assert_eq!(first.text, again.text);
    assert_ne!(first.text, other.text);
    assert_eq!(ask(&fresh, &call("two")).await.1.text, other.text);
    let mut seeded = call("one");
    seeded.seed = Some(1);
    assert_ne!(ask(&used, &seeded).await.1.text, first.text);
}

#[tokio::test]
async fn eight_requests_at_once_all_finish() {
    for embedded in [embedded(&Arc::new(Toy::wordy())), embedded(&Arc::new(Toy::wordy())).for_server()] {
        let embedded = Arc::new(embedded);
        let tasks: Vec<_> = (0..8)
            .map(|number| {
                let embedded = Arc::clone(&embedded);
                tokio::spawn(async move { ask(&embedded, &call(&number.to_string())).await })
            })
            .collect();
        for task in tasks {
            let (end, heard) = task.await.unwrap();
            assert!(end.is_ok() && serde_json::from_str::<Value>(&heard.text).is_ok());
        }
    }
}

/// Asks in a separate task.
fn spawned(
    embedded: &Arc<EmbeddedProvider>,
    call: ModelCall,
) -> tokio::task::JoinHandle<(Result<ModelEnd, ProviderError>, Heard)> {
    let embedded = Arc::clone(embedded);
    tokio::spawn(async move { ask(&embedded, &call).await })
}

#[tokio::test]
async fn sixteen_requests_are_worked_on_at_the_same_time_and_each_gets_the_answer_that_it_gets_alone() {
    // The first computation reads the common prefix; the next sixteen wait until all of them have started.
    let (here, all_here) = (Mutex::new(0), Condvar::new());
    let gate = move |count: usize| {
        if (1..=16).contains(&count) {
            let mut here = here.lock().unwrap();
            *here += 1;
            all_here.notify_all();
            let minute = Duration::from_mins(1);
            let waited = all_here.wait_timeout_while(here, minute, |here| *here < 16).unwrap();
            assert!(!waited.1.timed_out(), "they are not worked on at the same time");
        }
    };
    let toy = Arc::new(Toy { gate: Some(Box::new(gate)), ..Toy::wordy() });
    let together = Arc::new(embedded(&toy).with_places(16, 0));
    let tasks: Vec<_> = (0..16).map(|number| spawned(&together, call(&number.to_string()))).collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let (end, heard) = task.await.unwrap();
        let (alone, expected) = ask(&embedded(&Arc::new(Toy::wordy())), &call(&number.to_string())).await;
        assert_eq!((end.unwrap(), heard.text), (alone.unwrap(), expected.text), "{number}");
    }
}

#[tokio::test]
async fn dropping_the_future_stops_the_model_within_one_token() {
    let (toy, gate) = gated(Toy::wordy());
    let embedded = Arc::new(embedded(&toy).with_places(1, 9));
    let task = spawned(&embedded, call("never mind"));
    tokio::task::yield_now().await;
    for expected in 0..5 {
        assert_eq!(gate.reached.recv().unwrap(), expected);
        if expected < 4 {
            gate.open.send(()).unwrap();
        }
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    gate.open.send(()).unwrap();
    drop(gate.open);
    // The next request is served, and starts with the very next computation.
    let (end, _) = ask(&embedded, &call("next")).await;
    assert!(end.is_ok());
    assert_eq!(gate.reached.recv().unwrap(), 5);
    assert_eq!(toy.feeds.load(Ordering::SeqCst), gate.reached.try_iter().last().unwrap() + 1);
}

// PIPE-010: the wait is a hint.
#[tokio::test]
async fn pipe_010_who_finds_every_place_taken_is_told_when_to_come_back() {
    let (toy, gate) = gated(Toy::wordy());
    let embedded = Arc::new(embedded(&toy).with_places(1, 1));
    let first = spawned(&embedded, call("one"));
    tokio::task::yield_now().await;
    gate.reached.recv().unwrap();
    let second = spawned(&embedded, call("two"));
    tokio::task::yield_now().await;
    let told = Some(Duration::from_secs(1));
    assert_eq!(
        ask(&embedded, &call("three")).await.0,
        Err(ProviderError::RateLimited { retry_after: told }),
        "one is worked on and one waits"
    );
    // A cancelled request frees its place at once, both waiting and running ones.
    for gone in [second, first] {
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
    }
    let others = [spawned(&embedded, call("three")), spawned(&embedded, call("four"))];
    tokio::task::yield_now().await;
    drop(gate.open);
    for other in others {
        assert!(other.await.unwrap().0.is_ok());
    }
}

#[tokio::test]
async fn texts_that_do_not_fit_into_the_memory_wait_for_each_other() {
    let (toy, gate) = gated(Toy::wordy());
    // The toy needs one byte per token: there is room for one text, but not for two.
    let embedded = Arc::new(embedded(&toy).with_places(2, 0).with_text_memory(1_200));
    let first = spawned(&embedded, call("one"));
    tokio::task::yield_now().await;
    gate.reached.recv().unwrap();
    let mut other = call("two");
    other.instructions = "Another module, with another beginning.".to_owned().into();
    let second = spawned(&embedded, other);
    while embedded.worker.tools().unwrap().waiting_for_room() == 0 {
        assert!(gate.reached.try_recv().is_err(), "both are read at the same time");
        tokio::task::yield_now().await;
    }
    drop(gate.open);
    assert!(first.await.unwrap().0.is_ok() && second.await.unwrap().0.is_ok());
}

#[tokio::test]
async fn who_waits_too_long_is_told_while_another_is_served() {
    let (toy, gate) = gated(Toy::wordy());
    let embedded = Arc::new(embedded(&toy).with_places(1, 9));
    let first = spawned(&embedded, call("slow"));
    tokio::task::yield_now().await;
    gate.reached.recv().unwrap();
    let mut hurried = call("hurried");
    hurried.timeout = Duration::ZERO;
    let second = spawned(&embedded, hurried);
    tokio::task::yield_now().await;
    gate.open.send(()).unwrap();
    let (end, heard) = second.await.unwrap();
    assert_eq!((end, heard.text.as_str()), (Err(ProviderError::Timeout), ""));
    assert!(!first.is_finished());
    drop(gate.open);
    assert!(first.await.unwrap().0.is_ok());
}

#[tokio::test]
async fn a_request_that_is_late_from_the_start_is_a_timeout() {
    let mut late = call("late");
    late.timeout = Duration::ZERO;
    assert_eq!(ask(&embedded(&Arc::new(Toy::default())), &late).await.0, Err(ProviderError::Timeout));
}

#[tokio::test]
async fn a_panic_ends_one_request_and_no_other() {
    let toy = Arc::new(Toy { poison: Some(b'$'), ..Toy::wordy() });
    let embedded = embedded(&toy);
    let (end, _) = ask(&embedded, &call("$")).await;
    assert!(matches!(end, Err(ProviderError::Unexpected(_))), "{end:?}");
    assert!(ask(&embedded, &call("fine")).await.0.is_ok());
}

#[tokio::test]
async fn a_schema_that_cannot_be_enforced_is_refused_by_its_keyword() {
    let embedded = embedded(&Arc::new(Toy::wordy()));
    let with = |member: Value| {
        let schema = json!({ "type": "object", "required": ["m"], "properties": { "m": member },
            "additionalProperties": false });
        let mut call = call("x");
        call.schema = Some(Arc::new(ProviderSchema::new(SchemaTarget::Grammar, schema, Vec::new())));
        call
    };
    for (member, keyword) in [
        (json!({ "type": "string", "maxLength": 9, "format": "color" }), "format"),
        (json!({ "type": "string", "pattern": "(?=a)b" }), "pattern"),
    ] {
        let (end, heard) = ask(&embedded, &with(member)).await;
        let Err(ProviderError::Unsupported(why)) = end else { panic!("{end:?}") };
        assert!(why.contains(&format!("`{keyword}` at `/properties/m`")), "{why}");
        assert_eq!((heard.attempts.len(), heard.text.as_str()), (1, ""));
    }
}

/// D-05: constraints that the lowering cannot express are refused. A missing keyword that never rejects a value is
/// allowed.
#[tokio::test]
async fn d_05_a_contract_with_a_gap_is_refused_before_anything_is_written() {
    let toy = Arc::new(Toy::wordy());
    let embedded = embedded(&toy);
    let data = |member: Value| json!({ "type": "object", "required": ["m"], "properties": { "m": member } });
    let mut call = call("x");
    let lowered = |member: Value| {
        crate::grammar::tests::module(&data(member)).unwrap().provider_schema(SchemaTarget::Grammar)
    };
    call.schema = Some(lowered(json!({ "type": "string", "pattern": "^(?!x)" })));
    let (end, heard) = ask(&embedded, &call).await;
    let expected = "the grammar cannot express `pattern` at `/properties/data/properties/m`";
    assert_eq!(end, Err(ProviderError::Unsupported(expected.to_owned())));
    assert_eq!((heard.text.as_str(), heard.attempts.len()), ("", 1));
    assert_eq!(toy.feeds.load(Ordering::SeqCst), 0);
    call.schema = Some(lowered(json!({ "type": "string", "format": "color" })));
    assert!(ask(&embedded, &call).await.0.is_ok());
}

#[tokio::test]
async fn without_a_schema_the_answer_is_some_object() {
    let mut free = call("x");
    free.schema = None;
    free.max_output_tokens = Some(3);
    let (end, heard) = ask(&embedded(&Arc::new(Toy::wordy())), &free).await;
    assert_eq!(end.unwrap().decode, DecodeMode::JsonMode);
    assert!(serde_json::from_str::<Value>(&heard.text).unwrap().is_object(), "{}", heard.text);
    assert!(heard.attempts[0].outcome.contains("token limit"), "{:?}", heard.attempts);
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_refused_before_it_is_read() {
    let toy = Arc::new(Toy { context: 300, ..Toy::wordy() });
    let (end, _) = ask(&embedded(&toy), &call(&"long ".repeat(100))).await;
    assert!(matches!(end, Err(ProviderError::ContextOverflow(_))), "{end:?}");
    assert_eq!(toy.feeds.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn missing_or_broken_weights_are_said_with_the_remedy() {
    let missing = EmbeddedProvider::open(Path::new("no/such/model.gguf")).unwrap_err();
    assert_eq!(missing.to_string(), "no weights; `cogn model pull [NAME]` fetches them: no/such/model.gguf");
    let damaged = EmbeddedProvider::from_static("m", b"not a model at all", "0");
    assert!(damaged.load().is_err());
    let (end, _) = ask(&damaged, &call("x")).await;
    assert!(matches!(end, Err(ProviderError::Unavailable(_))), "{end:?}");
}

/// The answer contains the decided values, for every order of the list, and the text about them names them.
#[tokio::test]
async fn what_is_written_about_a_decision_is_what_was_decided() {
    let decide = json!({ "about": "text", "by": [{ "ask": "What?", "say": "It is" }] });
    let schema = json!({ "anyOf": [
        { "type": "object", "required": ["ok", "data"], "additionalProperties": false, "properties": {
            "ok": { "const": true },
            "data": { "type": "object", "required": ["why", "mood", "label"], "additionalProperties": false, "properties": {
                "why": { "type": "string", "maxLength": 90, "x-say": "{mood}, and {label} ahead of {label.next}" },
                "mood": { "type": "string", "enum": ["good", "bad", "none"], "x-decide": decide },
                "label": { "type": "string", "maxLength": 9, "x-copy-from": "labels", "x-decide": decide },
            } },
        } },
        { "type": "object", "required": ["ok"], "additionalProperties": false, "properties": { "ok": { "const": false } } },
    ] });
    let toy = Arc::new(Toy::wordy());
    let embedded = embedded(&toy);
    let answer = async |labels: Value| {
        let mut call = call(&json!({ "text": "the abc", "labels": labels }).to_string());
        call.schema = Some(Arc::new(ProviderSchema::new(SchemaTarget::Grammar, schema.clone(), Vec::new())));
        let (end, heard) = ask(&embedded, &call).await;
        assert!(end.unwrap().usage.unwrap().input_tokens > 0);
        serde_json::from_str::<Value>(&heard.text).unwrap()
    };
    let first = answer(json!(["one", "two", "three"])).await;
    let data = &first["data"];
    let (mood, label) = (data["mood"].as_str().unwrap(), data["label"].as_str().unwrap());
    assert!(["one", "two", "three"].contains(&label), "{first}");
    assert!(data["why"].as_str().unwrap().starts_with(&format!("{mood}, and {label} ahead of ")), "{first}");
    assert_eq!(answer(json!(["three", "one", "two"])).await, first);
}
