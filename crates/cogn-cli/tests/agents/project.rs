//! A project whose modules have the names that the conformance suite calls. Each is an ordinary module with a recorded
//! reply, and `cogn serve` has no knowledge of the suite. `fixture_server.rs` has the features that no module can
//! provide.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::timed_media;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model::{Recorded, of_module};
use crate::stage::Stage;

/// A module of the project.
pub(crate) struct FixtureModule {
    pub(crate) name: &'static str,
    /// The names of its text inputs.
    takes: &'static [&'static str],
    reply: Value,
    composition: Option<Value>,
}

impl FixtureModule {
    /// Creates a module that answers with these data and a rationale.
    pub(crate) fn new(name: &'static str, data: Value) -> Self {
        let mut all = json!({ "rationale": "It was recorded." });
        all.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
        Self {
            name,
            takes: &[],
            reply: json!({ "ok": true, "meta": meta(), "data": all }),
            composition: None,
        }
    }

    /// Creates a module that always fails.
    pub(crate) fn failing(name: &'static str) -> Self {
        let error = json!({ "code": "E2007", "message": "This module always fails." });
        let reply = json!({ "ok": false, "meta": meta(), "error": error });
        Self { reply, ..Self::new(name, json!({})) }
    }

    pub(crate) fn manifest(&self) -> Value {
        let mut manifest = json!({ "name": self.name, "version": "1.0.0", "tier": "exploration",
            "responsibility": format!("Play the part of {} in the suite.", self.name), "excludes": ["anything else"],
            "modalities": { "input": ["text"], "output": ["text", "image", "audio", "video"] },
            "policies": { "network": "deny", "filesystem_write": "deny", "side_effects": "deny", "code_execution": "deny" } });
        if let Some(composition) = &self.composition {
            manifest["composition"] = composition.clone();
        }
        manifest
    }

    pub(crate) fn schema(&self) -> Value {
        let members = self.takes.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" })));
        let properties: serde_json::Map<String, Value> = members.collect();
        json!({ "input": { "type": "object", "required": self.takes, "properties": properties },
            "data": { "type": "object", "required": ["rationale"], "properties": { "rationale": { "type": "string" } } } })
    }

    pub(crate) fn prompt(&self) -> String {
        format!("You are {}, and nothing else.", self.name)
    }

    pub(crate) fn reply(&self) -> String {
        self.reply.to_string()
    }

    /// Writes the module, and returns its recorded reply.
    fn write(&self, modules: &Path) -> Recorded {
        let folder = modules.join(self.name);
        fs::create_dir_all(folder.join("tests")).unwrap();
        let put = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        put("module.yaml", self.manifest().to_string());
        put("schema.json", self.schema().to_string());
        put("prompt.md", self.prompt());
        put("tests/one.input.json", "{}".to_owned());
        put("tests/one.reply.txt", self.reply());
        of_module(&folder)
    }
}

fn meta() -> Value {
    json!({ "confidence": 0.9, "risk": "low", "explain": "It was recorded." })
}

fn medium(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "type": "base64", "media_type": media_type, "data": STANDARD.encode(bytes) })
}

fn picture() -> Value {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::DynamicImage::from(image::RgbImage::new(1, 1))
        .write_to(&mut bytes, image::ImageFormat::Png)
        .unwrap();
    medium("image/png", &bytes.into_inner())
}

fn film() -> Value {
    medium("video/mp4", &timed_media::mp4(b"isom", 10, (64, 48)))
}

/// Returns all modules of the project.
fn modules() -> Vec<FixtureModule> {
    let plain = |name| FixtureModule::new(name, json!({}));
    let sound = medium("audio/wav", &timed_media::wav(8_000, 8_000));
    // The parts produce the progress messages: at least three must arrive during the run, so there are more.
    let parts = [
        "test_simple_text",
        "test_logging_tool",
        "test_streaming_elicitation",
        "test_simple_prompt",
        "greet",
    ];
    let parts = json!({ "pattern": "sequential", "requires": parts.map(|name| json!({ "name": name })),
        "dataflow": [{ "from": parts.map(|name| format!("{name}.output")), "to": "output", "aggregate": "merge" }] });
    vec![
        plain("test_simple_text"),
        FixtureModule::new("test_image_content", json!({ "picture": picture() })),
        FixtureModule::new("test_audio_content", json!({ "sound": sound })),
        FixtureModule::new("test_embedded_resource", json!({ "film": film() })),
        FixtureModule::new("test_multiple_content_types", json!({ "picture": picture(), "film": film() })),
        FixtureModule::failing("test_error_handling"),
        FixtureModule { composition: Some(parts), ..plain("test_tool_with_progress") },
        // With these two, servers prove that they do not send requests or logs to the client.
        plain("test_streaming_elicitation"),
        plain("test_logging_tool"),
        // Each module is also a prompt.
        plain("test_simple_prompt"),
        FixtureModule { takes: &["arg1", "arg2"], ..plain("test_prompt_with_arguments") },
        plain("greet"),
    ]
}

/// Creates a home with the project in it.
pub(crate) fn stage() -> Stage {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("cognitive/modules");
    let known = modules().iter().map(|module| module.write(&folder)).collect();
    Stage::in_home(home, known)
}

/// Creates a home with this number of modules in its project.
pub(crate) fn home_with_modules(count: usize) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("cognitive/modules");
    for number in 0..count {
        let name: &'static str = Box::leak(format!("module-{number:03}").into_boxed_str());
        FixtureModule::new(name, json!({})).write(&folder);
    }
    home
}
