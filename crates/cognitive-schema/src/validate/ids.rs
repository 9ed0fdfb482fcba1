//! Rewrites references by `$id` as JSON pointers before other code reads the files: plain names (`#name`), absolute
//! addresses and URNs within the module. (SCH-003) Later code sees only pointers, so cycles and limits are checked as
//! usual. An `$id` is never fetched; a reference to an unknown one stays as written.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jsonschema::uri;
use serde_json::Value;

use super::SchemaFiles;
use super::refs::{DATA_KEYWORDS, MAX_REFERENCES, file_of_ref, percent_decoded};
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
const SCHEMA_KEYWORDS: [&str; 12] = [
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
    "propertyNames",
    "then",
];

/// A location in the module.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spot {
    file: String,
    pointer: String,
}

/// The location for an address and a name. The name is empty for the whole schema.
struct Named {
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
    reference: &'a str,
}

/// All identifiers and references of the files.
#[derive(Default)]
struct Ids<'a> {
    named: HashMap<(String, String), Named>,
    /// For the default address of a file, the address from its own `$id`.
    own_address: HashMap<String, String>,
    references: Vec<FoundReference<'a>>,
}

/// The files with every reference by `$id` as a pointer; the unchanged files if there is none.
pub(super) fn resolved(files: &SchemaFiles) -> Cow<'_, SchemaFiles> {
    let ids = Ids::read(files);
    let found = ids.references.iter();
    let changed: Vec<(Spot, String)> = found
        .filter_map(|found| Some((found.at.clone(), written(&found.at.file, &ids.spot(found, files)?))))
        .collect();
    let mut files = Cow::Borrowed(files);
    for (at, reference) in changed {
        let schema = files.to_mut().get_mut(&at.file).and_then(|root| root.pointer_mut(&at.pointer));
        if let Some(Value::Object(members)) = schema {
            members.insert("$ref".to_owned(), Value::String(reference));
        }
    }
    files
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
            ids.name(&base, "", Spot { file: file.clone(), pointer: String::new() });
            ReferenceWalk { file, ids: &mut ids, pointer: String::new(), above: vec![(base, None)] }
                .schema(root, 0);
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
            return Some(below(found.within.as_ref()?, &fragment)).filter(exists);
        }
        let address = resolve(&found.base, address);
        if is_pointer {
            let address = address?;
            let root = self.named(&address, "")?;
            // Files are found by their names, which gives a better message if one is missing.
            let is_file = root.pointer.is_empty() && address == address_of(&root.file);
            return Some(below(root, &fragment)).filter(|spot| !is_file && exists(spot));
        }
        // A name in another file may also be addressed by the path of that file, whatever its `$id`.
        let by_path = || Some(address_of(&file_of_ref(found.reference, &found.at.file).ok()??));
        let named = |address: String| {
            let own = self.own_address.get(&address).unwrap_or(&address);
            self.named(own, &fragment).cloned()
        };
        address.and_then(named).or_else(|| by_path().and_then(named))
    }

    fn named(&self, address: &str, name: &str) -> Option<&Spot> {
        let named = self.named.get(&(address.to_owned(), name.to_owned()))?;
        Some(&named.spot).filter(|_| !named.is_twice)
    }

    /// Registers an address and a name for a location.
    fn name(&mut self, address: &str, name: &str, spot: Spot) {
        if self.named.len() < MAX_COUNT {
            let named = self.named.entry((address.to_owned(), name.to_owned()));
            let named = named.or_insert_with(|| Named { spot: spot.clone(), is_twice: false });
            named.is_twice |= named.spot != spot;
        }
    }
}

/// The default address of a file.
fn address_of(file: &str) -> String {
    format!("{BASE}{}", encoded(file))
}

fn below(root: &Spot, fragment: &str) -> Spot {
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
    fn schema(&mut self, node: &'a Value, depth: usize) {
        let Value::Object(members) = node else { return };
        let base = self.above.last().map(|(base, _)| base.clone()).unwrap_or_default();
        let reference = members.get("$ref").and_then(Value::as_str);
        let id = members.get("$id").and_then(Value::as_str).filter(|id| fits(id, MAX_LENGTH));
        // Keywords next to a reference are ignored, so an `$id` there does not change the base.
        let moved = id.filter(|_| reference.is_none()).is_some_and(|id| self.identify(id, &base, depth));
        // A module with more references is refused anyway.
        if let Some(reference) = reference.filter(|_| self.ids.references.len() <= MAX_REFERENCES) {
            let within = self.above.last().and_then(|(_, own)| own.clone());
            self.ids.references.push(FoundReference { at: self.here(), base, within, reference });
        }
        for (name, child) in members {
            match child {
                Value::Object(map) if NAME_MAPS.contains(&name.as_str()) => {
                    self.step(name, |walk| {
                        map.iter()
                            .for_each(|(name, child)| walk.step(name, |walk| walk.schema(child, depth + 1)));
                    });
                }
                _ if DATA_KEYWORDS.contains(&name.as_str()) => {}
                // The section names of a file are not keywords.
                _ if SCHEMA_KEYWORDS.contains(&name.as_str()) || depth == 0 => {
                    self.step(name, |walk| walk.schemas(child, depth + 1));
                }
                _ => {}
            }
        }
        if moved {
            self.above.pop();
        }
    }

    /// Visits one schema or a list of them.
    fn schemas(&mut self, node: &'a Value, depth: usize) {
        match node {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.step(&index.to_string(), |walk| walk.schema(item, depth));
                }
            }
            other => self.schema(other, depth),
        }
    }

    /// Registers the `$id` of a schema. Returns whether it changes the base address of references below.
    fn identify(&mut self, id: &str, base: &str, depth: usize) -> bool {
        let (address, name) = id.split_once('#').unwrap_or((id, ""));
        let name = percent_decoded(name);
        let Some(full) = resolve(base, address).filter(|full| fits(full, MAX_LENGTH)) else { return false };
        // A pointer or an empty text is not a name.
        if !name.starts_with('/') && id != "#" && !id.is_empty() {
            self.ids.name(&full, &name, self.here());
        }
        if address.is_empty() {
            return false;
        }
        if depth == 0 {
            self.ids.own_address.insert(base.to_owned(), full.clone());
        }
        let own = (depth > 0 && name.is_empty()).then(|| self.here());
        self.above.push((full, own));
        true
    }

    fn here(&self) -> Spot {
        Spot { file: self.file.to_owned(), pointer: self.pointer.clone() }
    }

    fn step(&mut self, name: &str, go: impl FnOnce(&mut Self)) {
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&text::escaped(name));
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
fn written(from: &str, spot: &Spot) -> String {
    let fragment = encoded(&spot.pointer);
    if from == spot.file {
        return format!("#{fragment}");
    }
    let up = "../".repeat(from.matches('/').count());
    format!("{up}{}#{fragment}", spot.file)
}

/// Percent-encodes a text as part of an address.
fn encoded(text: &str) -> String {
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
