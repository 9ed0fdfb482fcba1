//! `cogn types`: the types of all bundled modules as a user gets them, and `--check` as CI uses it.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::Output;

fn cogn(folder: &Path, args: &[&str]) -> Output {
    let mut command = cognitive_testkit::command(env!("CARGO_BIN_EXE_cogn"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).output().unwrap()
}

#[test]
fn types_are_written_checked_and_found_stale() {
    let folder = tempfile::tempdir().unwrap();
    for language in ["python", "pydantic", "typescript", "rust"] {
        let printed = cogn(folder.path(), &["types", "--bundled", "--lang", language]);
        assert!(printed.status.success(), "{printed:?}");
        let write = ["types", "--bundled", "--lang", language, "--output", "types.txt"];
        assert!(cogn(folder.path(), &write).status.success());
        let written = fs::read(folder.path().join("types.txt")).unwrap();
        assert!(written == printed.stdout, "{language}: the file and stdout differ");
        let text = String::from_utf8(written).unwrap();
        for name in
            ["TextClassifierInput", "TextClassifierData", "TextClassifierEnvelope", "CodeReviewerData"]
        {
            assert!(text.contains(name), "{language} lacks {name}");
        }
        let check = [write.as_slice(), &["--check"]].concat();
        assert_eq!(cogn(folder.path(), &check).status.code(), Some(0));
        fs::write(folder.path().join("types.txt"), format!("{text}\n")).unwrap();
        let stale = cogn(folder.path(), &check);
        assert_eq!(stale.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&stale.stderr).contains("`types.txt` is not up to date"));
    }
}

#[test]
fn without_modules_of_ones_own_a_hint_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let empty = cogn(folder.path(), &["types", "--lang", "rust"]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&empty.stderr).contains("--bundled"));
    assert!(empty.stdout.is_empty());
}
