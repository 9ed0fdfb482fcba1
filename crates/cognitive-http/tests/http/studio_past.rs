//! Past runs and reviews as Studio requests them: visibility and refusals.

use std::sync::{Arc, Mutex};

use cognitive_contract::ports::PortFuture;
use cognitive_http::KeyRole;
use cognitive_ports::archive::{
    ArchivedRun, RunArchive, RunDetails, RunFilter, RunPage, RunStats, WaterfallNode,
};
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, NewDecision, Review, ReviewDecision, ReviewEntry, ReviewError,
    ReviewExport, ReviewFilter, ReviewPage, ReviewQueue,
};
use serde_json::{Value, json};

use crate::studio_access::{key_of, keyed};
use crate::support::{ANSWER, Script, SendJson as _, Server, client, json_of, roomy};

/// An archive that records its queries.
#[derive(Default)]
struct StubArchive {
    asked: Mutex<Vec<RunFilter>>,
    runs: Vec<RunDetails>,
}

impl RunArchive for StubArchive {
    fn runs(&self, filter: &RunFilter) -> Result<RunPage, String> {
        self.asked.lock().unwrap().push(filter.clone());
        if filter.cursor.as_deref() == Some("-1") {
            return Err("/home/ann/.cognitive/cognitive.db is locked".to_owned());
        }
        let fits = |details: &&RunDetails| filter.key.is_none() || filter.key == details.run.key;
        Ok(RunPage {
            runs: self.runs.iter().filter(fits).map(|details| details.run.clone()).collect(),
            next: None,
        })
    }

    fn run(&self, run_id: &str, key: Option<&str>) -> Result<Option<RunDetails>, String> {
        let mut found = self.runs.iter().find(|details| details.run.run_id == run_id).cloned();
        if let Some(key) = key {
            found = found.filter(|details| details.run.key.as_deref() == Some(key));
            if let Some(details) = &mut found {
                details.records.retain(|record| record["key"] == key);
            }
        }
        Ok(found)
    }

    fn stats(&self, filter: &RunFilter, buckets: usize) -> Result<RunStats, String> {
        self.asked.lock().unwrap().push(filter.clone());
        Ok(RunStats { confidence: vec![0; buckets], ..RunStats::default() })
    }
}

fn run(id: &str, key: &str, payload: bool) -> RunDetails {
    let envelope = json!({ "ok": true, "meta": { "confidence": 0.4, "risk": "low", "explain": "Before" },
                           "data": { "rationale": "old", "words": [] } });
    let record = |key: &str| json!({ "event": "run", "key": key });
    RunDetails {
        run: ArchivedRun {
            run_id: id.to_owned(),
            module: "words".to_owned(),
            key: Some(key.to_owned()),
            has_payload: payload,
            ..ArchivedRun::default()
        },
        records: vec![record(key), record("somebody-else")],
        tree: Some(WaterfallNode::default()),
        input: payload.then(|| json!({ "text": "winter" })),
        envelope: payload.then_some(envelope),
    }
}

async fn server(stub_archive: &Arc<StubArchive>) -> Server {
    let mut config = keyed();
    config.archive = Some(Arc::clone(stub_archive) as _);
    Server::start(&Script::free(&ANSWER), "both", config).await
}

async fn get(server: &Server, role: KeyRole, path: &str) -> (u16, Value) {
    let response = client().get(server.url(path)).bearer_auth(key_of(role)).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

async fn post(server: &Server, role: KeyRole, path: &str, body: Value) -> (u16, Value) {
    let response =
        client().post(server.url(path)).bearer_auth(key_of(role)).json(&body).send().await.unwrap();
    (response.status().as_u16(), json_of(response).await)
}

fn stub_archive() -> Arc<StubArchive> {
    Arc::new(StubArchive {
        asked: Mutex::default(),
        runs: vec![run("mine", "run", true), run("theirs", "admin", false)],
    })
}

#[tokio::test]
async fn whoever_runs_modules_sees_their_own_runs_and_an_admin_all() {
    let stub_archive = stub_archive();
    let server = server(&stub_archive).await;
    let count = |answer: &Value| answer["runs"].as_array().unwrap().len();
    let (_, own) =
        get(&server, KeyRole::Run, "/v1/runs?module=words&limit=7&ok=true&since=2026-11-17T09:00:00Z").await;
    assert_eq!((count(&own), &own["runs"][0]["run_id"]), (1, &json!("mine")));
    let asked = stub_archive.asked.lock().unwrap().pop().unwrap();
    assert_eq!(
        (asked.key.as_deref(), asked.module.as_deref(), asked.limit),
        (Some("run"), Some("words"), Some(7))
    );
    assert!(asked.ok == Some(true) && asked.since.is_some());
    assert_eq!(count(&get(&server, KeyRole::Admin, "/v1/runs").await.1), 2);
    assert_eq!(count(&get(&server, KeyRole::Admin, "/v1/runs?key=run").await.1), 1);
    let (status, refused) = get(&server, KeyRole::Run, "/v1/runs?key=admin").await;
    assert_eq!((status, &refused["error"]["details"]["role"]), (403, &json!("admin")));
    get(&server, KeyRole::Run, "/v1/runs/stats?buckets=12").await;
    assert_eq!(stub_archive.asked.lock().unwrap().pop().unwrap().key.as_deref(), Some("run"), "figures too");
    let (status, details) = get(&server, KeyRole::Run, "/v1/runs/mine").await;
    assert_eq!(status, 200);
    assert_eq!(
        details["records"].as_array().unwrap().len(),
        1,
        "of a trace that is shared, one's own records"
    );
    assert!(details["tree"].is_object(), "the tree of its own records");
    assert_eq!(get(&server, KeyRole::Run, "/v1/runs/theirs").await.0, 404);
    assert_eq!(
        get(&server, KeyRole::Admin, "/v1/runs/theirs").await.1["records"].as_array().unwrap().len(),
        2
    );
    assert_eq!(get(&server, KeyRole::Admin, "/v1/runs/none").await.0, 404);
}

#[tokio::test]
async fn queries_that_cannot_be_meant_are_refused_and_places_are_not_told() {
    let stub_archive = stub_archive();
    let server = server(&stub_archive).await;
    for query in [
        "limit=many",
        "ok=perhaps",
        "since=yesterday",
        "modul=words",
        "min_confidence=high",
        "limit=1&limit=2",
    ] {
        let (status, refused) = get(&server, KeyRole::Admin, &format!("/v1/runs?{query}")).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("E1001")), "{query}");
    }
    get(&server, KeyRole::Admin, "/v1/runs?limit=1000000").await;
    assert_eq!(stub_archive.asked.lock().unwrap().pop().unwrap().limit, Some(500));
    assert_eq!(get(&server, KeyRole::Admin, "/v1/runs?cursor=broken").await.0, 400, "no page gave it");
    let (status, broken) = get(&server, KeyRole::Admin, "/v1/runs?cursor=-1").await;
    assert_eq!(status, 500);
    assert!(!broken.to_string().contains("/home"), "{broken}");
}

#[tokio::test]
async fn a_run_is_made_again_and_compared() {
    let stub_archive = stub_archive();
    let mut config = keyed();
    config.archive = Some(Arc::clone(&stub_archive) as _);
    config.keys.push(
        cognitive_http::ApiKey::new("run", "author-of-the-same-name-01")
            .unwrap()
            .with_roles(cognitive_http::Roles::ALL),
    );
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let (status, replay) = post(&server, KeyRole::Admin, "/v1/runs/mine/replay", json!({})).await;
    assert_eq!(status, 200, "{replay}");
    assert_eq!(
        (&replay["before"]["meta"]["explain"], &replay["after"]["meta"]["explain"]),
        (&json!("Before"), &json!("Two words"))
    );
    let paths: Vec<&str> =
        replay["diff"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        ["/meta/confidence", "/meta/explain", "/data/rationale", "/data/words/0", "/data/words/1"]
    );
    let (status, refused) = post(&server, KeyRole::Admin, "/v1/runs/theirs/replay", json!({})).await;
    assert_eq!((status, &refused["error"]["details"]["kind"]), (409, &json!("no_payload")));
    assert!(refused["error"]["suggestion"].as_str().unwrap().contains("payloads: true"));
    assert_eq!(
        post(&server, KeyRole::Author, "/v1/runs/mine/replay", json!({})).await.0,
        404,
        "of somebody else"
    );
    assert_eq!(post(&server, KeyRole::Admin, "/v1/runs/mine/replay", json!({ "modul": 1 })).await.0, 400);
}

#[tokio::test]
async fn a_replay_counts_as_a_run() {
    let stub_archive = stub_archive();
    let mut config = keyed();
    config.archive = Some(Arc::clone(&stub_archive) as _);
    config.runs_per_minute = 1;
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    assert_eq!(post(&server, KeyRole::Admin, "/v1/runs/mine/replay", json!({})).await.0, 200);
    assert_eq!(post(&server, KeyRole::Admin, "/v1/runs/mine/replay", json!({})).await.0, 429);
}

/// A review store with one entry.
#[derive(Default)]
struct Tray {
    decided: Mutex<Option<NewDecision>>,
}

impl Tray {
    fn review(&self) -> Review {
        let entry = ReviewEntry {
            at: std::time::SystemTime::UNIX_EPOCH,
            run_id: "r".to_owned(),
            trace_id: "t".to_owned(),
            key: None,
            user: None,
            tenant: None,
            module: "words".to_owned(),
            version: "1.0.0".to_owned(),
            model: "script/stub".to_owned(),
            rule: "confidence < 0.6".to_owned(),
            input: json!({ "text": "winter" }),
            envelope: json!({ "ok": true, "meta": { "confidence": 0.4, "risk": "low", "explain": "e" },
                              "data": { "rationale": "r", "words": [] } }),
        };
        let mut review = Review::from_entry("1".to_owned(), "2026-11-17T09:00:00Z".to_owned(), &entry);
        review.decision = self.decided.lock().unwrap().as_ref().map(|made| {
            ReviewDecision::new(
                made.verdict,
                made.reason.clone(),
                made.by.clone(),
                String::new(),
                made.data.clone(),
            )
        });
        review
    }
}

impl ReviewQueue for Tray {
    fn enter<'a>(&'a self, _: &'a ReviewEntry) -> PortFuture<'a, Result<String, String>> {
        Box::pin(std::future::ready(Ok("1".to_owned())))
    }

    fn list(&self, filter: &ReviewFilter) -> Result<ReviewPage, String> {
        let review = self.review();
        let fits = filter.open.is_none_or(|open| open == review.is_open());
        let reviews: Vec<Review> = Some(review).filter(|_| fits).into_iter().collect();
        Ok(ReviewPage { open: reviews.len() as u64, reviews, next: None })
    }

    fn get(&self, id: &str) -> Result<Option<Review>, String> {
        Ok((id == "1").then(|| self.review()))
    }

    fn decide(&self, id: &str, decision: &NewDecision) -> Result<DecidedReview, ReviewError> {
        decision.check()?;
        if id != "1" {
            return Err(ReviewError::Unknown);
        }
        let before = self.decided.lock().unwrap().clone();
        match before {
            Some(before) if before.verdict != decision.verdict => {
                Err(ReviewError::Conflict(Box::new(self.review())))
            }
            _ => {
                *self.decided.lock().unwrap() = Some(decision.clone());
                Ok(DecidedReview { review: self.review(), is_new: before.is_none() })
            }
        }
    }

    fn calibration(&self, _: Option<&str>) -> Result<CalibrationReport, String> {
        Ok(CalibrationReport { decisions: 3, ..CalibrationReport::default() })
    }

    fn calibrated_confidence(&self, _: &str, _: &str, _: f64) -> Option<f64> {
        None
    }

    fn export(
        &self,
        form: ReviewExport,
        _: Option<&str>,
        take: &mut dyn FnMut(Value) -> bool,
    ) -> Result<(), String> {
        for line in 0..100 {
            if !take(json!({ "line": line, "cases": form == ReviewExport::Cases, "text": "<script>\n" })) {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_reviewer_looks_decides_and_takes_the_decisions_along() {
    let tray = Arc::new(Tray::default());
    let mut config = keyed();
    config.reviews = Some(Arc::clone(&tray) as _);
    let server = Server::start(&Script::free(&ANSWER), "both", config).await;
    let (_, page) = get(&server, KeyRole::Review, "/v1/reviews?state=open").await;
    assert_eq!((&page["open"], &page["reviews"][0]["id"]), (&json!(1), &json!("1")));
    assert_eq!(get(&server, KeyRole::Review, "/v1/reviews/1").await.1["input"]["text"], "winter");
    assert_eq!(get(&server, KeyRole::Review, "/v1/reviews/2").await.0, 404);
    assert_eq!(get(&server, KeyRole::Review, "/v1/reviews?state=lost").await.0, 400);
    let wrong = json!({ "verdict": "correct", "reason": "r", "data": { "rationale": "r", "words": [7] } });
    let (status, refused) = post(&server, KeyRole::Review, "/v1/reviews/1/decision", wrong).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("E1001")),
        "a correction keeps the contract: {refused}"
    );
    assert!(refused["error"]["details"]["violations"][0]["path"].as_str().unwrap().starts_with("/data"));
    for body in [
        json!({ "verdict": "correct" }),
        json!({ "verdict": "approve", "data": {} }),
        json!({ "verdict": "maybe" }),
    ] {
        assert_eq!(
            post(&server, KeyRole::Review, "/v1/reviews/1/decision", body.clone()).await.0,
            400,
            "{body}"
        );
    }
    let right = json!({ "verdict": "correct", "reason": "r", "data": { "rationale": "r", "words": [{ "text": "a" }] } });
    let (status, decided) = post(&server, KeyRole::Review, "/v1/reviews/1/decision", right.clone()).await;
    assert_eq!(
        (status, &decided["state"], &decided["decision"]["by"]),
        (200, &json!("decided"), &json!("review"))
    );
    assert_eq!(
        post(&server, KeyRole::Review, "/v1/reviews/1/decision", right).await.0,
        200,
        "the same again is fine"
    );
    let other = json!({ "verdict": "reject", "reason": "" });
    let (status, conflict) = post(&server, KeyRole::Review, "/v1/reviews/1/decision", other.clone()).await;
    assert_eq!((status, &conflict["error"]["details"]["decision"]["verdict"]), (409, &json!("correct")));
    assert_eq!(post(&server, KeyRole::Review, "/v1/reviews/2/decision", other).await.0, 404);
    assert_eq!(get(&server, KeyRole::Review, "/v1/reviews/calibration?module=words").await.1["decisions"], 3);
    let lines = client()
        .get(server.url("/v1/reviews/export?as=cases"))
        .bearer_auth(key_of(KeyRole::Review))
        .send()
        .await
        .unwrap();
    assert_eq!(lines.headers()["content-type"], "application/x-ndjson");
    assert!(lines.headers()["content-disposition"].to_str().unwrap().starts_with("attachment"));
    let text = lines.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() == 100 && lines[99]["line"] == 99 && lines[0]["cases"] == true);
}

#[tokio::test]
async fn a_server_that_keeps_nothing_says_so() {
    let server = Server::start(&Script::free(&ANSWER), "both", roomy()).await;
    for path in [
        "/v1/runs",
        "/v1/runs/stats",
        "/v1/runs/x",
        "/v1/reviews",
        "/v1/reviews/export",
        "/v1/modules/words/files",
    ] {
        let response = client().get(server.url(path)).send().await.unwrap();
        assert_eq!(response.status(), 403, "{path}");
        assert_eq!(json_of(response).await["error"]["code"], "E4007", "{path}");
    }
    let session = json_of(client().get(server.url("/v1/session")).send().await.unwrap()).await;
    assert_eq!(session["has"], json!({ "runs": false, "payloads": false, "review": false, "edit": false }));
}
