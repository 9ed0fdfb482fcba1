//! Kills a process during a save of one or of several files. The folder must then have all the old files or all the new
//! ones, never a mixture.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is the report, and the child says how far it is"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use cognitive_library::{Folder, change_folder, files_of, folder_hash};

/// The number of kills for each way of saving.
const KILLS: usize = 40;
/// The environment variable that makes this program the saving process.
const PLACE: &str = "COGN_TEST_SAVE_IN";
/// Long enough that a kill can hit a half-written file.
const LENGTH: usize = 200_000;

fn files(word: &str, several: bool) -> BTreeMap<String, Option<String>> {
    let text = || Some(word.repeat(LENGTH / word.len()));
    let names: &[&str] =
        if several { &["prompt.md", "schema.json", "tests/a.input.json"] } else { &["prompt.md"] };
    names.iter().map(|name| ((*name).to_owned(), text())).collect()
}

/// Saves one state after the other and prints a line for each, until it is killed.
fn save_for_ever(folder: &Path, several: bool) {
    for word in ["old", "new"].into_iter().cycle() {
        let hash = folder_hash(&files_of(&Folder::Disk(folder.to_owned())).unwrap());
        change_folder(folder, &hash, &files(word, several), &|| Ok(())).unwrap();
        println!("saved");
    }
}

#[test]
fn a_folder_is_old_or_new_after_a_kill() {
    if let Ok(place) = std::env::var(PLACE) {
        let (several, folder) = place.split_once(' ').unwrap();
        return save_for_ever(Path::new(folder), several == "several");
    }
    for several in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("m");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("module.yaml"), "name: m\n").unwrap();
        let untouched = folder_hash(&files_of(&Folder::Disk(folder.clone())).unwrap());
        change_folder(&folder, &untouched, &files("old", several), &|| Ok(())).unwrap();
        for kill in 0..KILLS {
            killed_while_saving(&folder, several, kill % 5 + 1);
            whole(&folder, several);
        }
        // The next save succeeds.
        let hash = folder_hash(&files_of(&Folder::Disk(folder.clone())).unwrap());
        change_folder(&folder, &hash, &files("next", several), &|| Ok(())).unwrap();
    }
}

/// Starts a saving process, and kills it during a save after the given number of saves.
fn killed_while_saving(folder: &Path, several: bool, saves: usize) {
    let how = if several { "several" } else { "one" };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["a_folder_is_old_or_new_after_a_kill", "--exact", "--nocapture"])
        .env(PLACE, format!("{how} {}", folder.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen = lines.filter(|line| line.ends_with("saved")).take(saves).count();
    assert_eq!(seen, saves);
    // SIGKILL on Unix: the process runs no further code.
    child.kill().unwrap();
    child.wait().unwrap();
}

fn whole(folder: &Path, several: bool) {
    let found = files_of(&Folder::Disk(folder.to_owned())).unwrap();
    let states = ["old", "new"].map(|word| {
        files(word, several)
            .iter()
            .all(|(path, text)| found.get(path).map(Vec::as_slice) == text.as_deref().map(str::as_bytes))
    });
    assert!(states.contains(&true), "neither the old nor the new: {:?}", found.keys().collect::<Vec<_>>());
    assert_eq!(found.len(), files("old", several).len() + 1, "nothing besides");
}
