//! Guarantees of the audit: the recorded caller, retention per owner, runs whose process died, and the detection of
//! removed, changed or moved records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cognitive_contract::ports::{AuditLog, AuditRecord};
use cognitive_store::{Anchor, Breach, Filter, Retention, Store, StoreOptions, Verification};
use rusqlite::Connection;
use serde_json::json;

use crate::child::child;
use crate::common::{FIRST_VERSION, Home, at, bad, good, on_every_backend, place, where_others_find_it};

fn by(key: &str, mut record: AuditRecord) -> AuditRecord {
    record.key = Some(key.to_owned());
    record.user = Some(key.to_owned());
    record
}

fn detail(key: &str) -> AuditRecord {
    let mut record = by(key, good("t", "m"));
    record.event = "tool_call";
    record
}

fn with(path: &Path, retention: Retention) -> Store {
    Store::open_with(path, StoreOptions { retention, ..StoreOptions::default() }).unwrap()
}

fn limited(home: &Home, retention: Retention) -> Arc<Store> {
    home.open_with(StoreOptions { retention, ..StoreOptions::default() })
}

fn whole(store: &Store) -> Verification {
    let found = store.verify(&[]).unwrap();
    assert!(found.is_whole(), "{found:?}");
    found
}

/// Edits a copy of the file and returns the breaches that a verification finds.
fn after(path: &Path, sql: &str) -> Vec<Breach> {
    after_with(path, sql, &[])
}

fn after_with(path: &Path, sql: &str, anchors: &[Anchor]) -> Vec<Breach> {
    let copy = path.with_extension("copy");
    let _ = std::fs::remove_file(&copy);
    Connection::open(path).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    Connection::open(&copy).unwrap().execute_batch(sql).unwrap();
    Store::open_existing(&copy).unwrap().unwrap().verify(anchors).unwrap().breaches
}

fn ten(path: &Path) -> Store {
    let store = Store::open(path).unwrap();
    for number in 0..10 {
        let mut record = good(&format!("t{number}"), "m");
        record.payload = Some(json!({ "input": number }));
        store.record(&record).unwrap();
    }
    store
}

// H4: edits of the file are found and located.
#[test]
fn a_record_that_was_changed_removed_inserted_or_moved_is_found() {
    let (_dir, path) = place();
    let store = ten(&path);
    assert_eq!(whole(&store).records, 10);
    for (column, value) in [
        ("module", "'other'"),
        ("ok", "0"),
        ("ts", "'2020-01-01T00:00:00.000Z'"),
        ("user", "'mallory'"),
        ("input_tokens", "1"),
        ("latency_ms", "0.5"),
        ("receipt", "'{}'"),
        ("run_id", "'x'"),
        ("dropped", "1"),
    ] {
        let found = after(&path, &format!("UPDATE audit SET {column} = {value} WHERE id = 4"));
        assert_eq!(found, [Breach::Changed { id: 4, chain: 1, seq: 4 }], "{column}");
    }
    let found = after(&path, "UPDATE audit SET payload = '{\"input\":7}' WHERE id = 4");
    assert_eq!(found, [Breach::PayloadChanged { id: 4 }]);
    let missing = |from, to| [Breach::Missing { chain: 1, from, to }];
    assert_eq!(after(&path, "DELETE FROM audit WHERE id IN (4, 5)"), missing(4, 5));
    assert_eq!(after(&path, "DELETE FROM audit WHERE id = 1"), missing(1, 1));
    let cut = after(&path, "DELETE FROM audit WHERE id > 7");
    assert_eq!(cut[..1], missing(8, 10));
    let swapped = "UPDATE audit SET seq = -1 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5;
        UPDATE audit SET seq = 5 WHERE seq = -1";
    let found = after(&path, swapped);
    assert!(found.contains(&Breach::Changed { id: 5, chain: 1, seq: 4 }), "{found:?}");
    assert!(found.contains(&Breach::Misplaced { id: 5, chain: 1, seq: 4 }), "{found:?}");
    let forged = "INSERT INTO audit SELECT 11, position, bytes, ts, event, 'new', module, version, ok, code, model,
        confidence, risk, latency_ms, input_tokens, output_tokens, receipt, payload, run_id, key, user, tenant,
        payload_bytes, payload_sha256, chain, 11, dropped, hash, hash FROM audit WHERE id = 10";
    assert!(after(&path, forged).contains(&Breach::Changed { id: 11, chain: 1, seq: 11 }));
    // Faked retention: dropping from the middle leaves a gap, and dropping from the start contradicts the remaining
    // records.
    let dropped = "UPDATE audit_chains SET dropped = 3, dropped_hash = (SELECT hash FROM audit WHERE id = 3);
        DELETE FROM audit WHERE id <= 3";
    assert_eq!(after(&path, dropped), [Breach::DroppedByHand { chain: 1, said: 3, known: 0 }]);
}

// H4: only an anchor reveals a chain that was rewritten from some point on, or whose end was cut.
#[test]
fn an_anchor_that_is_kept_elsewhere_shows_a_cut_or_rewritten_end() {
    let (_dir, path) = place();
    let store = ten(&path);
    let head = store.heads().unwrap().remove(0);
    assert_eq!((head.id.as_str(), head.owner.as_str(), head.kind.as_str()), ("1.10", "", "runs"));
    let anchor: Anchor = format!("{} {}", head.id, head.hash).parse().unwrap();
    store.record(&good("later", "m")).unwrap();
    assert!(store.verify(std::slice::from_ref(&anchor)).unwrap().is_whole());
    let cut = "DELETE FROM audit WHERE id > 7;
        UPDATE audit_chains SET seq = 7, hash = (SELECT hash FROM audit WHERE id = 7)";
    assert_eq!(after(&path, cut), [], "a clean cut leaves no trace in the file");
    let anchors = [anchor];
    let broken = [Breach::AnchorBroken { anchor: anchors[0].to_string() }];
    assert_eq!(after_with(&path, cut, &anchors), broken);
    let gone = "DELETE FROM audit; DELETE FROM audit_chains";
    assert_eq!(after_with(&path, gone, &anchors), broken);
    // After retention has dropped its record, an anchor proves nothing any more, and this is reported.
    let small = with(&path, Retention { records: 2, ..Retention::default() });
    small.record(&good("a", "m")).unwrap();
    assert!(small.verify(&anchors).unwrap().is_whole(), "the last that was dropped is still known");
    small.record(&good("b", "m")).unwrap();
    assert_eq!(small.verify(&anchors).unwrap().breaches.len(), 1);
    assert!(matches!(small.verify(&anchors).unwrap().breaches[0], Breach::AnchorDropped { .. }));
    assert!(small.verify(&[]).unwrap().is_whole());
}

// H4: the chain of one owner cannot be deleted unnoticed.
#[test]
fn a_chain_that_vanished_is_missed() {
    let (_dir, path) = place();
    let store = Store::open(&path).unwrap();
    for key in ["ann", "bob", "ann"] {
        store.record(&by(key, good("t", "m"))).unwrap();
    }
    let gone = "DELETE FROM audit WHERE chain = 2; DELETE FROM audit_chains WHERE id = 2";
    assert_eq!(after(&path, gone), [Breach::Miscounted { said: 2, written: 3 }]);
    assert_eq!(
        after(&path, "DELETE FROM audit_chains WHERE id = 2"),
        [Breach::UnknownChain { chain: 2 }, Breach::Miscounted { said: 2, written: 3 }]
    );
}

on_every_backend! {
// H3: records of one owner never evict those of another, with or without payloads.
#[test]
fn the_records_of_an_owner_make_no_room_for_those_of_another(home: &Home) {
    let small = Retention { records: 40, bytes: 100_000, payload_bytes: 20_000, age: None };
    let store = limited(home, small);
    for number in 0..40 {
        let mut record = by("ann", good(&format!("ann-{number}"), "m"));
        record.payload = Some(json!("p"));
        store.record(&record).unwrap();
    }
    for number in 0..300 {
        let mut record = by("bob", bad(&format!("bob-{number}"), "m", "E1001"));
        record.payload = Some(json!("x".repeat(5_000)));
        record.receipt = json!("y".repeat(number * 10));
        store.record(&record).unwrap();
    }
    let of = |key: &str| store.list(&Filter { key: Some(key.to_owned()), ..Filter::default() }).unwrap();
    let ann = of("ann");
    assert_eq!(ann.len(), 40);
    assert!(ann.iter().all(|row| row.payload.is_some() && row.user.as_deref() == Some("ann")));
    let bob = of("bob");
    assert!(bob.len() < 40 && bob.len() > 20, "{}", bob.len());
    // With large payloads, payloads are dropped first, and the records show that they had one.
    assert_eq!(bob.iter().filter(|row| row.payload.is_some()).count(), 3);
    assert!(bob.iter().skip(3).all(|row| row.payload_dropped));
    let found = whole(&store);
    assert_eq!(found.dropped, 300 - bob.len() as u64);
    // The store reports the number, the owner and the time of drops.
    let dropped = store.dropped_records().unwrap();
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0].owner.as_str(), dropped[0].kind.as_str()), ("key:bob", "runs"));
    assert_eq!((dropped[0].records.cast_unsigned(), dropped[0].since.len()), (found.dropped, 24));
    let counts = store.drop_counts();
    assert_eq!((counts.records, counts.owners), (found.dropped, 1));
    assert!(counts.payloads >= 290, "{counts:?}");
    // A tenant has one limit, for all its keys.
    let mut record = by("bob", good("t", "m"));
    record.tenant = Some("acme".to_owned());
    assert_eq!((record.owner().as_str(), good("t", "m").owner().as_str()), ("tenant:acme", ""));
}
}

on_every_backend! {
// What a batch drops is removed once, at its end. The chain says the same as if each record had come alone.
#[test]
fn a_batch_leaves_the_same_chain_as_its_records_one_by_one(home: &Home) {
    let tight = Retention { records: 20, bytes: 9_000, payload_bytes: 300, age: None };
    let records: Vec<AuditRecord> = (0..200_usize)
        .map(|number| {
            let mut record = by(["ann", "bob"][number % 2], good(&format!("t{number}"), "m"));
            record.receipt = json!("r".repeat(number * 37 % 900));
            record.payload = (number % 3 > 0).then(|| json!("p".repeat(number * 11 % 120)));
            record
        })
        .collect();
    let alone = Store::in_memory_with(StoreOptions { retention: tight, ..StoreOptions::default() }).unwrap();
    for record in &records {
        alone.record(record).unwrap();
    }
    let batched = limited(home, tight);
    for batch in [&records[..1], &records[1..4], &records[4..40], &records[40..]] {
        batched.record_all(batch).into_iter().for_each(Result::unwrap);
    }
    assert_eq!(batched.heads().unwrap(), alone.heads().unwrap());
    assert_eq!(batched.dropped_records().unwrap(), alone.dropped_records().unwrap());
    assert_eq!(batched.list(&Filter::default()).unwrap(), alone.list(&Filter::default()).unwrap());
    assert!(whole(&batched).dropped > 100 && batched.drop_counts().payloads > 50);
    // The counts of bytes go on from the same values.
    for store in [&alone, batched.as_ref()] {
        store.record(&by("ann", good("last", "m"))).unwrap();
    }
    assert_eq!(batched.heads().unwrap(), alone.heads().unwrap());
}
}

on_every_backend! {
// S1: any number of tools that a model asks for makes no run go.
#[test]
fn details_never_displace_runs_and_calls(home: &Home) {
    let store = limited(home, Retention { records: 40, ..Retention::default() });
    for number in 0..5 {
        store.record(&by("ann", good(&format!("run-{number}"), "m"))).unwrap();
    }
    for _ in 0..10 {
        store.record_all(&(0..100).map(|_| detail("ann")).collect::<Vec<_>>());
    }
    let events = |event: &str| {
        store.list(&Filter { event: Some(event.to_owned()), ..Filter::default() }).unwrap().len()
    };
    assert_eq!((events("run"), events("tool_call")), (5, 10));
    assert_eq!(whole(&store).dropped, 990);
    // A receipt that a model inflated loses its large members, not its hashes.
    let mut fat = by("ann", good("fat", "m"));
    fat.receipt =
        json!({ "sha256": { "input": "abc" }, "tools": vec![json!({ "name": "x".repeat(100) }); 5_000] });
    store.record(&fat).unwrap();
    let row = store.find("fat").unwrap().remove(0);
    assert_eq!(row.receipt["sha256"]["input"], "abc");
    assert!(row.receipt["tools"]["omitted"].as_str().unwrap().contains("above the limit"), "{}", row.receipt);
}
}

on_every_backend! {
// H4: a call whose run has no end record is shown as unfinished.
#[test]
fn a_run_without_an_end_is_unfinished(home: &Home) {
    let store = home.open();
    let call = |run: &str, number: u32| {
        let mut record = AuditRecord::call(at(0), "trace", "m", json!({ "attempt": number }));
        run.clone_into(&mut record.run_id);
        record
    };
    let end = |run: &str| {
        let mut record = good("trace", "m");
        run.clone_into(&mut record.run_id);
        record
    };
    for record in [call("a", 1), call("a", 2), end("a"), call("b", 1), call("b", 2), end("c")] {
        store.record(&record).unwrap();
    }
    let runs = Filter { runs: true, ..Filter::default() };
    let rows = store.list(&runs).unwrap();
    let shown: Vec<_> = rows.iter().map(|row| (row.run_id.as_str(), row.unfinished)).collect();
    assert_eq!(shown, [("c", false), ("b", true), ("a", false)]);
    let outcomes: Vec<_> =
        store.find("trace").unwrap().iter().map(|row| row.to_json()["outcome"].clone()).collect();
    assert_eq!(outcomes, ["asked", "asked", "ok", "unfinished", "unfinished", "ok"]);
    let stats = store.stats(&runs).unwrap();
    assert_eq!((stats.total.runs, stats.total.unfinished, stats.total.succeeded), (2, 1, 2));
    assert_eq!(store.list(&Filter { ok: Some(false), ..runs }).unwrap().len(), 1);
}
}

on_every_backend! {
// Expired records are dropped, even those of inactive owners, and the chain records it.
#[test]
fn records_that_are_too_old_go_and_the_rest_still_verifies(home: &Home) {
    let day = Duration::from_hours(24);
    let store = limited(home, Retention { age: Some(2 * day), ..Retention::default() });
    let on = |days: u32, key: &str| {
        let mut record = by(key, good(&format!("{key}-{days}"), "m"));
        record.at = at(0) + day * days;
        record
    };
    for record in [on(0, "ann"), on(0, "bob"), on(1, "bob"), on(2, "bob")] {
        store.record(&record).unwrap();
    }
    store.record(&on(3, "eve")).unwrap();
    let left = |store: &Store| {
        let mut traces: Vec<_> =
            store.list(&Filter::default()).unwrap().into_iter().map(|row| row.trace_id).collect();
        traces.sort();
        traces.join(" ").trim().to_owned()
    };
    assert_eq!(left(&store), "bob-1 bob-2 eve-3");
    whole(&store);
    store.record(&on(30, "eve")).unwrap();
    assert_eq!(left(&store), "eve-30");
    whole(&store);
    for days in 31..40 {
        store.record(&on(days, "eve")).unwrap();
    }
    whole(&store);
    let notes = store.list(&Filter { event: Some("retention".to_owned()), ..Filter::default() }).unwrap();
    assert_eq!(notes.iter().filter(|row| row.key.as_deref() == Some("ann")).count(), 1, "one note is enough");
}
}

where_others_find_it! {
// H4: several processes write one chain, and a killed process leaves it intact.
#[test]
fn many_processes_write_one_chain(home: &Home) {
    let path = home.path();
    let mut helpers = ["a", "b", "c"].map(|name| child(&format!("write-for-ever {name}"), path));
    for helper in &mut helpers {
        helper.go();
    }
    for helper in &mut helpers {
        for _ in 0..100 {
            helper.report().unwrap();
        }
    }
    for helper in helpers {
        helper.kill();
        assert!(whole(&Store::open(path).unwrap()).records >= 200);
    }
}
}

// Records from before chains existed are accepted and counted separately.
#[test]
fn records_of_before_the_chain_stay_and_are_said_to_be_older() {
    let (_dir, path) = place();
    Connection::open(&path).unwrap().execute_batch(FIRST_VERSION).unwrap();
    let store = Store::open(&path).unwrap();
    store.record(&good("new", "m")).unwrap();
    let found = whole(&store);
    assert_eq!((found.before_chains, found.records), (1, 1));
    let rows = store.list(&Filter::default()).unwrap();
    assert_eq!((rows[0].id, rows[1].trace_id.as_str(), &rows[1].link), (8, "old", &None));
}

// More rows than are copied at once, with all kinds of values.
#[test]
fn a_copy_has_everything_and_one_that_does_not_verify_leaves_nothing() {
    let homes = [Some(Home::in_memory()), Some(Home::on_sqlite()), Home::on_postgres()];
    for home in homes.into_iter().flatten() {
        let (_dir, path) = place();
        let store = Store::open(&path).unwrap();
        let records: Vec<AuditRecord> = (0..600)
            .map(|number| {
                let mut record = by(["ann", "bob"][number % 2], good(&format!("t{number}"), "m"));
                record.payload = (number % 3 == 0).then(|| json!({ "input": number }));
                record
            })
            .collect();
        store.record_all(&records).into_iter().for_each(Result::unwrap);
        let damaged = path.with_extension("damaged");
        Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [damaged.to_str().unwrap()]).unwrap();
        let change = "UPDATE audit SET module = 'x' WHERE id = 300";
        Connection::open(&damaged).unwrap().execute_batch(change).unwrap();
        let target = home.open();
        let refused = Store::open(&damaged).unwrap().copy_into(&target).unwrap_err().to_string();
        assert!(refused.contains("the copy does not verify: record 300"), "{refused}");
        assert_eq!(target.list(&Filter::default()).unwrap(), []);
        let copy = store.copy_into(&target).unwrap();
        assert_eq!((copy.chains, copy.verified), (2, 600));
        assert_eq!(target.list(&Filter::default()).unwrap(), store.list(&Filter::default()).unwrap());
        assert_eq!(target.heads().unwrap(), store.heads().unwrap());
    }
}
