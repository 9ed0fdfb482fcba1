//! The input of a run on the command line: a file, stdin, JSON, single values, or free text. Shared by `run` and `prompt`.

use std::borrow::Cow;
use std::fs;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use cognitive_contract::json;
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure, Module, numbers};
use cognitive_runtime::host::RunInput;
use cognitive_schema::text::pointer;
use serde_json::{Map, Value};

/// Options that give an input.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// File with the JSON input; reads stdin if absent or `-`
    #[arg(value_hint = clap::ValueHint::FilePath, help_heading = None::<&'static str>)]
    file: Option<PathBuf>,
    /// The JSON input itself
    #[arg(long, short, value_name = "JSON", conflicts_with_all = ["file", "args"])]
    input: Option<String>,
    /// Set one member of the input, overriding the file; repeatable. Dots nest, `@FILE` reads a file, and the module's
    /// schema tells text from JSON
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "args")]
    set: Vec<String>,
    /// Free text instead of JSON; the input schema is not applied
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file")]
    args: Option<String>,
}

impl InputArgs {
    /// Returns whether stdin will be read.
    #[must_use]
    pub fn reads_stdin(&self) -> bool {
        let from_set =
            self.set.iter().any(|entry| entry.split_once('=').is_some_and(|(_, value)| value == "@-"));
        from_set || self.file_is_stdin()
    }

    /// Returns whether the input file is stdin, by name or by default.
    fn file_is_stdin(&self) -> bool {
        match &self.file {
            Some(path) => path.as_os_str() == "-",
            None => self.input.is_none() && self.args.is_none() && self.set.is_empty(),
        }
    }

    /// The file of the input, if one was named.
    pub(crate) fn named_file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns whether the command line has any input.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.file.is_some() || self.input.is_some() || self.args.is_some() || !self.set.is_empty()
    }

    /// Returns whether single members were given, which need the module's schema to be parsed.
    #[must_use]
    pub fn has_members(&self) -> bool {
        !self.set.is_empty()
    }

    /// Gathers the input. Single members are read as the schema of the module wants them; what is wrong with a JSON text is
    /// found later, in the order of the run.
    pub fn gather(&self, module: Option<&Module>) -> Result<RunInput, Failure> {
        if let Some(text) = &self.args {
            return Ok(RunInput::Text(text.clone()));
        }
        if self.file_is_stdin() && io::stdin().is_terminal() {
            let failure = Failure::new(ErrorCode::InvalidInput, "no input");
            return Err(failure.suggest("Pass a file, `--input '{…}'`, `--set key=value` or `--args \"…\"`"));
        }
        let text = match (&self.input, &self.file) {
            (Some(text), _) => Some(text.clone()),
            (None, Some(path)) => Some(read_text(Some(path))?),
            (None, None) if self.set.is_empty() => Some(read_text(None)?),
            (None, None) => None,
        };
        if self.set.is_empty() {
            return Ok(RunInput::Raw(text.unwrap_or_default()));
        }
        let mut members = Map::new();
        if let Some(text) = text {
            match json::parse(text.trim_start_matches('\u{feff}')) {
                Ok(Value::Object(given)) if numbers::refusal(&text).is_none() => members = given,
                // Its errors are reported in the order of the run.
                _ => return Ok(RunInput::Raw(text)),
            }
        }
        assemble(members, &self.set, module).map(RunInput::Json)
    }
}

/// Reads a file, or stdin for `-` and for nothing.
pub(crate) fn read_text(path: Option<&Path>) -> Result<String, Failure> {
    let path = path.filter(|path| path.as_os_str() != "-");
    let read = match path {
        Some(path) => fs::File::open(path).and_then(read_bounded),
        None => read_bounded(io::stdin()),
    };
    read.map_err(|error| {
        let name = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{name}`: {error}"))
            .suggest("Check the path; `-` reads from stdin")
    })
}

/// The maximum size of an input or a saved reply. Without it, an endless stdin would fill the memory.
const MAX_INPUT_BYTES: u64 = 64 << 20;

fn read_bounded(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_INPUT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_INPUT_BYTES >> 20)));
    }
    Ok(text)
}

/// `a.b=1 c=text` → `{"a": {"b": 1}, "c": "text"}`, over what is there.
fn assemble(
    mut input: Map<String, Value>,
    entries: &[String],
    module: Option<&Module>,
) -> Result<Value, Failure> {
    for entry in entries {
        let Some((key, typed)) = entry.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            let failure =
                Failure::new(ErrorCode::InvalidInput, format!("expected `key=value`, found: `{entry}`"));
            return Err(failure.suggest("Write `--set text=\"some words\"` or `--set options.depth=3`"));
        };
        let value = value(key, &value_text(key, typed)?, module)?;
        let levels = key.split('.').count().saturating_add(depth(&value));
        if levels > json::MAX_DEPTH {
            let message = format!(
                "`--set` nests {levels} levels, the limit is {}: `{}…`",
                json::MAX_DEPTH,
                cut(key, 40)
            );
            let failure = Failure::new(ErrorCode::ParseError, message);
            return Err(
                failure.suggest("Use fewer levels, as in `--set options.depth=3`; files have the same limit")
            );
        }
        place(&mut input, key, value);
    }
    Ok(Value::Object(input))
}

/// Returns the text of a value: the given one, or that of the file after `@`. `@@` is a text that begins with `@`.
fn value_text<'a>(key: &str, typed: &'a str) -> Result<Cow<'a, str>, Failure> {
    let Some(name) = typed.strip_prefix('@') else { return Ok(Cow::Borrowed(typed)) };
    if name.starts_with('@') {
        return Ok(Cow::Borrowed(name));
    }
    read_text(Some(Path::new(name))).map(Cow::Owned).map_err(|failure| {
        failure.suggest(format!("Check the path; for a text that begins with `@`, write `--set '{key}=@@…'`"))
    })
}

/// JSON where the text is JSON and the contract takes it; a text where the contract takes only that, or where it is no JSON.
fn value(key: &str, text: &str, module: Option<&Module>) -> Result<Value, Failure> {
    let as_text = || Value::String(text.to_owned());
    let Ok(parsed) = serde_json::from_str::<Value>(text) else { return Ok(as_text()) };
    if module.is_some_and(|module| !takes(module, key, &parsed) && takes(module, key, &as_text())) {
        return Ok(as_text());
    }
    // A value that is not JSON is a text, and a text keeps every digit.
    match numbers::refusal(text) {
        Some(failure) => Err(failure.suggest(format!("Send it as a string: `--set '{key}=\"…\"'`"))),
        None => Ok(parsed),
    }
}

/// Returns whether the input contract accepts a value at this place, regardless of missing members.
fn takes(module: &Module, key: &str, value: &Value) -> bool {
    if key.split('.').count() > json::MAX_DEPTH {
        return true;
    }
    let mut alone = Map::new();
    place(&mut alone, key, value.clone());
    let at = key.split('.').fold(String::new(), |at, name| pointer(&at, name));
    let violations = module.contract.input().violations(&Value::Object(alone));
    let below = format!("{at}/");
    !violations.iter().any(|violation| violation.path == at || violation.path.starts_with(&below))
}

/// Returns the nesting depth of a value.
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
            assemble(Map::new(), &entries, None).unwrap(),
            json!({ "a": { "b": 1, "c": [true] }, "text": "two words", "n": "3" })
        );
        assert!(assemble(Map::new(), &["nothing".to_owned()], None).is_err());
    }

    #[test]
    fn single_values_nest_as_deep_as_files_do() {
        let nested = |levels: usize, value: &str| {
            assemble(Map::new(), &[format!("a{}={value}", ".a".repeat(levels - 1))], None)
        };
        for (levels, value) in [(json::MAX_DEPTH, "1"), (json::MAX_DEPTH - 2, "[{}]")] {
            let deepest = nested(levels, value).unwrap().to_string();
            assert!(json::parse(&deepest).is_ok(), "{levels}");
            let failure = nested(levels + 1, value).unwrap_err();
            assert_eq!(failure.code().number(), "E1000", "{levels}");
        }
    }

    fn summarizer() -> Module {
        cognitive_library::Library::new(Path::new("/nowhere"), None, &[]).load("summarizer").unwrap()
    }

    #[test]
    fn the_schema_decides_what_is_a_text() {
        let module = summarizer();
        let entries = ["text=42", "other=42"].map(str::to_owned);
        let value = assemble(Map::new(), &entries, Some(&module)).unwrap();
        assert_eq!(value, json!({ "text": "42", "other": 42 }));
        for text in ["true", "null", "{\"a\": 1}", "12345678901234567890123"] {
            let value = assemble(Map::new(), &[format!("text={text}")], Some(&module)).unwrap();
            assert_eq!(value, json!({ "text": text }));
        }
    }

    #[test]
    fn a_member_can_come_from_a_file_and_stands_over_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        fs::write(&path, "two\nlines\n").unwrap();
        let given = Map::from_iter([("text".to_owned(), json!("old")), ("kept".to_owned(), json!(1))]);
        let entries = [format!("text=@{}", path.display()), "at=@@home".to_owned()];
        assert_eq!(
            assemble(given, &entries, None).unwrap(),
            json!({ "text": "two\nlines\n", "kept": 1, "at": "@home" })
        );
        let failure = assemble(Map::new(), &["text=@no-such-file".to_owned()], None).unwrap_err();
        assert!(failure.suggestion().unwrap().contains("@@"), "{failure:?}");
    }
}
