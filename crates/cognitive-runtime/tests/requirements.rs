//! The checks of a provider before it is called, and the warnings about missing features.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use std::sync::Arc;

use cognitive_contract::ports::{NullSink, Provider};
use cognitive_runtime::{Host, Replay, RunRequest, run};
use cognitive_testkit::{FakeProvider, FolderModule, module_folder, open_schema, poll_now};
use serde_json::{Value, json};

fn good() -> Value {
    json!({ "ok": true, "meta": { "confidence": 0.95, "risk": "low", "explain": "e" },
            "data": { "rationale": "r", "behavior_equivalence": false } })
}

fn answering() -> FakeProvider {
    FakeProvider::with_reply(good())
}

/// Runs a module with this manifest; its tier is `decision` by default.
fn ask(provider: Arc<dyn Provider>, manifest: &Value, prompt: &str, input: Value) -> Value {
    let mut manifest = manifest.clone();
    manifest.as_object_mut().unwrap().entry("tier").or_insert(json!("decision"));
    let modules = FolderModule::new(module_folder(&manifest, &open_schema(), prompt));
    let host = Host::new(Arc::new(modules), provider);
    let envelope = poll_now(run(&host, RunRequest::new("sample", input), &mut NullSink));
    serde_json::to_value(&envelope).unwrap()
}

/// The codes of the warnings of a run with this manifest and input.
fn warnings(manifest: Value, input: Value) -> Vec<String> {
    let envelope = ask(Arc::new(answering()), &manifest, "Do it.", input);
    assert_eq!(envelope["ok"], true, "{envelope}");
    let warnings = envelope["meta"]["warnings"].as_array().cloned().unwrap_or_default();
    warnings
        .iter()
        .map(|each| format!("{}: {}", each["code"].as_str().unwrap(), each["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn pol_010_011_a_provider_without_json_is_not_asked() {
    let model = Arc::new(answering().with(|model| model.structured_output = false));
    let manifest = json!({ "runtime_requirements": { "structured_output": true } });
    let envelope = ask(model.clone(), &manifest, "Do it.", json!({}));
    assert_eq!(envelope["error"]["code"], "E4001");
    assert_eq!(envelope["error"]["details"]["missing"], json!(["structured_output"]));
    assert_eq!(model.calls().len(), 0);
    let manifest = json!({ "runtime_requirements": { "structured_output": false } });
    assert_eq!(ask(model, &manifest, "Do it.", json!({}))["ok"], true, "only if the module requires it");
}

// POL-012, S-10: counted before the call, by bytes without a tokenizer; both numbers are reported.
#[test]
fn pol_012_more_input_than_the_module_allows_asks_no_model() {
    let model = Arc::new(answering());
    let manifest = json!({ "runtime_requirements": { "max_input_tokens": 500 } });
    let envelope = ask(model.clone(), &manifest, "Do it.", json!({ "text": "word ".repeat(1_000) }));
    assert_eq!(envelope["error"]["code"], "E1005");
    assert_eq!(envelope["error"]["details"]["allowed_tokens"], 500);
    let counted = envelope["error"]["details"]["counted_tokens"].as_u64().unwrap();
    assert!(counted > 1_250, "{envelope}");
    assert_eq!(model.calls().len(), 0);
    for (allowed, is_enough) in [(counted - 1, false), (counted, true)] {
        let manifest = json!({ "runtime_requirements": { "max_input_tokens": allowed } });
        let envelope = ask(model.clone(), &manifest, "Do it.", json!({ "text": "word ".repeat(1_000) }));
        assert_eq!(envelope["ok"], is_enough, "{allowed} of {counted}: {envelope}");
    }
}

#[test]
fn pol_013_what_is_only_preferred_is_a_warning() {
    let manifest =
        json!({ "runtime_requirements": { "preferred_capabilities": ["json_mode", "telepathy"] } });
    assert_eq!(warnings(manifest, json!({})), ["CAPABILITY: the provider does not offer: `telepathy`"]);
}

// POL-010, D-16: a model that is known to lack a capability is not tried. Unknown words are tolerated.
#[test]
fn pol_010_a_model_that_lacks_what_the_module_needs_is_not_asked() {
    let small = || Arc::new(answering().with(|model| model.lacks = &["reasoning", "vision"]));
    let needs = |words: Value| json!({ "runtime_requirements": { "required_capabilities": words } });
    let model = small();
    let envelope = ask(model.clone(), &needs(json!(["reasoning", "telepathy"])), "Do it.", json!({}));
    let error = &envelope["error"];
    assert_eq!((&error["code"], &error["recoverable"]), (&json!("E4001"), &json!(false)), "{envelope}");
    let details = json!({ "provider": "model", "kind": "unsuitable", "missing": ["reasoning"] });
    assert_eq!(error["details"], details);
    assert!(error["suggestion"].as_str().unwrap().contains("--provider"), "{envelope}");
    assert_eq!(model.calls().len(), 0);
    assert_eq!(ask(small(), &needs(json!(["telepathy"])), "Do it.", json!({}))["ok"], true);
    let other = Arc::new(answering());
    assert_eq!(ask(other, &needs(json!(["reasoning"])), "Do it.", json!({}))["ok"], true);
}

// TIER-005, S-08: the tier decides the temperature.
#[test]
fn tier_005_each_tier_has_its_temperature() {
    let model = Arc::new(answering());
    for tier in ["exec", "decision", "exploration"] {
        ask(model.clone(), &json!({ "tier": tier }), "Do it.", json!({}));
    }
    let temperatures: Vec<f64> = model.calls().iter().map(|call| call.temperature).collect();
    assert_eq!(temperatures, [0.0, 0.2, 0.7]);
}

#[test]
fn s_08_a_seed_reaches_the_provider_and_none_is_made_up() {
    let model = Arc::new(answering());
    let modules = FolderModule::new(module_folder(&json!({ "tier": "decision" }), &open_schema(), "Do it."));
    let host = Host::new(Arc::new(modules), Arc::clone(&model) as Arc<dyn Provider>);
    for seed in [Some(7), None] {
        let mut request = RunRequest::new("sample", json!({}));
        request.options.settings.seed = seed;
        assert!(poll_now(run(&host, request, &mut NullSink)).ok());
    }
    let seeds: Vec<Option<u64>> = model.calls().iter().map(|call| call.seed).collect();
    assert_eq!(seeds, [Some(7), None]);
}

#[test]
fn prompt_013_rules_of_the_prompt_are_not_enforced_by_the_runtime() {
    let prompt = "If `behavior_equivalence` is false, `confidence` is at most 0.7.";
    let envelope = ask(Arc::new(answering()), &json!({ "tier": "decision" }), prompt, json!({}));
    assert_eq!((&envelope["ok"], &envelope["meta"]["confidence"]), (&json!(true), &json!(0.95)));
}

// CAP-011: a medium that would not reach the model ends the run before the model is asked.
#[test]
fn cap_011_media_are_refused_while_nobody_can_take_them() {
    let manifest = json!({ "modalities": { "input": ["image"] } });
    for (input, place) in [
        (json!({ "images": [{ "text": "a" }, { "type": "url", "url": "https://a/b.png" }] }), "/images/1"),
        (json!({ "a/b": { "type": "base64", "media_type": "image/png", "data": "AA==" } }), "/a~1b"),
        (json!({ "deep": { "er": [[{ "type": "file", "path": "x.png" }]] } }), "/deep/er/0/0"),
    ] {
        let model = Arc::new(answering());
        let envelope = ask(model.clone(), &manifest, "Do it.", input.clone());
        assert_eq!(envelope["error"]["code"], "E4011", "{envelope}");
        assert_eq!(envelope["error"]["details"]["path"], place);
        assert_eq!(model.calls().len(), 0);
        let replayed = ask(Arc::new(Replay::text(good().to_string())), &manifest, "Do it.", input);
        assert_eq!(replayed["ok"], true, "a saved reply was written with the media");
    }
}

// CAP-014, MEDIA-002: text passes, and so does an object that only looks like a medium.
#[test]
fn cap_014_media_002_a_module_with_modalities_takes_text_and_others_take_anything() {
    let (none, url): (&[&str], _) = (&[], json!({ "type": "url", "url": "http://10.0.0.1" }));
    let takes = json!({ "modalities": { "input": ["image"] }, "response": { "mode": "streaming" } });
    assert_eq!(warnings(takes.clone(), json!({ "text": "t", "kind": { "type": "url" } })), none);
    let mut remembers = takes;
    remembers["context"] = json!({ "accepts": [{ "type": "last" }] });
    assert_eq!(
        warnings(remembers, json!({ "_context": { "last": url.clone() } })),
        none,
        "context is no input"
    );
    assert_eq!(warnings(json!({}), json!({ "link": url })), none);
}

#[test]
fn media_020_a_model_that_cannot_draw_answers_in_words_and_it_is_said() {
    let manifest = json!({ "modalities": { "output": ["text", "image"] } });
    let expected = "E4011: the provider does not produce media of the category: `image`";
    assert_eq!(warnings(manifest, json!({})), [expected]);
}
