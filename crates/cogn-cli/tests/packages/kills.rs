//! SIGKILL at any moment: afterwards the old or the new package is installed completely, and the next command works.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::Place;

/// The number of kills, and the number that must come before the end of the installation.
const MOMENTS: u32 = 60;
const KILLS: u32 = MOMENTS / 4;

/// Returns the duration of an uninterrupted installation.
fn usual(place: &Place, one: &str, two: &str) -> Duration {
    let began = Instant::now();
    for archive in [two, one] {
        assert_eq!(place.run(&["add", archive]).code, Some(0));
    }
    began.elapsed() / 2
}

#[test]
fn a_kill_at_any_moment_leaves_a_module_that_runs() {
    let place = Place::new();
    let (one, two) = (place.packed("labels", "1.0.0"), place.packed("labels", "2.0.0"));
    place.json(&["add", &one]);
    // Only chooses the moments. If the machine has become faster, it is measured again.
    let mut whole = usual(&place, &one, &two);
    let versions = |version: &str| place.module("labels", version);
    let trees = ["1.0.0", "2.0.0"]
        .map(|version| fs::read_to_string(format!("{}/module.yaml", versions(version))).unwrap());
    let (mut killed, mut moment) = (0, 0);
    while moment < MOMENTS || killed < KILLS {
        let archive = if moment % 2 == 0 { &two } else { &one };
        let mut command = place.command(&["add", archive]);
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        // From the first moment to a little after the last one.
        let (began, until) = (Instant::now(), whole * (moment % MOMENTS) * 5 / (MOMENTS * 4));
        while began.elapsed() < until && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        if child.try_wait().unwrap().is_none() {
            killed += 1;
        } else {
            whole = whole.min(began.elapsed());
        }
        let _ended_already = child.kill();
        child.wait().unwrap();

        let manifest = fs::read_to_string(place.path("cognitive/modules/labels/module.yaml")).unwrap();
        assert!(trees.contains(&manifest), "moment {moment}: {manifest}");
        assert_eq!(fs::read_dir(place.path("cognitive/modules/labels/tests")).unwrap().count(), 2);
        assert!(place.lock()["modules"]["labels"].is_object(), "moment {moment}");
        moment += 1;
    }
    assert!(place.runs("labels"));
    // The next installation removes all leftovers and repairs the lock file, without `--force`.
    place.json(&["add", &two]);
    let left: Vec<_> = fs::read_dir(place.path("cognitive/modules"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["labels"]);
    assert_eq!(place.locked("labels")["version"], "2.0.0");
    assert_eq!(place.locked("labels")["sha256"], place.json(&["pack", "labels"])["sha256"]);
}
