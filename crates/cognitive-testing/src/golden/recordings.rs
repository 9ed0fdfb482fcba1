//! Looks up recorded replies by module and input, so that programs that run modules can be tested without a
//! key and without a network.
//!
//! Judges nothing and runs nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cognitive_contract::recorded_reply::{DIALECT_END, REPLY_END};
use cognitive_contract::{Format, RecordedReply};
use cognitive_library::folder::{Folder, read_file};
use cognitive_library::{folder, formats};
use serde_json::Value;

use super::case::cases;

/// The maximum depth of folders that are searched for recordings. Without it, a wrong path would be searched without
/// end.
const MAX_FOLDER_DEPTH: usize = 8;
/// The most folders that are searched. Without it, a wrong path such as a home folder would be searched completely.
const MAX_FOLDERS: usize = 10_000;

/// Recorded replies for the inputs of some modules.
#[derive(Debug, Clone, Default)]
pub struct Recordings {
    cases: Vec<RecordedCase>,
}

#[derive(Debug, Clone)]
struct RecordedCase {
    module: String,
    input: Value,
    replies: BTreeMap<String, RecordedReply>,
}

impl Recordings {
    /// Reads the recordings in a folder. The folder is a module, the `tests` folder of one, or a parent of
    /// modules or recordings. Recordings outside a module are in a folder with the module's name:
    /// `text-classifier/CASE.input.json` and `text-classifier/CASE.reply.txt`. The error is a sentence.
    pub fn read(place: &Path) -> Result<Self, String> {
        // The way to a folder says which module it belongs to, also where it is `.` or a link.
        let place =
            place.canonicalize().map_err(|error| format!("cannot read `{}`: {error}", place.display()))?;
        let mut recordings = Self::default();
        let above = place.parent().filter(|_| place.ends_with("tests")).filter(|above| is_module(above));
        recordings.gather(above.unwrap_or(&place))?;
        if recordings.cases.is_empty() {
            return Err(format!("no recordings in `{}`", place.display()));
        }
        Ok(recordings)
    }

    /// Returns the number of cases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// Returns whether there are no cases.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Returns the recorded replies for this input of a module, given by name or path. They are keyed by
    /// module, because a composition calls several.
    #[must_use]
    pub fn replies(&self, module: &str, input: &Value) -> Option<&BTreeMap<String, RecordedReply>> {
        let name = Path::new(module).file_name().and_then(|name| name.to_str()).unwrap_or(module);
        let found = self.cases.iter().find(|case| case.module == name && case.input == *input);
        found.map(|case| &case.replies)
    }

    fn gather(&mut self, root: &Path) -> Result<(), String> {
        let mut waiting = vec![(root.to_owned(), 0)];
        let mut seen = 0;
        while let Some((place, depth)) = waiting.pop() {
            seen += 1;
            if seen > MAX_FOLDERS {
                return Err(format!("`{}` has more than {MAX_FOLDERS} folders", root.display()));
            }
            let (folders, has_replies) = look(&place)?;
            if is_module(&place) {
                let folder = Folder::Disk(place);
                let manifest = formats::read_manifest(&folder).map(|(_, manifest)| manifest);
                let name = manifest.as_ref().and_then(|manifest| manifest.get("name")?.as_str());
                self.add(&folder, &name.map_or_else(|| folder.name(), str::to_owned))?;
                continue;
            }
            if has_replies {
                let folder = as_tests(&place)?;
                self.add(&folder, &folder.name())?;
            }
            if depth < MAX_FOLDER_DEPTH {
                waiting.extend(folders.into_iter().rev().map(|folder| (folder, depth + 1)));
            }
        }
        Ok(())
    }

    fn add(&mut self, folder: &Folder, module: &str) -> Result<(), String> {
        for case in cases(folder) {
            let wrong = |why: String| format!("the recording `{}` in {}: {why}", case.name, folder.display());
            let (input, replies) = case.read_recording(folder, module).map_err(wrong)?;
            self.cases.push(RecordedCase { module: module.to_owned(), input, replies });
        }
        Ok(())
    }
}

fn is_module(place: &Path) -> bool {
    let names = Folder::Disk(place.to_owned()).names();
    Format::from_files(names.iter().map(String::as_str)).is_some()
}

/// The subfolders, sorted by name, and whether the folder contains replies. Links and hidden folders are not
/// entered.
fn look(place: &Path) -> Result<(Vec<PathBuf>, bool), String> {
    let failed = |error: std::io::Error| format!("cannot read `{}`: {error}", place.display());
    let (mut folders, mut has_replies) = (Vec::new(), false);
    for entry in fs::read_dir(place).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        has_replies |= name.ends_with(REPLY_END);
        if entry.file_type().map_err(failed)?.is_dir() && !name.starts_with('.') {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok((folders, has_replies))
}

/// A folder of recordings as a module that contains only tests, so that the same naming rules find its cases.
fn as_tests(place: &Path) -> Result<Folder, String> {
    let folder = Folder::Disk(place.to_owned());
    let mut files = BTreeMap::new();
    let names = folder.names();
    let endings = [REPLY_END, DIALECT_END, ".input.json"];
    for name in names.iter().filter(|name| endings.iter().any(|end| name.ends_with(end))) {
        let bytes = read_file(&place.join(name), folder::JSON_LIMIT)
            .map_err(|error| format!("cannot read `{}`: {error:?}", place.join(name).display()))?;
        files.insert(format!("tests/{name}"), bytes);
    }
    Ok(Folder::memory(&folder.name(), files))
}

#[cfg(test)]
mod tests {
    use cognitive_schema::SchemaTarget;
    use serde_json::json;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn known(recordings: &Recordings, module: &str, input: &Value) -> Vec<String> {
        recordings.replies(module, input).into_iter().flatten().map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn test_007_replies_are_found_by_module_and_input_wherever_they_lie() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        write(root, "one/module.yaml", "name: one\n");
        write(root, "one/tests/a.input.json", r#"{"q": 1}"#);
        write(root, "one/tests/a.reply.txt", "own");
        write(root, "one/tests/a.part.reply.txt", "of a part");
        write(root, "deep/two/b.input.json", r#"{"q": 2}"#);
        write(root, "deep/two/b.reply.txt", "two");
        write(root, "deep/two/b.reply.json", r#"{"reply_dialect": "openai"}"#);
        write(root, "deep/two/test_two.py", "");
        let all = Recordings::read(root).unwrap();
        let two = &all.replies("two", &json!({ "q": 2 })).unwrap()["two"];
        assert_eq!(*two, RecordedReply::new("two", Some(SchemaTarget::OpenAi)), "D-18");
        assert_eq!(all.len(), 2);
        assert_eq!(known(&all, "one", &json!({ "q": 1 })), ["one", "part"]);
        assert_eq!(known(&all, "./modules/two", &json!({ "q": 2 })), ["two"]);
        assert!(known(&all, "one", &json!({ "q": 2 })).is_empty());
        let module = Recordings::read(&root.join("one")).unwrap();
        let tests = Recordings::read(&root.join("one/tests")).unwrap();
        for recordings in [module, tests] {
            assert_eq!((recordings.len(), known(&recordings, "one", &json!({ "q": 1 })).len()), (1, 2));
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let said = |recordings: Result<Recordings, String>| recordings.unwrap_err();
        assert!(said(Recordings::read(&dir.path().join("none"))).starts_with("cannot read"));
        assert!(said(Recordings::read(dir.path())).starts_with("no recordings"));
        write(dir.path(), "m/half.reply.txt", "no input");
        assert!(said(Recordings::read(dir.path())).contains("the recording `half`"));
        write(dir.path(), "m/half.input.json", "{}");
        write(dir.path(), "m/half.reply.json", r#"{"reply_dialect": "gpt"}"#);
        assert!(said(Recordings::read(dir.path())).contains("unknown schema dialect: `gpt`"));
    }
}
