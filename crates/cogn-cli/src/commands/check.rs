//! `cogn check`: checks an envelope or a log of stream chunks. Repairs nothing.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use cognitive_contract::envelope::{self, Strictness};
use cognitive_contract::json as strict_json;
use cognitive_contract::{Enforcement, Module, Violation, stream};
use cognitive_library::finding::{FindingLocation, Sources};
use cognitive_library::{Finding, Library};
use serde_json::{Value, json};

use super::fail;
use crate::args::candidates;
use crate::draw;
use crate::printer::{BAD, Exit, GOOD, Printer};

/// The maximum length of the text. Without it, an endless stdin would fill the memory.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Options of `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// A JSON envelope, a JSON list of chunks, or NDJSON chunks; reads stdin if absent or `-`
    file: Option<PathBuf>,
    /// Also check the data against this module's contract
    #[arg(long, value_name = "MODULE", add = candidates::modules())]
    module: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedKind {
    /// A finished answer.
    Envelope,
    /// One piece of a stream.
    Chunk,
    /// A complete stream.
    Log,
}

/// Checks a text and prints the verdict.
pub fn check(args: &CheckArgs, library: &Library, printer: &Printer) -> Exit {
    let module = match args.module.as_deref().map(|name| library.load(name)).transpose() {
        Ok(module) => module,
        Err(failure) => return fail(&failure, printer),
    };
    let (name, text) = match read(args) {
        Ok(read) => read,
        Err(message) => {
            printer.error(&message, None);
            return Exit::Bad;
        }
    };
    let (kind, findings) = match judge(&text, module.as_ref()) {
        Ok((kind, violations)) => (Some(kind), violations.iter().map(|each| finding(&name, each)).collect()),
        Err(finding) => (None, vec![Finding { file: name.clone(), ..finding }]),
    };
    let mut sources = Sources::default();
    // A log with several lines is not one JSON text, so its findings have only a path.
    if kind != Some(CheckedKind::Log) || text.trim_start().starts_with('[') {
        sources.insert(&name, text);
    }
    if args.json {
        printer.json(&as_json(kind, &findings, &sources));
    } else {
        show(&name, kind, &findings, &sources, printer);
    }
    if findings.is_empty() { Exit::Good } else { Exit::Bad }
}

fn read(args: &CheckArgs) -> Result<(String, String), String> {
    let path = args.file.as_ref().filter(|path| path.as_os_str() != "-");
    let (name, mut reader): (String, Box<dyn Read>) = match path {
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| format!("cannot read `{name}`: {error}"))?;
            (name, Box::new(file))
        }
        None => ("stdin".to_owned(), Box::new(io::stdin())),
    };
    let mut bytes = Vec::new();
    reader
        .by_ref()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read `{name}`: {error}"))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(format!("`{name}` is larger than {} MiB", MAX_INPUT_BYTES >> 20));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8 text"))?;
    Ok((name, text.trim_start_matches('\u{feff}').to_owned()))
}

/// Determines the kind of the text and its violations. The error is a syntax error.
pub fn judge(text: &str, module: Option<&Module>) -> Result<(CheckedKind, Vec<Violation>), Finding> {
    match strict_json::parse(text) {
        Ok(Value::Array(chunks)) => Ok((CheckedKind::Log, log_violations(&chunks, module))),
        Ok(value) if is_chunk(&value) => Ok((CheckedKind::Chunk, stream::check_chunk(&value))),
        Ok(value) => Ok((CheckedKind::Envelope, envelope_violations(&value, module))),
        Err(error) => match lines(text) {
            Some(chunks) => Ok((CheckedKind::Log, log_violations(&chunks, module))),
            None => {
                let message = format!("not JSON: {}", error.message);
                Err(Finding::error("", FindingLocation::Offset(error.offset), "check/syntax", message))
            }
        },
    }
}

/// Parses several JSON values, one per line; a single line is not a log.
fn lines(text: &str) -> Option<Vec<Value>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.len() < 2 {
        return None;
    }
    lines.into_iter().map(|line| strict_json::parse(line).ok()).collect()
}

/// Returns whether it is a chunk: it has members that no envelope has, or is an error chunk in the short form.
fn is_chunk(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    let short_error = has("streaming") && !has("meta");
    has("chunk")
        || has("progress")
        || has("final")
        || short_error
        || (has("streaming") && value.get("ok") == Some(&Value::Bool(true)))
}

/// A valid log is also checked against the module, because its last chunk carries the whole answer.
fn log_violations(chunks: &[Value], module: Option<&Module>) -> Vec<Violation> {
    let found = stream::check_log(chunks);
    let (Some(module), true) = (module, found.is_empty()) else { return found };
    let answer = serde_json::to_value(stream::assemble(chunks.iter().cloned())).unwrap_or_default();
    let last = format!("/{}", chunks.len().saturating_sub(1));
    envelope_violations(&answer, Some(module)).into_iter().map(|each| each.with_prefix(&last)).collect()
}

fn envelope_violations(value: &Value, module: Option<&Module>) -> Vec<Violation> {
    let Some(module) = module else { return envelope::check(value, Strictness::default()) };
    let mut found = module.envelope_violations(value, Enforcement::Full);
    if found.is_empty() {
        found = module.rule_violations(value);
    }
    found
}

fn finding(name: &str, violation: &Violation) -> Finding {
    let place = if violation.path.is_empty() { "document" } else { violation.path.as_str() };
    let message = format!("`{place}`: {} ({})", violation.message, violation.code);
    Finding::error(name, FindingLocation::Value(violation.path.clone()), violation.rule, message)
}

fn show(name: &str, kind: Option<CheckedKind>, findings: &[Finding], sources: &Sources, printer: &Printer) {
    for finding in findings {
        printer.print_line(draw::in_file(finding, sources));
        printer.print_line("");
    }
    let what = words(kind);
    let verdict = match findings.len() {
        0 => format!("{GOOD}valid{GOOD:#} {what}: {name}"),
        1 => format!("{BAD}invalid{BAD:#} {what}: {name}, 1 violation"),
        many => format!("{BAD}invalid{BAD:#} {what}: {name}, {many} violations"),
    };
    printer.print_line(verdict);
}

fn words(kind: Option<CheckedKind>) -> &'static str {
    match kind {
        Some(CheckedKind::Envelope) => "envelope",
        Some(CheckedKind::Chunk) => "chunk",
        Some(CheckedKind::Log) => "stream log",
        None => "text",
    }
}

fn as_json(kind: Option<CheckedKind>, findings: &[Finding], sources: &Sources) -> Value {
    let list: Vec<Value> = findings
        .iter()
        .map(|finding| {
            let place = sources.locate(finding);
            let path = if let FindingLocation::Value(path) = &finding.at { Some(path) } else { None };
            json!({
                "path": path, "rule": finding.rule, "message": finding.message,
                "line": place.as_ref().map(|place| place.line), "column": place.as_ref().map(|place| place.column),
            })
        })
        .collect();
    json!({ "valid": findings.is_empty(), "kind": words(kind), "violations": list })
}
