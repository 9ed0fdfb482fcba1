//! Imports a dotprompt file: its schemas (Picoschema or JSON Schema) become the contract, its template the prompt.
//! Refuses tools, histories, partials and media output.

use std::collections::BTreeSet;
use std::path::Path;

use cognitive_contract::Failure;
use serde_json::{Map, Value, json};

use crate::draft::{DraftInput, DraftOutput, ImportDraft};
use crate::form::ImportForm;
use crate::front_matter::{FrontMatter, split, text_of};
use crate::picoschema;
use crate::source::{SourceFile, quote, refuse};
use crate::template::braces::{self, BraceEngine};
use crate::template::rephrase::rephrase;
use crate::template::turns::as_one_prompt;

const CALLER: &str = "the caller chooses the model and its settings";

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<ImportDraft, Failure> {
    import_prompt(&SourceFile::open(path)?)
}

fn import_prompt(source: &SourceFile) -> Result<ImportDraft, Failure> {
    if source.name.starts_with('_') {
        let message = format!("{} is a partial, a fragment that other prompts include", quote(&source.name));
        return Err(refuse(message, "Import the prompt that includes it"));
    }
    let parts = split(&source.text, &source.name)?;
    let name = text_of(&parts.keys, "name").unwrap_or_else(|| source.stem());
    let mut draft = ImportDraft::new(ImportForm::Dotprompt, &source.name, name);
    keys(&mut draft, &parts.keys)?;
    let is_declared = input(&mut draft, parts.keys.get("input"))?;
    output(&mut draft, parts.keys.get("output"))?;
    prompt(&mut draft, &parts, is_declared)?;
    Ok(draft)
}

fn keys(draft: &mut ImportDraft, keys: &Map<String, Value>) -> Result<(), Failure> {
    let source = draft.source.clone();
    draft.responsibility = text_of(keys, "description").map(str::to_owned);
    for (key, value) in keys {
        match key.as_str() {
            "version" => {
                draft.version = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
            "tools" | "toolDefs" if value.as_array().is_some_and(|tools| !tools.is_empty()) => {
                return Err(refuse(
                    format!(
                        "{} lets the model call tools in a loop, but a module makes a single judgement",
                        quote(&source)
                    ),
                    "Import a prompt without tools, or keep it there and let it call modules",
                ));
            }
            "name" | "description" | "input" | "output" | "tools" | "toolDefs" => {}
            "model" => {
                draft.losses.add_lost(
                    format!("the model {}", quote(value.as_str().unwrap_or_default())),
                    &source,
                    CALLER,
                );
            }
            "config" => {
                for name in value.as_object().into_iter().flat_map(|config| config.keys()) {
                    draft.losses.add_lost(format!("`config.{name}`"), &source, CALLER);
                }
            }
            "variant" => draft.losses.add_lost("`variant`", &source, "each variant becomes one module"),
            _ => draft.losses.add_lost(format!("`{key}`"), &source, "manifests have no such key"),
        }
    }
    Ok(())
}

/// Reads the input. Returns whether the file declares a schema for it.
fn input(draft: &mut ImportDraft, written: Option<&Value>) -> Result<bool, Failure> {
    let source = draft.source.clone();
    let Some(written) = written else { return Ok(false) };
    other_members(draft, "input", written, &["schema", "default"]);
    let schema = written.get("schema").filter(|schema| !schema.is_null());
    if let Some(schema) = schema {
        let schema = picoschema::read(schema, "input.schema")?;
        draft.input = DraftInput::from_schema(&schema, &source, &mut draft.losses);
    }
    if let Some(Value::Object(defaults)) = written.get("default") {
        for (name, value) in defaults {
            if !draft.input.has(name) {
                let why = "the file gives a default for it and no type; any value is accepted";
                draft.losses.add_invented(format!("the type of `{name}`"), &source, why);
                draft.input.add(name, json!({}), false);
            }
            draft.input.set_default(name, value);
        }
        draft.examples.push(("default".to_owned(), Value::Object(defaults.clone())));
    }
    Ok(schema.is_some())
}

fn output(draft: &mut ImportDraft, written: Option<&Value>) -> Result<(), Failure> {
    let Some(written) = written else { return Ok(()) };
    let source = draft.source.clone();
    other_members(draft, "output", written, &["schema", "format"]);
    let format = written.get("format").and_then(Value::as_str).unwrap_or_default();
    if format.starts_with("media") || format.starts_with("image") {
        let message = format!("{} returns media instead of data: {}", quote(&source), quote(format));
        return Err(refuse(message, "Import a prompt that returns text or data"));
    }
    let schema = match written.get("schema").filter(|schema| !schema.is_null()) {
        Some(schema) => picoschema::read(schema, "output.schema")?,
        None if ["json", "jsonl", "array"].contains(&format) => json!({}),
        None => return Ok(()),
    };
    if !["", "json", "text"].contains(&format) {
        draft.losses.add_changed(
            format!("`output.format` {}", quote(format)),
            &source,
            "a run returns one object, the envelope",
        );
    }
    draft.output = DraftOutput::Schema { schema, file: source };
    Ok(())
}

fn other_members(draft: &mut ImportDraft, key: &str, written: &Value, taken: &[&str]) {
    for name in
        written.as_object().into_iter().flat_map(Map::keys).filter(|name| !taken.contains(&name.as_str()))
    {
        draft.losses.add_lost(format!("`{key}.{name}`"), &draft.source, "contracts have no such key");
    }
}

fn prompt(draft: &mut ImportDraft, parts: &FrontMatter<'_>, is_declared: bool) -> Result<(), Failure> {
    let file = draft.source.clone();
    let known: BTreeSet<String> = draft.input.names().cloned().collect();
    let marks = braces::marks(parts.body, &file, parts.line, BraceEngine::Handlebars)?;
    let rephrased = rephrase(&marks, &file, &known, &mut draft.losses)?;
    let is_closed =
        is_declared && draft.input.schema.get("additionalProperties") == Some(&Value::Bool(false));
    draft.input.add_used(&rephrased.used, is_closed, &file, &mut draft.losses);
    draft.prompt = as_one_prompt(&rephrased.turns, &file, &mut draft.losses)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_no_longer_required() {
        let text = "---\ninput:\n  schema:\n    name: string\n    tone: string\n  default:\n    tone: kind\n---\nGreet {{name}}.";
        let draft = import_prompt(&SourceFile::memory("greet.prompt", text)).unwrap();
        assert_eq!(draft.name, "greet");
        assert_eq!(draft.input.schema["required"], json!(["name"]));
        assert_eq!(draft.input.schema["properties"]["tone"]["default"], "kind");
        assert_eq!(draft.prompt, "Greet `name`.");
    }

    #[test]
    fn what_is_no_judgement_is_refused() {
        let reason = |name: &str, text: &str| {
            import_prompt(&SourceFile::memory(name, text)).unwrap_err().message().to_owned()
        };
        assert!(reason("_p.prompt", "Hi").contains("is a partial"));
        assert!(reason("a.prompt", "---\ntools: [x]\n---\nHi").contains("call tools in a loop"));
        assert!(reason("a.prompt", "---\noutput:\n  format: media\n---\nHi").contains("returns media"));
        assert!(reason("a.prompt", "{{history}} {{x}}").contains("conversation"));
        assert!(reason("a.prompt", "---\nmodel: x\n---\n").contains("has no prompt"));
    }
}
