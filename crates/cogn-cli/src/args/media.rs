//! `--media`: files and addresses that become members of the input. The module's own contract decides which member
//! takes media.

use cognitive_contract::json;
use cognitive_contract::{ErrorCode, Failure, Module, numbers, text};
use cognitive_runtime::host::RunInput;
use serde_json::{Map, Value, json};

/// Puts media into an input.
pub(crate) fn attach(module: &Module, input: RunInput, media: &[String]) -> Result<RunInput, Failure> {
    let mut members = match input {
        RunInput::Json(Value::Object(members)) => members,
        RunInput::Raw(text) => match json::parse(text.trim_start_matches('\u{feff}')) {
            Ok(Value::Object(members)) if numbers::rounded_numbers(&text).is_empty() => members,
            // Its errors are reported in the order of the run.
            _ => return Ok(RunInput::Raw(text)),
        },
        other => return Ok(other),
    };
    let items = media.iter().map(|given| item(given)).collect::<Result<Vec<Value>, Failure>>()?;
    let sample = items.first().cloned().unwrap_or_default();
    let (name, as_list) = place(module, &sample).ok_or_else(|| no_place(module))?;
    put(&mut members, &name, as_list, items)?;
    Ok(RunInput::Json(Value::Object(members)))
}

/// The failure of an input without a member for media. It names the members, because a list of untyped objects looks
/// like one for media and takes anything.
fn no_place(module: &Module) -> Failure {
    let name = &module.manifest.name;
    let properties = module.contract.input().schema().get("properties").and_then(Value::as_object);
    let members: Vec<String> =
        properties.into_iter().flatten().map(|(member, _)| format!("`{}`", text::cut(member, 80))).collect();
    let members = match members.as_slice() {
        [] => "it declares none".to_owned(),
        [one] => format!("it declares {one}, which describes no media items"),
        _ => format!("it declares {}, which describe no media items", members.join(", ")),
    };
    invalid_argument(format!("the input of `{name}` has no member for this kind of media: {members}"))
        .suggest(
            "Describe the items of a member as `$defs/MediaInput` of `cogn init NAME --media image` does",
        )
}

/// Returns the media item for an address or a file. A relative path starts at the current folder, not at the module.
fn item(given: &str) -> Result<Value, Failure> {
    if given.starts_with("https://") || given.starts_with("http://") {
        return Ok(json!({ "type": "url", "url": given }));
    }
    let path = std::path::absolute(given)
        .map_err(|error| invalid_argument(format!("invalid path: `{given}`: {error}")))?;
    if !path.is_file() {
        let failure = Failure::new(ErrorCode::MediaFetchFailed, format!("no such file: `{given}`"));
        return Err(failure.suggest("Check the path"));
    }
    let path = path.to_str().ok_or_else(|| invalid_argument(format!("the path is not UTF-8: `{given}`")))?;
    Ok(json!({ "type": "file", "path": path }))
}

/// Returns the first member that accepts an item, and whether it is a list. A member that accepts any object does not
/// count.
fn place(module: &Module, item: &Value) -> Option<(String, bool)> {
    let section = module.contract.input();
    let accepts = |name: &str, value: Value| {
        let below = format!("/{name}");
        let found = section.violations(&json!({ name: value }));
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
            return Err(invalid_argument(format!("`{name}` is not a list, so no item can be added to it")));
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
        _ => Err(invalid_argument(format!("`{name}` takes one item"))),
    }
}

fn invalid_argument(message: String) -> Failure {
    Failure::new(ErrorCode::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert!(failure.message().contains("`text`"), "the members are named: {}", failure.message());
        let missing = attached("image-analyzer", "{}", &["no-such-file.png"]).unwrap_err();
        assert_eq!(missing.code(), ErrorCode::MediaFetchFailed);
        assert_eq!(
            attached("image-analyzer", "{", &["https://a/b"]).unwrap(),
            Value::Null,
            "told by the run"
        );
    }
}
