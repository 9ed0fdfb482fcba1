//! The Python package as programs use it: the wheel is built from the libraries of this test, installed, and its own
//! tests (`packaging/python/tests`) run against it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, a panic is the report")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cognitive_testkit::{Lack, skip, weights};
use tempfile::TempDir;

/// Returns the first Python that can do this.
fn python(able: &str) -> Option<OsString> {
    let pythons = std::env::var_os("COGN_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let found = std::env::split_paths(&pythons).find(|python| {
        let mut check = Command::new(python);
        check.arg("-c").arg(format!("import sys; assert sys.version_info >= (3, 10)\nimport {able}"));
        check.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    });
    found.map(Into::into)
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/python").canonicalize().unwrap()
}

fn good(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds the wheel, in a separate folder.
fn wheel(python: &OsString, home: &Path) -> PathBuf {
    let library = std::env::current_exe().unwrap().with_file_name("libcogn_python.so");
    let mut build = Command::new(package().join("build"));
    build.arg(env!("CARGO_BIN_EXE_cogn")).arg(library).arg(home.join("dist"));
    build.env("PYTHON", python).env("COGN_WHEEL_COMPRESSION", "1");
    PathBuf::from(good(&mut build).trim())
}

// API-001, STREAM-024: the code of V25 §10.2 runs as printed (`test_specification.py`). API-002: the functions of the
// guide (`test_run.py`). All tests of the package, with only the wheel of this checkout.
#[test]
fn the_tests_of_the_package_pass() {
    let Some(python) = python("pytest, pydantic, mypy, pyright, pip") else { return skip(Lack::PythonTests) };
    let home = TempDir::new().unwrap();
    let wheel = wheel(&python, home.path());
    let site = home.path().join("site");
    let mut install = Command::new(&python);
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--disable-pip-version-check",
    ]);
    good(install.arg("--target").arg(&site).arg(&wheel));
    let mut tests = cognitive_testkit::command(&python);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", "tests"]);
    tests.current_dir(package()).env("PYTHONPATH", &site).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.stdin(Stdio::null());
    if let Some(weights) = weights() {
        tests.env("COGN_MODEL", weights);
    }
    let shared = package().join("../../../shared/spec/spec-v2.5.md");
    if shared.exists() {
        tests.env("COGN_TEST_SPEC", shared);
    } else {
        skip(Lack::Shared);
    }
    // The tests of columns are skipped without these packages.
    if self::python("pyarrow, pandas, polars, daft").is_none() {
        skip(Lack::DataEngines);
    }
    println!("{}", good(&mut tests));
}

/// The first steps of a new user: a fresh environment, the wheel, three lines.
#[test]
fn a_fresh_environment_has_an_envelope_after_three_lines() {
    let Some(python) = python("venv, ensurepip") else { return skip(Lack::PythonPackager) };
    let Some(weights) = weights() else { return };
    let home = TempDir::new().unwrap();
    let wheel = wheel(&python, home.path());
    let environment = home.path().join("environment");
    good(Command::new(&python).args(["-m", "venv"]).arg(&environment));
    let own = environment.join("bin/python");
    let mut install = Command::new(&own);
    install.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]);
    good(install.arg(&wheel));
    let lines = "import cogn\nenvelope = cogn.run('text-classifier', {'text': 'What a wonderful day!'})\nprint(envelope.json())\n";
    let mut three = cognitive_testkit::command(&own);
    three
        .args(["-c", lines])
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("COGN_MODEL", weights);
    let envelope = good(&mut three);
    assert!(envelope.starts_with(r#"{"ok":true,"#), "{envelope}");
    let size = fs::metadata(&wheel).unwrap().len();
    let time = import_time(&own, home.path());
    println!("wheel of this profile: {} kB; `import cogn`: {time:.1} ms", size / 1000);
    assert!(time <= 100.0, "`import cogn` takes {time} ms");
}

/// Returns the shortest of several imports, in milliseconds of CPU time, which other processes do not affect.
fn import_time(python: &Path, home: &Path) -> f64 {
    let timed =
        "import time; began = time.process_time(); import cogn; print((time.process_time() - began) * 1000)";
    let once = || {
        let mut import = Command::new(python);
        import.args(["-c", timed]).current_dir(home);
        good(&mut import).trim().parse::<f64>().unwrap()
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}
