//! A simulated reviewer: a model that states confidences, a truth that differs from them, and 200 decisions through the
//! real runtime, the real review queue and a real file. On the next 200 runs, `meta.calibrated_confidence` must be at
//! least twice as close to the truth as `meta.confidence`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::ports::NullSink;
use cognitive_library::load::load;
use cognitive_ports::review::calibration::{CheckedAnswer, error};
use cognitive_ports::review::{NewDecision, ReviewFilter, ReviewQueue, ReviewRule, ReviewRules, Verdict};
use cognitive_runtime::{Host, Reviewing, RunRequest, run};
use cognitive_store::{ReviewLimits, Store, StoredReviewQueue};
use cognitive_testkit::{NamedModules, ScriptedProvider, SeededRandom, module_folder};
use serde_json::{Value, json};

/// The real probability that an answer with this stated confidence is right. Only the reviewer knows it.
type Truth = fn(f64) -> f64;

const TRUTHS: [(&str, Truth); 4] = [
    ("overconfident by 0.3", |stated| (stated - 0.3).max(0.02)),
    ("right half of the time, whatever it states", |_| 0.5),
    ("underconfident", |stated| (stated + 0.3).min(0.97)),
    ("steep", |stated| (stated * stated * stated).min(0.95)),
];

const DECISIONS: usize = 200;

/// A process with a model and a review queue.
struct Office {
    host: Host,
    model: Arc<ScriptedProvider>,
    review_queue: Arc<StoredReviewQueue>,
    runtime: tokio::runtime::Runtime,
    random: SeededRandom,
    truth: Truth,
}

impl Office {
    fn open(path: &std::path::Path, seed: u64, truth: Truth) -> Self {
        let manifest = json!({ "name": "labels", "version": "1.0.0", "tier": "decision" });
        let schema =
            json!({ "input": { "type": "object" }, "data": { "type": "object", "required": ["rationale"] } });
        let module = Arc::new(load(&module_folder(&manifest, &schema, "Label.")).unwrap());
        let modules = NamedModules(BTreeMap::from([("labels".to_owned(), module)]));
        let model = Arc::new(ScriptedProvider::default());
        let mut host = Host::new(Arc::new(modules), Arc::clone(&model) as Arc<_>);
        let review_queue = Arc::new(StoredReviewQueue::new(
            Arc::new(Store::open(path).unwrap()),
            ReviewLimits::default(),
            true,
        ));
        let rules = ReviewRules::new(vec![ReviewRule::parse("true", Vec::new()).unwrap()]);
        host.review =
            Some(Reviewing { rules, review_queue: Arc::clone(&review_queue) as Arc<dyn ReviewQueue> });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { host, model, review_queue, runtime, random: SeededRandom::new(seed), truth }
    }

    fn dice(&mut self) -> f64 {
        f64::from(u32::try_from(self.random.next_below(1_000_000)).unwrap()) / 1_000_000.0
    }

    /// Runs the module once: stated confidence, calibrated confidence, and whether it is right.
    fn run(&mut self) -> (f64, Option<f64>, bool) {
        let stated = (35.0 + 65.0 * self.dice()).floor() / 100.0;
        let is_right = self.dice() < (self.truth)(stated);
        let meta = json!({ "confidence": stated, "risk": "low", "explain": "e" });
        self.model.say(json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } }));
        let request = RunRequest::new("labels", json!({}));
        let envelope = self.runtime.block_on(run(&self.host, request, &mut NullSink));
        let meta: Value = serde_json::to_value(envelope.meta()).unwrap();
        assert_eq!(meta["confidence"], json!(stated), "it is never rewritten");
        (stated, meta["calibrated_confidence"].as_f64(), is_right)
    }

    fn decide(&self, is_right: bool) {
        let waiting = ReviewFilter { open: Some(true), ..ReviewFilter::default() };
        let id = self.review_queue.list(&waiting).unwrap().reviews[0].id.clone();
        let verdict = if is_right { Verdict::Approve } else { Verdict::Reject };
        let decision = NewDecision {
            verdict,
            reason: String::new(),
            data: None,
            by: Some("reviewer".to_owned()),
            key: None,
            at: SystemTime::UNIX_EPOCH,
        };
        assert!(self.review_queue.decide(&id, &decision).unwrap().is_new);
    }
}

#[test]
fn after_200_decisions_calibrated_confidence_has_at_most_half_the_error() {
    let mut lines = Vec::new();
    for (name, truth) in TRUTHS {
        for seed in [3, 17, 2_026, 77_777, 123_456_789] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("cognitive.db");
            let mut office = Office::open(&path, seed, truth);
            assert_eq!(office.run().1, None, "nothing is known yet");
            office.decide(true);
            for _ in 1..DECISIONS {
                let (_, _, is_right) = office.run();
                office.decide(is_right);
            }
            // Another process continues.
            let random = office.random.clone();
            drop(office);
            let mut office = Office { random, ..Office::open(&path, seed, truth) };
            let (mut stated, mut worth): (Vec<CheckedAnswer>, Vec<CheckedAnswer>) = (Vec::new(), Vec::new());
            for _ in 0..DECISIONS {
                let (confidence, calibrated, is_right) = office.run();
                stated.push((confidence, is_right));
                worth.push((calibrated.unwrap(), is_right));
            }
            let (raw, calibrated) = (error(&stated).unwrap(), error(&worth).unwrap());
            lines.push(format!("{name}, seed {seed}: {raw:.3} becomes {calibrated:.3}"));
            assert!(calibrated <= raw / 2.0, "{lines:#?}");
        }
    }
    println!("{}", lines.join("\n"));
}
