//! Writes types as Rust: structs and enums for serde. Listed texts become enums, and unions become untagged enums. A
//! type that contains itself is boxed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::model::{ObjectType, TypeDefinition, TypeExpr};
use crate::naming::{comment_lines, is_identifier, pascal_case, prefixed_lines, snake_case};
use crate::{HEADING, ModuleTypes, TypeSet};

const KEYWORDS: &str = "as async await break const continue crate dyn else enum extern false fn for gen if impl in let \
                        loop match mod move mut pub ref return self Self static struct super trait true type unsafe use \
                        where while abstract become box do final macro override priv try typeof unsized virtual yield";

const DERIVES: &str = "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n";

const ENVELOPE: &str = include_str!("envelope.rs.txt");

pub(crate) fn print(set: &TypeSet) -> String {
    let all = set.shared.iter().chain(set.modules.iter().flat_map(|module| &module.types));
    let mut writer = RustWriter { recursive: recursive_names(all), text: format!("//! {HEADING}\n") };
    writer.text.push_str(
        "\nuse std::collections::BTreeMap;\n\nuse serde::{Deserialize, Serialize};\nuse serde_json::Value;\n",
    );
    for definition in &set.shared {
        writer.define(definition);
    }
    writer.text.push_str(ENVELOPE);
    for ModuleTypes { module, version, prefix, types } in &set.modules {
        let _ = write!(writer.text, "\n// {}\n", comment_lines(&format!("{module} {version}")).join(" "));
        for definition in types {
            writer.define(definition);
        }
        let _ = write!(writer.text, "\npub type {prefix}Envelope = Envelope<{prefix}Data>;\n");
    }
    writer.text
}

struct RustWriter {
    /// The types that contain themselves.
    recursive: BTreeSet<String>,
    text: String,
}

impl RustWriter {
    fn define(&mut self, definition: &TypeDefinition) {
        match definition {
            TypeDefinition::Object(object) => self.structure(object),
            TypeDefinition::Alias { name, description, target } => {
                let target = self.expr(target, &format!("{name}Value"));
                let comment = comment(description.as_deref(), "");
                let _ = write!(self.text, "\n{comment}pub type {name} = {target};\n");
            }
        }
    }

    fn structure(&mut self, object: &ObjectType) {
        let mut fields = String::new();
        let mut taken = BTreeSet::new();
        for (index, field) in object.fields.iter().enumerate() {
            let name = field_name(&field.name, index, &mut taken);
            let (inner, is_nullable) = field.value.without_null();
            let mut value = self.expr(&inner, &format!("{}{}", object.name, pascal_case(&field.name)));
            if is_nullable || !field.is_required {
                value = format!("Option<{value}>");
            }
            fields.push_str(&comment(field.description.as_deref(), "    "));
            if name.trim_start_matches("r#") != field.name {
                let _ = writeln!(fields, "    #[serde(rename = {:?})]", field.name);
            }
            if !field.is_required {
                fields.push_str("    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n");
            }
            let _ = writeln!(fields, "    pub {name}: {value},");
        }
        let comment = comment(object.description.as_deref(), "");
        let _ = write!(self.text, "\n{comment}{DERIVES}pub struct {} {{\n{fields}}}\n", object.name);
    }

    /// Returns the type of a value; writes the enums that it needs.
    fn expr(&mut self, value: &TypeExpr, hint: &str) -> String {
        match value {
            TypeExpr::Any => "Value".to_owned(),
            TypeExpr::Null => "()".to_owned(),
            TypeExpr::Boolean => "bool".to_owned(),
            TypeExpr::Integer => "i64".to_owned(),
            TypeExpr::Number => "f64".to_owned(),
            TypeExpr::Text => "String".to_owned(),
            TypeExpr::Listed(values) => self.enum_type(values, hint),
            TypeExpr::List(items) => format!("Vec<{}>", self.expr(items, &format!("{hint}Item"))),
            TypeExpr::Map(values) => {
                format!("BTreeMap<String, {}>", self.expr(values, &format!("{hint}Value")))
            }
            TypeExpr::Union(parts) => self.union(parts, hint),
            TypeExpr::Named(name) if self.recursive.contains(name) => format!("Box<{name}>"),
            TypeExpr::Named(name) => name.clone(),
        }
    }

    fn enum_type(&mut self, values: &[Value], hint: &str) -> String {
        let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
        let Some(texts) = texts else {
            let all = |holds: fn(&Value) -> bool| values.iter().all(holds);
            let name = if all(Value::is_boolean) {
                "bool"
            } else if all(Value::is_i64) {
                "i64"
            } else {
                "Value"
            };
            return name.to_owned();
        };
        let name = format!("{hint}Known");
        let mut variants = String::new();
        let mut taken = BTreeSet::new();
        for (index, text) in texts.into_iter().enumerate() {
            let variant = unique(&pascal_case(text), "Value", index, &mut taken);
            let _ = writeln!(variants, "    #[serde(rename = {text:?})]\n    {variant},");
        }
        let _ = write!(self.text, "\n{DERIVES}pub enum {name} {{\n{variants}}}\n");
        name
    }

    fn union(&mut self, parts: &[TypeExpr], hint: &str) -> String {
        let is_nullable = parts.contains(&TypeExpr::Null);
        let mut variants = String::new();
        let mut taken = BTreeSet::new();
        let others: Vec<&TypeExpr> = parts.iter().filter(|part| **part != TypeExpr::Null).collect();
        if let [only] = others.as_slice() {
            return format!("Option<{}>", self.expr(only, hint));
        }
        for (index, part) in others.into_iter().enumerate() {
            let variant = unique(variant_name(part), "Form", index, &mut taken);
            let value = self.expr(part, hint);
            let _ = writeln!(variants, "    {variant}({value}),");
        }
        let name = format!("{hint}Choice");
        let _ = write!(self.text, "\n{DERIVES}#[serde(untagged)]\npub enum {name} {{\n{variants}}}\n");
        if is_nullable { format!("Option<{name}>") } else { name }
    }
}

fn variant_name(part: &TypeExpr) -> &str {
    match part {
        TypeExpr::Listed(_) => "Known",
        TypeExpr::Text => "Text",
        TypeExpr::Integer => "Integer",
        TypeExpr::Number => "Number",
        TypeExpr::Boolean => "Boolean",
        TypeExpr::List(_) => "List",
        TypeExpr::Map(_) => "Map",
        TypeExpr::Named(name) => name,
        TypeExpr::Any | TypeExpr::Null | TypeExpr::Union(_) => "Other",
    }
}

/// Returns an unused name; a word and a number if the wanted name is empty.
fn unique(wanted: &str, word: &str, index: usize, taken: &mut BTreeSet<String>) -> String {
    let wanted = if wanted.is_empty() || wanted == "Self" {
        format!("{word}{}", index + 1)
    } else {
        wanted.to_owned()
    };
    let name = if taken.contains(&wanted) { format!("{wanted}{}", index + 1) } else { wanted };
    taken.insert(name.clone());
    name
}

fn field_name(name: &str, index: usize, taken: &mut BTreeSet<String>) -> String {
    let plain = if is_identifier(name) && snake_case(name) == name.trim_start_matches('_') {
        name.to_owned()
    } else {
        snake_case(name)
    };
    let plain = unique(&plain, "field_", index, taken);
    match plain.as_str() {
        // These cannot become identifiers with `r#`.
        "self" | "super" | "crate" | "_" => format!("{plain}_"),
        keyword if KEYWORDS.split_whitespace().any(|each| each == keyword) => format!("r#{keyword}"),
        _ => plain,
    }
}

fn comment(description: Option<&str>, indent: &str) -> String {
    prefixed_lines(description, &format!("{indent}/// "))
}

/// Returns the names of types that contain themselves, directly or through members that are neither lists nor maps.
fn recursive_names<'a>(types: impl Iterator<Item = &'a TypeDefinition>) -> BTreeSet<String> {
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for definition in types {
        let found = direct.entry(definition.name().to_owned()).or_default();
        match definition {
            TypeDefinition::Object(object) => {
                object.fields.iter().for_each(|field| collect_names(&field.value, found));
            }
            TypeDefinition::Alias { target, .. } => collect_names(target, found),
        }
    }
    let leads_back = |name: &&String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*name]);
        while let Some(each) = next.pop() {
            for inner in direct.get(each).into_iter().flatten() {
                if inner == *name {
                    return true;
                }
                if seen.insert(inner) {
                    next.push(inner);
                }
            }
        }
        false
    };
    direct.keys().filter(leads_back).cloned().collect()
}

fn collect_names(value: &TypeExpr, found: &mut BTreeSet<String>) {
    match value {
        TypeExpr::Named(name) => {
            found.insert(name.clone());
        }
        TypeExpr::Union(parts) => parts.iter().for_each(|part| collect_names(part, found)),
        _ => {}
    }
}
