//! Several processes on one store, and processes that die during a write.

use std::collections::HashSet;
use std::path::Path;

use cognitive_store::{Filter, Store};
use rusqlite::Connection;

use crate::child::child;
use crate::common::place;

pub fn integrity(path: &Path) -> String {
    let raw = Connection::open(path).unwrap();
    raw.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap()
}

/// Returns whether a file has no damage; always true for a server.
pub fn is_sound(path: &Path) -> bool {
    !path.exists() || integrity(path) == "ok"
}

#[test]
fn d_04_two_processes_that_write_at_once_lose_nothing() {
    let (_dir, path) = place();
    // Neither process has opened the store before the start, so both also create it concurrently.
    let mut helpers = ["a", "b"].map(|name| child(&format!("write {name}"), &path));
    for helper in &mut helpers {
        assert_eq!(helper.report().as_deref(), Some("ready"));
    }
    helpers.iter_mut().for_each(crate::child::Helper::go);
    for helper in &mut helpers {
        assert_eq!(helper.rest().len(), 500);
    }
    let rows = Store::open(&path).unwrap().list(&Filter::default()).unwrap();
    let traces: HashSet<String> = rows.iter().map(|row| row.trace_id.clone()).collect();
    let expected = ["a", "b"].iter().flat_map(|name| (0..500).map(move |number| format!("{name}-{number}")));
    assert_eq!(traces, expected.collect());
    assert_eq!((rows.len(), rows[0].id), (1_000, 1_000));
    assert_eq!(integrity(&path), "ok");
}

#[test]
fn a_process_that_is_killed_leaves_a_whole_file_with_all_it_acknowledged() {
    let (_dir, path) = place();
    for round in 0..50 {
        let mut helper = child(&format!("write-for-ever {round}"), &path);
        helper.go();
        let mut kept = Vec::new();
        // From "while it opens" to "while it drops old records".
        while kept.len() < round * 5 {
            kept.push(helper.report().unwrap());
        }
        kept.extend(helper.kill());
        assert_eq!(integrity(&path), "ok", "round {round}");
        let store = Store::open(&path).unwrap();
        let there: HashSet<String> =
            store.list(&Filter::default()).unwrap().into_iter().map(|row| row.trace_id).collect();
        // The writer may have run so far ahead that its own limit dropped its first records.
        for trace in kept.iter().filter(|trace| *trace != "ready").rev().take(1_000) {
            assert!(there.contains(trace), "round {round}: {trace} was acknowledged");
        }
    }
}
