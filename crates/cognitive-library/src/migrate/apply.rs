//! Applies a plan. A kill, a full disk or a refusal at any moment leaves the module unchanged or completely migrated.
//! Never edits a file in place: builds the whole new folder next to the old one, then exchanges both.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use super::error::MigrateError;
use super::held_folder::HeldFolder;
use super::{FileChange, MigrationPlan, tree};
use crate::folder::{Folder, JSON_LIMIT};
use crate::platform;

/// The handling of the old folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backup {
    /// Keeps it next to the new one as `<module>_backup_<YYYYMMDD_HHMMSS>`.
    Keep,
    /// Removes it.
    Discard,
}

/// The options for applying a plan.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions {
    /// The handling of the old folder.
    pub backup: Backup,
    /// The time in the name of the backup, written in UTC.
    pub stamp: SystemTime,
    /// The handling of a folder that is a link.
    pub links: Links,
}

/// The handling of a folder that is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Migrates the real folder behind the link.
    Follow,
    /// Refuses the link, even if the folder becomes one at the last moment.
    Refuse,
}

impl ApplyOptions {
    /// Returns the options for a migration at the current time that follows links.
    #[must_use]
    pub fn now(backup: Backup) -> Self {
        Self { backup, stamp: SystemTime::now(), links: Links::Follow }
    }
}

/// The result of applying a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedMigration {
    /// The path of the old folder, if it still exists.
    pub backup: Option<PathBuf>,
}

/// Applies a plan to the folder that it was made from. An empty plan does nothing.
///
/// On any error the folder is unchanged, byte for byte. A shell whose working directory is the folder stays in the old
/// one; `cd "$PWD"` moves it to the new one.
pub fn apply(
    root: &Path,
    plan: &MigrationPlan,
    options: ApplyOptions,
) -> Result<AppliedMigration, MigrateError> {
    apply_by(exchange, root, plan, options)
}

/// Replaces the module by the staged folder; returns the new path of the old one.
type Swap = fn(&Path, &Path, &str) -> io::Result<PathBuf>;

fn apply_by(
    swap: Swap,
    root: &Path,
    plan: &MigrationPlan,
    options: ApplyOptions,
) -> Result<AppliedMigration, MigrateError> {
    if plan.is_empty() {
        return Ok(AppliedMigration { backup: None });
    }
    let module = match options.links {
        Links::Follow => root.canonicalize(),
        Links::Refuse => std::path::absolute(root),
    };
    let module = module.map_err(MigrateError::io("find", root))?;
    let held = HeldFolder::open(&module).map_err(MigrateError::io("open", &module))?;
    let stamp = stamp(options.stamp).map_err(MigrateError::io("date the backup of", &module))?;
    let staged =
        stage(&module, held.path(), plan).map_err(|error| error.with_path_shown_as(held.path(), &module))?;
    let swapped = check_unchanged(held.path(), plan).and_then(|()| {
        if !held.is_at(&module) {
            return Err(MigrateError::Changed { file: module.display().to_string() });
        }
        let old = swap(&staged, &module, &stamp).map_err(MigrateError::io("replace", &module))?;
        if old == staged && !held.is_at(&old) {
            // Another process was faster: the replaced folder is not the copied one, so it is restored.
            swap(&staged, &module, &stamp).map_err(MigrateError::io("replace", &module))?;
            return Err(MigrateError::Changed { file: module.display().to_string() });
        }
        Ok(old)
    });
    let old = match swapped {
        Ok(old) => old,
        Err(error) => {
            discard(&staged);
            return Err(error);
        }
    };
    let backup = match options.backup {
        Backup::Discard => tree::remove(&old).is_err().then_some(old),
        Backup::Keep if old == staged => Some(name_backup(old, &module, &stamp)),
        Backup::Keep => Some(old),
    };
    if let Some(parent) = module.parent() {
        tree::sync(parent);
    }
    Ok(AppliedMigration { backup })
}

/// Builds the new folder from `source`, hidden, next to the module. Leaves nothing behind on failure.
fn stage(module: &Path, source: &Path, plan: &MigrationPlan) -> Result<PathBuf, MigrateError> {
    let (Some(parent), Some(name)) = (module.parent(), module.file_name()) else {
        let reason = "the root of the file system is not a module";
        return Err(MigrateError::Unsupported { path: module.to_owned(), reason });
    };
    check_unchanged(source, plan)?;
    tree::measure(source)?;
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".migrating-");
    // The name is random, so the leftovers of a killed run never collide with it. They are not removed either: they may
    // be the old folder of a run that was killed before it could rename it.
    let staged = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent);
    let staged = staged.map_err(MigrateError::io("write beside", module))?.keep();
    let filled = content(source, plan).and_then(|content| tree::copy(source, &staged, &content));
    match filled {
        Ok(()) => Ok(staged),
        Err(error) => {
            discard(&staged);
            Err(error)
        }
    }
}

/// The files to write, by their real paths: a link to a file of the module stays a link.
fn content<'a>(module: &Path, plan: &'a MigrationPlan) -> Result<tree::Content<'a>, MigrateError> {
    let mut content = tree::Content::new();
    let root = module.canonicalize().map_err(MigrateError::io("find", module))?;
    for (file, text) in &plan.files {
        let inside = if plan.read.contains_key(file) {
            let real = module.join(file).canonicalize().map_err(MigrateError::io("find", Path::new(file)))?;
            let inside = real.strip_prefix(&root).map(Path::to_owned);
            inside.map_err(|_| MigrateError::Changed { file: file.clone() })?
        } else {
            PathBuf::from(file)
        };
        content.insert(inside, text.as_str());
    }
    Ok(content)
}

/// Checks that the folder still has the contents that the plan was made from.
fn check_unchanged(module: &Path, plan: &MigrationPlan) -> Result<(), MigrateError> {
    let changed = |file: &str| MigrateError::Changed { file: file.to_owned() };
    let folder = Folder::Disk(module.to_owned());
    for (file, text) in &plan.read {
        if folder.read(file, JSON_LIMIT).as_ref() != Ok(text) {
            return Err(changed(file));
        }
    }
    for change in plan.changes.iter().filter(|change| change.kind == FileChange::Created) {
        if fs::symlink_metadata(module.join(&change.file)).is_ok() {
            return Err(changed(&change.file));
        }
    }
    Ok(())
}

/// Exchanges both folders in one atomic step. A kill before it leaves the old module, a kill after it the new one; the
/// old one then still has its hidden name.
fn exchange(staged: &Path, module: &Path, stamp: &str) -> io::Result<PathBuf> {
    if platform::exchange(staged, module)? {
        Ok(staged.to_owned())
    } else {
        rename_twice(staged, module, stamp)
    }
}

/// The fallback for file systems without exchange. A kill in the microseconds between the two steps leaves no folder
/// under the module's name. Both complete folders then exist under other names, the old one as a backup.
fn rename_twice(staged: &Path, module: &Path, stamp: &str) -> io::Result<PathBuf> {
    let backup = free_backup_path(module, stamp);
    fs::rename(module, &backup)?;
    match fs::rename(staged, module) {
        Ok(()) => Ok(backup),
        Err(error) => {
            fs::rename(&backup, module)?;
            Err(error)
        }
    }
}

/// Renames the old folder to its backup name. The new module is already in place, so a failed rename is not a failed
/// migration: the backup then keeps its hidden name.
fn name_backup(old: PathBuf, module: &Path, stamp: &str) -> PathBuf {
    let path = free_backup_path(module, stamp);
    if fs::rename(&old, &path).is_ok() { path } else { old }
}

/// Returns an unused backup path. If another process takes it meanwhile, renaming fails: it never replaces a folder
/// that is not empty.
fn free_backup_path(module: &Path, stamp: &str) -> PathBuf {
    let path = |suffix: &str| {
        let mut name = module.file_name().unwrap_or_default().to_owned();
        name.push(format!("_backup_{stamp}{suffix}"));
        module.with_file_name(name)
    };
    let is_free = |path: &PathBuf| fs::symlink_metadata(path).is_err();
    let numbered = (2..10_000).map(|number| path(&format!("_{number}")));
    std::iter::once(path("")).chain(numbered).find(is_free).unwrap_or_else(|| path("_last"))
}

fn stamp(time: SystemTime) -> io::Result<String> {
    let time = jiff::Timestamp::try_from(time).map_err(io::Error::other)?;
    Ok(time.strftime("%Y%m%d_%H%M%S").to_string())
}

/// Removes the staged folder. If that fails, the hidden folder does no harm.
fn discard(staged: &Path) {
    let _ = tree::remove(staged);
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: ApplyOptions =
        ApplyOptions { backup: Backup::Keep, stamp: SystemTime::UNIX_EPOCH, links: Links::Follow };

    /// Creates a v2.1 module in its own folder, and its plan.
    fn module(dir: &Path) -> (PathBuf, MigrationPlan) {
        let module = dir.join("m");
        fs::create_dir(&module).unwrap();
        fs::write(module.join("module.yaml"), "name: m\nversion: 1.0.0\nresponsibility: r\n").unwrap();
        fs::write(module.join("prompt.md"), "Do it.").unwrap();
        fs::write(module.join("schema.json"), r#"{"input": {}, "output": {}}"#).unwrap();
        let plan = super::super::plan(&Folder::Disk(module.clone())).unwrap();
        (module, plan)
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names = Folder::Disk(dir.to_owned()).names();
        names.sort();
        names
    }

    #[test]
    fn mig_006_a_file_system_that_cannot_exchange_gets_two_renames() {
        let dir = tempfile::tempdir().unwrap();
        let (module, plan) = module(dir.path());
        let applied = apply_by(rename_twice, &module, &plan, OPTIONS).unwrap();
        assert_eq!(applied.backup, Some(dir.path().canonicalize().unwrap().join("m_backup_19700101_000000")));
        assert_eq!(names(dir.path()), ["m", "m_backup_19700101_000000"]);
        assert!(fs::read_to_string(module.join("module.yaml")).unwrap().contains("tier"));

        let discard = ApplyOptions { backup: Backup::Discard, ..OPTIONS };
        let (other, plan) = (tempfile::tempdir().unwrap(), plan);
        let (module, _) = self::module(other.path());
        assert_eq!(apply_by(rename_twice, &module, &plan, discard).unwrap().backup, None);
        assert_eq!(names(other.path()), ["m"]);
    }

    #[test]
    fn mig_006_a_second_rename_that_fails_is_undone() {
        let dir = tempfile::tempdir().unwrap();
        let (module, _) = module(dir.path());
        assert!(rename_twice(&dir.path().join("nowhere"), &module, "s").is_err());
        assert_eq!(names(dir.path()), ["m"]);
        assert_eq!(names(&module), ["module.yaml", "prompt.md", "schema.json"]);
    }

    #[test]
    fn a_swap_that_fails_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let (module, plan) = module(dir.path());
        let swap: Swap = |_, _, _| Err(io::Error::from(io::ErrorKind::ResourceBusy));
        let error = apply_by(swap, &module, &plan, OPTIONS).unwrap_err();
        assert!(error.to_string().starts_with("cannot replace `"), "{error}");
        assert_eq!(names(dir.path()), ["m"]);
        assert!(!fs::read_to_string(module.join("module.yaml")).unwrap().contains("tier"));
    }

    #[test]
    fn a_folder_that_changes_while_it_is_copied_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (module, plan) = module(dir.path());
        let staged = stage(&module, &module, &plan).unwrap();
        fs::write(module.join("prompt.md"), "Do it now.").unwrap();
        assert!(
            matches!(check_unchanged(&module, &plan), Err(MigrateError::Changed { file }) if file == "prompt.md")
        );
        discard(&staged);
        assert_eq!(names(dir.path()), ["m"]);
    }

    #[test]
    fn a_folder_that_is_too_large_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let (module, plan) = module(dir.path());
        fs::File::create(module.join("holes")).unwrap().set_len(3 << 30).unwrap();
        let swap: Swap = |_, _, _| panic!("it was copied");
        let error = apply_by(swap, &module, &plan, OPTIONS).unwrap_err();
        assert!(matches!(error, MigrateError::Unsupported { path, .. } if path.ends_with("m/holes")));
        assert_eq!(names(dir.path()), ["m"]);
    }

    #[test]
    fn mig_006_backups_of_one_second_get_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        for name in ["m_backup_s", "m_backup_s_2"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        assert_eq!(free_backup_path(&module, "s"), dir.path().join("m_backup_s_3"));
    }
}
