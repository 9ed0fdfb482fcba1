//! Formats an evaluation for users: a table of shares, then every case that was not right.
//! Prints nothing. Untrusted text is stripped of terminal control characters.

use cognitive_contract::text::escape_controls as plain;
use cognitive_testing::eval::{AccuracyShare, CaseOutcome, Evaluation, ListPosition};

use crate::figures::{dollars, duration};
use crate::printer::{BAD, FAINT, GOOD, HEAD};
use crate::text_table::{TextTable, visible};

/// Formats the evaluation, line by line, up to this width.
#[must_use]
pub fn lines(report: &Evaluation, width: Option<usize>) -> Vec<String> {
    let models = if report.models.is_empty() { "no model".to_owned() } else { report.models.join(", ") };
    let mut lines = vec![format!(
        "{HEAD}{}{HEAD:#} {} answered by {}",
        plain(&report.module),
        plain(&report.version),
        plain(&models)
    )];
    let (mut shares, mut facts) = (shares(report), facts(report));
    // Both tables share the width of the name column.
    let rows = shares.iter_mut().chain(&mut facts);
    let names: Vec<&mut String> = rows.filter_map(|row| row.first_mut()).collect();
    let longest = names.iter().map(|name| visible(name)).max().unwrap_or(0);
    for name in names {
        name.push_str(&" ".repeat(longest - visible(name)));
    }
    let shares = TextTable::without_headings(4).right(&[1, 2]).indent(2).with(shares);
    let facts = TextTable::without_headings(2).indent(2).with(facts);
    lines.extend([shares, facts].iter().flat_map(|table| table.lines(width)));
    let wrong: Vec<&CaseOutcome> = report.cases.iter().filter(|case| !case.right).collect();
    if !wrong.is_empty() {
        lines.push(format!("{HEAD}not as expected{HEAD:#}"));
    }
    for case in wrong {
        lines.extend(details(case));
    }
    lines
}

/// Returns the shares, each with its base.
fn shares(report: &Evaluation) -> Vec<Vec<String>> {
    let row = |name: &str, share: &AccuracyShare, note: String| {
        vec![
            name.to_owned(),
            format!("{:.1} %", share.share * 100.0),
            format!("{}/{}", share.right, share.of),
            note,
        ]
    };
    let mut rows = vec![row("accuracy", &report.accuracy, String::new())];
    rows.extend(
        report.fields.iter().map(|(place, share)| row(&format!("  {}", plain(place)), share, String::new())),
    );
    for (place, of) in &report.positions {
        rows.extend(of.iter().map(|(order, share)| {
            let place_in_list = match order {
                ListPosition::First => "first",
                ListPosition::Middle => "in the middle",
                ListPosition::Last => "last",
            };
            row(&format!("  {}, right one {place_in_list}", plain(place)), share, String::new())
        }));
    }
    let codes: Vec<String> =
        report.failures.iter().map(|(code, count)| format!("{} × {count}", plain(code))).collect();
    rows.push(row("valid", &report.valid, codes.join(", ")));
    rows
}

/// Returns the measured values.
fn facts(report: &Evaluation) -> Vec<Vec<String>> {
    let text = |name: &str, value: String| vec![name.to_owned(), value];
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let cost = report.cost.map(|cost| {
        let each = report.cost_per_right.map(|each| format!(", {} for each right case", dollars(each)));
        text("cost", format!("{}{}", dollars(cost), each.unwrap_or_default()))
    });
    let mut facts = vec![
        text(
            "confidence",
            format!("AUC {}, calibration error {}", number(report.auc), number(report.calibration_error)),
        ),
        text(
            "latency",
            format!("p50 {}, p95 {}", duration(report.latency_p50_ms), duration(report.latency_p95_ms)),
        ),
        text("tokens", format!("{} read, {} written", report.input_tokens, report.output_tokens)),
    ];
    facts.extend(cost);
    facts.push(text("time", duration(report.elapsed_ms)));
    facts
}

fn details(case: &CaseOutcome) -> Vec<String> {
    let mut lines = vec![format!("  {}", plain(&case.id))];
    let error = |at: &str| case.envelope.pointer(at).and_then(serde_json::Value::as_str).map(plain);
    if let (Some(code), Some(message)) = (error("/error/code"), error("/error/message")) {
        lines.push(format!("    {FAINT}the run failed with {code}: {message}{FAINT:#}"));
    }
    for field in case.fields.iter().filter(|field| !field.right) {
        lines.push(format!(
            "    {}: expected {GOOD}{}{GOOD:#}, got {BAD}{}{BAD:#}",
            plain(&field.place),
            plain(&field.expected),
            plain(&field.got)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use cognitive_testing::eval::FieldOutcome;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_and_what_was_wrong() {
        let field = |place: &str, right: bool| FieldOutcome {
            place: place.to_owned(),
            expected: if right { String::new() } else { "\"b\"".to_owned() },
            got: "\"a\u{1b}[2J\"".to_owned(),
            right,
            order: Some(ListPosition::Last),
        };
        let envelope = json!({ "ok": true, "meta": { "model": "p/m", "latency_ms": 12.4 }, "data": {} });
        let failure = json!({ "ok": false, "meta": {}, "error": { "code": "E2007", "message": "no text" } });
        let cases = vec![
            CaseOutcome::new("one", vec![field("word", true)], envelope.clone()),
            CaseOutcome::new("two", vec![field("word", false)], failure),
        ];
        let text = lines(&Evaluation::new("m", "1.0.0", 1_500.0, cases), None).join("\n");
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = "m 1.0.0 answered by p/m
  accuracy                 50.0 %  1/2
    word                   50.0 %  1/2
    word, right one last   50.0 %  1/2
  valid                   100.0 %  2/2  E2007 × 1
  confidence              AUC -, calibration error -
  latency                 p50 12 ms, p95 12 ms
  tokens                  0 read, 0 written
  time                    1.5 s
not as expected
  two
    the run failed with E2007: no text
    word: expected \"b\", got \"a\\u001b[2J\"";
        assert_eq!(text, expected);
    }
}
