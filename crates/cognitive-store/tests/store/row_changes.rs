//! The tables beside the audit: whoever edits, empties or sets back their rows is found, also after all stored sums were
//! computed again.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cognitive_contract::context::{Caps, ContextEntry, Key, Owner, Ttl};
use cognitive_contract::money::Money;
use cognitive_contract::ports::ContextStore;
use cognitive_ports::review::{ReviewEntry, ReviewQueue, Verdict};
use cognitive_ports::spending::{DayBudget, SpendingEntry, SpendingLedger, day_of};
use cognitive_store::{Anchor, Breach, ReviewLimits, Store, StoreOptions, StoredReviewQueue, Verification};
use rusqlite::Connection;
use serde_json::json;

use crate::common::{Home, on_every_backend, place, where_others_find_it};
use crate::review::{block_on, entry, verdict};

fn now() -> SystemTime {
    SystemTime::now()
}

fn pico(amount: u64) -> Money {
    Money::from_pico(amount)
}

fn spend(store: &Store, id: &str, day: u64) {
    let until = now() + Duration::from_hours(1);
    let entry = SpendingEntry {
        id: id.to_owned(),
        day,
        key: "ann".to_owned(),
        reserved: pico(100),
        sent: pico(0),
        until,
    };
    let budget = DayBudget { per_day: Some(Money::MAX), per_key: None };
    store.cover(&entry, &budget, now()).unwrap().unwrap();
}

fn put(store: &Store, key: &str, number: usize, ttl: i64) {
    let ttl = Ttl::parse(ttl).unwrap();
    let entry = ContextEntry::new("session_state", Key::plain(key), json!(number), ttl, now());
    store.put(&Owner::user(None), &entry, now()).unwrap();
}

/// Fills every table: two settled runs and one in flight, a decided and an open review, two entries of context.
fn filled(store: &Arc<Store>) {
    let today = day_of(now());
    for id in ["a", "b", "c"] {
        spend(store, id, today);
    }
    store.settle("a", pico(40)).unwrap();
    store.settle("b", pico(60)).unwrap();
    let queue = StoredReviewQueue::new(Arc::clone(store), ReviewLimits::default(), true);
    for trace in ["t1", "t2"] {
        let entry = ReviewEntry { trace_id: trace.to_owned(), ..entry("m", 0.5) };
        block_on(queue.enter(&entry)).unwrap();
    }
    queue.decide("1", &verdict(Verdict::Approve)).unwrap();
    put(store, "x", 1, -1);
    put(store, "x", 2, -1);
    put(store, "y", 3, 3_600);
}

fn intact(store: &Store, anchors: &[Anchor]) -> Verification {
    let found = store.verify(anchors).unwrap();
    assert!(found.is_whole(), "{found:?}");
    found
}

fn anchors(store: &Store) -> Vec<Anchor> {
    store.heads().unwrap().iter().map(|head| format!("{} {}", head.id, head.hash).parse().unwrap()).collect()
}

/// Edits a copy of the file and returns the breaches that a verification finds.
fn after(path: &Path, anchors: &[Anchor], edit: impl FnOnce(&Connection)) -> Vec<Breach> {
    let copy = path.with_extension("copy");
    let _ = std::fs::remove_file(&copy);
    Connection::open(path).unwrap().execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    edit(&Connection::open(&copy).unwrap());
    Store::open_existing(&copy).unwrap().unwrap().verify(anchors).unwrap().breaches
}

fn by_sql(path: &Path, sql: &str) -> Vec<Breach> {
    after(path, &[], |file| file.execute_batch(&format!("PRAGMA foreign_keys = 0; {sql}")).unwrap())
}

on_every_backend! {
    #[test]
    fn every_table_is_verified(home: &Home) {
        let store = home.open();
        filled(&store);
        assert_eq!(intact(&store, &[]).rows, 3 + 2 + 1 + 2);
        let heads = store.heads().unwrap();
        for table in ["context", "decisions", "reviews", "spending"] {
            assert!(heads.iter().any(|head| head.kind == table), "{table}: {heads:?}");
        }
        let anchors = anchors(&store);
        filled_again(&store);
        intact(&store, &anchors);
    }

    #[test]
    fn a_long_chain_is_shortened_and_still_describes_every_row(home: &Home) {
        let store = home.open();
        put(&store, "stays", 0, -1);
        for number in 0..2_100 {
            put(&store, "x", number, -1);
        }
        put(&store, "y", 0, -1);
        let found = intact(&store, &[]);
        assert_eq!(found.rows, 3);
        assert!(store.remove(&Owner::user(None), "session_state", "stays").unwrap());
        assert_eq!(intact(&store, &[]).rows, 2);
    }

    #[test]
    fn old_days_are_purged_and_expired_context_may_be_gone(home: &Home) {
        let store = home.open();
        let today = day_of(now());
        spend(&store, "old", today - 40);
        spend(&store, "older", today - 41);
        put(&store, "x", 1, 60);
        let anchors = anchors(&store);
        spend(&store, "new", today);
        assert_eq!(intact(&store, &anchors).rows, 2);
        assert_eq!(store.gc(now() + Duration::from_hours(1)).unwrap(), 1);
        let gone = store.verify(&[]).unwrap().breaches;
        assert!(matches!(gone[..], [Breach::RowMissing { table: "context", .. }]), "not expired yet: {gone:?}");
    }
}

fn filled_again(store: &Store) {
    store.settle("c", pico(10)).unwrap();
    spend(store, "d", day_of(now()));
    put(store, "y", 4, 3_600);
    put(store, "z", 5, -1);
}

where_others_find_it! {
    #[test]
    fn several_writers_share_the_chains(home: &Home) {
        let stores: Vec<_> = (0..3).map(|_| home.open()).collect();
        std::thread::scope(|scope| {
            for (number, store) in stores.iter().enumerate() {
                scope.spawn(move || {
                    for run in 0..20 {
                        let id = format!("{number}-{run}");
                        spend(store, &id, day_of(now()));
                        put(store, &format!("k{run}"), number, -1);
                        store.settle(&id, pico(1)).unwrap();
                    }
                });
            }
        });
        assert_eq!(intact(&stores[0], &[]).rows, 60 + 20);
    }

    #[test]
    fn evicted_context_is_recorded(home: &Home) {
        let caps = Caps { entries: 3, ..Caps::default() };
        let store = home.open_with(StoreOptions { caps, ..StoreOptions::default() });
        for number in 0..10 {
            put(&store, &format!("k{number}"), number, -1);
        }
        assert_eq!(intact(&store, &[]).rows, 3);
    }
}

#[test]
fn edited_emptied_and_inserted_rows_are_found() {
    let (_dir, path) = place();
    let store = Arc::new(Store::open(&path).unwrap());
    filled(&store);
    for (table, id, column) in [
        ("spending", "'a'", "sent = 0"),
        ("spending", "'c'", "reserved = 0"),
        ("spending", "'c'", "until = NULL"),
        ("spending", "'a'", "key = 'bob'"),
        ("reviews", "1", "is_open = 1"),
        ("reviews", "2", "risk = 'high'"),
        ("reviews", "2", "input = '{}'"),
        ("decisions", "1", "verdict = 'reject'"),
        ("decisions", "1", "by = 'mallory'"),
        ("context", "3", "value = '9'"),
        ("context", "3", "user = 'mallory'"),
    ] {
        let key = if table == "decisions" { "seq" } else { "id" };
        let found = by_sql(&path, &format!("UPDATE {table} SET {column} WHERE {key} = {id}"));
        assert!(
            matches!(&found[..], [Breach::RowChanged { table: told, .. }] if *told == table),
            "{column}: {found:?}"
        );
    }
    for (table, rows) in [("spending", 3), ("reviews", 2), ("decisions", 1), ("context", 2)] {
        let found = by_sql(&path, &format!("DELETE FROM {table}"));
        let missing =
            |breach: &&Breach| matches!(breach, Breach::RowMissing { table: told, .. } if *told == table);
        assert_eq!(found.iter().filter(missing).count(), rows, "{table}: {found:?}");
        let with_chain = format!("DELETE FROM {table}; DELETE FROM row_changes WHERE name = '{table}'");
        assert!(!by_sql(&path, &with_chain).is_empty(), "{table}");
    }
    let added = "INSERT INTO spending SELECT 'forged', day, key, 0, 0, NULL FROM spending WHERE id = 'a'";
    assert!(matches!(by_sql(&path, added)[..], [Breach::RowAdded { table: "spending", .. }]));
    for (column, value) in
        [("state", "zeroblob(32)"), ("kind", "'c'"), ("live", "9"), ("is_final", "0"), ("key", "'z'")]
    {
        let sql = format!("UPDATE row_changes SET {column} = {value} WHERE name = 'spending' AND seq = 5");
        let found = by_sql(&path, &sql);
        let broken = |breach: &Breach| matches!(breach, Breach::ChangeBroken { table: "spending", seq: 5 });
        assert!(found.iter().any(broken), "{column}: {found:?}");
    }
    let cut = "DELETE FROM row_changes WHERE name = 'spending' AND seq = 2";
    assert!(by_sql(&path, cut).contains(&Breach::ChangesMissing { table: "spending", from: 2, to: 2 }));
}

/// Edits the rows of a table and lets this program compute a new chain over them, as an attacker would who knows how.
fn rewritten(file: &Connection, table: &str, edit: &str) {
    let sql = format!(
        "PRAGMA foreign_keys = 0; {edit}; DELETE FROM row_changes WHERE name = '{table}';
         DELETE FROM row_chains WHERE name = '{table}'"
    );
    file.execute_batch(&sql).unwrap();
    let path = file.path().unwrap().to_owned();
    let store = Arc::new(Store::open(Path::new(&path)).unwrap());
    for _ in 0..8 {
        filled_again(&store);
    }
    let queue = StoredReviewQueue::new(Arc::clone(&store), ReviewLimits::default(), true);
    queue.decide("2", &verdict(Verdict::Approve)).unwrap();
}

#[test]
fn an_anchor_finds_rows_whose_chain_was_computed_again() {
    let (_dir, path) = place();
    let store = Arc::new(Store::open(&path).unwrap());
    filled(&store);
    let anchors = anchors(&store);
    for (table, edit) in [
        ("spending", "DELETE FROM spending"),
        ("spending", "UPDATE spending SET sent = 0, reserved = 0"),
        ("reviews", "UPDATE reviews SET explain = 'other'"),
        ("decisions", "UPDATE decisions SET verdict = 'reject'"),
        ("context", "DELETE FROM context"),
    ] {
        let unnoticed = after(&path, &[], |file| rewritten(file, table, edit));
        assert_eq!(unnoticed, [], "{edit}: a complete forgery leaves no trace in the file");
        let found = after(&path, &anchors, |file| rewritten(file, table, edit));
        assert!(
            found
                .iter()
                .any(|breach| matches!(breach, Breach::AnchorBroken { anchor } if anchor.starts_with(table))),
            "{edit}: {found:?}"
        );
    }
    // Older rows with their older chain.
    let old = path.with_extension("old");
    Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [old.to_str().unwrap()]).unwrap();
    filled_again(&store);
    let anchors = self::anchors(&store);
    let back = Store::open_existing(&old).unwrap().unwrap();
    assert!(intact(&back, &[]).is_whole());
    let found = back.verify(&anchors).unwrap().breaches;
    assert!(
        found.iter().any(
            |breach| matches!(breach, Breach::AnchorBroken { anchor } if anchor.starts_with("spending"))
        )
    );
}

#[test]
fn rows_from_before_the_chains_are_counted_and_then_protected() {
    let (_dir, path) = place();
    let store = Arc::new(Store::open(&path).unwrap());
    filled(&store);
    drop(store);
    let file = Connection::open(&path).unwrap();
    file.execute_batch("DROP TABLE row_changes; DROP TABLE row_chains; PRAGMA user_version = 7").unwrap();
    drop(file);
    let store = Store::open(&path).unwrap();
    let found = intact(&store, &[]);
    assert_eq!((found.rows, found.rows_before_chains), (0, 8));
    store.settle("c", pico(10)).unwrap();
    let found = intact(&store, &[]);
    assert_eq!((found.rows, found.rows_before_chains), (3, 5));
    assert!(matches!(by_sql(&path, "DELETE FROM spending WHERE id = 'a'")[..], [Breach::RowMissing { .. }]));
}
