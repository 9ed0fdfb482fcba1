//! Folders of git repositories, honest and hostile ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::place::{Place, module_files};

/// Creates a repository with a module in `modules/labels`, and the additions of `more`.
fn repository(place: &Place, more: impl FnOnce(&Path)) -> String {
    let folder = place.sibling("repository");
    for (path, text) in module_files("labels", "1.0.0") {
        let path = folder.join("modules/labels").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    git(&folder, &["init", "-q", "-b", "main"]);
    more(&folder);
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    git(&folder, &["tag", "v1"]);
    format!("git+file://{}", folder.display())
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn reg_004_a_folder_is_added_by_branch_or_tag_and_kept_by_its_commit() {
    let place = Place::new();
    let url = repository(&place, |_| ());
    place.json(&["add", &format!("{url}#path=modules/labels@main")]);
    let commit = git(&place.sibling("repository"), &["rev-parse", "HEAD"]);
    let locked = place.locked("labels");
    assert_eq!(locked["resolved"], format!("{url}#path=modules/labels@{commit}"));
    assert_eq!(locked["sha256"], place.json(&["pack", "labels"])["sha256"]);
    assert!(place.runs("labels"));

    fs::write(place.sibling("repository/modules/labels/prompt.md"), "Label it well.").unwrap();
    git(&place.sibling("repository"), &["commit", "-qam", "second"]);
    fs::remove_dir_all(place.path("cognitive")).unwrap();
    place.json(&["add", "--locked"]);
    assert_eq!(
        fs::read_to_string(place.path("cognitive/modules/labels/prompt.md")).unwrap(),
        "Label the text."
    );
    place.json(&["update", "labels"]);
    assert_eq!(
        fs::read_to_string(place.path("cognitive/modules/labels/prompt.md")).unwrap(),
        "Label it well."
    );
    assert_eq!(
        place.json(&["add", &format!("{url}#path=modules/labels@v1")])["modules"][0]["outcome"],
        "updated"
    );
    place.refused(&["add", &format!("{url}#path=nowhere")], "git failed: ");
    place.refused(&["add", &format!("{url}#path=modules/labels@no-such-branch")], "git failed: ");
    place.refused(&["add", &format!("git+file://{}", place.sibling("absent").display())], "git failed: ");
}

// A hook, a filter, a submodule that names a program, a link: none is executed, and files outside the module format are
// refused.
#[test]
fn hostile_repositories_run_nothing_and_write_nothing() {
    let place = Place::new();
    let trap = place.sibling("sprung");
    let url = repository(&place, |folder| {
        for hook in ["post-checkout", "post-merge", "reference-transaction", "post-index-change"] {
            let path = folder.join(".git/hooks").join(hook);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, format!("#!/bin/sh\ntouch {}\n", trap.display())).unwrap();
        }
        fs::write(folder.join(".gitattributes"), "* filter=evil\n").unwrap();
        // Submodules are not fetched, so this is a plain text file.
        let submodule = format!(
            "[submodule \"x\"]
	path = x
	url = ext::sh -c \"touch {}\"
",
            trap.display()
        );
        fs::write(folder.join(".gitmodules"), submodule).unwrap();
    });
    place.json(&["add", &format!("{url}#path=modules/labels")]);
    assert!(!trap.exists() && place.runs("labels"));
    place.json(&["remove", "labels"]);

    // git itself refuses known attacks, and the error names them.
    for (submodule, words) in [
        (format!("url = https://example.com/x\n\tupdate = !touch {}", trap.display()), "gitmodules"),
        ("url = -u./payload".to_owned(), "gitmodules"),
    ] {
        let text = format!("[submodule \"x\"]\n\tpath = x\n\t{submodule}\n");
        fs::write(place.sibling("repository/.gitmodules"), text).unwrap();
        git(&place.sibling("repository"), &["commit", "-qam", "submodule"]);
        let said = place.refused(&["add", &format!("{url}#path=modules/labels")], "git failed: ");
        assert!(said.err.contains(words), "{}", said.err);
        git(&place.sibling("repository"), &["reset", "-q", "--hard", "HEAD~1"]);
    }
    assert!(!trap.exists());

    std::os::unix::fs::symlink("/etc/passwd", place.sibling("repository/modules/labels/link")).unwrap();
    git(&place.sibling("repository"), &["add", "-A"]);
    git(&place.sibling("repository"), &["commit", "-qm", "link"]);
    place.refused(&["add", &format!("{url}#path=modules/labels")], "invalid archive: it is a link");
}

#[test]
fn addresses_that_would_run_something_are_no_addresses() {
    let place = Place::new();
    let trap = place.sibling("sprung");
    for source in [
        format!("ext::sh -c 'touch {}'", trap.display()),
        format!("git+ext::sh -c 'touch {}'", trap.display()),
        format!("git+ssh://-oProxyCommand=touch${{IFS}}{}/x", trap.display()),
        format!("git+https://example.com/x#--upload-pack=touch {}", trap.display()),
    ] {
        place.refused(&["add", &source], "unsupported package source: ");
    }
    assert!(!trap.exists());
}
