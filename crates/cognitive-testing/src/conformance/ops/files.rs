//! Turns the files of a vector into a module folder in memory.
//! Writes nothing to disk. Accepts text, JSON and base64.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cognitive_contract::Module;
use cognitive_library::{Folder, ModuleLoadError, load};
use serde_json::{Map, Value};

use super::{Arguments, VectorStop, broken_vector};

/// Path → content.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// The default name of a folder.
const NAME: &str = "sample";

/// Reads a file map: plain text and `{"$raw": text}` are copied, `{"base64": text}` is decoded. Anything else
/// becomes JSON, which is also valid YAML.
pub(super) fn files(map: &Map<String, Value>) -> Result<Files, VectorStop> {
    map.iter().map(|(path, value)| Ok((path.clone(), content(value)?))).collect()
}

fn content(value: &Value) -> Result<Vec<u8>, VectorStop> {
    let only = |name: &str| value.as_object().filter(|members| members.len() == 1)?.get(name)?.as_str();
    if let Some(text) = only("base64") {
        return bytes(text);
    }
    let text = value.as_str().or_else(|| only("$raw"));
    Ok(text.map_or_else(|| value.to_string(), str::to_owned).into_bytes())
}

/// Decodes the base64 bytes of a case.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, VectorStop> {
    STANDARD.decode(text).map_err(|error| broken_vector(format!("no base64: {error}")))
}

/// A folder with these files.
pub(super) fn folder(files: Files) -> Folder {
    Folder::memory(NAME, files)
}

/// The folder of a `module` argument: `{manifest, schema, prompt}` or `{files}`. `None` for `{name}`.
pub(super) fn module_folder(module: Arguments<'_>) -> Result<Option<Folder>, VectorStop> {
    if module.get("name").is_some() {
        return Ok(None);
    }
    if module.get("files").is_some() {
        return Ok(Some(folder(files(module.object("files")?)?)));
    }
    let parts = [("module.yaml", "manifest"), ("schema.json", "schema"), ("prompt.md", "prompt")];
    let mut files = Files::new();
    for (path, part) in parts {
        files.insert(path.to_owned(), content(module.value(part)?)?);
    }
    Ok(Some(folder(files)))
}

/// Loads the same folder. A module that does not load makes the case invalid.
pub(super) fn module(module: Arguments<'_>) -> Result<Module, VectorStop> {
    let folder = module_folder(module)?
        .ok_or_else(|| broken_vector("the case names a module that it does not contain"))?;
    load(&folder).map_err(|error| broken_vector(format!("the module does not load: {}", reason(error))))
}

fn reason(error: ModuleLoadError) -> String {
    error.into_failure().message().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_are_text_raw_text_or_json() {
        let map = json!({ "a.md": "hi", "b.yaml": { "$raw": "x: [" }, "c.json": { "a": 1 }, "d.json": { "$ref": "x" } });
        let files = files(map.as_object().unwrap()).unwrap();
        let text = |path: &str| String::from_utf8(files[path].clone()).unwrap();
        assert_eq!((text("a.md").as_str(), text("b.yaml").as_str()), ("hi", "x: ["));
        assert_eq!((text("c.json").as_str(), text("d.json").as_str()), (r#"{"a":1}"#, r#"{"$ref":"x"}"#));
    }

    #[test]
    fn contents_can_be_bytes() {
        let map = json!({ "a.png": { "base64": "AP8=" } });
        assert_eq!(files(map.as_object().unwrap()).unwrap()["a.png"], [0, 255]);
        let broken = json!({ "a.png": { "base64": "?" } });
        assert!(matches!(files(broken.as_object().unwrap()), Err(VectorStop::Broken(_))));
    }
}
