//! References whose target depends on the schemas that led to them: `$dynamicRef` and `$recursiveRef`.
//!
//! The target is the outermost schema with an address that has the same dynamic anchor. If several schemas have it, each
//! gets a copy for each combination of outermost anchors with which it is entered. Every reference in a copy is an
//! ordinary one, so all limits and readers see an ordinary schema.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::super::SchemaFiles;
use super::super::dialect::Dialect;
use super::super::refs::{file_of_ref, percent_decoded};
use super::super::walk::MemberNames;
use super::{REFERENCE, Spot, refer, relative_reference};
use crate::text::pointer;

/// Marks a dynamic reference until it is resolved.
const MARK: &str = "x-dynamic-reference";

/// The most copies in one module, and the most values in all of them. Real schemas have a handful.
const MAX_COPIES: usize = 100;
const MAX_VALUES: usize = 50_000;

/// The most schemas with an address in a module with dynamic references, and the most dynamic anchors.
const MAX_RESOURCES: usize = 200;
const MAX_ANCHORS: usize = 50;

/// A dynamic reference, and the anchor that it names without regard to the schemas above.
pub(super) struct DynamicReference<'a> {
    pub(super) at: &'a Spot,
    pub(super) keyword: &'a str,
    pub(super) name: &'a str,
    pub(super) target: Spot,
}

/// A dynamic anchor. The name is empty for `$recursiveAnchor`.
#[derive(Clone)]
pub(super) struct DynamicAnchor {
    pub(super) name: String,
    pub(super) spot: Spot,
}

/// The outermost anchor of each name.
type Scope = BTreeMap<String, Spot>;

/// Replaces the dynamic references in files whose other references are pointers. `resources` are the schemas with an
/// address. `None` if there would be too many copies.
pub(super) fn replace_dynamic(
    mut files: SchemaFiles,
    resources: &[Spot],
    anchors: &[DynamicAnchor],
    references: &[DynamicReference<'_>],
) -> Option<SchemaFiles> {
    for reference in references {
        let schema =
            files.get_mut(&reference.at.file).and_then(|root| root.pointer_mut(&reference.at.pointer));
        if let Some(Value::Object(members)) = schema {
            members.shift_remove(reference.keyword);
            let mark = json!([reference.name, reference.target.file, reference.target.pointer]);
            members.insert(MARK.to_owned(), mark);
        }
    }
    let is_used = |anchor: &&DynamicAnchor| references.iter().any(|reference| reference.name == anchor.name);
    let anchors: Vec<&DynamicAnchor> = anchors.iter().filter(is_used).collect();
    if anchors.len() > MAX_ANCHORS || resources.len() > MAX_RESOURCES {
        return None;
    }
    let mut copier =
        Copier { resources, anchors: Vec::new(), copies: HashMap::new(), pending: Vec::new(), left: 0 };
    copier.anchors = anchors.into_iter().map(|anchor| (anchor, copier.owner(&anchor.spot))).collect();
    let mut static_files = SchemaFiles::new();
    for (file, root) in &files {
        let start = Spot { file: file.clone(), pointer: String::new() };
        let scope = copier.enter_scope(&Scope::new(), &start);
        static_files.insert(file.clone(), copier.value(root, MemberNames::Keywords, &start, &start, &scope));
    }
    copier.left = MAX_VALUES;
    while let Some((resource, scope, place)) = copier.pending.pop() {
        let schema = files.get(&resource.file)?.pointer(&resource.pointer)?;
        let mut copy = copier.value(schema, MemberNames::Keywords, &resource, &resource, &scope);
        if copier.left == 0 || copier.copies.len() > MAX_COPIES {
            return None;
        }
        if let Value::Object(members) = &mut copy {
            let dialect = Dialect::at(&files, &resource.file, &resource.pointer);
            members.insert("$schema".to_owned(), json!(dialect.meta_schema()));
        }
        let (_, name) = place.pointer.rsplit_once('/')?;
        let root = static_files.get_mut(&place.file)?.as_object_mut()?;
        let definitions = root.entry("$defs").or_insert_with(|| json!({})).as_object_mut()?;
        definitions.insert(name.to_owned(), copy);
    }
    Some(static_files)
}

struct Copier<'a> {
    resources: &'a [Spot],
    /// The dynamic anchors, each with the schema that it belongs to.
    anchors: Vec<(&'a DynamicAnchor, Spot)>,
    copies: HashMap<(Spot, Scope), Spot>,
    pending: Vec<(Spot, Scope, Spot)>,
    /// The values that may still be copied.
    left: usize,
}

impl Copier<'_> {
    /// Rewrites a value at `at`, which belongs to `resource`.
    fn value(
        &mut self,
        node: &Value,
        names: MemberNames,
        at: &Spot,
        resource: &Spot,
        scope: &Scope,
    ) -> Value {
        self.left = self.left.saturating_sub(1);
        let below = |token: &str| Spot { file: at.file.clone(), pointer: pointer(&at.pointer, token) };
        match node {
            Value::Object(members) => {
                let is_schema = names == MemberNames::Keywords;
                let enters = is_schema && at != resource && self.resources.contains(at);
                let entered = enters.then(|| self.enter_scope(scope, at));
                let (resource, scope) = match &entered {
                    Some(scope) => (at, scope),
                    None => (resource, scope),
                };
                let mut rewritten = Map::new();
                for (name, child) in members {
                    let child = match (child, names.names_below(name)) {
                        (Value::String(reference), _) if is_schema && name == REFERENCE => {
                            json!(self.reference(reference, &at.file, resource, scope))
                        }
                        (Value::Object(_) | Value::Array(_), Some(names)) if name != MARK => {
                            self.value(child, names, &below(name), resource, scope)
                        }
                        _ => child.clone(),
                    };
                    rewritten.insert(name.clone(), child);
                }
                if let Some(mark) = rewritten.get(MARK).filter(|_| is_schema).cloned() {
                    let reference = self.dynamic(&mark, &at.file, scope);
                    refer(&mut rewritten, MARK, reference);
                }
                Value::Object(rewritten)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let rewritten = items.map(|(index, item)| {
                    self.value(item, MemberNames::Keywords, &below(&index.to_string()), resource, scope)
                });
                rewritten.collect()
            }
            other => other.clone(),
        }
    }

    fn reference(&mut self, reference: &str, file: &str, resource: &Spot, scope: &Scope) -> String {
        let fragment = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let target = file_of_ref(reference, file).ok().flatten().unwrap_or_else(|| file.to_owned());
        let target = Spot { file: target, pointer: percent_decoded(fragment) };
        let owner = self.owner(&target);
        let entered = if owner == *resource { scope.clone() } else { self.enter_scope(scope, &owner) };
        match self.place(&owner, entered) {
            place if place == owner => reference.to_owned(),
            place => relative_reference(file, &moved_spot(&target, &owner, &place)),
        }
    }

    /// The reference for the mark of a dynamic reference.
    fn dynamic(&mut self, mark: &Value, file: &str, scope: &Scope) -> String {
        let text = |index: usize| mark.get(index).and_then(Value::as_str).unwrap_or_default().to_owned();
        let fixed = Spot { file: text(1), pointer: text(2) };
        let target = scope.get(&text(0)).cloned().unwrap_or(fixed);
        let owner = self.owner(&target);
        let entered = self.enter_scope(scope, &owner);
        let place = self.place(&owner, entered);
        relative_reference(file, &moved_spot(&target, &owner, &place))
    }

    /// The scope after a schema with an address was entered.
    fn enter_scope(&self, scope: &Scope, resource: &Spot) -> Scope {
        let mut scope = scope.clone();
        for (anchor, _) in self.anchors.iter().filter(|(_, owner)| owner == resource) {
            scope.entry(anchor.name.clone()).or_insert_with(|| anchor.spot.clone());
        }
        scope
    }

    /// The innermost schema with an address around a location.
    fn owner(&self, spot: &Spot) -> Spot {
        let around = self.resources.iter().filter(|resource| encloses(resource, spot));
        let innermost = around.max_by_key(|resource| resource.pointer.len());
        innermost.cloned().unwrap_or_else(|| Spot { file: spot.file.clone(), pointer: String::new() })
    }

    /// The location of a schema with an address for a scope: its own, or that of a copy.
    fn place(&mut self, resource: &Spot, scope: Scope) -> Spot {
        let mut around: Vec<&Spot> =
            self.resources.iter().filter(|outer| encloses(outer, resource)).collect();
        around.sort_by_key(|outer| outer.pointer.len());
        if around.iter().fold(Scope::new(), |scope, outer| self.enter_scope(&scope, outer)) == scope {
            return resource.clone();
        }
        let key = (resource.clone(), scope);
        if let Some(place) = self.copies.get(&key) {
            return place.clone();
        }
        let number = self.copies.len() + 1;
        let place = Spot { file: resource.file.clone(), pointer: format!("/$defs/dynamic_{number}_") };
        if number <= MAX_COPIES + 1 {
            self.pending.push((key.0.clone(), key.1.clone(), place.clone()));
            self.copies.insert(key, place.clone());
        }
        place
    }
}

fn encloses(outer: &Spot, spot: &Spot) -> bool {
    let rest = spot.pointer.strip_prefix(outer.pointer.as_str()).filter(|_| outer.file == spot.file);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A location inside `owner`, after that has moved to `place`.
fn moved_spot(spot: &Spot, owner: &Spot, place: &Spot) -> Spot {
    let rest = spot.pointer.strip_prefix(owner.pointer.as_str()).unwrap_or_default();
    Spot { file: place.file.clone(), pointer: format!("{}{rest}", place.pointer) }
}
