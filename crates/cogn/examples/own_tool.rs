//! A custom tool: an order book that a model may query, offered only to modules that request it. `cargo run --example
//! own_tool`. The model here is a fake without key and network; any provider with function calling can replace it.
#![expect(clippy::print_stdout, reason = "the program talks to people")]

use std::collections::BTreeMap;
use std::time::Duration;

use cogn::{
    CallSink, DecodeMode, FUNCTION_CALLING, ModelCall, ModelEnd, PortFuture, Provider, ProviderError,
    Runtime, Tool, ToolCall, ToolClass, ToolError, ToolSpec, Value, json,
};

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
            .with_needs(&[ToolClass::Network])
            .with_timeout(Duration::from_secs(3))
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
        let answered = call.rounds.first().and_then(|round| round.calls.first());
        if let Some((_, reply)) = answered {
            let meta = json!({ "confidence": 0.95, "risk": "low", "explain": "Looked up" });
            let data = json!({ "rationale": format!("The order book says {}", reply.content) });
            sink.piece(&json!({ "ok": true, "meta": meta, "data": data }).to_string());
        } else {
            end.tool_calls = vec![ToolCall::new("call_1", "order_status", r#"{"order": "A-17"}"#)];
        }
        Box::pin(async { Ok(end) })
    }
}

#[tokio::main]
async fn main() -> cogn::Result<()> {
    let orders = BTreeMap::from([("A-17", "on its way")]);
    let runtime = Runtime::builder()
        // `tools.allowed` of the module `order-desk` in this folder requests the tool.
        .modules(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/modules"))
        .provider(StandIn)
        .tool(OrderStatus { orders })
        .build()?;
    let input = json!({ "question": "Where is A-17?" });
    let envelope = runtime.module("order-desk")?.input(input).run().await;
    println!("{}", json!(envelope));
    Ok(())
}
