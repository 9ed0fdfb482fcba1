//! Writes types as TypeScript: interfaces, unions of literals, and an envelope that `if (answer.ok)` narrows.

use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{ObjectType, TypeDefinition, TypeExpr};
use crate::naming::{comment_lines, is_identifier, prefixed_lines};
use crate::{HEADING, ModuleTypes, TypeSet};

const ENVELOPE: &str = include_str!("envelope.ts.txt");

pub(crate) fn print(set: &TypeSet) -> String {
    let mut file = format!("// {HEADING}\n");
    for definition in &set.shared {
        file.push_str(&define(definition));
    }
    file.push_str(ENVELOPE);
    for ModuleTypes { module, version, prefix, types } in &set.modules {
        let _ = write!(file, "\n// {}\n", comment_lines(&format!("{module} {version}")).join(" "));
        for definition in types {
            file.push_str(&define(definition));
        }
        let _ = write!(file, "\nexport type {prefix}Envelope = Envelope<{prefix}Data>;\n");
    }
    let pairs = set.modules.iter().map(|module| (&module.module, &module.prefix));
    file.push_str("\n/** Input and data of every module here, by its name. */\nexport interface Modules {\n");
    for (module, prefix) in pairs {
        let _ = writeln!(
            file,
            "  {}: {{ input: {prefix}Input; data: {prefix}Data }};",
            Value::from(module.as_str())
        );
    }
    file.push_str("}\n");
    file
}

/// Writes a file with these types only.
pub(crate) fn print_types(types: &[TypeDefinition], heading: &str) -> String {
    types.iter().fold(format!("// {heading}\n"), |file, definition| file + &define(definition))
}

fn define(definition: &TypeDefinition) -> String {
    match definition {
        TypeDefinition::Object(object) => interface(object),
        TypeDefinition::Alias { name, description, target } => {
            format!("\n{}export type {name} = {};\n", comment(description.as_deref(), ""), expr(target))
        }
    }
}

fn interface(object: &ObjectType) -> String {
    let mut text =
        format!("\n{}export interface {} {{\n", comment(object.description.as_deref(), ""), object.name);
    for field in &object.fields {
        let name = if is_identifier(&field.name) {
            field.name.clone()
        } else {
            Value::from(field.name.as_str()).to_string()
        };
        let mark = if field.is_required { "" } else { "?" };
        let _ = writeln!(
            text,
            "{}  {name}{mark}: {};",
            comment(field.description.as_deref(), "  "),
            expr(&field.value)
        );
    }
    text.push_str("}\n");
    text
}

fn comment(description: Option<&str>, indent: &str) -> String {
    let lines = description.map(comment_lines).unwrap_or_default();
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        _ => format!("{indent}/**\n{}{indent} */\n", prefixed_lines(description, &format!("{indent} * "))),
    }
}

fn expr(value: &TypeExpr) -> String {
    match value {
        TypeExpr::Any => "unknown".to_owned(),
        TypeExpr::Null => "null".to_owned(),
        TypeExpr::Boolean => "boolean".to_owned(),
        TypeExpr::Integer | TypeExpr::Number => "number".to_owned(),
        TypeExpr::Text => "string".to_owned(),
        TypeExpr::Listed(values) => join_types(values.iter().map(Value::to_string)),
        TypeExpr::List(items) => format!("Array<{}>", expr(items)),
        TypeExpr::Map(values) => format!("Record<string, {}>", expr(values)),
        TypeExpr::Union(parts) => join_types(parts.iter().map(expr)),
        TypeExpr::Named(name) => name.clone(),
    }
}

fn join_types(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<String>>().join(" | ")
}
