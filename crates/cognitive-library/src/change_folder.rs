//! Changes some files of a folder, all of them or none: a kill at any moment leaves the old folder or the new one. The
//! caller names the expected state by its hash; a folder that has changed since is left alone. Follows no link and
//! creates none.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use cognitive_contract::code::Blame;
use cognitive_contract::text::hex;
use cognitive_contract::{ErrorCode, Failure, Format};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::folder::Folder;
use crate::folder_files::files_of;
use crate::put_folder::{STAGED, exchange, is_folder, new_staged, remove_abandoned, sync};

/// The hash that identifies one state of a folder: all files with their paths. Hidden files do not count.
#[must_use]
pub fn folder_hash(files: &BTreeMap<String, Vec<u8>>) -> String {
    let mut all = Sha256::new();
    for (path, bytes) in files {
        all.update(format!("{} {path} {} ", path.len(), bytes.len()));
        all.update(bytes);
    }
    hex(&all.finalize())
}

/// Changes files of a folder and returns its new hash; `None` deletes a file. `before` runs when everything is staged
/// and nothing is changed yet. (E4007, E1001; E1004 with `details.kind = "conflict"` if the folder no longer has this
/// hash)
pub fn change_folder(
    folder: &Path,
    hash: &str,
    changed: &BTreeMap<String, Option<String>>,
    before: &dyn Fn() -> Result<(), Failure>,
) -> Result<String, Failure> {
    let base = Folder::Disk(folder.to_owned());
    let now = files_of(&base)?;
    guard(hash, &now)?;
    let new = files_of(&base.with_draft(changed)?)?;
    if Format::from_files(new.keys().map(String::as_str)).is_none() {
        return Err(Failure::new(ErrorCode::InvalidInput, "the change would remove the module")
            .suggest("Keep its `module.yaml`"));
    }
    let differing: BTreeMap<&str, Option<&[u8]>> = changed
        .keys()
        .map(|path| (path.as_str(), new.get(path).map(Vec::as_slice)))
        .filter(|(path, bytes)| now.get(*path).map(Vec::as_slice) != *bytes)
        .collect();
    let again = || guard(hash, &files_of(&base)?).and_then(|()| before());
    let written = match (differing.len(), differing.iter().next()) {
        (0, _) => return Ok(folder_hash(&now)),
        (1, Some((path, Some(bytes)))) => put_file(folder, path, bytes, &again),
        _ => put_all(folder, &differing, &again),
    };
    written.map(|()| folder_hash(&new)).map_err(|failed| match failed {
        WriteRefusal::Refused(failure) => failure,
        WriteRefusal::Failed(error) => {
            let message = format!("the folder was not changed: {error}");
            Failure::new(ErrorCode::InternalError, message)
                .with_blame(Blame::Operator)
                .suggest("Check the permissions and the free disk space, then try again")
        }
    })
}

/// The reason why nothing was written.
enum WriteRefusal {
    Refused(Failure),
    Failed(io::Error),
}

impl From<io::Error> for WriteRefusal {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Failure> for WriteRefusal {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

fn guard(hash: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<(), Failure> {
    let now = folder_hash(files);
    if now == hash {
        return Ok(());
    }
    Err(Failure::new(ErrorCode::InvalidReference, "the files of the module have changed in the meantime")
        .with_detail("kind", json!("conflict"))
        .with_detail("hash", json!(now))
        .suggest("Read the files again, then repeat the change"))
}

type ReadyCheck<'a> = &'a dyn Fn() -> Result<(), Failure>;

/// Replaces one file by one rename.
fn put_file(folder: &Path, path: &str, bytes: &[u8], ready: ReadyCheck<'_>) -> Result<(), WriteRefusal> {
    let target = folder.join(path);
    let parent = target.parent().unwrap_or(folder);
    fs::create_dir_all(parent)?;
    remove_abandoned(parent);
    let staged = tempfile::Builder::new().prefix(STAGED).tempfile_in(parent)?;
    // Keeps the mode of the replaced file. A new file gets the default mode, which a temporary file does not have.
    let staged = staged.into_temp_path();
    fs::remove_file(&staged)?;
    write(&staged, bytes, fs::metadata(&target).ok().map(|meta| meta.permissions()))?;
    ready()?;
    staged.persist(&target).map_err(|error| error.error)?;
    sync(parent);
    Ok(())
}

fn write(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.sync_all()
}

/// Changes several files: copies the folder, hidden files included, and exchanges the copy with the original.
fn put_all(
    folder: &Path,
    differing: &BTreeMap<&str, Option<&[u8]>>,
    ready: ReadyCheck<'_>,
) -> Result<(), WriteRefusal> {
    // The exchange must act on the real folder and not on a link to it.
    let folder = folder.canonicalize()?;
    let parent = folder.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    if !is_folder(&folder)? {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    // `put_all` stages in the parent, `put_file` in the folder itself.
    [parent, &folder].into_iter().for_each(remove_abandoned);
    let staged = new_staged(parent)?;
    let swapped = stage(&folder, &staged, differing)
        .map_err(WriteRefusal::from)
        .and_then(|()| ready().map_err(WriteRefusal::from))
        .and_then(|()| exchange(&staged, &folder).map_err(WriteRefusal::from));
    let leftover = match &swapped {
        Ok(old) => old.clone(),
        Err(_) => Some(staged),
    };
    sync(parent);
    if let Some(leftover) = leftover {
        // The folder has a hidden name. If it cannot be removed, it does no harm.
        let _tried = fs::remove_dir_all(leftover);
    }
    swapped.map(|_| ())
}

fn stage(from: &Path, to: &Path, differing: &BTreeMap<&str, Option<&[u8]>>) -> io::Result<()> {
    copy(from, to, "", differing)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for (path, bytes) in differing {
        let Some(bytes) = bytes else { continue };
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap_or(to))?;
        write(&target, bytes, fs::metadata(from.join(path)).ok().map(|meta| meta.permissions()))?;
    }
    Ok(())
}

/// Hard-links the unchanged files into the new folder. Copies them where the file system has no hard links.
fn copy(from: &Path, to: &Path, inside: &str, differing: &BTreeMap<&str, Option<&[u8]>>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{inside}{}", name.to_string_lossy());
        let target = to.join(&name);
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target, &format!("{path}/"), differing)?;
            fs::set_permissions(&target, entry.metadata()?.permissions())?;
        } else if !kind.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`{path}` is a link or not a regular file"),
            ));
        } else if !differing.contains_key(path.as_str()) && fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let place = Self(dir);
            fs::create_dir_all(place.module().join("tests")).unwrap();
            for (path, text) in
                [("module.yaml", "name: m"), ("prompt.md", "old"), ("tests/a.txt", "a"), (".env", "SECRET")]
            {
                fs::write(place.module().join(path), text).unwrap();
            }
            place
        }

        fn module(&self) -> std::path::PathBuf {
            self.0.path().join("m")
        }

        fn hash(&self) -> String {
            folder_hash(&files_of(&Folder::Disk(self.module())).unwrap())
        }

        fn change(&self, hash: &str, files: &[(&str, Option<&str>)]) -> Result<String, Failure> {
            let files =
                files.iter().map(|(path, text)| ((*path).to_owned(), text.map(str::to_owned))).collect();
            change_folder(&self.module(), hash, &files, &|| Ok(()))
        }

        fn text(&self, path: &str) -> Option<String> {
            fs::read_to_string(self.module().join(path)).ok()
        }

        fn entries(&self) -> Vec<String> {
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<String> = fs::read_dir(self.0.path()).unwrap().map(name).collect();
            names.extend(fs::read_dir(self.module()).unwrap().map(name));
            names.sort();
            names
        }
    }

    // A killed save leaves its staged files, and the next save removes them. Those of a concurrent writer stay.
    #[cfg(unix)]
    #[test]
    fn what_a_killed_save_left_goes_with_the_next_one() {
        let one: &[(&str, Option<&str>)] = &[("prompt.md", Some("new"))];
        let several: &[(&str, Option<&str>)] = &[("prompt.md", Some("newer")), ("tests/a.txt", Some("b"))];
        for (changed, goes_beside) in [(one, false), (several, true)] {
            let place = Place::new();
            let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(1);
            for (name, time) in [("old", Some(hour_ago)), ("new", None)] {
                let (inside, beside) = (format!("m/{STAGED}{name}"), format!("{STAGED}{name}"));
                fs::write(place.0.path().join(&inside), "x").unwrap();
                fs::create_dir(place.0.path().join(&beside)).unwrap();
                fs::write(place.0.path().join(&beside).join("x"), "x").unwrap();
                for path in [inside, beside].iter().filter(|_| time.is_some()) {
                    let file = fs::File::open(place.0.path().join(path)).unwrap();
                    file.set_modified(time.unwrap()).unwrap();
                }
            }
            place.change(&place.hash(), changed).unwrap();
            let there = |path: &str| place.0.path().join(path).exists();
            assert!(!there(&format!("m/{STAGED}old")) && there(&format!("m/{STAGED}new")));
            assert_eq!(
                (there(&format!("{STAGED}old")), there(&format!("{STAGED}new"))),
                (!goes_beside, true)
            );
        }
    }

    #[test]
    fn one_file_or_several_change_and_the_rest_stays() {
        let place = Place::new();
        let second = place.change(&place.hash(), &[("prompt.md", Some("new"))]).unwrap();
        assert_eq!((place.text("prompt.md").as_deref(), place.hash()), (Some("new"), second.clone()));
        let third = place
            .change(
                &second,
                &[("prompt.md", Some("newer")), ("tests/a.txt", None), ("tests/deep/b.txt", Some("b"))],
            )
            .unwrap();
        assert_eq!(place.hash(), third);
        assert_eq!(place.text("tests/deep/b.txt").as_deref(), Some("b"));
        assert!(place.text("tests/a.txt").is_none());
        assert_eq!(place.text(".env").as_deref(), Some("SECRET"), "what nobody sees stays where it is");
        assert_eq!(
            place.entries(),
            [".env", "m", "module.yaml", "prompt.md", "tests"],
            "nothing is left over"
        );
        assert_eq!(place.change(&third, &[("prompt.md", Some("newer"))]).unwrap(), third);
    }

    #[test]
    fn a_folder_that_has_changed_stays_as_it_is() {
        let place = Place::new();
        let hash = place.hash();
        fs::write(place.module().join("prompt.md"), "somebody else's").unwrap();
        for files in [&[("prompt.md", Some("mine"))][..], &[("prompt.md", Some("mine")), ("x.md", Some("x"))]]
        {
            let refused = place.change(&hash, files).unwrap_err();
            assert_eq!(refused.into_envelope().error().unwrap().members()["details"]["kind"], "conflict");
        }
        assert_eq!(place.text("prompt.md").as_deref(), Some("somebody else's"));
        // The same if the folder changes while everything is staged.
        let (hash, asked) = (place.hash(), Cell::new(false));
        let files =
            BTreeMap::from([("prompt.md".to_owned(), Some("mine".to_owned())), ("x.md".to_owned(), None)]);
        let refused = change_folder(&place.module(), &hash, &files, &|| {
            asked.set(true);
            Err(Failure::new(ErrorCode::InternalError, "not recorded"))
        });
        assert!(refused.is_err() && asked.get());
        assert_eq!(place.text("prompt.md").as_deref(), Some("somebody else's"));
        assert_eq!(place.entries(), [".env", "m", "module.yaml", "prompt.md", "tests"]);
    }

    #[test]
    fn what_would_be_no_module_or_lead_elsewhere_is_refused() {
        let place = Place::new();
        let hash = place.hash();
        assert!(place.change(&hash, &[("module.yaml", None)]).is_err());
        assert!(place.change(&hash, &[("../x", Some("x"))]).is_err());
        assert!(place.change(&hash, &[("prompt.md/x", Some("x"))]).is_err(), "a file is no folder");
        assert_eq!(place.hash(), hash);
        assert_eq!(place.entries(), [".env", "m", "module.yaml", "prompt.md", "tests"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_folder_is_neither_followed_nor_copied() {
        use std::os::unix::fs::symlink;
        let place = Place::new();
        let outside = tempfile::tempdir().unwrap();
        let hash = place.hash();
        symlink(outside.path(), place.module().join("out")).unwrap();
        assert!(place.change(&hash, &[("out/x.txt", Some("x"))]).is_err());
        fs::remove_file(place.module().join("out")).unwrap();
        symlink(outside.path(), place.module().join(".out")).unwrap();
        assert!(place.change(&hash, &[("a.txt", Some("x")), ("b.txt", Some("x"))]).is_err());
        assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
        assert_eq!(place.hash(), hash);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let place = Place::new();
        let path = place.module().join("prompt.md");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let hash = place.change(&place.hash(), &[("prompt.md", Some("new"))]).unwrap();
        place.change(&hash, &[("prompt.md", Some("newer")), ("x.md", Some("x"))]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
