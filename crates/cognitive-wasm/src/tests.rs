//! Questions as a program in another language asks them, about all bundled modules.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use cognitive_library::Library;
use serde_json::{Value, json};

use super::*;

fn ask(asked: &str, module: &str, value: &Value) -> Value {
    let answer: Value = serde_json::from_str(&answer(&format!("{asked}\n{module}\n{value}"))).unwrap();
    answer.get("result").cloned().unwrap_or_else(|| panic!("{asked}: {answer}"))
}

/// A module as `GET /api/modules/{name}` describes it.
fn description(module: &Module) -> String {
    let (manifest, schema) = (module.manifest.effective(), module.contract.root());
    json!({ "format": module.format, "manifest": manifest, "schema": schema }).to_string()
}

fn bundled() -> Vec<(String, Module)> {
    let library = Library::default();
    let names = library.list().into_iter().map(|found| found.name);
    names.map(|name| (name.clone(), library.load(&name).unwrap())).collect()
}

#[test]
fn api_004_every_bundled_module_is_understood_as_a_server_describes_it() {
    let modules = bundled();
    assert!(modules.len() > 10);
    for (name, module) in &modules {
        let text = description(module);
        assert_eq!(ask("module", &text, &json!(null)), Value::Null, "{name}");
        let read = described::module(&text).unwrap();
        assert_eq!(read.manifest.effective(), module.manifest.effective(), "{name}");
        assert_eq!(read.contract.root(), module.contract.root(), "{name}");
        for example in &module.examples {
            assert_eq!(ask("input", &text, &example.input), Value::Null, "{name}: {}", example.name);
            assert_eq!(ask("envelope", &text, &example.answer), json!([]), "{name}: {}", example.name);
        }
    }
}
