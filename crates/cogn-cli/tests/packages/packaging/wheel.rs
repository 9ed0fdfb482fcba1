//! The wheel: installed into a virtual environment, under each of its names.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cognitive_testkit::{Lack, skip};

use super::{good, library, program, root, works};

/// Returns a Python that can create virtual environments.
fn packager() -> Option<OsString> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let able = std::env::split_paths(&pythons).find(|python| {
        let mut check = Command::new(python);
        check.args(["-c", "import sys, venv, ensurepip; assert sys.version_info >= (3, 10)"]);
        check.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    });
    able.map(Into::into)
}

fn build(python: &OsString, binary: &Path, out: &Path) -> Command {
    let mut build = Command::new(root().join("packaging/python/build"));
    build.arg(binary).arg(library()).arg(out).env("PYTHON", python).env("COGN_WHEEL_COMPRESSION", "1");
    build
}

#[test]
fn the_wheel_brings_the_program_under_all_its_names() {
    let Some(python) = packager() else { return skip(Lack::PythonPackager) };
    let home = tempfile::tempdir().unwrap();
    let environment = home.path().join("environment");
    let wheel = good(&mut build(&python, program(), &home.path().join("dist")));
    let wheel = wheel.trim();
    assert!(
        wheel.contains(&format!("cognitive_runtime-{}-cp310-abi3-linux_", env!("CARGO_PKG_VERSION"))),
        "{wheel}"
    );
    good(Command::new(&python).args(["-m", "venv"]).arg(&environment));
    let bin = environment.join("bin");
    good(Command::new(bin.join("pip")).args(["install", "--no-index", "--disable-pip-version-check", wheel]));
    works(&bin.join("cogn"), &[], home.path());
    works(&bin.join("cog"), &[], home.path());
    works(&bin.join("cognitive-runtime"), &[], home.path());
    works(&bin.join("python"), &["-m", "cogn"], home.path());
    let found = "import cogn; print(cogn.binary())";
    let found = good(Command::new(bin.join("python")).args(["-c", found]));
    assert_eq!(Path::new(found.trim()), bin.join("cogn"));

    fs::remove_file(bin.join("cogn")).unwrap();
    let lost = cognitive_testkit::command(bin.join("cog")).arg("--version").output().unwrap();
    let message = String::from_utf8(lost.stderr).unwrap();
    assert_eq!(lost.status.code(), Some(1));
    assert!(message.starts_with("error: cogn is in none of: ") && message.contains("reinstall"), "{message}");
}

#[test]
fn a_wheel_without_a_program_is_not_built() {
    let Some(python) = packager() else { return skip(Lack::PythonPackager) };
    let out = tempfile::tempdir().unwrap();
    let no_program = root().join("Cargo.toml");
    let built = build(&python, &no_program, out.path()).output().unwrap();
    assert!(!built.status.success());
    assert!(String::from_utf8_lossy(&built.stderr).contains("no program: "), "{built:?}");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
