//! Rewrites the keywords of schemas, and every reference to a location that moves. One function says where a keyword
//! goes; writing, references and reports all use it.

use serde_json::{Map, Value, json};

use super::super::SchemaFiles;
use super::super::ids::percent_encode;
use super::super::refs::{file_of_ref, percent_decoded};
use super::super::walk::{MemberNames, visit};
use super::Dialect;
use super::keywords::{foreign, has_rules, is_rule};
use crate::text::escape;

/// Marks a keyword that has no effect. It stays in the schema, since references may lead into it.
const UNREAD: &str = "x-unread-";

/// Keywords whose work is done when the core form is written.
const DONE: [&str; 5] = ["$schema", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"];

/// The keywords of the core form that Draft-07 lacks.
const BEYOND_DRAFT_07: [&str; 4] =
    ["maxContains", "minContains", "unevaluatedItems", "unevaluatedProperties"];

/// Keywords that become `dependencies`.
const DEPENDENCIES: [&str; 3] = ["dependencies", "dependentSchemas", "dependentRequired"];

/// The core form of files.
pub(super) fn core(files: &SchemaFiles) -> SchemaFiles {
    let place = CorePlace::new(files);
    DialectRewriter { files, place: &|schema, dialect, keyword| place.steps(schema, dialect, keyword) }.all()
}

/// Files in core form, spelled with the keywords of 2020-12; `None` if Draft-07 can express them.
pub(in crate::validate) fn rewrite_2020_12(files: &SchemaFiles) -> Option<SchemaFiles> {
    if !is_any_rule(files, &BEYOND_DRAFT_07) {
        return None;
    }
    let place = |schema: &Map<String, Value>, _: Dialect, keyword: &str| {
        let is_listed = schema.get("items").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
        let needs = |is_list: bool| {
            let needs = schema.get("dependencies").and_then(Value::as_object);
            needs.is_some_and(|needs| needs.values().all(|need| need.is_array() == is_list))
        };
        vec![match keyword {
            // The validator looks for evaluated members in `dependentSchemas` only.
            "dependencies" if needs(false) => "dependentSchemas".to_owned(),
            "dependencies" if needs(true) => "dependentRequired".to_owned(),
            "items" if is_listed => "prefixItems".to_owned(),
            "items" if schema.get("items").is_some_and(Value::is_array) => format!("{UNREAD}items"),
            "additionalItems" if schema.get("items").is_some_and(Value::is_array) => "items".to_owned(),
            "additionalItems" => format!("{UNREAD}additionalItems"),
            other => other.to_owned(),
        }]
    };
    Some(DialectRewriter { files, place: &place }.all())
}

/// The location in the files as written for a location in their core form, as far as it has one.
pub(in crate::validate) fn written_pointer(files: &SchemaFiles, file: &str, pointer: &str) -> String {
    let place = CorePlace::new(files);
    let (mut names, mut dialect) = (MemberNames::Keywords, Dialect::for_file(files, file));
    let Some(mut node) = files.get(file) else { return pointer.to_owned() };
    let tokens: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
    let (mut rest, mut written) = (tokens.as_slice(), String::new());
    while let [token, after @ ..] = rest {
        let (name, child, length) = match node {
            Value::Object(members) if names == MemberNames::Keywords => {
                dialect = dialect.nested_dialect(members);
                let moved = members.iter().filter_map(|(name, child)| {
                    let steps = place.steps(members, dialect, name);
                    (!steps.is_empty() && rest.starts_with(&steps)).then_some((
                        name.as_str(),
                        child,
                        steps.len(),
                    ))
                });
                let Some(found) = moved.max_by_key(|(_, _, length)| *length) else { break };
                found
            }
            Value::Object(members) => match members.get_key_value(token) {
                Some((name, child)) => (name.as_str(), child, 1),
                None => break,
            },
            Value::Array(items) => match token.parse::<usize>().ok().and_then(|index| items.get(index)) {
                Some(item) => (token.as_str(), item, 1),
                None => break,
            },
            _ => break,
        };
        let below = if node.is_array() { Some(MemberNames::Keywords) } else { names.names_below(name) };
        written.push('/');
        written.push_str(&escape(name));
        (node, rest) = (child, rest.get(length..).unwrap_or(after));
        match below {
            Some(below) => names = below,
            None => break,
        }
    }
    written
}

/// The places of keywords in the core form.
struct CorePlace {
    /// True if `contains` of 2019-09 has to be hidden from `unevaluatedItems`, which would count its items elsewhere.
    hides_contains: bool,
}

impl CorePlace {
    fn new(files: &SchemaFiles) -> Self {
        Self { hides_contains: is_any_rule(files, &["unevaluatedItems"]) }
    }

    /// The steps from a schema to the new place of one of its keywords. Without steps, the keyword is dropped.
    fn steps(&self, schema: &Map<String, Value>, dialect: Dialect, keyword: &str) -> Vec<String> {
        let unread = || vec![format!("{UNREAD}{keyword}")];
        if foreign(dialect, keyword) {
            return unread();
        }
        if dialect == Dialect::Draft07 {
            // Draft-07 ignores other rules next to `$ref`.
            let is_ignored = schema.get("$ref").is_some_and(Value::is_string) && is_rule(keyword);
            return if is_ignored { unread() } else { vec![keyword.to_owned()] };
        }
        let apart = self.separate_keywords(schema, dialect);
        let group = if is_count(keyword) { "contains" } else { keyword };
        if let Some(position) = apart.iter().position(|each| *each == group) {
            let before = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
            let mut steps = vec!["allOf".to_owned(), (before + position).to_string()];
            if group == "contains" {
                steps.extend(["not".to_owned(), "not".to_owned()]);
            }
            steps.push(if DEPENDENCIES.contains(&keyword) { "dependencies" } else { keyword }.to_owned());
            return steps;
        }
        match keyword {
            _ if DONE.contains(&keyword) => Vec::new(),
            "$id" if schema.get(keyword).is_some_and(Value::is_string) => Vec::new(),
            "minContains" | "maxContains" if !schema.contains_key("contains") => unread(),
            "prefixItems" => vec!["items".to_owned()],
            "items" if schema.get("prefixItems").is_some_and(Value::is_array) => {
                vec!["additionalItems".to_owned()]
            }
            _ if DEPENDENCIES.contains(&keyword) => vec!["dependencies".to_owned()],
            _ => vec![keyword.to_owned()],
        }
    }

    /// The keywords that become separate schemas at the end of `allOf`, in this order.
    fn separate_keywords(&self, schema: &Map<String, Value>, dialect: Dialect) -> Vec<&'static str> {
        let mut apart = Vec::new();
        if schema.contains_key("$ref") && has_rules(schema) {
            apart.push("$ref");
        }
        apart.extend(DEPENDENCIES.into_iter().filter(|keyword| schema.contains_key(*keyword)).skip(1));
        if self.hides_contains && dialect == Dialect::Draft201909 && schema.contains_key("contains") {
            apart.push("contains");
        }
        apart
    }
}

fn is_any_rule(files: &SchemaFiles, keywords: &[&str]) -> bool {
    let mut found = false;
    for root in files.values() {
        visit(root, &mut |schema, _| found |= keywords.iter().any(|keyword| schema.get(keyword).is_some()));
    }
    found
}

fn is_count(keyword: &str) -> bool {
    matches!(keyword, "minContains" | "maxContains")
}

/// The function that returns the steps from a schema to the new place of a keyword.
type Place<'p> = &'p dyn Fn(&Map<String, Value>, Dialect, &str) -> Vec<String>;

struct DialectRewriter<'p> {
    files: &'p SchemaFiles,
    place: Place<'p>,
}

impl DialectRewriter<'_> {
    fn all(&self) -> SchemaFiles {
        let rewritten = self.files.iter().map(|(file, root)| {
            let dialect = Dialect::for_file(self.files, file);
            (file.clone(), self.value(root, MemberNames::Keywords, dialect, file))
        });
        rewritten.collect()
    }

    /// Rewrites a value. It nests no deeper than the limit for files.
    fn value(&self, node: &Value, names: MemberNames, dialect: Dialect, file: &str) -> Value {
        match node {
            Value::Object(members) if names == MemberNames::Keywords => {
                self.schema(members, dialect.nested_dialect(members), file)
            }
            Value::Object(members) => {
                let child = |(name, child): (&String, &Value)| {
                    (name.clone(), self.value(child, MemberNames::Keywords, dialect, file))
                };
                Value::Object(members.iter().map(child).collect())
            }
            Value::Array(items) => {
                items.iter().map(|item| self.value(item, MemberNames::Keywords, dialect, file)).collect()
            }
            other => other.clone(),
        }
    }

    fn schema(&self, members: &Map<String, Value>, dialect: Dialect, file: &str) -> Value {
        let mut schema = Value::Object(Map::new());
        let mut apart = Vec::new();
        for (keyword, child) in members {
            let child = match (child, MemberNames::Keywords.names_below(keyword)) {
                (Value::String(reference), _) if keyword == "$ref" => self.reference(reference, file),
                (child, Some(names)) => self.value(child, names, dialect, file),
                (child, None) => child.clone(),
            };
            let steps = (self.place)(members, dialect, keyword);
            if steps.len() > 1 {
                apart.push((steps, child));
            } else {
                put(&mut schema, &steps, child);
            }
        }
        // After `allOf` itself, to whose end they go, and in their order.
        apart.sort_by_key(|(steps, _)| steps.get(1).and_then(|index| index.parse::<usize>().ok()));
        for (steps, child) in apart {
            put(&mut schema, &steps, child);
        }
        schema
    }

    /// A reference to a location that may have moved.
    fn reference(&self, reference: &str, file: &str) -> Value {
        let (path, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let target = file_of_ref(reference, file).ok().flatten().unwrap_or_else(|| file.to_owned());
        let written = percent_decoded(fragment);
        let moved = self.moved_pointer(&target, &written);
        if moved == written { json!(reference) } else { json!(format!("{path}#{}", percent_encode(&moved))) }
    }

    /// The new location of a location.
    fn moved_pointer(&self, file: &str, pointer: &str) -> String {
        let (mut names, mut dialect) = (Some(MemberNames::Keywords), Dialect::for_file(self.files, file));
        let mut node = self.files.get(file);
        let mut moved = String::new();
        for token in pointer.split('/').skip(1).map(unescape) {
            let mut push = |step: &str| {
                moved.push('/');
                moved.push_str(&escape(step));
            };
            match (node, names) {
                (Some(Value::Object(members)), Some(MemberNames::Keywords)) => {
                    dialect = dialect.nested_dialect(members);
                    for step in &(self.place)(members, dialect, &token) {
                        push(step);
                    }
                }
                _ => push(&token),
            }
            names = match node {
                Some(Value::Array(_)) => Some(MemberNames::Keywords),
                _ => names.and_then(|names| names.names_below(&token)),
            };
            node = match node {
                Some(Value::Object(members)) => members.get(&token),
                Some(Value::Array(items)) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
                _ => None,
            };
        }
        moved
    }
}

/// Puts a value at the end of the steps, and creates the objects and the last item of `allOf` on the way.
fn put(schema: &mut Value, steps: &[String], value: Value) {
    let [step, rest @ ..] = steps else { return };
    match schema {
        Value::Object(members) if rest.is_empty() => {
            members.insert(step.clone(), value);
        }
        Value::Object(members) => {
            let fresh = || if step == "allOf" { json!([]) } else { json!({}) };
            put(members.entry(step.clone()).or_insert_with(fresh), rest, value);
        }
        Value::Array(items) => {
            let index = step.parse::<usize>().unwrap_or(usize::MAX);
            if index >= items.len() {
                items.push(json!({}));
            }
            if let Some(item) = items.last_mut() {
                put(item, rest, value);
            }
        }
        _ => {}
    }
}

fn unescape(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
