//! Turns a draft into the files of a module. Loads and validates the module, and checks its golden test against the
//! contract. A module that would not pass `cogn validate` is refused, and nothing is written.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cognitive_contract::manifest::InputModality;
use cognitive_contract::{Failure, Module};
use cognitive_library::{Finding, Folder, Mode, ModuleLoadError, Severity, load, validate};
use serde_json::{Value, json};

use crate::contract::{media_item, schema_file};
use crate::draft::ImportDraft;
use crate::example_value::value_for;
use crate::loss::ImportLoss;
use crate::name::module_name;
use crate::pretty_json::pretty_json;
use crate::prompt_text::{OwnPlaceholders, quiet};
use crate::source::{literal_text, quote, refuse};
use crate::{ImportOptions, ImportedModule};

/// The maximum number of golden tests from one file. More of them are a data set, which belongs to `cogn eval`.
const MAX_TESTS: usize = 20;
/// The maximum length of a responsibility, in characters. Lists of modules show it in one line.
const MAX_RESPONSIBILITY: usize = 200;
/// The text of a generated reply, where a model's explanation would be.
const MADE_UP: &str = "Made up by cogn import; no model said this. `cogn test --record` asks one.";

type ModuleFiles = BTreeMap<String, Vec<u8>>;

/// Builds the files of a draft. The error says why no module is possible.
pub(crate) fn assemble(mut draft: ImportDraft, options: &ImportOptions) -> Result<ImportedModule, Failure> {
    let name = module_name(options.name.as_deref(), &draft.name, &draft.source, &mut draft.losses)?;
    let schema = schema_file(&mut draft);
    let prompt = prompt(&mut draft);
    let (responsibility, version) = identity(&mut draft);
    let mut files = ModuleFiles::from([
        ("module.yaml".to_owned(), manifest(&draft, &name, &responsibility, &version).into_bytes()),
        ("prompt.md".to_owned(), prompt.into_bytes()),
        ("schema.json".to_owned(), pretty_json(&schema).into_bytes()),
    ]);
    files.extend(std::mem::take(&mut draft.extra));
    let module = load_draft(&name, &files)?;
    add_tests(&mut draft, &module, &schema, &mut files);
    let form = draft.form;
    let losses = draft.losses.finish();
    let page = readme(&name, &responsibility, (form.word(), &draft.source), &losses);
    files.insert("README.md".to_owned(), page.into_bytes());
    load_draft(&name, &files)?;
    Ok(ImportedModule { name, form, files, losses, restored: false })
}

/// Loads the module as if from disk.
fn load_draft(name: &str, files: &ModuleFiles) -> Result<Module, Failure> {
    let folder = Folder::memory(name, files.clone());
    let report = validate(&folder, Mode::Standard);
    if let Some(finding) = report.findings.iter().find(|finding| finding.severity == Severity::Error) {
        let hint = "Simplify it in the file that is imported";
        return Err(refuse(format!("cannot make a valid module of it: {}", Finding::summary(finding)), hint));
    }
    load(&folder).map_err(ModuleLoadError::into_failure)
}

fn prompt(draft: &mut ImportDraft) -> String {
    let takes_query = draft.input.has("query");
    let own = match draft.own {
        OwnPlaceholders::Arguments => OwnPlaceholders::Arguments,
        _ if takes_query => OwnPlaceholders::None,
        _ => OwnPlaceholders::Numbers,
    };
    // `$SCHEMA` is the only placeholder that an import itself writes, so it is not escaped.
    let pieces: Vec<String> = draft
        .prompt
        .split("$SCHEMA")
        .map(|piece| quiet(piece, own, &draft.source, &mut draft.losses))
        .collect();
    let places_schema = pieces.len() > 1;
    let mut text = pieces.join("$SCHEMA").trim().to_owned();
    let names: Vec<String> = draft
        .input
        .names()
        .filter(|name| text.contains(&format!("`{name}")))
        .map(|name| format!("`{name}`"))
        .collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 {
            "stands for the member of that name"
        } else {
            "stand for the members of those names"
        };
        let _ =
            write!(text, "\n\nIn this text {} {verb} of the input, which follows as JSON.", names.join(", "));
    }
    if !places_schema {
        text.push_str(
            "\n\n## The answer\n\n`data` follows this JSON Schema. Write `rationale` first.\n\n$SCHEMA",
        );
    }
    text.push_str("\n\n$ENVELOPE\n");
    text
}

/// The responsibility of the module, and its version.
fn identity(draft: &mut ImportDraft) -> (String, String) {
    let written =
        draft.responsibility.take().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let responsibility = match written.filter(|text| !text.is_empty()) {
        Some(text) if text.chars().count() > MAX_RESPONSIBILITY => {
            let why = "a responsibility has one or two sentences; the whole description is in the file";
            draft.losses.add_changed("the description, shortened to its beginning", &draft.source, why);
            text.chars().take(MAX_RESPONSIBILITY).collect()
        }
        Some(text) => text,
        None => {
            let why = "the file does not describe its purpose, by which people find a module";
            draft.losses.add_invented("`responsibility`", &draft.source, why);
            format!("Do what {} says.", draft.source)
        }
    };
    let is_version = |version: &String| {
        cognitive_contract::manifest::violations(&json!({ "name": "m", "version": version })).is_empty()
    };
    let written = draft.version.take();
    let version = match written.clone().filter(is_version) {
        Some(version) => version,
        None => {
            if let Some(written) = written {
                let why = "versions of modules are semantic, such as 1.2.0";
                draft.losses.add_changed(
                    format!("the version {}, now `0.1.0`", quote(&written)),
                    &draft.source,
                    why,
                );
            }
            "0.1.0".to_owned()
        }
    };
    (responsibility, version)
}

/// Writes every text as JSON, which YAML can read, so that no text of the file can become a key.
fn manifest(draft: &ImportDraft, name: &str, responsibility: &str, version: &str) -> String {
    let mut text = format!(
        "# Imported from {} ({}) by `cogn import`. README.md lists what changed.\nname: {}\nversion: \
         {}\nresponsibility: {}\ntier: decision\noverflow: {{enabled: false}}\nenums: {{strategy: \
         strict}}\n",
        literal_text(&draft.source),
        draft.form.word(),
        json!(name),
        json!(version),
        json!(responsibility),
    );
    if !draft.input.media.is_empty() {
        let kinds: Vec<&str> = draft.input.media.iter().map(|kind| kind_word(*kind)).collect();
        let _ = writeln!(text, "modalities: {{input: [text, {}]}}", kinds.join(", "));
    }
    text
}

fn kind_word(kind: InputModality) -> &'static str {
    match kind {
        InputModality::Text => "text",
        InputModality::Image => "image",
        InputModality::Audio => "audio",
        InputModality::Video => "video",
        InputModality::Document => "document",
    }
}

/// Adds golden tests: the examples that satisfy the contract, otherwise one generated example.
fn add_tests(draft: &mut ImportDraft, module: &Module, schema: &Value, files: &mut ModuleFiles) {
    let contract = &module.contract;
    let made = value_for(schema, "/input").map(|input| with_media(input, draft, schema));
    let mut inputs = Vec::new();
    for (name, input) in std::mem::take(&mut draft.examples) {
        if inputs.len() == MAX_TESTS {
            draft.losses.add_lost(
                "further examples",
                &draft.source,
                "at most twenty tests are made of one file",
            );
            break;
        }
        if contract.input().accepts(&input) {
            inputs.push((name, input));
        } else if let Some(input) =
            complete_example(&input, made.as_ref()).filter(|input| contract.input().accepts(input))
        {
            let why = "the file gives values for a part of the input; write typical ones for the rest";
            draft.losses.add_invented(
                "the rest of the golden test's input",
                &format!("tests/{name}.input.json"),
                why,
            );
            inputs.push((name, input));
        } else {
            let why = "it does not match the input schema, so it gave no test";
            draft.losses.add_lost(format!("the example {}", quote(&name)), &draft.source, why);
        }
    }
    if inputs.is_empty() {
        match made.filter(|input| contract.input().accepts(input)) {
            Some(input) => {
                let why = "the file has no example; write a typical one";
                draft.losses.add_invented("the input of the golden test", "tests/example.input.json", why);
                inputs.push(("example".to_owned(), input));
            }
            None => return no_test(draft, "input"),
        }
    }
    let Some(data) =
        value_for(schema, "/data").map(mark_generated).filter(|data| contract.data().accepts(data))
    else {
        return no_test(draft, "answer");
    };
    let why = "no model was called; `cogn test --record` replaces it with a real reply";
    draft.losses.add_invented("the reply of the golden test", "tests", why);
    let reply = json!({ "ok": true, "meta": { "confidence": 0.95, "risk": "low", "explain": MADE_UP }, "data": data });
    for (name, input) in inputs {
        let stem = format!("tests/{name}");
        files.insert(format!("{stem}.input.json"), pretty_json(&input).into_bytes());
        files.insert(format!("{stem}.expected.json"), pretty_json(&json!({ "ok": true })).into_bytes());
        files.insert(format!("{stem}.reply.txt"), pretty_json(&reply).into_bytes());
    }
}

fn no_test(draft: &mut ImportDraft, what: &str) {
    let why = "its schema has rules that a made-up value cannot meet: write `tests/example.input.json` \
         and record a reply";
    draft.losses.add_lost(format!("the golden test, because there is no {what}"), &draft.source, why);
}

/// An example whose missing members are filled with generated values.
fn complete_example(example: &Value, made: Option<&Value>) -> Option<Value> {
    let (Value::Object(given), Value::Object(mut all)) = (example, made?.clone()) else { return None };
    all.extend(given.clone());
    Some(Value::Object(all))
}

/// Marks the rationale of a reply as generated.
fn mark_generated(mut data: Value) -> Value {
    if let Some(rationale) = data.get_mut("rationale").filter(|rationale| rationale.is_string()) {
        *rationale = Value::from(MADE_UP);
    }
    data
}

/// Adds a media item of the right kind where the input expects one.
fn with_media(mut input: Value, draft: &ImportDraft, schema: &Value) -> Value {
    let item = draft.input.media.first().and_then(|kind| media_item(*kind)).map(|(_, item)| item);
    let (Some(item), Value::Object(members)) = (item, &mut input) else { return input };
    let properties = schema.pointer("/input/properties").and_then(Value::as_object);
    for (name, member) in properties.into_iter().flatten() {
        let is_item = |schema: &Value| schema.get("$ref").is_some_and(|way| way == "#/$defs/MediaInput");
        if is_item(member) {
            members.insert(name.clone(), item.clone());
        } else if member.get("items").is_some_and(is_item) {
            members.insert(name.clone(), json!([item]));
        }
    }
    input
}

fn readme(name: &str, responsibility: &str, (form, source): (&str, &str), losses: &[ImportLoss]) -> String {
    let mut page = format!(
        "# {name}\n\n{responsibility}\n\nImported from `{source}` ({form}) by `cogn import`.\n",
        source = literal_text(source),
    );
    if !losses.is_empty() {
        page.push_str("\n## Changes made by the import\n\n");
    }
    for ImportLoss { kind, what, place, why } in losses {
        let _ = writeln!(page, "- **{}** {what} ({place}): {why}", kind.word());
    }
    page
}
