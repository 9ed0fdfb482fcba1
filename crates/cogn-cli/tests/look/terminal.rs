//! The program in a terminal: a card instead of JSON, in the width of the terminal.

use std::process::Command;

use cognitive_testkit::{Lack, skip};

use super::stage::Stage;

/// Returns the output in a terminal of this width; `None` if `script` is not installed.
fn shown(columns: usize, line: &str) -> Option<String> {
    if Command::new("script").arg("--version").output().is_err() {
        skip(Lack::Terminal);
        return None;
    }
    let stage = Stage::new();
    let typed = format!("stty rows 40 cols {columns}; '{}' {line}", env!("CARGO_BIN_EXE_cogn"));
    let output = cognitive_testkit::command("script")
        .args(["-qec", &typed, "/dev/null"])
        .current_dir(stage.project())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", stage.home())
        .env("TERM", "xterm")
        .env("COGN_OFFLINE", "1")
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

#[test]
fn a_terminal_gets_a_card_and_json_only_where_it_is_asked_for() {
    let line = "run greeter --set name=Ann --reply reply.txt -q";
    let Some(card) = shown(100, line) else { return };
    assert!(
        card.contains("Good morning, Ann!") && card.contains('\u{1b}') && !card.contains("\"ok\""),
        "{card}"
    );
    let json = shown(100, &format!("{line} --json")).unwrap();
    assert!(json.starts_with("{\"ok\":true"), "{json}");
    let pretty = shown(100, &format!("{line} --pretty")).unwrap();
    assert!(pretty.starts_with("{\n  \"ok\": true"), "{pretty}");
}

#[test]
fn tables_are_as_wide_as_the_terminal() {
    for columns in [60, 100] {
        let Some(listed) = shown(columns, "list --color never") else { return };
        let widest = listed.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns && widest > columns - 15, "{columns}: {widest}\n{listed}");
    }
}
