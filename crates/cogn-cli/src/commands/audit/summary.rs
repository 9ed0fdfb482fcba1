//! A summary of one record for users: outcome, model, constraints, and changes to the answer. The full receipt is long;
//! `--json` prints it.

use cognitive_contract::{ErrorCode, text};
use cognitive_store::Row;
use serde_json::Value;

use super::{dash, result, risk};
use crate::figures::{bar, dollars, duration, local_time};
use crate::printer::plain;
use crate::text_table::TextTable;

/// The maximum number of changes that are named; the rest are counted, because all of them share one cell.
const MAX_NAMED: usize = 4;

/// Returns the summary table of a record.
pub(super) fn table(row: &Row) -> TextTable {
    let code = row.code.as_deref().and_then(ErrorCode::find);
    let meaning = code.map(|code| format!(", {}", code.meaning())).unwrap_or_default();
    let tokens = row.usage.map(|usage| format!("{} in, {} out", usage.input_tokens, usage.output_tokens));
    let mut facts = vec![
        ("trace id", plain(&row.trace_id)),
        ("time", format!("{} ({})", local_time(&row.ts), plain(&row.ts))),
        ("module", plain(format!("{} {}", row.module, row.version).trim_end())),
        ("result", format!("{}{meaning}", result(row))),
        ("risk", risk(&row.risk)),
        ("confidence", format!("{:.2} {}", row.confidence, bar(row.confidence, 10))),
        ("latency", duration(row.latency_ms)),
        ("model", plain(dash(&row.model))),
    ];
    facts.extend(tokens.map(|tokens| ("tokens", tokens)));
    facts.extend(row.usage.and_then(|usage| usage.cost).map(|cost| ("cost", dollars(cost))));
    facts.extend(receipt(&row.receipt));
    let whose = [("key", &row.key), ("user", &row.user), ("tenant", &row.tenant)];
    facts.extend(whose.into_iter().filter_map(|(name, who)| Some((name, plain(who.as_ref()?)))));
    facts.extend(payload(row).map(|payload| ("payload", payload)));
    if row.event != "run" {
        facts.push(("event", plain(&row.event)));
    }
    if row.run_id != row.trace_id && !row.run_id.is_empty() {
        facts.push(("run id", plain(&row.run_id)));
    }
    TextTable::facts(facts)
}

fn payload(row: &Row) -> Option<String> {
    match &row.payload {
        _ if row.payload_dropped => Some("dropped by retention".to_owned()),
        Some(_) => Some("input and envelope are stored".to_owned()),
        None => None,
    }
}

/// Returns how the answer was obtained, according to the receipt.
fn receipt(receipt: &Value) -> Vec<(&'static str, String)> {
    let list =
        |name: &str| receipt.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let word =
        |name: &str| receipt.get(name).and_then(Value::as_str).map(|word| plain(&word.replace('_', " ")));
    let mut facts = Vec::new();
    facts.extend(word("decode").map(|decode| ("bound by", decode)));
    let attempts = list("attempts");
    if !attempts.is_empty() {
        facts.push(("attempts", attempts_text(attempts)));
    }
    let reasked = receipt.get("reasked").and_then(Value::as_u64);
    facts.extend(
        reasked.map(|times| {
            ("asked again", if times == 1 { "once".to_owned() } else { format!("{times} times") })
        }),
    );
    for (name, member, what) in [
        ("repairs", "repairs", &["rule", "path"][..]),
        ("liberties", "liberties", &["what"]),
        ("lost constraints", "constraints_lost", &["keyword", "path"]),
    ] {
        let changes = list(member);
        if !changes.is_empty() {
            facts.push((name, changes_text(changes, what)));
        }
    }
    for (name, member) in [("tools", "tools"), ("media", "media")] {
        let count = list(member).len();
        if count > 0 {
            facts.push((name, count.to_string()));
        }
    }
    if receipt.get("kept").and_then(Value::as_bool) == Some(true) {
        facts.push(("cached", "the answer of an earlier run".to_owned()));
    }
    facts
}

/// Returns the number of attempts and the outcomes of the failed ones.
fn attempts_text(attempts: &[Value]) -> String {
    let outcome = |attempt: &Value| attempt.get("outcome").and_then(Value::as_str).map(plain);
    let failed: Vec<String> = attempts.iter().filter_map(outcome).filter(|outcome| outcome != "ok").collect();
    match failed.as_slice() {
        [] => attempts.len().to_string(),
        failed => format!("{}, of which failed: {}", attempts.len(), text::cut(&failed.join("; "), 200)),
    }
}

/// Returns the number of changes and the first few.
fn changes_text(changes: &[Value], what: &[&str]) -> String {
    let name = |change: &Value| {
        let words = what.iter().filter_map(|member| change.get(member).and_then(Value::as_str));
        words.map(plain).collect::<Vec<_>>().join(" ")
    };
    let first: Vec<String> = changes.iter().take(MAX_NAMED).map(name).collect();
    let more = changes.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}: {}{more}", changes.len(), first.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_receipt_is_a_few_lines() {
        let whole = json!({
            "decode": "native_schema", "reasked": 1, "sha256": {},
            "attempts": [{ "outcome": "overloaded" }, { "outcome": "ok" }],
            "repairs": [{ "path": "/meta/risk", "rule": "lowercase" }], "liberties": [],
            "constraints_lost": [{ "path": "/a", "keyword": "minLength" }],
        });
        assert_eq!(
            receipt(&whole),
            [
                ("bound by", "native schema".to_owned()),
                ("attempts", "2, of which failed: overloaded".to_owned()),
                ("asked again", "once".to_owned()),
                ("repairs", "1: lowercase /meta/risk".to_owned()),
                ("lost constraints", "1: minLength /a".to_owned()),
            ]
        );
        assert_eq!(receipt(&json!({ "attempts": 1 })), []);
    }
}
