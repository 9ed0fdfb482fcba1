//! A full disk leaves no partial entry and is reported. Also counts the store's queries for decisions.

use std::time::{Duration, SystemTime};

use cognitive_ports::review::Verdict;
use serde_json::json;

use super::*;

fn entry() -> ReviewEntry {
    let words = || "x".to_owned();
    ReviewEntry {
        at: SystemTime::UNIX_EPOCH,
        run_id: words(),
        trace_id: words(),
        key: None,
        user: None,
        tenant: None,
        module: words(),
        version: words(),
        model: words(),
        rule: words(),
        input: json!({ "text": "x".repeat(500) }),
        envelope: json!({ "ok": true, "meta": { "confidence": 0.5, "risk": "low", "explain": "e" }, "data": {} }),
    }
}

fn approval() -> NewDecision {
    NewDecision {
        verdict: Verdict::Approve,
        reason: "x".repeat(2_000),
        data: None,
        by: None,
        key: None,
        at: SystemTime::UNIX_EPOCH,
    }
}

fn limit_pages(store: &Store, count: i64) {
    store
        .with_file(|connection| connection.pragma_update_and_check(None, "max_page_count", count, |_| Ok(())))
        .unwrap();
}

/// Queues an entry and waits for the writer.
fn enter(review_queue: &StoredReviewQueue) -> Result<String, String> {
    let receipt = review_queue.writer.push(&entry())?;
    let mut wait = std::pin::pin!(receipt.wait());
    loop {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if let std::task::Poll::Ready(outcome) = wait.as_mut().poll(&mut context) {
            return outcome;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_refuses_entries_and_decisions_and_what_is_open_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&dir.path().join("store.db")).unwrap());
    let review_queue = StoredReviewQueue::new(Arc::clone(&store), ReviewLimits::default(), true);
    enter(&review_queue).unwrap();
    // The smallest page limit of a file is its current size.
    limit_pages(&store, 1);
    let error = (0..500).find_map(|_| enter(&review_queue).err()).unwrap();
    assert!(error.ends_with("the disk is full"), "{error}");
    let open = || review_queue.list(&ReviewFilter { open: Some(true), ..ReviewFilter::default() }).unwrap();
    let decision = approval();
    let refused = (0..500).find_map(|_| {
        let id = open().reviews.first()?.id.clone();
        review_queue.decide(&id, &decision).err().map(|error| (id, error))
    });
    let (id, error) = refused.unwrap();
    assert!(matches!(&error, ReviewError::Unavailable(why) if why.ends_with("the disk is full")), "{error}");
    assert!(review_queue.get(&id).unwrap().unwrap().is_open());
    limit_pages(&store, 1_000_000);
    assert!(review_queue.decide(&id, &decision).unwrap().is_new);
}

#[test]
fn the_store_is_asked_for_decisions_of_others_now_and_then_and_for_own_ones_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(&dir.path().join("store.db")).unwrap());
    let desk_that_looks_after = |seconds| {
        let review_queue = StoredReviewQueue::new(Arc::clone(&store), ReviewLimits::default(), false);
        StoredReviewQueue { curves: CurveCache::with_recheck(Duration::from_secs(seconds)), ..review_queue }
    };
    let (own, soon, late) =
        (desk_that_looks_after(3_600), desk_that_looks_after(0), desk_that_looks_after(3_600));
    let worth = |review_queue: &StoredReviewQueue| review_queue.calibrated_confidence("x", "x", 0.5);
    assert_eq!([&own, &soon, &late].map(worth), [None; 3], "nothing is decided");
    for _ in 0..40 {
        let id = enter(&own).unwrap();
        own.decide(&id, &approval()).unwrap();
    }
    assert!(worth(&own).is_some() && worth(&soon).is_some());
    assert_eq!(worth(&late), None, "nobody has asked the store again");
    late.curves.mark_stale("x");
    assert_eq!(worth(&late), worth(&own));
}
