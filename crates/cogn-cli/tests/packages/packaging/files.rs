//! The files that operators copy: the unit as systemd reads it, the scripts as bash does, and documentation that shows
//! shipped files.

use std::fs;
use std::process::Command;

use cognitive_testkit::{Lack, skip};

use super::{good, program, read, root, said};

#[test]
fn systemd_takes_the_unit_and_finds_little_that_it_could_do_harm_with() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("cogn.service");
    let shipped = read("packaging/systemd/cogn.service");
    fs::write(&unit, shipped.replace("/usr/local/bin/cogn", &program().display().to_string())).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() else {
        return skip(Lack::Systemd);
    };
    assert!(verified.status.success() && said(&verified).is_empty(), "{}", said(&verified));
    let rated = good(
        Command::new("systemd-analyze").args(["security", "--offline=yes", "--threshold=20"]).arg(&unit),
    );
    assert!(rated.contains("Overall exposure level"), "{rated}");
}

#[test]
fn the_scripts_can_be_read() {
    let mut scripts: Vec<_> = ["packaging/release", "packaging/image-root", "packaging/python/build"]
        .map(|path| root().join(path))
        .into();
    scripts.extend(fs::read_dir(root().join("packaging/lib")).unwrap().map(|entry| entry.unwrap().path()));
    assert!(scripts.len() > 5);
    for script in scripts {
        good(Command::new("bash").arg("-n").arg(script));
    }
}

#[test]
fn pages_show_the_files_that_are_shipped() {
    let page = read("docs/deploy.md");
    let block = format!("```nginx\n{}```\n", read("packaging/nginx/cogn.conf"));
    assert!(
        page.contains(&block),
        "docs/deploy.md shows another configuration than packaging/nginx/cogn.conf"
    );
}

// Files that are not listed are missing in the image build; a nonexistent name matches nothing.
#[test]
fn the_image_is_built_from_what_exists() {
    for line in read(".dockerignore").lines().filter_map(|line| line.strip_prefix('!')) {
        // Created before the image is built.
        if !line.starts_with("dist/") {
            assert!(line.ends_with('*') || root().join(line).exists(), ".dockerignore names {line}");
        }
    }
    for member in ["crates", "xtask", "modules"] {
        assert!(read(".dockerignore").lines().any(|line| line == format!("!{member}")), "{member}");
    }
}
