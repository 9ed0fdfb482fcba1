//! Questions of a program in another language, about all bundled modules.

use cognitive_library::Library;
use serde_json::{Value, json};

use super::*;

fn ask(asked: &str, module: &str, value: &Value) -> Value {
    let answer: Value = serde_json::from_str(&answer(&format!("{asked}\n{module}\n{value}"))).unwrap();
    answer.get("result").cloned().unwrap_or_else(|| panic!("{asked}: {answer}"))
}

/// A module as described by `GET /api/modules/{name}`.
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
        let read = module_description::module(&text).unwrap();
        let (read_manifest, manifest) = (read.manifest.effective(), module.manifest.effective());
        for key in module_description::JUDGING {
            assert_eq!(read_manifest[key], manifest[key], "{name}: {key}");
        }
        assert_eq!(read.contract.root(), module.contract.root(), "{name}");
        for example in &module.examples {
            assert_eq!(ask("input", &text, &example.input), Value::Null, "{name}: {}", example.name);
            assert_eq!(ask("envelope", &text, &example.answer), json!([]), "{name}: {}", example.name);
        }
    }
}

fn text_classifier() -> (Module, String) {
    let module = Library::default().load("text-classifier").unwrap();
    let text = description(&module);
    (module, text)
}

#[test]
fn env_002_violations_are_those_of_the_runtime() {
    let (module, text) = text_classifier();
    let broken = json!({ "ok": true, "meta": { "confidence": 2 }, "data": { "sentiment": "angry" } });
    let common: Vec<Value> = ask("envelope", "", &broken).as_array().unwrap().clone();
    let found = cognitive_contract::Envelope::from_value(broken.clone()).unwrap_err();
    assert_eq!(json!(common), serde_json::to_value(found).unwrap());
    let own = module.envelope_violations(&broken, Enforcement::Full);
    assert!(own.len() > common.len());
    assert_eq!(ask("envelope", &text, &broken), serde_json::to_value(own).unwrap());
    let data = ask("data", &text, &broken["data"]);
    assert_eq!(data[0]["path"], "/rationale", "{data}");
}

#[test]
fn stream_005_chunks_add_up_in_any_order() {
    let delta = |seq: u64, text: &str| json!({ "chunk": { "seq": seq, "type": "delta", "field": "data.rationale", "delta": text } });
    let broken_off = ask("assemble", "", &json!([delta(2, "b"), delta(1, "a")]));
    assert_eq!(
        (&broken_off["error"]["code"], &broken_off["partial_data"]["rationale"]),
        (&json!("E2010"), &json!("ab"))
    );
    assert_eq!(ask("stream", "", &json!([delta(2, "b")]))[0]["code"], "E3001");
}

// PIPE-002: the refusal of the runtime, before anything is sent.
#[test]
fn an_input_is_refused_as_the_runtime_refuses_it() {
    let (_, text) = text_classifier();
    assert_eq!(ask("input", &text, &json!({ "text": "rain" })), Value::Null);
    let refused = ask("input", &text, &json!({ "text": 1 }));
    assert_eq!((&refused["ok"], &refused["error"]["code"]), (&json!(false), &json!("E1001")));
    assert_eq!(refused["error"]["details"]["violations"][0]["code"], "E1003");
    let exact: Value =
        serde_json::from_str(&answer(&format!("input\n{text}\n{{\"text\": 1.00000000000000000001}}")))
            .unwrap();
    assert_eq!(exact["result"]["error"]["code"], "E1001", "{exact}");
}

#[test]
fn a_question_that_makes_no_sense_is_answered_too() {
    for (question, said) in [
        ("", "unknown question"),
        ("sing\n\n1", "unknown question"),
        ("input\n\n{}", "needs a module"),
        ("envelope\n\n{", "not JSON"),
        ("assemble\n\n{}", "list"),
        ("module\n{", "not JSON"),
        ("module\n{}", "`manifest`"),
        ("module\n{\"manifest\": {}, \"schema\": {}}", "`format`"),
        ("module\n{\"manifest\": {}, \"schema\": {}, \"format\": \"v2.5\"}", "`input`"),
    ] {
        let answer: Value = serde_json::from_str(&answer(question)).unwrap();
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(said)), "{question}: {answer}");
    }
}

#[test]
fn the_oldest_module_is_forgotten_first() {
    let (_, text) = text_classifier();
    let described = |version: usize| text.replace("\"version\":\"", &format!("\"version\":\"{version}."));
    let first = module_description::module(&described(0)).unwrap();
    for version in 1..40 {
        module_description::module(&described(version)).unwrap();
        assert!(
            Rc::ptr_eq(&first, &module_description::module(&described(0)).unwrap()),
            "what is used stays"
        );
    }
    let second = Rc::downgrade(&module_description::module(&described(1)).unwrap());
    for version in 40..80 {
        module_description::module(&described(version)).unwrap();
    }
    assert!(second.upgrade().is_none() && Rc::strong_count(&first) == 1);
}
