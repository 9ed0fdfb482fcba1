//! The folder of installed packages, and its lock file. Replaces or removes only folders that the lock file names, and
//! only while they are unchanged; content that a user wrote or changed stays.
//!
//! A kill at any moment leaves every module in its old or its new state. The folder changes before the lock file, so an
//! installation never records a package that does not exist. A pending file records the package first, and the next
//! command that changes the folder completes an interrupted installation. An interrupted removal leaves a lock entry
//! whose state is [`InstalledState::Missing`].

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use cognitive_library::{Folder, files_of, put_folder, remove_folder, remove_staged};

use crate::lock::{LOCK_FILE, LockFile, LockedModule, remove_draft};
use crate::name::check_name;
use crate::package::{Package, tree_digest};
use crate::{PackageError, platform, signature};

/// The pending file: the package that is being installed, until it is in the lock file.
const PENDING: &str = ".cogn-pending.json";

/// A folder of modules with its lock file.
#[derive(Debug, Clone)]
pub struct ModuleFolder {
    folder: PathBuf,
    lock: PathBuf,
}

/// The origin of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageOrigin {
    /// The source as the user requested it.
    pub source: String,
    /// The exact origin of this package.
    pub resolved: String,
    /// The key that signed the package.
    pub signed_by: Option<String>,
}

/// The state of an installed package on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledState {
    /// Unchanged since its installation.
    Intact,
    /// Changed by a user or program.
    Changed,
    /// Not on disk.
    Missing,
}

/// The result of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The package is new.
    Added,
    /// The package replaced this version.
    Replaced(String),
    /// The same package was already installed.
    Unchanged,
}

/// The content that may be replaced or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Only unchanged packages.
    Intact,
    /// Also changed packages and other content.
    Anything,
}

impl ModuleFolder {
    /// The folder of a project: `cognitive/modules`, with the lock file in the project itself.
    #[must_use]
    pub fn in_project(root: &Path) -> Self {
        Self { folder: root.join("cognitive/modules"), lock: root.join(LOCK_FILE) }
    }

    /// The module folder of a user, in the home directory.
    #[must_use]
    pub fn in_home(home: &Path) -> Self {
        let place = home.join(".cognitive");
        Self { folder: place.join("modules"), lock: place.join(LOCK_FILE) }
    }

    /// The path of the module folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The path of the lock file.
    #[must_use]
    pub fn lock_path(&self) -> &Path {
        &self.lock
    }

    /// The installed packages according to the lock file.
    pub fn load_lock(&self) -> Result<LockFile, PackageError> {
        LockFile::read(&self.lock)
    }

    /// The state on disk of a package in the lock file.
    #[must_use]
    pub fn state(&self, name: &str, locked: &LockedModule) -> InstalledState {
        match self.tree(name) {
            Some(tree) if tree == locked.tree => InstalledState::Intact,
            Some(_) => InstalledState::Changed,
            None => InstalledState::Missing,
        }
    }

    /// Installs a package and records it in the lock file.
    pub fn install(
        &self,
        package: &Package,
        origin: &PackageOrigin,
        overwrite: Overwrite,
    ) -> Result<InstallOutcome, PackageError> {
        let name = package.name();
        check_name(name)?;
        let _guard = self.guard()?;
        let mut lock = self.load_lock()?;
        let known = lock.modules.get(name);
        signature::check_same_signer(name, known, origin.signed_by.as_deref(), overwrite)?;
        let there = self.tree(name);
        let outcome = match (&there, known) {
            (Some(tree), _) if *tree == package.tree => InstallOutcome::Unchanged,
            (None, _) => InstallOutcome::Added,
            (Some(_), Some(known)) => InstallOutcome::Replaced(known.version.clone()),
            (Some(_), None) => InstallOutcome::Replaced("unknown".to_owned()),
        };
        let locked = LockedModule {
            version: package.version().to_owned(),
            source: origin.source.clone(),
            resolved: origin.resolved.clone(),
            sha256: package.sha256.clone(),
            tree: package.tree.clone(),
            signed_by: origin.signed_by.clone(),
        };
        if outcome != InstallOutcome::Unchanged {
            self.check_overwrite(name, there.as_deref(), known, overwrite)?;
            self.begin(name, &locked)?;
            let put = put_folder(&self.folder, name, &package.files);
            if let Err(error) = put {
                self.end();
                return Err(PackageError::io("write", &self.folder.join(name))(error));
            }
        }
        lock.modules.insert(name.to_owned(), locked);
        lock.write(&self.lock)?;
        self.end();
        Ok(outcome)
    }

    /// Removes a package from the folder and from the lock file.
    pub fn remove(&self, name: &str, overwrite: Overwrite) -> Result<LockedModule, PackageError> {
        check_name(name)?;
        let _guard = self.guard()?;
        let mut lock = self.load_lock()?;
        let Some(known) = lock.modules.remove(name) else {
            let error = PackageError::new(format!("no such installed package: `{name}`"));
            return Err(if self.tree(name).is_some() {
                error.hint(format!(
                    "`cogn add` did not install `{}`, so remove it yourself",
                    self.folder.join(name).display()
                ))
            } else {
                error.hint(format!("`{}` lists the installed packages", self.lock.display()))
            });
        };
        self.check_overwrite(name, self.tree(name).as_deref(), Some(&known), overwrite)?;
        remove_folder(&self.folder, name).map_err(PackageError::io("remove", &self.folder.join(name)))?;
        lock.write(&self.lock)?;
        Ok(known)
    }

    fn check_overwrite(
        &self,
        name: &str,
        there: Option<&str>,
        known: Option<&LockedModule>,
        overwrite: Overwrite,
    ) -> Result<(), PackageError> {
        let path = self.folder.join(name);
        match (there, known) {
            _ if overwrite == Overwrite::Anything => Ok(()),
            (None, _) => Ok(()),
            (Some(tree), Some(known)) if tree == known.tree => Ok(()),
            (Some(_), Some(_)) => Err(PackageError::new(format!(
                "the installed module was edited by hand: `{}`",
                path.display()
            ))
            .hint("Save a copy of your changes; `--force` overwrites them")),
            (Some(_), None) => {
                Err(PackageError::new(format!("another module is in its place: `{}`", path.display()))
                    .hint("Move it away, or overwrite it with `--force`"))
            }
        }
    }

    /// The hash of the content at a module's location; `None` if nothing exists there. Unreadable content matches no
    /// package, so it is not overwritten.
    fn tree(&self, name: &str) -> Option<String> {
        let path = self.folder.join(name);
        fs::symlink_metadata(&path).ok()?;
        let files = files_of(&Folder::Disk(path)).ok();
        Some(files.map_or_else(|| "unreadable".to_owned(), |files| tree_digest(&files)))
    }

    /// Waits until no other process changes the folder, and cleans up after a killed process.
    fn guard(&self) -> Result<File, PackageError> {
        // Held only for moments, because the package was fetched before.
        let held = fs::create_dir_all(&self.folder).and_then(|()| platform::hold(&self.folder));
        let held = held.map_err(PackageError::io("write to", &self.folder))?;
        remove_staged(&self.folder);
        for written in [&self.folder.join(PENDING), &self.lock] {
            remove_draft(written);
        }
        self.finish_pending()?;
        Ok(held)
    }

    /// Records the package that is about to be installed.
    fn begin(&self, name: &str, locked: &LockedModule) -> Result<(), PackageError> {
        let path = self.folder.join(PENDING);
        let pending = LockFile::with_module(name, locked);
        pending.write(&path)
    }

    fn end(&self) {
        // If the pending file remains, it only repeats an entry of the lock file.
        let _said_twice = fs::remove_file(self.folder.join(PENDING));
    }

    /// Adds a package to the lock file that a killed process had installed but not recorded.
    fn finish_pending(&self) -> Result<(), PackageError> {
        let path = self.folder.join(PENDING);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        // An unreadable pending file was never complete.
        for (name, pending) in LockFile::read(&path).map(|file| file.modules).unwrap_or_default() {
            if self.tree(&name).as_deref() == Some(&pending.tree) {
                let mut lock = self.load_lock()?;
                lock.modules.insert(name, pending);
                lock.write(&self.lock)?;
            }
        }
        self.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::tests::files;

    fn origin() -> PackageOrigin {
        PackageOrigin { source: "m.tar.gz".to_owned(), resolved: "m.tar.gz".to_owned(), signed_by: None }
    }

    fn package(name: &str, version: &str) -> Package {
        Package::from_files(files(name, version)).unwrap()
    }

    fn install(folder: &ModuleFolder, package: &Package) -> Result<InstallOutcome, PackageError> {
        folder.install(package, &origin(), Overwrite::Intact)
    }

    #[test]
    fn the_lock_file_is_right_at_every_step() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        let (one, two) = (package("m", "1.0.0"), package("m", "1.1.0"));
        assert_eq!(install(&folder, &one).unwrap(), InstallOutcome::Added);
        let locked = folder.load_lock().unwrap().modules["m"].clone();
        assert_eq!((locked.version.as_str(), &locked.sha256), ("1.0.0", &one.sha256));
        assert_eq!(folder.state("m", &locked), InstalledState::Intact);
        assert_eq!(install(&folder, &one).unwrap(), InstallOutcome::Unchanged);
        assert_eq!(install(&folder, &two).unwrap(), InstallOutcome::Replaced("1.0.0".to_owned()));
        assert_eq!(folder.load_lock().unwrap().modules["m"].version, "1.1.0");
        assert_eq!(folder.state("m", &locked), InstalledState::Changed);
        folder.remove("m", Overwrite::Intact).unwrap();
        assert_eq!(folder.load_lock().unwrap(), LockFile::default());
        assert_eq!(folder.state("m", &locked), InstalledState::Missing);
        assert!(!folder.path().join("m").exists());
    }

    #[test]
    fn what_people_wrote_or_changed_stays_unless_they_say_so() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        put_folder(folder.path(), "own", &files("own", "0.1.0")).unwrap();
        let refused = install(&folder, &package("own", "1.0.0")).unwrap_err();
        assert!(refused.message().starts_with("another module is in its place: `"), "{refused}");
        assert!(
            folder
                .remove("own", Overwrite::Anything)
                .unwrap_err()
                .suggestion()
                .unwrap()
                .ends_with("so remove it yourself")
        );
        assert!(folder.path().join("own/module.yaml").exists());

        install(&folder, &package("m", "1.0.0")).unwrap();
        fs::write(folder.path().join("m/prompt.md"), "Mine.").unwrap();
        for refused in
            [install(&folder, &package("m", "1.1.0")).err(), folder.remove("m", Overwrite::Intact).err()]
        {
            let refused = refused.unwrap();
            assert!(refused.message().starts_with("the installed module was edited by hand: `"), "{refused}");
        }
        assert_eq!(fs::read_to_string(folder.path().join("m/prompt.md")).unwrap(), "Mine.");
        folder.install(&package("m", "1.1.0"), &origin(), Overwrite::Anything).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("m/prompt.md")).unwrap(), "Judge.");
    }

    #[test]
    fn nothing_outside_of_the_folder_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        fs::write(dir.path().join("mine"), "mine").unwrap();
        for name in ["../../mine", "..", "/", "", ".", "cognitive/../x"] {
            assert!(folder.remove(name, Overwrite::Anything).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("mine")).unwrap(), "mine");
    }

    // The folder changes before the lock file: a kill between the two leaves a new folder and an old entry.
    #[test]
    fn an_installation_that_was_killed_half_way_is_finished_by_the_next_command() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        install(&folder, &package("m", "1.0.0")).unwrap();
        install(&folder, &package("m", "1.1.0")).unwrap();
        let newer = folder.load_lock().unwrap().modules["m"].clone();
        install(&folder, &package("m", "1.0.0")).unwrap();
        folder.begin("m", &newer).unwrap();
        let before_the_swap = folder.path().join(PENDING);
        install(&folder, &package("n", "1.0.0")).unwrap();
        assert_eq!(folder.load_lock().unwrap().modules["m"].version, "1.0.0", "nothing had changed yet");
        assert!(!before_the_swap.exists());

        folder.begin("m", &newer).unwrap();
        put_folder(folder.path(), "m", &package("m", "1.1.0").files).unwrap();
        install(&folder, &package("n", "1.0.0")).unwrap();
        assert_eq!(folder.load_lock().unwrap().modules["m"], newer);
        assert_eq!(
            install(&folder, &package("m", "1.2.0")).unwrap(),
            InstallOutcome::Replaced("1.1.0".to_owned())
        );
    }

    // A kill during the write of one of the two files; the next installation of the same package writes neither.
    #[test]
    fn a_half_written_file_goes_with_the_next_command() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        install(&folder, &package("m", "1.0.0")).unwrap();
        let drafts = [folder.path(), dir.path()].map(|at| at.join(".cognitive.lock.part"));
        for draft in &drafts {
            fs::write(draft, "{").unwrap();
        }
        assert_eq!(install(&folder, &package("m", "1.0.0")).unwrap(), InstallOutcome::Unchanged);
        assert!(drafts.iter().all(|draft| !draft.exists()));
    }

    #[test]
    fn a_lock_file_that_is_damaged_stops_everything_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let folder = ModuleFolder::in_project(dir.path());
        fs::write(folder.lock_path(), "<<<<<<< HEAD").unwrap();
        assert!(install(&folder, &package("m", "1.0.0")).is_err());
        assert!(!folder.path().join("m").exists());
        assert_eq!(fs::read_to_string(folder.lock_path()).unwrap(), "<<<<<<< HEAD");
    }
}
