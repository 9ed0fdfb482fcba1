//! Writes the schemas for editors as files: `.cogn/schemas/` of a project. They are generated from the runtime's types,
//! so an editor marks exactly what the runtime would reject. No download is needed.

use std::io;
use std::path::{Component, Path, PathBuf};

use cognitive_contract::{envelope_schema, manifest};
use cognitive_setup::{config, out_file};
use serde_json::Value;

/// The folder, relative to the project.
pub(crate) const FOLDER: &str = ".cogn/schemas";

/// The kinds of files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EditorSchema {
    /// module.yaml, as an author writes it
    Module,
    /// The envelope that every run answers with
    Envelope,
    /// cognitive.yaml and config.yaml
    Config,
    /// tests/CASE.expected.json
    Expected,
    /// One line of labelled cases
    Eval,
}

impl EditorSchema {
    const ALL: [Self; 5] = [Self::Module, Self::Envelope, Self::Config, Self::Expected, Self::Eval];

    /// Returns its file name.
    fn file(self) -> &'static str {
        match self {
            Self::Module => "module.json",
            Self::Envelope => "envelope.json",
            Self::Config => "config.json",
            Self::Expected => "expected.json",
            Self::Eval => "eval.json",
        }
    }

    /// Returns the schema.
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Module => manifest::editor_schema(),
            Self::Envelope => envelope_schema::json_schema(),
            Self::Config => config::editor_schema(),
            Self::Expected => cognitive_testing::expectation_schema(),
            Self::Eval => cognitive_testing::labelled_case_schema(),
        }
    }
}

/// Returns the schema folder for modules in `parent`, and the path to the schema of `module.yaml` as seen from such a
/// module. A folder within the project shares the schemas of the project; any other folder has separate ones.
pub(crate) fn place_for(parent: &Path) -> (PathBuf, String) {
    let inside = parent.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let depth = parent.components().filter(|part| matches!(part, Component::Normal(_))).count();
    let (project, up) = if inside { (PathBuf::new(), depth + 1) } else { (parent.to_path_buf(), 1) };
    let file = EditorSchema::Module.file();
    (project.join(FOLDER), format!("{}{FOLDER}/{file}", "../".repeat(up)))
}

/// Writes all schemas and replaces existing files.
pub(crate) fn write(folder: &Path) -> io::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for schema in EditorSchema::ALL {
        let path = folder.join(schema.file());
        let text = serde_json::to_string_pretty(&schema.value())? + "\n";
        out_file::write(&path, text.as_bytes())?;
        written.push(path);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_finds_the_schemas_of_its_project() {
        for (parent, folder, named) in [
            ("cognitive/modules", ".cogn/schemas", "../../../.cogn/schemas/module.json"),
            (".", ".cogn/schemas", "../.cogn/schemas/module.json"),
            ("./a", ".cogn/schemas", "../../.cogn/schemas/module.json"),
            ("/home/a/modules", "/home/a/modules/.cogn/schemas", "../.cogn/schemas/module.json"),
            ("../b", "../b/.cogn/schemas", "../.cogn/schemas/module.json"),
        ] {
            let (place, shown) = place_for(Path::new(parent));
            assert_eq!((place, shown.as_str()), (PathBuf::from(folder), named), "{parent}");
        }
    }

    #[test]
    fn all_of_them_are_written_and_compile() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("new");
        for _ in 0..2 {
            assert_eq!(write(&folder).unwrap().len(), EditorSchema::ALL.len());
        }
        for schema in EditorSchema::ALL {
            let text = std::fs::read_to_string(folder.join(schema.file())).unwrap();
            let schema: Value = serde_json::from_str(&text).unwrap();
            assert!(cognitive_schema::Section::standalone(&schema).is_ok());
        }
    }
}
