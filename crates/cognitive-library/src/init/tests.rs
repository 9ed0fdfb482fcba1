//! Tests every tier with every feature, alone and together: the files of `init` must satisfy their own contract.

use serde_json::Value;

use cognitive_contract::manifest::{
    EnumStrategy, InputModality, Manifest, Mode, Pattern, Tier, unknown_keys,
};
use cognitive_contract::tier::Gate;
use cognitive_contract::{Enforcement, Envelope, Module, risk};

use super::*;
use crate::folder::Folder;
use crate::{bundled_modules, load, yaml};

const TIERS: [Tier; 3] = [Tier::Exec, Tier::Decision, Tier::Exploration];
const FEATURES: [Feature; 7] = [
    Feature::Streaming,
    Feature::Media(InputModality::Image),
    Feature::Media(InputModality::Audio),
    Feature::Media(InputModality::Video),
    Feature::Media(InputModality::Document),
    Feature::Context,
    Feature::Compose,
];

struct Made {
    template: Template,
    files: BTreeMap<String, String>,
    module: Module,
}

impl Made {
    fn new(template: Template) -> Self {
        let files = files(&template).unwrap();
        let bytes = files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes())).collect();
        let module = load(&Folder::memory(&template.name, bytes))
            .unwrap_or_else(|error| panic!("{template:?}: {}", error.into_failure().message()));
        Self { template, files, module }
    }

    fn json(&self, path: &str) -> Value {
        cognitive_contract::json::parse(&self.files[path]).unwrap()
    }

    fn manifest(&self) -> &Manifest {
        &self.module.manifest
    }

    fn accepts(&self, envelope: &Value) {
        let mut found = self.module.envelope_violations(envelope, Enforcement::Full);
        found.extend(self.module.rule_violations(envelope));
        assert!(found.is_empty(), "{:?}: {found:?}", self.template);
    }
}

/// Each tier plain, with each feature alone, and with all of them.
fn all_templates() -> Vec<Template> {
    let mut templates = Vec::new();
    for tier in TIERS {
        let plain = Template::new("my-module", tier).in_full();
        templates.extend(FEATURES.map(|feature| plain.clone().with(feature)));
        templates.push(FEATURES.into_iter().fold(plain.clone(), Template::with));
        templates.push(plain);
    }
    templates
}

fn every_module() -> impl Iterator<Item = Made> {
    all_templates().into_iter().map(Made::new)
}

#[test]
fn every_template_loads_without_a_warning_and_knows_every_key() {
    for made in every_module() {
        let manifest = yaml::parse(&made.files["module.yaml"]).unwrap();
        assert_eq!(unknown_keys(&manifest).count(), 0, "{:?}", made.template);
        assert!(made.module.warnings.is_empty());
        assert_eq!(made.manifest().name, "my-module");
        assert_eq!(made.manifest().tier, made.template.tier);
    }
}

#[test]
fn every_example_keeps_the_contract() {
    for made in every_module() {
        let input = made.json("tests/example.input.json");
        assert!(made.module.contract.input().accepts(&input), "{:?}", made.template);
        let reply = made.json("tests/example.reply.txt");
        made.accepts(&reply);
        // The runtime neither raises the stated risk nor stops the answer at the gate of its tier.
        let envelope = Envelope::from_value(reply.clone()).unwrap();
        let data = reply["data"].as_object().unwrap();
        let stated = &envelope.meta().risk;
        assert_eq!(risk::settle(stated, data, made.manifest().meta.risk_rule), *stated);
        assert!(Gate::default().refusal(made.template.tier, &envelope).is_none());
        assert!(Gate::default().warning(made.template.tier, &envelope).is_none());
    }
}

#[test]
fn test_001_every_golden_case_is_complete_and_its_reply_satisfies_it() {
    for made in every_module() {
        let [case] = made.manifest().tests.as_slice() else { panic!("one case") };
        assert!(made.files.contains_key(&case.input));
        let expected = made.json(&case.expected);
        let reply = made.json("tests/example.reply.txt");
        assert_eq!(expected["ok"], reply["ok"]);
        for (name, value) in expected.as_object().unwrap() {
            if name != "ok" && !name.starts_with('_') {
                assert_eq!(reply["data"][name], *value);
            }
        }
        let rules = &expected["_validate"];
        for name in rules["required"].as_array().into_iter().flatten() {
            assert!(reply["data"].get(name.as_str().unwrap()).is_some());
        }
        for word in rules["contains"].as_array().into_iter().flatten() {
            assert!(made.files["tests/example.reply.txt"].contains(word.as_str().unwrap()));
        }
        let confidence = reply["meta"]["confidence"].as_f64().unwrap();
        assert!(rules["confidence_min"].as_f64().is_none_or(|least| confidence >= least));
    }
}

#[test]
fn prompt_008_every_example_in_a_prompt_keeps_the_contract() {
    for made in every_module() {
        let prompt = &made.files["prompt.md"];
        let blocks: Vec<Value> = prompt
            .split("```json\n")
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap())
            .filter(|block| block.trim() != "$INPUT")
            .map(|block| cognitive_contract::json::parse(block).unwrap())
            .collect();
        assert_eq!(blocks.len(), 2);
        for block in &blocks {
            made.accepts(block);
        }
        assert_eq!((&blocks[0]["ok"], &blocks[1]["ok"]), (&Value::Bool(true), &Value::Bool(false)));
        let success = Envelope::from_value(blocks[0].clone()).unwrap();
        assert!(Gate::default().refusal(made.template.tier, &success).is_none());
    }
}

#[test]
fn val_010_to_015_hold_by_construction() {
    for made in every_module() {
        let manifest = yaml::parse(&made.files["module.yaml"]).unwrap();
        for key in ["name", "version", "responsibility", "tier", "excludes", "overflow", "enums"] {
            assert!(manifest.get(key).is_some(), "{key}");
        }
        assert!(made.files["prompt.md"].contains("envelope"));
        let schema = made.json("schema.json");
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        assert_eq!(schema["meta"]["required"], serde_json::json!(["confidence", "risk", "explain"]));
        assert_eq!(schema["meta"]["properties"]["explain"]["maxLength"], 280);
        let data = &schema["data"];
        assert_eq!(data["properties"].as_object().unwrap().keys().next().unwrap(), "rationale");
        assert_eq!(data["properties"]["rationale"]["minLength"], 1);
        assert_eq!(data["required"][0], "rationale");
        let limit = schema["$defs"]["extensions"]["properties"]["insights"]["maxItems"].as_u64();
        let overflow = made.manifest().overflow;
        assert_eq!(limit, overflow.enabled.then_some(overflow.max_items));
    }
}

/// Calls `each` with every object inside a value.
fn walk(value: &Value, each: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            each(members);
            members.values().for_each(|member| walk(member, each));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, each)),
        _ => {}
    }
}

#[test]
fn nothing_stands_beside_a_ref_and_every_definition_is_used() {
    for made in every_module() {
        let schema = made.json("schema.json");
        let mut used = BTreeSet::new();
        walk(&schema, &mut |members| {
            if let Some(target) = members.get("$ref") {
                assert_eq!(members.len(), 1);
                used.insert(target.as_str().unwrap().to_owned());
            }
        });
        let defined = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
        let defined: BTreeSet<String> = defined.map(|(name, _)| format!("#/$defs/{name}")).collect();
        assert_eq!(used, defined);
    }
}

#[test]
fn texts_are_complete_and_tidy() {
    for made in every_module() {
        for (path, text) in &made.files {
            assert!(!text.contains("<<"), "{path}: a mark was not filled in");
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}");
            assert!(!text.contains("\n\n\n"), "{path}: two empty lines");
            assert!(text.lines().all(|line| line == line.trim_end()), "{path}: space at the end of a line");
        }
        assert!(made.files["prompt.md"].starts_with("# My Module\n"));
        assert!(made.files["module.yaml"].lines().all(|line| line.len() <= 115));
    }
}

#[test]
fn every_block_of_a_manifest_is_explained() {
    for made in every_module() {
        for block in made.files["module.yaml"].split("\n\n") {
            assert!(block.starts_with("# "), "{block}");
        }
    }
}

#[test]
fn tier_001_007_an_exec_module_is_strict() {
    for made in every_module().filter(|made| made.template.tier == Tier::Exec) {
        assert_eq!(made.manifest().enums.strategy, EnumStrategy::Strict);
        assert!(!made.manifest().overflow.enabled);
        let data = &made.json("schema.json")["data"];
        let properties: Vec<&str> =
            data["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(data["required"], serde_json::json!(properties));
        assert_eq!(data["additionalProperties"], false);
        walk(data, &mut |members| assert!(!members.contains_key("oneOf")));
    }
}

#[test]
fn tier_006_the_written_freedom_is_that_of_the_tier() {
    for tier in TIERS {
        let made = Made::new(Template::new("m", tier).in_full());
        let plain = serde_json::json!({ "tier": tier });
        let by_default = Manifest::from_value(&plain, made.module.format).unwrap();
        assert_eq!(made.manifest().schema_strictness, by_default.schema_strictness);
        assert_eq!(made.manifest().overflow, by_default.overflow);
        assert_eq!(made.manifest().enums, by_default.enums);
        assert_eq!(made.manifest().policies, by_default.policies);
    }
}

#[test]
fn streaming_is_offered_as_it_suits_the_tier() {
    let mode = |tier| {
        Made::new(Template::new("m", tier).in_full().with(Feature::Streaming)).manifest().response.mode
    };
    assert_eq!(TIERS.map(mode), [Mode::Streaming, Mode::Both, Mode::Streaming]);
}

#[test]
fn media_are_declared_required_and_shown() {
    for (kind, property) in [
        (InputModality::Image, "images"),
        (InputModality::Audio, "recordings"),
        (InputModality::Video, "videos"),
        (InputModality::Document, "documents"),
    ] {
        let made = Made::new(Template::new("m", Tier::Decision).in_full().with(Feature::Media(kind)));
        assert!(made.manifest().modalities.declared);
        assert_eq!(made.manifest().modalities.input, [InputModality::Text, kind]);
        assert!(made.files["prompt.md"].contains("\n$MEDIA_INPUTS\n"));
        assert!(made.files["prompt.md"].contains(&format!("- `{property}`: ")));
        let mut input = made.json("tests/example.input.json");
        input[property] = serde_json::json!([]);
        assert!(!made.module.contract.input().accepts(&input));
        for item in [
            serde_json::json!({ "type": "file", "path": "a.png" }),
            serde_json::json!({ "type": "upload_ref", "upload_id": "u" }),
            serde_json::json!({ "type": "url", "url": "https://example.com/a" }),
        ] {
            input[property] = serde_json::json!([item]);
            assert!(made.module.contract.input().accepts(&input));
        }
    }
    let text = Made::new(Template::new("m", Tier::Exec).in_full().with(Feature::Media(InputModality::Text)));
    assert!(!text.manifest().modalities.declared);
}

#[test]
fn media_016_a_document_may_come_as_base64() {
    let made =
        Made::new(Template::new("m", Tier::Exec).in_full().with(Feature::Media(InputModality::Document)));
    let pdf = serde_json::json!({ "type": "base64", "media_type": "application/pdf", "data": "JVBERi0=" });
    let input = serde_json::json!({ "text": "t", "documents": [pdf] });
    assert!(made.module.contract.input().accepts(&input));
}

fn base64(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    assert_eq!(text.len() % 4, 0);
    for each in text.trim_end_matches('=').chars() {
        bits = bits << 6 | u32::try_from(alphabet.find(each).unwrap()).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held & 0xff).unwrap());
        }
    }
    bytes
}

#[test]
fn the_example_media_are_what_they_say() {
    let with = |kind| Made::new(Template::new("m", Tier::Exec).in_full().with(Feature::Media(kind)));
    let image = with(InputModality::Image).json("tests/example.input.json");
    let png = base64(image["images"][0]["data"].as_str().unwrap());
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(png[16..24], [0, 0, 0, 16, 0, 0, 0, 16]);
    assert!(png.ends_with(b"IEND\xae\x42\x60\x82"));
    let audio = with(InputModality::Audio).json("tests/example.input.json");
    let wav = base64(audio["recordings"][0]["data"].as_str().unwrap());
    assert!(wav.starts_with(b"RIFF") && wav[8..16] == *b"WAVEfmt ");
    let number = |at: usize| u32::from_le_bytes(wav[at..at + 4].try_into().unwrap());
    // Bytes of audio against bytes per second: a tenth of a second, with nothing missing at the end.
    assert_eq!(number(40) * 10, number(28));
    assert_eq!(wav.len(), 44 + number(40) as usize);
    assert_eq!(number(4) as usize, wav.len() - 8);
}

#[test]
fn ctx_011_012_020_context_is_declared_on_both_sides() {
    let made = Made::new(Template::new("m", Tier::Decision).in_full().with(Feature::Context));
    let context = &made.manifest().context;
    let accepts: Vec<&str> = context.accepts.iter().map(|each| each.kind.as_str()).collect();
    assert_eq!(accepts, ["conversation_history", "session_state"]);
    assert_eq!(context.accepts[0].max_turns, Some(10));
    assert_eq!((context.emits[0].kind.as_str(), context.emits[0].ttl), ("session_state", 3600));
    let schema = made.json("schema.json");
    assert_eq!(schema["$defs"]["conversation_history"]["maxItems"], 10);
    let mut input = made.json("tests/example.input.json");
    input["_context"]["conversation_history"][0]["role"] = "tool".into();
    assert!(!made.module.contract.input().accepts(&input));
    input["_context"] = serde_json::json!({});
    assert!(made.module.contract.input().accepts(&input));
    let reply = made.json("tests/example.reply.txt");
    let emitted: Vec<&String> = reply["_emitted_context"].as_object().unwrap().keys().collect();
    assert_eq!(emitted, ["session_state"]);
}

#[test]
fn comp_001_010_the_other_module_exists_and_takes_what_flows_to_it() {
    for name in ["my-module", "summarizer"] {
        let made = Made::new(Template::new(name, Tier::Decision).in_full().with(Feature::Compose));
        let composition = made.manifest().composition.clone().unwrap();
        assert_eq!(composition.pattern, Some(Pattern::Sequential));
        let [part] = composition.requires.unwrap().try_into().unwrap();
        assert_ne!(part.name, name, "a module that calls itself is a circle");
        assert!(part.optional);
        let other = load(&bundled_modules::find(&part.name).unwrap()).unwrap();
        assert!(part.version.unwrap() == "^1.0.0" && other.manifest.version.starts_with("1."));
        // The mapping turns our example into its input, and the prompt reads a field that its data has.
        let [flow] = composition.dataflow.unwrap().try_into().unwrap();
        assert_eq!(flow.mapping.unwrap(), BTreeMap::from([("text".to_owned(), "$.text".to_owned())]));
        let mapped = serde_json::json!({ "text": made.json("tests/example.input.json")["text"] });
        assert!(other.contract.input().accepts(&mapped));
        let prompt = &made.files["prompt.md"];
        let (_, path) = prompt.split_once(&format!("{{{{{}.data.", part.name)).unwrap();
        let field = path.split_once("}}").unwrap().0;
        assert!(other.contract.data().schema()["properties"].get(field).is_some());
    }
}

#[test]
fn words_that_yaml_takes_for_something_else_are_names_too() {
    for name in
        ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "e1", "inf", "nan", "a--", "x0x1f"]
    {
        assert_eq!(Made::new(Template::new(name, Tier::Exec).in_full()).manifest().name, name);
    }
    let long = "a".repeat(64);
    assert_eq!(Made::new(Template::new(&*long, Tier::Exec)).manifest().name, long);
    assert!(files(&Template::new(format!("{long}a"), Tier::Exec)).is_err());
}

#[test]
fn a_bad_name_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["My Module", "../escape", "", ".hidden", "a/b", "a_b"] {
        let error = create(dir.path(), &Template::new(name, Tier::Exec)).unwrap_err();
        assert!(matches!(error, InitError::Name { .. }), "{error}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_created_folder_loads_from_disk_and_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let template = Template::new("my-module", Tier::Exploration).with(Feature::Context);
    let made = create(dir.path(), &template).unwrap();
    assert_eq!(load(&Folder::Disk(made.clone())).unwrap().manifest.name, "my-module");
    for (path, text) in files(&template).unwrap() {
        assert_eq!(std::fs::read_to_string(made.join(path)).unwrap(), text);
    }
    std::fs::write(made.join("prompt.md"), "mine").unwrap();
    let again = create(dir.path(), &template).unwrap_err();
    assert!(matches!(again, InitError::Exists { .. }));
    assert_eq!(std::fs::read_to_string(made.join("prompt.md")).unwrap(), "mine");
}

/// META-002, D-17: every explanation of confidence, for models and people, says the same.
#[test]
fn meta_002_confidence_is_how_sure_a_module_is_of_having_met_its_contract() {
    let said = |text: &str| text.contains("how sure you are of having met this contract");
    let claims =
        ["right and complete", "complete and correct", "probability of", "how likely", "is correct)"];
    let judge = |what: &str, prompt: &str| {
        assert!(said(prompt), "{what} does not say what confidence is");
        for claim in claims {
            assert!(!prompt.contains(claim), "{what} speaks of `{claim}`");
        }
    };
    let described = "How sure the module is of having met its declared contract";
    let of_its_part = "How sure its least certain part is of having met its declared contract";
    for made in every_module() {
        judge("a template", &made.files["prompt.md"]);
        let schema = made.json("schema.json");
        let text = schema["meta"]["properties"]["confidence"]["description"].as_str().unwrap();
        assert!(text.starts_with(described), "{text}");
    }
    for name in bundled_modules::names() {
        let folder = bundled_modules::find(name).unwrap();
        judge(name, &folder.read("prompt.md", 1 << 20).unwrap());
        let schema = cognitive_contract::json::parse(&folder.read("schema.json", 1 << 20).unwrap()).unwrap();
        let text = schema["meta"]["properties"]["confidence"]["description"].as_str().unwrap();
        assert!(text.starts_with(described) || text.starts_with(of_its_part), "{name}: {text}");
    }
    let old = "name: old\nversion: 1.0.0\nresponsibility: r\nexcludes: [x]\n";
    let schema = r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#;
    let files = [("module.yaml", old), ("prompt.md", "Do the work.\n"), ("schema.json", schema)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let plan = crate::migrate::plan(&Folder::memory("old", BTreeMap::from(files))).unwrap();
    judge("a migrated module", &plan.files["prompt.md"]);
}

#[test]
fn the_minimal_form_is_short_complete_and_strictly_valid() {
    for tier in TIERS {
        for streaming in [false, true] {
            let plain = Template::new("my-module", tier);
            let template = if streaming { plain.with(Feature::Streaming) } else { plain };
            assert!(template.is_minimal());
            let made = Made::new(template);
            let lines = |file: &str| made.files[file].lines().count();
            assert!(lines("module.yaml") <= 8 && lines("prompt.md") <= 4 && lines("schema.json") <= 29);
            assert!(made.files["prompt.md"].contains("$ENVELOPE"));
            made.accepts(&made.json("tests/example.reply.txt"));
            assert_eq!(made.manifest().tier, tier);
            assert_eq!(made.files["module.yaml"].contains("response: {mode: "), streaming);
            let full = Made::new(made.template.clone().in_full());
            assert_eq!(made.manifest().response.mode, full.manifest().response.mode);
        }
    }
    assert!(!Template::new("m", Tier::Exec).with(Feature::Compose).is_minimal());
    assert!(!Template::new("m", Tier::Exec).in_full().is_minimal());
}

#[test]
fn val_010_to_015_every_form_is_valid_and_complete_without_a_warning() {
    let library = crate::Library::default();
    let minimal = TIERS.into_iter().map(|tier| Template::new("my-module", tier));
    for mut template in all_templates().into_iter().chain(minimal) {
        template.editor_schema = Some("../../../.cogn/schemas/module.json".to_owned());
        let files = files(&template).unwrap();
        assert!(
            files["module.yaml"]
                .starts_with("# yaml-language-server: $schema=../../../.cogn/schemas/module.json\n")
        );
        let bytes = files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect();
        let report =
            crate::validate_in(&library, &Folder::memory(&template.name, bytes), crate::Mode::Strict);
        let found: Vec<String> = report.findings.iter().map(crate::Finding::summary).collect();
        assert!(found.is_empty(), "{template:?}: {found:#?}");
    }
}
