//! `cogn context` as a process: what one command keeps the next one finds, for the same user only.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home of its own.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Exit code, stdout and stderr of a command.
    fn cogn(&self, args: &[&str], stdin: &str) -> (i32, String, String) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cogn"))
            .arg("context")
            .args(args)
            .current_dir(self.0.path())
            .env_clear()
            .env("HOME", self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input closes the pipe; that is its right.
        let _unread = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.cogn(args, "");
        assert_eq!(code, 0, "{args:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }
}

#[test]
fn s_23_what_is_set_is_found_by_its_user_only() {
    let home = Home::new();
    let set = ["set", "user_profile", r#"{"expertise_level":"expert"}"#, "--user", "ann"];
    assert_eq!(home.cogn(&set, ""), (0, String::new(), "kept as `user_profile`\n".to_owned()));
    assert_eq!(home.json(&["get", "user_profile", "--user", "ann"]), json!({ "expertise_level": "expert" }));
    for other in [&["get", "user_profile", "--user", "bob"][..], &["get", "user_profile"]] {
        let (code, out, err) = home.cogn(other, "");
        assert_eq!((code, out.as_str()), (1, ""), "{other:?}");
        assert!(
            err.starts_with("error: no such context is kept for this user: `user_profile`\nhint: "),
            "{err}"
        );
    }
    assert_eq!(home.json(&["list", "--user", "bob", "--json"]), json!([]));
    assert_eq!(home.cogn(&["list"], "").2, "no context is kept here\n");
    let listed = home.json(&["list", "--user", "ann", "--json"]);
    assert_eq!((&listed[0]["ttl"], &listed[0]["ends"]), (&json!(-1), &Value::Null));
}

#[test]
fn sessions_are_apart_and_see_what_belongs_to_the_user() {
    let home = Home::new();
    home.cogn(&["set", "session_state", "-", "--session", "s1", "--ttl", "3600"], r#"{"n": 1}"#);
    home.cogn(&["set", "session_state", "plain words", "--session", "s2"], "");
    home.cogn(&["set", "user_profile", "7", "--key", "mine"], "");
    let kinds = |args: &[&str]| {
        let listed = home.json(args);
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|each| each["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(&["list", "--json", "--session", "s1"]), ["mine", "s1:session_state"]);
    assert_eq!(kinds(&["list", "session_state", "--json"]), ["s2:session_state", "s1:session_state"]);
    assert_eq!(home.json(&["get", "session_state", "--session", "s1"]), json!({ "n": 1 }));
    assert_eq!(home.json(&["get", "session_state", "s2:session_state"]), json!("plain words"));
    let table = home.cogn(&["list"], "").1;
    assert!(table.starts_with("TYPE") && table.lines().count() == 4, "{table}");
}

#[test]
fn entries_are_removed_one_by_one_or_all_of_a_type() {
    let home = Home::new();
    for key in ["a", "b", "c"] {
        home.cogn(&["set", "t", "1", "--key", key], "");
    }
    assert_eq!(home.json(&["rm", "t", "a", "--json"]), json!({ "removed": 1 }));
    assert_eq!(home.cogn(&["rm", "t", "a"], "").0, 1);
    assert_eq!(home.cogn(&["rm", "t"], "").0, 2, "what is to be removed has to be said");
    assert_eq!(home.json(&["rm", "t", "--all", "--json"]), json!({ "removed": 2 }));
    assert_eq!(home.json(&["gc", "--json"]), json!({ "removed": 0 }));
    assert_eq!(home.cogn(&["set", "t", "1", "--ttl", "0"], "").0, 2);
}

#[test]
fn looking_creates_no_store() {
    let home = Home::new();
    assert_eq!(home.cogn(&["list"], "").0, 0);
    assert_eq!(home.cogn(&["gc"], "").0, 0);
    assert!(!home.0.path().join(".cognitive").exists());
}
