//! Imports a BAML function: its classes and enums become the contract, its prompt the prompt, its tests golden inputs.
//!
//! [`cursor`] reads characters, [`parse`](mod@parse) reads declarations, [`types`] converts types to JSON Schema.
//! Supports the syntax of version 0. Refuses dynamic types, which are only known at run time.

mod cursor;
mod parse;
mod types;

use std::collections::BTreeSet;
use std::path::Path;

use cognitive_contract::Failure;
use cognitive_library::init::suggested_name;
use serde_json::Value;

use crate::ImportOptions;
use crate::draft::{DraftOutput, ImportDraft};
use crate::form::ImportForm;
use crate::loss::LossList;
use crate::source::{SourceFile, quote, refuse};
use crate::template::rephrase::rephrase;
use crate::template::turns::as_one_prompt;
use crate::template::{TemplateTag, jinja};
use parse::{BamlFile, BamlFunction};
use types::BamlTypes;

/// The maximum number of files in a folder. Without it, a wrong path such as a home folder would be read completely.
const MAX_FILES: usize = 200;

/// Reads a file, or all files of a folder.
pub(crate) fn read(path: &Path, options: &ImportOptions) -> Result<ImportDraft, Failure> {
    let mut file = BamlFile::default();
    if !path.is_dir() {
        let source = SourceFile::open(path)?;
        parse::parse(&source.text, &source.name, &mut file)?;
        return draft(&source.name, &file, options);
    }
    let entries = std::fs::read_dir(path)
        .map_err(|error| refuse(format!("cannot read `{}`: {error}", path.display()), "Check the path"))?;
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "baml"))
        .collect();
    paths.sort();
    if paths.len() > MAX_FILES {
        return Err(refuse(
            format!("`{}` has more than {MAX_FILES} files", path.display()),
            "Import a single file",
        ));
    }
    for path in paths {
        let source = SourceFile::open(&path)?;
        parse::parse(&source.text, &source.name, &mut file)?;
    }
    let shown = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    draft(&shown, &file, options)
}

fn draft(source: &str, file: &BamlFile, options: &ImportOptions) -> Result<ImportDraft, Failure> {
    let function = function(source, file, options)?;
    let mut draft = ImportDraft::new(ImportForm::Baml, &function.file, &function.name);
    draft.responsibility.clone_from(&function.note);
    let mut types = BamlTypes::new(file, &function.file, &mut draft.losses);
    for (name, kind) in &function.arguments {
        types.add_argument(name, kind, &mut draft.input)?;
    }
    let answer = types.answer(&function.answer)?;
    draft.definitions = types.definitions;
    draft.output = match answer {
        Value::Object(schema)
            if schema.len() == 1 && schema.get("type").is_some_and(|kind| kind == "string") =>
        {
            DraftOutput::Text
        }
        schema => DraftOutput::Defined(schema),
    };
    losses(&mut draft, function, file);
    prompt(&mut draft, function)?;
    for test in file.tests.iter().filter(|test| test.functions.contains(&function.name)) {
        let mut name = suggested_name(&test.name).unwrap_or_else(|| "example".to_owned());
        if draft.examples.iter().any(|(known, _)| *known == name) {
            name = format!("{name}-{}", draft.examples.len() + 1);
        }
        if let Some(arguments) = &test.arguments {
            draft.examples.push((name, arguments.clone()));
        }
        if test.has_checks {
            let why = "the checks of a test are expressions; write the expectation into `expected.json`";
            draft.losses.add_lost(format!("the checks of the test `{}`", test.name), &test.file, why);
        }
    }
    Ok(draft)
}

fn function<'f>(
    source: &str,
    file: &'f BamlFile,
    options: &ImportOptions,
) -> Result<&'f BamlFunction, Failure> {
    let names: Vec<String> = file.functions.iter().take(20).map(|function| quote(&function.name)).collect();
    match (&options.function, file.functions.as_slice()) {
        (_, []) => Err(refuse(
            format!("{} has no function, only clients, types or tests", quote(source)),
            "Import a file with a function",
        )),
        (None, [only]) => Ok(only),
        (None, _) => Err(refuse(
            format!(
                "{} has several functions, and each becomes one module: {}",
                quote(source),
                names.join(", ")
            ),
            "Choose one with `--function NAME`",
        )),
        (Some(wanted), functions) => {
            functions.iter().find(|function| function.name == *wanted).ok_or_else(|| {
                let message = format!(
                    "{} has no function {}; it has {}",
                    quote(source),
                    quote(wanted),
                    names.join(", ")
                );
                refuse(message, "Choose an existing function")
            })
        }
    }
}

fn losses(draft: &mut ImportDraft, function: &BamlFunction, file: &BamlFile) {
    let list: &mut LossList = &mut draft.losses;
    if let Some(client) = &function.client {
        let why = "the caller chooses the model and its settings";
        list.add_lost(format!("the client {}", quote(client)), &function.file, why);
    }
    for (kind, name, place) in &file.others {
        let why = match kind.as_str() {
            "template_string" => "templates are not evaluated: describe their effect in `prompt.md`",
            "generator" => "`cogn types` writes the types of modules",
            _ => "the caller chooses the model and its settings",
        };
        list.add_lost(format!("{kind} `{name}`"), place, why);
    }
    if file.comments > 0 {
        let what = format!("{} comment{}", file.comments, if file.comments == 1 { "" } else { "s" });
        list.add_lost(what, &function.file, "notes for authors, which no model reads");
    }
}

fn prompt(draft: &mut ImportDraft, function: &BamlFunction) -> Result<(), Failure> {
    let file = &function.file;
    let known: BTreeSet<String> = draft.input.names().cloned().collect();
    let marks = jinja::marks(&function.prompt, file, function.prompt_line)?;
    let rephrased = rephrase(&marks, file, &known, &mut draft.losses)?;
    for mark in &marks {
        if mark.tag == TemplateTag::OutputFormat && mark.written.contains('(') {
            let why = "the contract is shown as JSON Schema";
            draft.losses.add_changed(format!("`{}`", mark.written), &format!("{file}:{}", mark.line), why);
        }
    }
    draft.input.add_used(&rephrased.used, true, file, &mut draft.losses);
    draft.prompt = as_one_prompt(&rephrased.turns, file, &mut draft.losses)?;
    Ok(())
}
