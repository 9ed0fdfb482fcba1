//! The supported source forms, and their detection from a path.

use std::path::Path;

use cognitive_contract::Failure;

use crate::source::refuse;

/// A file form of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportForm {
    /// A folder with `SKILL.md`.
    Skill,
    /// A Prompty file, `*.prompty`.
    Prompty,
    /// A dotprompt file, `*.prompt`.
    Dotprompt,
    /// A BAML function, in `*.baml`.
    Baml,
    /// A `TensorZero` function, in `tensorzero.toml`.
    TensorZero,
}

impl ImportForm {
    /// All forms.
    pub const ALL: [Self; 5] = [Self::Skill, Self::Prompty, Self::Dotprompt, Self::Baml, Self::TensorZero];

    /// The name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Skill => "skill",
            Self::Prompty => "prompty",
            Self::Dotprompt => "dotprompt",
            Self::Baml => "baml",
            Self::TensorZero => "tensorzero",
        }
    }

    /// Guesses the form from the name of a path and from the names in its folder. Reads no file content.
    pub fn guess(path: &Path) -> Result<Self, Failure> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let ends = |ending: &str| name.ends_with(ending);
        let has = |file: &str| path.join(file).is_file();
        let holds = |ending: &str| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.take(1_000).any(|entry| entry.file_name().to_string_lossy().ends_with(ending))
        };
        if name == "skill.md" || has("SKILL.md") {
            Ok(Self::Skill)
        } else if ends(".prompty") {
            Ok(Self::Prompty)
        } else if ends(".prompt") {
            Ok(Self::Dotprompt)
        } else if ends(".baml") || (path.is_dir() && holds(".baml")) {
            Ok(Self::Baml)
        } else if ends(".toml") || has("tensorzero.toml") {
            Ok(Self::TensorZero)
        } else {
            Err(refuse(
                format!("unknown format: `{}`", path.display()),
                "Name the format: `cogn import skill|prompty|dotprompt|baml|tensorzero PATH`",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_told_from_the_path() {
        let guessed = |path: &str| ImportForm::guess(Path::new(path)).ok();
        assert_eq!(guessed("a/b.prompty"), Some(ImportForm::Prompty));
        assert_eq!(guessed("b.prompt"), Some(ImportForm::Dotprompt));
        assert_eq!(guessed("b.baml"), Some(ImportForm::Baml));
        assert_eq!(guessed("config/tensorzero.toml"), Some(ImportForm::TensorZero));
        assert_eq!(guessed("x/SKILL.md"), Some(ImportForm::Skill));
        assert_eq!(guessed("x.txt"), None);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ImportForm::guess(dir.path()).ok(), None);
        std::fs::write(dir.path().join("a.baml"), "").unwrap();
        assert_eq!(ImportForm::guess(dir.path()).ok(), Some(ImportForm::Baml));
        std::fs::write(dir.path().join("SKILL.md"), "").unwrap();
        assert_eq!(ImportForm::guess(dir.path()).ok(), Some(ImportForm::Skill));
    }
}
