//! Packages on this machine: packing, adding, updating, removing, locking and signing.

use std::fs;
use std::process::Command;

use crate::place::Place;

#[test]
fn reg_002_the_same_folder_is_the_same_bytes_on_any_day_and_in_any_place() {
    let (one, other) = (Place::new(), Place::new());
    let first = one.packed("labels", "1.0.0");
    let folder = other.module("labels", "1.0.0");
    // Another date, other permissions, another write order, and leftovers of editors.
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for name in ["schema.json", "module.yaml", "prompt.md"] {
        let path = std::path::Path::new(&folder).join(name);
        fs::File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    }
    fs::write(format!("{folder}/.DS_Store"), "x").unwrap();
    let second = other.packed("labels", "1.0.0");
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    assert!(first.ends_with("labels-1.0.0.tar.gz"), "{first}");
}

#[test]
fn add_update_and_remove_keep_the_lock_file_right() {
    let place = Place::new();
    let (one, two) = (place.packed("labels", "1.0.0"), place.packed("labels", "1.1.0"));
    let source = place.sibling("newest.tar.gz").display().to_string();
    fs::copy(&one, &source).unwrap();
    let added = place.json(&["add", &source]);
    assert_eq!(added["modules"][0]["outcome"], "added");
    let locked = place.locked("labels");
    assert_eq!(locked["version"], "1.0.0");
    assert_eq!(
        locked["sha256"],
        place.json(&["pack", "labels"])["sha256"],
        "what is installed packs to the same bytes"
    );
    assert!(place.runs("labels"));
    assert_eq!(place.json(&["add", &source])["modules"][0]["outcome"], "unchanged");

    fs::copy(&two, &source).unwrap();
    assert_eq!(place.json(&["update", "labels", "--dry-run"])["modules"][0]["outcome"], "would be updated");
    assert_eq!(place.locked("labels"), locked);
    let updated = place.json(&["update", "--all"]);
    assert_eq!(
        (&updated["modules"][0]["outcome"], &updated["modules"][0]["previous"]),
        (&"updated".into(), &"1.0.0".into())
    );
    assert_eq!(place.locked("labels")["version"], "1.1.0");
    assert!(place.runs("labels"));

    assert_eq!(place.json(&["remove", "labels"])["removed"][0]["version"], "1.1.0");
    assert!(place.lock()["modules"].as_object().unwrap().is_empty());
    assert!(!place.path("cognitive/modules/labels").exists());
    place.refused(&["remove", "labels"], "no such installed package: `labels`");
}

#[test]
fn the_lock_file_brings_the_same_modules_to_another_checkout() {
    let place = Place::new();
    place.json(&["add", &place.packed("labels", "1.0.0")]);
    let lock = fs::read_to_string(place.path("cognitive.lock")).unwrap();
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    assert_eq!(place.json(&["install", "--locked"])["modules"][0]["outcome"], "added");
    assert!(place.runs("labels"));
    assert_eq!(fs::read_to_string(place.path("cognitive.lock")).unwrap(), lock);
    place.refused(
        &["add", "--locked", &place.packed("other", "1.0.0")],
        "no such package in the lock file: `other`",
    );
    place.refused(
        &["add", "--locked", &place.packed("labels", "2.0.0")],
        "`labels` differs from the lock file",
    );
    // The archive was replaced meanwhile.
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    fs::copy(place.packed("labels", "2.0.0"), place.sibling("packages/labels-1.0.0.tar.gz")).unwrap();
    place.refused(&["add"], "`labels` differs from the lock file");
}

#[test]
fn a_failed_installation_leaves_the_old_one_running() {
    let place = Place::new();
    place.json(&["add", &place.packed("labels", "1.0.0")]);
    let folder = place.module("labels", "2.0.0");
    fs::write(format!("{folder}/schema.json"), "{").unwrap();
    place.refused(&["add", &folder], "cannot load the module: ");
    assert!(place.runs("labels"));
    fs::write(place.path("cognitive/modules/labels/prompt.md"), "Mine.").unwrap();
    place.refused(&["add", &place.packed("labels", "3.0.0")], "the installed module was edited by hand: ");
    place.refused(&["remove", "labels"], "the installed module was edited by hand: ");
    let forced = place.run(&["add", "--force", &place.packed("labels", "3.0.0")]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert_eq!(place.locked("labels")["version"], "3.0.0");
}

#[test]
fn a_user_has_a_folder_too_and_a_project_comes_before_it() {
    let place = Place::new();
    place.json(&["add", "--user", &place.packed("labels", "1.0.0")]);
    assert!(place.sibling("home/.cognitive/cognitive.lock").is_file() && !place.path("cognitive").exists());
    assert!(place.runs("labels"));
    place.json(&["add", &place.packed("labels", "1.1.0")]);
    let list = place.json(&["list"]).to_string();
    assert!(list.contains("1.1.0") && !list.contains("\"version\":\"1.0.0\",\"name\":\"labels\""), "{list}");
    place.json(&["remove", "labels", "--user"]);
    assert!(place.runs("labels"));
}

#[test]
fn signatures_are_asked_for_and_remembered() {
    let place = Place::new();
    let key = place.sibling("key").display().to_string();
    let made = place.json(&["sign", "--generate", &key]);
    let public = made["key"].as_str().unwrap().to_owned();
    let (one, two, unsigned) =
        (place.packed("labels", "1.0.0"), place.packed("labels", "1.1.0"), place.packed("labels", "1.2.0"));
    for archive in [&one, &two] {
        place.json(&["sign", archive, "--secret-key", &key]);
    }
    assert_eq!(place.json(&["add", &one, "--key", &public])["modules"][0]["signed_by"], public.as_str());
    assert_eq!(place.locked("labels")["signed_by"], public.as_str());
    place.refused(&["add", &unsigned, "--key", &public], "the package is not signed");
    place.refused(&["add", &unsigned], "was signed by");
    // Another archive with the signature of this one.
    fs::copy(&unsigned, &two).unwrap();
    place.refused(&["add", &two, "--key", &format!("{key}.pub")], "from none of the trusted keys");
    let other = place.sibling("other").display().to_string();
    place.json(&["sign", "--generate", &other]);
    place.refused(&["add", &one, "--key", &format!("{other}.pub")], "from none of the trusted keys");
    place.refused(&["sign", "--generate", &key], "the file exists: ");
}

// The original program of the signature format, if it is installed.
#[test]
fn minisign_itself_accepts_our_signatures_and_we_accept_its() {
    let Ok(version) = Command::new("minisign").arg("-v").output() else {
        return cognitive_testkit::skip(cognitive_testkit::Lack::Minisign);
    };
    assert!(version.status.success());
    let place = Place::new();
    let (key, archive) = (place.sibling("key").display().to_string(), place.packed("labels", "1.0.0"));
    place.json(&["sign", "--generate", &key]);
    place.json(&["sign", &archive, "--secret-key", &key]);
    let minisign = |args: &[&str]| {
        let output = Command::new("minisign").args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    minisign(&["-V", "-p", &format!("{key}.pub"), "-m", &archive]);
    let theirs = place.sibling("theirs").display().to_string();
    minisign(&["-G", "-W", "-p", &format!("{theirs}.pub"), "-s", &theirs]);
    fs::remove_file(format!("{archive}.minisig")).unwrap();
    minisign(&["-S", "-W", "-s", &theirs, "-m", &archive]);
    place.json(&["add", &archive, "--key", &format!("{theirs}.pub")]);
}

#[test]
fn names_that_are_paths_are_never_removed() {
    let place = Place::new();
    for name in ["../../home/precious", "..", "/", "con", &"a".repeat(4_000)] {
        place.refused(&["remove", name, "--force"], "invalid package name: ");
    }
    assert_eq!(fs::read_to_string(place.sibling("home/precious")).unwrap(), "mine");
}
