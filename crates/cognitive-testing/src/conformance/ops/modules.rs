//! Operations on modules: manifests, folders, schemas, formats and policies.

use cognitive_contract::manifest::Manifest;
use cognitive_contract::meta::{self, RiskForm};
use cognitive_contract::policy::{Caller, OfferedTool, ToolClass, invocation_refusal, tool_refusal};
use cognitive_contract::{Failure, Format};
use cognitive_library::{Mode, formats, validate};
use cognitive_schema::{Contract, Layout, SCHEMA_FILE, SchemaFiles};
use serde_json::{Map, Value, json};

use super::{Arguments, Outcome, VectorStop, broken_vector, files};

/// Resolves a manifest with all defaults, or reports that it does not load.
pub(super) fn resolve_manifest(given: Arguments<'_>) -> Outcome {
    let written = given.value("manifest")?;
    match Manifest::from_value(written, Format::from_manifest(written)) {
        Ok(manifest) => Ok(json!({ "loads": true, "effective": manifest.effective() })),
        Err(_) => Ok(json!({ "loads": false })),
    }
}

fn manifest(given: Arguments<'_>) -> Result<Manifest, VectorStop> {
    let written = given.value("manifest")?;
    Manifest::from_value(written, Format::from_manifest(written)).map_err(|found| {
        let reasons: Vec<String> = found.iter().map(cognitive_contract::Violation::summary).collect();
        broken_vector(format!("the manifest does not load: {}", reasons.join("; ")))
    })
}

/// Validates a module folder.
pub(super) fn validate_module(given: Arguments<'_>) -> Outcome {
    let folder = files::folder(files::files(given.object("files")?)?);
    let mode = if given.flag("strict")? { Mode::Strict } else { Mode::Standard };
    Ok(json!({ "valid": validate(&folder, mode).valid() }))
}

/// Validates an instance against a section of a schema file.
pub(super) fn validate_section(given: Arguments<'_>) -> Outcome {
    let section = given.text("section")?;
    let instance = given.value("instance")?;
    let contract = contract(given, section)?;
    let valid = match section {
        "input" => contract.input().accepts(instance),
        "data" => contract.data().accepts(instance) && contract.refused_custom_values(instance).is_empty(),
        "meta" => match contract.meta() {
            Some(meta) => meta.accepts(instance),
            // A module without a `meta` schema uses the common contract.
            None => instance.as_object().is_some_and(|meta| meta::check(meta, RiskForm::Words).is_empty()),
        },
        "error" => contract.error().ok_or_else(|| missing_section("error"))?.accepts(instance),
        _ => return Err(broken_vector(format!("unknown section: `{section}`"))),
    };
    Ok(json!({ "valid": valid }))
}

/// Compiles the schema. Required sections that the case does not provide accept anything.
fn contract(given: Arguments<'_>, section: &str) -> Result<Contract, VectorStop> {
    let layout = match given.get("manifest") {
        Some(_) => manifest(given)?.layout(),
        None => Layout::default(),
    };
    let mut schema = given.object("schema")?.clone();
    let places = [("input", ["input", "input"], &layout.input), ("data", ["data", "output"], &layout.data)];
    for (name, spellings, place) in places {
        // With `io`, a section may be at another place; the compiler reports it if nothing is there.
        let elsewhere = place.as_ref().is_some_and(|place| place.pointer != format!("/{name}"));
        if elsewhere || spellings.iter().any(|spelling| schema.contains_key(*spelling)) {
            continue;
        }
        if name == section {
            return Err(missing_section(name));
        }
        schema.insert(name.to_owned(), Value::Object(Map::new()));
    }
    let files = SchemaFiles::from([(SCHEMA_FILE.to_owned(), Value::Object(schema))]);
    Contract::compile(&files, &layout).map_err(|problems| {
        let reasons: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        broken_vector(format!("the schema does not compile: {}", reasons.join("; ")))
    })
}

fn missing_section(name: &str) -> VectorStop {
    broken_vector(format!("the schema has no section `{name}`"))
}

/// Detects the format of a folder.
pub(super) fn detect_format(given: Arguments<'_>) -> Outcome {
    let folder = files::folder(files::files(given.object("files")?)?);
    let format = formats::read(&folder).map_or("none", |parts| parts.format.word());
    Ok(json!({ "format": format }))
}

/// Splits a `MODULE.md` into front matter and prompt.
pub(super) fn parse_v1(given: Arguments<'_>) -> Outcome {
    let (meta, prompt) = formats::front_matter(given.text("text")?)
        .map_err(|error| broken_vector(format!("the front matter cannot be read: {}", error.message)))?;
    Ok(json!({ "meta": meta, "prompt": prompt }))
}

/// Checks whether a module may use a tool.
pub(super) fn check_tool(given: Arguments<'_>) -> Outcome {
    let tool = given.child("tool")?;
    let classes = match tool.get("requires") {
        Some(_) => tool.list("requires")?.iter().map(class).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    let tool = OfferedTool { name: tool.text("name")?, classes: &classes };
    Ok(permission(tool_refusal(&manifest(given)?, tool)))
}

fn class(word: &Value) -> Result<ToolClass, VectorStop> {
    word.as_str()
        .and_then(ToolClass::parse)
        .ok_or_else(|| broken_vector(format!("unknown class of tools: {word}")))
}

/// Checks whether a caller may run a module.
pub(super) fn check_invocation(given: Arguments<'_>) -> Outcome {
    let caller = match given.text("caller")? {
        "user" => Caller::User,
        "agent" => Caller::Agent,
        other => return Err(broken_vector(format!("unknown caller: `{other}`"))),
    };
    Ok(permission(invocation_refusal(&manifest(given)?, caller)))
}

fn permission(refusal: Option<Failure>) -> Value {
    match refusal {
        None => json!({ "allowed": true }),
        Some(failure) => json!({ "allowed": false, "code": failure.code() }),
    }
}
