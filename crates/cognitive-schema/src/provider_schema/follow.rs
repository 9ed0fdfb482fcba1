//! Resolves references within a module, including recursive types.
//! Does not resolve references into files that the caller did not pass in.

use serde_json::{Map, Value, json};

use super::dialect::Recursion;
use super::normal::{SchemaNormaliser, WalkPosition};
use crate::text::pointer;
use crate::validate::file_of_ref;

/// The maximum nesting of a type within itself where it has to be written out. Each level multiplies the size of the
/// schema.
const UNROLLED: usize = 3;

/// The maximum number of references in a row. References may form a circle.
const MAX_STEPS: usize = 16;

/// A location in a file of the module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SchemaLocation {
    pub file: String,
    pub pointer: String,
}

impl<'a> SchemaNormaliser<'a> {
    /// The recursive types found so far, by name.
    pub(super) fn defs(&mut self) -> Map<String, Value> {
        let mut defs = Map::new();
        while let Some(place) = self.pending.pop() {
            let Some(name) = self.names.get(&place).cloned() else { continue };
            let schema = self.value(&place).cloned().unwrap_or(Value::Bool(true));
            let at = WalkPosition::new(&place.file, &pointer("/$defs", &name));
            defs.insert(name, self.normalise_at(place, &schema, &at));
        }
        defs
    }

    /// The schema as the author wrote it, or the target of its reference.
    pub(super) fn follow(&self, node: &'a Value, file: &str) -> &'a Value {
        let reference = node.get("$ref").and_then(Value::as_str);
        reference
            .and_then(|reference| self.find(reference, file))
            .and_then(|place| self.value(&place))
            .unwrap_or(node)
    }

    /// The target of a reference within one file, through further references. References inside the target stay valid,
    /// since the file is the same.
    pub(super) fn find_target(&self, node: &Value, file: &str) -> Option<&'a Value> {
        let mut found: Option<&'a Value> = None;
        for _ in 0..MAX_STEPS {
            let reference = found.unwrap_or(node).get("$ref").and_then(Value::as_str);
            let Some(reference) = reference else { return found };
            let place = self.find(reference, file).filter(|place| place.file == file)?;
            found = Some(self.value(&place)?);
        }
        None
    }

    fn value(&self, place: &SchemaLocation) -> Option<&'a Value> {
        self.files.get(&place.file)?.pointer(&place.pointer)
    }

    fn find(&self, reference: &str, from: &str) -> Option<SchemaLocation> {
        let file = file_of_ref(reference, from).ok()?.unwrap_or_else(|| from.to_owned());
        let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let place = SchemaLocation { file, pointer: percent_decoded(fragment) };
        self.value(&place).map(|_| place)
    }

    /// The plain form of a reference's target.
    pub(super) fn reference(
        &mut self,
        reference: &str,
        description: Option<&Value>,
        at: &WalkPosition,
    ) -> Value {
        let Some(place) = self.find(reference, &at.file) else {
            self.losses.note_weakened(&at.path, "$ref", "any value, because the schema is in another file");
            return Value::Bool(true);
        };
        let times = self.open.iter().filter(|open| **open == place).count();
        let mut plain = match self.recursion {
            Recursion::Defs if times > 0 || (!at.joined && self.names.contains_key(&place)) => {
                json!({ "$ref": format!("#/$defs/{}", self.name(&place)) })
            }
            Recursion::Unrolled if times >= UNROLLED => {
                self.losses.note_tightened(
                    &at.path,
                    "$ref",
                    format!("at most {UNROLLED} levels of a recursive type"),
                );
                return Value::Bool(false);
            }
            Recursion::Defs | Recursion::Unrolled => {
                let schema = self.value(&place).unwrap_or(&Value::Null);
                let there = WalkPosition { file: place.file.clone(), ..at.same_value() };
                self.normalise_at(place, schema, &there)
            }
        };
        if let (Value::Object(members), Some(description)) = (&mut plain, description) {
            members.insert("description".to_owned(), description.clone());
        }
        plain
    }

    fn name(&mut self, place: &SchemaLocation) -> String {
        if let Some(name) = self.names.get(place) {
            return name.clone();
        }
        let token = place.pointer.rsplit('/').next().unwrap_or_default();
        let clean: String =
            token.chars().filter(|each| each.is_ascii_alphanumeric() || *each == '_').collect();
        let clean = if clean.is_empty() { "type".to_owned() } else { clean };
        let mut name = clean.clone();
        for number in 2..=self.names.len() + 1 {
            if self.names.values().all(|known| *known != name) {
                break;
            }
            name = format!("{clean}_{number}");
        }
        self.names.insert(place.clone(), name.clone());
        self.pending.push(place.clone());
        name
    }
}

fn percent_decoded(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut bytes: Vec<u8> = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
