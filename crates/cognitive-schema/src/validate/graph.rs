//! The graph of schemas: which schema applies which other schema to a value or a part of it. Basis of the limits on
//! time and stack.
//! Interprets the core form as the validator does. Refuses references to locations that are not schemas.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::walk::{problem_at, visit};
use super::{SchemaFiles, SchemaProblem, refs};

/// Schemas that are counted again because of `unevaluatedProperties` and `unevaluatedItems`. A schema that needs more
/// already exceeds other limits.
const MAX_REPEATED: usize = 100_000;

/// A schema, by its number. A schema has a lower number than the schemas written inside it.
pub(super) type Id = usize;

/// The way in which a value reaches the next schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SchemaWay<'a> {
    /// The same value, by `$ref`.
    Reference,
    /// The same value, as one branch of `oneOf`.
    OneOf,
    /// The same value, as one branch of `anyOf`.
    AnyOf,
    /// The same value, by `allOf`, `not`, `if`, `then`, `else` or `dependencies`.
    Also,
    /// The value of a named member.
    Member(&'a str),
    /// The value of any member. Names are not matched against `patternProperties`.
    AnyMember,
    /// The value of a member that the schema does not name.
    RestMembers,
    /// The name of a member.
    Name,
    /// One item by index.
    Item(usize),
    /// Any item.
    AnyItem,
    /// An item that the schema does not list by index.
    RestItems,
}

impl SchemaWay<'_> {
    /// Returns whether the next schema validates the same value and not a part of it.
    pub(super) fn is_same_value(self) -> bool {
        matches!(self, Self::Reference | Self::OneOf | Self::AnyOf | Self::Also)
    }
}

/// A connection from one schema to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge<'a> {
    pub(super) way: SchemaWay<'a>,
    pub(super) to: Id,
}

/// The reason why a schema is refused.
#[derive(Debug)]
pub(super) struct SchemaRefusal {
    pub(super) at: Id,
    pub(super) message: String,
}

impl SchemaRefusal {
    pub(super) fn new(at: Id, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// All schemas of a module and the connections between them.
pub(super) struct SchemaGraph<'a> {
    schemas: Vec<&'a Value>,
    ids: HashMap<*const Value, Id>,
    edges: Vec<Vec<Edge<'a>>>,
}

impl<'a> SchemaGraph<'a> {
    /// Reads the files. All their references must resolve.
    pub(super) fn read(files: &'a SchemaFiles) -> Result<Self, SchemaProblem> {
        let mut reader = GraphBuilder { files, owners: Vec::new(), schemas: Vec::new(), ids: HashMap::new() };
        for (file, root) in files {
            visit(root, &mut |schema, _| reader.enter(file, schema));
        }
        let edges = reader.edges()?;
        let mut graph = Self { schemas: reader.schemas, ids: reader.ids, edges };
        graph.repeat_for_unevaluated();
        Ok(graph)
    }

    /// Adds the work for `unevaluatedProperties` and `unevaluatedItems`: the validator applies all schemas for the same
    /// value once more, to see which members and items they evaluate.
    fn repeat_for_unevaluated(&mut self) {
        let is_open = |schema: &Map<String, Value>| {
            schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems")
        };
        let open: Vec<Id> = self.schemas().filter(|(_, schema)| is_open(schema)).map(|(id, _)| id).collect();
        let mut left = MAX_REPEATED;
        let mut repeated = Vec::new();
        for id in open {
            let mut below: Vec<Id> = self.same_value(id).collect();
            let mut seen = HashSet::from([id]);
            while let Some(next) = below.pop().filter(|_| left > 0) {
                if seen.insert(next) {
                    left -= 1;
                    repeated.push((id, Edge { way: SchemaWay::Also, to: next }));
                    below.extend(self.same_value(next));
                }
            }
        }
        for (id, edge) in repeated {
            if let Some(edges) = self.edges.get_mut(id) {
                edges.push(edge);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.schemas.len()
    }

    /// Every schema that is an object, with its members.
    pub(super) fn schemas(&self) -> impl Iterator<Item = (Id, &'a Map<String, Value>)> {
        self.schemas.iter().enumerate().filter_map(|(id, schema)| schema.as_object().map(|map| (id, map)))
    }

    /// Returns whether a value is usable as a schema. True except for objects in plain data and maps of names.
    pub(super) fn holds(&self, schema: &Value) -> bool {
        !schema.is_object() || self.ids.contains_key(&std::ptr::from_ref(schema))
    }

    /// A schema as it is written.
    pub(super) fn schema(&self, id: Id) -> Option<&'a Value> {
        self.schemas.get(id).copied()
    }

    /// The connections that start at a schema.
    pub(super) fn edges(&self, from: Id) -> &[Edge<'a>] {
        self.edges.get(from).map_or(&[], Vec::as_slice)
    }

    /// The schemas that validate the same value.
    pub(super) fn same_value(&self, from: Id) -> impl Iterator<Item = Id> {
        self.edges(from).iter().filter(|edge| edge.way.is_same_value()).map(|edge| edge.to)
    }

    /// The members that a schema requires to be one fixed text, such as `"type": "row"`.
    pub(super) fn tags(&self, id: Id) -> impl Iterator<Item = (&'a str, &'a str)> {
        let schema = self.schema(id);
        let required = schema.and_then(|schema| schema.get("required")?.as_array()).into_iter().flatten();
        required.filter_map(Value::as_str).filter_map(move |name| {
            let member = schema?.get("properties")?.get(name)?;
            let only = || match member.get("enum")?.as_array()?.as_slice() {
                [only] => Some(only),
                _ => None,
            };
            Some((name, member.get("const").or_else(only)?.as_str()?))
        })
    }

    /// Adds the location in the files to a refusal.
    pub(super) fn problem(&self, files: &SchemaFiles, trouble: SchemaRefusal) -> SchemaProblem {
        let schema = self.schema(trouble.at).unwrap_or(&Value::Null);
        problem_at(files, schema, trouble.message)
    }
}

struct GraphBuilder<'a> {
    files: &'a SchemaFiles,
    owners: Vec<&'a str>,
    schemas: Vec<&'a Value>,
    /// By address: a location has one id, however it is reached.
    ids: HashMap<*const Value, Id>,
}

impl<'a> GraphBuilder<'a> {
    fn enter(&mut self, file: &'a str, schema: &'a Value) {
        self.ids.insert(std::ptr::from_ref(schema), self.schemas.len());
        self.schemas.push(schema);
        self.owners.push(file);
    }

    fn edges(&self) -> Result<Vec<Vec<Edge<'a>>>, SchemaProblem> {
        let files_and_schemas = self.owners.iter().zip(&self.schemas);
        files_and_schemas
            .map(|(file, schema)| match schema.get("$ref").and_then(Value::as_str) {
                // In core form, no rule is next to `$ref`.
                Some(reference) => self.reference(file, schema, reference),
                None => Ok(self.inner(schema)),
            })
            .collect()
    }

    fn reference(
        &self,
        file: &str,
        schema: &'a Value,
        reference: &str,
    ) -> Result<Vec<Edge<'a>>, SchemaProblem> {
        let target = refs::target(self.files, file, reference)
            .map_err(|message| problem_at(self.files, schema, message))?;
        match (self.ids.get(&std::ptr::from_ref(target)), target) {
            (Some(to), _) => Ok(vec![Edge { way: SchemaWay::Reference, to: *to }]),
            (None, Value::Bool(_)) => Ok(Vec::new()),
            // Inside plain data or a map of names. The validator would read it as a schema, but no check here has seen
            // it.
            (None, _) => {
                let message = format!("`$ref` points to something that is not a schema: `{reference}`");
                Err(problem_at(self.files, schema, message))
            }
        }
    }

    fn inner(&self, schema: &'a Value) -> Vec<Edge<'a>> {
        let mut edges = Vec::new();
        let mut push = |way, child: &'a Value| {
            edges.extend(self.ids.get(&std::ptr::from_ref(child)).map(|to| Edge { way, to: *to }));
        };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match (keyword.as_str(), value) {
                ("oneOf", Value::Array(list)) => list.iter().for_each(|each| push(SchemaWay::OneOf, each)),
                ("anyOf", Value::Array(list)) => list.iter().for_each(|each| push(SchemaWay::AnyOf, each)),
                ("allOf", Value::Array(list)) => list.iter().for_each(|each| push(SchemaWay::Also, each)),
                ("not" | "if" | "then" | "else", each) => push(SchemaWay::Also, each),
                ("dependencies", Value::Object(map)) => {
                    map.values().for_each(|each| push(SchemaWay::Also, each));
                }
                ("properties", Value::Object(map)) => {
                    map.iter().for_each(|(name, each)| push(SchemaWay::Member(name), each));
                }
                ("patternProperties", Value::Object(map)) => {
                    map.values().for_each(|each| push(SchemaWay::AnyMember, each));
                }
                ("additionalProperties", each) => push(SchemaWay::RestMembers, each),
                // The validator applies it once more when it looks for what is evaluated.
                ("unevaluatedProperties", each) => {
                    (0..2).for_each(|_| push(SchemaWay::AnyMember, each));
                }
                ("unevaluatedItems", each) => (0..2).for_each(|_| push(SchemaWay::AnyItem, each)),
                ("propertyNames", each) => push(SchemaWay::Name, each),
                ("items", Value::Array(list)) => {
                    list.iter().enumerate().for_each(|(index, each)| push(SchemaWay::Item(index), each));
                }
                ("items" | "contains", each) => push(SchemaWay::AnyItem, each),
                ("additionalItems", each) => push(SchemaWay::RestItems, each),
                _ => {}
            }
        }
        edges
    }
}

/// One value for each schema.
#[derive(Clone)]
pub(super) struct PerSchema<T>(Vec<T>);

impl<T: Copy + Default + PartialEq> PerSchema<T> {
    pub(super) fn new(graph: &SchemaGraph<'_>) -> Self {
        Self(vec![T::default(); graph.len()])
    }

    pub(super) fn at(&self, id: Id) -> T {
        self.0.get(id).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, id: Id, value: T) {
        if let Some(slot) = self.0.get_mut(id) {
            *slot = value;
        }
    }
}
