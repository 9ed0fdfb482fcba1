//! Modules by name, and a model that recognises the calling module by its instructions.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use cognitive_contract::Failure;
use cognitive_contract::compose::Repeat;
use cognitive_contract::ports::{Event, EventSink, ModelCall, ModuleSource, NullSink, ProviderError, Usage};
use cognitive_contract::stream::Chunk;
use cognitive_contract::trace::PartEvent;
use cognitive_runtime::compose::{Overview, overview};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Delivery, Host, RunRequest, repeat, run, stream};
use cognitive_testkit::{
    FakeProvider, MemoryAuditLog, NamedModules, complete, good_answer, loaded_module, open_schema,
};
use serde_json::{Value, json};

use crate::timer::{TokioTimer, block_on};

/// The model's reply for a module.
#[derive(Clone)]
pub enum Reply {
    Say(Value),
    /// Answers with exactly this text.
    Raw(&'static str),
    /// Emits this context.
    Emit(Value),
    /// Fails with this code.
    Refuse(&'static str),
    /// Times out.
    Late,
    /// Waits until its gate is opened.
    Gate(Box<Reply>),
    /// One reply after the other; the last one repeats.
    Turns(Vec<Reply>),
}

pub fn says_with(confidence: f64, risk: &str, data: Value) -> Reply {
    Reply::Say(
        json!({ "ok": true, "meta": { "confidence": confidence, "risk": risk, "explain": "e" }, "data": data }),
    )
}

pub fn says(rationale: &str) -> Reply {
    says_with(0.9, "low", json!({ "rationale": rationale }))
}

#[derive(Default)]
struct Seen {
    calls: Vec<(String, ModelCall)>,
    dropped: Vec<String>,
    open: Vec<String>,
    waiting: Vec<Waker>,
}

#[derive(Clone)]
struct Model {
    replies: HashMap<String, Reply>,
    seen: Arc<Mutex<Seen>>,
}

/// Records that a call was dropped before it was answered.
struct Guard(Arc<Mutex<Seen>>, String, bool);

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.2 {
            self.0.lock().unwrap().dropped.push(self.1.clone());
        }
    }
}

fn speaker(call: &ModelCall) -> String {
    let rest = call.instructions.split_once("I am `").unwrap().1;
    rest.split_once('`').unwrap().0.to_owned()
}

fn provider(model: Model) -> FakeProvider {
    FakeProvider::from_future(move |call, sink| {
        let Model { replies, seen } = model.clone();
        let model = Model { replies, seen: Arc::clone(&seen) };
        Box::pin(async move {
            let name = speaker(call);
            seen.lock().unwrap().calls.push((name.clone(), call.clone()));
            let mut guard = Guard(Arc::clone(&seen), name.clone(), false);
            let mut reply = model.reply(&name);
            if let Reply::Gate(behind) = reply {
                poll_fn(|context| {
                    let mut seen = seen.lock().unwrap();
                    if seen.open.contains(&name) {
                        return Poll::Ready(());
                    }
                    seen.waiting.push(context.waker().clone());
                    Poll::Pending
                })
                .await;
                reply = *behind;
            }
            guard.2 = true;
            let good = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
            let text = match reply {
                Reply::Raw(text) => {
                    sink.piece(text);
                    return Ok(complete());
                }
                Reply::Say(value) => value,
                Reply::Emit(context) => {
                    let mut answer = good_answer(&json!({ "rationale": "r" }));
                    answer["_emitted_context"] = context;
                    answer
                }
                Reply::Refuse(code) => {
                    json!({ "ok": false, "meta": good, "error": { "code": code, "message": "no" } })
                }
                Reply::Late | Reply::Gate(_) | Reply::Turns(_) => return Err(ProviderError::Timeout),
            };
            sink.piece(&text.to_string());
            let mut end = complete();
            end.usage = Some(Usage::new(10, 2));
            Ok(end)
        })
    })
}

impl Model {
    fn reply(&self, name: &str) -> Reply {
        let reply = self.replies.get(name).unwrap_or_else(|| panic!("no reply for {name}"));
        let Reply::Turns(turns) = reply else { return reply.clone() };
        let asked = self.seen.lock().unwrap().calls.iter().filter(|(who, _)| who == name).count();
        turns[(asked - 1).min(turns.len() - 1)].clone()
    }
}

/// Receives all events, and records those about parts.
#[derive(Default)]
pub struct Listener {
    pub parts: Vec<String>,
    pub trace: Value,
    pub finished: usize,
}

impl EventSink for Listener {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Part(PartEvent { path, state, done, of, .. }) => {
                self.parts.push(format!("{path} {} {done}/{of}", state.word()));
            }
            Event::Trace(trace) => self.trace = serde_json::to_value(trace).unwrap(),
            Event::Finished(_) => self.finished += 1,
            _ => {}
        }
    }
}

#[derive(Default)]
pub struct World {
    modules: NamedModules,
    replies: HashMap<String, Reply>,
    seen: Arc<Mutex<Seen>>,
    audit: Arc<MemoryAuditLog>,
}

impl World {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn module(&mut self, name: &str, manifest: Value, prompt: &str) -> &mut Self {
        self.module_with(name, manifest, prompt, &open_schema())
    }

    /// The same with a specific contract.
    pub fn module_with(
        &mut self,
        name: &str,
        mut manifest: Value,
        prompt: &str,
        schema: &Value,
    ) -> &mut Self {
        for (member, usual) in [("name", name), ("version", "1.2.3"), ("tier", "decision")] {
            if manifest.get(member).is_none() {
                manifest[member] = json!(usual);
            }
        }
        let module = loaded_module(&manifest, schema, &format!("I am `{name}`. {prompt}"));
        self.modules.0.insert(name.to_owned(), module);
        self
    }

    pub fn reply(&mut self, name: &str, reply: Reply) -> &mut Self {
        self.replies.insert(name.to_owned(), reply);
        self
    }

    pub fn host(&self) -> Host {
        let model = Model { replies: self.replies.clone(), seen: Arc::clone(&self.seen) };
        let mut host = Host::new(Arc::new(self.modules.clone()), Arc::new(provider(model)));
        host.audit = Some(Arc::clone(&self.audit) as Arc<_>);
        host
    }

    pub fn run(&self, module: &str, input: Value) -> Value {
        self.poll_through(RunRequest::new(module, input), &[]).1
    }

    pub fn run_text(&self, module: &str, text: &str) -> Value {
        let mut request = RunRequest::new(module, Value::Null);
        request.input = RunInput::Text(text.to_owned());
        self.poll_through(request, &[]).1
    }

    /// Runs until all calls wait, and returns the modules called so far; then opens one gate after the other.
    pub fn run_then_open(&self, module: &str, gates: &[&str]) -> (Vec<String>, Value) {
        self.poll_through(RunRequest::new(module, json!({})), gates)
    }

    fn poll_through(&self, request: RunRequest, gates: &[&str]) -> (Vec<String>, Value) {
        let (host, mut sink) = (self.host(), NullSink);
        let (first, envelope) = self.poll_all(run(&host, request, &mut sink), gates);
        (first, serde_json::to_value(&envelope).unwrap())
    }

    /// Runs and returns the events: parts as `path state done/of`, and the trace at the end.
    pub fn watch(&self, module: &str, gates: &[&str]) -> (Vec<String>, Value) {
        let (host, mut sink) = (self.host(), Listener::default());
        let request = RunRequest::new(module, json!({}));
        self.poll_all(run(&host, request, &mut sink), gates);
        (sink.parts, sink.trace)
    }

    /// Runs a module until a condition holds.
    pub fn repeat(&self, module: &str, input: Value, until: &Repeat) -> (Value, Listener) {
        let (host, mut sink) = (self.host(), Listener::default());
        let request = RunRequest::new(module, input);
        let (_, envelope) = self.poll_all(repeat(&host, request, until, &mut sink), &[]);
        (serde_json::to_value(&envelope).unwrap(), sink)
    }

    /// Runs to the end without a time limit.
    pub fn wait_for(&self, module: &str) -> Value {
        let mut host = self.host();
        host.timer = Some(Arc::new(TokioTimer));
        let envelope = block_on(run(&host, RunRequest::new(module, json!({})), &mut NullSink));
        serde_json::to_value(&envelope).unwrap()
    }

    /// Polls until all calls wait, and records the modules called so far; then opens one gate after the other.
    pub fn poll_all<T>(&self, future: impl Future<Output = T>, gates: &[&str]) -> (Vec<String>, T) {
        let mut future = std::pin::pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let mut first = None;
        for gate in gates.iter().map(Some).chain([None]) {
            if let Poll::Ready(envelope) = future.as_mut().poll(&mut context) {
                return (first.unwrap_or_else(|| self.called()), envelope);
            }
            first.get_or_insert_with(|| self.called());
            let mut seen = self.seen.lock().unwrap();
            seen.open.extend(gate.map(|gate| (*gate).to_owned()));
            let waiting = std::mem::take(&mut seen.waiting);
            drop(seen);
            waiting.iter().for_each(Waker::wake_by_ref);
        }
        panic!("the run waits for a gate that nobody opens")
    }

    pub fn overview(&self, module: &str) -> Result<Overview, Failure> {
        let module = self.modules.module(module)?;
        overview(&self.modules, &module)
    }

    /// The chunks of a streamed run whose model never waits.
    pub fn stream(&self, module: &str) -> Vec<Value> {
        let (host, chunks) = (self.host(), Mutex::new(Vec::new()));
        let keep = |chunk: Chunk| chunks.lock().unwrap().push(serde_json::to_value(&chunk).unwrap());
        {
            let mut future = std::pin::pin!(stream(&host, RunRequest::new(module, json!({})), keep));
            let delivery = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(delivery, Poll::Ready(sent) if !matches!(sent, Delivery::Whole(_))));
        }
        chunks.into_inner().unwrap()
    }

    pub fn called(&self) -> Vec<String> {
        self.seen.lock().unwrap().calls.iter().map(|(name, _)| name.clone()).collect()
    }

    pub fn dropped(&self) -> Vec<String> {
        self.seen.lock().unwrap().dropped.clone()
    }

    pub fn records(&self) -> Vec<(String, String)> {
        let runs = self.audit.records().into_iter().filter(|record| record.event == "run");
        runs.map(|record| (record.module, record.trace_id)).collect()
    }

    pub fn calls_to(&self, name: &str) -> Vec<ModelCall> {
        let seen = self.seen.lock().unwrap();
        seen.calls.iter().filter(|(who, _)| who == name).map(|(_, call)| call.clone()).collect()
    }

    pub fn inputs(&self, name: &str) -> Vec<String> {
        self.calls_to(name).into_iter().map(|call| call.input).collect()
    }

    pub fn instructions(&self, name: &str) -> String {
        self.calls_to(name).remove(0).instructions.to_string()
    }

    pub fn temperatures(&self, name: &str) -> Vec<f64> {
        self.calls_to(name).into_iter().map(|call| call.temperature).collect()
    }

    pub fn times(&self) -> Vec<u128> {
        self.seen.lock().unwrap().calls.iter().map(|(_, call)| call.timeout.as_millis()).collect()
    }
}
