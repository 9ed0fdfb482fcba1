//! Reads the files to import, with the limits of module files. Refuses links, binary files and paths outside the folder
//! of the named file.

use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use cognitive_contract::text::{cut, escape_controls};
use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::Folder;
use cognitive_library::folder::{ReadError, TEXT_LIMIT};

/// A refusal: the problem with the file, and a hint.
pub(crate) fn refuse(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(ErrorCode::InvalidInput, message).suggest(hint)
}

/// Returns the type of a file, and refuses a link with this hint.
pub(crate) fn file_type(path: &Path, hint: &str) -> Result<FileType, Failure> {
    let shown = path.display();
    let kind = fs::symlink_metadata(path)
        .map_err(|error| refuse(format!("cannot read `{shown}`: {error}"), "Check the path"))?
        .file_type();
    if kind.is_symlink() {
        return Err(refuse(format!("symbolic links are not followed: `{shown}`"), hint));
    }
    Ok(kind)
}

/// Quotes a literal of the file for a message, in back quotes.
pub(crate) fn quote(literal: &str) -> String {
    format!("`{}`", literal_text(literal))
}

/// Prepares a literal of the file for a message: on one line, truncated and escaped.
pub(crate) fn literal_text(literal: &str) -> String {
    let shown = cut(literal, 80);
    let more = if shown.len() < literal.len() { "…" } else { "" };
    format!("{}{more}", escape_controls(shown))
}

/// One text file, and the folder to which it may refer.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The file name for messages.
    pub(crate) name: String,
    /// The text, without a byte order mark.
    pub(crate) text: String,
    folder: Folder,
}

impl SourceFile {
    /// Reads the file at a path.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let kind = file_type(path, "Name the file itself")?;
        if kind.is_dir() {
            return Err(refuse(format!("not a file but a folder: `{shown}`"), "Name a file in it"));
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = Folder::Disk(parent.map_or_else(|| PathBuf::from("."), Path::to_path_buf));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = read(&folder, &name, &shown)?;
        Ok(Self { name, text, folder })
    }

    /// Creates a file from text in memory.
    #[cfg(test)]
    pub(crate) fn memory(name: &str, text: &str) -> Self {
        let folder = Folder::memory("memory", std::collections::BTreeMap::new());
        Self { name: name.to_owned(), text: text.to_owned(), folder }
    }

    /// Reads a file that this one refers to. It must be in the same folder or below.
    pub(crate) fn read_sibling(&self, path: &str) -> Result<String, Failure> {
        read(&self.folder, path, &escape_controls(cut(path, 200)))
    }

    /// The name up to its first dot.
    pub(crate) fn stem(&self) -> &str {
        self.name.split_once('.').map_or(self.name.as_str(), |(stem, _)| stem)
    }
}

/// Reads a text file of a folder.
pub(crate) fn read(folder: &Folder, path: &str, shown: &str) -> Result<String, Failure> {
    let text = folder.read(path, TEXT_LIMIT).map_err(|error| match error {
        ReadError::Missing => refuse(format!("no such file: `{shown}`"), "Check the path"),
        ReadError::Refused(reason) => refuse(
            format!("`{shown}` {}", reason.replace("the module", "its folder")),
            "Import a text file of at most 1 MiB, with all its references in its own folder",
        ),
    })?;
    if text.contains('\0') {
        return Err(refuse(format!("not text but a binary file: `{shown}`"), "Import a text file"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_the_same_folder_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.prompt");
        fs::write(&file, "\u{feff}Hello").unwrap();
        fs::write(dir.path().join("b"), [b'x', 0]).unwrap();
        fs::write(dir.path().join("c"), [0xff, 0xfe]).unwrap();
        let source = SourceFile::open(&file).unwrap();
        assert_eq!((source.text.as_str(), source.stem()), ("Hello", "a"));
        let reason = |path: &str| source.read_sibling(path).unwrap_err().message().to_owned();
        assert!(reason("b").starts_with("not text but a binary file"), "{}", reason("b"));
        assert!(reason("c").contains("is not UTF-8 text"), "{}", reason("c"));
        assert_eq!(reason("../x"), "`../x` is outside its folder");
        assert!(reason("none").starts_with("no such file"));
        assert!(SourceFile::open(dir.path()).unwrap_err().message().starts_with("not a file but a folder"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("a.prompt");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        assert!(
            SourceFile::open(&link).unwrap_err().message().starts_with("symbolic links are not followed")
        );
    }
}
