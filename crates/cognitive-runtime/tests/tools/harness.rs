//! A model with scripted tool calls, tools that record their use, and a host around them. Judges nothing.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use cognitive_contract::policy::ToolClass;
use cognitive_contract::ports::{AuditRecord, ModelCall, NullSink, PortFuture, Usage};
use cognitive_contract::stream::Chunk;
use cognitive_contract::tools::{FUNCTION_CALLING, Tool, ToolBox, ToolCall, ToolError, ToolSpec};
use cognitive_runtime::{Host, RunRequest, run, stream};
use cognitive_testkit::{FakeProvider, MemoryAuditLog, NamedModules, complete, good_answer, open_schema};
use serde_json::{Value, json};

use crate::timer::TokioTimer;
pub use crate::timer::block_on;

/// One turn of the model.
#[derive(Clone)]
pub struct Turn {
    text: String,
    calls: Vec<(&'static str, String)>,
}

/// A turn that requests tools.
pub fn wants(calls: &[(&'static str, Value)]) -> Turn {
    let calls = calls.iter().map(|(name, arguments)| (*name, arguments.to_string())).collect();
    Turn { text: String::new(), calls }
}

/// The same with arbitrary text as arguments.
pub fn wants_text(name: &'static str, arguments: &str) -> Turn {
    Turn { text: String::new(), calls: vec![(name, arguments.to_owned())] }
}

/// A turn that is the answer.
pub fn says(rationale: &str) -> Turn {
    Turn { text: good_answer(&json!({ "rationale": rationale })).to_string(), calls: Vec::new() }
}

impl Turn {
    /// Sets the text of the turn.
    pub fn saying(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }
}

/// The recorded events of a run.
#[derive(Default)]
pub struct Seen {
    pub calls: Vec<ModelCall>,
    pub used: Vec<(String, Value)>,
    pub dropped: usize,
}

type Shared = Arc<Mutex<Seen>>;

/// A model that follows its script and repeats the last turn.
fn model(script: Vec<Turn>, seen: Shared, capabilities: &'static [&'static str]) -> FakeProvider {
    let answering = FakeProvider::new(move |call, sink| {
        let mut seen = seen.lock().unwrap();
        let turn = script.get(seen.calls.len()).or(script.last()).unwrap().clone();
        seen.calls.push(call.clone());
        drop(seen);
        for piece in turn.text.split_inclusive(' ') {
            sink.piece(piece);
        }
        let mut end = complete();
        end.usage = Some(Usage::new(10, 1));
        let call = |(index, (name, arguments)): (usize, &(&str, String))| {
            ToolCall::new(&format!("call_{index}"), name, arguments)
        };
        end.tool_calls = turn.calls.iter().enumerate().map(call).collect();
        Ok(end)
    });
    answering.with(|model| model.capabilities = capabilities)
}

/// The behaviour of a tool.
#[derive(Clone)]
pub enum Does {
    Return(Value),
    Fail(&'static str),
    Panic,
    Hang,
}

struct Noted {
    name: &'static str,
    needs: Vec<ToolClass>,
    does: Does,
    seen: Shared,
}

/// Records that a call was dropped before it was done.
struct Guard(Shared);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.lock().unwrap().dropped += 1;
    }
}

impl Tool for Noted {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let spec = ToolSpec::new(self.name, "A tool.", parameters).with_needs(&self.needs);
        spec.with_timeout(Duration::from_millis(20))
    }

    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        self.seen.lock().unwrap().used.push((self.name.to_owned(), arguments.clone()));
        Box::pin(async {
            match &self.does {
                Does::Return(value) => Ok(value.clone()),
                Does::Fail(reason) => Err(ToolError::new(*reason)),
                Does::Panic => panic!("a tool with a fault"),
                Does::Hang => {
                    let _guard = Guard(Arc::clone(&self.seen));
                    pending().await
                }
            }
        })
    }
}

/// A host with one module `sample`, or more, and the tools of the test.
pub struct ToolHarness {
    modules: NamedModules,
    pub seen: Shared,
    pub audit: Arc<MemoryAuditLog>,
    tools: ToolBox,
    script: Vec<Turn>,
    capabilities: &'static [&'static str],
}

impl ToolHarness {
    pub fn new(manifest: Value, script: Vec<Turn>) -> Self {
        let mut harness = Self {
            modules: NamedModules::default(),
            seen: Shared::default(),
            audit: Arc::default(),
            tools: ToolBox::default(),
            script,
            capabilities: &["json_mode", FUNCTION_CALLING],
        };
        harness.module("sample", manifest, "Do it.");
        harness
    }

    pub fn module(&mut self, name: &str, mut manifest: Value, prompt: &str) {
        manifest["version"] = json!("1.2.3");
        manifest["tier"] = json!("decision");
        self.modules = std::mem::take(&mut self.modules).with(name, manifest, &open_schema(), prompt);
    }

    /// Adds a tool to the host.
    pub fn tool(mut self, name: &'static str, needs: &[ToolClass], does: Does) -> Self {
        let tool = Noted { name, needs: needs.to_vec(), does, seen: Arc::clone(&self.seen) };
        self.tools = self.tools.with(tool).unwrap();
        self
    }

    /// Uses a model that cannot call functions.
    pub fn without_functions(mut self) -> Self {
        self.capabilities = &["json_mode"];
        self
    }

    pub fn host(&self) -> Host {
        let (script, seen) = (self.script.clone(), Arc::clone(&self.seen));
        let model = model(script, seen, self.capabilities);
        let mut host = Host::new(Arc::new(self.modules.clone()), Arc::new(model));
        host.audit = Some(Arc::clone(&self.audit) as Arc<_>);
        for spec in self.tools.specs() {
            // The host has the built-in tools already.
            assert!(host.tools.spec(&spec.name).is_none());
        }
        host.tools = self.tools.clone();
        host.timer = Some(Arc::new(TokioTimer));
        host
    }

    pub fn run(&self) -> Value {
        self.request(RunRequest::new("sample", json!({})))
    }

    pub fn request(&self, request: RunRequest) -> Value {
        serde_json::to_value(block_on(run(&self.host(), request, &mut NullSink))).unwrap()
    }

    /// The chunks of a streamed run.
    pub fn stream(&self) -> Vec<Value> {
        let chunks = Mutex::new(Vec::new());
        let keep = |chunk: Chunk| chunks.lock().unwrap().push(serde_json::to_value(&chunk).unwrap());
        block_on(stream(&self.host(), RunRequest::new("sample", json!({})), keep));
        chunks.into_inner().unwrap()
    }

    /// The tools that the model was offered in each call.
    pub fn offered(&self) -> Vec<Vec<String>> {
        let names = |call: &ModelCall| call.tools.iter().map(|spec| spec.name.clone()).collect();
        self.seen.lock().unwrap().calls.iter().map(names).collect()
    }

    /// The tools that really ran.
    pub fn ran(&self) -> Vec<String> {
        self.seen.lock().unwrap().used.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The replies to the tool calls, from the last request.
    pub fn told(&self) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        let rounds = &seen.calls.last().unwrap().rounds;
        let replies = rounds.iter().flat_map(|round| &round.calls);
        replies.map(|(_, reply)| serde_json::from_str(&reply.content).unwrap()).collect()
    }

    /// Event, success and code of every record except those of whole runs.
    pub fn records(&self) -> Vec<(&'static str, bool, Option<String>)> {
        let records = self.audit.records().into_iter().filter(AuditRecord::is_detail);
        records.map(|record| (record.event, record.ok, record.code)).collect()
    }
}

/// Becomes ready after one poll: by then a run has come as far as it can.
pub async fn once_polled() {
    let mut polled = false;
    poll_fn(|context| {
        if polled {
            return Poll::Ready(());
        }
        polled = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
