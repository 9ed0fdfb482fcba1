//! `cogn info MODULE`: inputs, outputs and permissions of a module, with all defaults resolved.

use cognitive_contract::Module;
use cognitive_contract::manifest::{Allow, Manifest};
use cognitive_library::{FoundModule, Library, ModuleLoadError, load};
use cognitive_schema::Section;
use serde_json::{Value, json};

use super::fail;
use crate::args::candidates;
use crate::printer::{Exit, FAINT, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `info`.
#[derive(Debug, clap::Args)]
pub struct InfoArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// Print JSON: the manifest with all defaults, and the schemas
    #[arg(long)]
    json: bool,
}

/// Prints the information.
pub fn info(args: &InfoArgs, library: &Library, printer: &Printer) -> Exit {
    let found = match library.find(&args.module) {
        Ok(found) => found,
        Err(failure) => return fail(&failure, printer),
    };
    let module = match load(&found.folder).map_err(ModuleLoadError::into_failure) {
        Ok(module) => module,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        printer.json(&as_json(&found, &module));
    } else {
        show(&found, &module, printer);
    }
    Exit::Good
}

fn as_json(found: &FoundModule, module: &Module) -> Value {
    json!({
        "name": found.name,
        "origin": found.origin,
        "path": found.folder.path(),
        "format": module.format,
        "manifest": module.manifest.effective(),
        "schema": module.contract.source(),
        "warnings": module.warnings,
    })
}

fn show(found: &FoundModule, module: &Module, printer: &Printer) {
    let manifest = &module.manifest;
    printer.print_line(format!("{HEAD}{}{HEAD:#} {}", found.name, manifest.version));
    if !manifest.responsibility.is_empty() {
        printer.prose(&manifest.responsibility);
    }
    printer.print_line("");
    printer.table(&TextTable::without_headings(2).with(facts(found, module)));
    for (title, section) in [("Input", module.contract.input()), ("Data", module.contract.data())] {
        printer.print_line(format!("\n{HEAD}{title}{HEAD:#}"));
        printer
            .table(&TextTable::without_headings(3).indent(2).with(fields(section, module.contract.root())));
    }
    if !manifest.excludes.is_empty() {
        printer.print_line(format!("\n{HEAD}Does not do{HEAD:#}"));
        printer.table(&TextTable::bullets(manifest.excludes.iter().cloned()).indent(2));
    }
    for warning in &module.warnings {
        printer.warning(&warning.message);
    }
}

fn facts(found: &FoundModule, module: &Module) -> Vec<Vec<String>> {
    let manifest = &module.manifest;
    let overflow = if manifest.overflow.enabled {
        format!("up to {} insights", manifest.overflow.max_items)
    } else {
        "no insights".to_owned()
    };
    let row = |name: &str, value: String| vec![format!("{FAINT}{name}{FAINT:#}"), value];
    let mut rows = vec![
        row("tier", format!("{}, strictness {}", manifest.tier.word(), manifest.schema_strictness.word())),
        row("format", module.format.to_string()),
        row("response", manifest.response.mode.word().to_owned()),
        row("enums", manifest.enums.strategy.word().to_owned()),
        row("overflow", overflow),
        row("allowed", allowed_policies(manifest)),
        row("folder", found.folder.display()),
    ];
    let needs = &manifest.runtime_requirements.required_capabilities;
    if !needs.is_empty() {
        // In advance only this is known about what models lack.
        rows.push(row("needs", format!("{} (the embedded model may refuse)", needs.join(", "))));
    }
    if manifest.modalities.declared {
        let input: Vec<&str> = manifest.modalities.input.iter().map(|each| each.word()).collect();
        let output: Vec<&str> = manifest.modalities.output.iter().map(|each| each.word()).collect();
        rows.insert(3, row("media", format!("{} → {}", input.join(", "), output.join(", "))));
    }
    rows
}

fn allowed_policies(manifest: &Manifest) -> String {
    let policies = [
        (manifest.policies.network, "network"),
        (manifest.policies.filesystem_write, "writing files"),
        (manifest.policies.side_effects, "side effects"),
        (manifest.policies.code_execution, "running code"),
    ];
    let allowed: Vec<&str> =
        policies.iter().filter(|(policy, _)| *policy == Allow::Allow).map(|(_, what)| *what).collect();
    if allowed.is_empty() { "only the model".to_owned() } else { allowed.join(", ") }
}

/// Returns name, type and description of the members of a section.
fn fields(section: &Section, root: &Value) -> Vec<Vec<String>> {
    let schema = follow(section.schema(), root);
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|each| each == name));
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return vec![vec![format!("{FAINT}any object{FAINT:#}")]];
    };
    properties
        .iter()
        .map(|(name, schema)| {
            let mark = if is_required(name) { "" } else { "?" };
            let schema = follow(schema, root);
            let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            vec![format!("{NOTE}{name}{mark}{NOTE:#}"), kind(schema), description.to_owned()]
        })
        .collect()
}

fn follow<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

fn kind(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        let options: Vec<String> = options
            .iter()
            .map(|each| each.as_str().map_or_else(|| each.to_string(), str::to_owned))
            .collect();
        return options.join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | "),
        _ if schema.get("oneOf").is_some() => "one of several forms".to_owned(),
        _ => "any".to_owned(),
    }
}
