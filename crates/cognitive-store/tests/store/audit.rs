//! Round trips of the audit: records, filters, exports, statistics, and the retention of the oldest records.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::common::{Home, at, bad, good, on_every_backend, where_others_find_it};
use cognitive_contract::ports::{AuditLog, AuditRecord, Usage};
use cognitive_store::{Filter, Retention, Row, Store, StoreOptions};
use serde_json::{Value, json};

fn filled(home: &Home, records: impl IntoIterator<Item = AuditRecord>) -> Arc<Store> {
    let store = home.open();
    store.record_all(&records.into_iter().collect::<Vec<_>>()).into_iter().for_each(Result::unwrap);
    store
}

fn traces(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.trace_id.as_str()).collect()
}

fn exported(store: &Store, filter: &Filter) -> Vec<Row> {
    let mut rows = Vec::new();
    store
        .export(filter, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })
        .unwrap();
    rows
}

fn full_record() -> AuditRecord {
    let mut record = bad("trace-1", "code-reviewer", "E3001");
    "1.2.0".clone_into(&mut record.version);
    "openai/gpt-5".clone_into(&mut record.model);
    "run-1".clone_into(&mut record.run_id);
    (record.key, record.user) = (Some("ann".to_owned()), Some("ann".to_owned()));
    record.confidence = 0.25;
    record.latency_ms = 1234.5;
    record.usage = Some(Usage::new(10, u64::MAX));
    record.receipt =
        json!({ "sha256": { "input": "abc" }, "sizes": { "input": 7 }, "attempts": [{ "n": 1 }] });
    record.payload = Some(json!({ "input": { "text": "häßlich \u{0} 😀" } }));
    record
}

on_every_backend! {
#[test]
fn a_record_comes_back_as_it_was(home: &Home) {
    let record = full_record();
    home.open().record(&record).unwrap();
    let rows = home.open().list(&Filter::default()).unwrap();
    let [row] = rows.as_slice() else { unreachable!("{rows:?}") };
    assert_eq!(row.ts, "2026-01-02T03:04:05.000Z");
    assert_eq!(
        (row.event.as_str(), row.trace_id.as_str(), row.module.as_str()),
        ("run", "trace-1", "code-reviewer")
    );
    assert_eq!((row.version.as_str(), row.model.as_str()), ("1.2.0", "openai/gpt-5"));
    assert_eq!((row.ok, row.code.as_deref(), row.risk.as_str()), (false, Some("E3001"), "high"));
    assert_eq!(
        (row.confidence.to_bits(), row.latency_ms.to_bits()),
        (0.25f64.to_bits(), 1234.5f64.to_bits())
    );
    assert_eq!(row.usage, Some(Usage::new(10, i64::MAX.cast_unsigned())));
    assert_eq!((&row.receipt, &row.payload), (&record.receipt, &record.payload));
}
}

on_every_backend! {
#[test]
fn an_exported_record_has_the_members_of_the_audit_format(home: &Home) {
    let mut record = full_record();
    record.payload = None;
    let store = filled(home, [record, good("trace-2", "m")]);
    let rows = exported(&store, &Filter::default());
    let link = rows[0].link.clone().unwrap();
    assert_eq!((link.chain, link.seq, link.hash.len()), (1, 1, 64));
    let text = serde_json::to_string(&rows[0]).unwrap().replace(&link.hash, "…");
    assert_eq!(
        text,
        concat!(
            r#"{"ts":"2026-01-02T03:04:05.000Z","event":"run","trace_id":"trace-1","session_id":null,"#,
            r#""module":"code-reviewer","version":"1.2.0","outcome":"error","code":"E3001","sizes":{"input":7},"#,
            r#""input_hash":"abc","model":"openai/gpt-5","confidence":0.25,"risk":"high","latency_ms":1234.5,"#,
            r#""usage":{"input_tokens":10,"output_tokens":9223372036854775807,"total_tokens":9223372036854775817},"#,
            r#""run_id":"run-1","parent_span":null,"key":"ann","user":"ann","tenant":null,"link":{"chain":1,"seq":1,"hash":"…"},"#,
            r#""receipt":{"sha256":{"input":"abc"},"sizes":{"input":7},"attempts":[{"n":1}]}}"#,
        )
    );
    let sparse = rows[1].to_json();
    for unknown in ["session_id", "version", "code", "sizes", "input_hash", "model", "usage", "receipt"] {
        assert_eq!(sparse[unknown], Value::Null, "{unknown}");
    }
    assert_eq!(sparse["outcome"], "ok");
}
}

on_every_backend! {
#[test]
fn there_is_no_payload_unless_one_is_given(home: &Home) {
    let store = home.open();
    store.record(&good("without", "m")).unwrap();
    let mut with = good("with", "m");
    with.payload = Some(json!(null));
    store.record(&with).unwrap();
    let rows = exported(&store, &Filter::default());
    assert_eq!((&rows[0].payload, &rows[1].payload), (&None, &Some(Value::Null)));
    assert_eq!(rows[0].to_json().get("payload"), None);
    assert_eq!(rows[1].to_json().get("payload"), Some(&Value::Null));
}
}

on_every_backend! {
#[test]
fn strange_values_are_kept_within_bounds(home: &Home) {
    let mut record = good(&"é".repeat(10_000), &"m".repeat(1 << 20));
    record.confidence = f64::NAN;
    record.latency_ms = f64::INFINITY;
    record.payload = Some(json!("p".repeat(5 << 20)));
    let rows = filled(home, [record]).list(&Filter::default()).unwrap();
    assert_eq!((rows[0].trace_id.chars().count(), rows[0].module.len()), (256, 256));
    assert_eq!((rows[0].confidence.to_bits(), rows[0].latency_ms.to_bits()), (0, 0));
    assert_eq!(
        rows[0].payload,
        Some(json!({ "omitted": "5242882 bytes, above the limit of 4194304" })),
        "the record says that something is missing"
    );
}
}

on_every_backend! {
#[test]
fn filters_narrow_and_combine(home: &Home) {
    let mut late = bad("d", "two", "E1001");
    late.at = at(60);
    let mut other = good("e", "two");
    other.event = "context_access";
    let store = filled(home, [good("a", "one"), bad("b", "one", "E3001"), good("c", "two"), late, other]);
    let list = |filter: Filter| traces(&store.list(&filter).unwrap()).join("");
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(list(Filter::default()), "edcba", "newest first");
    assert_eq!(list(Filter { limit: Some(2), ..Filter::default() }), "ed");
    assert_eq!(list(Filter { limit: Some(0), ..Filter::default() }), "");
    assert_eq!(list(Filter { event: text("run"), ..Filter::default() }), "dcba");
    assert_eq!(list(Filter { module: text("one"), ..Filter::default() }), "ba");
    assert_eq!(list(Filter { module: text("on"), ..Filter::default() }), "");
    assert_eq!(list(Filter { code: text("E3001"), ..Filter::default() }), "b");
    assert_eq!(list(Filter { ok: Some(false), ..Filter::default() }), "db");
    assert_eq!(list(Filter { ok: Some(true), module: text("two"), ..Filter::default() }), "ec");
    assert_eq!(list(Filter { since: Some(at(60)), ..Filter::default() }), "d");
    assert_eq!(list(Filter { since: Some(at(61)), ..Filter::default() }), "");
    assert_eq!(list(Filter { module: text("' OR 1 --"), ..Filter::default() }), "");
}
}

on_every_backend! {
#[test]
fn a_record_is_found_by_the_beginning_of_its_trace_id(home: &Home) {
    let store = filled(home, ["abc1", "abc2", "abd", "ab%", "é1", "abc1"].map(|trace| good(trace, "m")));
    let find = |prefix: &str| traces(&store.find(prefix).unwrap()).join(" ");
    assert_eq!(find("abc"), "abc1 abc2 abc1");
    assert_eq!(find("abd"), "abd");
    assert_eq!(find("ab%"), "ab%");
    assert_eq!(find("é"), "é1");
    assert_eq!(find("x"), "");
    assert_eq!(find("ABC"), "");
}
}

on_every_backend! {
#[test]
fn an_export_is_jsonl_with_the_oldest_first(home: &Home) {
    let many = (0..700).map(|number| {
        let mut record = good(&format!("t{number:03}"), if number % 2 == 0 { "even" } else { "odd" });
        record.payload = Some(json!("line\nbreak\u{2028}"));
        record
    });
    let store = filled(home, many);
    let rows = exported(&store, &Filter::default());
    let expected: Vec<String> = (0..700).map(|number| format!("t{number:03}")).collect();
    assert_eq!(traces(&rows), expected);
    for row in &rows {
        let line = row.to_json().to_string();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), row.to_json());
    }

    let filter = Filter { module: Some("odd".to_owned()), limit: Some(300), ..Filter::default() };
    let rows = exported(&store, &filter);
    assert_eq!((rows.len(), rows[0].trace_id.as_str(), rows[299].trace_id.as_str()), (300, "t101", "t699"));
    assert!(exported(&store, &Filter { limit: Some(0), ..Filter::default() }).is_empty());
}
}

on_every_backend! {
#[test]
fn an_export_can_break_off_and_leaves_others_alone(home: &Home) {
    let store = filled(home, (0..600).map(|number| good(&number.to_string(), "m")));
    let mut seen = 0;
    let mut take = |_: Row| {
        seen += 1;
        // A `take` callback that writes would deadlock if the export held the connection.
        store.record(&good("new", "m")).unwrap();
        if seen == 300 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    store.export(&Filter::default(), &mut take).unwrap();
    assert_eq!(seen, 300);
    assert_eq!(store.find("new").unwrap().len(), 300);
}
}

on_every_backend! {
#[test]
fn sums_are_right(home: &Home) {
    let run = |mut record: AuditRecord, latency: f64, tokens: Option<(u64, u64)>| {
        record.latency_ms = latency;
        record.usage = tokens.map(|(input_tokens, output_tokens)| Usage::new(input_tokens, output_tokens));
        record
    };
    let store = filled(
        home,
        [
            run(good("1", "one"), 10.0, Some((5, 1))),
            run(good("2", "two"), 100.0, Some((7, 2))),
            run(bad("3", "two", "E3001"), 300.0, None),
            run(bad("4", "two", "E3001"), 200.0, Some((1, 1))),
            run(bad("5", "two", "E1001"), 400.0, Some((u64::MAX, 1))),
        ],
    );
    let stats = store.stats(&Filter::default()).unwrap();
    assert_eq!(stats.total.activity.iter().sum::<u64>(), 5);
    let mut modules = serde_json::to_value(&stats.modules).unwrap();
    for module in modules.as_array_mut().unwrap() {
        assert_eq!(
            module.as_object_mut().unwrap().shift_remove("activity").unwrap().as_array().unwrap().len(),
            16
        );
    }
    assert_eq!(
        modules,
        json!([
            { "module": "two", "runs": 4, "succeeded": 1, "success_rate": 0.25, "codes": { "E1001": 1, "E3001": 2 },
              "parts": 0, "unfinished": 0, "latency_p50_ms": 200.0, "latency_p95_ms": 400.0,
              "input_tokens": 9_223_372_036_854_775_815_u64, "output_tokens": 4 },
            { "module": "one", "runs": 1, "succeeded": 1, "success_rate": 1.0, "codes": {},
              "parts": 0, "unfinished": 0, "latency_p50_ms": 10.0, "latency_p95_ms": 10.0, "input_tokens": 5, "output_tokens": 1 },
        ])
    );
    assert_eq!((stats.total.runs, stats.total.succeeded, stats.total.output_tokens), (5, 2, 5));
    assert_eq!((stats.total.latency_p50_ms, stats.total.latency_p95_ms), (Some(200.0), Some(400.0)));

    let newest = store.stats(&Filter { limit: Some(2), ..Filter::default() }).unwrap();
    assert_eq!((newest.total.runs, newest.total.success_rate), (2, Some(0.0)));
    let none = store.stats(&Filter { module: Some("?".to_owned()), ..Filter::default() }).unwrap();
    assert_eq!((none.total.runs, none.total.success_rate, none.total.latency_p50_ms), (0, None, None));
}
}

fn limited(home: &Home, records: u64, bytes: u64) -> Arc<Store> {
    let options = StoreOptions {
        retention: Retention { records, bytes, payload_bytes: bytes, age: None },
        ..StoreOptions::default()
    };
    home.open_with(options)
}

on_every_backend! {
#[test]
fn the_oldest_records_make_room_when_there_are_too_many(home: &Home) {
    let store = limited(home, 10, u64::MAX);
    for number in 0..1_000 {
        store.record(&good(&format!("{number:03}"), "m")).unwrap();
        assert!(store.list(&Filter::default()).unwrap().len() <= 10);
    }
    let rows = exported(&store, &Filter::default());
    assert_eq!((rows.len(), rows[0].trace_id.as_str(), rows[9].trace_id.as_str()), (10, "990", "999"));
    assert_eq!(rows[9].id, 1_000);
}
}

on_every_backend! {
#[test]
fn the_oldest_records_make_room_when_they_are_too_large(home: &Home) {
    let store = limited(home, u64::MAX, 50_000);
    let record = |number: usize, size: usize| {
        let mut record = good(&format!("{number:03}"), "m");
        record.receipt = json!("x".repeat(size));
        record
    };
    for number in 0..300 {
        store.record(&record(number, number * 37 % 4_000)).unwrap();
        let rows = store.list(&Filter::default()).unwrap();
        let held: usize = rows.iter().map(|row| row.receipt.as_str().unwrap().len() + 256).sum();
        assert!(held <= 50_000, "{held} after {number}");
        assert!(rows.len() > 10 || number < 11, "{} after {number}", rows.len());
    }
    // A record above the whole limit is stored alone, and is dropped with the next one.
    store.record(&record(300, 60_000)).unwrap();
    assert_eq!(traces(&store.list(&Filter::default()).unwrap()), ["300"]);
    store.record(&record(301, 1)).unwrap();
    assert_eq!(traces(&store.list(&Filter::default()).unwrap()), ["301"]);
}
}

where_others_find_it! {
#[test]
fn a_lowered_limit_is_reached_in_small_steps(home: &Home) {
    let path = home.path();
    let store = home.open();
    for number in 0..200 {
        store.record(&good(&number.to_string(), "m")).unwrap();
    }
    let options = StoreOptions {
        retention: Retention { records: 5, ..Retention::default() },
        ..StoreOptions::default()
    };
    let strict = Store::open_with(path, options).unwrap();
    let mut left = Vec::new();
    for number in 200..204 {
        strict.record(&good(&number.to_string(), "m")).unwrap();
        left.push(strict.list(&Filter::default()).unwrap().len());
    }
    assert_eq!(left, [137, 74, 11, 5]);
}
}

#[test]
fn no_limit_at_all_removes_nothing_and_zero_keeps_the_newest() {
    for (limits, kept) in [((u64::MAX, u64::MAX), 20), ((0, 0), 1), ((0, u64::MAX), 1), ((u64::MAX, 0), 1)] {
        let store = limited(&Home::in_memory(), limits.0, limits.1);
        for number in 0..20 {
            store.record(&good(&number.to_string(), "m")).unwrap();
        }
        let rows = store.list(&Filter::default()).unwrap();
        assert_eq!((rows.len(), rows[0].trace_id.as_str()), (kept, "19"), "{limits:?}");
    }
}
