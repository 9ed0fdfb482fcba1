//! Searches modules: an explicit path, the project, the home directory, extra paths, the bundle. The first match wins.
//! Backups and hidden folders are never modules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure, Format, Module};

use crate::folder::Folder;
use crate::load::load;
use crate::{bundled_modules, formats};

/// The kind of place where a module was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModuleOrigin {
    /// Named by its path.
    Path,
    /// `./cognitive/modules` or `./.cognitive/modules`.
    Project,
    /// `~/.cognitive/modules`.
    User,
    /// An entry of `COGNITIVE_MODULES_PATH`.
    Extra,
    /// Part of the binary.
    Bundled,
}

/// The search path, in order. Built once by the caller: this crate reads neither the home directory nor the
/// environment.
#[derive(Debug, Clone, Default)]
pub struct Library {
    places: Vec<(ModuleOrigin, PathBuf)>,
}

/// A module that was found, not yet loaded.
#[derive(Debug, Clone)]
pub struct FoundModule {
    /// The name that runs it.
    pub name: String,
    /// The kind of place where it was found.
    pub origin: ModuleOrigin,
    /// Its files.
    pub folder: Folder,
    /// The later places with a module of this name, which this one shadows. Filled by `list` only.
    pub hides: Vec<ModuleOrigin>,
}

impl FoundModule {
    fn new(name: &str, origin: ModuleOrigin, folder: Folder) -> Self {
        Self { name: name.to_owned(), origin, folder, hides: Vec::new() }
    }
}

impl ModuleOrigin {
    /// The name shown to users.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Project => "project",
            Self::User => "user",
            Self::Extra => "extra",
            Self::Bundled => "bundled",
        }
    }
}

impl Library {
    /// The default search path. `project` is the working directory, `home` the user's, `extra` comes from the
    /// environment.
    #[must_use]
    pub fn new(project: &Path, home: Option<&Path>, extra: &[PathBuf]) -> Self {
        let mut places = vec![
            (ModuleOrigin::Project, project.join("cognitive/modules")),
            (ModuleOrigin::Project, project.join(".cognitive/modules")),
        ];
        places.extend(home.map(|home| (ModuleOrigin::User, home.join(".cognitive/modules"))));
        places.extend(extra.iter().map(|path| (ModuleOrigin::Extra, path.clone())));
        Self { places }
    }

    /// Adds folders that are searched before all others.
    #[must_use]
    pub fn with_folders(mut self, folders: &[PathBuf]) -> Self {
        self.places.splice(0..0, folders.iter().map(|folder| (ModuleOrigin::Extra, folder.clone())));
        self
    }

    /// The search path, in order.
    #[must_use]
    pub fn places(&self) -> &[(ModuleOrigin, PathBuf)] {
        &self.places
    }

    /// Finds a module by name or path. Returns E4006 with a suggestion if none exists.
    pub fn find(&self, name: &str) -> Result<FoundModule, Failure> {
        if is_path(name) {
            return find_path(name);
        }
        self.candidates(name).next().ok_or_else(|| self.not_found(name))
    }

    /// Every module of a name, in search order: the first one runs and shadows the others.
    #[must_use]
    pub fn all_of(&self, name: &str) -> Vec<FoundModule> {
        self.candidates(name).collect()
    }

    fn candidates<'a>(&'a self, name: &'a str) -> impl Iterator<Item = FoundModule> + 'a {
        let on_disk =
            self.places.iter().filter(|_| is_module_name(name)).filter_map(move |(origin, place)| {
                let folder = Folder::Disk(place.join(name));
                is_module(&folder).then(|| FoundModule::new(name, *origin, folder))
            });
        let bundled = std::iter::once_with(move || {
            bundled_modules::find(name).map(|folder| FoundModule::new(name, ModuleOrigin::Bundled, folder))
        });
        on_disk.chain(bundled.flatten())
    }

    /// Returns the folder at a path, even if it has no module, or the folder of the module with this name.
    pub fn find_folder(&self, name: &str) -> Result<Folder, Failure> {
        if is_path(name) && Path::new(name).is_dir() {
            return Ok(Folder::Disk(PathBuf::from(name)));
        }
        self.find(name).map(|found| found.folder)
    }

    /// Finds and loads a module.
    pub fn load(&self, name: &str) -> Result<Module, Failure> {
        load(&self.find(name)?.folder).map_err(crate::load::ModuleLoadError::into_failure)
    }

    /// Every module that can be run by name, sorted. A shadowed module appears only in the `hides` of the first one.
    #[must_use]
    pub fn list(&self) -> Vec<FoundModule> {
        let mut found: Vec<FoundModule> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut add = |candidate: FoundModule| match places.get(&candidate.name) {
            Some(known) => {
                if let Some(known) = found.get_mut(*known) {
                    known.hides.push(candidate.origin);
                }
            }
            None => {
                places.insert(candidate.name.clone(), found.len());
                found.push(candidate);
            }
        };
        for (origin, place) in &self.places {
            for name in Folder::Disk(place.clone()).names() {
                let folder = Folder::Disk(place.join(&name));
                if is_module_name(&name) && is_module(&folder) {
                    add(FoundModule::new(&name, *origin, folder));
                }
            }
        }
        for name in bundled_modules::names() {
            if let Some(folder) = bundled_modules::find(name) {
                add(FoundModule::new(name, ModuleOrigin::Bundled, folder));
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    fn not_found(&self, name: &str) -> Failure {
        let failure = Failure::new(ErrorCode::ModuleNotFound, format!("module not found: `{name}`"));
        let known = self.list();
        match nearest(name, known.iter().map(|found| found.name.as_str())) {
            Some(known) => failure
                .suggest(format!("Did you mean `{known}`? `cogn list` shows all modules"))
                .suggest_remotely(format!("Did you mean `{known}`? `GET /api/modules` lists all modules")),
            None => failure
                .suggest(
                    "`cogn list` lists the installed modules; for a folder, use a path such as `./my-module`",
                )
                .suggest_remotely("`GET /api/modules` lists all modules"),
        }
    }
}

/// Returns whether an argument is a path and not the name of an installed module.
fn is_path(name: &str) -> bool {
    name.starts_with('.') || name.contains(['/', '\\'])
}

/// Returns whether a name stays inside the folder it is looked up in and is neither hidden nor a backup.
fn is_module_name(name: &str) -> bool {
    !name.is_empty() && !is_path(name) && !name.contains("_backup_")
}

fn is_module(folder: &Folder) -> bool {
    Format::from_files(folder.names().iter().map(String::as_str)).is_some()
}

fn find_path(name: &str) -> Result<FoundModule, Failure> {
    let folder = Folder::Disk(PathBuf::from(name));
    if !Path::new(name).is_dir() {
        let failure = Failure::new(ErrorCode::ModuleNotFound, format!("no such folder: `{name}`"));
        return Err(failure.suggest("A name without slash is looked up among the installed modules"));
    }
    if formats::read(&folder).is_none() {
        return Err(crate::load::ModuleLoadError::NotAModule { folder: name.to_owned() }.into_failure());
    }
    Ok(FoundModule::new(&folder.name(), ModuleOrigin::Path, folder))
}

/// Suggests the known name nearest to an unknown one, if it is near enough.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|known| (distance(known, name), known)).min_by_key(|(far, _)| *far);
    near.filter(|(far, _)| *far <= name.len() / 3 + 1).map(|(_, known)| known)
}

/// The edit distance, for "did you mean". Reads 80 characters of each text, because its cost grows with their product.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(80).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(80).enumerate() {
        let mut previous = i;
        let mut next = vec![i + 1];
        for (to, above) in b.iter().zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or(previous);
            next.push((previous + usize::from(from != *to)).min(above + 1).min(left + 1));
            previous = *above;
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

impl ModuleSource for Library {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        self.load(name).map(Arc::new)
    }

    fn names(&self) -> Vec<String> {
        self.list().into_iter().map(|found| found.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn module(place: &Path, name: &str, version: &str) {
        let folder = place.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("module.yaml"), format!("name: {name}\nversion: {version}\ntier: exec\n"))
            .unwrap();
        fs::write(folder.join("prompt.md"), "p").unwrap();
        fs::write(folder.join("schema.json"), r#"{"input": {}, "data": {}}"#).unwrap();
    }

    #[test]
    fn fmt_009_the_project_comes_before_home_extra_paths_and_the_bundle() {
        let dir = tempfile::tempdir().unwrap();
        let (project, home, extra) = (dir.path().join("p"), dir.path().join("h"), dir.path().join("x"));
        let library = Library::new(&project, Some(&home), std::slice::from_ref(&extra));
        let version = || library.load("summarizer").unwrap().manifest.version;
        assert_eq!(library.find("summarizer").unwrap().origin, ModuleOrigin::Bundled);
        module(&extra, "summarizer", "0.0.4");
        assert_eq!(version(), "0.0.4");
        module(&home.join(".cognitive/modules"), "summarizer", "0.0.3");
        assert_eq!(version(), "0.0.3");
        module(&project.join(".cognitive/modules"), "summarizer", "0.0.2");
        assert_eq!(version(), "0.0.2");
        module(&project.join("cognitive/modules"), "summarizer", "0.0.1");
        assert_eq!(version(), "0.0.1");
        let listed = library.list();
        let [found] = listed.iter().filter(|found| found.name == "summarizer").collect::<Vec<_>>()[..] else {
            panic!("{listed:?}")
        };
        let all: Vec<ModuleOrigin> = library.all_of("summarizer").iter().map(|found| found.origin).collect();
        assert_eq!((all[0], &all[1..]), (found.origin, &found.hides[..]));
        assert!(library.all_of("../summarizer").is_empty() && library.all_of("none").is_empty());
        assert_eq!(
            found.hides,
            [ModuleOrigin::Project, ModuleOrigin::User, ModuleOrigin::Extra, ModuleOrigin::Bundled]
        );
    }

    #[test]
    fn fmt_010_what_is_not_there_is_e4006_with_a_suggestion() {
        let library = Library::default();
        let failure = library.load("sumarizer").unwrap_err();
        assert_eq!(failure.code(), ErrorCode::ModuleNotFound);
        assert_eq!(failure.suggestion(), Some("Did you mean `summarizer`? `cogn list` shows all modules"));
        assert_eq!(library.load("./nowhere").unwrap_err().code(), ErrorCode::ModuleNotFound);
    }

    #[test]
    fn backups_hidden_folders_and_climbing_names_are_no_modules() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("cognitive/modules");
        module(&place, "good", "1.0.0");
        module(&place, "good_backup_20260101_000000", "1.0.0");
        module(&place, ".hidden", "1.0.0");
        let library = Library::new(dir.path(), None, &[]);
        let on_disk: Vec<String> = library
            .list()
            .into_iter()
            .filter(|found| found.origin == ModuleOrigin::Project)
            .map(|found| found.name)
            .collect();
        assert_eq!(on_disk, ["good"]);
        assert!(library.find("good_backup_20260101_000000").is_err());
        assert!(library.find("..").is_err());
    }

    #[test]
    fn every_bundled_module_loads_without_a_warning() {
        for name in bundled_modules::names() {
            let module = Library::default().load(name).unwrap();
            assert_eq!(module.manifest.name, name);
            assert!(module.warnings.is_empty());
        }
        assert_eq!(bundled_modules::names().count(), 14);
    }
}
