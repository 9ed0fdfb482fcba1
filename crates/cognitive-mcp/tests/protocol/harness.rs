//! A client that writes and reads lines, and a door to modules in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, ModuleSource, PortFuture, Provider, ProviderError,
};
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::load;
use cognitive_mcp::{Admission, AdmissionFuture, Extensions, McpBackend, McpServer, ToolSurface};
use cognitive_runtime::{Host, RunOptions};
use cognitive_testkit::module_folder;
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::sync::watch;

pub const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "It is short."},
    "data": {"rationale": "Few words.", "answer": "yes"}}"#;

/// Modules that a test adds and removes.
#[derive(Debug, Default)]
pub struct StubModules {
    modules: Mutex<BTreeMap<String, (u64, Arc<Module>)>>,
    /// The number of scans of all folders, and of module reads.
    pub looks: AtomicUsize,
    pub reads: AtomicUsize,
}

impl StubModules {
    pub fn put(&self, name: &str, manifest: Value) {
        let mut known = json!({ "name": name, "version": "1.0.0", "responsibility": format!("Judge {name} things."),
            "tier": "decision", "excludes": ["cooking"], "overflow": { "enabled": false },
            "policies": { "network": "deny", "filesystem_write": "deny", "side_effects": "deny", "code_execution": "deny" } });
        known.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone());
        let schema = json!({
            "input": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "description": "What to judge" } } },
            "data": { "type": "object", "required": ["rationale", "answer"], "properties": {
                "rationale": { "type": "string" }, "answer": { "type": "string" } } },
        });
        let module = load(&module_folder(&known, &schema, "Judge the text.")).unwrap();
        let mut all = self.modules.lock().unwrap();
        // A new stamp each time, also for an existing module.
        let mark = all.values().map(|(mark, _)| *mark).max().unwrap_or(0) + 1;
        all.insert(name.to_owned(), (mark, Arc::new(module)));
    }
}

impl ModuleSource for StubModules {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let found = self.modules.lock().unwrap().get(name).map(|(_, module)| Arc::clone(module));
        found.ok_or_else(|| Failure::new(ErrorCode::ModuleNotFound, "no such module"))
    }

    fn names(&self) -> Vec<String> {
        self.modules.lock().unwrap().keys().cloned().collect()
    }

    fn marks(&self) -> Vec<(String, Option<u64>)> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.modules.lock().unwrap().iter().map(|(name, (mark, _))| (name.clone(), Some(*mark))).collect()
    }
}

/// A model that answers when allowed, and reports when it is called and when its call is dropped.
#[derive(Debug)]
pub struct Gate {
    pub open: watch::Sender<bool>,
    pub asked: watch::Sender<usize>,
    pub left: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: watch::Sender::new(true), asked: watch::Sender::new(0), left: watch::Sender::new(0) }
    }
}

struct Left<'a>(&'a Gate, bool);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.left.send_modify(|count| *count += 1);
        }
    }
}

#[derive(Debug, Clone)]
pub struct GatedModel(pub Arc<Gate>);

impl Provider for GatedModel {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn ask<'a>(
        &'a self,
        _: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let mut left = Left(&self.0, false);
            self.0.asked.send_modify(|count| *count += 1);
            self.0.open.subscribe().wait_for(|open| *open).await.unwrap();
            sink.piece(REPLY);
            left.1 = true;
            Ok(ModelEnd::complete("m", DecodeMode::Prompt))
        })
    }
}

pub struct TestBackend {
    host: Host,
    pub hidden: Vec<String>,
}

impl McpBackend for TestBackend {
    fn host(&self) -> &Host {
        &self.host
    }

    fn offers(&self, name: &str) -> bool {
        !self.hidden.iter().any(|hidden| hidden == name)
    }

    fn admit<'a>(&'a self, _: &'a Extensions) -> AdmissionFuture<'a> {
        Box::pin(async { Ok(Admission::new(RunOptions::default())) })
    }

    fn findings(&self, name: &str) -> Result<Value, Failure> {
        Ok(json!({ "module": name, "valid": true, "findings": [] }))
    }
}

/// The fixtures of a test.
pub struct Bench {
    pub stub_modules: Arc<StubModules>,
    pub gate: Arc<Gate>,
    pub server: McpServer,
}

impl Bench {
    /// Starts a server with these modules.
    pub fn new(names: &[&str], surface: ToolSurface) -> Self {
        Self::with_tasks_after(names, surface, Duration::ZERO)
    }

    /// Starts a server whose runs become tasks only after this time.
    pub fn with_tasks_after(names: &[&str], surface: ToolSurface, wait: Duration) -> Self {
        let (stub_modules, gate) = (Arc::new(StubModules::default()), Arc::new(Gate::default()));
        for name in names {
            stub_modules.put(name, json!({}));
        }
        let host = Host::new(
            Arc::clone(&stub_modules) as Arc<dyn ModuleSource>,
            Arc::new(GatedModel(Arc::clone(&gate))),
        );
        let backend = TestBackend { host, hidden: vec!["hidden".to_owned()] };
        let server = McpServer::new(Arc::new(backend), surface).with_tasks_after(wait);
        Self { stub_modules, gate, server }
    }

    /// Connects a client of the older revision and completes its handshake.
    pub async fn session(&self) -> Client {
        let mut client = self.connect();
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let info = client.ask("initialize", hello).await;
        assert_eq!(info["result"]["protocolVersion"], "2025-11-25");
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    /// Connects a client of the newest revision, which has no handshake.
    pub fn stateless(&self, capabilities: Value) -> Client {
        let mut client = self.connect();
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        client
    }

    fn connect(&self) -> Client {
        let (here, there) = tokio::io::duplex(1 << 20);
        let server = self.server.clone();
        tokio::spawn(async move {
            if let Ok(running) = server.serve(tokio::io::split(there)).await {
                let _ = running.waiting().await;
            }
        });
        let (read, write) = tokio::io::split(here);
        Client { read: BufReader::new(read).lines(), write, next: 0, meta: None, heard: VecDeque::new() }
    }
}

pub struct Client {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    next: u64,
    meta: Option<Value>,
    /// Notifications that arrived before a response.
    pub heard: VecDeque<Value>,
}

impl Client {
    pub async fn write(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Reads the next message.
    pub async fn read(&mut self) -> Value {
        let line = self.read.next_line().await.unwrap().expect("the server closed the stream");
        serde_json::from_str(&line).expect("stdout has nothing but the protocol")
    }

    /// Sends a request and returns its id.
    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            let given = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            given.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })).await;
        self.next
    }

    /// Returns the response to a request; notifications before it are queued.
    pub async fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let message = self.read().await;
            if message["id"] == id {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer_to(id).await
    }

    /// Calls a tool and returns its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].clone()
    }

    /// Waits for a notification.
    pub async fn hear(&mut self, method: &str) -> Value {
        loop {
            let message = match self.heard.pop_front() {
                Some(message) => message,
                None => self.read().await,
            };
            if message["method"] == method {
                return message;
            }
        }
    }
}
