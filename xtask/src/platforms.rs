//! Checks that code for one operating system is in the `platform` module of its crate and has a fallback. The program is
//! run on Linux only, so these rules protect the other systems. Tests may use Unix.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{root, tests_index};

/// Words in code that depends on one system.
const OF_ONE_SYSTEM: [&str; 7] =
    ["std::os::", "rustix::", "signal::unix", "target_os", "target_vendor", "(unix", "(windows"];

fn is_platform(file: &Path) -> bool {
    file.ends_with("platform.rs") || file.parent().is_some_and(|folder| folder.ends_with("platform"))
}

/// The lines of a file in the shipped program: no comments, and nothing after the start of the tests.
fn shipped(text: &str) -> impl Iterator<Item = &str> {
    let lines = text
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"));
    lines.filter(|line| !line.trim_start().starts_with("//"))
}

/// The sources of all crates, without files that contain only tests.
fn sources() -> Vec<PathBuf> {
    let holds_tests = |file: &Path| {
        file.components()
            .any(|part| ["tests", "tests.rs", "benches"].iter().any(|name| part.as_os_str() == *name))
    };
    let files = tests_index::rust_files(&root()).into_iter();
    files
        .filter(|file| file.components().any(|part| part.as_os_str() == "crates") && !holds_tests(file))
        .collect()
}

/// The functions and constants that the rest of a crate uses.
fn offered(text: &str) -> Vec<&str> {
    let after = text.split("pub(crate) ").skip(1);
    let names = after.filter_map(|rest| {
        let rest = rest.strip_prefix("async ").unwrap_or(rest);
        rest.strip_prefix("fn ").or_else(|| rest.strip_prefix("const "))
    });
    names.filter_map(|rest| rest.split(['(', ':', '<']).next()).collect()
}

#[test]
fn only_platform_modules_ask_which_system_it_is() {
    let mut looked_at = 0;
    for file in sources().into_iter().filter(|file| !is_platform(file)) {
        let text = fs::read_to_string(&file).unwrap();
        for line in shipped(&text) {
            for word in OF_ONE_SYSTEM {
                assert!(
                    !line.contains(word),
                    "{}: `{word}` belongs into the `platform` module of the crate: {line}",
                    file.display()
                );
            }
        }
        looked_at += 1;
    }
    assert!(looked_at > 200, "only {looked_at} files were found; has the check gone blind?");
}

#[test]
fn every_platform_function_has_a_fallback() {
    let mut compared = 0;
    for file in sources().into_iter().filter(|file| is_platform(file)) {
        let text = fs::read_to_string(&file).unwrap();
        if file.ends_with("platform/unix.rs") {
            let other = fs::read_to_string(file.with_file_name("fallback.rs")).unwrap();
            let (unix, other): (BTreeSet<_>, BTreeSet<_>) =
                (offered(&text).into_iter().collect(), offered(&other).into_iter().collect());
            assert_eq!(unix, other, "{} and its `fallback.rs` offer different things", file.display());
            compared += unix.len();
        } else if file.ends_with("platform.rs") {
            let names = offered(&text);
            for name in &names {
                let versions = names.iter().filter(|other| *other == name).count();
                assert!(versions > 1, "{}: `{name}` has no fallback", file.display());
            }
            compared += names.len();
        }
    }
    assert!(compared > 30, "only {compared} functions were found; has the check gone blind?");
}

#[test]
fn the_checks_see_what_they_are_for() {
    let text = "use std::os::unix::fs::symlink;\n// std::os::\n#[cfg(test)]\nuse std::os::unix::net;";
    assert_eq!(shipped(text).collect::<Vec<_>>(), ["use std::os::unix::fs::symlink;"]);
    let text =
        "pub(crate) const A: u8 = 1;\npub(crate) async fn b() {}\npub(crate) fn c<T>(t: T) {}\nfn d() {}";
    assert_eq!(offered(text), ["A", "b", "c"]);
}
