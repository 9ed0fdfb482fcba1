//! A recording is read exactly as the live reply was, whatever dialect its provider was sent (D-18): generated contracts,
//! each with an answer in which every optional member is there or not, written as a bound model of each dialect writes it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

#[path = "replay/pairs.rs"]
mod pairs;

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::Module;
use cognitive_contract::ports::{DecodeMode, ModelEnd, NullSink};
use cognitive_contract::recorded_reply::RecordedReply;
use cognitive_runtime::{Host, ReplyRecorder, RunRequest, run};
use cognitive_schema::{SchemaTarget, accepts};
use cognitive_testkit::{FakeProvider, NamedModules, SeededRandom, loaded_module, poll_now};
use serde_json::{Map, Value, json};

/// A model that writes the answers to modules by name under the schema that it is sent, or under none.
fn bound(target: Option<SchemaTarget>, answers: BTreeMap<String, Value>) -> FakeProvider {
    let answering = FakeProvider::new(move |call, sink| {
        let answer = &answers[&call.module];
        let (text, decode) = match &call.schema {
            None => (answer.to_string(), DecodeMode::Prompt),
            Some(sent) => {
                let written = with_nulls(&sent.schema, &sent.schema, answer);
                let is_grammar = sent.target == SchemaTarget::Grammar;
                let decode = if is_grammar { DecodeMode::Grammar } else { DecodeMode::NativeSchema };
                (written.to_string(), decode)
            }
        };
        sink.piece(&text);
        Ok(ModelEnd::complete("m", decode))
    });
    answering.with(|model| model.target = target)
}

/// Fills in the nulls that a sent schema demands, as a bound model has to.
fn with_nulls(schema: &Value, root: &Value, value: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return with_nulls(root.pointer(name.trim_start_matches('#')).unwrap(), root, value);
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let filled = branches.iter().map(|branch| (branch, with_nulls(branch, root, value)));
        let fits = |(branch, value): &(&Value, Value)| {
            let mut branch = (*branch).clone();
            branch["$defs"] = root["$defs"].clone();
            if branch["$defs"].is_null() {
                branch["$defs"] = json!({});
            }
            accepts(&branch, value)
        };
        return filled.into_iter().find(fits).map_or_else(|| value.clone(), |(_, value)| value);
    }
    match value {
        Value::Object(members) => {
            let below = |name: &str, member| with_nulls(&schema["properties"][name], root, member);
            let filled = members.iter().map(|(name, member)| (name.clone(), below(name, member)));
            let mut filled: Map<String, Value> = filled.collect();
            for name in schema["required"].as_array().into_iter().flatten() {
                filled.entry(name.as_str().unwrap()).or_insert(Value::Null);
            }
            Value::Object(filled)
        }
        Value::Array(items) => items.iter().map(|item| with_nulls(&schema["items"], root, item)).collect(),
        plain => plain.clone(),
    }
}

/// A schema and a value that it accepts.
type Described = (Value, Value);

struct Generator {
    random: SeededRandom,
    /// The number of open choices without a tag. Below them no required member is null: the contract alone does not say
    /// which alternative would need it.
    choices: u32,
}

impl Generator {
    fn any(&mut self, depth: u64) -> Described {
        match self.random.next_below(if depth == 0 { 6 } else { 14 }) {
            0 => (json!({ "type": "string" }), json!("text")),
            1 => (json!({ "type": "number", "minimum": 0 }), json!(0.5)),
            2 => (json!({ "enum": ["a", "b"] }), json!("b")),
            3 => (json!({ "type": "boolean" }), json!(true)),
            // A null of its own, which stands for nothing else.
            4 => (
                json!({ "type": ["string", "null"] }),
                if self.choices == 0 && self.random.flip() { Value::Null } else { json!("text") },
            ),
            5 => (json!({ "$ref": "#/$defs/note" }), json!({ "text": "t" })),
            6 | 7 => {
                let (items, first) = self.object(depth - 1);
                (json!({ "type": "array", "items": items }), json!([first, first]))
            }
            8 => {
                let keyword = if self.random.flip() { "oneOf" } else { "anyOf" };
                let (one, value) = self.tagged(depth - 1, "one");
                let (two, other) = self.tagged(depth - 1, "two");
                (json!({ keyword: [one, two] }), if self.random.flip() { value } else { other })
            }
            9 => {
                let (one, value) = self.named(depth - 1, "left");
                let (two, other) = self.named(depth - 1, "right");
                (json!({ "anyOf": [one, two] }), if self.random.flip() { value } else { other })
            }
            10 => {
                let (one, mut value) = self.named(depth - 1, "left");
                let more = json!({ "type": "object", "properties": { "more": { "type": "string" } } });
                if self.random.flip() {
                    value["more"] = json!("text");
                }
                (json!({ "allOf": [one, more] }), value)
            }
            11 => {
                let (mut schema, value) = self.object(depth - 1);
                schema["dependencies"] = json!({ "absent": ["never"] });
                (schema, value)
            }
            _ => self.object(depth - 1),
        }
    }

    /// An object of an alternative that is told from others only by a member that it needs.
    fn named(&mut self, depth: u64, name: &str) -> Described {
        self.choices += 1;
        let (mut schema, mut value) = self.object(depth);
        self.choices -= 1;
        schema["additionalProperties"] = json!(true);
        schema["properties"][name] = json!({ "type": "string" });
        schema["required"].as_array_mut().unwrap().push(json!(name));
        value[name] = json!("text");
        (schema, value)
    }

    /// An object of one alternative.
    fn tagged(&mut self, depth: u64, tag: &str) -> Described {
        let (mut schema, mut value) = self.object(depth);
        schema["properties"]["kind"] = json!({ "const": tag });
        schema["required"].as_array_mut().unwrap().push(json!("kind"));
        value["kind"] = json!(tag);
        (schema, value)
    }

    fn object(&mut self, depth: u64) -> Described {
        self.members(depth, Map::new(), Map::new())
    }

    /// Adds members to some that are required. At least one is optional and absent.
    fn members(&mut self, depth: u64, known: Map<String, Value>, given: Map<String, Value>) -> Described {
        let mut required: Vec<String> = known.keys().cloned().collect();
        let (mut properties, mut value) = (known, given);
        properties.insert("absent".to_owned(), self.any(depth).0);
        for name in ["m1", "m2", "m3"] {
            let (schema, member) = self.any(depth);
            properties.insert(name.to_owned(), schema);
            let is_required = self.random.flip();
            if is_required {
                required.push(name.to_owned());
            }
            if is_required || self.random.flip() {
                value.insert(name.to_owned(), member);
            }
        }
        let mut schema = json!({ "type": "object", "properties": properties, "required": required });
        if self.random.flip() {
            schema["additionalProperties"] = json!(false);
        }
        (schema, Value::Object(value))
    }

    fn section(&mut self, known: &Value, given: &Value) -> Described {
        let members = |value: &Value| value.as_object().unwrap().clone();
        let (mut schema, value) = self.members(2, members(known), members(given));
        schema["additionalProperties"] = json!(true);
        (schema, value)
    }

    /// A module with a contract of its own and an answer that keeps it.
    fn module(&mut self, name: &str, prompt: &str) -> (Arc<Module>, Value) {
        let text = json!({ "type": "string" });
        let (data, said) = self.section(&json!({ "rationale": text }), &json!({ "rationale": "r" }));
        let (meta, judged) = self.section(
            &json!({ "confidence": { "type": "number" }, "risk": text, "explain": text }),
            &json!({ "confidence": 0.9, "risk": "low", "explain": "e" }),
        );
        let (error, failed) = self.section(
            &json!({ "code": text, "message": text }),
            &json!({ "code": "OUT_OF_SCOPE", "message": "m" }),
        );
        let note = json!({
            "type": "object", "required": ["text"],
            "properties": { "text": text, "more": { "type": "integer" } },
        });
        let schema = json!({
            "input": {}, "data": data, "meta": meta, "error": error, "$defs": { "note": note },
        });
        let manifest = json!({ "name": name, "version": "1.0.0", "tier": "decision" });
        let answer = if self.random.next_below(4) == 0 {
            json!({ "ok": false, "meta": judged, "error": failed })
        } else {
            json!({ "ok": true, "meta": judged, "data": said })
        };
        (loaded_module(&manifest, &schema, prompt), answer)
    }
}

/// An envelope without what differs from run to run.
fn masked(host: &Host, module: &str) -> Value {
    let envelope = poll_now(run(host, RunRequest::new(module, json!({})), &mut NullSink));
    let mut envelope = serde_json::to_value(envelope).unwrap();
    let meta = envelope["meta"].as_object_mut().unwrap();
    for name in ["trace_id", "latency_ms", "processing_time_ms", "model", "usage"] {
        meta.shift_remove(name);
    }
    envelope
}

/// Where the contract itself allows a null, an absent member and a null cannot be told apart in a strict dialect.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(present.map(|(name, member)| (name.clone(), without_nulls(member))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        plain => plain.clone(),
    }
}

/// All dialects, and a provider that is sent no schema.
fn targets() -> Vec<Option<SchemaTarget>> {
    SchemaTarget::ALL.into_iter().map(Some).chain([None]).collect()
}

#[test]
fn a_recording_gives_the_envelope_of_the_live_run_in_every_dialect_d_18() {
    let mut generator = Generator { random: SeededRandom::new(0xD18), choices: 0 };
    let (mut with_nulls, mut with_other_outcome) = (0, 0);
    for round in 0..40 {
        let (part, part_answer) = generator.module("part", "Answer.");
        let (whole, whole_answer) = generator.module("whole", "Look at this: @call:part($INPUT)[optional]");
        let modules =
            Arc::new(NamedModules(BTreeMap::from([("part".to_owned(), part), ("whole".to_owned(), whole)])));
        let answers =
            BTreeMap::from([("part".to_owned(), part_answer), ("whole".to_owned(), whole_answer.clone())]);
        for target in targets() {
            let provider = Arc::new(bound(target, answers.clone()));
            let (host, seen) = Host::new(modules.clone(), provider).with_recording();
            let live = masked(&host, "whole");
            let recorded = seen.complete_replies().unwrap();
            assert_eq!(recorded.len(), 2);
            assert!(recorded.values().all(|reply| reply.dialect == target), "{recorded:?}");
            let reply = &recorded["whole"].text;
            with_nulls += usize::from(reply.contains(r#""absent":null"#));
            with_other_outcome += usize::from(reply.contains(r#","error":null"#));
            let replayed = masked(
                &Host::new(modules.clone(), Arc::new(ReplyRecorder::from_replies(recorded).0)),
                "whole",
            );
            assert_eq!(live, replayed, "{round} {target:?}");
            assert_eq!(live["ok"], whole_answer["ok"], "{round} {target:?}: {live:#}\n{whole_answer:#}");
            for section in ["data", "error"] {
                let (given, meant) = (live.get(section), whole_answer.get(section));
                assert_eq!(given.map(without_nulls), meant.map(without_nulls), "{round} {target:?}");
            }
            let warnings = live["meta"]["warnings"].to_string();
            assert!(!warnings.contains("REPAIRED"), "{round} {target:?}: {warnings}");
        }
    }
    assert!(with_nulls > 60 && with_other_outcome > 60, "{with_nulls} {with_other_outcome}");
}

// Without a dialect, and under one that demands no nulls, a null is what the model wrote.
#[test]
fn a_null_that_no_schema_demanded_is_judged_as_it_stands_d_18() {
    let schema = json!({ "input": {}, "data": {
        "type": "object", "required": ["rationale"],
        "properties": { "rationale": { "type": "string" }, "note": { "type": "string" } },
    } });
    let manifest = json!({ "version": "1.0.0", "tier": "decision" });
    let modules = Arc::new(NamedModules::default().with("m", manifest, &schema, "Answer."));
    let replayed = |reply: &Value, dialect| {
        let reply = RecordedReply::new(reply.to_string(), dialect);
        let replies = BTreeMap::from([("m".to_owned(), reply)]);
        masked(&Host::new(modules.clone(), Arc::new(ReplyRecorder::from_replies(replies).0)), "m")
    };
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "e" });
    let member = json!({ "ok": true, "meta": meta, "data": { "rationale": "r", "note": null } });
    let outcome = json!({ "ok": true, "meta": meta, "data": { "rationale": "r" }, "error": null });
    for target in targets() {
        let demands_member = matches!(target, Some(SchemaTarget::OpenAi | SchemaTarget::Anthropic));
        let demands_outcome = demands_member || target == Some(SchemaTarget::Gemini);
        let (with_member, with_outcome) = (replayed(&member, target), replayed(&outcome, target));
        assert_eq!(with_member["ok"], demands_member, "{target:?}: {with_member}");
        assert_eq!(with_outcome["ok"], true, "{target:?}: {with_outcome}");
        let warned = with_outcome["meta"]["warnings"].to_string().contains("REPAIRED");
        assert_eq!(warned, !demands_outcome, "{target:?}: {with_outcome}");
    }
    // Both outcomes at once is a contradiction, and both null is none: neither is settled by the dialect.
    for reply in [
        json!({ "ok": true, "meta": meta, "data": null, "error": null }),
        json!({ "ok": true, "meta": meta, "data": { "rationale": "r" }, "error": { "code": "X", "message": "m" } }),
        json!({ "ok": null, "meta": meta, "data": { "rationale": "r" }, "error": null }),
    ] {
        let judged = replayed(&reply, Some(SchemaTarget::OpenAi));
        assert_eq!(judged["error"]["code"], "E3001", "{judged}");
    }
}
