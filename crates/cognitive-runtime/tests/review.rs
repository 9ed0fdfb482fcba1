//! Human review: the queued runs, the entry that is stored before the envelope is returned, and a broken queue, which
//! fails no run.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test, a panic is the report")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cognitive_contract::Module;
use cognitive_contract::ports::{Event, EventSink, NullSink, PortFuture};
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, NewDecision, Review, ReviewEntry, ReviewError, ReviewExport,
    ReviewFilter, ReviewPage, ReviewQueue, ReviewRule, ReviewRules,
};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, Reviewing, RunRequest, run, stream};
use cognitive_testkit::{MemoryAuditLog, NamedModules, ScriptedProvider, module_folder, poll_now};
use serde_json::{Value, json};

/// A queue in memory, or one that fails with a reason.
#[derive(Default)]
struct StubReviewQueue {
    entries: Mutex<Vec<ReviewEntry>>,
    broken: Option<&'static str>,
    worth: Option<f64>,
}

impl ReviewQueue for StubReviewQueue {
    fn enter<'a>(&'a self, entry: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        if let Some(reason) = self.broken {
            return Box::pin(async move { Err(reason.to_owned()) });
        }
        self.entries.lock().unwrap().push(entry.clone());
        let id = self.entries.lock().unwrap().len().to_string();
        Box::pin(async { Ok(id) })
    }

    fn list(&self, _: &ReviewFilter) -> Result<ReviewPage, String> {
        Err("a run asks nothing of the kind".to_owned())
    }

    fn get(&self, _: &str) -> Result<Option<Review>, String> {
        Err("a run asks nothing of the kind".to_owned())
    }

    fn decide(&self, _: &str, _: &NewDecision) -> Result<DecidedReview, ReviewError> {
        Err(ReviewError::Unknown)
    }

    fn calibration(&self, _: Option<&str>) -> Result<CalibrationReport, String> {
        Err("a run asks nothing of the kind".to_owned())
    }

    fn calibrated_confidence(&self, module: &str, model: &str, confidence: f64) -> Option<f64> {
        assert!(["sample", "whole"].contains(&module) && model == "scripted/m", "{module} {model}");
        self.worth.map(|worth| worth * confidence)
    }

    fn export(
        &self,
        _: ReviewExport,
        _: Option<&str>,
        _: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String> {
        Err("a run asks nothing of the kind".to_owned())
    }
}

fn module(name: &str, more: Value) -> Arc<Module> {
    let mut manifest =
        json!({ "name": name, "version": "1.2.3", "tier": "decision", "response": { "mode": "streaming" } });
    manifest.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let schema = json!({
        "input": { "type": "object", "properties": { "q": {} } },
        "data": { "type": "object", "required": ["rationale"] },
    });
    let folder = module_folder(&manifest, &schema, "Answer.");
    Arc::new(cognitive_library::load::load(&folder).unwrap())
}

fn reply(confidence: f64, more: &Value) -> Value {
    let mut meta = json!({ "confidence": confidence, "risk": "low", "explain": "e" });
    meta.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } })
}

fn host_of(
    review_queue: StubReviewQueue,
    rules: &[&str],
    replies: &[String],
) -> (Host, Arc<StubReviewQueue>) {
    let parts = json!({ "composition": { "requires": [{ "name": "sample" }] } });
    let modules = BTreeMap::from([
        ("sample".to_owned(), module("sample", json!({}))),
        ("whole".to_owned(), module("whole", parts)),
    ]);
    let mut host = Host::new(Arc::new(NamedModules(modules)), Arc::new(ScriptedProvider::new(replies)));
    let rules = rules.iter().map(|when| ReviewRule::parse(when, Vec::new()).unwrap()).collect();
    let review_queue = Arc::new(review_queue);
    host.review = Some(Reviewing {
        rules: ReviewRules::new(rules),
        review_queue: Arc::clone(&review_queue) as Arc<dyn ReviewQueue>,
    });
    (host, review_queue)
}

fn host(review_queue: StubReviewQueue, rules: &[&str], reply: &Value) -> (Host, Arc<StubReviewQueue>) {
    host_of(review_queue, rules, &[reply.to_string()])
}

fn answer(host: &Host, module: &str) -> Value {
    let envelope = poll_now(run(host, RunRequest::new(module, json!({ "q": 1 })), &mut NullSink));
    serde_json::to_value(envelope).unwrap()
}

fn warning(envelope: &Value) -> String {
    let warnings = envelope["meta"]["warnings"].as_array().cloned().unwrap_or_default();
    let of_review = warnings.iter().find(|warning| warning["code"] == "REVIEW");
    of_review.map(|warning| warning["message"].as_str().unwrap().to_owned()).unwrap_or_default()
}

// GEN-010: `ok`, `meta` and `error` alone decide; data that claim otherwise change nothing.
#[test]
fn gen_010_data_do_not_decide_about_a_review() {
    let mut loud = reply(0.9, &json!({}));
    loud["data"] = json!({
        "rationale": "r", "ok": false, "confidence": 0.1, "risk": "high", "error": { "code": "E3001", "message": "m" },
        "meta": { "confidence": 0.1, "risk": "high", "explain": "e" },
    });
    let (host, review_queue) =
        host(StubReviewQueue::default(), &["risk in [high]", "confidence < 0.6"], &loud);
    let envelope = answer(&host, "sample");
    assert_eq!(
        (&envelope["ok"], &envelope["data"], warning(&envelope)),
        (&json!(true), &loud["data"], String::new())
    );
    assert!(review_queue.entries.lock().unwrap().is_empty());
}

#[test]
fn a_run_that_matches_is_queued_with_input_and_envelope_and_says_so() {
    let (mut host, review_queue) =
        host(StubReviewQueue::default(), &["risk in [high]", "confidence < 0.6"], &reply(0.4, &json!({})));
    host.audit = Some(Arc::new(MemoryAuditLog::default()));
    let envelope = answer(&host, "sample");
    assert_eq!(envelope["ok"], true);
    assert_eq!(warning(&envelope), "this answer needs review, review 1: `confidence < 0.6`");
    let entries = review_queue.entries.lock().unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(
        (entry.module.as_str(), entry.version.as_str(), entry.model.as_str()),
        ("sample", "1.2.3", "scripted/m")
    );
    assert_eq!((&entry.input, entry.rule.as_str()), (&json!({ "q": 1 }), "confidence < 0.6"));
    assert_eq!(entry.envelope["data"], json!({ "rationale": "r" }));
    assert_eq!(entry.envelope["meta"]["trace_id"], entry.trace_id);
    assert!(!entry.run_id.is_empty(), "it can be found in the audit");
}

#[test]
fn a_run_that_no_rule_means_is_left_alone() {
    let (host, review_queue) =
        host(StubReviewQueue::default(), &["confidence < 0.3"], &reply(0.4, &json!({})));
    let envelope = answer(&host, "sample");
    assert_eq!((warning(&envelope), review_queue.entries.lock().unwrap().len()), (String::new(), 0));
}

#[test]
fn a_failure_is_queued_only_where_a_rule_mentions_it() {
    for (rule, count) in [("confidence < 0.6", 0), ("!ok", 1)] {
        let (host, review_queue) = host(StubReviewQueue::default(), &[rule], &json!("no envelope"));
        let envelope = answer(&host, "sample");
        assert_eq!(
            (&envelope["ok"], review_queue.entries.lock().unwrap().len()),
            (&json!(false), count),
            "{rule}"
        );
    }
}

#[test]
fn a_desk_that_keeps_nothing_is_a_warning_and_the_answer_stays() {
    let review_queue = StubReviewQueue { broken: Some("the disk is full"), ..StubReviewQueue::default() };
    let (host, _) = host(review_queue, &["true"], &reply(0.4, &json!({})));
    let envelope = answer(&host, "sample");
    assert_eq!(envelope["ok"], true);
    assert!(
        warning(&envelope).ends_with("(`true`), but it could not be queued: the disk is full"),
        "{envelope}"
    );
}

#[test]
fn the_parts_of_a_composition_are_judged_with_the_whole() {
    let (host, review_queue) = host(StubReviewQueue::default(), &["true"], &reply(0.4, &json!({})));
    answer(&host, "whole");
    let modules: Vec<String> =
        review_queue.entries.lock().unwrap().iter().map(|entry| entry.module.clone()).collect();
    assert_eq!(modules, ["whole"]);
}

#[test]
fn calibrated_confidence_stands_beside_confidence_and_no_model_says_it() {
    let claims = reply(0.4, &json!({ "calibrated_confidence": 0.99 }));
    let (known, _) = host(StubReviewQueue { worth: Some(0.5), ..StubReviewQueue::default() }, &[], &claims);
    let meta = answer(&known, "sample")["meta"].clone();
    assert_eq!((&meta["confidence"], &meta["calibrated_confidence"]), (&json!(0.4), &json!(0.2)));
    let (few, _) = host(StubReviewQueue::default(), &[], &claims);
    assert_eq!(answer(&few, "sample")["meta"].get("calibrated_confidence"), None);
    let without = Host::new(Arc::clone(&few.modules), Arc::clone(&few.models.first));
    assert_eq!(answer(&without, "sample")["meta"].get("calibrated_confidence"), None);
    let ruled = host(
        StubReviewQueue { worth: Some(0.5), ..StubReviewQueue::default() },
        &["calibrated_confidence < 0.3"],
        &claims,
    );
    answer(&ruled.0, "sample");
    assert_eq!(ruled.1.entries.lock().unwrap().len(), 1, "rules may look at it");
}

/// Records the number of entries at the end event of the run.
struct EndWatcher<'a>(&'a StubReviewQueue, Option<usize>);

impl EventSink for EndWatcher<'_> {
    fn event(&mut self, event: Event<'_>) {
        if matches!(event, Event::Finished(_)) {
            self.1 = Some(self.0.entries.lock().unwrap().len());
        }
    }
}

#[test]
fn it_is_queued_before_the_envelope_leaves_also_in_a_stream() {
    let (host, review_queue) = host(StubReviewQueue::default(), &["true"], &reply(0.4, &json!({})));
    let mut watcher = EndWatcher(&review_queue, None);
    poll_now(run(&host, RunRequest::new("sample", json!({ "q": 1 })), &mut watcher));
    assert_eq!(watcher.1, Some(1));
    let mut seen = Vec::new();
    let mut request = RunRequest::new("sample", Value::Null);
    request.input = RunInput::Raw(r#"{"q": 2}"#.to_owned());
    poll_now(stream(&host, request, |chunk| {
        let last = serde_json::to_value(&chunk).unwrap();
        seen.push((
            last["final"] == true || last.get("ok").is_some(),
            review_queue.entries.lock().unwrap().len(),
            last,
        ));
    }));
    let (_, at_end, last) = seen.last().unwrap();
    assert_eq!(*at_end, 2, "{last}");
    assert!(last.to_string().contains("REVIEW"), "{last}");
    assert_eq!(review_queue.entries.lock().unwrap()[1].input, json!({ "q": 2 }), "JSON text is read");
}

#[test]
fn the_record_of_a_part_says_whose_part_it_is_and_payloads_stay_out_of_the_audit() {
    let (mut host, _) = host(StubReviewQueue::default(), &["true"], &reply(0.4, &json!({})));
    let log = Arc::new(MemoryAuditLog::default());
    host.audit = Some(Arc::clone(&log) as Arc<dyn cognitive_contract::ports::AuditLog>);
    answer(&host, "whole");
    let records = log.records();
    let runs: Vec<_> = records.iter().filter(|record| record.event == "run").collect();
    let above: Vec<Option<&str>> = runs.iter().map(|run| run.receipt["parent_span"].as_str()).collect();
    assert_eq!(above, [Some("whole"), None]);
    assert!(runs.iter().all(|run| run.payload.is_none()));
}
