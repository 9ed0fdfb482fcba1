//! Every bundled module with every target: the output is in the dialect, records every loss, and forbids no answer that
//! the contract accepts.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn modules_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules")
}

/// The parts of the bundled manifests that provider schemas depend on.
fn manifest(name: &str) -> Value {
    let small = json!({ "tier": "decision", "overflow": { "enabled": false, "max_items": 0 }, "enums": { "strategy": "strict" } });
    match name {
        "adaptive-explainer" => json!({ "tier": "exploration" }),
        "audio-transcriber" => json!({ "tier": "exec" }),
        "image-analyzer" => json!({ "tier": "decision", "overflow": { "max_items": 10 } }),
        "interactive-reviewer" => {
            json!({ "tier": "decision", "context": { "emits": [{ "type": "session_state", "ttl": 3600 }] } })
        }
        "entity-extractor" | "summarizer" | "task-prioritizer" | "text-classifier" => small,
        _ => json!({ "tier": "decision" }),
    }
}

fn bundled() -> Vec<(String, TestModule)> {
    // Other tools create folders here, such as the cache of pytest.
    let mut names: Vec<String> = fs::read_dir(modules_folder())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("module.yaml").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 11, "{names:?}");
    let load = |name: String| {
        let text = fs::read_to_string(modules_folder().join(&name).join("schema.json")).unwrap();
        let module = module(manifest(&name), serde_json::from_str(&text).unwrap());
        (name, module)
    };
    names.into_iter().map(load).collect()
}

/// The recorded replies that are pure JSON. A name with a module in it is the reply of a part.
fn replies(name: &str) -> Vec<(String, Value)> {
    let mut replies: Vec<(String, Value)> = fs::read_dir(modules_folder().join(name).join("tests"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let case = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".reply.txt"));
            case.is_some_and(|case| !case.contains('.'))
        })
        .filter_map(|path| {
            let reply = serde_json::from_str(&fs::read_to_string(&path).unwrap()).ok()?;
            Some((path.display().to_string(), reply))
        })
        .collect();
    replies.sort_by(|a, b| a.0.cmp(&b.0));
    replies
}

#[test]
fn d_05_every_bundled_module_stays_within_every_dialect() {
    for (_, module) in bundled() {
        for target in SchemaTarget::ALL {
            let lowered = lower(&module, target);
            check(&lowered);
            assert_eq!(lowered, lower(&module, target), "lowering is deterministic");
            assert!(
                !lowered.losses.iter().any(|loss| loss.what.starts_with("refused")),
                "{:?}",
                lowered.losses
            );
        }
    }
}

#[test]
fn d_05_what_the_contract_accepts_can_still_be_answered() {
    let mut judged = 0;
    for (name, module) in bundled() {
        for (file, mut reply) in replies(&name) {
            // The only member that is left out for every target, with a recorded loss.
            reply.as_object_mut().unwrap().shift_remove("partial_data");
            for target in
                [SchemaTarget::OpenAi, SchemaTarget::Anthropic, SchemaTarget::Gemini, SchemaTarget::Ollama]
            {
                let lowered = lower(&module, target);
                let answer = with_nulls(&lowered.schema, &lowered.schema, &reply);
                let errors: Vec<String> =
                    validator(&lowered.schema).iter_errors(&answer).map(|error| error.to_string()).collect();
                assert!(errors.is_empty(), "{file} for {target:?}: {errors:?}\n{:#}", lowered.schema);
                judged += 1;
            }
        }
    }
    assert!(judged > 90, "{judged}");
}

#[test]
fn d_05_nulls_that_a_target_asked_for_go_away_again() {
    for (name, module) in bundled() {
        let lowered = lower(&module, SchemaTarget::OpenAi);
        for (file, reply) in replies(&name) {
            let Value::Object(mut answer) = with_nulls(&lowered.schema, &lowered.schema, &reply) else {
                panic!()
            };
            let dropped = drop_stand_ins(&module.contract, SchemaTarget::OpenAi, &mut answer);
            assert_eq!(Value::Object(answer), reply, "{file} {dropped:?}");
        }
    }
}

/// The constraints of an author's schema on a value.
const CONSTRAINTS: [&str; 14] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "enum",
    "additionalProperties",
    "oneOf",
];

/// The number of occurrences of a keyword. A list of one value may become a `const`, and the `oneOf` of exclusive
/// branches may become an `anyOf`.
fn occurrences(schema: &Value, keyword: &str) -> usize {
    let mut count = 0;
    every_schema(schema, &mut |node| {
        let occurs = match keyword {
            "enum" => node.contains_key("enum") || node.contains_key("const"),
            "oneOf" => node.contains_key("oneOf") || node.contains_key("anyOf"),
            _ => node.contains_key(keyword),
        };
        count += usize::from(occurs);
    });
    count
}

#[test]
fn d_05_no_constraint_is_lost_without_a_word() {
    for (name, module) in bundled() {
        let before =
            envelope_schema(&module.contract, &module.rules).pointer("/properties/data").unwrap().clone();
        for target in SchemaTarget::ALL {
            let lowered = lower(&module, target);
            let after = data_of(&lowered);
            for keyword in CONSTRAINTS {
                let noted = lowered.losses.iter().filter(|loss| {
                    loss.keyword == keyword
                        && loss.path.starts_with("/properties/data")
                        && !loss.what.starts_with("tightened")
                });
                let (written, kept) = (occurrences(&before, keyword), occurrences(&after, keyword));
                let noted = noted.count();
                assert!(
                    kept + noted >= written,
                    "{name} {target:?} `{keyword}`: {written} written, {kept} kept, {noted} noted"
                );
            }
        }
    }
}

#[test]
fn d_05_losses_point_into_the_envelope_schema() {
    for (name, module) in bundled() {
        let envelope = envelope_schema(&module.contract, &module.rules);
        validator(&envelope);
        for target in SchemaTarget::ALL {
            for loss in lower(&module, target).losses {
                assert!(envelope.pointer(&loss.path).is_some(), "{name} {target:?} {loss:?}");
            }
        }
    }
}

#[test]
fn d_05_rationale_comes_first_and_meta_last() {
    let order = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    for (name, module) in bundled() {
        for target in SchemaTarget::ALL {
            let lowered = lower(&module, target);
            assert_eq!(order(&data_of(&lowered)).first().unwrap(), "rationale", "{name} {target:?}");
            let members = match SchemaDialect::for_target(target).envelope {
                OutcomeShape::OneObject => order(&lowered.schema),
                OutcomeShape::TwoObjects => order(&lowered.schema["anyOf"][0]),
            };
            assert_eq!((members.first().unwrap().as_str(), members.last().unwrap().as_str()), ("ok", "meta"));
        }
    }
}
