//! Finds the project: the current folder, or the nearest parent that has a `cognitive.yaml` or modules.
//! Only visits parents with the same owner and file system that are not world-writable, and never goes above the home
//! folder.
//! Files that another user left in `/tmp` or on a mounted disk are therefore no project.

use std::fs;
use std::path::{Path, PathBuf};

use crate::layers::PROJECT_FILE;
use crate::platform;

/// Module folders, relative to a project.
const MODULE_FOLDERS: [&str; 2] = ["cognitive/modules", ".cognitive/modules"];

/// Returns the folder of the project that contains `start`, or `start` itself. The path is relative to `start`, to keep
/// messages short.
#[must_use]
pub fn find(start: &Path, home: Option<&Path>) -> PathBuf {
    let here = || start.to_owned();
    let Ok(real) = start.canonicalize() else { return here() };
    let Ok(first) = fs::metadata(&real) else { return here() };
    let home = home.and_then(|home| home.canonicalize().ok());
    let mut way = here();
    let mut below = real.as_path();
    loop {
        if is_project(below, home.as_deref()) {
            return way;
        }
        if Some(below) == home.as_deref() {
            return here();
        }
        let Some(above) = below.parent() else { return here() };
        if !fs::metadata(above).is_ok_and(|above| platform::is_as_safe_as(&above, &first)) {
            return here();
        }
        below = above;
        way = if way == Path::new(".") { PathBuf::from("..") } else { way.join("..") };
    }
}

/// Returns whether a folder is a project. Modules in the home folder belong to the user, not to a project.
fn is_project(folder: &Path, home: Option<&Path>) -> bool {
    let [visible, hidden] = MODULE_FOLDERS.map(|modules| folder.join(modules).is_dir());
    visible || (hidden && Some(folder) != home) || folder.join(PROJECT_FILE).is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A folder tree `home/desk/deep/er` with the files of a test.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("home/desk/deep/er")).unwrap();
            Self(dir)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        /// Searches from a folder and returns the result as a real path.
        fn found(&self, start: &str) -> PathBuf {
            let found = find(&self.at(start), Some(&self.at("home"))).canonicalize().unwrap();
            found.strip_prefix(self.0.path().canonicalize().unwrap()).unwrap().to_owned()
        }
    }

    #[test]
    fn the_nearest_folder_with_a_file_or_modules_is_the_project() {
        let tree = Tree::new();
        assert_eq!(tree.found("home/desk/deep/er"), Path::new("home/desk/deep/er"), "there is none");
        fs::write(tree.at("home/desk/cognitive.yaml"), "").unwrap();
        assert_eq!(tree.found("home/desk/deep/er"), Path::new("home/desk"));
        assert_eq!(tree.found("home/desk"), Path::new("home/desk"));
        fs::create_dir_all(tree.at("home/desk/deep/.cognitive/modules")).unwrap();
        assert_eq!(tree.found("home/desk/deep/er"), Path::new("home/desk/deep"));
    }

    #[test]
    fn the_home_folder_is_the_last_and_its_hidden_modules_are_no_project() {
        let tree = Tree::new();
        fs::write(tree.at("cognitive.yaml"), "").unwrap();
        fs::create_dir_all(tree.at("home/.cognitive/modules")).unwrap();
        assert_eq!(
            tree.found("home/desk/deep"),
            Path::new("home/desk/deep"),
            "beyond home nothing is looked at"
        );
        fs::create_dir_all(tree.at("home/cognitive/modules")).unwrap();
        assert_eq!(tree.found("home/desk/deep"), Path::new("home"));
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_searched() {
        let tree = Tree::new();
        fs::write(tree.at("home/desk/cognitive.yaml"), "base_url: https://thief\n").unwrap();
        fs::set_permissions(tree.at("home/desk"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(tree.found("home/desk/deep/er"), Path::new("home/desk/deep/er"));
        assert_eq!(tree.found("home/desk"), Path::new("home/desk"), "the current folder is always searched");
    }

    // Only root can change the owner of a folder; without root the test does nothing.
    #[test]
    fn a_folder_of_another_user_is_not_searched() {
        let tree = Tree::new();
        fs::write(tree.at("home/desk/cognitive.yaml"), "").unwrap();
        if std::os::unix::fs::chown(tree.at("home/desk"), Some(12_345), None).is_err() {
            return;
        }
        assert_eq!(tree.found("home/desk/deep/er"), Path::new("home/desk/deep/er"));
    }
}
