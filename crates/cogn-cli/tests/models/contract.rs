//! The contract of an answer, through the interface of users: `cogn run` as a process, a module in a folder, and a live
//! stub service. No test uses a saved reply or calls the library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_testkit::{Act, FakeModel, Home, ProcessOutput, good_answer, piece, stream_reply};
use image::{DynamicImage, ImageFormat, RgbImage};
use serde_json::{Value, json};

use crate::{answering, ask, home};

fn good(data: Value) -> Value {
    good_answer(&data)
}

/// A home with one module, `./NAME`.
fn with_module(name: &str, more: &Value) -> Home {
    let home = home();
    home.simple_module(&format!("./{name}"), more);
    home
}

/// Runs a module against a service that gives these answers in order.
fn run(run: &Home, module: &str, answers: &[Value], more: &[&str]) -> (ProcessOutput, Vec<String>) {
    let service = FakeModel::script(answers.iter().map(|answer| Act::stream(stream_reply(answer))).collect());
    (ask(run, module, &service.url(), &[&["--input", "{}"], more].concat()), service.raw_requests())
}

fn paths(envelope: &Value) -> Vec<String> {
    let found = envelope.pointer("/error/details/violations").and_then(Value::as_array);
    found.into_iter().flatten().map(|each| each["path"].as_str().unwrap().to_owned()).collect()
}

fn picture(format: ImageFormat) -> String {
    let mut bytes = std::io::Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::new(1, 1)).write_to(&mut bytes, format).unwrap();
    STANDARD.encode(bytes.into_inner())
}

// D-15, MEDIA-017, REPAIR-013, SEC-003: every entry is one medium with one fault; the last ones are valid.
#[test]
fn media_of_answers_are_judged_like_media_of_inputs() {
    let modalities = json!({ "modalities": { "input": ["text"], "output": ["text", "image"] } });
    let home = with_module("painter", &modalities);
    let (png, jpeg) = (picture(ImageFormat::Png), picture(ImageFormat::Jpeg));
    let base64 = |data: &str| json!({ "type": "base64", "media_type": "image/png", "data": data });
    let url = |url: &str| json!({ "type": "url", "media_type": "image/png", "url": url });
    let mut late = url("https://a.example/b.png");
    late["expires_at"] = json!("tomorrow");
    let mut other_sum = base64(&png);
    other_sum["checksum"] = json!({ "algorithm": "crc32", "value": "00000000" });
    let bad = [
        (json!({ "type": "base64", "media_type": "image/png" }), "/data/picture/data"),
        (base64("!!!!"), "/data/picture/data"),
        (base64(&jpeg), "/data/picture/data"),
        (base64(&STANDARD.encode("plain text")), "/data/picture/data"),
        (base64(""), "/data/picture/data"),
        (other_sum, "/data/picture/data"),
        (url("javascript:alert(1)"), "/data/picture/url"),
        (url("http://a.example/b.png"), "/data/picture/url"),
        (url(&format!("data:image/jpeg;base64,{jpeg}")), "/data/picture/url"),
        (url(&format!("data:image/png;base64,{jpeg}")), "/data/picture/url"),
        (json!({ "type": "file", "media_type": "image/png", "path": "/etc/passwd" }), "/data/picture/path"),
        (json!({ "type": "file", "path": "/etc/passwd" }), "/data/picture/path"),
        (json!({ "type": "file", "media_type": "image/png", "path": "../x.png" }), "/data/picture/path"),
        (late, "/data/picture/expires_at"),
    ];
    for (medium, place) in bad {
        let data = json!({ "rationale": "r", "picture": medium });
        let (output, _) = run(&home, "./painter", &[good(data.clone())], &[]);
        let code = output.json["error"]["code"].as_str();
        assert_eq!((output.exit(), code), (1, Some("E3001")), "{medium}: {}", output.all());
        assert_eq!(paths(&output.json), [place], "{medium}");
        assert_eq!(output.json["partial_data"], data, "what the model wrote");
    }
    let mut timed = url("https://a.example/b.png");
    timed["expires_at"] = json!("2027-01-15T09:00:00Z");
    let file = json!({ "type": "file", "media_type": "image/png", "path": "out/b.png" });
    for medium in [base64(&png), timed, url(&format!("data:image/png;base64,{png}")), file] {
        let (output, _) =
            run(&home, "./painter", &[good(json!({ "rationale": "r", "picture": medium }))], &[]);
        assert_eq!(output.exit(), 0, "{medium}: {}", output.all());
        assert_eq!(output.json["data"]["picture"], medium);
    }
    let gif = json!({ "type": "base64", "media_type": "image/gif", "data": "!!!!" });
    let (output, _) = run(&home, "./painter", &[good(json!({ "rationale": "r", "picture": gif }))], &[]);
    assert_eq!(output.json["error"]["code"], "E3006", "MEDIA-018 comes first: {}", output.all());
}

// CAP-011: the provider lacks the feature; the caller is not at fault.
#[test]
fn a_type_that_the_provider_does_not_take_is_not_the_fault_of_the_caller() {
    let modalities = json!({ "modalities": { "input": ["text", "audio"], "output": ["text"] } });
    let home = with_module("listener", &modalities);
    let webm = STANDARD.encode(b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\x82\x84webm");
    let input =
        json!({ "sound": { "type": "base64", "media_type": "audio/webm", "data": webm } }).to_string();
    for (provider, model) in [("gemini", "m"), ("openai", "gpt-4o-audio-preview")] {
        let more = ["--provider", provider, "--base-url", "http://127.0.0.1:9", "--model", model];
        let output = home.cogn(&[&["run", "./listener", "--input", &input][..], &more].concat());
        let error = &output.json["error"];
        assert_eq!(error["code"], "E4011", "{provider}: {}", output.all());
        assert_eq!(error["details"]["media_type"], "audio/webm", "{provider}: {}", output.all());
    }
}

/// Returns an uncompressed black and white PNG, with one bit per pixel: its file is as large as its image.
fn unpacked_png(width: u32, height: u32) -> Vec<u8> {
    let chunk = |kind: &[u8; 4], body: &[u8]| {
        let named = [kind.as_slice(), body].concat();
        let mut hash = crc32fast::Hasher::new();
        hash.update(&named);
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&length, named.as_slice(), &hash.finalize().to_be_bytes()].concat()
    };
    let row = [vec![0], vec![0b1010_0110; width.div_ceil(8).try_into().unwrap()]].concat();
    let rows = row.repeat(height.try_into().unwrap());
    let (mut packed, mut a, mut b) = (vec![0x78, 0x01], 1_u32, 0_u32);
    for (number, block) in rows.chunks(65_535).enumerate() {
        let last = u8::from((number + 1) * 65_535 >= rows.len());
        let length = u16::try_from(block.len()).unwrap();
        packed.extend([[last].as_slice(), &length.to_le_bytes(), &(!length).to_le_bytes(), block].concat());
    }
    for byte in &rows {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    packed.extend((b << 16 | a).to_be_bytes());
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 0, 0, 0, 0]].concat();
    let start = b"\x89PNG\r\n\x1a\n".to_vec();
    [start, chunk(b"IHDR", &header), chunk(b"IDAT", &packed), chunk(b"IEND", b"")].concat()
}

// EXT-MEDIA: up to 67,108,864 pixels and 8192 per side are accepted.
#[test]
fn a_picture_of_fifty_million_pixels_is_looked_at() {
    let modalities = json!({ "modalities": { "input": ["text", "image"], "output": ["text"] } });
    let home = with_module("viewer", &modalities);
    for (size, code) in [((7_100, 7_100), None), ((8_200, 8), Some("E1015")), ((8_200, 8_200), Some("E1017"))]
    {
        home.write("picture.png", unpacked_png(size.0, size.1));
        let input = r#"{"picture": {"type": "file", "path": "PLACE"}}"#
            .replace("PLACE", home.path("picture.png").to_str().unwrap());
        let service = answering(&good(json!({ "rationale": "r" })));
        let usual = ["run", "./viewer", "--input", &input, "--base-url", &service.url(), "--model", "gpt-4o"];
        let output = home.cogn(&usual);
        assert_eq!(output.json["error"]["code"].as_str(), code, "{size:?}: {}", output.all());
    }
}

/// Creates a project with a child that emits `session_state` and a parent that receives it. Returns the parent's
/// envelope and the prompt of its model.
fn family(parent: &Value, prompt: &str) -> (Value, String) {
    let home = home();
    let emits = json!({ "context": { "emits": [{ "type": "session_state", "ttl": 0 }] } });
    home.simple_module("child", &emits);
    home.simple_module("parent", parent);
    home.write("cognitive/modules/parent/prompt.md", prompt);
    let mut child = good(json!({ "rationale": "r" }));
    child["_emitted_context"] = json!({ "session_state": { "note": "UPDATED-BY-CHILD" } });
    let answers = [child, good(json!({ "rationale": "r" }))].map(|answer| Act::stream(stream_reply(&answer)));
    let service = FakeModel::script(answers.to_vec());
    let input = r#"{"_context": {"session_state": {"note": "ORIGINAL"}}}"#;
    let output = ask(&home, "parent", &service.url(), &["--input", input]);
    let asked = service.raw_requests();
    assert_eq!((output.exit(), asked.len()), (0, 2), "{}", output.all());
    (output.json, asked[1].clone())
}

// D-13, CTX-050, CTX-021: by composition and by call, the parent's own model reads the child's state.
#[test]
fn a_parent_sees_what_its_children_changed_and_emits_only_what_it_declares() {
    let requires = json!({ "composition": { "pattern": "sequential", "requires": [{ "name": "child" }] } });
    let call = "Call it.\n\n@call:child($INPUT)\n\nThen answer.";
    for (composition, prompt) in [(requires, "Answer."), (json!({}), call)] {
        let parent = |context: Value| {
            let mut more = composition.clone();
            more["context"] = context;
            family(&more, prompt)
        };
        let accepts = json!([{ "type": "session_state" }]);
        let (envelope, read) = parent(json!({ "accepts": accepts }));
        assert!(read.contains("UPDATED-BY-CHILD") && !read.contains("ORIGINAL"), "{read}");
        assert_eq!(envelope.get("_emitted_context"), None, "{envelope}");
        // A fork stays separate. (CTX-051)
        let (envelope, read) = parent(json!({ "mode": "fork", "accepts": accepts }));
        assert!(read.contains("ORIGINAL") && !read.contains("UPDATED-BY-CHILD"), "{read}");
        assert_eq!(envelope.get("_emitted_context"), None, "{envelope}");
        // A declared state is emitted; a state that is not accepted is not visible.
        let (envelope, read) = parent(json!({ "emits": [{ "type": "session_state", "ttl": 0 }] }));
        assert!(!read.contains("UPDATED-BY-CHILD"), "{read}");
        let emitted = json!({ "session_state": { "note": "UPDATED-BY-CHILD" } });
        assert_eq!(envelope["_emitted_context"], emitted, "{envelope}");
    }
}

// D-11, COMPAT-001, COMPAT-004: refused if the manifest refuses it, completed if the manifest does not say.
#[test]
fn a_module_that_refuses_v21_answers_gets_none() {
    let home = home();
    let refuses = json!({ "compat": { "accepts_v21_payload": false, "runtime_auto_wrap": false } });
    let accepts = json!({ "compat": { "accepts_v21_payload": true, "runtime_auto_wrap": true } });
    for (name, more) in [("refuses", refuses), ("silent", json!({})), ("accepts", accepts)] {
        home.simple_module(&format!("./{name}"), &more);
    }
    let data = json!({ "rationale": "I am guessing.", "confidence": 0.05 });
    let outcome = |module: &str, answer: &Value| {
        let output = run(&home, module, std::slice::from_ref(answer), &[]).0;
        let confidence = output.json["meta"]["confidence"].as_f64().unwrap();
        (output.json["error"]["code"].as_str().map(str::to_owned), confidence)
    };
    let broken = || Some("E3001".to_owned());
    let half = json!({ "ok": true, "data": data });
    assert_eq!(outcome("./refuses", &half), (broken(), 0.0));
    assert_eq!(outcome("./silent", &half), (None, 0.05), "as it is, and no more");
    assert_eq!(outcome("./accepts", &half), (None, 0.05));
    let failed = json!({ "ok": false, "error": { "code": "X1", "message": "No." } });
    assert_eq!(outcome("./refuses", &failed).0, broken());
    assert_eq!(outcome("./silent", &failed).0, Some("X1".to_owned()));
    // A bare payload is wrapped only if that is allowed.
    assert_eq!(outcome("./refuses", &data).0, broken());
    assert_eq!(outcome("./silent", &data).0, broken());
    assert_eq!(outcome("./accepts", &data), (None, 0.05));
    // A wrong value is not a missing one: it is judged as it is.
    let wrong = json!({ "ok": true, "data": { "rationale": "r", "confidence": 7 } });
    assert_eq!(outcome("./silent", &wrong).0, broken());
    let none = json!({ "ok": true, "data": { "rationale": "r" } });
    assert_eq!(outcome("./silent", &none), (None, 0.5));
    let partial = json!({ "ok": true, "meta": { "risk": "low" }, "data": data });
    assert_eq!(outcome("./refuses", &partial), (None, 0.05), "a `meta` that lacks something is repaired");
}

// META-014, C-44: facts about the run that a model invents are replaced by those of the runtime.
#[test]
fn meta_014_the_runtime_says_itself_how_a_run_went() {
    let home = with_module("plain", &json!({}));
    let mut answer = good(json!({ "rationale": "r" }));
    let invented = json!({ "trace_id": "mine", "model": "made/up", "latency_ms": 99_999_999, "processing_time_ms": 88_888_888 });
    answer["meta"].as_object_mut().unwrap().extend(invented.as_object().unwrap().clone());
    let (output, _) = run(&home, "./plain", &[answer], &[]);
    let meta = &output.json["meta"];
    assert_eq!(meta["model"], "openai/stub-1", "{}", output.all());
    assert_eq!(meta["trace_id"].as_str().unwrap().len(), 36, "{meta}");
    let (whole, model) = (meta["latency_ms"].as_f64().unwrap(), meta["processing_time_ms"].as_u64().unwrap());
    let model = f64::from(u32::try_from(model).unwrap());
    assert!(whole < 80_000_000.0 && model <= whole, "the model took a part of the whole: {meta}");
    let output = ask(&home, "./plain", "http://127.0.0.1:9/v1", &["--input", "[]"]);
    assert_eq!(output.json["meta"].get("processing_time_ms"), None, "no model was asked: {}", output.all());
}

// EXT-CONF: repair does not change types (REPAIR-008), so a wrong type is a fault of the answer.
#[test]
fn ext_conf_members_of_meta_are_typed() {
    let home = with_module("plain", &json!({}));
    let outcome = |name: &str, value: Value| {
        let mut answer = good(json!({ "rationale": "r" }));
        answer["meta"][name] = value;
        run(&home, "./plain", &[answer], &[]).0.json
    };
    let quality = json!({ "prompt_adherence": 0.9, "aesthetic_score": 0.5, "technical_quality": 1 });
    assert_eq!(outcome("generation_quality", quality.clone())["meta"]["generation_quality"], quality);
    for (name, wrong) in [
        ("generation_quality", json!("x")),
        ("temporal_confidence", json!({ "overall": 2 })),
        ("confidence_aggregation", json!("median")),
    ] {
        let envelope = outcome(name, wrong);
        assert_eq!(envelope["error"]["code"], "E3001", "{envelope}");
        assert_eq!(paths(&envelope), [format!("/meta/{name}")]);
    }
}

// DATA-003, DATA-004: a long rationale is returned byte for byte, and neither `rationale` nor `explain` replaces the
// other.
#[test]
fn data_003_004_rationale_and_explain_both_come_back_whole() {
    let home = with_module("plain", &json!({}));
    let long = "Zwölf \"Gründe\"\n\t☕ \u{1f600} ".repeat(40_000);
    assert!(long.len() > 1 << 20);
    let (output, _) = run(&home, "./plain", &[good(json!({ "rationale": long }))], &[]);
    assert_eq!(output.json["data"]["rationale"].as_str(), Some(long.as_str()));
    assert_eq!(output.json["meta"]["explain"], "e");
    // A missing `rationale` is not replaced; a missing `explain` is filled by the repair.
    let (output, _) = run(&home, "./plain", &[good(json!({ "answer": 1 }))], &[]);
    assert_eq!(output.json["error"]["code"], "E3001", "{}", output.all());
    let mut silent = good(json!({ "rationale": "Because." }));
    silent["meta"].as_object_mut().unwrap().shift_remove("explain");
    let (output, _) = run(&home, "./plain", std::slice::from_ref(&silent), &[]);
    assert_eq!((output.exit(), output.json["meta"]["explain"].as_str()), (0, Some("Because.")));
    assert_eq!(output.json["meta"]["warnings"][0]["code"], "REPAIRED", "{}", output.all());
    // Without repair both are required.
    for broken in [silent, good(json!({ "answer": 1 }))] {
        home.write("answer.json", broken.to_string());
        assert_eq!(home.cogn(&["check", "answer.json"]).exit(), 1, "{broken}");
    }
}

// ENV-010: one failure of each family, each a complete envelope with a usable control plane.
#[test]
fn env_010_every_failure_is_a_whole_envelope() {
    let home = home();
    let closed = json!({ "input": { "type": "object", "required": ["q"] }, "data": { "type": "object" } });
    home.module(
        "./asks",
        "name: asks\nversion: 1.0.0\nresponsibility: Ask\ntier: decision\n",
        "Answer.",
        &closed,
    );
    home.simple_module("./plain", &json!({}));
    home.simple_module("./exec", &json!({ "tier": "exec" }));
    home.simple_module("./ring", &json!({ "composition": { "requires": [{ "name": "./ring" }] } }));
    home.simple_module("./private", &json!({ "invocation": { "user_invocable": false } }));
    let [fine, unsure] = ["r", ""].map(|text| answering(&good(json!({ "rationale": text }))));
    let refuses = FakeModel::script(vec![Act::error(401, "invalid_api_key", "No.")]);
    let prose = FakeModel::script(vec![Act::stream(piece("No JSON.", Some("stop")) + "data: [DONE]\n\n")]);
    for (module, service, codes) in [
        ("./asks", &fine, ["E1001"].as_slice()),
        ("./nowhere", &fine, &["E4006"]),
        ("./private", &fine, &["E4007"]),
        ("./ring", &fine, &["E4004", "E4000"]),
        ("./plain", &unsure, &["E3001", "E3003"]),
        ("./plain", &refuses, &["E4001"]),
        ("./plain", &prose, &["E1000"]),
    ] {
        let output = ask(&home, module, &service.url(), &["--input", "{}"]);
        let code = output.json["error"]["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{module}: {}", output.all());
        let meta = &output.json["meta"];
        assert!(
            meta["confidence"].as_f64().is_some()
                && meta["explain"].as_str().is_some_and(|text| !text.is_empty())
        );
        assert!(["none", "low", "medium", "high"].contains(&meta["risk"].as_str().unwrap()), "{meta}");
        home.write("answer.json", &output.out);
        home.cogn(&["check", "answer.json"]).expect_exit(0);
    }
}

// SCH-003: Draft-07 resolves a schema by its `$id`; nothing is fetched and no file is searched.
#[test]
fn sch_003_a_module_may_refer_to_schemas_by_their_ids() {
    let home = home();
    let schema = json!({
        "$id": "https://example.com/order/schema.json",
        "input": { "type": "object" },
        "data": { "type": "object", "required": ["rationale"], "properties": {
            "count": { "$ref": "#num" },
            "line": { "$ref": "line.json" },
            "again": { "$ref": "https://example.com/order/line.json#/properties/count" },
            "urn": { "$ref": "urn:example:short" },
        } },
        "$defs": {
            "number": { "$id": "#num", "type": "integer" },
            "line": { "$id": "line.json", "type": "object", "properties": { "count": { "$ref": "schema.json#num" } } },
            "short": { "$id": "urn:example:short", "type": "string", "maxLength": 3 },
        },
    });
    home.simple_module("./orders", &json!({}));
    home.write("orders/schema.json", schema.to_string());
    home.cogn(&["validate", "./orders"]).expect_exit(0);
    let fine = json!({ "rationale": "r", "count": 1, "line": { "count": 2 }, "again": 3, "urn": "abc" });
    let (output, asked) = run(&home, "./orders", &[good(fine.clone())], &[]);
    assert_eq!((output.exit(), &output.json["data"]), (0, &fine), "{}", output.all());
    assert!(
        !asked[0].contains("line.json"),
        "the service is given no reference that it cannot follow: {}",
        asked[0]
    );
    for (member, wrong) in [
        ("count", json!("1")),
        ("line", json!({ "count": "2" })),
        ("again", json!("3")),
        ("urn", json!("long")),
    ] {
        let mut data = fine.clone();
        data[member] = wrong;
        let (output, _) = run(&home, "./orders", &[good(data)], &[]);
        assert_eq!(output.json["error"]["code"], "E3001", "{member}: {}", output.all());
    }
}

// CAP-002: the declared media of a provider are those that it accepts: others are E4011, before any call.
#[test]
fn cap_002_capabilities_speak_for_the_configured_provider() {
    let kinds = ["image", "audio", "video", "document"];
    let modalities = json!({ "modalities": { "input": ["text", "image", "audio", "video", "document"] } });
    let home = with_module("senses", &modalities);
    let declared = |provider: &str| {
        let output = home.cogn(&["capabilities", "--provider", provider]);
        output.json["capabilities"]["multimodal"].clone()
    };
    assert_eq!(declared("ollama"), json!({ "input": ["image", "document"], "output": [] }));
    assert_eq!(declared("embedded"), json!({ "input": ["document"], "output": [] }));
    assert_eq!(declared("gemini")["input"], json!(kinds));
    let types = ["image/png", "audio/mpeg", "video/mp4", "application/pdf"];
    for provider in ["ollama", "openai", "anthropic", "gemini"] {
        let listed = declared(provider)["input"].clone();
        for (kind, media_type) in kinds.iter().zip(types) {
            // The bytes are irrelevant: only the refusal of the kind matters.
            let item = json!({ "type": "base64", "media_type": media_type, "data": "AAAA" });
            let input = json!({ "item": item }).to_string();
            let more = ["--provider", provider, "--model", "m", "--base-url", "http://127.0.0.1:9"];
            let output = home.cogn(&[&["run", "./senses", "--input", &input][..], &more].concat());
            let refused = output.json["error"]["code"] == "E4011";
            let is_listed = listed.as_array().unwrap().iter().any(|each| each == kind);
            // An unknown model may support less than the default model of its service.
            assert!(refused || is_listed, "{provider} {kind}: {}", output.all());
            assert!(!(refused && is_listed) || provider == "openai", "{provider} {kind}: {}", output.all());
        }
    }
}

// SCH-003, D-25: the dialect that `schema.json` declares is the one that answers are judged by.
#[test]
fn sch_003_the_declared_dialect_judges_answers() {
    const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
    let home = home();
    for (keyword, x, right, wrong) in [
        (
            "prefixItems",
            json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }] }),
            json!(["a", 1]),
            json!([1, "a"]),
        ),
        (
            "items",
            json!({ "prefixItems": [{ "type": "string" }], "items": false }),
            json!(["a"]),
            json!(["a", 2]),
        ),
        (
            "unevaluatedProperties",
            json!({ "allOf": [{ "properties": { "a": { "type": "integer" } } }], "unevaluatedProperties": false }),
            json!({ "a": 1 }),
            json!({ "a": 1, "b": 2 }),
        ),
        (
            "dependentRequired",
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1, "b": 1 }),
            json!({ "a": 1 }),
        ),
        (
            "minContains",
            json!({ "contains": { "const": 1 }, "minContains": 2 }),
            json!([1, 1]),
            json!([1, 2]),
        ),
        ("$ref", json!({ "$ref": "#/$defs/t", "maxLength": 2 }), json!("ab"), json!("abcdef")),
    ] {
        let mut schema = json!({
            "$schema": DIALECT, "$defs": { "t": { "type": "string" } }, "input": { "type": "object" },
            "data": { "type": "object", "required": ["rationale", "x"], "properties": { "rationale": { "type": "string" }, "x": x } },
        });
        home.simple_module("./modern", &json!({}));
        home.write("modern/schema.json", schema.to_string());
        home.cogn(&["validate", "./modern"]).expect_exit(0);
        for (value, code) in [(right, Value::Null), (wrong, json!("E3001"))] {
            let data = json!({ "rationale": "r", "x": value });
            let (output, _) = run(&home, "./modern", &[good(data)], &[]);
            assert_eq!(output.json["error"]["code"], code, "{keyword}: {}", output.all());
        }
        // Without the dialect, the keyword has no effect, and `validate` says so.
        if keyword != "$ref" && keyword != "items" {
            schema.as_object_mut().unwrap().shift_remove("$schema");
            home.write("modern/schema.json", schema.to_string());
            let output = home.cogn(&["validate", "./modern"]).expect_exit(0);
            assert!(output.all().contains(&format!("`{keyword}` has no effect")), "{}", output.all());
            home.cogn(&["validate", "./modern", "--v22"]).expect_exit(1);
        }
    }
    let list =
        json!({ "$schema": DIALECT, "input": {}, "data": { "properties": { "x": { "items": [{}] } } } });
    home.write("modern/schema.json", list.to_string());
    let output = home.cogn(&["validate", "./modern"]).expect_exit(1);
    assert!(
        output.all().contains("not a 2020-12 schema") && output.all().contains("prefixItems"),
        "{}",
        output.all()
    );
}
