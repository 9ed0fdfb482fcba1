//! v1: `MODULE.md` with YAML front matter and the prompt below it, and `schema.json` with `input` and `output`.

use std::path::Path;

use serde_json::Value;

use cognitive_contract::Format;

use super::v2::read_schemas;
use super::{ModuleParts, syntax_finding};
use crate::folder::Folder;
use crate::yaml::{self, YamlError};

const MANIFEST: &str = "MODULE.md";

/// Splits a text into the YAML between two `---` lines and the rest. The numbers are the byte offsets at which each
/// part starts. `None` if the text has no front matter.
fn split(text: &str) -> Option<(&str, usize, &str)> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line))?;
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            let body = text.get(end + line.len()..)?;
            return Some((text.get(start..end)?, start, body));
        }
        end += line.len();
    }
    None
}

/// Returns the YAML part of a manifest file and its byte offset.
#[must_use]
pub fn front_matter_text<'a>(file: &str, text: &'a str) -> (&'a str, usize) {
    let is_markdown = Path::new(file).extension().is_some_and(|extension| extension == "md");
    match split(text) {
        Some((front, start, _)) if is_markdown => (front, start),
        _ => (text, 0),
    }
}

/// Reads the front matter and the prompt of a `MODULE.md`.
pub fn front_matter(text: &str) -> Result<(Value, &str), YamlError> {
    let Some((front, start, body)) = split(text) else {
        let message = "no front matter: expected YAML between two `---` lines at the top".to_owned();
        return Err(YamlError { message, offset: Some(0), hint: None });
    };
    let manifest = yaml::parse(front)
        .map_err(|error| YamlError { offset: error.offset.map(|at| at + start), ..error })?;
    Ok((manifest, body))
}

pub(super) fn read(folder: &Folder) -> ModuleParts {
    let mut parts = ModuleParts::new(Format::V1, MANIFEST);
    if let Some(text) = parts.text(folder, MANIFEST) {
        match front_matter(&text) {
            Ok((manifest, body)) => {
                parts.manifest = manifest;
                body.clone_into(&mut parts.prompt);
            }
            Err(error) => parts.findings.push(syntax_finding(MANIFEST, error)),
        }
    }
    read_schemas(&mut parts, folder);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fmt_006_only_the_first_two_fences_count() {
        let (manifest, body) = front_matter("---\r\nname: a\r\n---\r\n# T\n---\nx\n").unwrap();
        assert_eq!(manifest, serde_json::json!({ "name": "a" }));
        assert_eq!(body, "# T\n---\nx\n");
        assert!(front_matter("# no front matter\n").is_err());
        assert!(front_matter("---\nname: a\n").is_err());
        assert_eq!(front_matter("---\na: [\n---\n").unwrap_err().offset.map(|at| at >= 4), Some(true));
    }
}
