//! Early stop (D-08): only if the caller asks for it and the model is bound to one document. It fires at the first
//! byte that makes the answer invalid, and never for a valid answer.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cognitive_contract::ports::{DecodeMode, Finish, NullSink};
use cognitive_contract::{Format, Manifest, Module};
use cognitive_runtime::early_stop::EarlyStop;
use cognitive_runtime::reply::ReplyScanner;
use cognitive_runtime::{RunRequest, run};
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use cognitive_testkit::MemoryAuditLog;
use proptest::prelude::*;
use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::{Serializer, Value, json};

use super::board::{Board, text};
use super::harness::{META, Pieces, chunks, corpus_module, host, module, now, request, sync};
use super::{corpus, splits};

/// The offset at which the early stop fires, with the path and the rule.
fn blown(module: &Arc<Module>, strict: bool, pieces: &[&str]) -> Option<(usize, String, &'static str)> {
    let mut scanner =
        ReplyScanner::new(strict || module.manifest.tier == cognitive_contract::manifest::Tier::Exec);
    let mut fuse = EarlyStop::new(Arc::clone(module), false);
    for piece in pieces {
        scanner.push(piece, &mut fuse);
    }
    fuse.verdict().map(|verdict| (verdict.at, verdict.violation.path.clone(), verdict.violation.rule))
}

/// Returns whether a part of the reply was left out of the answer, which cannot happen if a model is bound to one
/// document.
fn left_something_out(envelope: &Value) -> bool {
    let liberties = envelope["meta"]["provenance"]["liberties"].as_array().cloned().unwrap_or_default();
    liberties.iter().any(|liberty| liberty["rule"] != "fence" && liberty["rule"] != "prose")
}

/// A reply of a model that is bound to the contract and waits after each piece, so that it can be stopped there.
fn bound(pieces: &[&str]) -> Pieces {
    let mut provider = Pieces::new(pieces, Ok(Finish::Complete));
    (provider.waits, provider.decode) = (true, DecodeMode::NativeSchema);
    provider
}

fn early() -> RunRequest {
    let mut asked = request(false);
    asked.options.settings.early_stop = Some(true);
    asked
}

#[test]
fn d_08_no_reply_of_the_corpus_that_passes_would_have_been_stopped() {
    let mut blew = 0;
    for case in corpus() {
        let module = corpus_module(&case.module, "delta");
        let host = host(&module, Arc::new(Pieces::new(&[&case.text], Ok(case.finish.clone()))));
        let whole = serde_json::to_value(now(run(&host, request(case.strict), &mut NullSink))).unwrap();
        let at_once = blown(&module, case.strict, &[&case.text]);
        for pieces in splits(&case.text) {
            assert_eq!(blown(&module, case.strict, &pieces), at_once, "{} {pieces:?}", case.id);
        }
        blew += usize::from(at_once.is_some());
        let refused = whole["error"]["details"].get("violations").is_some()
            || whole["error"]["details"]["source"] == "model";
        let fine = refused || at_once.is_none() || left_something_out(&whole);
        assert!(fine, "{}: {at_once:?}\n{}\n{whole}", case.id, case.text);
    }
    assert!(blew > 15, "{blew}");
}

fn contract() -> Value {
    json!({
        "type": "object", "required": ["rationale", "kind"], "additionalProperties": false,
        "properties": {
            "rationale": { "type": "string", "minLength": 2, "maxLength": 12 },
            "kind": { "enum": ["low", "Very High", 3, null] },
            "count": { "type": "integer", "minimum": 0, "exclusiveMaximum": 10 },
            "share": { "type": ["number", "null"], "maximum": 0.3 },
            "items": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "$ref": "#/$defs/item" } },
            "free": { "anyOf": [{ "type": "string" }, { "type": "object", "required": ["x"] }] },
            "flag": { "const": true },
        },
    })
}

fn typed() -> Arc<Module> {
    let mut data = contract();
    // The harness wraps the data section, so its definitions go there.
    data["properties"]["items"]["items"] = json!({
        "type": "object", "required": ["text"], "additionalProperties": { "type": "string" },
        "properties": { "text": { "type": "string" }, "more": { "type": "array" } },
    });
    module(json!({ "tier": "decision" }), &data)
}

fn reply(data: &str) -> String {
    format!(r#"{{"ok": true, "meta": {META}, "data": {data}}}"#)
}

#[test]
fn it_blows_at_the_byte_after_which_nothing_can_help() {
    let cases = [
        (r#"{"rationale": 5"#, "5", "/data/rationale", "type"),
        (r#"{"rationale": "0123456789abcdef"#, "c", "/data/rationale", "maxLength"),
        (r#"{"rationale": "r""#, r#"r""#, "/data/rationale", "minLength"),
        (r#"{"kind": "LOX"#, "X", "/data/kind", "enum"),
        (r#"{"kind": "lo""#, r#"lo""#, "/data/kind", "enum"),
        (r#"{"kind": true,"#, "true", "/data/kind", "enum"),
        (r#"{"kind": 4,"#, "4", "/data/kind", "enum"),
        (r#"{"count": 1.5,"#, "1.5", "/data/count", "type"),
        (r#"{"count": -1,"#, "-1", "/data/count", "minimum"),
        (r#"{"count": 10 "#, "10", "/data/count", "exclusiveMaximum"),
        (r#"{"share": 0.31]"#, "0.31", "/data/share", "maximum"),
        (r#"{"items": []"#, "]", "/data/items", "minItems"),
        (r#"{"items": [{"text": "a"}, {"text": "b"}, {"#, r#", {"text": "b"}, {"#, "/data/items", "maxItems"),
        (r#"{"items": [{}"#, "}", "/data/items/0/text", "required"),
        (r#"{"items": [{"text": "a", "x": 1}"#, "1", "/data/items/0/x", "type"),
        (r#"{"items": {"#, r#"items": {"#, "/data/items", "type"),
        (r#"{"other":"#, "other\":", "/data/other", "additionalProperties"),
        (r#"{"kind": "low"}"#, "}", "/data/rationale", "required"),
        (r#"{"flag": false,"#, "false", "/data/flag", "enum"),
        (r#""text"#, r#"data": ""#, "/data", "type"),
        (r"[", "[", "/data", "type"),
    ];
    let module = typed();
    for (data, last, path, rule) in cases {
        let text = reply(data);
        let text = text.strip_suffix('}').unwrap();
        let at = text.rfind(last).unwrap() + last.len();
        assert_eq!(blown(&module, false, &[text]), Some((at, path.to_owned(), rule)), "{text}");
        assert_eq!(blown(&module, false, &[&text[..at - 1]]), None, "{text}");
    }
}

#[test]
fn what_may_be_repaired_or_is_not_understood_does_not_blow_it() {
    let module = typed();
    for data in [
        r#"{"rationale": "because", "kind": "  VERY HIGH "}"#,
        r#"{"rationale": "because", "kind": "low", "free": 5}"#,
        r#"{"rationale": "because", "kind": 3.0, "count": 9.0, "share": 0.3, "flag": true}"#,
    ] {
        assert_eq!(blown(&module, false, &[&reply(data)]), None, "{data}");
    }
    // A failure may contain any data; it is refused for that, but not by the schema of a success.
    let failure = reply(r#"{"rationale": 5}"#).replace("true", "false");
    assert_eq!(blown(&module, false, &[&failure]), None);
    let later = r#"{"data": {"rationale": 5}, "ok": "#;
    assert_eq!(blown(&module, false, &[later, "false}"]), None);
    assert!(blown(&module, false, &[later, "true}"]).is_some());
    for before in ["For example ", "Sure: ", "[1] "] {
        assert_eq!(blown(&module, false, &[before, &reply(r#"{"rationale": 5}"#)]), None, "{before}");
    }
}

// W1, D-08, REPAIR-010: by default a call is read to its end, and the failure contains the model's whole text.
#[test]
fn d_08_repair_010_a_hopeless_answer_is_read_to_its_end_and_kept_whole() {
    let module = corpus_module("", "delta");
    let data =
        json!({ "answer": 5, "rationale": "a long and valuable reason", "count": -1, "tail": "kept?" });
    let text = reply(&data.to_string());
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    for pieces in [&[text.as_str()][..], &letters] {
        let provider = Arc::new(bound(pieces));
        let value =
            serde_json::to_value(now(run(&host(&module, provider), request(false), &mut NullSink))).unwrap();
        assert_eq!(value["error"]["code"], "E3001");
        assert_eq!(value["partial_data"], data);
        let places: Vec<_> = value["error"]["details"]["violations"].as_array().unwrap().iter().collect();
        assert_eq!(places.len(), 2, "{places:?}");
        assert_eq!(value["meta"]["model"], "pieces/m");
    }
}

// S-11, D-09: the last of two values counts, in every run and in every split.
#[test]
fn s_11_d_08_a_member_that_is_written_twice_counts_as_written_last() {
    let module = corpus_module("", "delta");
    let twice = reply(r#"{"answer": 7, "answer": "42", "rationale": "r"}"#);
    for (decode, early) in
        [(DecodeMode::Prompt, false), (DecodeMode::Prompt, true), (DecodeMode::JsonMode, true)]
    {
        let mut provider = bound(&[&twice]);
        provider.decode = decode;
        let mut asked = request(false);
        asked.options.settings.early_stop = Some(early);
        let value =
            serde_json::to_value(now(run(&host(&module, Arc::new(provider)), asked, &mut NullSink))).unwrap();
        assert_eq!(value["data"]["answer"], "42", "{value}");
        assert_eq!(value["meta"]["warnings"].as_array().unwrap().len(), 1, "{value}");
    }
}

#[test]
fn d_08_a_stopped_call_is_dropped_and_the_failure_has_what_was_complete() {
    let module = typed();
    let text = reply(r#"{"kind": "low", "rationale": "so far", "count": -1, "items": []}"#);
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    let provider = || Arc::new(bound(&letters));
    let mut asked = early();
    asked.options.settings.max_output_tokens = Some(1_000);
    let cut = provider();
    let envelope = now(run(&host(&module, Arc::clone(&cut)), asked.clone(), &mut NullSink));
    let value = serde_json::to_value(&envelope).unwrap();
    let at = text.find("-1").unwrap() + 2;
    assert_eq!(cut.given.load(Ordering::Relaxed), at + 1, "the comma shows that the number is over");
    assert_eq!(value["error"]["code"], "E3001");
    assert_eq!(value["error"]["details"]["violations"][0]["path"], "/data/count");
    assert_eq!(value["error"]["details"]["stopped_at"], at);
    assert_eq!(value["partial_data"], json!({ "kind": "low", "rationale": "so far" }));
    let (log, _) = chunks(&host(&module, provider()), asked.clone());
    assert_eq!(log.last().unwrap()["error"]["details"]["stopped_at"], at);
    assert_eq!(log.last().unwrap()["partial_data"], value["partial_data"]);
    asked.options.settings.early_stop = Some(false);
    let whole = provider();
    let envelope = now(run(&host(&module, Arc::clone(&whole)), asked, &mut NullSink));
    assert_eq!(whole.given.load(Ordering::Relaxed), letters.len());
    assert_eq!(envelope.error().unwrap().code(), "E3001");
}

#[test]
fn d_08_a_value_that_is_being_written_is_not_in_the_failure() {
    let module = corpus_module("", "delta");
    for (data, complete) in [
        (r#"{"rationale": "r", "answer": 57"#, json!({ "rationale": "r" })),
        (r#"{"rationale": "r", "items": ["a", 5"#, json!({ "rationale": "r" })),
        (r#"{"answer": 5"#, json!({})),
    ] {
        let value = now(run(&host(&module, Arc::new(bound(&[&reply(data), "}}"]))), early(), &mut NullSink));
        assert_eq!(serde_json::to_value(&value).unwrap()["partial_data"], complete, "{data}");
    }
}

#[test]
fn a_cut_call_stands_in_the_books_and_may_be_asked_again() {
    let text = reply(r#"{"rationale": 5, "kind": "low"}"#);
    let provider = Arc::new(bound(&[&text[..text.len() - 9], &text[text.len() - 9..]]));
    let books = Arc::new(MemoryAuditLog::default());
    let mut host = host(&typed(), Arc::clone(&provider));
    host.audit = Some(Arc::clone(&books) as Arc<_>);
    let mut asked = early();
    asked.options.settings.reask = Some(1);
    asked.options.settings.max_output_tokens = Some(100);
    assert!(!now(run(&host, asked, &mut NullSink)).ok());
    assert_eq!(provider.given.load(Ordering::Relaxed), 2, "one piece for each of two calls");
    let receipt = books.records().last().unwrap().receipt.clone();
    assert_eq!(receipt["reasked"], 1);
    assert_eq!(receipt["fuse"]["path"], "/data/rationale");
    let written = receipt["fuse"]["tokens_written"].as_u64().unwrap();
    assert_eq!(receipt["fuse"]["tokens_saved_at_most"], 100 - written);
}

#[test]
fn a_cut_call_is_drawn_as_far_as_it_came() {
    let module = corpus_module("", "delta");
    let provider = bound(&[&reply(r#"{"answer": 7"#), "}}"]);
    let (board, mut asked) = (Arc::new(Board::default()), early());
    asked.options.spans = Some(board.place());
    asked.options.settings.reask = Some(1);
    now(run(&host(&module, Arc::new(provider)), asked, &mut NullSink));
    assert_eq!(board.tree(), ["run sample 0-5 E3001", "  chat wanted 1-2 cut", "  chat wanted 3-4 cut"]);
    let spans = board.spans();
    assert_eq!(text(&spans[0], "gen_ai.response.model"), None, "nobody knows who was about to answer");
}

/// Values that are right, nearly right and wrong for each member.
fn data() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof!["[a-z]{0,14}", Just("é😀\n\"".to_owned()), Just("  ".to_owned())].prop_map(Value::from);
    let kind = prop::sample::select(vec![
        json!("low"),
        json!("LOW "),
        json!("very high"),
        json!(" Very  High"),
        json!("lo"),
        json!(3),
        json!(3.0),
        json!(4),
        json!(null),
        json!(true),
        json!({}),
    ]);
    let number = prop::sample::select(vec![
        json!(0),
        json!(9),
        json!(10),
        json!(-1),
        json!(1.5),
        json!(2.0),
        json!(1e300),
        json!(0.3),
        json!(0.31),
        json!(9_007_199_254_740_993_u64),
        json!(null),
        json!("1"),
    ]);
    let item = prop_oneof![
        text.clone().prop_map(|text| json!({ "text": text })),
        text.clone().prop_map(|text| json!({ "text": text, "x": "y", "more": [1, {}] })),
        Just(json!({ "text": "a", "x": 1 })),
        Just(json!({})),
        Just(json!("text")),
    ];
    let items = prop::collection::vec(item, 0..4).prop_map(Value::Array);
    let free = prop::sample::select(vec![json!("s"), json!({ "x": 1 }), json!({}), json!(1)]);
    let flag = prop::sample::select(vec![json!(true), json!(false), json!("true")]);
    let some = |values: BoxedStrategy<Value>| prop::option::weighted(0.7, values);
    let members = (
        prop::option::weighted(0.9, text),
        prop::option::weighted(0.9, kind),
        some(number.clone().boxed()),
        some(number.boxed()),
        some(items.boxed()),
        some(free.boxed()),
        some(flag.boxed()),
        prop::bool::weighted(0.05),
    );
    members.prop_map(|(rationale, kind, count, share, items, free, flag, extra)| {
        let mut data = serde_json::Map::new();
        let named = [
            ("count", count),
            ("rationale", rationale),
            ("kind", kind),
            ("share", share),
            ("items", items),
            ("free", free),
            ("flag", flag),
            ("extra", extra.then(|| json!(1))),
        ];
        for (name, value) in named {
            data.extend(value.map(|value| (name.to_owned(), value)));
        }
        Value::Object(data)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn it_never_blows_on_a_made_up_reply_that_passes(data in data(), ok_last in any::<bool>()) {
        let module = typed();
        let meta: Value = serde_json::from_str(META).unwrap();
        let text = if ok_last {
            format!(r#"{{"data": {data}, "meta": {meta}, "ok": true}}"#)
        } else {
            json!({ "ok": true, "meta": meta, "data": data }).to_string()
        };
        let passes = sync(&module, Pieces::new(&[&text], Ok(Finish::Complete)), false)["ok"] == true;
        let at_once = blown(&module, false, &[&text]);
        prop_assert!(!(passes && at_once.is_some()), "{:?}\n{}", at_once, text);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
        prop_assert_eq!(blown(&module, false, &letters), at_once);
    }

    // S-11, D-08: duplicate members, duplicate data, several answers: a model that can write them is never stopped.
    #[test]
    fn d_08_a_model_that_is_bound_to_nothing_is_never_stopped(first in data(), second in data(), how in 0..4) {
        let module = typed();
        let members = |data: &Value| data.to_string().trim_matches(['{', '}']).to_owned();
        let text = match how {
            0 => reply(&format!("{{{}}}", [members(&first), members(&second)].join(", "))),
            1 => reply(&format!(r#"{first}, "data": {second}"#)),
            2 => format!("{}\nThe corrected answer: {}", reply(&first.to_string()), reply(&second.to_string())),
            _ => format!("{}</think>{}", reply(&first.to_string()), reply(&second.to_string())),
        };
        let envelope = |early: bool| {
            let mut provider = Pieces::new(&[&text], Ok(Finish::Complete));
            provider.waits = true;
            let mut asked = request(false);
            asked.options.settings.early_stop = Some(early);
            super::harness::stable(
                serde_json::to_value(now(run(&host(&module, Arc::new(provider)), asked, &mut NullSink))).unwrap(),
            )
        };
        prop_assert_eq!(envelope(true), envelope(false), "{}", text);
    }
}

/// Writes every letter of a text as an escape.
struct EscapedLetters;

impl Formatter for EscapedLetters {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        text.encode_utf16().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))
    }
}

/// Spellings of one answer: on one line, indented, in escapes, and with `ok` at the end.
fn spellings(data: &Value) -> [String; 4] {
    let whole = json!({ "ok": true, "data": data });
    let mut escaped = Vec::new();
    whole.serialize(&mut Serializer::with_formatter(&mut escaped, EscapedLetters)).unwrap();
    let last = json!({ "data": data, "ok": true });
    [whole.to_string(), format!("{whole:#}"), String::from_utf8(escaped).unwrap(), last.to_string()]
}

// D-08, D-25: no prefix of a valid value is refused, in any dialect.
#[test]
fn d_08_no_prefix_of_a_valid_value_of_the_json_schema_suite_is_refused() {
    let Some(groups) = cognitive_testkit::json_schema_suite() else { return };
    let (mut values, mut prefixes, mut invalid, mut stopped) = (0, 0, 0, 0);
    for group in &groups {
        let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), group.module_schema())]);
        let manifest =
            Manifest::from_value(&json!({ "name": "m", "tier": "decision" }), Format::V22).unwrap();
        let contract =
            Contract::compile(&files, &manifest.layout()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let module = Arc::new(Module::new(manifest, contract, String::new(), Format::V22));
        for case in &group.cases {
            let mut is_stopped = false;
            for text in spellings(&case.data()) {
                let letters: Vec<String> = text.chars().map(String::from).collect();
                let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
                // Letter by letter, each prefix is judged; a fault names the shortest one that is refused.
                let fault = blown(&module, false, &letters);
                assert!(
                    !case.is_valid || fault.is_none(),
                    "{}: {}: {fault:?}\n{text}",
                    group.name,
                    case.name
                );
                assert_eq!(blown(&module, false, &[&text]), fault, "{}: {}", group.name, case.name);
                prefixes += if case.is_valid { letters.len() } else { 0 };
                is_stopped |= fault.is_some();
            }
            values += usize::from(case.is_valid);
            invalid += usize::from(!case.is_valid);
            stopped += usize::from(is_stopped);
        }
    }
    println!("{values} valid values, {prefixes} prefixes; {stopped} of {invalid} invalid values are stopped");
    assert!(
        values > 1_000 && stopped > 100,
        "{values} valid values, {stopped} of {invalid} invalid ones are stopped"
    );
}

// D-25: items by position and rules beside a reference, as 2020-12 writes them.
#[test]
fn d_08_items_by_position_are_judged_while_they_are_written() {
    let module = module(
        json!({ "tier": "decision" }),
        &json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {
            "p": { "prefixItems": [{ "type": "string" }, { "enum": ["b"] }], "items": { "type": "integer" } } } }),
    );
    let stopped = |list: &str| {
        let text = format!("{{\"ok\":true,\"data\":{{\"p\":{list}");
        blown(&module, false, &[&text]).map(|(_, path, rule)| format!("{path} {rule}"))
    };
    assert_eq!(stopped(r#"["a","b",3,4"#), None);
    assert_eq!(stopped("[1").as_deref(), Some("/data/p/0 type"));
    assert_eq!(stopped(r#"["a","c""#).as_deref(), Some("/data/p/1 enum"));
    assert_eq!(stopped(r#"["a","b",3,"c"#).as_deref(), Some("/data/p/3 type"));
}
