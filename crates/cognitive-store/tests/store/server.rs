//! Tests that need a server: concurrent processes, tables changed by another program, and a server that is down or
//! silent.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cognitive_contract::context::Owner;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{AuditLog, ContextStore};
use cognitive_ports::review::{ReviewError, ReviewQueue, Verdict};
use cognitive_ports::spending::{DayBudget, SpendingEntry, SpendingLedger};
use cognitive_store::{
    Anchor, Background, Breach, Filter, Problem, Retention, ReviewLimits, Store, StoreOptions,
    StoredReviewQueue,
};
use cognitive_testkit::{PATIENCE, TestPostgres, wait_until};

use crate::common::{Home, at, good, server, state};
use crate::review::{block_on, entry, verdict};

fn impatient() -> StoreOptions {
    StoreOptions { patience: Duration::from_millis(300), ..StoreOptions::default() }
}

#[test]
fn programs_that_come_at_once_create_the_tables_once() {
    let Some(home) = Home::on_postgres() else { return };
    thread::scope(|scope| {
        for number in 0..6 {
            let home = &home;
            scope.spawn(move || home.open().record(&good(&number.to_string(), "m")).unwrap());
        }
    });
    let store = home.open();
    assert_eq!(store.verify(&[]).unwrap().records, 6);
    let (server, name) = (server().unwrap(), TestPostgres::name_of(home.path().to_str().unwrap()));
    server.sql(name, "UPDATE cogn.cogn_schema SET version = 99");
    let refused = Store::open(home.path()).unwrap_err();
    assert!(matches!(refused.problem(), Problem::Newer { found: 99, .. }), "{refused}");
}

// Three writers, each with a thread that writes in batches, and limits that drop old records all the time.
#[test]
fn three_writers_make_one_chain_for_each_owner_and_retention_drops_its_beginning_only() {
    let Some(home) = Home::on_postgres() else { return };
    let retention = Retention { records: 50, ..Retention::default() };
    let open = || home.open_with(StoreOptions { retention, ..StoreOptions::default() });
    thread::scope(|scope| {
        for writer in 0..3 {
            let store: Arc<dyn AuditLog> = open();
            scope.spawn(move || {
                let background = Background::new(store, |complaint| {
                    assert!(complaint.contains("reached its limits"), "{complaint}");
                })
                .unwrap();
                for number in 0..100 {
                    let mut record = good(&format!("{writer}-{number}"), "m");
                    record.key = Some(["ann", "bob"][number % 2].to_owned());
                    background.record(&record).unwrap();
                }
            });
        }
    });
    let store = open();
    let found = store.verify(&[]).unwrap();
    assert!(found.is_whole(), "{found:?}");
    assert_eq!((found.chains, found.records, found.dropped), (2, 100, 200));
    let newest = store.list(&Filter::default()).unwrap();
    assert_eq!(newest[0].id, 300, "each has a number of its own, without a gap");
}

#[test]
fn what_somebody_does_to_the_tables_is_found() {
    let Some(server) = server() else { return };
    let after = |sql: &str, with_anchor: bool| {
        let address = server.database();
        let store = Store::open(Path::new(&address)).unwrap();
        for number in 0..5 {
            store.record(&good(&format!("t{number}"), "m")).unwrap();
        }
        let head = store.heads().unwrap().remove(0);
        let anchor: Anchor = format!("{}:{}", head.id, head.hash).parse().unwrap();
        server.sql(TestPostgres::name_of(&address), &format!("SET search_path = cogn; {sql}"));
        store.verify(if with_anchor { std::slice::from_ref(&anchor) } else { &[] }).unwrap().breaches
    };
    assert_eq!(after("SELECT 1", true), []);
    for change in ["module = 'x'", "latency_ms = 0.5", "\"user\" = 'mallory'", "input_tokens = 1"] {
        let found = after(&format!("UPDATE audit SET {change} WHERE id = 3"), false);
        assert_eq!(found, [Breach::Changed { id: 3, chain: 1, seq: 3 }], "{change}");
    }
    assert_eq!(
        after("DELETE FROM audit WHERE id = 3", false),
        [Breach::Missing { chain: 1, from: 3, to: 3 }]
    );
    let cut = "DELETE FROM audit WHERE id > 3;
        UPDATE audit_chains SET seq = 3, hash = (SELECT hash FROM audit WHERE id = 3)";
    assert_eq!(after(cut, false), []);
    assert!(matches!(after(cut, true)[..], [Breach::AnchorBroken { .. }]));
}

#[test]
fn a_text_that_a_server_cannot_keep_is_kept_with_a_mark_in_its_place() {
    for home in [Some(Home::in_memory()), Some(Home::on_sqlite()), Home::on_postgres()].into_iter().flatten()
    {
        let store = home.open();
        store.record(&good("zero\0trace", "m\0")).unwrap();
        let rows = store.list(&Filter::default()).unwrap();
        assert_eq!((rows[0].trace_id.as_str(), rows[0].module.as_str()), ("zero\u{fffd}trace", "m\u{fffd}"));
        assert!(store.verify(&[]).unwrap().is_whole());
    }
}

/// Returns the message of each port while the server does not answer; each must come in time.
fn refusals(store: &Arc<Store>, review_queue: &StoredReviewQueue) -> Vec<String> {
    let timed = |what: &mut dyn FnMut() -> String| {
        let started = Instant::now();
        let said = what();
        assert!(started.elapsed() < PATIENCE, "{said} after {:?}", started.elapsed());
        said
    };
    let owner = Owner::user(Some("ann"));
    let budget = DayBudget { per_day: Some(Money::from_pico(1)), per_key: None };
    let spend = SpendingEntry {
        id: "s".to_owned(),
        day: 1,
        key: String::new(),
        reserved: Money::ZERO,
        sent: Money::ZERO,
        until: at(9),
    };
    vec![
        timed(&mut || store.record(&good("lost", "m")).unwrap_err()),
        timed(&mut || store.put(&owner, &state("k", 1, -1), at(0)).unwrap_err()),
        timed(&mut || store.get(&owner, "session_state", "k", at(0)).unwrap_err()),
        timed(&mut || store.cover(&spend, &budget, at(0)).unwrap_err()),
        timed(&mut || block_on(review_queue.enter(&entry("m", 0.4))).unwrap_err()),
        timed(&mut || match review_queue.decide("1", &verdict(Verdict::Approve)) {
            Err(ReviewError::Unavailable(reason)) => reason,
            other => unreachable!("{other:?}"),
        }),
    ]
}

#[test]
fn a_server_that_is_silent_or_gone_is_said_in_time_and_nothing_acknowledged_is_lost() {
    let Some(server) = TestPostgres::durable() else { return };
    let address = server.database();
    let store = Arc::new(Store::open_with(Path::new(&address), impatient()).unwrap());
    let review_queue = StoredReviewQueue::new(Arc::clone(&store), ReviewLimits::default(), true);
    store.record(&good("before", "m")).unwrap();
    assert_eq!(block_on(review_queue.enter(&entry("m", 0.4))).unwrap(), "1");
    server.freeze();
    for said in refusals(&store, &review_queue) {
        assert!(said.starts_with("store `postgres://cogn@"), "{said}");
        assert!(said.contains("did not answer") || said.contains("cannot be reached"), "{said}");
    }
    server.thaw();
    // The server is contacted again after the pause. Requests sent while it was silent may or may not have been
    // executed.
    let patient = Store::open(Path::new(&address)).unwrap();
    patient.record(&good("after", "m")).unwrap();
    wait_until("the review queue, which is asked again after a pause", || review_queue.get("1").is_ok());
    let traces: Vec<String> =
        patient.list(&Filter::default()).unwrap().into_iter().map(|row| row.trace_id).collect();
    assert!(traces.iter().any(|trace| trace == "before") && traces.iter().any(|trace| trace == "after"));
    assert!(patient.verify(&[]).unwrap().is_whole());
    drop(server);
    for said in refusals(&store, &review_queue) {
        assert!(said.contains("cannot be reached"), "{said}");
    }
    let refused = Store::open_with(Path::new(&address), impatient()).unwrap_err();
    assert!(matches!(refused.problem(), Problem::Unreachable(_)), "{refused}");
}
