//! The shape of a module's `data` as a data frame column, built from the types that `cogn types` writes.
//! Types without a column form (unions, objects with free names, recursive types) become JSON text. Knows
//! nothing of Arrow.

use std::sync::Arc;

use cognitive_contract::Module;
use cognitive_typegen::{ModuleTypes, ObjectType, TypeDefinition, TypeExpr, TypeSet};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::runtime::NativeRuntime;
use crate::{envelope_class, to_python};

/// The deepest struct; deeper values become JSON text. Data frames show a deeper one only as a text anyway.
const MAX_STRUCT_DEPTH: usize = 16;
/// The most members of all structs together; a module with more gets a single JSON text. Without the limit,
/// references that double at each step would give a type of billions of members.
const MAX_MEMBERS: usize = 1_000;

/// Returns the shape of a module's column, see [`shape`].
#[pyfunction]
pub fn column_shape<'py>(
    py: Python<'py>,
    runtime: &NativeRuntime,
    module: &str,
) -> PyResult<Bound<'py, PyAny>> {
    // Only loads the module: a program that plans a query often has no key.
    let modules = runtime.runtime(py)?.modules();
    let loaded =
        py.detach(|| modules.module(module)).map_err(|failure| envelope_class::exception(py, failure))?;
    to_python::object(py, &shape(&loaded))
}

/// Builds `{"data": SHAPE, "input": [[name, SHAPE, required], …]}`. A shape is `"text"`, `"integer"`,
/// `"number"`, `"boolean"`, `"word"` (a listed value, or the text of a custom one), `"json"`,
/// `{"list": SHAPE}` or `{"struct": [[name, SHAPE], …]}`.
fn shape(module: &Arc<Module>) -> Value {
    let set = TypeSet::new(std::slice::from_ref(module));
    let Some(types) = set.modules.first() else { return json!({ "data": "json", "input": [] }) };
    let mut reader = ShapeReader { types, members: 0 };
    let data = reader.named_shape(&format!("{}Data", types.prefix), &mut Vec::new());
    let data = if reader.members > MAX_MEMBERS { Value::from("json") } else { data };
    let input = match reader.definition(&format!("{}Input", types.prefix)) {
        Some(TypeDefinition::Object(object)) => reader.fields_of_input(object),
        _ => Vec::new(),
    };
    json!({ "data": data, "input": input })
}

struct ShapeReader<'a> {
    types: &'a ModuleTypes,
    members: usize,
}

impl<'a> ShapeReader<'a> {
    fn definition(&self, name: &str) -> Option<&'a TypeDefinition> {
        self.types.types.iter().find(|known| known.name() == name)
    }

    fn fields_of_input(&mut self, object: &'a ObjectType) -> Vec<Value> {
        let fields = object.fields.iter();
        fields
            .map(|field| json!([field.name, self.expr(&field.value, &mut Vec::new()), field.is_required]))
            .collect()
    }

    /// Returns the shape of a named type; `above` contains the names of the enclosing types.
    fn named_shape(&mut self, name: &str, above: &mut Vec<String>) -> Value {
        if above.len() >= MAX_STRUCT_DEPTH
            || self.members > MAX_MEMBERS
            || above.iter().any(|known| known == name)
        {
            return "json".into();
        }
        above.push(name.to_owned());
        let shape = match self.definition(name) {
            Some(TypeDefinition::Object(object)) if !object.fields.is_empty() => {
                self.members += object.fields.len();
                let fields = object.fields.iter();
                let fields = fields.map(|field| json!([field.name, self.expr(&field.value, above)]));
                json!({ "struct": fields.collect::<Vec<_>>() })
            }
            Some(TypeDefinition::Alias { target, .. }) => self.expr(target, above),
            _ => "json".into(),
        };
        above.pop();
        shape
    }

    fn expr(&mut self, expr: &'a TypeExpr, above: &mut Vec<String>) -> Value {
        match expr {
            TypeExpr::Text => "text".into(),
            TypeExpr::Integer => "integer".into(),
            TypeExpr::Number => "number".into(),
            TypeExpr::Boolean => "boolean".into(),
            TypeExpr::Listed(values) => enum_type(values).into(),
            TypeExpr::List(item) => json!({ "list": self.expr(item, above) }),
            TypeExpr::Named(name) => self.named_shape(name, above),
            TypeExpr::Union(parts) => self.union(parts, above),
            _ => "json".into(),
        }
    }

    /// Returns the shape of a union. Every value of a column may be missing, so `null` does not count as a
    /// type.
    fn union(&mut self, parts: &'a [TypeExpr], above: &mut Vec<String>) -> Value {
        let mut shapes: Vec<Value> = Vec::new();
        let mut has_custom = false;
        for part in parts.iter().filter(|part| **part != TypeExpr::Null) {
            if matches!(part, TypeExpr::Named(name) if name == "Custom") {
                has_custom = true;
                continue;
            }
            let shape = self.expr(part, above);
            if !shapes.contains(&shape) {
                shapes.push(shape);
            }
        }
        match (shapes.as_slice(), has_custom) {
            ([one], false) => one.clone(),
            ([one], true) if one == "text" => "word".into(),
            ([one, other], false)
                if one == "integer" && other == "number" || one == "number" && other == "integer" =>
            {
                "number".into()
            }
            _ => "json".into(),
        }
    }
}

fn enum_type(values: &[Value]) -> &'static str {
    if values.iter().all(Value::is_string) {
        "text"
    } else if values.iter().all(Value::is_i64) {
        "integer"
    } else if values.iter().all(Value::is_boolean) {
        "boolean"
    } else {
        "json"
    }
}
