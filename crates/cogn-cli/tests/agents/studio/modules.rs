//! The modules for the page: one with a nested form, one that streams and can be edited, one with low confidence, and
//! one with a hostile author and model.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::model::Recorded;

/// A prompt that gets another answer from the model.
pub(crate) const CHANGED_PROMPT: &str = "Find the cold words.";
/// The number of lines of the longest text.
pub(crate) const LINES: usize = 100_000;
/// The number of letters of the longest line.
const LONG: usize = 1_000_000;

struct Written {
    name: &'static str,
    about: &'static str,
    prompt: &'static str,
    input: Value,
    data: Value,
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Returns a module with a nested form: objects, lists, an extensible enum, a choice.
fn trip() -> Written {
    let custom = object(&["custom", "reason"], json!({ "custom": text(), "reason": text() }));
    let kind = json!({ "oneOf": [{ "enum": ["museum", "beach"] }, custom] });
    let stop = object(
        &["city"],
        json!({ "city": text(), "nights": { "type": "integer", "minimum": 0 }, "kind": kind }),
    );
    let by = |way: &str, member: &str| {
        object(
            &["by", member],
            json!({ "by": { "const": way }, member: { "type": "string", "minLength": 1 } }),
        )
    };
    let properties = json!({
        "traveller": object(&["name"], json!({
            "name": { "type": "string", "minLength": 1, "description": "Who travels" },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
        })),
        "class": { "enum": ["first", "second"], "description": "Where they sit" },
        "stops": { "type": "array", "items": stop, "maxItems": 9, "description": "Where they stay" },
        "contact": { "oneOf": [by("mail", "address"), by("phone", "number")] },
        "quiet": { "type": "boolean" },
    });
    let insights = json!({ "type": "array", "items": object(&["text", "suggested_mapping"], json!({
        "text": text(), "suggested_mapping": text(),
    })) });
    let data = object(
        &["rationale", "plan"],
        json!({
            "rationale": text(),
            "plan": { "type": "array", "items": object(&["day", "what"], json!({ "day": { "type": "integer" }, "what": text() })) },
            "extensions": object(&[], json!({ "insights": insights })),
        }),
    );
    Written {
        name: "trip",
        about: "Plan a journey for one traveller",
        prompt: "You plan a trip.",
        input: object(&["traveller"], properties),
        data,
    }
}

fn words() -> Written {
    let list = json!({ "type": "array", "items": text() });
    Written {
        name: "words",
        about: "Find words",
        prompt: "Find the words.",
        input: object(&["text"], json!({ "text": { "type": "string", "description": "Where to look" } })),
        data: object(&["rationale", "words"], json!({ "rationale": text(), "words": list })),
    }
}

fn unsure() -> Written {
    Written {
        name: "unsure",
        about: "Guess a word",
        prompt: "Guess a word.",
        input: object(&["text"], json!({ "text": text() })),
        data: object(&["rationale", "word"], json!({ "rationale": text(), "word": text() })),
    }
}

fn hostile() -> Written {
    Written {
        name: "hostile",
        about: "<b onclick=window.hacked=4>Hostile</b> \u{202e}txet",
        prompt: "<img src=x onerror=alert(1)> Be hostile.",
        input: object(&[], json!({ "text": text() })),
        data: object(&["rationale"], json!({ "rationale": text() })),
    }
}

/// Writes all of them into the project of a home.
pub(crate) fn write_all(home: &Path) {
    for module in [trip(), words(), unsure(), hostile()] {
        write(&home.join("cognitive/modules"), &module, "1.0.0");
    }
    // An older version of one of them, which the newer one shadows.
    let older = Written { prompt: CHANGED_PROMPT, ..words() };
    write(&home.join(".cognitive/modules"), &older, "0.9.0");
}

fn write(modules: &Path, module: &Written, version: &str) {
    let folder = modules.join(module.name);
    fs::create_dir_all(&folder).unwrap();
    let (name, about) = (module.name, json!(module.about));
    let manifest = format!(
        "name: {name}\nversion: \"{version}\"\nresponsibility: {about}\ntier: decision\nexcludes: []\nresponse: {{mode: both}}\noverflow: {{enabled: true, max_items: 5}}\nenums: {{strategy: extensible}}\n"
    );
    fs::write(folder.join("module.yaml"), manifest).unwrap();
    fs::write(folder.join("prompt.md"), module.prompt).unwrap();
    let schema = json!({ "input": module.input, "data": module.data });
    fs::write(folder.join("schema.json"), format!("{schema:#}")).unwrap();
}

fn answers(prompt: &str, confidence: f64, data: &Value) -> Recorded {
    let meta = json!({ "confidence": confidence, "risk": "low", "explain": "A quiet week by train." });
    let reply = json!({ "ok": true, "data": data, "meta": meta });
    Recorded {
        module: String::new(),
        input: Value::Null,
        prompt: prompt.to_owned(),
        reply: reply.to_string(),
    }
}

/// Returns the replies of the model to each of them.
pub(crate) fn known() -> Vec<Recorded> {
    let insight = json!({ "text": "keep the letters dry", "suggested_mapping": "luggage" });
    let trip_data = json!({
        "rationale": "Trains go there every hour.", "extensions": { "insights": [insight] },
        "plan": [{ "day": 1, "what": "to Malmö" }, { "day": 2, "what": "the archive" }],
    });
    let found = |words: [&str; 2]| json!({ "rationale": "It is ☕ short, and \"quoted\".", "words": words });
    let many = (1..=LINES).map(|line| format!("line {line} of many\n")).collect::<Vec<_>>().concat();
    let dangerous = json!({
        "rationale": "<script>window.hacked = 1</script>",
        "picture": "<img src=x onerror=\"window.hacked = 2\">",
        "markdown": "**bold** [link](javascript:window.hacked=3)",
        "turned": "abc\u{202e}fed\u{202c} and \u{2066}more\u{2069}",
        "long": "x".repeat(LONG),
        "lines": many,
        "<b>name</b>": ["<i>item</i>"],
    });
    vec![
        answers("You plan a trip.", 0.9, &trip_data),
        answers(CHANGED_PROMPT, 0.8, &found(["winter", "hail"])),
        answers("Find the words.", 0.9, &found(["winter", "snow"])),
        answers("Find all the words.", 0.9, &found(["winter", "snow"])),
        answers("Find the longest words.", 0.9, &found(["winter", "snow"])),
        answers("Guess a word.", 0.4, &json!({ "rationale": "It may be anything.", "word": "guess" })),
        answers("Be hostile.", 0.9, &dangerous),
    ]
}
