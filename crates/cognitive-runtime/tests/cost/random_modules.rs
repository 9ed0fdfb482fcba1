//! Random modules from a seed: open and bounded contracts, examples, templates that repeat their input, tools, parts
//! in every pattern, calls in prompts, fallback parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use cognitive_contract::{Format, Manifest, Module};
use cognitive_schema::{Contract, SCHEMA_FILE, SchemaFiles};
use cognitive_testkit::SeededRandom;
use serde_json::{Value, json};

/// A module that asks a model itself.
pub fn leaf(name: &str, random: &mut SeededRandom) -> Arc<Module> {
    let mut manifest = manifest(name, random);
    if random.next_below(4) == 0 {
        manifest["tools"] = json!({ "policy": "deny_by_default", "allowed": ["json_query", "current_time"] });
        manifest["policies"] = json!({});
    }
    let prompt = prompt(random);
    module(manifest, &schema(name.starts_with("open"), random), &prompt, random)
}

/// A module that is made of some of these.
pub fn composed(name: &str, parts: &[&str], random: &mut SeededRandom) -> Arc<Module> {
    let mut manifest = manifest(name, random);
    let required: Vec<Value> = parts
        .iter()
        .enumerate()
        .map(|(place, part)| {
            let mut part = json!({ "name": part, "optional": random.next_below(3) == 0 });
            if place + 1 < parts.len() && random.next_below(4) == 0 {
                part["fallback"] = json!(parts[place + 1]);
            }
            part
        })
        .collect();
    let pattern = ["sequential", "parallel", "conditional"][random.index(3)];
    let mut composition = json!({ "pattern": pattern, "requires": required });
    let first = parts[0];
    if pattern == "conditional" {
        let rules: Vec<Value> = parts
            .iter()
            .skip(1)
            .map(|part| json!({ "condition": format!("$.{first}.meta.confidence > 0.1"), "next": part }))
            .collect();
        composition["routing"] = json!(rules);
    } else if random.flip() {
        let mut flow = vec![json!({ "from": "input", "to": first })];
        for pair in parts.windows(2) {
            let mapping = json!({ "text": format!("$.{}.data.text", pair[0]), "again": format!("$.{}.data.text", pair[0]) });
            let mut step = json!({ "from": ["input", format!("{}.output", pair[0])], "to": pair[1] });
            if random.flip() {
                step["mapping"] = mapping;
            }
            flow.push(step);
        }
        if random.flip() {
            flow.push(json!({ "from": format!("{}.output", parts[parts.len() - 1]), "to": "output" }));
        }
        composition["dataflow"] = json!(flow);
    }
    manifest["composition"] = composition;
    let mut prompt = prompt(random);
    if random.next_below(3) == 0 {
        prompt = format!("{prompt}\n@call:{first}($INPUT)\n");
    }
    if random.flip() {
        prompt = format!("{prompt}\nIt said {{{{{first}.data.text}}}}.\n");
    }
    module(manifest, &schema(name.starts_with("open"), random), &prompt, random)
}

fn manifest(name: &str, random: &mut SeededRandom) -> Value {
    let tier = ["decision", "exploration"][random.index(2)];
    json!({ "name": name, "version": "1.0.0", "tier": tier })
}

fn prompt(random: &mut SeededRandom) -> String {
    let mut text = "Do what is asked. ".repeat(1 + random.index(60));
    for placed in ["$INPUT", "$SCHEMA", "$ENVELOPE", "$ARGUMENTS"] {
        if random.next_below(4) == 0 {
            text.push_str(placed);
            text.push('\n');
        }
    }
    text
}

fn schema(is_open: bool, random: &mut SeededRandom) -> Value {
    let text = if is_open {
        json!({ "type": "string" })
    } else {
        json!({ "type": "string", "maxLength": 100 + random.next_below(300) })
    };
    let mut data = json!({
        "type": "object", "required": ["rationale"],
        "properties": {
            "rationale": { "type": "string", "maxLength": 100 + random.next_below(200) },
            "text": text,
            "items": { "type": "array", "maxItems": 2 + random.next_below(5), "items": { "type": "string", "maxLength": 10 } },
        },
    });
    if !is_open {
        data["additionalProperties"] = json!(false);
    }
    json!({ "input": { "type": "object" }, "data": data })
}

fn module(manifest: Value, schema: &Value, prompt: &str, random: &mut SeededRandom) -> Arc<Module> {
    let manifest = Manifest::from_value(&manifest, Format::V22).unwrap();
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), schema.clone())]);
    let contract = Contract::compile(&files, &manifest.layout()).unwrap();
    let mut module = Module::new(manifest, contract, prompt.to_owned(), Format::V22);
    for place in 0..random.index(3) {
        let answer = json!({ "ok": true, "meta": { "confidence": 0.9, "risk": "low", "explain": "e" },
                             "data": { "rationale": "r", "text": "t" } });
        module.add_example(&place.to_string(), json!({ "text": "an example" }), answer).unwrap();
    }
    Arc::new(module)
}

/// A pool of modules to compose.
pub fn pool(count: usize, random: &mut SeededRandom) -> BTreeMap<String, Arc<Module>> {
    let name = |place: usize, random: &mut SeededRandom| {
        format!("{}-{place}", if random.next_below(3) == 0 { "open" } else { "bound" })
    };
    let mut pool = BTreeMap::new();
    for place in 0..count {
        let name = name(place, random);
        pool.insert(name.clone(), leaf(&name, random));
    }
    let leaves: Vec<String> = pool.keys().cloned().collect();
    for place in 0..count / 4 {
        let name = format!("{}-made", name(place, random));
        let parts: Vec<&str> = (0..2).map(|_| leaves[random.index(leaves.len())].as_str()).collect();
        if parts[0] != parts[1] {
            pool.insert(name.clone(), composed(&name, &parts, random));
        }
    }
    pool
}
