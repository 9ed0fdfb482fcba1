//! Objects, the envelope around them, and recursive types.

use super::*;

fn simple() -> TestModule {
    let data = json!({ "type": "object", "required": ["rationale"], "properties": {
        "answer": { "type": "string" }, "rationale": { "type": "string" },
    } });
    module(json!({}), json!({ "input": {}, "data": data }))
}

#[test]
fn d_05_openai_has_one_object_with_everything_required() {
    let lowered = lower(&simple(), SchemaTarget::OpenAi);
    let root = &lowered.schema;
    assert_eq!((&root["type"], &root["additionalProperties"]), (&json!("object"), &json!(false)));
    assert_eq!(root["required"], json!(["ok", "data", "error", "meta"]));
    let data = data_of(&lowered);
    assert_eq!(data["required"], json!(["rationale", "answer"]));
    assert_eq!(data["properties"]["answer"], json!({ "type": ["string", "null"] }));
    let noted = |path: &str, keyword: &str| {
        lowered.losses.iter().find(|loss| loss.path == path && loss.keyword == keyword).unwrap().what.clone()
    };
    assert!(noted("", "oneOf").starts_with("weakened"));
    assert!(noted("/properties/data/properties/answer", "required").starts_with("weakened"));
    assert!(noted("/properties/data", "additionalProperties").starts_with("tightened"));
}

#[test]
fn d_05_anthropic_leaves_optional_members_absent_up_to_a_limit() {
    let data = data_of(&lower(&simple(), SchemaTarget::Anthropic));
    assert_eq!(data["required"], json!(["rationale"]));
    let many: Map<String, Value> =
        (0..30).map(|index| (format!("m{index}"), json!({ "type": "string" }))).collect();
    let wide = module(json!({}), json!({ "input": {}, "data": { "type": "object", "properties": many } }));
    let lowered = lower(&wide, SchemaTarget::Anthropic);
    let data = data_of(&lowered);
    assert_eq!(data["required"].as_array().unwrap().len(), 1 + 30 - 24);
    assert_eq!(data["properties"]["m29"], json!({ "type": ["string", "null"] }));
    assert!(!lowered.losses.iter().any(|loss| loss.what.starts_with("refused")));
}

#[test]
fn d_05_a_schema_that_is_known_to_be_refused_says_so() {
    let many: Map<String, Value> =
        (0..60).map(|index| (format!("m{index}"), json!({ "type": "string" }))).collect();
    let wide = module(json!({}), json!({ "input": {}, "data": { "type": "object", "properties": many } }));
    let refused: Vec<String> = lower(&wide, SchemaTarget::Anthropic)
        .losses
        .into_iter()
        .filter(|loss| loss.what.starts_with("refused"))
        .map(|loss| format!("{} {}", loss.keyword, loss.what))
        .collect();
    assert_eq!(refused, ["anyOf refused: 38 of them, but the service accepts 16"]);
}

#[test]
fn d_05_gemini_objects_stay_open_and_ordered() {
    let lowered = lower(&simple(), SchemaTarget::Gemini);
    let data = data_of(&lowered);
    assert_eq!(data["propertyOrdering"], json!(["rationale", "answer"]));
    assert_eq!(data.get("additionalProperties"), None);
    assert_eq!(lowered.schema["properties"]["ok"], json!({ "type": "boolean" }));
}

#[test]
fn d_05_local_targets_choose_between_two_objects() {
    for target in [SchemaTarget::Ollama, SchemaTarget::Grammar] {
        let lowered = lower(&simple(), target);
        let keys = |index: usize| -> Vec<&String> {
            lowered.schema["anyOf"][index]["properties"].as_object().unwrap().keys().collect()
        };
        assert_eq!(keys(0), ["ok", "data", "meta"]);
        assert_eq!(keys(1), ["ok", "error", "meta"]);
        assert_eq!(lowered.schema["anyOf"][1]["properties"]["ok"]["const"], json!(false));
        assert!(!lowered.losses.iter().any(|loss| loss.keyword == "oneOf"), "the choice is exact");
    }
}

#[test]
fn d_05_the_runtime_s_own_members_are_not_asked_for() {
    let meta = json!({ "type": "object", "required": ["trace_id"], "properties": {
        "trace_id": { "type": "string" }, "latency_ms": { "type": "number" }, "team": { "enum": ["a"] },
    } });
    let module = module(json!({}), json!({ "input": {}, "data": {}, "meta": meta }));
    let lowered = lower(&module, SchemaTarget::Ollama);
    let meta = &lowered.schema["anyOf"][0]["properties"]["meta"];
    let names: Vec<&String> = meta["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["trace_id", "team", "confidence", "risk", "explain"]);
    assert_eq!(meta["properties"]["explain"]["maxLength"], json!(280));
    assert_eq!(
        meta["properties"]["risk"],
        json!({ "type": "string", "enum": ["none", "low", "medium", "high"] })
    );
}

#[test]
fn d_05_a_payload_without_a_schema_still_has_a_rationale() {
    for target in SchemaTarget::ALL {
        let lowered = lower(&module(json!({}), json!({ "input": {}, "data": true })), target);
        check(&lowered);
        assert_eq!(data_of(&lowered)["required"], json!(["rationale"]), "{target:?}");
    }
}

#[test]
fn d_05_the_rationale_comes_first_in_every_branch() {
    let branch = |tag: &str| json!({ "properties": { "kind": { "const": tag }, "rationale": { "type": "string" } }, "required": ["kind"] });
    let data = json!({ "type": "object", "oneOf": [branch("a"), branch("b")] });
    let lowered = lower(&module(json!({}), json!({ "input": {}, "data": data })), SchemaTarget::OpenAi);
    for branch in data_of(&lowered)["anyOf"].as_array().unwrap() {
        assert_eq!(branch["properties"].as_object().unwrap().keys().next().unwrap(), "rationale");
        assert_eq!(branch["required"], json!(["rationale", "kind"]));
    }
    assert!(!lowered.losses.iter().any(|loss| loss.path == "/properties/data" && loss.keyword == "oneOf"));
}

#[test]
fn d_05_insights_keep_the_smaller_limit() {
    let insights = json!({ "properties": { "insights": { "type": "array", "maxItems": 9, "items": { "type": "object" } } }, "type": "object" });
    let schema =
        json!({ "input": {}, "data": { "type": "object", "properties": { "extensions": insights } } });
    let lowered =
        lower(&module(json!({ "overflow": { "max_items": 3 } }), schema.clone()), SchemaTarget::Grammar);
    let said = data_of(&lowered)["properties"]["extensions"]["properties"]["insights"].clone();
    assert_eq!(
        (&said["maxItems"], &said["items"]["required"]),
        (&json!(3), &json!(["text", "suggested_mapping"]))
    );
    let off = lower(&module(json!({ "overflow": { "enabled": false } }), schema), SchemaTarget::Grammar);
    let said = data_of(&off)["properties"]["extensions"]["properties"]["insights"].clone();
    assert_eq!(said, json!({ "type": "array", "items": { "type": "null" }, "maxItems": 0 }));
}

#[test]
fn d_05_emitted_context_is_asked_for_if_declared() {
    let state = json!({ "type": "object", "properties": { "turn": { "type": "integer" } } });
    let input = json!({ "type": "object", "properties": { "_context": { "properties": { "session_state": state } } } });
    let manifest = json!({ "context": { "emits": [{ "type": "session_state" }, { "type": "notes", "schema": "notes.json" }] } });
    let module = module(manifest, json!({ "input": input, "data": {} }));
    let lowered = lower(&module, SchemaTarget::OpenAi);
    check(&lowered);
    let emitted = &lowered.schema["properties"]["_emitted_context"]["anyOf"][0]["properties"];
    assert_eq!(
        emitted["session_state"]["anyOf"][0]["properties"]["turn"],
        json!({ "type": ["integer", "null"] })
    );
    assert!(lowered.losses.iter().any(|loss| loss.path.ends_with("/notes") && loss.keyword == "$ref"));
    let mut reply = json!({ "_emitted_context": { "session_state": { "turn": null }, "notes": null } });
    let dropped = drop_stand_ins(&module.contract, SchemaTarget::OpenAi, reply.as_object_mut().unwrap());
    assert_eq!(reply, json!({ "_emitted_context": { "session_state": {} } }));
    assert_eq!(dropped, ["/_emitted_context/notes", "/_emitted_context/session_state/turn"]);
}

#[test]
fn d_05_a_null_that_the_contract_allows_or_needs_is_no_stand_in() {
    let data = json!({ "type": "object", "required": ["r", "rationale"], "properties": {
        "n": { "type": ["string", "null"] }, "o": { "type": "string" }, "r": { "type": "string" },
    } });
    let module = module(json!({}), json!({ "input": {}, "data": data }));
    let mut reply = json!({ "ok": true, "data": { "rationale": "r", "n": null, "o": null, "r": null } });
    assert_eq!(
        drop_stand_ins(&module.contract, SchemaTarget::OpenAi, reply.as_object_mut().unwrap()),
        ["/data/o"]
    );
    assert_eq!(reply["data"], json!({ "rationale": "r", "n": null, "r": null }));
}

fn tree() -> Value {
    json!({ "type": "object", "required": ["name"], "additionalProperties": false, "properties": {
        "name": { "type": "string" }, "kids": { "type": "array", "items": { "$ref": "#/$defs/tree" } },
    } })
}

#[test]
fn d_05_recursive_types_stay_where_the_target_knows_them() {
    let schema = json!({ "input": {}, "data": { "type": "object", "properties": { "root": { "$ref": "#/$defs/tree" } } }, "$defs": { "tree": tree() } });
    let module = module(json!({}), schema);
    for target in [SchemaTarget::OpenAi, SchemaTarget::Ollama] {
        let lowered = lower(&module, target);
        check(&lowered);
        let def = &lowered.schema["$defs"]["tree"]["properties"]["kids"];
        assert!(def.to_string().contains(r##""$ref":"#/$defs/tree""##), "{def}");
    }
    let deep = json!({ "name": "a", "kids": [{ "name": "b", "kids": [{ "name": "c", "kids": [{ "name": "d", "kids": [] }] }] }] });
    let reply = json!({ "ok": true, "meta": { "confidence": 1, "risk": "low", "explain": "e" }, "data": { "rationale": "r", "root": deep } });
    let lowered = lower(&module, SchemaTarget::Ollama);
    assert!(validator(&lowered.schema).is_valid(&reply));
    let lowered = lower(&module, SchemaTarget::OpenAi);
    let answer = with_nulls(&lowered.schema, &lowered.schema, &reply);
    assert!(validator(&lowered.schema).is_valid(&answer), "{answer:#}\n{:#}", lowered.schema);
}

#[test]
fn d_05_recursive_types_are_cut_elsewhere() {
    let schema = json!({ "input": {}, "data": { "type": "object", "properties": { "root": { "$ref": "#/$defs/tree" } } }, "$defs": { "tree": tree() } });
    let module = module(json!({}), schema);
    for target in [SchemaTarget::Anthropic, SchemaTarget::Gemini, SchemaTarget::Grammar] {
        let lowered = lower(&module, target);
        check(&lowered);
        let losses: Vec<&Loss> = lowered.losses.iter().filter(|loss| loss.keyword == "$ref").collect();
        assert_eq!(losses.len(), 1, "{target:?} {losses:?}");
        assert!(losses[0].what.starts_with("tightened"));
        assert_eq!(losses[0].path.matches("/kids").count(), 3);
    }
}

#[test]
fn d_05_a_payload_may_contain_itself() {
    let data = json!({ "type": "object", "properties": { "rationale": { "type": "string" }, "parts": { "type": "array", "items": { "$ref": "#/data" } } } });
    for target in SchemaTarget::ALL {
        check(&lower(&module(json!({}), json!({ "input": {}, "data": data })), target));
    }
}

#[test]
fn d_05_openai_takes_ten_levels() {
    let mut x =
        json!({ "type": "object", "properties": { "end": { "type": "string" } }, "required": ["end"] });
    for _ in 0..12 {
        x = json!({ "type": "object", "properties": { "in": x }, "required": ["in"], "additionalProperties": false });
    }
    let (_, losses) = lowered_member(x.clone(), SchemaTarget::OpenAi);
    assert!(losses.iter().any(|loss| loss.contains("properties tightened: no members")), "{losses:?}");
    assert!(!lowered_member(x, SchemaTarget::Ollama).1.iter().any(|loss| loss.contains("no members")));
}

#[test]
fn d_05_a_recursive_type_can_be_joined_with_further_rules() {
    let x = json!({ "allOf": [{ "$ref": "#/$defs/tree" }, { "required": ["kids"] }] });
    let data = json!({ "type": "object", "required": ["a", "x"], "properties": { "a": { "$ref": "#/$defs/tree" }, "x": x } });
    let module = module(json!({}), json!({ "input": {}, "data": data, "$defs": { "tree": tree() } }));
    let lowered = lower(&module, SchemaTarget::Ollama);
    check(&lowered);
    assert_eq!(data_of(&lowered)["properties"]["x"]["required"], json!(["name", "kids"]));
    assert!(!lowered.losses.iter().any(|loss| loss.keyword == "$ref"), "{:?}", lowered.losses);
}

#[test]
fn d_05_types_of_one_name_are_told_apart() {
    let list =
        |name: &str| json!({ "type": "object", "properties": { "next": { "$ref": format!("#/{name}/t") } } });
    let data =
        json!({ "type": "object", "properties": { "a": { "$ref": "#/a/t" }, "b": { "$ref": "#/b/t" } } });
    let schema = json!({ "input": {}, "data": data, "a": { "t": list("a") }, "b": { "t": list("b") } });
    let lowered = lower(&module(json!({}), schema), SchemaTarget::Ollama);
    let names: Vec<&String> = lowered.schema["$defs"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
