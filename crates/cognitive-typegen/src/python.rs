//! Writes types as Python: `TypedDict` for programs that use plain dictionaries, classes of pydantic for those that use
//! objects. Both need Python 3.11. An envelope is a union that `if answer["ok"]` or `isinstance` narrows.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{ObjectField, ObjectType, TypeDefinition, TypeExpr};
use crate::naming::{comment_lines, is_identifier, prefixed_lines, snake_case};
use crate::{HEADING, ModuleTypes, TypeSet};

/// The style of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PythonStyle {
    TypedDict,
    Pydantic,
}

const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except finally \
                        for from global if import in is lambda nonlocal not or pass raise return try while with yield";

const TYPED_DICT_IMPORTS: &str = "
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, Union
";

const PYDANTIC_IMPORTS: &str = "
from __future__ import annotations

from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field
";

pub(crate) fn print(set: &TypeSet, style: PythonStyle) -> String {
    let imports = if style == PythonStyle::TypedDict { TYPED_DICT_IMPORTS } else { PYDANTIC_IMPORTS };
    let mut file = format!("# {HEADING}\n{imports}");
    for definition in &set.shared {
        file.push_str(&define(definition, style));
    }
    file.push_str(&outcome("Failure", "A run that did not meet its contract.", style, false, None));
    for ModuleTypes { module, version, prefix, types } in &set.modules {
        let _ = write!(file, "\n\n# {}\n", comment_lines(&format!("{module} {version}")).join(" "));
        // An alias is evaluated when it is read, so the types that it names come first.
        let (objects, aliases): (Vec<_>, Vec<_>) =
            types.iter().partition(|each| matches!(each, TypeDefinition::Object(_)));
        for definition in objects.into_iter().chain(aliases) {
            file.push_str(&define(definition, style));
        }
        let (data, name) = (format!("{prefix}Data"), format!("{prefix}Success"));
        file.push_str(&outcome(&name, "A run that met its contract.", style, true, Some(&data)));
        let _ = write!(file, "\n\n{prefix}Envelope = Union[{name}, Failure]\n");
    }
    file
}

/// Returns one of the two forms of an envelope.
fn outcome(name: &str, what: &str, style: PythonStyle, ok: bool, data: Option<&str>) -> String {
    let field = |name: &str, value: TypeExpr, is_required: bool| ObjectField {
        name: name.to_owned(),
        description: None,
        value,
        is_required,
    };
    let named = |name: &str| TypeExpr::Named(name.to_owned());
    let mut fields =
        vec![field("ok", TypeExpr::Listed(vec![Value::Bool(ok)]), true), field("meta", named("Meta"), true)];
    match data {
        Some(data) => fields.push(field("data", named(data), true)),
        None => {
            let partial = TypeExpr::union([TypeExpr::Map(Box::new(TypeExpr::Any)), TypeExpr::Null]);
            fields.extend([field("error", named("ErrorInfo"), true), field("partial_data", partial, false)]);
        }
    }
    let object =
        ObjectType { name: name.to_owned(), description: Some(what.to_owned()), fields, is_closed: false };
    define(&TypeDefinition::Object(object), style)
}

fn define(definition: &TypeDefinition, style: PythonStyle) -> String {
    match definition {
        TypeDefinition::Alias { name, target, .. } => format!("\n\n{name} = {}\n", expr(target)),
        TypeDefinition::Object(object) if style == PythonStyle::Pydantic => pydantic(object),
        TypeDefinition::Object(object) => typed_dict(object),
    }
}

fn typed_dict(object: &ObjectType) -> String {
    let value = |field: &ObjectField| {
        let value = expr(&field.value);
        if field.is_required { value } else { format!("NotRequired[{value}]") }
    };
    if object.fields.iter().all(|field| is_plain(&field.name)) {
        let mut text = format!("\n\nclass {}(TypedDict):\n{}", object.name, docstring(object));
        for field in &object.fields {
            let _ = writeln!(text, "{}    {}: {}", comment(field), field.name, value(field));
        }
        return if object.fields.is_empty() { text + "    pass\n" } else { text };
    }
    // Names that are not identifiers need the functional syntax, where types are values and must be quoted.
    let mut text = format!("\n\n{0} = TypedDict(\n    \"{0}\",\n    {{\n", object.name);
    for field in &object.fields {
        let _ = writeln!(
            text,
            "        {}: {},",
            literal(&Value::from(field.name.as_str())),
            quote(&value(field))
        );
    }
    text + "    },\n)\n"
}

/// Returns a type as a string for deferred evaluation, because it may name a later type.
fn quote(value: &str) -> String {
    match value.strip_prefix("NotRequired[").and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => format!("NotRequired[{}]", quote(inner)),
        None => literal(&Value::from(value)),
    }
}

fn pydantic(object: &ObjectType) -> String {
    let extra = if object.is_closed { "forbid" } else { "allow" };
    let mut text = format!("\n\nclass {}(BaseModel):\n{}", object.name, docstring(object));
    let _ = writeln!(text, "    model_config = ConfigDict(extra=\"{extra}\", populate_by_name=True)\n");
    for (index, field) in object.fields.iter().enumerate() {
        let name = attribute(&field.name, index);
        let alias =
            (name != field.name).then(|| format!("alias={}", literal(&Value::from(field.name.as_str()))));
        let (value, _) = field.value.without_null();
        let value = if field.is_required {
            expr(&field.value)
        } else {
            expr(&TypeExpr::union([value, TypeExpr::Null]))
        };
        let default = match (field.is_required, alias) {
            (true, None) => String::new(),
            (true, Some(alias)) => format!(" = Field({alias})"),
            (false, None) => " = None".to_owned(),
            (false, Some(alias)) => format!(" = Field(default=None, {alias})"),
        };
        let _ = writeln!(text, "{}    {name}: {value}{default}", comment(field));
    }
    text
}

/// Returns a name that pydantic accepts: no keyword, no leading underscore, no member of its base class.
fn attribute(name: &str, index: usize) -> String {
    let is_free = |name: &str| {
        let of_pydantic = ["copy", "json", "dict", "schema", "validate", "construct"].contains(&name);
        is_plain(name) && !name.starts_with('_') && !name.starts_with("model_") && !of_pydantic
    };
    if is_free(name) {
        return name.to_owned();
    }
    match snake_case(name) {
        empty if empty.is_empty() => format!("field_{index}"),
        found if is_free(&found) => found,
        found => format!("{found}_"),
    }
}

fn is_plain(name: &str) -> bool {
    is_identifier(name) && !KEYWORDS.split_whitespace().any(|keyword| keyword == name)
}

fn docstring(object: &ObjectType) -> String {
    let lines = object.description.as_deref().map(comment_lines).unwrap_or_default();
    match lines.as_slice() {
        [] => String::new(),
        // A quote at the end would merge with the closing quotes.
        lines => format!("    \"\"\"{}\"\"\"\n\n", lines.join("\n    ").trim_end_matches('"')),
    }
}

fn comment(field: &ObjectField) -> String {
    prefixed_lines(field.description.as_deref(), "    # ")
}

fn expr(value: &TypeExpr) -> String {
    match value {
        TypeExpr::Any => "Any".to_owned(),
        TypeExpr::Null => "None".to_owned(),
        TypeExpr::Boolean => "bool".to_owned(),
        TypeExpr::Integer => "int".to_owned(),
        TypeExpr::Number => "float".to_owned(),
        TypeExpr::Text => "str".to_owned(),
        TypeExpr::Listed(values) => {
            let values: Vec<String> = values.iter().map(literal).collect();
            format!("Literal[{}]", values.join(", "))
        }
        TypeExpr::List(items) => format!("list[{}]", expr(items)),
        TypeExpr::Map(values) => format!("dict[str, {}]", expr(values)),
        TypeExpr::Union(parts) => {
            let parts: Vec<String> = parts.iter().map(expr).collect();
            format!("Union[{}]", parts.join(", "))
        }
        TypeExpr::Named(name) => name.clone(),
    }
}

/// Returns a value in Python syntax. JSON strings are valid Python strings, except for escapes of characters beyond
/// U+FFFF, and `serde_json` does not escape these.
fn literal(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}
