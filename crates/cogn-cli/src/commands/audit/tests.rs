//! Tests of the output of `cogn audit`.

use cognitive_contract::Envelope;
use cognitive_contract::ports::{AuditLog, AuditRecord, Usage};
use serde_json::json;

use super::*;

fn store_with(records: &[(&str, &str, Option<&str>)]) -> Store {
    let store = Store::in_memory().unwrap();
    for (trace_id, module, code) in records {
        let meta = json!({ "confidence": 0.5, "risk": "medium", "explain": "e" });
        let answer = match code {
            None => json!({ "ok": true, "meta": meta, "data": { "rationale": "r" } }),
            Some(code) => json!({ "ok": false, "meta": meta, "error": { "code": code, "message": "m" } }),
        };
        let envelope = Envelope::from_value(answer).unwrap();
        let mut record = AuditRecord::new(SystemTime::UNIX_EPOCH, trace_id, module, &envelope);
        record.latency_ms = 1_234.0;
        record.usage = Some(Usage::new(7, 2));
        record.receipt = json!({ "attempts": 1 });
        store.record(&record).unwrap();
    }
    store
}

fn bare(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    lines.into_iter().map(|line| anstream::adapter::strip_str(&line).to_string()).collect()
}

#[test]
fn a_row_of_the_list_is_short_and_cannot_steer_the_terminal() {
    let store = store_with(&[("0123456789", "evil\u{1b}[2J\u{9b}", Some("E3001"))]);
    let rows = store.list(&Filter::default()).unwrap();
    let expected = [
        &local_time("1970-01-01T00:00:00Z"),
        "01234567",
        "evil\u{fffd}[2J\u{fffd}",
        "E3001",
        "medium",
        "0.50",
        "1.2 s",
        "-",
        "-",
    ];
    assert_eq!(bare(cells(&rows[0])), expected);
}

#[test]
fn a_trace_is_shown_if_it_is_the_only_one_meant() {
    let store =
        store_with(&[("ab", "m", Some("E3001")), ("abc", "m", None), ("abd", "m", None), ("abc", "n", None)]);
    let meant = |given: &str| {
        let rows = exact_or_all(given, store.find(given).unwrap());
        one_trace(given, &rows).map(|()| rows.len()).map_err(|(message, _)| message)
    };
    assert_eq!((meant("ab"), meant("abc"), meant("abd")), (Ok(1), Ok(2), Ok(1)));
    assert_eq!(meant("a"), Err("3 trace ids start with `a`:\n  ab\n  abc\n  abd".to_owned()));
    assert_eq!(meant("x"), Err("unknown trace id: `x`".to_owned()));
    let text = bare(summary::table(&store.list(&Filter::default()).unwrap()[3]).lines(None)).join("\n");
    assert!(text.contains("E3001, the answer does not match the contract"), "{text}");
}

#[test]
fn sums_end_with_all_modules_together() {
    let store = store_with(&[("1", "m", None), ("2", "m", Some("E3001")), ("3", "n", None)]);
    let lines = sums(&store.stats(&Filter::default()).unwrap());
    let bare: Vec<_> = lines.into_iter().map(|line| bare(line).join("|")).collect();
    assert_eq!(bare[0], "m|2|█···············|0|50.0 %|1.2 s|1.2 s|14|4|-|E3001 × 1");
    assert_eq!(bare[2], "all|3|█···············|0|66.7 %|1.2 s|1.2 s|21|6|-|E3001 × 1");
}

#[test]
fn an_export_never_overwrites_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.jsonl");
    let store = store_with(&[("1", "m", None), ("2", "m", None)]);
    assert_eq!(export_to(create(&path).unwrap(), &path, &Filter::default(), &store).unwrap(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
}
