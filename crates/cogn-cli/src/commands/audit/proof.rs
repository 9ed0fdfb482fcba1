//! `cogn audit verify` and `cogn audit head`: check that records are unchanged, and print anchors to store elsewhere.
//! With anchors, changes are detected even if the attacker can write the file.

use std::path::PathBuf;

use cognitive_store::{Anchor, Store, StoreError, Verification};

use super::plain;
use crate::figures::count_text;
use crate::printer::{BAD, Exit, FAINT, GOOD, Printer};

/// Options of `audit verify`.
#[derive(Debug, clap::Args)]
pub(super) struct AuditVerifyArgs {
    /// The last hash of a chain from earlier, as `cogn audit head` prints it; may be given more than once
    #[arg(long, value_name = "CHAIN.SEQ:HASH")]
    anchor: Vec<Anchor>,
    /// A file with the output of `cogn audit head`
    #[arg(long, value_name = "FILE")]
    anchors: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `audit head`.
#[derive(Debug, clap::Args)]
pub(super) struct HeadArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Verifies all records; the exit code is bad if any check fails.
pub(super) fn verify(args: &AuditVerifyArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let anchors = match anchors(args) {
        Ok(anchors) => anchors,
        Err(reason) => {
            printer.error(&reason, Some("`cogn audit head` prints the current anchors"));
            return Ok(Exit::Bad);
        }
    };
    let found = store.verify(&anchors)?;
    if args.json {
        printer.json(&ProofReport { ok: found.is_whole(), found: &found });
    } else {
        show(&found, anchors.len(), printer);
    }
    Ok(if found.is_whole() { Exit::Good } else { Exit::Bad })
}

/// A verification with its verdict.
#[derive(serde::Serialize)]
struct ProofReport<'a> {
    ok: bool,
    #[serde(flatten)]
    found: &'a Verification,
}

/// Reads the anchors of the command line and of the file.
fn anchors(args: &AuditVerifyArgs) -> Result<Vec<Anchor>, String> {
    let mut anchors = args.anchor.clone();
    let Some(path) = &args.anchors else { return Ok(anchors) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // The owner follows the hash.
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        let anchor = words.join(" ").parse().map_err(|reason| format!("`{}`: {reason}", path.display()))?;
        anchors.push(anchor);
    }
    Ok(anchors)
}

fn show(found: &Verification, anchors: usize, printer: &Printer) {
    for breach in &found.breaches {
        printer.print_line(format!("{BAD}broken{BAD:#}: {}", plain(&breach.to_string())));
    }
    if found.more > 0 {
        printer.print_line(format!("and {} more", found.more));
    }
    let verdict =
        if found.is_whole() { format!("{GOOD}intact{GOOD:#}") } else { format!("{BAD}not intact{BAD:#}") };
    let Verification {
        records,
        chains,
        dropped,
        dropped_payloads,
        before_chains,
        rows,
        rows_before_chains,
        ..
    } = found;
    let anchors = u64::try_from(anchors).unwrap_or(u64::MAX);
    let [records, chains, anchors] = [(*records, "record"), (*chains, "chain"), (anchors, "anchor")]
        .map(|(count, word)| count_text(count, word));
    printer.print_line(format!("{verdict}: {records} in {chains}, {anchors}"));
    let apart = [
        (*dropped, "record", "dropped by retention"),
        (*dropped_payloads, "payload", "dropped by retention"),
        (*before_chains, "record", "written before records were chained"),
        (*rows, "row", "of spending, reviews, decisions and context"),
        (*rows_before_chains, "row", "older than the chain of its table"),
    ];
    for (count, word, why) in apart.into_iter().filter(|(count, ..)| *count > 0) {
        printer.print_line(format!("{FAINT}{} {why}{FAINT:#}", count_text(count, word)));
    }
}

/// Prints the ends of all chains, one per line.
pub(super) fn head(args: &HeadArgs, store: &Store, printer: &Printer) -> Result<Exit, StoreError> {
    let heads = store.heads()?;
    if args.json {
        printer.json(&heads);
    } else if heads.is_empty() {
        printer.err("no runs recorded yet");
    }
    for head in heads.iter().filter(|_| !args.json) {
        let whose = plain(owner(&head.owner));
        printer.print_line(format!("{} {} {FAINT}{} of {whose}{FAINT:#}", head.id, head.hash, head.kind));
    }
    Ok(Exit::Good)
}

/// Returns an owner as text.
pub(super) fn owner(owner: &str) -> &str {
    if owner.is_empty() { "this machine" } else { owner }
}
