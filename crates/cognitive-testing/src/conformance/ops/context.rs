//! Operations on context: the model's context, the key and lifetime of an entry, and its visibility.
//! Stores nothing between two cases.

use std::time::Duration;

use cognitive_contract::context::{
    ContextFlow, Sanitiser, Ttl, Variables, key, prepare, split_updates, usable, without_context,
};
use cognitive_contract::manifest::ContextMode;
use cognitive_contract::{Enforcement, Module};
use cognitive_library::load;
use cognitive_runtime::receipt::canonical_sha256;
use serde_json::{Map, Value, json};

use super::{Arguments, Outcome, VectorStop, broken_vector, files};

/// Returns the `_context` for the model, or the code with which the run is refused.
pub(super) fn prepare_context(given: Arguments<'_>) -> Outcome {
    let module = module(given)?;
    let input = given.value("input")?;
    let before = input.clone();
    Ok(match prepare(&module, input.clone(), &Sanitiser::default(), Enforcement::Full) {
        Ok(prepared) => json!({ "context": prepared.context(), "input_unchanged": *input == before }),
        Err(failure) => json!({ "error": { "code": failure.code() }, "input_unchanged": *input == before }),
    })
}

/// The module of a case. Its sections accept anything unless the case provides a schema.
fn module(given: Arguments<'_>) -> Result<Module, VectorStop> {
    let mut schema = match given.get("schema") {
        Some(_) => given.object("schema")?.clone(),
        None => Map::new(),
    };
    for section in ["input", "data"] {
        schema.entry(section).or_insert_with(|| json!({}));
    }
    let mut all = match given.get("files") {
        Some(_) => files::files(given.object("files")?)?,
        None => files::Files::new(),
    };
    all.insert("module.yaml".to_owned(), given.value("manifest")?.to_string().into_bytes());
    all.insert("schema.json".to_owned(), Value::Object(schema).to_string().into_bytes());
    all.insert("prompt.md".to_owned(), b"p".to_vec());
    load(&files::folder(all)).map_err(|error| {
        broken_vector(format!("the module does not load: {}", error.into_failure().message()))
    })
}

/// The key of an entry; null if it has none.
pub(super) fn context_key(given: Arguments<'_>) -> Outcome {
    let optional = |name: &str| given.get(name).map(|_| given.text(name)).transpose();
    let input = given.value("input")?;
    let variables = Variables {
        module: given.text("module")?,
        input_hash: &|| canonical_sha256(&without_context(input)),
        user_id: optional("user_id")?,
        session_id: optional("session_id")?,
    };
    Ok(json!({ "key": key(given.text("pattern")?, &variables).map(|key| key.text) }))
}

/// Checks whether emitted context is still available.
pub(super) fn context_lookup(given: Arguments<'_>) -> Outcome {
    let emitted = given.child("emitted")?;
    let age = given.value("age_seconds")?.as_f64().and_then(|age| Duration::try_from_secs_f64(age).ok());
    let age = age.ok_or_else(|| broken_vector("`age_seconds` is not an age"))?;
    // Neither of them decides whether the entry is still available.
    for part in ["type", "value"] {
        emitted.get(part);
    }
    let emitted = ttl(emitted, "ttl")?.unwrap_or(Ttl::Request);
    let present = usable(emitted, ttl(given, "accept_ttl")?, age, given.flag("same_request")?);
    Ok(json!({ "present": present }))
}

fn ttl(given: Arguments<'_>, name: &str) -> Result<Option<Ttl>, VectorStop> {
    let Some(seconds) = given.get(name) else { return Ok(None) };
    let ttl = seconds.as_i64().and_then(Ttl::parse);
    ttl.map(Some).ok_or_else(|| broken_vector(format!("`{name}` is not a number of seconds from -1 up")))
}

/// Shows which context each child sees when children run one after another.
pub(super) fn context_propagation(given: Arguments<'_>) -> Outcome {
    let mode = match given.text("mode")? {
        "main" => ContextMode::Main,
        "fork" => ContextMode::Fork,
        other => return Err(broken_vector(format!("unknown mode: `{other}`"))),
    };
    let mut parent = ContextFlow::new(mode, given.object("parent_context")?.clone());
    let mut seen_by = Map::new();
    for (turn, child) in given.list("children")?.iter().enumerate() {
        let child = given.nested_arguments(child)?;
        seen_by.insert(child.text("name")?.to_owned(), Value::Object(parent.child_context(|_| true)));
        parent.child_done(turn, child.object("updates")?.clone());
    }
    let after = parent.child_context(|_| true);
    if given.get("emits").is_none() {
        return Ok(json!({ "parent_after": after, "seen_by": seen_by }));
    }
    let declared: Vec<&str> = given.list("emits")?.iter().filter_map(Value::as_str).collect();
    let (emitted, _) = split_updates(parent.into_updates(), &declared);
    Ok(json!({ "parent_after": after, "seen_by": seen_by, "emitted": emitted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctx_004_a_module_that_does_not_load_breaks_the_case() {
        let accepts = json!([{ "type": "a", "schema": "a.json" }]);
        let mut given = json!({ "manifest": { "name": "m", "tier": "decision", "context": { "accepts": accepts } }, "input": {} });
        let outcome = prepare_context(Arguments::new(&given).unwrap());
        assert!(matches!(outcome, Err(VectorStop::Broken(why)) if why.contains("`a.json` is missing")));
        given["files"] = json!({ "a.json": { "type": "integer" } });
        given["input"] = json!({ "_context": { "a": "x" } });
        assert_eq!(prepare_context(Arguments::new(&given).unwrap()).unwrap()["error"]["code"], "E1001");
    }

    #[test]
    fn ctx_023_030_optional_arguments_count() {
        let key = json!({ "pattern": "${user_id}/${session_id}", "module": "m", "input": {}, "user_id": "u", "session_id": "s" });
        assert_eq!(context_key(Arguments::new(&key).unwrap()), Ok(json!({ "key": "u/s" })));
        let lookup = |accept_ttl: Value| {
            let given = json!({ "emitted": { "ttl": -1 }, "age_seconds": 60, "accept_ttl": accept_ttl });
            context_lookup(Arguments::new(&given).unwrap())
        };
        assert_eq!(lookup(json!(61)), Ok(json!({ "present": true })));
        assert_eq!(lookup(json!(60)), Ok(json!({ "present": false })));
        assert!(lookup(json!("60")).is_err() && lookup(json!(-2)).is_err());
    }
}
