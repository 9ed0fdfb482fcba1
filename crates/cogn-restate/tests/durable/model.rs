//! A model in the test process: returns the scripted reply for a module, records calls, and can be made to
//! hang.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cogn::{CallSink, ModelCall, ModelEnd, Provider, ProviderError};
use cognitive_contract::ports::{DecodeMode, PortFuture, Usage};
use serde_json::{Value, json};
use tokio::sync::mpsc;

#[derive(Clone, Default)]
pub struct Model(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    replies: HashMap<String, String>,
    asked: Vec<String>,
    /// The modules whose next call hangs, each with a channel that reports when it is asked and when the call
    /// is dropped.
    silent: Vec<(String, mpsc::UnboundedSender<&'static str>)>,
}

struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl Model {
    pub fn says(&self, module: &str, reply: impl ToString) {
        self.0.lock().unwrap().replies.insert(module.to_owned(), reply.to_string());
    }

    /// Scripts a successful answer with this text.
    pub fn answers(&self, module: &str, risk: &str, text: &str) {
        let meta = json!({ "confidence": 0.9, "risk": risk, "explain": "e" });
        self.says(module, json!({ "ok": true, "meta": meta, "data": { "rationale": "r", "text": text } }));
    }

    pub fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.clone()
    }

    /// Makes the next call of each of these modules hang.
    pub fn stays_silent_for(&self, modules: &[&str]) -> mpsc::UnboundedReceiver<&'static str> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let silent = modules.iter().map(|module| ((*module).to_owned(), sender.clone()));
        self.0.lock().unwrap().silent.extend(silent);
        receiver
    }
}

impl Provider for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn ask<'a>(
        &'a self,
        call: &'a ModelCall,
        sink: &'a mut dyn CallSink,
    ) -> PortFuture<'a, Result<ModelEnd, ProviderError>> {
        Box::pin(async move {
            let (reply, silent) = {
                let mut script = self.0.lock().unwrap();
                script.asked.push(call.module.clone());
                let silent = script.silent.iter().position(|(module, _)| *module == call.module);
                let heard = silent.map(|place| script.silent.remove(place).1);
                (script.replies.get(&call.module).cloned(), heard)
            };
            if let Some(heard) = silent {
                let _guard = Dropped(heard.clone());
                heard.send("asked").unwrap();
                std::future::pending::<()>().await;
            }
            sink.piece(&reply.unwrap_or_else(|| panic!("no reply for {}", call.module)));
            let mut end = ModelEnd::complete("m", DecodeMode::Prompt);
            end.usage = Some(Usage::new(10, 2));
            Ok(end)
        })
    }
}

/// Removes the values that differ between runs: the trace id and durations.
pub fn without_measures(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, _)| {
                !["trace_id", "latency_ms", "processing_time_ms"].contains(&name.as_str())
            });
            Value::Object(kept.map(|(name, value)| (name.clone(), without_measures(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_measures).collect()),
        other => other.clone(),
    }
}
