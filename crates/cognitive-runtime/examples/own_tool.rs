//! A custom tool: an order book that a model may query, offered only to the module that requests it. The model here
//! is a fake that needs no key and no network; any provider with function calling can replace it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "an example shows the way, not the detours")]

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use cognitive_contract::policy::ToolClass;
use cognitive_contract::ports::{
    CallSink, DecodeMode, ModelCall, ModelEnd, ModuleSource, NullSink, PortFuture, Provider, ProviderError,
};
use cognitive_contract::tools::{FUNCTION_CALLING, Tool, ToolCall, ToolError, ToolSpec};
use cognitive_contract::{Failure, Module};
use cognitive_library::{Folder, load};
use cognitive_runtime::{Host, RunRequest, run};
use serde_json::{Value, json};

/// Looks up orders.
struct OrderStatus {
    orders: BTreeMap<&'static str, &'static str>,
}

impl Tool for OrderStatus {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({
            "type": "object",
            "properties": { "order": { "type": "string", "pattern": "^A-[0-9]+$" } },
            "required": ["order"],
            "additionalProperties": false,
        });
        ToolSpec::new("order_status", "Says how far an order is. Orders look like `A-17`.", parameters)
            // A real tool would query a server. A module with `network: deny` is never offered it.
            .needing(&[ToolClass::Network])
            .within(Duration::from_secs(3))
    }

    fn call<'a>(&'a self, arguments: &'a Value) -> PortFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            // The arguments match the schema above, whatever the model wrote.
            let order = arguments.get("order").and_then(Value::as_str).unwrap_or_default();
            let status = self.orders.get(order);
            status.map(|status| json!({ "status": status })).ok_or_else(|| ToolError::new("no such order"))
        })
    }
}

/// A model that looks the order up and then answers.
struct StandIn;

impl Provider for StandIn {
    fn name(&self) -> &'static str {
        "stand-in"
    }

    fn capabilities(&self) -> &[&str] {
        &["json_mode", FUNCTION_CALLING]
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        let mut end = ModelEnd::complete("one", DecodeMode::Prompt);
        let told = call.rounds.first().and_then(|round| round.calls.first());
        if let Some((_, reply)) = told {
            let meta = json!({ "confidence": 0.95, "risk": "low", "explain": "Looked up" });
            let data = json!({ "rationale": format!("The order book says {}", reply.content) });
            sink.piece(&json!({ "ok": true, "meta": meta, "data": data }).to_string());
        } else {
            end.tool_calls = vec![ToolCall::new("call_1", "order_status", r#"{"order": "A-17"}"#)];
        }
        Box::pin(async { Ok(end) })
    }
}

/// One module, from memory. Its `tools.allowed` requests the tool.
struct Shop;

impl ModuleSource for Shop {
    fn module(&self, _: &str) -> Result<Arc<Module>, Failure> {
        let manifest = "name: order-desk\nversion: 1.0.0\nresponsibility: Say how far an order is\ntier: decision\n\
                        excludes: [inventing orders]\ntools:\n  allowed: [order_status]\npolicies:\n  network: allow\n";
        let schema =
            json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale"] } });
        let files = [
            ("module.yaml", manifest.to_owned()),
            ("prompt.md", "Say how far the order is.".to_owned()),
            ("schema.json", schema.to_string()),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text.into_bytes()));
        load(&Folder::memory("order-desk", BTreeMap::from(files)))
            .map(Arc::new)
            .map_err(cognitive_library::ModuleLoadError::into_failure)
    }
}

fn main() {
    let mut host = Host::new(Arc::new(Shop), Arc::new(StandIn));
    // The two built-in tools stay available; this one is added.
    let orders = BTreeMap::from([("A-17", "on its way")]);
    host.tools = host.tools.with(OrderStatus { orders }).unwrap();
    let request = RunRequest::new("order-desk", json!({ "question": "Where is A-17?" }));
    let mut sink = NullSink;
    let mut answer = std::pin::pin!(run(&host, request, &mut sink));
    // This example never waits, so one poll is enough; a real host has an executor.
    let Poll::Ready(envelope) = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a model that waits for nothing waited")
    };
    let text = serde_json::to_string_pretty(&envelope).unwrap();
    std::io::stdout().write_all(text.as_bytes()).unwrap();
}
