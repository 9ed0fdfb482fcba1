//! The modules of commands that take several: the named ones, else the user's own, and with `--bundled` also those of
//! this program.

use std::path::Path;

use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::{FoundModule, Library, ModuleOrigin};

use super::candidates;

/// Options that select modules.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ModulesArgs {
    /// Names of modules, or paths of folders; by default the module in this folder, or all of your own
    #[arg(value_name = "MODULE", add = candidates::modules())]
    modules: Vec<String>,
    /// Include the bundled modules
    #[arg(long)]
    bundled: bool,
    /// Include every module that can be run by name: yours and the bundled ones
    #[arg(long, conflicts_with = "modules")]
    all: bool,
}

impl ModulesArgs {
    /// Returns the selected names and paths. Fails if nothing was named and the user has no modules.
    pub(crate) fn names(&self, library: &Library) -> Result<Vec<String>, Failure> {
        let listed = library.list();
        let bundled = |found: &&FoundModule| found.origin == ModuleOrigin::Bundled;
        let mut names = self.modules.clone();
        if names.is_empty() {
            names = project_modules(library, &listed);
            if names.is_empty() && !self.bundled && !self.all {
                return Err(no_project_modules(library));
            }
        }
        if self.bundled || self.all {
            names.extend(listed.iter().filter(bundled).map(|found| found.name.clone()));
        }
        Ok(names)
    }
}

/// Returns the module of the current folder, or the paths of all modules that are not bundled.
fn project_modules(library: &Library, listed: &[FoundModule]) -> Vec<String> {
    if library.find("./").is_ok() && !Path::new("./cognitive/modules").is_dir() {
        return vec![".".to_owned()];
    }
    let own = listed.iter().filter(|found| found.origin != ModuleOrigin::Bundled);
    own.map(|found| found.folder.display()).collect()
}

fn no_project_modules(library: &Library) -> Failure {
    let places: Vec<String> =
        library.places().iter().map(|(_, place)| format!("`{}`", place.display())).collect();
    let message = format!("no modules of your own in: {}", places.join(", "));
    Failure::new(ErrorCode::ModuleNotFound, message)
        .suggest("Create one with `cogn init NAME`, name one, or include the bundled ones with `--bundled`")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn library(mine: &[&str]) -> (tempfile::TempDir, Library) {
        let dir = tempfile::tempdir().unwrap();
        for name in mine {
            let folder = dir.path().join("cognitive/modules").join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("module.yaml"), "name: x\n").unwrap();
        }
        let library = Library::new(dir.path(), None, &[]);
        (dir, library)
    }

    #[test]
    fn without_a_name_the_users_own_modules_are_meant() {
        let (_dir, library) = library(&["b", "a"]);
        let names = ModulesArgs::default().names(&library).unwrap();
        let ends: Vec<bool> = names.iter().zip(["/a", "/b"]).map(|(name, end)| name.ends_with(end)).collect();
        assert_eq!(ends, [true, true], "{names:?}");
        let with_ours = ModulesArgs { bundled: true, ..ModulesArgs::default() }.names(&library).unwrap();
        assert!(
            with_ours.len() > names.len() && with_ours.contains(&"summarizer".to_owned()),
            "{with_ours:?}"
        );
        let all = ModulesArgs { all: true, ..ModulesArgs::default() }.names(&library).unwrap();
        assert_eq!(all, with_ours);
    }

    #[test]
    fn nothing_of_ones_own_is_said_and_not_passed_over() {
        let (_dir, library) = library(&[]);
        let failure = ModulesArgs::default().names(&library).unwrap_err();
        assert!(failure.message().starts_with("no modules of your own in: "), "{}", failure.message());
        assert!(ModulesArgs { bundled: true, ..ModulesArgs::default() }.names(&library).is_ok());
    }
}
