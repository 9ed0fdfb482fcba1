//! Runs the bundled compositions with the real model: every part is called, and a valid envelope is returned. Needs the
//! weights; skipped without them.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{Event, EventSink, ModuleSource};
use cognitive_contract::{Enforcement, Envelope, Failure, Module};
use cognitive_library::{Library, ModuleCache};
use cognitive_local::EmbeddedProvider;
use cognitive_runtime::{Host, RunRequest, run};
use cognitive_testkit::weights;
use serde_json::{Value, json};

/// The bundled modules without required capabilities: the contract is enforced regardless of their quality.
struct Undemanding(ModuleCache);

impl ModuleSource for Undemanding {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        let mut module = Module::clone(&*self.0.module(name)?);
        module.manifest.runtime_requirements.required_capabilities.clear();
        Ok(Arc::new(module))
    }
}

#[derive(Default)]
struct Traced(Value);

impl EventSink for Traced {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Trace(trace) = event {
            self.0 = serde_json::to_value(trace).unwrap();
        }
    }
}

// COMP-002, COMP-003, COMP-004: each pattern once, from the first part to the answer.
#[tokio::test]
async fn comp_002_003_004_bundled_compositions_run_on_the_embedded_model() {
    let Some(path) = weights() else { return };
    let library = Library::new(Path::new("/nonexistent"), None, &[]);
    let embedded = EmbeddedProvider::open(&path).unwrap();
    let host = Host::new(Arc::new(Undemanding(ModuleCache::new(library.clone()))), Arc::new(embedded));
    let text = "Ada Lind opened the new bridge in Malmö on Friday. Shops nearby expect more visitors.";
    for (name, input, least) in [
        ("code-review-pipeline", json!({ "code": "def add(a, b):\n    return a - b\n" }), 1),
        ("multi-reviewer", json!({ "text": text }), 3),
        ("smart-processor", json!({ "text": text }), 1),
    ] {
        let mut traced = Traced::default();
        let mut request = RunRequest::new(name, input);
        request.options.settings.seed = Some(1);
        request.options.settings.max_output_tokens = Some(120);
        // A busy machine is no reason to fail here.
        request.options.settings.timeout = Some(Duration::from_mins(5));
        let envelope = run(&host, request, &mut traced).await;
        let value = serde_json::to_value(&envelope).unwrap();
        assert!(Envelope::from_value(value.clone()).is_ok(), "{value}");
        assert!(envelope.ok(), "{name}: {value}");
        let module = library.load(name).unwrap();
        assert!(module.envelope_violations(&value, Enforcement::EnvelopeOnly).is_empty(), "{value}");
        let parts = traced.0["parts"].as_array().map_or(0, Vec::len);
        assert!(parts >= least, "{name}: {}", traced.0);
        assert!(value["meta"]["usage"]["total_tokens"].as_u64().unwrap() > 0, "{value}");
    }
}
