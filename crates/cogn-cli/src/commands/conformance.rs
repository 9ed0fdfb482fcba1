//! `cogn conformance`: runs vector files against this runtime and prints a table by group and level.
//! Unimplemented features never count as passed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognitive_testing::CaseTally;
use cognitive_testing::conformance::{self, VectorReport, VectorResult};

use crate::printer::{BAD, DOUBT, Exit, FAINT, GOOD, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `conformance`.
#[derive(Debug, clap::Args)]
pub struct ConformanceArgs {
    /// Directory with vector files: ours, the official ones, or both
    dir: PathBuf,
    /// Run only the vectors of this conformance level: 1 basic, 2 standard, 3 full, 4 extended [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=4))]
    level: Option<u8>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the vectors; the exit code is good only if every case of the requested level passes.
pub fn conformance(args: &ConformanceArgs, printer: &Printer) -> Exit {
    let cases = match conformance::load(&args.dir) {
        Ok(cases) => cases,
        Err(error) => {
            printer.error(&error.to_string(), Some(error.hint()));
            return Exit::Bad;
        }
    };
    let report = conformance::run(&cases, args.level);
    if args.json {
        printer.json(&report);
    } else {
        show(&report, args.level.unwrap_or(4), printer);
    }
    if report.holds() { Exit::Good } else { Exit::Bad }
}

fn show(report: &VectorReport, level: u8, printer: &Printer) {
    let levels: Vec<usize> = (1..=usize::from(level)).collect();
    printer.table(&TextTable::without_headings(levels.len() + 1).right(&levels).with(rows(report, level)));
    for failure in report.failures() {
        printer.print_line("");
        show_failure(failure, printer);
    }
    let missing = missing(report);
    if !missing.is_empty() {
        printer.print_line("");
    }
    for (what, count) in missing {
        printer.print_line(format!("{DOUBT}not built{DOUBT:#} {what} {FAINT}({count}){FAINT:#}"));
    }
    printer.print_line("");
    printer.print_line(summary(report.tally()));
}

/// Returns a row per group, a column per level, and the totals.
fn rows(report: &VectorReport, level: u8) -> Vec<Vec<String>> {
    let groups = report.by_group();
    let mut sums: BTreeMap<u8, CaseTally> = BTreeMap::new();
    let heads = (1..=level).map(|level| format!("{HEAD}L{level}{HEAD:#}"));
    let mut rows = vec![std::iter::once(format!("{HEAD}GROUP{HEAD:#}")).chain(heads).collect::<Vec<_>>()];
    for (group, levels) in &groups {
        rows.push(row(format!("{NOTE}{group}{NOTE:#}"), levels, level));
        for (level, tally) in levels {
            let sum = sums.entry(*level).or_default();
            *sum = sum.plus(*tally);
        }
    }
    if groups.len() > 1 {
        rows.push(row(format!("{HEAD}all{HEAD:#}"), &sums, level));
    }
    rows
}

fn row(name: String, levels: &BTreeMap<u8, CaseTally>, level: u8) -> Vec<String> {
    let cells = (1..=level).map(|level| levels.get(&level).map_or_else(none, |tally| cell(*tally)));
    std::iter::once(name).chain(cells).collect()
}

fn none() -> String {
    format!("{FAINT}-{FAINT:#}")
}

/// Formats `passed/total`; the colour only marks failures and gaps.
fn cell(tally: CaseTally) -> String {
    let style = match tally {
        CaseTally { failed: 0, skipped: 0, .. } => GOOD,
        CaseTally { failed: 0, .. } => DOUBT,
        CaseTally { .. } => BAD,
    };
    format!("{style}{}/{}{style:#}", tally.passed, tally.total())
}

fn show_failure(failure: &VectorResult, printer: &Printer) {
    printer.print_line(format!(
        "{BAD}failed{BAD:#} {HEAD}{}{HEAD:#} {FAINT}(level {}, {}){FAINT:#}",
        failure.id, failure.level, failure.op
    ));
    for problem in failure.status.problems() {
        printer.print_line(format!("  {problem}"));
    }
}

/// Returns the unimplemented features, each reason once, with the number of its cases.
fn missing(report: &VectorReport) -> BTreeMap<String, usize> {
    let mut missing = BTreeMap::new();
    for result in report.not_built() {
        let what = format!("{}: {}", result.op, result.status.problems().join("; "));
        *missing.entry(what).or_insert(0) += 1;
    }
    missing
}

fn summary(tally: CaseTally) -> String {
    let part = |style: anstyle::Style, count: usize, word: &str| {
        let style = if count == 0 { anstyle::Style::new() } else { style };
        format!("{style}{count} {word}{style:#}")
    };
    [
        part(GOOD, tally.passed, "passed"),
        part(BAD, tally.failed, "failed"),
        part(DOUBT, tally.skipped, "not built"),
    ]
    .join(", ")
}
