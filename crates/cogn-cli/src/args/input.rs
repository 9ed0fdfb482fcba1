//! The input of a run as it is typed: a file, stdin, JSON, single values, or free text. Shared by `run` and `prompt`.

use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use cognitive_contract::json;
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure, numbers};
use cognitive_runtime::host::RunInput;
use serde_json::{Map, Value};

/// Options that give an input.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// File with the JSON input; `-` or nothing reads stdin
    file: Option<PathBuf>,
    /// The JSON input itself
    #[arg(long, short, value_name = "JSON", conflicts_with_all = ["file", "args", "set"])]
    input: Option<String>,
    /// One member of the input; repeatable, dots nest, values are JSON where they parse as such
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["file", "args"])]
    set: Vec<String>,
    /// Free text instead of JSON; the input schema is not applied
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file")]
    args: Option<String>,
}

impl InputArgs {
    /// Whether stdin will be read.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        let named = self.file.as_ref().is_some_and(|path| path.as_os_str() != "-");
        !named && self.input.is_none() && self.args.is_none() && self.set.is_empty()
    }

    /// Whether anything was typed as input.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.file.is_some() || self.input.is_some() || self.args.is_some() || !self.set.is_empty()
    }

    /// Gathers the input. What is wrong with its JSON is found later, in the order of the run.
    pub fn gather(&self) -> Result<RunInput, Failure> {
        if let Some(text) = &self.args {
            return Ok(RunInput::Text(text.clone()));
        }
        if let Some(text) = &self.input {
            return Ok(RunInput::Raw(text.clone()));
        }
        if !self.set.is_empty() {
            return assemble(&self.set).map(RunInput::Json);
        }
        let path = self.file.as_deref();
        if self.reads_stdin() && io::stdin().is_terminal() {
            let failure = Failure::new(ErrorCode::InvalidInput, "no input was given");
            return Err(failure.suggest("Pass a file, `--input '{…}'`, `--set key=value` or `--args \"…\"`"));
        }
        read_text(path).map(RunInput::Raw)
    }
}

/// Reads a file, or stdin for `-` and for nothing.
pub(crate) fn read_text(path: Option<&Path>) -> Result<String, Failure> {
    let path = path.filter(|path| path.as_os_str() != "-");
    let read = match path {
        Some(path) => fs::File::open(path).and_then(bounded),
        None => bounded(io::stdin()),
    };
    read.map_err(|error| {
        let name = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{name}`: {error}"))
            .suggest("Check the path; `-` reads from stdin")
    })
}

/// More than this is no input and no reply.
const MAX_INPUT_BYTES: u64 = 64 << 20;

fn bounded(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_INPUT_BYTES >> 20)));
    }
    Ok(text)
}

/// `a.b=1 c=text` → `{"a": {"b": 1}, "c": "text"}`.
fn assemble(entries: &[String]) -> Result<Value, Failure> {
    let mut input = Map::new();
    for entry in entries {
        let Some((key, text)) = entry.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let failure =
                Failure::new(ErrorCode::InvalidInput, format!("expected `key=value`, found: `{entry}`"));
            return Err(failure.suggest("Write `--set text=\"some words\"` or `--set options.depth=3`"));
        };
        let value = serde_json::from_str(text).ok();
        // What is no JSON is a text, and a text keeps every digit.
        if let Some(failure) = value.as_ref().and_then(|_| numbers::refusal(text)) {
            return Err(failure.suggest(format!("Send it as a string: `--set '{key}=\"…\"'`")));
        }
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        let levels = key.split('.').count().saturating_add(depth(&value));
        if levels > json::MAX_DEPTH {
            let message = format!(
                "`--set` nests {levels} levels deep, at most {} are allowed: `{}…`",
                json::MAX_DEPTH,
                cut(key, 40)
            );
            let failure = Failure::new(ErrorCode::ParseError, message);
            return Err(
                failure.suggest("Nest less, as in `--set options.depth=3`; files have the same limit")
            );
        }
        place(&mut input, key, value);
    }
    Ok(Value::Object(input))
}

/// How many lists and objects a value has within each other.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        _ => return 0,
    };
    deepest.unwrap_or(0) + 1
}

fn place(object: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            object.insert(key.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                place(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn single_values_nest_and_are_json_where_they_can_be() {
        let entries = ["a.b=1", "a.c=[true]", "text=two words", "n=\"3\""].map(str::to_owned);
        assert_eq!(
            assemble(&entries).unwrap(),
            json!({ "a": { "b": 1, "c": [true] }, "text": "two words", "n": "3" })
        );
        assert!(assemble(&["nothing".to_owned()]).is_err());
    }

    #[test]
    fn growth_i_single_values_nest_as_deep_as_files_do() {
        let nested =
            |levels: usize, value: &str| assemble(&[format!("a{}={value}", ".a".repeat(levels - 1))]);
        for (levels, value) in [(json::MAX_DEPTH, "1"), (json::MAX_DEPTH - 2, "[{}]")] {
            let deepest = nested(levels, value).unwrap().to_string();
            assert!(json::parse(&deepest).is_ok(), "{levels}");
            let failure = nested(levels + 1, value).unwrap_err();
            assert_eq!(failure.code().number(), "E1000", "{levels}");
        }
    }
}
