//! The output for users: exit code, stdout and stderr of every command at three widths, with colour and without, as
//! files in `snapshots/`. `UPDATE_SNAPSHOTS=1 cargo test -p cogn-cli --test look` updates them; review the difference
//! before the commit. Only times, paths and ids are masked.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

mod scenes;
mod stage;
mod terminal;
mod times;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use scenes::{Scene, scenes};
use stage::{Seen, Stage};

/// The tested widths.
const WIDTHS: [usize; 3] = [60, 100, 200];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/look/snapshots")
}

/// Makes escape sequences readable.
fn readable(text: &str) -> String {
    text.replace('\u{1b}', "\\e")
}

/// Formats a scene as text: all variants in order; a variant equal to the one before is only named.
fn drawn(scene: &Scene, too_wide: &mut Vec<String>) -> String {
    let mut text = format!("$ cogn {}\n", scene.line);
    let mut before: Option<Seen> = None;
    for colour in [false, true] {
        for width in WIDTHS {
            let seen = Stage::set().see(scene, width, colour);
            let name = format!("{width} columns{}", if colour { ", colour" } else { "" });
            if before.as_ref() == Some(&seen) {
                let _ = writeln!(text, "\n===== {name}: the same");
                continue;
            }
            let _ = writeln!(text, "\n===== {name}: exit code {}", seen.code);
            for (stream, said) in [("stdout", &seen.out), ("stderr", &seen.err)] {
                if !said.is_empty() {
                    let _ = writeln!(text, "----- {stream}\n{}", readable(said).trim_end());
                }
            }
            if scene.fits && !colour {
                too_wide.extend(wider(scene, &seen, width));
            }
            before = Some(seen);
        }
        before = None;
    }
    text
}

/// Returns the lines that are wider than the terminal.
fn wider(scene: &Scene, seen: &Seen, width: usize) -> Vec<String> {
    let lines = seen.out.lines().chain(seen.err.lines()).filter(|line| line.chars().count() > width);
    lines.map(|line| format!("`cogn {}` at {width}: {line}", scene.line)).collect()
}

#[test]
fn what_people_see_is_what_was_looked_at() {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let scenes = scenes();
    let (mut different, mut too_wide) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    fs::create_dir_all(folder()).unwrap();
    for scene in &scenes {
        let path = folder().join(format!("{}.txt", scene.name));
        assert!(known.insert(path.clone()), "two scenes are called {}", scene.name);
        let now = drawn(scene, &mut too_wide);
        let was = fs::read_to_string(&path).unwrap_or_default();
        if now != was && update {
            fs::write(&path, &now).unwrap();
        } else if now != was {
            let line = now.lines().zip(was.lines()).position(|(now, was)| now != was).unwrap_or(0);
            let (now, was) = (now.lines().nth(line).unwrap_or(""), was.lines().nth(line).unwrap_or(""));
            different.push(format!("{}, line {}:\n  was {was}\n  now {now}", scene.name, line + 1));
        }
    }
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if !known.contains(&path) {
            if update {
                fs::remove_file(&path).unwrap();
            } else {
                different.push(format!("{} has no scene", path.display()));
            }
        }
    }
    assert!(too_wide.is_empty(), "{}", too_wide.join("\n"));
    assert!(different.is_empty(), "{}\n\nlook at it, then run with UPDATE_SNAPSHOTS=1", different.join("\n"));
}

// Colour adds no information to the words.
#[test]
fn colour_changes_no_word() {
    for scene in scenes().iter().filter(|scene| !scene.line.contains("completions")) {
        let (plain, colour) = (Stage::set().see(scene, 100, false), Stage::set().see(scene, 100, true));
        let bare = |text: &str| anstream::adapter::strip_str(text).to_string();
        assert_eq!((plain.code, &plain.out), (colour.code, &bare(&colour.out)), "cogn {}", scene.line);
        assert_eq!(plain.err, bare(&colour.err), "cogn {}", scene.line);
        assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'), "cogn {}", scene.line);
    }
}

// Every command must have a scene.
#[test]
fn every_command_is_looked_at() {
    let help = Stage::set().see(&Scene::read("help || --help"), 100, false).out;
    let scenes = scenes();
    let commands =
        help.lines().filter_map(|line| line.strip_prefix("  ")).filter_map(|line| line.split(' ').next());
    let commands: Vec<&str> = commands.filter(|word| !word.is_empty() && !word.starts_with('-')).collect();
    assert!(commands.len() > 20, "{commands:?}");
    for command in commands {
        let looked = scenes.iter().any(|scene| scene.line.split(' ').next() == Some(command));
        assert!(looked, "`cogn {command}` is in no scene");
        assert!(
            scenes.iter().any(|scene| scene.line == format!("{command} --help")),
            "`cogn {command} --help`"
        );
    }
}
