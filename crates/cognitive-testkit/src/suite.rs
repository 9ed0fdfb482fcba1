//! Reads the JSON Schema Test Suite: schemas of three dialects with valid and invalid values.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::{Lack, skip};

/// The dialects of the suite that are read, as its folders name them.
const DIALECTS: [(&str, &str); 3] = [
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft2019-09", "https://json-schema.org/draft/2019-09/schema"),
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema"),
];

/// The address at which the suite serves its remote schemas, and that of the schemas of schemas.
const REMOTE: [&str; 3] = ["http://localhost:1234/", "http://json-schema.org/", "https://json-schema.org/"];

/// One schema of the suite, with its cases.
#[derive(Debug)]
pub struct SuiteGroup {
    /// Dialect, file and description.
    pub name: String,
    /// The schema. It declares its dialect.
    pub schema: Value,
    /// Values for the schema.
    pub cases: Vec<SuiteCase>,
}

impl SuiteGroup {
    /// The schema as `schema.json` of a module. The data of the module have a value of the schema as `x`.
    #[must_use]
    pub fn module_schema(&self) -> Value {
        let (mut root, x) = match &self.schema {
            Value::Object(members) => (members.clone(), json!({ "$ref": "#" })),
            other => (Map::new(), other.clone()),
        };
        root.insert("input".to_owned(), json!({}));
        let data = json!({
            "type": "object", "required": ["rationale", "x"], "additionalProperties": false,
            "properties": { "rationale": { "type": "string" }, "x": x },
        });
        root.insert("data".to_owned(), data);
        Value::Object(root)
    }
}

impl SuiteCase {
    /// The value as the data of a module with [`SuiteGroup::module_schema`].
    #[must_use]
    pub fn data(&self) -> Value {
        json!({ "rationale": "r", "x": self.value })
    }
}

/// One value of the suite.
#[derive(Debug)]
pub struct SuiteCase {
    /// What is special about the value.
    pub name: String,
    /// The value.
    pub value: Value,
    /// True if the schema accepts the value.
    pub is_valid: bool,
}

/// The required cases of the JSON Schema Test Suite in the folder `COGN_TEST_JSON_SCHEMA_SUITE`, without schemas that
/// have to be fetched. `None`, after [`skip`], if the folder is missing.
///
/// # Panics
/// If the suite cannot be read.
#[must_use]
pub fn json_schema_suite() -> Option<Vec<SuiteGroup>> {
    let folder = std::env::var_os("COGN_TEST_JSON_SCHEMA_SUITE").map(PathBuf::from);
    let Some(folder) = folder.filter(|folder| folder.join("tests").is_dir()) else {
        skip(Lack::JsonSchemaSuite);
        return None;
    };
    Some(
        DIALECTS
            .iter()
            .flat_map(|(name, address)| groups(&folder.join("tests").join(name), name, address))
            .collect(),
    )
}

#[expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]
fn groups(folder: &Path, dialect: &str, address: &str) -> Vec<SuiteGroup> {
    let files = fs::read_dir(folder).unwrap();
    let files: BTreeSet<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    let mut groups = Vec::new();
    for file in files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let text = fs::read_to_string(&file).unwrap();
        let listed: Value = serde_json::from_str(&text).unwrap();
        let file = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for group in listed.as_array().into_iter().flatten() {
            let text = |node: &Value| node["description"].as_str().unwrap_or_default().to_owned();
            let mut schema = group["schema"].clone();
            if let Value::Object(members) = &mut schema {
                members.entry("$schema").or_insert_with(|| address.into());
            }
            if is_remote(&schema) {
                continue;
            }
            let cases = group["tests"].as_array().into_iter().flatten().map(|case| SuiteCase {
                name: text(case),
                value: case["data"].clone(),
                is_valid: case["valid"] == true,
            });
            let name = format!("{dialect}/{file}: {}", text(group));
            groups.push(SuiteGroup { name, schema, cases: cases.collect() });
        }
    }
    groups
}

/// Returns whether a schema needs another document: a reference, or a dialect, at an address of the suite that the schema
/// does not define itself.
fn is_remote(schema: &Value) -> bool {
    let mut addresses = Addresses::default();
    addresses.read(schema, "");
    addresses
        .named
        .difference(&addresses.known)
        .any(|address| REMOTE.iter().any(|base| address.starts_with(base)))
}

/// The addresses of a schema, without fragments.
#[derive(Default)]
struct Addresses {
    known: BTreeSet<String>,
    named: BTreeSet<String>,
}

impl Addresses {
    fn read(&mut self, node: &Value, base: &str) {
        match node {
            Value::Array(items) => items.iter().for_each(|item| self.read(item, base)),
            Value::Object(members) => {
                let base = match members.get("$id").and_then(Value::as_str) {
                    Some(id) => join_reference(base, id),
                    None => base.to_owned(),
                };
                self.known.insert(base.clone());
                for keyword in ["$ref", "$dynamicRef", "$recursiveRef", "$schema"] {
                    let Some(reference) = members.get(keyword).and_then(Value::as_str) else { continue };
                    let is_dialect = DIALECTS.iter().any(|(_, address)| *address == reference);
                    if !is_dialect || keyword != "$schema" {
                        self.named.insert(join_reference(&base, reference));
                    }
                }
                members
                    .iter()
                    .filter(|(name, _)| !["enum", "const"].contains(&name.as_str()))
                    .for_each(|(_, child)| self.read(child, &base));
            }
            _ => {}
        }
    }
}

/// A reference of the suite below a base, which is enough for the forms that the suite uses.
fn join_reference(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    let origin = base.match_indices('/').nth(2).map_or(base, |(end, _)| base.get(..end).unwrap_or(base));
    if reference.is_empty() {
        base.to_owned()
    } else if reference.contains(':') {
        reference.to_owned()
    } else if reference.starts_with('/') {
        format!("{origin}{reference}")
    } else {
        let folder = base.rfind('/').map_or("", |end| base.get(..=end).unwrap_or_default());
        format!("{folder}{reference}")
    }
}
