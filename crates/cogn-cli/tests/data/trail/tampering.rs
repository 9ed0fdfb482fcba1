//! An attacker edits the database file. `cogn audit verify` reports the changes, and fails.

use std::path::Path;

use rusqlite::Connection;

use super::fixture::{ANN, Act, BOB, Home, Server, Service};
use serde_json::json;

/// Creates a home with some runs of two keys.
fn recorded() -> Home {
    let home = Home::new("");
    let service = Service::start(|_| Act::Answer);
    let keys = home.path().join("keys").display().to_string();
    let server = Server::start(&home, &service, &["--keys", &keys]);
    for number in 0..6 {
        let key = if number % 2 == 0 { ANN } else { BOB };
        let answer = server.answer(&format!("authorization: Bearer {key}\r\n"), &json!({ "text": "<t>" }));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.stop();
    home
}

fn edit(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

// Forged, dropped and swapped records are found.
#[test]
fn forged_dropped_and_swapped_records_are_found() {
    let home = recorded();
    let copy = home.path().join("copy.db");
    let database = home.database();
    edit(&database, "PRAGMA wal_checkpoint(TRUNCATE)");
    let head = String::from_utf8(home.cogn(&["audit", "head"]).stdout).unwrap();
    assert_eq!(head.lines().count(), 2, "{head}");
    std::fs::write(home.path().join("noted"), &head).unwrap();
    let verify = |sql: &str, more: &[&str]| {
        std::fs::copy(&database, &copy).unwrap();
        edit(&copy, sql);
        let output =
            home.command(&["audit", "verify"]).args(more).env("COGNITIVE_DB", &copy).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let anchors = ["--anchors", "noted"];
    let (code, said) = verify("", &anchors);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("intact: 12 records in 2 chains, 2 anchors"), "{said}");
    for (what, sql, expected) in [
        ("forged", "UPDATE audit SET model = 'cheap/one' WHERE id = 6", "record 6 (1.4) was changed"),
        ("another user", "UPDATE audit SET user = 'bob' WHERE id = 1", "record 1 (1.1) was changed"),
        ("dropped", "DELETE FROM audit WHERE id = 6", "record 1.4 is missing"),
        ("dropped call", "DELETE FROM audit WHERE event = 'call' AND id = 3", "record 2.1 is missing"),
        ("cut", "DELETE FROM audit WHERE id > 8", "records 1.5 to 1.6 are missing"),
        (
            "swapped",
            "UPDATE audit SET seq = 99 WHERE id = 1; UPDATE audit SET seq = 1 WHERE id = 2;
             UPDATE audit SET seq = 2 WHERE id = 1",
            "record 2 (1.1) was changed",
        ),
        (
            "all of bob",
            "DELETE FROM audit WHERE chain = 2; DELETE FROM audit_chains WHERE id = 2",
            "the chains have 6",
        ),
    ] {
        let (code, said) = verify(sql, &[]);
        assert_eq!(code, Some(1), "{what}: {said}");
        assert!(said.contains(expected) && said.contains("not intact"), "{what}: {said}");
    }
    // A clean truncation is detected by an anchor that is stored elsewhere.
    let cut = "DELETE FROM audit WHERE id > 8;
        UPDATE audit_chains SET seq = (SELECT max(seq) FROM audit WHERE chain = audit_chains.id),
            hash = (SELECT hash FROM audit WHERE chain = audit_chains.id ORDER BY seq DESC LIMIT 1)";
    assert_eq!(verify(cut, &[]).0, Some(0));
    let (code, said) = verify(cut, &anchors);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the record of the anchor is missing or was changed"), "{said}");
    let wrong = home.cogn(&["audit", "verify", "--anchor", "nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
}
