//! The inputs of the growth tests: replies and schemas of any size, each broken in one way. Judges nothing.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Clean,
    SingleQuotes,
    Comments,
    /// One name, repeated.
    Duplicates,
    /// Every item violates the contract.
    Violations,
    /// Many objects instead of one.
    Scattered,
}

impl Written {
    pub const ALL: [Self; 6] = [
        Self::Clean,
        Self::SingleQuotes,
        Self::Comments,
        Self::Duplicates,
        Self::Violations,
        Self::Scattered,
    ];

    /// Returns one item of the reply.
    fn item(self, number: usize) -> String {
        match self {
            Self::Clean => format!(r#""word {number:07}""#),
            Self::SingleQuotes => format!("'word {number:07}'"),
            Self::Comments => format!(r#""word {number:07}"/*c*/"#),
            Self::Duplicates => r#""a":1"#.to_owned(),
            Self::Violations => format!("{}", 1_000_000 + number),
            Self::Scattered => format!(r#"{{"word":{number}}}"#),
        }
    }
}

/// Writes a reply to the module of [`items`] of about this size, with a rationale longer than a pipe buffer.
pub fn reply(written: Written, bytes: usize) -> String {
    let mut items = String::with_capacity(bytes + 200);
    for number in 0.. {
        if items.len() >= bytes {
            break;
        }
        if number > 0 {
            items.push(if written == Written::Scattered { '\n' } else { ',' });
        }
        items.push_str(&written.item(number));
    }
    let (before, after) = match written {
        Written::Duplicates => ("[{", "}]"),
        Written::Scattered => ("[]}}\n", ""),
        _ => ("[", "]"),
    };
    let meta = r#""ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"}"#;
    let end = if written == Written::Scattered { "" } else { "}}" };
    let rationale = "because ".repeat(12_500);
    format!(r#"{{{meta}, "data": {{"rationale": "{rationale}", "items": {before}{items}{after}{end}"#)
}

/// Writes a module whose answers are lists.
pub fn items(parent: &Path) -> String {
    let item = json!({ "type": ["string", "object"] });
    let properties =
        json!({ "rationale": { "type": "string" }, "items": { "type": "array", "items": item } });
    let data = json!({ "type": "object", "required": ["rationale", "items"], "properties": properties });
    module(parent, "items", &data)
}

/// Writes a module whose answers have this many required members.
pub fn required(parent: &Path, count: usize) -> String {
    let names = || (0..count).map(|number| format!("member_{number}"));
    let mut properties = Map::from_iter([("rationale".to_owned(), json!({ "type": "string" }))]);
    properties.extend(names().map(|name| (name, json!({ "type": "string" }))));
    let required: Vec<String> = ["rationale".to_owned()].into_iter().chain(names()).collect();
    let data = json!({ "type": "object", "required": required, "properties": properties });
    module(parent, &format!("required-{count}"), &data)
}

/// Writes a module whose answers have this many overlapping alternatives.
pub fn branches(parent: &Path, count: usize) -> String {
    let branch = |number: usize| {
        let name = format!("member_{number}");
        json!({ "type": "object", "required": [name],
                "properties": { name: { "type": "string" }, "other": { "type": "integer" } } })
    };
    let branches: Vec<Value> = (0..count).map(branch).collect();
    let properties = json!({ "rationale": { "type": "string" }, "form": { "oneOf": branches } });
    let data = json!({ "type": "object", "required": ["rationale", "form"], "properties": properties });
    module(parent, &format!("branches-{count}"), &data)
}

fn module(parent: &Path, name: &str, data: &Value) -> String {
    let folder = parent.join(name);
    fs::create_dir_all(&folder).unwrap();
    let manifest = json!({
        "name": name, "version": "1.0.0", "responsibility": "Shows what something costs", "tier": "decision",
        "excludes": ["anything else"], "overflow": { "enabled": false },
    });
    let schema = json!({ "input": { "type": "object" }, "data": data });
    fs::write(folder.join("module.yaml"), manifest.to_string()).unwrap();
    fs::write(folder.join("schema.json"), schema.to_string()).unwrap();
    fs::write(folder.join("prompt.md"), "Do it.").unwrap();
    folder.to_string_lossy().into_owned()
}
