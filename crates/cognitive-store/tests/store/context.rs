//! Context on disk: its owner, its lifetime, its limits, and the state after processes die.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cognitive_contract::context::{Caps, ContextEntry, ContextFilter, ContextScope, Key, Owner, Ttl};
use cognitive_contract::ports::ContextStore;
use cognitive_store::{Filter, Store, StoreOptions};
use cognitive_testkit::{MemoryContext, SeededRandom};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::child::child;
use crate::common::{FIRST_VERSION, Home, at, on_every_backend, place, state, where_others_find_it};
use crate::processes::integrity;

fn ann() -> Owner {
    Owner::user(Some("ann"))
}

fn all(store: &dyn ContextStore, owner: &Owner, now: SystemTime) -> Vec<ContextEntry> {
    store.list(owner, ContextFilter::default(), now).unwrap()
}

fn rows(path: &Path) -> i64 {
    let raw = Connection::open(path).unwrap();
    raw.query_row("SELECT count(*) FROM context", [], |row| row.get(0)).unwrap()
}

#[test]
fn an_entry_comes_back_as_it_was_also_after_the_store_was_closed() {
    let (_dir, path) = place();
    let key = Key {
        text: "k".to_owned(),
        session: Some("s".to_owned()),
        input_hash: Some("h".to_owned()),
        pattern: Some("${session_id}".to_owned()),
    };
    let value = json!({ "b": [1, 2.5, null], "a": "ü\u{0}\u{1b}" });
    let entry = ContextEntry::new("t", key, value, Ttl::Seconds(60), at(0)).with_module("m");
    Store::open(&path).unwrap().put(&ann(), &entry, at(0)).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.get(&ann(), "t", "k", at(59)).unwrap(), Some(entry.clone()));
    assert_eq!(all(&store, &ann(), at(59)), [entry]);
    let raw = Connection::open(&path).unwrap();
    let ends: String = raw.query_row("SELECT ends FROM context", [], |row| row.get(0)).unwrap();
    assert_eq!(ends, "2026-01-02T03:05:05.000Z");
}

on_every_backend! {
#[test]
fn nobody_sees_the_context_of_another(home: &Home) {
    let store = home.open();
    let owners = [ann(), Owner::user(Some("ANN")), Owner::user(None), Owner::new(Some("acme"), Some("ann"))];
    for (number, owner) in owners.iter().enumerate() {
        store.put(owner, &state("k", number, -1), at(0)).unwrap();
    }
    for (number, owner) in owners.iter().enumerate() {
        let seen = all(&*store, owner, at(1));
        assert_eq!((seen.len(), &seen[0].value), (1, &json!(number)));
        assert_eq!(store.get(owner, "session_state", "k", at(1)).unwrap().unwrap().value, json!(number));
    }
    for eve in ["eve", "ann' OR '1'='1", "%", "*"].map(|name| Owner::user(Some(name))) {
        assert!(all(&*store, &eve, at(1)).is_empty());
        assert_eq!(store.get(&eve, "session_state", "k", at(1)).unwrap(), None);
        assert!(!store.remove(&eve, "session_state", "k").unwrap());
    }
    assert!(store.remove(&ann(), "session_state", "k").unwrap());
    assert_eq!(all(&*store, &owners[1], at(1)).len(), 1);
}
}

// CTX-022: expires at its age, and is removed on access.
#[test]
fn ctx_022_what_has_expired_is_not_given_out_and_goes_on_access() {
    let (_dir, path) = place();
    let store = Store::open(&path).unwrap();
    for (key, ttl) in [("minute", 60), ("hour", 3_600), ("never", -1), ("request", 0)] {
        store.put(&ann(), &state(key, 1, ttl), at(0)).unwrap();
    }
    assert_eq!(rows(&path), 3, "what is for the request only is not kept");
    assert!(store.get(&ann(), "session_state", "minute", at(59)).unwrap().is_some());
    assert_eq!(store.get(&ann(), "session_state", "minute", at(60)).unwrap(), None);
    assert_eq!(rows(&path), 2);
    store.put(&Owner::user(Some("bob")), &state("later", 1, 60), at(3_600)).unwrap();
    assert_eq!(rows(&path), 2, "writing is access, too");
    assert_eq!((store.gc(at(9_999)), store.gc(at(9_999))), (Ok(1), Ok(0)));
    assert_eq!(all(&store, &ann(), at(u64::from(u32::MAX)))[0].key.text, "never");
}

on_every_backend! {
#[test]
fn the_oldest_goes_first_and_the_usual_limits_are_1_000_entries_and_10_mib(home: &Home) {
    let store = home.open();
    for number in 0..1_001 {
        store.put(&ann(), &state(&number.to_string(), number, -1), at(0)).unwrap();
    }
    store.put(&ann(), &state("1", 7, -1), at(0)).unwrap();
    let kept = all(&*store, &ann(), at(0));
    assert_eq!((kept.len(), kept[0].key.text.as_str(), kept[999].key.text.as_str()), (1_000, "1", "2"));

    let mut large = state("", 0, -1);
    large.value = json!("x".repeat(1_000_000));
    for number in 0..15 {
        large.key = Key::plain(&format!("large-{number}"));
        store.put(&ann(), &large, at(0)).unwrap();
    }
    let kept = all(&*store, &ann(), at(0));
    assert_eq!(
        (kept.len(), kept[0].key.text.as_str(), kept[9].key.text.as_str()),
        (10, "large-14", "large-5")
    );
    large.value = json!("x".repeat(2 << 20));
    let error = store.put(&ann(), &large, at(0)).unwrap_err();
    assert!(error.ends_with("the limit is 1048576"), "{error}");
    assert_eq!(all(&*store, &ann(), at(0)), kept);
}
}

on_every_backend! {
// The store on disk and the one in memory implement the same port: after the same operations, they answer the same.
#[test]
fn ctx_022_both_stores_answer_the_same_whatever_is_done(home: &Home) {
    let caps = Caps { entries: 12, bytes: 4_000 };
    let disk = home.open_with(StoreOptions { caps, ..StoreOptions::default() });
    let memory = MemoryContext::with_caps(caps);
    let owners = [ann(), Owner::user(Some("bob")), Owner::new(Some("t"), Some("ann"))];
    let bound = [None, Some("s1"), Some("s2")];
    let mut dice = SeededRandom::new(0x0dd_ba11);
    let mut now = 0;
    for step in 0..5_000_u64 {
        let owner = &owners[dice.index(3)];
        let kind = ["a", "b"][dice.index(2)];
        let key = format!("k{}", dice.next_below(6));
        let session = bound[dice.index(3)];
        now += dice.next_below(3);
        match dice.next_below(6) {
            0..=2 => {
                let ttl = [0, 5, 20, -1][dice.index(4)];
                let text = "x".repeat(dice.index(500));
                let key = Key { session: session.map(str::to_owned), ..Key::plain(&key) };
                let value = json!({ "step": step, "text": text });
                let entry = ContextEntry::new(kind, key, value, Ttl::parse(ttl).unwrap(), at(now));
                let put = disk.put(owner, &entry, at(now));
                assert_eq!(put, memory.put(owner, &entry, at(now)), "step {step}");
            }
            3 => assert_eq!(disk.remove(owner, kind, &key), memory.remove(owner, kind, &key), "step {step}"),
            4 => assert_eq!(disk.get(owner, kind, &key, at(now)), memory.get(owner, kind, &key, at(now))),
            _ => assert_eq!(disk.gc(at(now)), memory.gc(at(now)), "step {step}"),
        }
        let filter = ContextFilter {
            kind: (dice.next_below(2) == 0).then_some(kind),
            from: (dice.next_below(2) == 0).then_some(ContextScope { session, input_hash: None }),
        };
        let listed = ContextStore::list(&*disk, owner, filter, at(now)).unwrap();
        assert_eq!(listed, memory.list(owner, filter, at(now)).unwrap(), "step {step}");
    }
}
}

#[test]
fn a_file_of_the_first_version_is_brought_up_to_date_and_keeps_its_records() {
    let (_dir, path) = place();
    Connection::open(&path).unwrap().execute_batch(FIRST_VERSION).unwrap();
    let store = Store::open(&path).unwrap();
    store.put(&ann(), &state("k", 1, -1), at(0)).unwrap();
    assert_eq!((all(&store, &ann(), at(0)).len(), store.list(&Filter::default()).unwrap().len()), (1, 1));
}

#[test]
fn reading_waits_for_a_writer_only_if_something_has_to_be_removed() {
    let (_dir, path) = place();
    let store = Store::open(&path).unwrap();
    store.put(&ann(), &state("minute", 1, 60), at(0)).unwrap();
    store.put(&ann(), &state("never", 2, -1), at(0)).unwrap();
    drop(store);
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = StoreOptions { patience: Duration::from_millis(50), ..StoreOptions::default() };
    let store = Store::open_with(&path, impatient).unwrap();
    assert_eq!(all(&store, &ann(), at(59)).len(), 2, "nothing is to be removed, so nobody is waited for");
    let error = ContextStore::list(&store, &ann(), ContextFilter::default(), at(60)).unwrap_err();
    assert!(error.contains("other processes locked it"), "{error}");
    blocker.execute_batch("COMMIT").unwrap();
    assert_eq!(all(&store, &ann(), at(60)).len(), 1);
}

/// Runs a job in another process and returns its last report.
fn done(job: &str, path: &Path) -> String {
    let mut helper = child(job, path);
    helper.go();
    helper.rest().pop().unwrap()
}

where_others_find_it! {
// CTX-008: emitted in one process and accepted in another, in time, by the same user only.
#[test]
fn ctx_008_022_two_processes_share_one_store(home: &Home) {
    let path = home.path();
    assert_eq!(done("emit ann", path), "kept");
    assert_eq!(done("accept ann", path), "1");
    assert_eq!(done("accept bob", path), "");
    let store = Store::open(path).unwrap();
    assert_eq!(all(&store, &ann(), at(59)).len(), 1);
    assert!(all(&store, &ann(), at(60)).is_empty());
    assert_eq!(done("accept ann", path), "", "what has expired for one is gone for all");
}
}

/// Kills a writer repeatedly, each time a little later. Every acknowledged entry must exist, and the file must be
/// intact.
fn kill_writers(rounds: usize) {
    let (_dir, path) = place();
    for round in 0..rounds {
        let name = format!("writer-{round}");
        let mut helper = child(&format!("emit-for-ever {name}"), &path);
        helper.go();
        let mut kept: Vec<String> = Vec::new();
        while kept.len() < round % 40 {
            kept.push(helper.report().unwrap());
        }
        kept.extend(helper.kill());
        assert_eq!(integrity(&path), "ok", "round {round}");
        let store = Store::open(&path).unwrap();
        let there: HashMap<String, Value> = all(&store, &Owner::user(Some(&name)), at(0))
            .into_iter()
            .map(|entry| (entry.key.text, entry.value))
            .collect();
        // The writer may have run so far ahead that its own first entries were evicted.
        for said in kept.iter().filter(|said| *said != "ready").rev().take(400) {
            let (key, number) = said.split_once(' ').unwrap();
            let found = there.get(key).and_then(Value::as_u64);
            let said: u64 = number.parse().unwrap();
            // One more write may be stored but not yet acknowledged.
            let fine =
                if key == "same" { found.is_some_and(|found| found >= said) } else { found == Some(said) };
            assert!(fine, "round {round}: {key} {said} was acknowledged, there is {found:?}");
        }
    }
}

#[test]
fn context_that_was_acknowledged_survives_the_death_of_the_process() {
    kill_writers(20);
}

#[test]
#[ignore = "takes half a minute; the short one above runs always"]
fn context_that_was_acknowledged_survives_200_deaths() {
    kill_writers(200);
}

// D-22: entries of a file without key patterns stay readable, also if the file can only be read.
#[test]
fn d_22_entries_of_before_the_key_patterns_are_kept() {
    let (_dir, path) = place();
    let key = Key { session: Some("s".to_owned()), ..Key::plain("k") };
    let entry = ContextEntry::new("t", key, json!({ "n": 1 }), Ttl::Forever, at(0)).with_module("m");
    Store::open(&path).unwrap().put(&ann(), &entry, at(0)).unwrap();
    let file = Connection::open(&path).unwrap();
    let older = "DROP TABLE row_changes; DROP TABLE row_chains; ALTER TABLE context DROP COLUMN pattern;
        PRAGMA user_version = 6";
    file.execute_batch(older).unwrap();
    drop(file);
    let read_only = Store::open_existing(&path).unwrap().unwrap();
    assert_eq!(all(&read_only, &ann(), at(1)), std::slice::from_ref(&entry));
    drop(read_only);
    let store = Store::open(&path).unwrap();
    assert_eq!(all(&store, &ann(), at(1)), std::slice::from_ref(&entry));
    let keyed =
        Key { text: "other".to_owned(), pattern: Some("${module}:x".to_owned()), ..entry.key.clone() };
    let newer = ContextEntry::new("t", keyed, json!(2), Ttl::Forever, at(2)).with_module("m");
    store.put(&ann(), &newer, at(2)).unwrap();
    assert_eq!(all(&store, &ann(), at(3)).len(), 2);
}
