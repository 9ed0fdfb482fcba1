//! References by `$id`, said as JSON pointers before anything else reads the files: plain names (`#name`), absolute
//! addresses and URNs that stand in the module itself. (SCH-003) Whoever comes after sees pointers only, so circles and
//! limits are found as always. An `$id` is never fetched; what is in none of the files stays as it is written.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jsonschema::uri;
use serde_json::Value;

use super::SchemaFiles;
use super::refs::{DATA_KEYWORDS, MAX_REFERENCES, file_of_ref, percent_decoded};
use super::walk::NAME_MAPS;
use crate::text::{self, fits};

/// The base of files that say nothing of themselves. The scheme is ours, and no reference has to name it.
const BASE: &str = "module:///";

/// Characters of an identifier, and of what it comes to below others; a longer one is a label.
const MAX_LENGTH: usize = 1_000;

/// Identifiers in one module; the rest are labels. An honest module has a handful.
const MAX_COUNT: usize = 2_000;

/// Keywords whose value is one schema, or a list of them. Elsewhere an `$id` is data, except in the sections of a file.
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

/// A place in the module.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Spot {
    file: String,
    pointer: String,
}

/// What stands under an address and a name there, which is empty for the whole.
struct Named {
    spot: Spot,
    /// Something else is called the same. Then nothing is: most such identifiers are labels that were copied.
    is_twice: bool,
}

/// A reference, where it stands, and the address that it is relative to.
struct FoundReference<'a> {
    at: Spot,
    base: String,
    /// The innermost schema around it that has an address of its own, if that is not the file.
    within: Option<Spot>,
    reference: &'a str,
}

/// Everything that has a name, and every reference.
#[derive(Default)]
struct Ids<'a> {
    named: HashMap<(String, String), Named>,
    /// The address that a file gives itself, by the one that it has anyway.
    own_address: HashMap<String, String>,
    references: Vec<FoundReference<'a>>,
}

/// The files with every reference by `$id` as a pointer; the same files if there is none.
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

/// What references of a file say before their `#` that an `$id` in the same file answers, so that no file is meant.
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

    /// What a reference leads to, if an `$id` says so.
    fn spot(&self, found: &FoundReference<'_>, files: &SchemaFiles) -> Option<Spot> {
        let exists =
            |spot: &Spot| files.get(&spot.file).is_some_and(|root| root.pointer(&spot.pointer).is_some());
        let (address, fragment) = found.reference.split_once('#').unwrap_or((found.reference, ""));
        let fragment = percent_decoded(fragment);
        let is_pointer = fragment.is_empty() || fragment.starts_with('/');
        if address.is_empty() && is_pointer {
            // From where the nearest `$id` stands; else from the beginning of the file, as most authors mean it.
            return Some(below(found.within.as_ref()?, &fragment)).filter(exists);
        }
        let address = resolve(&found.base, address);
        if is_pointer {
            let address = address?;
            let root = self.named(&address, "")?;
            // Files are found by their names, which say more where one is missing.
            let is_file = root.pointer.is_empty() && address == address_of(&root.file);
            return Some(below(root, &fragment)).filter(|spot| !is_file && exists(spot));
        }
        // A name in another file may be meant by the path of that file, whatever the files call themselves.
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

    /// Gives a place an address and a name there.
    fn name(&mut self, address: &str, name: &str, spot: Spot) {
        if self.named.len() < MAX_COUNT {
            let named = self.named.entry((address.to_owned(), name.to_owned()));
            let named = named.or_insert_with(|| Named { spot: spot.clone(), is_twice: false });
            named.is_twice |= named.spot != spot;
        }
    }
}

/// The address of a file that says nothing of itself.
fn address_of(file: &str) -> String {
    format!("{BASE}{}", encoded(file))
}

fn below(root: &Spot, fragment: &str) -> Spot {
    Spot { file: root.file.clone(), pointer: format!("{}{fragment}", root.pointer) }
}

/// A way through one file.
struct ReferenceWalk<'w, 'a> {
    file: &'w str,
    ids: &'w mut Ids<'a>,
    pointer: String,
    /// The address of the file and of each schema around that has one, outermost first, and where that schema stands.
    above: Vec<(String, Option<Spot>)>,
}

impl<'a> ReferenceWalk<'_, 'a> {
    fn schema(&mut self, node: &'a Value, depth: usize) {
        let Value::Object(members) = node else { return };
        let base = self.above.last().map(|(base, _)| base.clone()).unwrap_or_default();
        let reference = members.get("$ref").and_then(Value::as_str);
        let id = members.get("$id").and_then(Value::as_str).filter(|id| fits(id, MAX_LENGTH));
        // What stands beside a reference is not read, and so moves nothing.
        let moved = id.filter(|_| reference.is_none()).is_some_and(|id| self.identify(id, &base, depth));
        // With more, the module is refused anyway.
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
                // The sections of a file have names that are no keywords.
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

    /// One schema or a list of them.
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

    /// Notes what a schema is called. Whether it moves what references below it are relative to.
    fn identify(&mut self, id: &str, base: &str, depth: usize) -> bool {
        let (address, name) = id.split_once('#').unwrap_or((id, ""));
        let name = percent_decoded(name);
        let Some(full) = resolve(base, address).filter(|full| fits(full, MAX_LENGTH)) else { return false };
        // A pointer is no name, and neither is nothing at all.
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

/// An address relative to another; `None` if it is none.
fn resolve(base: &str, address: &str) -> Option<String> {
    if address.is_empty() {
        return Some(base.to_owned());
    }
    let base = jsonschema::Uri::parse(base).ok()?;
    uri::resolve_against(&base, address).ok().map(|full| full.as_str().to_owned())
}

/// A reference to a place, from a file.
fn written(from: &str, spot: &Spot) -> String {
    let fragment = encoded(&spot.pointer);
    if from == spot.file {
        return format!("#{fragment}");
    }
    let up = "../".repeat(from.matches('/').count());
    format!("{up}{}#{fragment}", spot.file)
}

/// A text as a part of an address: what has a meaning there, or none at all, is said by codes.
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
