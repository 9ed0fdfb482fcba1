//! Rewrites references by `$id` as JSON pointers before other code reads the files: plain names (`#name`), absolute
//! addresses and URNs within the module. (SCH-003) Later code sees only pointers, so cycles and limits are checked as
//! usual. An `$id` is never fetched; a reference to an unknown one stays as written.
//!
//! Dialects after Draft-07 also have `$anchor`, `$dynamicRef` and `$recursiveRef`, and a reference may have keywords next
//! to it.

mod dynamic;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jsonschema::uri;
use serde_json::{Map, Value, json};

use dynamic::{DynamicAnchor, DynamicReference};

use super::SchemaFiles;
use super::dialect::{Dialect, foreign};
use super::refs::{DATA_KEYWORDS, ENTANGLED, MAX_REFERENCES, file_of_ref, percent_decoded};
use super::walk::NAME_MAPS;
use crate::text::{self, fits};

/// The base address of files without an `$id`. The scheme is internal; references need not name it.
const BASE: &str = "module:///";

/// Characters of an identifier, and of its resolved form. A longer one is only a label.
const MAX_LENGTH: usize = 1_000;

/// Identifiers in one module; the rest are only labels. A real module has a handful.
const MAX_COUNT: usize = 2_000;

/// Keywords whose value is one schema, or a list of them. Elsewhere, except in the sections of a file, an `$id` is
/// data.
const SCHEMA_KEYWORDS: [&str; 15] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

const REFERENCE: &str = "$ref";

/// The keywords that refer to other schemas. `dialect` has those that only some dialects read.
const REFERENCES: [&str; 3] = [REFERENCE, "$dynamicRef", "$recursiveRef"];

/// A location in the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Spot {
    file: String,
    pointer: String,
}

/// The location for an address and a name. The name is empty for the whole schema.
struct SchemaNames {
    spot: Spot,
    /// True if another location has the same identifier. Then neither counts, since most such identifiers are copied
    /// labels.
    is_twice: bool,
}

/// A reference, its location and its base address.
struct FoundReference<'a> {
    at: Spot,
    base: String,
    /// The innermost enclosing schema with its own address, if that is not the file.
    within: Option<Spot>,
    keyword: &'static str,
    reference: &'a str,
}

/// All identifiers and references of the files.
#[derive(Default)]
struct Ids<'a> {
    named: HashMap<(String, String), SchemaNames>,
    /// For the default address of a file, the address from its own `$id`.
    own_address: HashMap<String, String>,
    references: Vec<FoundReference<'a>>,
    /// The schemas with an address, and the starts of files.
    resources: Vec<Spot>,
    /// The anchors that dynamic references can reach from elsewhere.
    anchors: Vec<DynamicAnchor>,
}

/// The files with every reference by `$id` as a pointer; the unchanged files if there is none.
pub(super) fn resolve_ids(files: &SchemaFiles) -> Cow<'_, SchemaFiles> {
    let ids = Ids::read(files);
    let dynamic = ids.dynamic(files);
    let is_dynamic = |found: &FoundReference<'_>| {
        dynamic.iter().any(|other| *other.at == found.at && other.keyword == found.keyword)
    };
    let changed: Vec<(&FoundReference<'_>, String)> = ids
        .references
        .iter()
        .filter(|found| found.keyword == REFERENCE || !is_dynamic(found))
        .filter_map(|found| {
            let pointer = ids.spot(found, files).map(|spot| relative_reference(&found.at.file, &spot));
            // Every other kind of reference becomes a `$ref`, also one that is a pointer already or leads nowhere.
            let text = pointer.or_else(|| (found.keyword != REFERENCE).then(|| found.reference.to_owned()));
            Some((found, text?))
        })
        .collect();
    let mut resolved = Cow::Borrowed(files);
    for (found, reference) in changed {
        let FoundReference { at, keyword, .. } = found;
        let schema = resolved.to_mut().get_mut(&at.file).and_then(|root| root.pointer_mut(&at.pointer));
        if let Some(Value::Object(members)) = schema {
            refer(members, keyword, reference);
        }
    }
    if dynamic.is_empty() {
        return resolved;
    }
    let resolved = resolved.into_owned();
    dynamic::replace_dynamic(resolved.clone(), &ids.resources, &ids.anchors, &dynamic)
        .map_or_else(|| Cow::Owned(refuse_dynamic(resolved, &dynamic)), Cow::Owned)
}

/// The files with a reference that is refused in place of each dynamic one.
fn refuse_dynamic(mut files: SchemaFiles, dynamic: &[DynamicReference<'_>]) -> SchemaFiles {
    for found in dynamic {
        let schema = files.get_mut(&found.at.file).and_then(|root| root.pointer_mut(&found.at.pointer));
        if let Some(Value::Object(members)) = schema {
            refer(members, found.keyword, ENTANGLED.to_owned());
        }
    }
    files
}

/// Replaces a reference of a schema by a `$ref`. A second one goes to the end of `allOf`, where it moves no other schema.
fn refer(schema: &mut Map<String, Value>, keyword: &str, reference: String) {
    if keyword != REFERENCE {
        schema.shift_remove(keyword);
        if schema.contains_key(REFERENCE) {
            if let Value::Array(all) = schema.entry("allOf").or_insert_with(|| json!([])) {
                all.push(json!({ REFERENCE: reference }));
            }
            return;
        }
    }
    schema.insert(REFERENCE.to_owned(), Value::String(reference));
}

/// The file parts of references (before `#`) that an `$id` in the same file answers, so that they name no file.
#[must_use]
pub fn names_answered_by_ids(file: &str, schema: &Value) -> HashSet<String> {
    let files = SchemaFiles::from([(file.to_owned(), schema.clone())]);
    let ids = Ids::read(&files);
    let answered = ids.references.iter().filter(|found| ids.spot(found, &files).is_some());
    answered.filter_map(|found| found.reference.split('#').next().map(str::to_owned)).collect()
}

impl<'a> Ids<'a> {
    fn read(files: &'a SchemaFiles) -> Self {
        let mut ids = Self::default();
        for (file, root) in files {
            let base = address_of(file);
            let start = Spot { file: file.clone(), pointer: String::new() };
            ids.name(&base, "", start.clone());
            ids.resources.push(start);
            ReferenceWalk { file, ids: &mut ids, pointer: String::new(), above: vec![(base, None)] }.schema(
                root,
                0,
                Dialect::for_file(files, file),
            );
        }
        ids
    }

    /// The target of a reference, if an `$id` defines it.
    fn spot(&self, found: &FoundReference<'_>, files: &SchemaFiles) -> Option<Spot> {
        let exists =
            |spot: &Spot| files.get(&spot.file).is_some_and(|root| root.pointer(&spot.pointer).is_some());
        let (address, fragment) = found.reference.split_once('#').unwrap_or((found.reference, ""));
        let fragment = percent_decoded(fragment);
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        if address.is_empty() && is_pointer {
            // Relative to the nearest `$id`; otherwise to the start of the file, as most authors expect.
            return Some(join_pointer(found.within.as_ref()?, &fragment)).filter(exists);
        }
        let address = resolve(&found.base, address);
        if is_pointer {
            let address = address?;
            let root = self.find_named(&address, "")?;
            // Files are found by their names, which gives a better message if one is missing.
            let is_file = root.pointer.is_empty() && address == address_of(&root.file);
            return Some(join_pointer(root, &fragment)).filter(|spot| !is_file && exists(spot));
        }
        // A name in another file may also be addressed by the path of that file, whatever its `$id`.
        let by_path = || Some(address_of(&file_of_ref(found.reference, &found.at.file).ok()??));
        let named = |address: String| {
            let own = self.own_address.get(&address).unwrap_or(&address);
            self.find_named(own, &fragment).cloned()
        };
        address.and_then(named).or_else(|| by_path().and_then(named))
    }

    /// The references whose target depends on the schemas above: they lead to a dynamic anchor whose name another schema
    /// has, too. All others are like `$ref`.
    fn dynamic(&self, files: &SchemaFiles) -> Vec<DynamicReference<'_>> {
        let found = self.references.iter().filter(|found| found.keyword != REFERENCE);
        found
            .filter_map(|found| {
                let start = || Spot { file: found.at.file.clone(), pointer: String::new() };
                let (name, target) = if found.keyword == "$recursiveRef" {
                    ("", found.within.clone().unwrap_or_else(start))
                } else {
                    let name = found.reference.split_once('#').map_or("", |(_, name)| name);
                    (name, self.spot(found, files)?)
                };
                let same = || self.anchors.iter().filter(move |anchor| anchor.name == name);
                let is_dynamic = same().nth(1).is_some() && same().any(|anchor| anchor.spot == target);
                is_dynamic.then_some(DynamicReference { at: &found.at, keyword: found.keyword, name, target })
            })
            .collect()
    }

    fn find_named(&self, address: &str, name: &str) -> Option<&Spot> {
        let named = self.named.get(&(address.to_owned(), name.to_owned()))?;
        Some(&named.spot).filter(|_| !named.is_twice)
    }

    /// Registers an address and a name for a location.
    fn name(&mut self, address: &str, name: &str, spot: Spot) {
        if self.named.len() < MAX_COUNT {
            let named = self.named.entry((address.to_owned(), name.to_owned()));
            let named = named.or_insert_with(|| SchemaNames { spot: spot.clone(), is_twice: false });
            named.is_twice |= named.spot != spot;
        }
    }
}

/// The default address of a file.
fn address_of(file: &str) -> String {
    format!("{BASE}{}", percent_encode(file))
}

fn join_pointer(root: &Spot, fragment: &str) -> Spot {
    Spot { file: root.file.clone(), pointer: format!("{}{fragment}", root.pointer) }
}

/// A walk through one file.
struct ReferenceWalk<'w, 'a> {
    file: &'w str,
    ids: &'w mut Ids<'a>,
    pointer: String,
    /// The address of the file and of each enclosing schema with an address, outermost first, with that schema's
    /// location.
    above: Vec<(String, Option<Spot>)>,
}

impl<'a> ReferenceWalk<'_, 'a> {
    fn schema(&mut self, node: &'a Value, depth: usize, dialect: Dialect) {
        let Value::Object(members) = node else { return };
        let dialect = dialect.nested_dialect(members);
        let text = |keyword: &str| members.get(keyword).and_then(Value::as_str);
        let base = self.above.last().map(|(base, _)| base.clone()).unwrap_or_default();
        let id = text("$id").filter(|id| fits(id, MAX_LENGTH));
        // Draft-07 ignores keywords next to a reference, so an `$id` there does not change the base.
        let is_ignored = dialect == Dialect::Draft07 && text(REFERENCE).is_some();
        let moved = id.filter(|_| !is_ignored).is_some_and(|id| self.identify(id, &base, depth));
        let (base, within) = self.above.last().cloned().unwrap_or_default();
        if dialect != Dialect::Draft07 {
            for name in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
                self.ids.name(&base, name, self.spot());
            }
            self.anchor(members, dialect);
        }
        for keyword in REFERENCES.into_iter().filter(|keyword| !foreign(dialect, keyword)) {
            // A module with more references is refused anyway.
            if let Some(reference) = text(keyword).filter(|_| self.ids.references.len() <= MAX_REFERENCES) {
                let (at, base, within) = (self.spot(), base.clone(), within.clone());
                self.ids.references.push(FoundReference { at, base, within, keyword, reference });
            }
        }
        for (name, child) in members {
            match child {
                Value::Object(map) if NAME_MAPS.contains(&name.as_str()) => {
                    self.step(name, |walk| {
                        map.iter().for_each(|(name, child)| {
                            walk.step(name, |walk| walk.schema(child, depth + 1, dialect));
                        });
                    });
                }
                _ if DATA_KEYWORDS.contains(&name.as_str()) => {}
                // The section names of a file are not keywords.
                _ if SCHEMA_KEYWORDS.contains(&name.as_str()) || depth == 0 => {
                    self.step(name, |walk| walk.schemas(child, depth + 1, dialect));
                }
                _ => {}
            }
        }
        if moved {
            self.above.pop();
        }
    }

    /// Registers the dynamic anchor of a schema.
    fn anchor(&mut self, members: &Map<String, Value>, dialect: Dialect) {
        let name = match dialect {
            Dialect::Draft202012 => members.get("$dynamicAnchor").and_then(Value::as_str),
            _ => members.get("$recursiveAnchor").filter(|anchor| **anchor == Value::Bool(true)).map(|_| ""),
        };
        if let Some(name) = name.filter(|name| fits(name, MAX_LENGTH) && self.ids.anchors.len() < MAX_COUNT) {
            self.ids.anchors.push(DynamicAnchor { name: name.to_owned(), spot: self.spot() });
        }
    }

    /// Visits one schema or a list of them.
    fn schemas(&mut self, node: &'a Value, depth: usize, dialect: Dialect) {
        match node {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.step(&index.to_string(), |walk| walk.schema(item, depth, dialect));
                }
            }
            other => self.schema(other, depth, dialect),
        }
    }

    /// Registers the `$id` of a schema. Returns whether it changes the base address of references below.
    fn identify(&mut self, id: &str, base: &str, depth: usize) -> bool {
        let (address, name) = id.split_once('#').unwrap_or((id, ""));
        let name = percent_decoded(name);
        let Some(full) = resolve(base, address).filter(|full| fits(full, MAX_LENGTH)) else { return false };
        // A pointer or an empty text is not a name.
        if !name.starts_with('/') && id != "#" && !id.is_empty() {
            self.ids.name(&full, &name, self.spot());
        }
        if address.is_empty() {
            return false;
        }
        if depth == 0 {
            self.ids.own_address.insert(base.to_owned(), full.clone());
        }
        let own = (depth > 0 && name.is_empty()).then(|| self.spot());
        self.ids.resources.extend(own.clone().filter(|_| self.ids.resources.len() < MAX_COUNT));
        self.above.push((full, own));
        true
    }

    fn spot(&self) -> Spot {
        Spot { file: self.file.to_owned(), pointer: self.pointer.clone() }
    }

    fn step(&mut self, name: &str, go: impl FnOnce(&mut Self)) {
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&text::escape(name));
        go(self);
        self.pointer.truncate(before);
    }
}

/// An address resolved against a base; `None` if it is invalid.
fn resolve(base: &str, address: &str) -> Option<String> {
    if address.is_empty() {
        return Some(base.to_owned());
    }
    let base = jsonschema::Uri::parse(base).ok()?;
    uri::resolve_against(&base, address).ok().map(|full| full.as_str().to_owned())
}

/// A reference to a location, relative to a file.
fn relative_reference(from: &str, spot: &Spot) -> String {
    let fragment = percent_encode(&spot.pointer);
    if from == spot.file {
        return format!("#{fragment}");
    }
    let up = "../".repeat(from.matches('/').count());
    format!("{up}{}#{fragment}", spot.file)
}

/// Percent-encodes a text as part of an address.
pub(super) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~$".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
