//! The npm packages: installed into a folder, started and stopped through the launcher.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use cognitive_testkit::{Lack, skip};
use tempfile::TempDir;

use super::{at_home, good, program, root, said, works};

/// Returns the platform in Node's notation, if Node and npm are installed.
fn platform() -> Option<String> {
    Command::new("npm").arg("--version").stdout(Stdio::null()).status().ok()?;
    let node = Command::new("node").args(["-p", "process.platform + '-' + process.arch"]).output().ok()?;
    Some(String::from_utf8(node.stdout).unwrap().trim().to_owned())
}

/// Installs both packages into a folder, without a registry.
fn install() -> Option<TempDir> {
    let Some(platform) = platform() else {
        skip(Lack::Node);
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("dist");
    let packages = good(
        at_home("node", home.path())
            .arg(root().join("packaging/npm/pack.mjs"))
            .arg(&out)
            .arg(format!("{platform}={}", program().display())),
    );
    assert_eq!(packages.lines().count(), 2, "{packages}");
    let mut install = at_home("npm", home.path());
    install.args(["install", "--offline", "--no-audit", "--no-fund", "--prefix"]).arg(home.path());
    good(install.args(packages.lines()));
    Some(home)
}

#[test]
fn the_packages_bring_the_program_under_all_its_names() {
    let Some(home) = install() else { return };
    let bin = home.path().join("node_modules/.bin");
    for name in ["cogn", "cog", "cognitive-runtime"] {
        works(&bin.join(name), &[], home.path());
    }
    a_signal_reaches_the_program(&bin.join("cogn"), home.path());

    fs::remove_dir_all(home.path().join("node_modules/@cognitive-runtime")).unwrap();
    let missing = at_home(bin.join("cogn"), home.path()).arg("--version").output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(said(&missing).contains("hint: Install without `--omit=optional`"), "{}", said(&missing));
}

/// Checks that a signal to the launcher shuts down the server behind it gracefully.
fn a_signal_reaches_the_program(launcher: &Path, home: &Path) {
    let mut command = at_home(launcher, home);
    command.args(["serve", "--port", "0", "--provider", "ollama", "--quiet"]).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://"), "{line}");
    good(Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest == "stopped\n", "{rest}");
}
