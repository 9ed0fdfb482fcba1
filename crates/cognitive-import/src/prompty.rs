//! Imports a Prompty file of version 1 (`model.api`, `sample`) or version 2 (`model.apiType`, lists of inputs). Refuses
//! threads, tools and everything that is not a chat, because they have no single answer.

mod properties;

use std::collections::BTreeSet;
use std::path::Path;

use cognitive_contract::Failure;
use serde_json::{Map, Value};

use crate::draft::{DraftInput, DraftOutput, ImportDraft};
use crate::form::ImportForm;
use crate::front_matter::{FrontMatter, split, text_of};
use crate::source::{SourceFile, quote, refuse};
use crate::template::braces::{self, BraceEngine};
use crate::template::rephrase::rephrase;
use crate::template::turns::as_one_prompt;
use crate::template::{TemplateMark, TemplateTag, jinja};

const CALLER: &str = "the caller chooses the model and its settings";

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<ImportDraft, Failure> {
    import_prompt(&SourceFile::open(path)?)
}

fn import_prompt(source: &SourceFile) -> Result<ImportDraft, Failure> {
    let parts = split(&source.text, &source.name)?;
    let keys = &parts.keys;
    let name =
        text_of(keys, "name").or_else(|| text_of(keys, "displayName")).unwrap_or_else(|| source.stem());
    let mut draft = ImportDraft::new(ImportForm::Prompty, &source.name, name);
    draft.responsibility = text_of(keys, "description").map(str::to_owned);
    other_keys(&mut draft, keys)?;
    model(&mut draft, keys)?;
    let declared = inputs(&mut draft, source, keys)?;
    outputs(&mut draft, source, keys)?;
    prompt(&mut draft, &parts, declared)?;
    Ok(draft)
}

fn other_keys(draft: &mut ImportDraft, keys: &Map<String, Value>) -> Result<(), Failure> {
    for (key, value) in keys {
        match key.as_str() {
            "tools" if is_filled(value) => return Err(tools(&draft.source)),
            "tools" | "name" | "displayName" | "description" | "model" | "inputs" | "inputSchema"
            | "outputs" | "outputSchema" | "sample" | "template" => {}
            "version" => {
                draft.version = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if name == "version" {
                        draft.version = Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                    } else {
                        draft.losses.add_lost(
                            format!("`metadata.{name}`"),
                            &draft.source,
                            "manifests have no such key",
                        );
                    }
                }
            }
            "base" => {
                let what = format!("`base` {}", quote(value.as_str().unwrap_or_default()));
                draft.losses.add_lost(
                    what,
                    &draft.source,
                    "other files are not read: their content is missing",
                );
            }
            _ => draft.losses.add_lost(format!("`{key}`"), &draft.source, "manifests have no such key"),
        }
    }
    Ok(())
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

fn tools(source: &str) -> Failure {
    refuse(
        format!(
            "{} lets the model call tools in a loop, but a module makes a single judgement",
            quote(source)
        ),
        "Import a prompt without tools, or keep it there and let it call modules",
    )
}

fn model(draft: &mut ImportDraft, keys: &Map<String, Value>) -> Result<(), Failure> {
    let source = draft.source.clone();
    let members = match keys.get("model") {
        None => return Ok(()),
        Some(Value::String(id)) => {
            draft.losses.add_lost(format!("the model {}", quote(id)), &source, CALLER);
            return Ok(());
        }
        Some(Value::Object(members)) => members,
        Some(_) => {
            return Err(refuse(
                format!("`model` of {} is neither a name nor a map", quote(&source)),
                "Correct it",
            ));
        }
    };
    for (key, value) in members {
        match key.as_str() {
            "api" | "apiType" => {
                let api = value.as_str().unwrap_or_default();
                if !["chat", "completion", "responses", "text", ""].contains(&api) {
                    let message =
                        format!("{} returns something other than text: {}", quote(&source), quote(api));
                    return Err(refuse(message, "Import a prompt of the kind `chat`"));
                }
            }
            "parameters" | "options" => options(draft, key, value)?,
            "configuration" | "connection" => {
                let why = "keys and addresses are never imported; `cogn doctor` explains how to configure a \
                     provider";
                draft.losses.add_lost(format!("`model.{key}`"), &source, why);
            }
            "response" => {
                draft.losses.add_lost(
                    "`model.response`",
                    &source,
                    "a run returns its answer as one envelope",
                );
            }
            _ => {
                let what = format!("`model.{key}` {}", value.as_str().map(quote).unwrap_or_default());
                draft.losses.add_lost(what.trim(), &source, CALLER);
            }
        }
    }
    Ok(())
}

fn options(draft: &mut ImportDraft, key: &str, value: &Value) -> Result<(), Failure> {
    let source = draft.source.clone();
    for (name, value) in value.as_object().into_iter().flatten() {
        match name.as_str() {
            "tools" | "functions" if is_filled(value) => return Err(tools(&source)),
            "response_format" | "responseFormat" => {
                let schema = value.pointer("/json_schema/schema").or_else(|| value.get("schema"));
                if let Some(schema) = schema {
                    draft.output = DraftOutput::Schema { schema: schema.clone(), file: source.clone() };
                } else if value.get("type").is_some_and(|kind| kind == "json_object") {
                    let schema = serde_json::json!({ "type": "object" });
                    draft.output = DraftOutput::Schema { schema, file: source.clone() };
                }
            }
            _ => draft.losses.add_lost(format!("`model.{key}.{name}`"), &source, CALLER),
        }
    }
    Ok(())
}

/// The value itself, or the content of the file that it names as `${file:path}`.
fn resolve_file(value: &Value, source: &SourceFile) -> Result<Value, Failure> {
    let Some(text) = value.as_str() else { return Ok(value.clone()) };
    let path = text.strip_prefix("${file:").and_then(|rest| rest.strip_suffix('}'));
    let Some(path) = path.or_else(|| {
        Some(text).filter(|text| Path::new(text).extension().is_some_and(|ending| ending == "json"))
    }) else {
        return Ok(value.clone());
    };
    let content = source.read_sibling(path)?;
    let parsed = match path.rsplit_once('.') {
        Some((_, "json")) => serde_json::from_str(&content).map_err(|error| error.to_string()),
        _ => cognitive_library::yaml::parse(&content).map_err(|error| error.message),
    };
    parsed.map_err(|error| refuse(format!("{} cannot be read: {error}", quote(path)), "Correct the file"))
}

/// Reads the declared inputs. Returns whether the file declares any.
fn inputs(draft: &mut ImportDraft, source: &SourceFile, keys: &Map<String, Value>) -> Result<bool, Failure> {
    let written = keys.get("inputs").or_else(|| keys.get("inputSchema"));
    let mut example = Map::new();
    if let Some(written) = written {
        let written = resolve_file(written, source)?;
        for property in properties::list(&written, &source.name)? {
            property.add_to(&mut draft.input, &source.name, &mut draft.losses)?;
            if let Some(value) = property.example() {
                example.insert(property.name.clone(), value.clone());
            }
        }
        let shown = written.get("examples").and_then(|examples| examples.get(0)).and_then(Value::as_object);
        example.extend(shown.cloned().unwrap_or_default());
    }
    if let Some(sample) = keys.get("sample") {
        let sample = resolve_file(sample, source)?;
        for (name, value) in sample.as_object().into_iter().flatten() {
            if !draft.input.has(name) {
                draft.input.add(name, properties::kind_of(value), true);
                let why = "the file gives a sample of it and no type; the type is that of the sample";
                draft.losses.add_invented(format!("the type of `{name}`"), &source.name, why);
            }
            example.insert(name.clone(), value.clone());
        }
    }
    if !example.is_empty() {
        draft.examples.push(("sample".to_owned(), Value::Object(example)));
    }
    Ok(written.is_some())
}

fn outputs(draft: &mut ImportDraft, source: &SourceFile, keys: &Map<String, Value>) -> Result<(), Failure> {
    let Some(written) = keys.get("outputs").or_else(|| keys.get("outputSchema")) else { return Ok(()) };
    let mut output = DraftInput::empty();
    for property in properties::list(&resolve_file(written, source)?, &source.name)? {
        property.add_to_output(&mut output, &source.name)?;
    }
    if output.names().next().is_some() {
        draft.output =
            DraftOutput::Schema { schema: Value::Object(output.schema), file: source.name.clone() };
    }
    Ok(())
}

fn prompt(draft: &mut ImportDraft, parts: &FrontMatter<'_>, declared: bool) -> Result<(), Failure> {
    let file = draft.source.clone();
    let engine = engine(parts, &file)?;
    let known: BTreeSet<String> = draft.input.names().cloned().collect();
    let marks = marks(parts, &file, engine)?;
    let rephrased = rephrase(&marks, &file, &known, &mut draft.losses)?;
    if parts.body.contains("![") && parts.body.contains("](") {
        let why = "a picture in the text becomes an address; send pictures with the input";
        draft.losses.add_lost("a picture in the text", &file, why);
    }
    if declared {
        for name in known.iter().filter(|name| !rephrased.used.iter().any(|(used, _)| used == *name)) {
            draft.losses.add_changed(
                format!("`{name}` is not in the template"),
                &file,
                "the model gets it with the input",
            );
        }
    }
    let new: Vec<_> = rephrased.used.into_iter().filter(|(name, _)| !known.contains(name)).collect();
    draft.input.add_used(&new, false, &file, &mut draft.losses);
    draft.prompt = as_one_prompt(&rephrased.turns, &file, &mut draft.losses)?;
    Ok(())
}

fn engine(parts: &FrontMatter<'_>, file: &str) -> Result<Option<BraceEngine>, Failure> {
    let template = parts.keys.get("template");
    let kind = template.and_then(|template| {
        let format = template.get("format").or_else(|| template.get("type")).unwrap_or(template);
        format.as_str().or_else(|| format.get("kind").and_then(Value::as_str))
    });
    match kind {
        None | Some("jinja2" | "jinja" | "nunjucks") => Ok(None),
        Some("mustache") => Ok(Some(BraceEngine::Mustache)),
        Some("handlebars") => Ok(Some(BraceEngine::Handlebars)),
        Some(other) => {
            let message = format!("{} has an unsupported template type: {}", quote(file), quote(other));
            Err(refuse(message, "Convert it to `jinja2` or `mustache`"))
        }
    }
}

/// The marks of the body; lines such as `system:` become roles.
fn marks(
    parts: &FrontMatter<'_>,
    file: &str,
    engine: Option<BraceEngine>,
) -> Result<Vec<TemplateMark>, Failure> {
    let mut marks = Vec::new();
    let (mut chunk, mut first) = (String::new(), parts.line);
    for (number, line) in parts.body.split_inclusive('\n').enumerate() {
        if let Some(role) = role_of(line) {
            marks.extend(chunk_marks(&chunk, file, first, engine)?);
            let line_number = parts.line + number;
            marks.push(TemplateMark {
                tag: TemplateTag::Role(role),
                written: line.trim().to_owned(),
                line: line_number,
            });
            chunk.clear();
            first = line_number + 1;
        } else {
            chunk.push_str(line);
        }
    }
    marks.extend(chunk_marks(&chunk, file, first, engine)?);
    Ok(marks)
}

fn chunk_marks(
    text: &str,
    file: &str,
    first: usize,
    engine: Option<BraceEngine>,
) -> Result<Vec<TemplateMark>, Failure> {
    match engine {
        None => jinja::marks(text, file, first),
        Some(engine) => braces::marks(text, file, first, engine),
    }
}

/// The role that a separate line names.
fn role_of(line: &str) -> Option<String> {
    let bare = line.trim().trim_start_matches('#').trim().strip_suffix(':')?.trim_end();
    let name = match bare.split_once('[') {
        Some((name, attributes)) if attributes.ends_with(']') && attributes.contains('=') => name,
        Some(_) => return None,
        None => bare,
    };
    let name = name.trim().to_ascii_lowercase();
    ["system", "user", "assistant", "developer", "function", "tool"].contains(&name.as_str()).then_some(name)
}

/// The losses of a file in memory, for tests.
#[cfg(test)]
fn losses_of(text: &str) -> Vec<String> {
    let draft = import_prompt(&SourceFile::memory("a.prompty", text)).unwrap();
    draft.losses.finish().into_iter().map(|loss| loss.what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_stand_on_lines_of_their_own() {
        for (line, role) in [
            ("system:\n", Some("system")),
            ("  # User:", Some("user")),
            ("assistant[nonce=abc]:", Some("assistant")),
            ("user: hello", None),
            ("the user:", None),
            ("user[x]:", None),
        ] {
            assert_eq!(role_of(line).as_deref(), role, "{line}");
        }
    }

    #[test]
    fn what_belongs_to_the_caller_is_lost() {
        let text = "---\nname: a\nmodel:\n  api: chat\n  configuration:\n    api_key: secret\n  parameters:\n    temperature: 1\n---\nHi";
        let losses = losses_of(text);
        assert_eq!(losses, ["`model.configuration`", "`model.parameters.temperature`"]);
        assert!(!losses.join("").contains("secret"));
    }
}
