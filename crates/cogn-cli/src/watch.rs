//! `--watch`: runs an action at once and again after each change to the files of a module. Polls names, sizes and times
//! a few times per second: that needs no system service, and works on network drives and in containers.
//! Ends with Ctrl-C. Reads no file contents.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, thread};

use cognitive_library::Library;

use crate::printer::{FAINT, Printer};

/// The interval between two polls: short enough for users, long enough to save power.
const PAUSE: Duration = Duration::from_millis(250);
/// The maximum depth of folders within a module folder. Deep trees would slow down each poll.
const MAX_DEPTH: usize = 6;
/// The maximum number of watched files, because each poll reads the state of all of them.
const MAX_FILES: usize = 5_000;

/// The state of the files: length and time of the last change.
type FileStates = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Calls `act` at once and after every change to a module: the named ones, and all that can be run by name, because
/// they may be parts of those.
pub(crate) fn repeat(library: &Library, names: &[String], printer: &Printer, mut act: impl FnMut()) {
    let files = || states(&folders(library, names));
    let pause = || {
        thread::sleep(PAUSE);
        true
    };
    on_change(files, pause, |changed| {
        if io::stdout().is_terminal() {
            // Clears the screen and the scrollback, so that only current output is visible.
            printer.print_line("\u{1b}[H\u{1b}[2J\u{1b}[3J");
        } else if let Some(file) = changed {
            printer.print_line(format!("{FAINT}changed: {}{FAINT:#}", file.display()));
        }
        act();
        printer.err(format!("{FAINT}watching; Ctrl-C stops{FAINT:#}"));
    });
}

/// Calls `act` at once, and with the first changed file after each change, while `pause` returns true.
fn on_change(
    files: impl Fn() -> FileStates,
    mut pause: impl FnMut() -> bool,
    mut act: impl FnMut(Option<&Path>),
) {
    // The state is read before the work, so that changes during it are noticed.
    let mut known = files();
    act(None);
    while pause() {
        let now = files();
        if let Some(file) = difference(&known, &now) {
            known = now;
            act(Some(&file));
        }
    }
}

/// Returns the first file that is new, removed or changed.
fn difference(before: &FileStates, after: &FileStates) -> Option<PathBuf> {
    let gone = before.keys().find(|file| !after.contains_key(*file));
    let changed = after.iter().find(|(file, state)| before.get(*file) != Some(state)).map(|(file, _)| file);
    changed.or(gone).cloned()
}

/// Returns the folders of the named modules and of all installed ones. Missing folders are looked up again each time.
fn folders(library: &Library, names: &[String]) -> Vec<PathBuf> {
    let asked_for = names.iter().map(|name| match library.find_folder(name) {
        Ok(folder) => folder.path().map(Path::to_path_buf),
        Err(_) => Some(PathBuf::from(name)),
    });
    let installed = library.list().into_iter().map(|found| found.folder.path().map(Path::to_path_buf));
    asked_for.chain(installed).flatten().collect()
}

fn states(folders: &[PathBuf]) -> FileStates {
    let mut states = FileStates::new();
    for folder in folders {
        gather(folder, MAX_DEPTH, &mut states);
    }
    states
}

fn gather(folder: &Path, depth: usize, states: &mut FileStates) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if states.len() >= MAX_FILES || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        let Ok(about) = entry.metadata() else { continue };
        if about.is_file() {
            states.insert(entry.path(), (about.len(), about.modified().ok()));
        } else if about.is_dir() && depth > 0 {
            gather(&entry.path(), depth - 1, states);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_noticed_once_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("m");
        fs::create_dir_all(module.join("tests")).unwrap();
        fs::write(module.join("module.yaml"), "a").unwrap();
        let folders = [module.clone()];
        let mut steps: Vec<Box<dyn Fn()>> = vec![
            Box::new(|| fs::write(module.join("module.yaml"), "longer").unwrap()),
            Box::new(|| {}),
            Box::new(|| fs::write(module.join("tests/one.input.json"), "{}").unwrap()),
            Box::new(|| fs::write(module.join(".swap"), "hidden").unwrap()),
            Box::new(|| fs::remove_file(module.join("module.yaml")).unwrap()),
        ];
        steps.reverse();
        let mut seen = Vec::new();
        let pause = || steps.pop().map(|step| step()).is_some();
        on_change(
            || states(&folders),
            pause,
            |file| seen.push(file.and_then(Path::file_name).map(ToOwned::to_owned)),
        );
        let seen: Vec<String> =
            seen.into_iter().map(|file| file.unwrap_or_default().into_string().unwrap()).collect();
        assert_eq!(seen, ["", "module.yaml", "one.input.json", "module.yaml"]);
    }

    #[test]
    fn a_folder_that_appears_later_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let library = Library::new(dir.path(), None, &[]);
        let later = dir.path().join("later").display().to_string();
        let names = [later.clone()];
        let mut left = 1;
        let mut count = 0;
        let pause = || {
            fs::create_dir_all(&later).unwrap();
            fs::write(Path::new(&later).join("prompt.md"), "p").unwrap();
            left -= 1;
            left >= 0
        };
        on_change(|| states(&folders(&library, &names)), pause, |_| count += 1);
        assert_eq!(count, 2);
    }
}
