//! Features in pairs: random manifests with random answers. The same replies give the same envelope at once, as an
//! assembled stream, and from a recording, and every envelope keeps the published schema.
//!
//! `COGN_PAIRS_CASES=20000` sets the number of cases. `COGN_PAIRS_DUMP=FILE` writes the envelopes line by line, so that
//! other programs can judge them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;

use cognitive_contract::envelope_schema::json_schema;
use cognitive_contract::ports::{DecodeMode, Finish, ModelEnd, NullSink, ProviderError};
use cognitive_contract::stream::{Assembler, Chunk, check_log};
use cognitive_runtime::{Delivery, Host, ReplyRecorder, RunRequest, run, stream};
use cognitive_schema::{SchemaTarget, accepts};
use cognitive_testkit::{FakeProvider, NamedModules, SeededRandom, poll_now};
use serde_json::{Value, json};

/// One run: its modules, its model, and its request.
struct PairCase {
    modules: Arc<NamedModules>,
    provider: Arc<FakeProvider>,
    strict_parse: bool,
    /// The choice on each axis.
    axes: Vec<(String, String)>,
    /// The manifests and replies, for a report.
    about: String,
}

/// The settings of the root module that are drawn, by section and name.
const SETTINGS: [(&str, &str); 13] = [
    ("", "tier"),
    ("", "schema_strictness"),
    ("overflow", "enabled"),
    ("overflow", "max_items"),
    ("overflow", "recoverable"),
    ("overflow", "require_suggested_mapping"),
    ("enums", "strategy"),
    ("compat", "accepts_v21_payload"),
    ("compat", "runtime_auto_wrap"),
    ("failure", "partial_allowed"),
    ("meta", "risk_rule"),
    ("response", "chunk_type"),
    ("response", "mode"),
];

/// The values of all settings of a manifest. An absent one has its default.
fn settings(manifest: &Value) -> Vec<(String, String)> {
    let value = |section: &str, name: &str| match section {
        "" => manifest[name].to_string(),
        section => manifest[section][name].to_string(),
    };
    SETTINGS.iter().map(|(section, name)| (format!("{section}.{name}"), value(section, name))).collect()
}

/// The pairs of choices on two axes that were seen.
#[derive(Default)]
struct SeenPairs {
    values: BTreeMap<String, BTreeSet<String>>,
    pairs: BTreeSet<[(String, String); 2]>,
}

impl SeenPairs {
    fn add(&mut self, axes: &[(String, String)]) {
        for (at, (axis, value)) in axes.iter().enumerate() {
            self.values.entry(axis.clone()).or_default().insert(value.clone());
            self.pairs.extend(axes[..at].iter().map(|other| [other.clone(), (axis.clone(), value.clone())]));
        }
    }

    /// The number of pairs that the seen values can form.
    fn possible(&self) -> usize {
        let counts: Vec<usize> = self.values.values().map(BTreeSet::len).collect();
        let sum: usize = counts.iter().sum();
        (sum * sum - counts.iter().map(|count| count * count).sum::<usize>()) / 2
    }
}

fn one<T: Clone>(random: &mut SeededRandom, of: &[T]) -> T {
    of[random.index(of.len())].clone()
}

/// Sets a member of a manifest, or leaves it to the default.
fn perhaps(random: &mut SeededRandom, manifest: &mut Value, section: &str, name: &str, of: &[Value]) {
    if random.next_below(3) > 0 {
        let value = one(random, of);
        if section.is_empty() {
            manifest[name] = value;
        } else {
            manifest[section][name] = value;
        }
    }
}

fn manifest(random: &mut SeededRandom) -> Value {
    let mut manifest = json!({ "tier": one(random, &["exec", "decision", "decision", "exploration"]) });
    let (yes_no, words) =
        ([json!(true), json!(false)], |words: &[&str]| words.iter().map(|word| json!(word)).collect());
    let all: [(&str, &str, Vec<Value>); 11] = [
        ("", "schema_strictness", words(&["low", "medium", "high"])),
        ("overflow", "enabled", yes_no.to_vec()),
        ("overflow", "max_items", vec![json!(0), json!(1), json!(3)]),
        ("overflow", "recoverable", yes_no.to_vec()),
        ("overflow", "require_suggested_mapping", yes_no.to_vec()),
        ("enums", "strategy", words(&["strict", "extensible"])),
        ("compat", "accepts_v21_payload", yes_no.to_vec()),
        ("compat", "runtime_auto_wrap", yes_no.to_vec()),
        ("failure", "partial_allowed", yes_no.to_vec()),
        ("meta", "risk_rule", words(&["explicit", "max_changes_risk", "max_issues_risk"])),
        ("response", "chunk_type", words(&["delta", "snapshot"])),
    ];
    for (section, name, values) in all {
        perhaps(random, &mut manifest, section, name, &values);
    }
    manifest["response"]["mode"] = json!(one(random, &["streaming", "both"]));
    manifest
}

fn schema(random: &mut SeededRandom) -> Value {
    let kind = if random.flip() {
        json!({ "type": "string", "enum": ["minor", "major"] })
    } else {
        json!({ "oneOf": [
            { "type": "string", "enum": ["minor", "major"] },
            { "type": "object", "required": ["custom", "reason"], "properties": {
                "custom": { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } } },
        ] })
    };
    let change = json!({ "type": "object", "properties": {
        "risk": { "type": "string" }, "note": { "type": ["string", "null"] } } });
    let mut data = json!({
        "type": "object", "required": ["rationale", "answer"],
        "properties": {
            "rationale": { "type": "string" }, "answer": { "type": "string", "maxLength": 20 }, "kind": kind,
            "count": { "type": "integer", "minimum": 0 }, "changes": { "type": "array", "items": change, "maxItems": 3 },
        },
    });
    if random.next_below(3) == 0 {
        data["additionalProperties"] = json!(false);
    }
    if random.next_below(3) == 0 {
        data["properties"]["extensions"] = json!({ "type": "object", "properties": {
            "insights": { "type": "array", "items": { "type": "object" } }, "own": { "type": "string" } } });
    }
    let mut schema = json!({ "input": { "type": "object" }, "data": data });
    if random.next_below(4) == 0 {
        schema["meta"] =
            json!({ "type": "object", "properties": { "risk": { "enum": ["none", "low", "medium"] } } });
    }
    schema
}

fn insight(random: &mut SeededRandom) -> Value {
    let mut insight = json!({ "text": "seen", "suggested_mapping": "data.more", "evidence": "line 3" });
    match random.next_below(6) {
        0 => _ = insight.as_object_mut().unwrap().shift_remove("suggested_mapping"),
        1 => insight["own"] = json!(1),
        2 => insight["evidence"] = Value::Null,
        _ => {}
    }
    insight
}

fn data(random: &mut SeededRandom) -> Value {
    let mut data = json!({ "rationale": "it says so", "answer": "42" });
    let optional = [
        (
            "kind",
            vec![
                json!("minor"),
                json!("MAJOR "),
                json!("huge"),
                json!({ "custom": "odd", "reason": "r" }),
                Value::Null,
            ],
        ),
        ("count", vec![json!(3), json!(-1), json!(1.0), json!("3"), Value::Null]),
        (
            "changes",
            vec![
                json!([]),
                json!([{ "risk": "high" }]),
                json!([{ "risk": "low", "note": null }, { "risk": 5 }]),
            ],
        ),
        ("own", vec![json!({ "ok": true, "meta": {}, "data": {} }), json!("x".repeat(300))]),
        ("confidence", vec![json!(0.8), json!("sure")]),
        (
            "rationale",
            vec![json!(" "), json!(5), json!({ "decisions": [] }), json!("a \"b\" é 😀 {not} an object")],
        ),
        ("answer", vec![json!(7), Value::Null, json!("long ".repeat(9)), json!("7")]),
    ];
    for (name, values) in &optional {
        if random.next_below(11) == 0 {
            data[*name] = one(random, values);
        }
    }
    if random.next_below(3) == 0 {
        let insights: Vec<Value> = (0..random.next_below(4)).map(|_| insight(random)).collect();
        data["extensions"] = match random.next_below(6) {
            0 => Value::Null,
            1 => json!({ "insights": insights, "own": "mine" }),
            2 => json!({ "insights": "none" }),
            _ => json!({ "insights": insights }),
        };
    }
    data
}

fn meta(random: &mut SeededRandom) -> Value {
    let mut meta = json!({ "confidence": 0.95, "risk": "low", "explain": "It is so." });
    let odd = [
        ("confidence", vec![json!(0.3), json!(1.5), json!("high"), Value::Null, json!(0)]),
        (
            "risk",
            vec![
                json!("HIGH"),
                json!("none"),
                json!({ "custom": "legal", "reason": "r" }),
                json!("severe"),
                Value::Null,
            ],
        ),
        ("explain", vec![json!("e".repeat(400)), json!(""), json!(5), Value::Null]),
        ("trace_id", vec![json!("mine")]),
        ("own", vec![json!({ "any": [1] })]),
    ];
    for (name, values) in &odd {
        if random.next_below(14) == 0 {
            meta[*name] = one(random, values);
        }
    }
    meta
}

fn failure(random: &mut SeededRandom) -> Value {
    let mut failure = json!({
        "ok": false, "meta": meta(random), "error": { "code": "OUT_OF_SCOPE", "message": "The text is too short." },
    });
    match random.next_below(6) {
        0 => failure["error"]["code"] = json!(one(random, &["", "E3001", "INVALID_INPUT", "E4000"])),
        1 => failure["error"]["message"] = one(random, &[json!(""), json!(5), Value::Null]),
        2 => failure["error"]["details"] = json!({ "at": [1, 2] }),
        3 => failure["data"] = data(random),
        _ => {}
    }
    if random.flip() {
        failure["partial_data"] = one(random, &[json!({ "answer": "4" }), Value::Null, json!("text")]);
    }
    failure
}

/// An answer as a value: current, of version 2.1, bare, or contradictory.
fn answer(random: &mut SeededRandom) -> Value {
    let (data, meta) = (data(random), meta(random));
    match random.next_below(26) {
        0 => data,
        1 => json!({ "ok": true, "data": data }),
        2 => {
            json!({ "ok": one(random, &[json!("false"), json!(0), json!(1), Value::Null, json!("true")]), "meta": meta, "data": data })
        }
        3 => json!({ "ok": true, "meta": meta, "data": data, "error": null }),
        4 => json!({ "ok": true, "meta": meta, "data": data, "error": { "code": "X", "message": "m" } }),
        5 => json!({ "data": data, "meta": meta, "ok": true, "version": "2.2", "note": "n" }),
        6 => {
            json!({ "ok": true, "meta": meta, "data": one(random, &[json!([]), json!("text"), Value::Null]) })
        }
        7 | 8 => failure(random),
        9 => json!({ "meta": meta, "data": data }),
        _ => json!({ "ok": true, "meta": meta, "data": data }),
    }
}

/// A reply: an answer as text, perhaps with text around it, sloppy or cut off.
fn reply(random: &mut SeededRandom) -> String {
    let value = answer(random);
    let text = if random.flip() { value.to_string() } else { format!("{value:#}") };
    let text = match random.next_below(22) {
        0 => format!("Here it is:\n```json\n{text}\n```\nAnything else?"),
        1 => format!("<think>perhaps {}</think>{text}", answer(random)),
        2 => format!("{text}\nCorrected:\n{}", answer(random)),
        3 => text.replace("true", "True"),
        4 => text.replacen("\"ok\"", "ok", 1),
        5 => text.replacen('}', ",}", 1),
        6 => format!("{text}}}"),
        7 => format!("[{text}]"),
        8 => "I cannot help with that.".to_owned(),
        _ => text,
    };
    let end = if random.next_below(14) == 0 { random.index(text.len() + 1) } else { text.len() };
    let end = (end..=text.len()).find(|end| text.is_char_boundary(*end)).unwrap();
    text[..end].to_owned()
}

/// A text in pieces of random length.
fn pieces(text: &str, random: &mut SeededRandom) -> Vec<String> {
    let (mut rest, mut pieces) = (text, Vec::new());
    let usual = 1 + random.index(40);
    while !rest.is_empty() {
        let wanted = (1 + random.index(usual)).min(rest.len());
        let end = (wanted..=rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap();
        pieces.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    pieces
}

/// The modules of a run: one alone, one that calls another from its prompt, or one that is made of others.
fn modules(
    random: &mut SeededRandom,
    about: &mut String,
) -> (NamedModules, Vec<&'static str>, Vec<(String, String)>) {
    let mut modules = NamedModules::default();
    let mut add = |name: &str, manifest: Value, prompt: &str, random: &mut SeededRandom| {
        let schema = schema(random);
        writeln!(about, "{name}: {manifest} {schema}").unwrap();
        modules = std::mem::take(&mut modules).with(name, manifest, &schema, prompt);
    };
    let mut root = manifest(random);
    let mut axes = settings(&root);
    let names = match random.next_below(6) {
        0 => {
            let part = manifest(random);
            add("part", part, "Answer.", random);
            add(
                "root",
                root,
                one(random, &["Use @call:part($INPUT)[optional].", "Use @call:part($INPUT)."]),
                random,
            );
            vec!["root", "part"]
        }
        1 => {
            let pattern = one(random, &["sequential", "parallel"]);
            let last = if pattern == "parallel" { "input" } else { "one.output" };
            let mapping = if last == "input" {
                json!({ "n": "$.q" })
            } else {
                json!({ "n": "$.data.answer", "m": "$.data" })
            };
            let output = if random.flip() {
                json!({ "from": ["one.output", "two.output"], "to": "output", "aggregate": one(random, &["array", "merge"]) })
            } else {
                json!({ "from": "two.output", "to": "output" })
            };
            root["composition"] = json!({
                "pattern": pattern, "requires": [{ "name": "one" }, { "name": "two" }],
                "dataflow": [{ "from": "input", "to": "one" }, { "from": last, "to": "two", "mapping": mapping }, output],
            });
            let parts = [manifest(random), manifest(random)];
            for (name, part) in ["one", "two"].into_iter().zip(parts) {
                add(name, part, "Answer.", random);
            }
            add("root", root, "Join.", random);
            vec!["root", "one", "two"]
        }
        _ => {
            add("root", root, "Answer the question.", random);
            vec!["root"]
        }
    };
    let form = match names.len() {
        1 => "alone",
        2 => "a call",
        _ => "parts",
    };
    axes.push(("composition".to_owned(), form.to_owned()));
    (modules, names, axes)
}

fn case(number: u64) -> PairCase {
    let mut random = SeededRandom::new((number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut about = format!("case {number}\n");
    let (modules, names, mut axes) = modules(&mut random, &mut about);
    let targets: Vec<Option<SchemaTarget>> =
        SchemaTarget::ALL.into_iter().map(Some).chain([None, None]).collect();
    let target = one(&mut random, &targets);
    // A service that was sent a schema need not keep it.
    let decode = match target {
        None => one(&mut random, &[DecodeMode::Prompt, DecodeMode::JsonMode]),
        Some(SchemaTarget::Grammar) => DecodeMode::Grammar,
        Some(_) => DecodeMode::NativeSchema,
    };
    let finish = match random.next_below(20) {
        0 => Ok(Finish::CutOff),
        1 => Ok(Finish::Refused("no".to_owned())),
        2 => Err(ProviderError::Interrupted("the connection broke".to_owned())),
        _ => Ok(Finish::Complete),
    };
    let mut replies = BTreeMap::new();
    for name in names {
        let text = reply(&mut random);
        writeln!(about, "{name} replies by {target:?} {decode:?} {finish:?}:\n{text}").unwrap();
        replies.insert(name.to_owned(), pieces(&text, &mut random));
    }
    let answering = FakeProvider::new(move |call, sink| {
        sink.decode_mode(decode);
        for piece in &replies[&call.module] {
            sink.piece(piece);
        }
        let mut end = ModelEnd::complete("m", decode);
        end.finish = finish.clone()?;
        Ok(end)
    });
    let provider = Arc::new(answering.with(|model| model.target = target));
    let strict_parse = random.next_below(6) == 0;
    let chosen = [("target", format!("{target:?} {decode:?}")), ("strict_parse", strict_parse.to_string())];
    axes.extend(chosen.map(|(axis, value)| (axis.to_owned(), value)));
    PairCase { modules: Arc::new(modules), provider, strict_parse, axes, about }
}

impl PairCase {
    fn request(&self) -> RunRequest {
        let mut request = RunRequest::new("root", json!({ "q": "?" }));
        request.options.settings.strict_parse = Some(self.strict_parse);
        request
    }

    fn at_once(&self, host: &Host) -> Value {
        serde_json::to_value(poll_now(run(host, self.request(), &mut NullSink))).unwrap()
    }

    /// The envelope that a reader assembles of the stream, or the whole one of a run that does not stream.
    fn streamed(&self, host: &Host) -> Value {
        let mut sent: Vec<Chunk> = Vec::new();
        let delivery = poll_now(stream(host, self.request(), |chunk| sent.push(chunk)));
        if sent.is_empty() {
            let Delivery::Whole(envelope) = delivery else {
                unreachable!("no chunk and no envelope\n{}", self.about)
            };
            return serde_json::to_value(&envelope).unwrap();
        }
        let log: Vec<Value> = sent.iter().map(|chunk| serde_json::to_value(chunk).unwrap()).collect();
        // Only a reader that knows the module accepts the ruled forms.
        let found = check_log(&log);
        assert!(found.is_empty() || log.last().is_some_and(is_ruled), "{found:?}\n{}", self.about);
        let mut assembler = Assembler::with_strictness(self.modules.0["root"].strictness());
        for chunk in log {
            assembler.push(chunk);
        }
        let mut value = serde_json::to_value(assembler.finish()).unwrap();
        for member in ["streaming", "session_id"] {
            value.as_object_mut().unwrap().shift_remove(member);
        }
        value
    }
}

/// An envelope without the members that differ between two equal runs.
fn settled(mut value: Value) -> Value {
    let meta = value["meta"].as_object_mut().unwrap();
    for member in ["trace_id", "latency_ms", "processing_time_ms"] {
        meta.shift_remove(member);
    }
    value
}

/// The envelope of a live run as that of a recording: another provider replied.
fn of_any_provider(value: Value) -> Value {
    let mut value = settled(value);
    value["meta"].as_object_mut().unwrap().shift_remove("model");
    if let Some(details) = value.pointer_mut("/error/details").and_then(Value::as_object_mut) {
        details.shift_remove("provider");
    }
    value
}

/// Returns whether an envelope has a form that a ruling allows beyond the published schema: an insight without a mapping
/// (C-05), a custom risk (C-19), a rationale of the oldest modules (C-61).
fn is_ruled(envelope: &Value) -> bool {
    let payload = [&envelope["data"], &envelope["partial_data"]];
    let insights =
        payload.iter().filter_map(|data| data.pointer("/extensions/insights")?.as_array()).flatten();
    envelope["meta"]["risk"].is_object()
        || payload.iter().any(|data| data["rationale"].is_object())
        || insights.into_iter().any(|insight| insight.get("suggested_mapping").is_none())
}

#[test]
fn the_same_replies_give_the_same_envelope_at_once_in_a_stream_and_from_a_recording() {
    let cases =
        std::env::var("COGN_PAIRS_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000_u64);
    let mut dump = std::env::var_os("COGN_PAIRS_DUMP").map(|path| std::fs::File::create(path).unwrap());
    let published = json_schema();
    let (mut codes, mut successes, mut replayed, mut composed) = (BTreeMap::new(), 0, 0, 0);
    let (mut shapes, mut seen_pairs) = (BTreeSet::new(), SeenPairs::default());
    for number in 0..cases {
        let case = case(number);
        seen_pairs.add(&case.axes);
        let (host, seen) = Host::new(case.modules.clone(), case.provider.clone()).with_recording();
        let live = case.at_once(&host);
        let about = || format!("{}\n{live:#}", case.about);
        assert!(accepts(&published, &live) || is_ruled(&live), "{}", about());
        assert_eq!(settled(case.streamed(&host)), settled(live.clone()), "a stream\n{}", about());
        if let Some(replies) = seen.complete_replies().filter(|replies| !replies.is_empty()) {
            let recorded = Host::new(case.modules.clone(), Arc::new(ReplyRecorder::from_replies(replies).0));
            assert_eq!(
                of_any_provider(case.at_once(&recorded)),
                of_any_provider(live.clone()),
                "a recording\n{}",
                about()
            );
            assert_eq!(
                of_any_provider(case.streamed(&recorded)),
                of_any_provider(live.clone()),
                "a recorded stream\n{}",
                about()
            );
            replayed += 1;
        }
        successes += u64::from(live["ok"] == true);
        composed += u64::from(case.modules.0.len() > 1);
        *codes.entry(live["error"]["code"].as_str().unwrap_or("ok").to_owned()).or_insert(0_u64) += 1;
        shapes.insert(live["meta"]["warnings"].to_string());
        if let Some(file) = &mut dump {
            writeln!(file, "{live}").unwrap();
        }
    }
    println!("{cases} cases: {successes} successes, {composed} compositions, {replayed} replayed, {codes:?}");
    println!("{} of {} pairs of choices", seen_pairs.pairs.len(), seen_pairs.possible());
    assert_eq!(seen_pairs.pairs.len(), seen_pairs.possible(), "pairs of choices");
    assert!(successes * 6 > cases && composed * 4 > cases && replayed * 2 > cases, "{codes:?}");
    assert!(codes.len() > 8 && shapes.len() > 20, "{codes:?}, {} kinds of warnings", shapes.len());
}
