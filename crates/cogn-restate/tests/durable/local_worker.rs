//! A server, and a worker in the test process, with additional test modules and a scripted model.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cogn::{Runtime, Value, json};
use cogn_restate::{DurableWorker, ListenOptions, WorkerOffer, listen, serve};
use cognitive_net::{DeploymentRequest, register_deployment};
use cognitive_setup::config::Config;
use cognitive_testkit::TestRestate;
use tempfile::TempDir;

use crate::http::post;
use crate::model::Model;

pub struct Here {
    pub restate: TestRestate,
    pub model: Model,
    pub modules: TempDir,
    config: Value,
    address: SocketAddr,
    /// A separate runtime for the worker, so that everything in it can be stopped at once.
    serving: Option<tokio::runtime::Runtime>,
}

impl Here {
    /// Starts the server and a worker. Skips the test and returns `None` if the server program is missing.
    pub async fn open(config: Value) -> Option<Self> {
        Self::with_modules(config, |_| ()).await
    }

    /// The same with additional modules.
    pub async fn with_modules(config: Value, write: impl FnOnce(&Path)) -> Option<Self> {
        let restate = tokio::task::block_in_place(TestRestate::open)?;
        let (model, modules) = (Model::default(), TempDir::new().unwrap());
        write_chain(modules.path());
        write(modules.path());
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (address, serving) = start(&model, modules.path(), &config, any);
        let request = DeploymentRequest::new(&restate.admin, &format!("http://{address}"));
        let deployed = register_deployment(&request).await.unwrap();
        let workflow = deployed.services.iter().find(|service| service.name == "chain").unwrap();
        assert_eq!((workflow.kind.as_str(), workflow.handlers.len()), ("workflow", 5));
        Some(Self { restate, model, modules, config, address, serving: Some(serving) })
    }

    pub fn runtime(&self) -> Runtime {
        runtime(&self.model, self.modules.path(), &self.config)
    }

    /// Stops the worker with everything in flight, as if it were killed, and starts another.
    pub fn restart_worker(&mut self) {
        let (address, serving) = tokio::task::block_in_place(|| {
            // Nothing in it continues: its connections break.
            self.serving.take().unwrap().shutdown_timeout(Duration::from_secs(30));
            start(&self.model, self.modules.path(), &self.config, self.address)
        });
        (self.address, self.serving) = (address, Some(serving));
    }

    /// Calls a handler.
    pub async fn call(&self, path: &str, body: Value) -> Value {
        post(&format!("{}/{path}", self.restate.ingress), &body).await
    }
}

fn runtime(model: &Model, modules: &Path, config: &Value) -> Runtime {
    let config: Config = serde_json::from_value(config.clone()).unwrap();
    Runtime::builder().modules(modules).provider(model.clone()).config(config).build().unwrap()
}

fn start(
    model: &Model,
    modules: &Path,
    config: &Value,
    at: SocketAddr,
) -> (SocketAddr, tokio::runtime::Runtime) {
    let worker = Arc::new(DurableWorker::new(runtime(model, modules, config)));
    let offer = WorkerOffer::for_worker(&worker);
    assert!(offer.left_out.is_empty(), "{:?}", offer.left_out);
    let options = ListenOptions::at(at);
    let serving = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = {
        let _inside = serving.enter();
        listen(&options).unwrap()
    };
    let address = listener.local_addr().unwrap();
    serving.spawn(async move {
        serve(listener, offer.endpoint, &options, std::future::pending()).await;
    });
    (address, serving)
}

impl Drop for Here {
    fn drop(&mut self) {
        if let Some(serving) = self.serving.take() {
            serving.shutdown_background();
        }
    }
}

/// Writes a module folder.
pub fn write_module(root: &Path, name: &str, manifest: &Value, schema: &Value) {
    let folder = root.join(name);
    fs::create_dir(&folder).unwrap();
    let mut whole =
        json!({ "name": name, "version": "1.0.0", "tier": "decision", "responsibility": "a test" });
    whole.as_object_mut().unwrap().extend(manifest.as_object().unwrap().clone());
    fs::write(folder.join("module.yaml"), whole.to_string()).unwrap();
    fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    fs::write(folder.join("prompt.md"), format!("I am `{name}`. Say something.")).unwrap();
}

/// The schema of all test modules: a text in, a text out.
pub fn text_schema() -> Value {
    let text =
        json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string" } } });
    let mut said = text.clone();
    said["required"] = json!(["rationale", "text"]);
    said["properties"]["rationale"] = json!({ "type": "string" });
    json!({ "input": text, "data": said })
}

pub const PARTS: [&str; 4] = ["first", "second", "third", "fourth"];

/// Writes `chain`, which passes a text through four parts, and `counter`, which counts the runs of its
/// session.
pub fn write_chain(root: &Path) {
    let schema = text_schema();
    for part in PARTS {
        write_module(root, part, &json!({}), &schema);
    }
    let mut steps = vec![json!({ "from": "input", "to": "first", "mapping": { "text": "$.text" } })];
    for pair in PARTS.windows(2) {
        let (from, to) = (format!("{}.output", pair[0]), pair[1]);
        steps.push(json!({ "from": from, "to": to, "mapping": { "text": "$.data.text" } }));
    }
    steps.push(json!({ "from": "fourth.output", "to": "output" }));
    let requires = PARTS.map(|part| json!({ "name": part }));
    let composition = json!({ "requires": requires, "dataflow": steps });
    write_module(root, "chain", &json!({ "composition": composition }), &schema);
    let context = json!({ "accepts": [{ "type": "tally" }], "emits": [{ "type": "tally", "ttl": 3600 }] });
    write_module(root, "counter", &json!({ "context": context }), &schema);
}
