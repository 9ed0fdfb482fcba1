//! `cogn types`: the types of all bundled modules as a user gets them, and `--check` as CI uses it.

use crate::home;

#[test]
fn types_are_written_checked_and_found_stale() {
    let home = home();
    for language in ["python", "pydantic", "typescript", "rust"] {
        let printed = home.cogn(&["types", "--bundled", "--lang", language]);
        assert!(printed.code == Some(0), "{printed:?}");
        let write = ["types", "--bundled", "--lang", language, "--output", "types.txt"];
        assert!(home.cogn(&write).code == Some(0));
        let text = home.read("types.txt");
        assert!(text == printed.out, "{language}: the file and stdout differ");
        for name in
            ["TextClassifierInput", "TextClassifierData", "TextClassifierEnvelope", "CodeReviewerData"]
        {
            assert!(text.contains(name), "{language} lacks {name}");
        }
        let check = [write.as_slice(), &["--check"]].concat();
        assert_eq!(home.cogn(&check).code, Some(0));
        home.write("types.txt", format!("{text}\n"));
        let stale = home.cogn(&check).expect_exit(1);
        assert!(stale.err.contains("`types.txt` is not up to date"));
    }
}

#[test]
fn without_modules_of_ones_own_a_hint_is_given() {
    let home = home();
    let empty = home.cogn(&["types", "--lang", "rust"]).expect_exit(1);
    assert!(empty.err.contains("--bundled"));
    assert!(empty.out.is_empty());
}
