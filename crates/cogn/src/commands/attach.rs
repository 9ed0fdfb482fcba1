//! `--media` and `--media-out`: files and addresses that become members of the input, and media of the answer that
//! become files. Which member of the input takes media, the module's own contract says.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_contract::media::{Moved, embedded, refer};
use cognitive_contract::schema::Side;
use cognitive_contract::{Envelope, ErrorCode, Failure, Module, numbers};
use cognitive_library::json;
use cognitive_runtime::host::RunInput;
use serde_json::{Map, Value, json};

/// Puts media into an input.
pub(super) fn attach(module: &Module, input: RunInput, media: &[String]) -> Result<RunInput, Failure> {
    let mut members = match input {
        RunInput::Json(Value::Object(members)) => members,
        RunInput::Raw(text) => match json::parse(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(members)) if numbers::rounded(&text).is_empty() => members,
            // What is wrong with it is told in the order of the run.
            _ => return Ok(RunInput::Raw(text)),
        },
        other => return Ok(other),
    };
    let items = media.iter().map(|given| item(given)).collect::<Result<Vec<Value>, Failure>>()?;
    let sample = items.first().cloned().unwrap_or_default();
    let (name, as_list) = place(module, &sample).ok_or_else(|| {
        let message = format!("no member of the input of `{}` takes this kind of item", module.manifest.name);
        wrong(message).suggest(format!("See what the module takes with `cogn info {}`", module.manifest.name))
    })?;
    put(&mut members, &name, as_list, items)?;
    Ok(RunInput::Json(Value::Object(members)))
}

/// An address or a file as a media item. A path is one of the user's directory, not of the module's.
fn item(given: &str) -> Result<Value, Failure> {
    if given.starts_with("https://") || given.starts_with("http://") {
        return Ok(json!({ "type": "url", "url": given }));
    }
    let path = std::path::absolute(given).map_err(|error| wrong(format!("no path: `{given}`: {error}")))?;
    if !path.is_file() {
        let failure = Failure::new(ErrorCode::MediaFetchFailed, format!("there is no file: `{given}`"));
        return Err(failure.suggest("Check the path"));
    }
    let path = path.to_str().ok_or_else(|| wrong(format!("the path is not UTF-8: `{given}`")))?;
    Ok(json!({ "type": "file", "path": path }))
}

/// The first member that takes an item, and whether it takes a list of them. A member that takes just anything is not
/// meant for media.
fn place(module: &Module, item: &Value) -> Option<(String, bool)> {
    let section = module.contract.input();
    let accepts = |name: &str, value: Value| {
        let below = format!("/{name}");
        let found = section.violations(&json!({ name: value }), Side::Input);
        !found
            .iter()
            .any(|violation| violation.path == below || violation.path.starts_with(&format!("{below}/")))
    };
    let other = json!({ "type": "neither url nor file", "text": 1 });
    let names = section.schema().get("properties").and_then(Value::as_object)?;
    names.keys().find_map(|name| {
        let meant = |value: fn(&Value) -> Value| accepts(name, value(item)) && !accepts(name, value(&other));
        if meant(|item| json!([item])) {
            return Some((name.clone(), true));
        }
        meant(Value::clone).then(|| (name.clone(), false))
    })
}

fn put(
    members: &mut Map<String, Value>,
    name: &str,
    as_list: bool,
    items: Vec<Value>,
) -> Result<(), Failure> {
    if as_list {
        let list = members.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = list else {
            return Err(wrong(format!("`{name}` is given and is no list, so nothing can be added to it")));
        };
        list.extend(items);
        return Ok(());
    }
    let count = items.len();
    match items.into_iter().next() {
        Some(item) if count == 1 && !members.contains_key(name) => {
            members.insert(name.to_owned(), item);
            Ok(())
        }
        _ => Err(wrong(format!("`{name}` takes one item"))),
    }
}

/// Writes the media of an answer to files and leaves their paths in their place.
pub(super) fn store(envelope: &mut Envelope, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for medium in embedded(envelope) {
        let bytes = STANDARD.decode(medium.text).map_err(|_| {
            let message = format!("`/data{}` is not valid base64", medium.place);
            Failure::new(ErrorCode::MediaDecodeFailed, message)
        })?;
        fs::create_dir_all(folder).map_err(|error| no_file(folder, &error))?;
        let path = folder.join(medium.file_name());
        fs::write(&path, bytes).map_err(|error| no_file(&path, &error))?;
        written.push((medium.place, path));
    }
    for (place, path) in &written {
        refer(envelope, place, Moved::File { path: path.display().to_string() });
    }
    Ok(written.into_iter().map(|(_, path)| path).collect())
}

fn no_file(path: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::new(ErrorCode::InvalidReference, message).suggest("Name another folder with `--media-out`")
}

fn wrong(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use cognitive_library::Library;

    use super::*;

    fn module(name: &str) -> Module {
        Library::new(Path::new("/nowhere"), None, &[]).load(name).unwrap()
    }

    fn attached(name: &str, given: &str, media: &[&str]) -> Result<Value, Failure> {
        let media: Vec<String> = media.iter().map(|each| (*each).to_owned()).collect();
        let input = RunInput::Raw(given.to_owned());
        attach(&module(name), input, &media).map(|input| match input {
            RunInput::Json(value) => value,
            _ => Value::Null,
        })
    }

    #[test]
    fn media_go_where_the_contract_takes_them() {
        let input = attached("image-analyzer", r#"{"prompt": "p"}"#, &["https://a/b.png", "https://a/c"]);
        let images =
            json!([{ "type": "url", "url": "https://a/b.png" }, { "type": "url", "url": "https://a/c" }]);
        assert_eq!(input.unwrap(), json!({ "prompt": "p", "images": images }));
        let more = attached("image-analyzer", r#"{"images": [1]}"#, &["https://a/b"]).unwrap();
        assert_eq!(more["images"].as_array().unwrap().len(), 2);
        let failure = attached("summarizer", "{}", &["https://a/b.png"]).unwrap_err();
        assert!(failure.message().contains("`summarizer`"), "{}", failure.message());
        let missing = attached("image-analyzer", "{}", &["no-such-file.png"]).unwrap_err();
        assert_eq!(missing.code(), ErrorCode::MediaFetchFailed);
        assert_eq!(
            attached("image-analyzer", "{", &["https://a/b"]).unwrap(),
            Value::Null,
            "told by the run"
        );
    }

    fn answer(medium: &Value) -> Envelope {
        let meta = json!({ "confidence": 1, "risk": "low", "explain": "e" });
        let data = json!({ "rationale": "r", "all": [medium], "link": { "type": "url" } });
        Envelope::from_value(json!({ "ok": true, "meta": meta, "data": data })).unwrap()
    }

    #[test]
    fn media_of_an_answer_become_files() {
        let folder = tempfile::tempdir().unwrap();
        let medium = json!({ "type": "base64", "media_type": "image/png", "data": "UE5H", "width": 1 });
        let mut envelope = answer(&medium);
        let written = store(&mut envelope, folder.path()).unwrap();
        assert_eq!(fs::read(&written[0]).unwrap(), b"PNG");
        let path = folder.path().join("all-0.png").display().to_string();
        let left = json!({ "type": "file", "media_type": "image/png", "width": 1, "path": path });
        assert_eq!(envelope.data().unwrap()["all"][0], left);
        let mut broken = answer(&json!({ "type": "base64", "media_type": "image/png", "data": "?" }));
        assert!(store(&mut broken, folder.path()).is_err());
        let mut failed = Failure::new(ErrorCode::InternalError, "m").into_envelope();
        assert_eq!(store(&mut failed, folder.path()).unwrap().len(), 0);
    }
}
