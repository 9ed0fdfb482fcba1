//! Queries on past runs: every filter, pages, one run with its children, statistics over time, and the use of the
//! index.

use cognitive_contract::Envelope;
use cognitive_contract::money::Money;
use cognitive_contract::ports::{AuditLog, AuditRecord, Usage};
use cognitive_ports::archive::{RunArchive, RunFilter};
use cognitive_store::{AuditArchive, Filter, Row};
use rusqlite::Connection;
use serde_json::json;

use crate::common::{Home, at, bad, good, on_every_backend};

fn run(number: u64, module: &str) -> AuditRecord {
    let envelope = json!({
        "ok": true,
        "meta": { "confidence": 0.5, "risk": "medium", "explain": "Done" },
        "data": { "rationale": "r" }
    });
    let envelope = Envelope::from_value(envelope).unwrap();
    let mut record = AuditRecord::new(at(number), &format!("trace-{number}"), module, &envelope);
    record.run_id = format!("run-{number}");
    "p/one".clone_into(&mut record.model);
    #[expect(clippy::cast_precision_loss, reason = "some seconds")]
    {
        record.latency_ms = number as f64;
    }
    let usage = Usage::new(10, 5).with_cost(Money::parse("0.25"));
    record.usage = Some(usage);
    record.receipt = json!({ "usage": usage.to_value() });
    record
}

fn named(run_id: &str, mut record: AuditRecord) -> AuditRecord {
    run_id.clone_into(&mut record.run_id);
    record
}

fn archive(home: &Home, records: &[AuditRecord]) -> AuditArchive {
    let store = home.open();
    store.record_all(records).into_iter().for_each(Result::unwrap);
    AuditArchive::new(store)
}

on_every_backend! {
#[test]
fn each_filter_means_what_it_says(home: &Home) {
    let mut failed = named("bad", bad("t", "b", "E2003"));
    failed.user = Some("ann".to_owned());
    let mut paid = run(9, "a");
    (paid.key, paid.payload) = (Some("app".to_owned()), Some(json!({ "input": { "x": 1 }, "envelope": {} })));
    let mut lost = named("lost", AuditRecord::call(at(20), "lost", "c", json!({})));
    "p/two".clone_into(&mut lost.model);
    let archive = archive(home, &[failed, paid, lost]);
    let all = RunFilter::default();
    let ids = |filter: &RunFilter| -> Vec<String> {
        archive.runs(filter).unwrap().runs.into_iter().map(|run| run.run_id).collect()
    };
    assert_eq!(ids(&all), ["lost", "run-9", "bad"], "the newest first");
    let word = |word: &str| Some(word.to_owned());
    for (filter, expected) in [
        (RunFilter { module: word("a"), ..all.clone() }, vec!["run-9"]),
        (RunFilter { model: word("p/two"), ..all.clone() }, vec!["lost"]),
        (RunFilter { risk: word("high"), ..all.clone() }, vec!["bad"]),
        (RunFilter { min_confidence: Some(0.5), ..all.clone() }, vec!["run-9"]),
        (RunFilter { max_confidence: Some(0.1), ..all.clone() }, vec!["lost", "bad"]),
        (RunFilter { code: word("E2003"), ..all.clone() }, vec!["bad"]),
        (RunFilter { ok: Some(true), ..all.clone() }, vec!["run-9"]),
        (RunFilter { user: word("ann"), ..all.clone() }, vec!["bad"]),
        (RunFilter { key: word("app"), ..all.clone() }, vec!["run-9"]),
        (RunFilter { tenant: word("t"), ..all.clone() }, vec![]),
        (RunFilter { since: Some(at(9)), ..all.clone() }, vec!["lost", "run-9"]),
        (RunFilter { until: Some(at(9)), ..all.clone() }, vec!["bad"]),
    ] {
        assert_eq!(ids(&filter), expected, "{filter:?}");
    }
    let runs = archive.runs(&all).unwrap().runs;
    assert_eq!((runs[0].unfinished, runs[1].has_payload, runs[1].cost), (true, true, Money::parse("0.25")));
    assert_eq!(archive.runs(&RunFilter { cursor: word("x"), ..all }).unwrap_err(), "unknown cursor: `x`");
}
}

on_every_backend! {
#[test]
fn pages_follow_each_other_without_gap_or_double(home: &Home) {
    let records: Vec<AuditRecord> = (0..25).map(|number| run(number, "m")).collect();
    let archive = archive(home, &records);
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let page = archive.runs(&RunFilter { limit: Some(10), cursor, ..RunFilter::default() }).unwrap();
        seen.extend(page.runs.into_iter().map(|run| run.run_id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..25).rev().map(|number| format!("run-{number}")).collect::<Vec<_>>());
}
}

on_every_backend! {
#[test]
fn one_run_has_its_records_its_parts_and_what_was_said(home: &Home) {
    let of = |id: &str, module: &str, second: u64, latency_ms: f64, above: Option<&str>| {
        let mut record = named(id, good("trace", module));
        (record.at, record.latency_ms) = (at(second), latency_ms);
        record.receipt = json!({ "parent_span": above });
        record
    };
    let call = named("inner", AuditRecord::call(at(2), "trace", "inner", json!({})));
    let mut whole = of("whole", "whole", 10, 10_000.0, None);
    whole.payload = Some(json!({ "input": { "q": 1 }, "envelope": { "ok": true } }));
    let part = of("inner", "inner", 4, 2_000.0, Some("whole"));
    let deep = of("deep", "deep", 3, 500.0, Some("whole/inner"));
    let archive = archive(home, &[call, deep, part, whole]);
    let details = archive.run("whole", None).unwrap().unwrap();
    assert_eq!((details.records.len(), details.input), (4, Some(json!({ "q": 1 }))));
    assert!(details.records.iter().all(|record| record.get("payload").is_none()));
    let tree = serde_json::to_value(details.tree.unwrap()).unwrap();
    assert_eq!((&tree["module"], &tree["duration_ms"]), (&json!("whole"), &json!(10_000.0)));
    let inner = &tree["children"][0];
    assert_eq!((&inner["module"], inner["start_ms"].as_f64().unwrap().round()), (&json!("inner"), 2_000.0));
    let within: Vec<&str> =
        inner["children"].as_array().unwrap().iter().map(|child| child["name"].as_str().unwrap()).collect();
    assert_eq!(within, ["call", "run"]);
    assert_eq!(
        archive.run("inner", None).unwrap().unwrap().tree.unwrap().children.len(),
        2,
        "a part has a tree of its own"
    );
    assert_eq!((archive.run("none", None).unwrap(), archive.run("", None).unwrap()), (None, None));
}

#[test]
fn another_client_in_the_same_trace_takes_nothing_from_a_run(home: &Home) {
    let of = |id: &str, key: &str, second: u64| {
        let mut record = named(id, good("trace", "m"));
        (record.at, record.latency_ms, record.key) = (at(second), 1_000.0, Some(key.to_owned()));
        record.receipt = json!({ "parent_span": null });
        record
    };
    let archive = archive(home, &[of("ann", "ann", 2), of("bob", "bob", 3)]);
    let own = archive.run("ann", Some("ann")).unwrap().unwrap();
    assert_eq!((own.records.len(), own.records[0]["key"].as_str()), (1, Some("ann")));
    assert!(own.tree.is_some(), "the tree of its own records");
    assert_eq!(archive.run("bob", Some("ann")).unwrap(), None);
    assert_eq!(archive.run("ann", None).unwrap().unwrap().records.len(), 2, "an administrator sees all");
}
}

on_every_backend! {
#[test]
fn figures_are_summed_over_equal_parts_of_the_time(home: &Home) {
    let mut records: Vec<AuditRecord> = (1..=100).map(|number| run(number, "m")).collect();
    let mut failed = named("bad", bad("t", "b", "E2003"));
    failed.at = at(100);
    records.push(failed);
    records.push(named("lost", AuditRecord::call(at(100), "lost", "m", json!({}))));
    let archive = archive(home, &records);
    let stats = archive.stats(&RunFilter::default(), 4).unwrap();
    let totals = &stats.totals;
    assert_eq!((totals.runs, totals.failures, totals.unfinished), (101, 1, 1));
    assert_eq!((totals.input_tokens, totals.output_tokens), (1_000, 500));
    assert_eq!(totals.cost, Money::parse("25").unwrap());
    assert_eq!((totals.p50_ms, totals.p99_ms), (Some(50.0), Some(99.0)));
    assert_eq!((stats.codes["E2003"], stats.modules["m"], stats.models["p/one"]), (1, 101, 100));
    assert_eq!((stats.confidence.len(), stats.confidence[10]), (20, 100));
    assert_eq!(stats.buckets.len(), 4);
    assert_eq!(stats.buckets.iter().map(|bucket| bucket.totals.runs).sum::<u64>(), 101);
    assert_eq!(stats.buckets[0].at, stats.from.clone().unwrap());
    let since = archive.stats(&RunFilter { since: Some(at(99)), ..RunFilter::default() }, 2).unwrap();
    assert_eq!(since.totals.runs, 3);
    let none = archive.stats(&RunFilter { module: Some("x".to_owned()), ..RunFilter::default() }, 4).unwrap();
    assert!(none.buckets.is_empty() && none.from.is_none());
}
}

/// A composition of two parts, one of them with a part of its own, as the runtime records it: each run has the usage of all
/// below it.
fn composition() -> Vec<AuditRecord> {
    let paid = |id: &str, module: &str, second: u64, share: u64, above: Option<&str>| {
        let mut record = named(id, good("composed", module));
        let cost = Money::parse("0.25").map(|each| (1..share).fold(each, |sum, _| sum.plus(each)));
        let usage = Usage::new(10 * share, 5 * share).with_cost(cost);
        (record.at, record.latency_ms, record.usage) = (at(second), 100.0, Some(usage));
        record.receipt = json!({ "usage": usage.to_value() });
        if let Some(above) = above {
            record.receipt["parent_span"] = json!(above);
        }
        record
    };
    vec![
        paid("leaf", "leaf", 1, 1, Some("whole/middle")),
        paid("middle", "middle", 2, 1, Some("whole")),
        paid("side", "side", 3, 2, Some("whole")),
        paid("whole", "./whole", 4, 3, None),
    ]
}

on_every_backend! {
#[test]
fn a_composition_is_counted_once_and_its_parts_by_themselves_where_it_is_left_out(home: &Home) {
    let store = home.open();
    store.record_all(&composition()).into_iter().for_each(Result::unwrap);
    store.record(&run(9, "alone")).unwrap();
    let runs = Filter { runs: true, ..Filter::default() };
    let stats = store.stats(&runs).unwrap();
    let total = &stats.total;
    assert_eq!((total.runs, total.parts, total.succeeded), (2, 3, 2));
    assert_eq!((total.input_tokens, total.output_tokens, total.cost), (40, 20, Money::parse("1")));
    let of = |module: &str| stats.modules.iter().find(|each| each.module == module).unwrap().figures.clone();
    assert_eq!((of("./whole").cost, of("side").cost), (Money::parse("0.75"), Money::parse("0.5")));
    assert_eq!((of("side").runs, of("side").parts, of("leaf").input_tokens), (1, 0, 10));
    let side = store.stats(&Filter { module: Some("side".to_owned()), ..runs.clone() }).unwrap().total;
    assert_eq!((side.runs, side.parts, side.cost), (1, 0, Money::parse("0.5")));
    // An export says which records not to sum up.
    let usage_of_whole_runs: u64 = store.list(&runs).unwrap().iter().map(Row::to_json)
        .filter(|record| record["parent_span"].is_null())
        .map(|record| record["usage"]["input_tokens"].as_u64().unwrap())
        .sum();
    assert_eq!(usage_of_whole_runs, 40);
    let archive = AuditArchive::new(store);
    let figures = archive.stats(&RunFilter::default(), 2).unwrap();
    let totals = &figures.totals;
    assert_eq!((totals.runs, totals.parts, totals.input_tokens, totals.output_tokens), (2, 3, 40, 20));
    assert_eq!((Some(totals.cost), figures.modules["leaf"]), (Money::parse("1"), 1));
    let halves: Vec<u64> = figures.buckets.iter().map(|bucket| bucket.totals.input_tokens).collect();
    assert_eq!(halves, [30, 10]);
    let leaf = archive.stats(&RunFilter { module: Some("leaf".to_owned()), ..RunFilter::default() }, 1).unwrap();
    assert_eq!((leaf.totals.runs, leaf.totals.input_tokens), (1, 10));
    let listed = archive.runs(&RunFilter::default()).unwrap().runs;
    let above: Vec<Option<&str>> = listed.iter().map(|run| run.parent_span.as_deref()).collect();
    assert_eq!(above, [None, None, Some("whole"), Some("whole"), Some("whole/middle")]);
    assert_eq!(archive.run("side", None).unwrap().unwrap().run.parent_span.as_deref(), Some("whole"));
}
}

// Receipts and payloads are many times larger than what filters and figures look at.
#[test]
fn filters_and_figures_read_the_index_and_no_receipt() {
    let home = Home::on_sqlite();
    let archive = archive(&home, &[run(1, "m")]);
    archive.stats(&RunFilter::default(), 4).unwrap();
    let raw = Connection::open(home.path()).unwrap();
    for sql in AuditArchive::statements() {
        let plan: Vec<String> = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap().raw_plan();
        let scans: Vec<&String> = plan.iter().filter(|step| step.starts_with("SCAN audit")).collect();
        assert!(
            !scans.is_empty() && scans.iter().all(|step| step.contains("COVERING INDEX audit_overview")),
            "{plan:#?}"
        );
    }
}

trait RawPlan {
    fn raw_plan(self) -> Vec<String>;
}

impl RawPlan for rusqlite::Statement<'_> {
    fn raw_plan(mut self) -> Vec<String> {
        let mut rows = self.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get::<_, String>(3).unwrap());
        }
        steps
    }
}
