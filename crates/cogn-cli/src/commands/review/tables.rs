//! Formats reviews for a terminal: tables, the card of one run, and the calibration of confidence.

use cognitive_contract::Envelope;
use cognitive_contract::text::cut;
use cognitive_ports::review::calibration::MIN_DECISIONS;
use cognitive_ports::review::{CalibrationReport, ModelCalibration, Review, Verdict};
use serde_json::Value;

use crate::figures::{bar, count_text, local_time};
use crate::printer::{BAD, DOUBT, FAINT, GOOD, NOTE, Printer, plain};
use crate::text_table::TextTable;
use crate::view;

/// The number of cells in a bar.
const CELLS: usize = 10;

/// The maximum length of a name in a cell. A longer one would push the other columns out of the terminal.
const NAME: usize = 40;

fn common(review: &Review) -> [String; 4] {
    let risk = match review.risk.as_str() {
        "high" => format!("{BAD}high{BAD:#}"),
        "medium" => format!("{DOUBT}medium{DOUBT:#}"),
        other => plain(other),
    };
    [
        format!("{NOTE}{}{NOTE:#}", plain(&review.id)),
        local_time(&review.at),
        plain(cut(&review.module, NAME)),
        risk,
    ]
}

fn confidence_cells(review: &Review) -> [String; 2] {
    let worth = review.calibrated_confidence.map_or_else(|| "-".to_owned(), |worth| format!("{worth:.2}"));
    [format!("{:.2}", review.confidence), worth]
}

/// Returns the table of open reviews.
pub(super) fn open(reviews: &[Review]) -> TextTable {
    let heads = ["REVIEW", "TIME", "MODULE", "RISK", "CONFIDENCE", "WORTH", "RULE", "SAYS"];
    let table = TextTable::new(heads).right(&[0, 4, 5]).prose(7).optional_columns(&[5, 1, 6, 3]);
    table.with(reviews.iter().map(|review| {
        let last = [plain(cut(&review.rule, NAME)), plain(&review.explain)];
        common(review).into_iter().chain(confidence_cells(review)).chain(last).collect()
    }))
}

/// Returns the table of decided reviews.
pub(super) fn decided_table(reviews: &[Review]) -> TextTable {
    let heads = ["REVIEW", "TIME", "MODULE", "RISK", "CONFIDENCE", "WORTH", "VERDICT", "BY", "REASON"];
    let table = TextTable::new(heads).right(&[0, 4, 5]).prose(8).optional_columns(&[5, 1, 3, 7]);
    table.with(reviews.iter().map(|review| {
        let decision = review.decision.as_ref();
        let by = decision.and_then(|decision| decision.by.as_deref()).unwrap_or("-");
        let reason = decision.map_or("", |decision| decision.reason.as_str());
        let last = [verdict(review), plain(cut(by, NAME)), plain(reason)];
        common(review).into_iter().chain(confidence_cells(review)).chain(last).collect()
    }))
}

fn verdict(review: &Review) -> String {
    match review.decision.as_ref().map(|decision| decision.verdict) {
        None => "-".to_owned(),
        Some(verdict @ Verdict::Approve) => format!("{GOOD}{}{GOOD:#}", verdict.past_participle()),
        Some(verdict @ Verdict::Reject) => format!("{BAD}{}{BAD:#}", verdict.past_participle()),
        Some(verdict @ Verdict::Correct) => format!("{DOUBT}{}{DOUBT:#}", verdict.past_participle()),
    }
}

/// Prints one run with everything that a decision needs.
pub(super) fn print_review(review: &Review, printer: &Printer) {
    let whose = review.user.as_deref().or(review.key.as_deref());
    let mut facts = vec![
        ("review", plain(&review.id)),
        ("time", local_time(&review.at)),
        ("rule", plain(&review.rule)),
        ("model", plain(if review.model.is_empty() { "-" } else { &review.model })),
        ("trace id", plain(&review.trace_id)),
    ];
    facts.extend(whose.map(|whose| ("user", plain(whose))));
    if let Some(worth) = review.calibrated_confidence {
        facts.push((
            "worth",
            format!("{worth:.2} {} {FAINT}by earlier decisions{FAINT:#}", bar(worth, CELLS)),
        ));
    }
    if let Some(decision) = &review.decision {
        let by = decision.by.as_deref().map(|by| format!(" by {}", plain(by))).unwrap_or_default();
        facts.push(("decision", format!("{}{by}, {}", verdict(review), local_time(&decision.at))));
        if !decision.reason.is_empty() {
            facts.push(("reason", plain(&decision.reason)));
        }
    }
    printer.table(&TextTable::facts(facts));
    section("input", review.input.as_ref(), printer);
    match review.envelope.clone().map(Envelope::from_value) {
        Some(Ok(envelope)) => {
            printer.print_line("");
            let width = printer.width();
            for line in &view::card(&review.module, &envelope, width) {
                printer.print_line(line);
            }
        }
        _ => section("answer", review.envelope.as_ref(), printer),
    }
    let right = review.decision.as_ref().and_then(|decision| decision.data.as_ref());
    if right.is_some() {
        section("right answer", right, printer);
    }
}

/// Prints a value under a heading, as JSON.
fn section(name: &str, value: Option<&Value>, printer: &Printer) {
    printer.print_line("");
    printer.print_line(format!("{FAINT}{name}{FAINT:#}"));
    match value {
        None => printer.print_line("  dropped by retention"),
        Some(value) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_default();
            text.lines().for_each(|line| printer.print_line(format!("  {}", plain(line))));
        }
    }
}

/// Prints confidence next to the share of right answers, for each module and model.
pub(super) fn calibrations(reports: &[ModelCalibration], printer: &Printer) {
    for (place, ModelCalibration { module, model, report }) in reports.iter().enumerate() {
        if place > 0 {
            printer.print_line("");
        }
        printer.print_line(format!("{} {FAINT}on{FAINT:#} {}", plain(module), plain(model)));
        calibration(report, printer);
    }
}

fn calibration(report: &CalibrationReport, printer: &Printer) {
    let table = TextTable::new(["CONFIDENCE", "ANSWERS", "RIGHT", "SHARE", ""])
        .right(&[1, 2, 3])
        .optional_columns(&[4]);
    let rows = report.bins.iter().filter(|bin| bin.count > 0).map(|bin| {
        #[expect(clippy::cast_precision_loss, reason = "there are never 2^53 decisions")]
        let share = bin.right as f64 / bin.count as f64;
        vec![
            format!("{:.1} to {:.1}", bin.from, bin.to),
            bin.count.to_string(),
            bin.right.to_string(),
            format!("{share:.2}"),
            format!("{NOTE}{}{NOTE:#}", bar(share, 2 * CELLS)),
        ]
    });
    printer.table(&table.with(rows));
    let number = |error: Option<f64>| error.map_or_else(|| "-".to_owned(), |error| format!("{error:.2}"));
    printer.print_line("");
    printer.prose(&format!(
        "{}, calibration error of confidence {}, of calibrated confidence {}",
        count_text(report.decisions, "decision"),
        number(report.raw_error),
        number(report.calibrated_error)
    ));
    if report.curve.is_empty() {
        printer.notice(format!("{FAINT}calibrated confidence needs {MIN_DECISIONS} decisions{FAINT:#}"));
    }
}
