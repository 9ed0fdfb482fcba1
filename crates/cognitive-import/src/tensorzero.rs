//! Imports a `TensorZero` function: its schemas become the contract, the templates of one variant the prompt. Refuses
//! functions with tools, and variants that are not a single model call.

mod variant;

use std::collections::BTreeSet;
use std::path::Path;

use cognitive_contract::Failure;
use serde_json::{Value, json};
use toml::{Table, Value as TomlValue};

use crate::ImportOptions;
use crate::draft::{DraftInput, DraftOutput, ImportDraft};
use crate::foreign_schema;
use crate::form::ImportForm;
use crate::loss::LossList;
use crate::source::{SourceFile, literal_text, quote, refuse};
use crate::template::jinja;
use crate::template::rephrase::rephrase;
use crate::template::turns::{PromptTurn, as_one_prompt};
use variant::{FunctionVariant, choose_variant};

/// Tables of the file that do not describe functions.
const OTHER_TABLES: [(&str, &str); 8] = [
    ("gateway", "`cogn serve` has its own configuration"),
    ("models", "the caller chooses the model"),
    ("embedding_models", "the caller chooses the model"),
    ("provider_types", "the caller chooses the model"),
    ("metrics", "`cogn eval` measures by labelled cases"),
    ("tools", "functions with tools are not imported"),
    ("evaluations", "write labelled cases for `cogn eval` anew"),
    ("rate_limiting", "`cogn serve` has its own limits"),
];

/// Reads a configuration file, or `tensorzero.toml` in a folder.
pub(crate) fn read(path: &Path, options: &ImportOptions) -> Result<ImportDraft, Failure> {
    let file = if path.is_dir() { path.join("tensorzero.toml") } else { path.to_path_buf() };
    import_prompt(&SourceFile::open(&file)?, options)
}

fn import_prompt(source: &SourceFile, options: &ImportOptions) -> Result<ImportDraft, Failure> {
    let table = table(source)?;
    let (name, function) = function(&table, source, options)?;
    let mut draft = ImportDraft::new(ImportForm::TensorZero, &source.name, &name);
    draft.responsibility = function.get("description").and_then(TomlValue::as_str).map(str::to_owned);
    for key in table.keys().filter(|key| *key != "functions") {
        let known = OTHER_TABLES.iter().find(|(name, _)| name == key);
        draft.losses.add_lost(
            format!("`[{key}]`"),
            &source.name,
            known.map_or("modules have no equivalent", |(_, why)| why),
        );
    }
    let place = format!("functions.{name}");
    let kind = function.get("type").and_then(TomlValue::as_str).unwrap_or_default();
    if !["chat", "json"].contains(&kind) {
        return Err(refuse(
            format!("`{place}` has an unknown type: {}", quote(kind)),
            "Use `chat` or `json`",
        ));
    }
    if function.get("tools").and_then(TomlValue::as_array).is_some_and(|tools| !tools.is_empty()) {
        return Err(refuse(
            format!("`{place}` lets the model call tools in a loop, but a module makes a single judgement"),
            "Import a function without tools",
        ));
    }
    if function.contains_key("assistant_schema") {
        return Err(refuse(
            format!(
                "`{place}` has a schema for turns of the assistant: it continues a conversation, but a \
                 module makes a single judgement"
            ),
            "Import a function that answers once",
        ));
    }
    let taken = ["type", "description", "variants", "experimentation", "schemas", "tools"];
    for key in function.keys().filter(|key| !taken.contains(&key.as_str()) && !key.ends_with("_schema")) {
        draft.losses.add_lost(format!("`{place}.{key}`"), &source.name, "modules have no equivalent");
    }
    let variant = choose_variant(function, &place, source, &mut draft.losses)?;
    output(&mut draft, source, function, kind)?;
    templates(&mut draft, source, function, &variant)?;
    Ok(draft)
}

fn table(source: &SourceFile) -> Result<Table, Failure> {
    source.text.parse::<Table>().map_err(|error| {
        let at = error.span().and_then(|span| source.text.get(..span.start)).unwrap_or_default();
        let line = 1 + at.matches('\n').count();
        let why = error.message().lines().next().unwrap_or_default().to_owned();
        refuse(format!("invalid TOML in {}:{line}: {}", source.name, literal_text(&why)), "Correct the file")
    })
}

/// The function to import.
fn function<'t>(
    table: &'t Table,
    source: &SourceFile,
    options: &ImportOptions,
) -> Result<(String, &'t Table), Failure> {
    let functions = table.get("functions").and_then(TomlValue::as_table);
    let functions: Vec<(&String, &Table)> =
        functions.into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_table()?))).collect();
    let names: Vec<String> = functions.iter().take(20).map(|(name, _)| quote(name)).collect();
    match (&options.function, functions.as_slice()) {
        (_, []) => Err(refuse(
            format!("{} has no function, only models, metrics or evaluations", quote(&source.name)),
            "Import a file with `[functions.NAME]`",
        )),
        (None, [(name, function)]) => Ok(((*name).clone(), function)),
        (None, _) => Err(refuse(
            format!(
                "{} has several functions, and each becomes one module: {}",
                quote(&source.name),
                names.join(", ")
            ),
            "Choose one with `--function NAME`",
        )),
        (Some(wanted), _) => {
            let found = functions
                .iter()
                .find(|(name, _)| *name == wanted)
                .map(|(name, function)| ((*name).clone(), *function));
            found.ok_or_else(|| {
                let message = format!(
                    "{} has no function {}; it has {}",
                    quote(&source.name),
                    quote(wanted),
                    names.join(", ")
                );
                refuse(message, "Choose an existing function")
            })
        }
    }
}

/// Reads a JSON Schema from a file in the same folder.
fn schema(source: &SourceFile, path: &str) -> Result<Value, Failure> {
    let text = source.read_sibling(path)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| refuse(format!("invalid JSON in {}: {error}", quote(path)), "Correct the file"))?;
    if !value.is_object() && !value.is_boolean() {
        return Err(refuse(format!("{} is not a JSON Schema", quote(path)), "Write an object"));
    }
    Ok(value)
}

fn output(draft: &mut ImportDraft, source: &SourceFile, function: &Table, kind: &str) -> Result<(), Failure> {
    match function.get("output_schema").and_then(TomlValue::as_str) {
        Some(path) => {
            draft.output = DraftOutput::Schema { schema: schema(source, path)?, file: path.to_owned() }
        }
        None if kind == "json" => {
            draft.output = DraftOutput::Schema { schema: json!({}), file: source.name.clone() };
        }
        None => {}
    }
    Ok(())
}

/// The path of a schema: `user_schema = "…"` or `schemas.user.path = "…"`.
fn schema_path<'t>(function: &'t Table, role: &str) -> Option<&'t str> {
    let newer = function
        .get("schemas")
        .and_then(|schemas| schemas.get(role))
        .map(|schema| schema.get("path").unwrap_or(schema));
    function.get(&format!("{role}_schema")).or(newer).and_then(TomlValue::as_str)
}

fn templates(
    draft: &mut ImportDraft,
    source: &SourceFile,
    function: &Table,
    variant: &FunctionVariant,
) -> Result<(), Failure> {
    let mut turns = Vec::new();
    let mut declared: Vec<(String, Value, String)> = Vec::new();
    for (role, _) in &variant.templates {
        if let Some(path) = schema_path(function, role) {
            declared.push((role.clone(), schema(source, path)?, path.to_owned()));
        }
    }
    let prefixed = input(draft, &declared);
    let known: BTreeSet<String> = draft.input.names().cloned().collect();
    for (role, path) in &variant.templates {
        let text = source.read_sibling(path)?;
        let marks = jinja::marks(&text, path, 1)?;
        let rephrased = rephrase(&marks, path, &known, &mut draft.losses)?;
        if !prefixed {
            let is_declared = declared.iter().any(|(each, ..)| each == role);
            draft.input.add_used(&rephrased.used, is_declared, path, &mut draft.losses);
        }
        let speaker = if role == "system" { "system" } else { "user" };
        for turn in rephrased.turns {
            let text = if prefixed {
                format!("(Names are members of `{role}`.)\n\n{}", turn.text.trim())
            } else {
                turn.text
            };
            turns.push(PromptTurn { role: speaker.to_owned(), text, says_values: turn.says_values });
        }
    }
    if !variant.templates.iter().any(|(role, _)| role != "system") {
        let why = "callers send the user's turn as text; it is the member `message` of the input";
        draft.losses.add_changed("the user's turn, now `message`", &source.name, why);
        draft.input.add(
            "message",
            json!({ "type": "string", "minLength": 1, "description": "What the user sends" }),
            true,
        );
        let mut request = PromptTurn::new("user");
        request.text.push_str("`message`");
        turns.push(request);
    }
    draft.prompt = as_one_prompt(&turns, &source.name, &mut draft.losses)?;
    Ok(())
}

/// Builds one input for all roles from their members. If member names clash, or a schema has definitions, each role
/// becomes one object member. Returns whether it did.
fn input(draft: &mut ImportDraft, declared: &[(String, Value, String)]) -> bool {
    let names = |schema: &Value| -> BTreeSet<String> {
        schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|members| members.keys().cloned().collect())
            .unwrap_or_default()
    };
    if let [(_, schema, file)] = declared {
        draft.input = DraftInput::from_schema(schema, file, &mut draft.losses);
        return false;
    }
    let mut all = BTreeSet::new();
    let is_plain = |schema: &Value| schema.get("$defs").is_none() && schema.get("definitions").is_none();
    let clash = declared.iter().any(|(_, schema, _)| {
        let own = names(schema);
        let clash = !is_plain(schema) || own.iter().any(|name| all.contains(name));
        all.extend(own);
        clash
    });
    for (role, schema, file) in declared {
        if clash {
            let base = format!("/input/properties/{role}");
            let moved = foreign_schema::move_schema(schema, &base, file, &mut draft.losses);
            draft.input.add(role, moved, true);
            continue;
        }
        let part = DraftInput::from_schema(schema, file, &mut LossList::default());
        // Run only to record the losses; the result is not needed.
        foreign_schema::move_schema(schema, "/input", file, &mut draft.losses);
        let required = part.schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for (name, member) in part.schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            draft.input.add(name, member.clone(), required.iter().any(|each| each == name));
        }
    }
    if declared.len() > 1 {
        let why = "a module has one input";
        draft.losses.add_changed("the schemas of several roles, now one input", &draft.source, why);
    }
    clash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> String {
        let source = SourceFile::memory("tensorzero.toml", text);
        import_prompt(&source, &ImportOptions::default()).unwrap_err().message().to_owned()
    }

    #[test]
    fn what_is_no_function_of_one_call_is_refused() {
        assert!(reason("[metrics.a]\ntype = \"boolean\"").contains("has no function"));
        assert!(
            reason("[functions.a]\ntype = \"chat\"\n[functions.b]\ntype = \"chat\"").contains("`a`, `b`")
        );
        assert!(reason("[functions.a]\ntype = \"chat\"\ntools = [\"x\"]").contains("call tools"));
        assert!(reason("[functions.a]\ntype = \"draw\"").contains("unknown type: `draw`"));
        assert!(reason("[functions.a]\ntype = \"chat\"").contains("no variant"));
        assert_eq!(
            reason("a = 1\nb = "),
            "invalid TOML in tensorzero.toml:2: string values must be quoted, expected literal string"
        );
        assert!(reason(&format!("a = {}", "[".repeat(500_000))).contains("invalid TOML"));
    }
}
