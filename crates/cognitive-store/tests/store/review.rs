//! The review queue on a real disk: acknowledged data is never lost, only one of two decisions counts, and a store
//! that cannot write refuses decisions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cognitive_ports::review::{
    NewDecision, Review, ReviewEntry, ReviewError, ReviewExport, ReviewFilter, ReviewQueue, Verdict,
};
use cognitive_store::{Filter, ReviewLimits, Store, StoreOptions, StoredReviewQueue};
use cognitive_testkit::SeededRandom;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::child::child;
use crate::common::{FIRST_VERSION, Home, at, on_every_backend, place, where_others_find_it};
use crate::processes::is_sound;

pub fn entry(module: &str, confidence: f64) -> ReviewEntry {
    ReviewEntry {
        at: at(0),
        run_id: "run".to_owned(),
        trace_id: "trace".to_owned(),
        key: Some("ann".to_owned()),
        user: Some("ann".to_owned()),
        tenant: None,
        module: module.to_owned(),
        version: "1.0.0".to_owned(),
        model: "p/m".to_owned(),
        rule: "confidence < 0.6".to_owned(),
        input: json!({ "text": "t" }),
        envelope: json!({
            "ok": true,
            "meta": { "confidence": confidence, "risk": "low", "explain": "e" },
            "data": { "rationale": "r", "label": "a" },
        }),
    }
}

pub fn verdict(verdict: Verdict) -> NewDecision {
    let data = (verdict == Verdict::Correct).then(|| json!({ "label": "b" }));
    NewDecision {
        verdict,
        reason: "because".to_owned(),
        data,
        by: Some("bob".to_owned()),
        key: None,
        at: at(1),
    }
}

/// Blocks the thread on a future; the queue's writer wakes it.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(output) =
            future.as_mut().poll(&mut std::task::Context::from_waker(&waker))
        {
            return output;
        }
        std::thread::park();
    }
}

fn review_queue(path: &Path) -> StoredReviewQueue {
    StoredReviewQueue::new(Arc::new(Store::open(path).unwrap()), ReviewLimits::default(), true)
}

fn queue_in(home: &Home) -> StoredReviewQueue {
    StoredReviewQueue::new(home.open(), ReviewLimits::default(), true)
}

fn open(review_queue: &StoredReviewQueue) -> Vec<Review> {
    review_queue.list(&ReviewFilter { open: Some(true), ..ReviewFilter::default() }).unwrap().reviews
}

on_every_backend! {
#[test]
fn an_entry_waits_until_it_is_decided_and_comes_back_as_it_was(home: &Home) {
    let review_queue = queue_in(home);
    let ids: Vec<String> =
        ["a", "b", "a"].iter().map(|module| block_on(review_queue.enter(&entry(module, 0.4))).unwrap()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let filter =
        ReviewFilter { open: Some(true), module: Some("a".to_owned()), limit: Some(1), cursor: None };
    let first = review_queue.list(&filter).unwrap();
    assert_eq!((first.reviews[0].id.as_str(), first.open), ("1", 2), "the oldest first");
    assert_eq!(first.reviews[0].input, None, "lists are light");
    let second = review_queue.list(&ReviewFilter { cursor: first.next, ..filter }).unwrap();
    assert_eq!((second.reviews[0].id.as_str(), second.next), ("3", None));
    let whole = review_queue.get("2").unwrap().unwrap();
    assert_eq!(whole, Review::from_entry("2".to_owned(), "2026-01-02T03:04:05.000Z".to_owned(), &entry("b", 0.4)));
    assert_eq!((review_queue.get("9").unwrap(), review_queue.get("x").unwrap()), (None, None));
    let decided = review_queue.decide("2", &verdict(Verdict::Correct)).unwrap();
    assert!(decided.is_new);
    let again = review_queue.get("2").unwrap().unwrap();
    assert_eq!(again, decided.review);
    assert_eq!(again.decision.unwrap().data, Some(json!({ "label": "b" })));
    assert_eq!(open(&review_queue).len(), 2);
    let done = review_queue.list(&ReviewFilter { open: Some(false), ..ReviewFilter::default() }).unwrap();
    assert_eq!((done.reviews.len(), done.open), (1, 2));
}
}

on_every_backend! {
#[test]
fn the_same_decision_again_is_fine_and_another_is_told_which_one_stands(home: &Home) {
    let review_queue = queue_in(home);
    block_on(review_queue.enter(&entry("m", 0.4))).unwrap();
    assert!(review_queue.decide("1", &verdict(Verdict::Approve)).unwrap().is_new);
    let again = review_queue.decide("1", &NewDecision { by: None, ..verdict(Verdict::Approve) }).unwrap();
    assert_eq!((again.is_new, again.review.decision.unwrap().by.as_deref()), (false, Some("bob")));
    let Err(ReviewError::Conflict(stands)) = review_queue.decide("1", &verdict(Verdict::Reject)) else {
        unreachable!("another decision was taken")
    };
    assert_eq!(stands.decision.unwrap().verdict, Verdict::Approve);
    assert_eq!(review_queue.decide("2", &verdict(Verdict::Approve)), Err(ReviewError::Unknown));
    assert!(matches!(
        review_queue.decide("1", &NewDecision { data: None, ..verdict(Verdict::Correct) }),
        Err(ReviewError::Invalid(_))
    ));
}
}

on_every_backend! {
#[test]
fn a_decision_is_a_record_in_the_chain_without_a_word_of_what_was_said(home: &Home) {
    let review_queue = queue_in(home);
    block_on(review_queue.enter(&entry("m", 0.4))).unwrap();
    review_queue.decide("1", &NewDecision { key: Some("bob".to_owned()), ..verdict(Verdict::Correct) }).unwrap();
    review_queue.decide("1", &verdict(Verdict::Correct)).unwrap();
    let store = home.open();
    let rows = store.list(&Filter { event: Some("review".to_owned()), ..Filter::default() }).unwrap();
    assert_eq!(rows.len(), 1, "one decision, one record");
    assert_eq!((rows[0].user.as_deref(), rows[0].key.as_deref()), (Some("bob"), Some("bob")));
    assert_eq!((&rows[0].receipt["verdict"], &rows[0].receipt["review"]), (&json!("correct"), &json!("1")));
    assert_eq!((rows[0].trace_id.as_str(), rows[0].run_id.as_str()), ("trace", "run"));
    assert!(!rows[0].to_json().to_string().contains("because"), "{}", rows[0].to_json());
    assert!(store.verify(&[]).unwrap().is_whole());
    let silent = StoredReviewQueue::new(store, ReviewLimits::default(), false);
    block_on(silent.enter(&entry("m", 0.4))).unwrap();
    silent.decide("2", &verdict(Verdict::Approve)).unwrap();
    let store = home.open();
    assert_eq!(
        store.list(&Filter::default()).unwrap().len(),
        1,
        "where nothing is recorded, this is not either"
    );
}
}

on_every_backend! {
#[test]
fn a_full_queue_takes_no_more_and_drops_nothing_that_waits(home: &Home) {
    let limits = ReviewLimits { open: 2, decided: 1, ..ReviewLimits::default() };
    let review_queue = StoredReviewQueue::new(home.open(), limits, true);
    for _ in 0..2 {
        block_on(review_queue.enter(&entry("m", 0.4))).unwrap();
    }
    assert_eq!(block_on(review_queue.enter(&entry("m", 0.4))), Err("2 runs already wait for review".to_owned()));
    for id in ["1", "2"] {
        review_queue.decide(id, &verdict(Verdict::Approve)).unwrap();
    }
    assert_eq!(
        block_on(review_queue.enter(&entry("m", 0.4))).unwrap(),
        "3",
        "there is room again, and no number comes twice"
    );
    let oldest = review_queue.get("1").unwrap().unwrap();
    assert_eq!((oldest.input, oldest.envelope), (None, None), "of two that are decided, one is whole");
    assert_eq!(oldest.decision.unwrap().verdict, Verdict::Approve);
    assert!(review_queue.get("2").unwrap().unwrap().input.is_some());
}
}

on_every_backend! {
#[test]
fn decisions_are_exported_in_their_order_and_cases_only_where_the_answer_is_known(home: &Home) {
    let review_queue = queue_in(home);
    for module in ["a", "a", "b", "a"] {
        block_on(review_queue.enter(&entry(module, 0.4))).unwrap();
    }
    for (id, word) in [("2", Verdict::Reject), ("1", Verdict::Correct), ("3", Verdict::Approve)] {
        review_queue.decide(id, &verdict(word)).unwrap();
    }
    let export = |form, module| {
        let mut lines: Vec<Value> = Vec::new();
        let mut take = |line| {
            lines.push(line);
            true
        };
        review_queue.export(form, module, &mut take).unwrap();
        lines
    };
    let ids: Vec<Value> =
        export(ReviewExport::Decisions, None).iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, [json!("2"), json!("1"), json!("3")]);
    assert_eq!(
        export(ReviewExport::Cases, Some("a")),
        [json!({ "id": "review-1", "input": { "text": "t" }, "expect": { "label": "b" } })]
    );
    let mut count = 0;
    let mut take = |_| {
        count += 1;
        false
    };
    review_queue.export(ReviewExport::Decisions, None, &mut take).unwrap();
    assert_eq!(count, 1, "who has enough gets no more");
}
}

/// Decides on `count` entries as a reviewer who approves fewer answers than the model's confidence suggests.
fn judge(review_queue: &StoredReviewQueue, module: &str, count: usize, seed: u64) {
    let mut random = SeededRandom::new(seed);
    for _ in 0..count {
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        let confidence = (50 + random.next_below(50)) as f64 / 100.0;
        let id = block_on(review_queue.enter(&entry(module, confidence))).unwrap();
        let word = if random.next_below(100) < 30 { Verdict::Approve } else { Verdict::Reject };
        review_queue.decide(&id, &verdict(word)).unwrap();
    }
}

on_every_backend! {
#[test]
fn what_confidence_is_worth_is_known_once_enough_was_decided_also_by_another_process(home: &Home) {
    let one = queue_in(home);
    judge(&one, "m", 29, 7);
    assert_eq!(one.calibrated_confidence("m", "p/m", 0.8), None, "too few");
    judge(&one, "m", 31, 8);
    let worth = one.calibrated_confidence("m", "p/m", 0.8).unwrap();
    assert!(worth < 0.6, "{worth}");
    assert_eq!(queue_in(home).calibrated_confidence("m", "p/m", 0.8), Some(worth), "another connection sees it too");
    assert_eq!(one.calibrated_confidence("m", "p/other", 0.8), None, "what one model is worth says nothing of another");
    assert_eq!(one.calibrated_confidence("n", "p/m", 0.8), None);
    assert_eq!(one.calibrated_confidence("m", "p/m", 0.1), None, "nobody decided on so low a confidence");
    let report = one.calibration(Some("m")).unwrap();
    assert_eq!((report.decisions, report.bins.iter().map(|bin| bin.count).sum::<u64>()), (60, 60));
    assert_eq!(one.calibration(None).unwrap(), report);
}
}

on_every_backend! {
#[test]
fn failures_say_nothing_about_confidence(home: &Home) {
    let review_queue = queue_in(home);
    let mut failed = entry("m", 0.0);
    failed.envelope = json!({ "ok": false, "meta": { "confidence": 0, "risk": "high", "explain": "e" }, "error": { "code": "E2010" } });
    block_on(review_queue.enter(&failed)).unwrap();
    assert_eq!(review_queue.get("1").unwrap().unwrap().code.as_deref(), Some("E2010"));
    review_queue.decide("1", &verdict(Verdict::Reject)).unwrap();
    assert_eq!(review_queue.calibration(None).unwrap().decisions, 0);
}
}

#[test]
fn a_locked_store_refuses_decisions_and_entries_and_knows_what_it_knew() {
    let (_dir, path) = place();
    judge(&review_queue(&path), "m", 40, 7);
    // Long enough for the writer of the queue, which has its turn in the same file.
    let options = StoreOptions { patience: Duration::from_secs(2), ..StoreOptions::default() };
    let review_queue = StoredReviewQueue::new(
        Arc::new(Store::open_with(&path, options).unwrap()),
        ReviewLimits::default(),
        true,
    );
    let known = review_queue.calibrated_confidence("m", "p/m", 0.8);
    assert!(known.is_some());
    let waiting = block_on(review_queue.enter(&entry("m", 0.4))).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let Err(ReviewError::Unavailable(reason)) = review_queue.decide(&waiting, &verdict(Verdict::Approve))
    else {
        unreachable!("a locked store took a decision")
    };
    assert!(reason.contains("processes locked it"), "{reason}");
    assert!(block_on(review_queue.enter(&entry("m", 0.4))).unwrap_err().contains("processes locked it"));
    assert_eq!(review_queue.calibrated_confidence("m", "p/m", 0.8), known, "nobody waits for that");
    other.execute_batch("COMMIT").unwrap();
    assert!(review_queue.decide(&waiting, &verdict(Verdict::Approve)).unwrap().is_new);
}

#[test]
fn an_old_file_gets_the_tables_and_keeps_its_records() {
    let (_dir, path) = place();
    Connection::open(&path).unwrap().execute_batch(FIRST_VERSION).unwrap();
    let review_queue = review_queue(&path);
    assert!(open(&review_queue).is_empty());
    assert_eq!(block_on(review_queue.enter(&entry("m", 0.4))).unwrap(), "1");
    assert_eq!(Store::open(&path).unwrap().list(&Filter::default()).unwrap().len(), 1);
}

/// A job of another process: decides on one entry and reports the outcome.
pub fn decide_one(words: &str, path: &Path, say: fn(&str)) {
    let (id, word) = words.split_once(' ').unwrap();
    let decision = NewDecision { by: Some(word.to_owned()), ..verdict(Verdict::parse(word).unwrap()) };
    say(&match review_queue(path).decide(id, &decision) {
        Ok(decided) if decided.is_new => format!("made {word}"),
        Ok(_) => "the same".to_owned(),
        Err(error) => error.to_string(),
    });
}

/// A job of another process: decides on all open entries and reports each.
pub fn decide_for_ever(name: &str, path: &Path, say: fn(&str)) {
    let review_queue = review_queue(path);
    for review in open(&review_queue) {
        review_queue
            .decide(&review.id, &NewDecision { by: Some(name.to_owned()), ..verdict(Verdict::Correct) })
            .unwrap();
        say(&review.id);
    }
}

where_others_find_it! {
#[test]
fn of_two_processes_that_decide_at_once_one_wins_and_the_other_is_told(home: &Home) {
    let path = home.path();
    let shared = review_queue(path);
    for round in 1..=20 {
        let id = block_on(shared.enter(&entry("m", 0.4))).unwrap();
        assert_eq!(id, round.to_string());
        let mut helpers = ["approve", "reject"].map(|word| child(&format!("decide {id} {word}"), path));
        for helper in &mut helpers {
            assert_eq!(helper.report().as_deref(), Some("ready"));
        }
        helpers.iter_mut().for_each(crate::child::Helper::go);
        let mut said: Vec<String> = helpers.iter_mut().flat_map(crate::child::Helper::rest).collect();
        said.sort_by_key(|line| !line.starts_with("made "));
        let stands = shared.get(&id).unwrap().unwrap().decision.unwrap();
        assert_eq!(said[0], format!("made {}", stands.verdict.word()));
        let told =
            format!("review {id} was already {} by: `{}`", stands.verdict.past_participle(), stands.verdict.word());
        assert_eq!(said[1], told);
    }
}
}

where_others_find_it! {
#[test]
fn a_process_that_is_killed_while_it_decides_leaves_every_decision_that_it_acknowledged(home: &Home) {
    let path = home.path();
    let shared = review_queue(path);
    let mut random = SeededRandom::new(11);
    for round in 0..25 {
        for _ in 0..40 {
            block_on(shared.enter(&entry("m", 0.4))).unwrap();
        }
        let mut helper = child(&format!("decide-for-ever {round}"), path);
        helper.go();
        let mut kept = Vec::new();
        let until = 1 + random.index(30);
        while kept.len() < until {
            kept.push(helper.report().unwrap());
        }
        kept.extend(helper.kill());
        assert!(is_sound(path), "round {round}");
        for id in kept.iter().filter(|id| *id != "ready") {
            let decision = shared.get(id).unwrap().unwrap().decision;
            assert!(decision.is_some(), "round {round}: {id} was acknowledged");
        }
    }
    // The audit has as many records as there are decisions, and the chain is intact.
    let store = Store::open(path).unwrap();
    assert!(store.verify(&[]).unwrap().is_whole());
    let records = store.list(&Filter { event: Some("review".to_owned()), ..Filter::default() }).unwrap();
    let recorded: HashSet<String> =
        records.iter().map(|row| row.receipt["review"].as_str().unwrap().to_owned()).collect();
    let mut decided = HashSet::new();
    let mut take = |line: Value| decided.insert(line["id"].as_str().unwrap().to_owned());
    shared.export(ReviewExport::Decisions, None, &mut take).unwrap();
    assert_eq!((recorded.len(), records.len()), (decided.len(), decided.len()));
    assert_eq!(recorded, decided);
}
}
