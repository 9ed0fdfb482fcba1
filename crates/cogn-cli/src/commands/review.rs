//! `cogn review`: lists runs that wait for review, and records decisions about them. A printed decision is already on
//! disk. Untrusted text is stripped of terminal control characters.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use cognitive_contract::ports::ModuleSource;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::Library;
use cognitive_ports::review::{
    CalibrationReport, DecidedReview, ModelCalibration, NewDecision, Review, ReviewError, ReviewExport,
    ReviewFilter, ReviewQueue, Verdict,
};
use cognitive_setup::env_vars;
use cognitive_setup::stores::Stores;
use cognitive_setup::wiring::environment;
use serde_json::{Map, Value};

mod tables;

use crate::args::candidates;
use crate::args::input::read_text;
use crate::figures::count_text;
use crate::printer::{Exit, FAINT, GOOD, Printer, plain};
use crate::{platform, project};

/// Options of `review`.
#[derive(Debug, clap::Args)]
pub struct ReviewArgs {
    #[command(subcommand)]
    command: ReviewCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ReviewCommand {
    /// List the runs that wait, the oldest first
    List(ReviewListArgs),
    /// Show a run with its input, its answer and the decision
    Show(ReviewShowArgs),
    /// Approve answers as right
    Approve(VerdictArgs),
    /// Reject answers as wrong
    Reject(VerdictArgs),
    /// Record the right answer
    Correct(CorrectArgs),
    /// Export decisions as JSON Lines, or as labelled cases for `cogn eval`
    Export(ReviewExportArgs),
    /// Compare confidence with the share of right answers
    Stats(ReviewStatsArgs),
}

#[derive(Debug, clap::Args)]
struct ReviewListArgs {
    /// Only runs of this module
    #[arg(long, value_name = "MODULE", add = candidates::modules())]
    module: Option<String>,
    /// List decided runs instead, the newest first
    #[arg(long)]
    decided: bool,
    /// Maximum number of runs
    #[arg(long, short, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReviewShowArgs {
    /// The number of the review
    #[arg(value_name = "REVIEW")]
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The options of every decision.
#[derive(Debug, clap::Args)]
struct DecisionArgs {
    /// Reason for the decision
    #[arg(long, short, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
    /// Name of the reviewer; by default the name of this user
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct VerdictArgs {
    /// The numbers of the reviews
    #[arg(value_name = "REVIEW", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    how: DecisionArgs,
}

#[derive(Debug, clap::Args)]
struct CorrectArgs {
    /// The number of the review
    #[arg(value_name = "REVIEW")]
    id: String,
    /// The right `data` as JSON
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    data: Option<String>,
    /// A file with the right `data`; `-` reads stdin
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Set one member of the right `data`, overriding the answer; JSON if it parses as JSON; repeatable
    #[arg(long, value_name = "KEY=VALUE", required_unless_present_any = ["data", "file"])]
    set: Vec<String>,
    #[command(flatten)]
    how: DecisionArgs,
}

/// The content of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReviewExportForm {
    /// Every decided run with its input, its envelope and the decision
    Decisions,
    /// Labelled cases, as `cogn eval --cases` reads them
    Cases,
}

#[derive(Debug, clap::Args)]
struct ReviewExportArgs {
    /// The content to write
    #[arg(long = "as", value_enum, value_name = "FORM", default_value_t = ReviewExportForm::Decisions)]
    form: ReviewExportForm,
    /// Only runs of this module
    #[arg(long, value_name = "MODULE", add = candidates::modules())]
    module: Option<String>,
    /// Write to this file, which must not exist yet; only you can read it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ReviewStatsArgs {
    /// Only runs of this module
    #[arg(long, value_name = "MODULE", add = candidates::modules())]
    module: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand on the reviews of the database, which may be missing.
pub fn review(args: &ReviewArgs, library: &Library, printer: &Printer) -> Exit {
    let done = open().and_then(|review_queue| match &args.command {
        ReviewCommand::List(args) => list(args, review_queue.as_deref(), printer),
        ReviewCommand::Show(args) => show(args, review_queue.as_deref(), printer),
        ReviewCommand::Approve(args) => {
            Ok(decide_all(args, Verdict::Approve, review_queue.as_deref(), printer))
        }
        ReviewCommand::Reject(args) => {
            Ok(decide_all(args, Verdict::Reject, review_queue.as_deref(), printer))
        }
        ReviewCommand::Correct(args) => correct(args, review_queue.as_deref(), library, printer),
        ReviewCommand::Export(args) => export(args, review_queue.as_deref(), printer),
        ReviewCommand::Stats(args) => stats(args, review_queue.as_deref(), printer),
    });
    done.unwrap_or_else(|failure| {
        printer.error(failure.message(), failure.suggestion());
        Exit::Bad
    })
}

fn open() -> Result<Option<Arc<dyn ReviewQueue>>, Failure> {
    let config = project::config()?;
    Stores::queue_of(&config).map_err(unreadable)
}

fn unreadable(reason: String) -> Failure {
    Failure::new(ErrorCode::InternalError, reason)
        .suggest("Check owner, permissions and locks of the database; `cogn doctor` shows its path")
}

fn unknown_review(id: &str) -> Failure {
    Failure::new(ErrorCode::InvalidReference, format!("unknown review: `{}`", plain(id)))
        .suggest("`cogn review list` shows the numbers")
}

fn list(
    args: &ReviewListArgs,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let filter = ReviewFilter {
        open: Some(!args.decided),
        module: args.module.clone(),
        limit: Some(args.limit),
        cursor: None,
    };
    let page = review_queue.map(|review_queue| review_queue.list(&filter)).transpose().map_err(unreadable)?;
    let (reviews, open) = page.map_or_else(Default::default, |page| (page.reviews, page.open));
    if args.json {
        printer.json(&reviews);
    } else if reviews.is_empty() {
        printer.err(if args.decided { "no decisions yet" } else { "no run waits for review" });
    } else {
        printer.table(&if args.decided { tables::decided_table(&reviews) } else { tables::open(&reviews) });
        if open > reviews.len() as u64 || args.decided {
            printer.notice(format!("{FAINT}{} wait for review in total{FAINT:#}", count_text(open, "run")));
        }
    }
    Ok(Exit::Good)
}

fn find(id: &str, review_queue: Option<&dyn ReviewQueue>) -> Result<Review, Failure> {
    let found = review_queue.map(|review_queue| review_queue.get(id)).transpose().map_err(unreadable)?;
    found.flatten().ok_or_else(|| unknown_review(id))
}

fn show(
    args: &ReviewShowArgs,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let review = find(&args.id, review_queue)?;
    if args.json {
        printer.json(&review);
    } else {
        tables::print_review(&review, printer);
    }
    Ok(Exit::Good)
}

/// Makes the same decision about each review. A failed one does not stop the others.
fn decide_all(
    args: &VerdictArgs,
    verdict: Verdict,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Exit {
    let mut exit = Exit::Good;
    for id in &args.ids {
        if let Err(failure) = decide(id, verdict, None, &args.how, review_queue, printer) {
            printer.error(failure.message(), failure.suggestion());
            exit = Exit::Bad;
        }
    }
    exit
}

fn decide(
    id: &str,
    verdict: Verdict,
    data: Option<Value>,
    how: &DecisionArgs,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Result<(), Failure> {
    let review_queue = review_queue.ok_or_else(|| unknown_review(id))?;
    let by = how.by.clone().or_else(|| environment(env_vars::USER));
    let decision =
        NewDecision { verdict, reason: how.reason.clone(), data, by, key: None, at: SystemTime::now() };
    let DecidedReview { review, is_new } =
        review_queue.decide(id, &decision).map_err(|error| refusal(id, &error))?;
    if how.json {
        printer.json(&review);
        return Ok(());
    }
    let before = match review.decision.as_ref().and_then(|decision| decision.by.as_deref()) {
        _ if is_new => String::new(),
        Some(by) => format!(" {FAINT}(before, by {}){FAINT:#}", plain(by)),
        None => format!(" {FAINT}(before){FAINT:#}"),
    };
    printer.print_line(format!("{GOOD}{}{GOOD:#} {}{before}", verdict.past_participle(), review.id));
    Ok(())
}

fn refusal(id: &str, error: &ReviewError) -> Failure {
    match error {
        ReviewError::Unknown => unknown_review(id),
        ReviewError::Conflict(_) => Failure::new(ErrorCode::InvalidReference, plain(&error.to_string()))
            .suggest(format!("`cogn review show {}` shows the decision; the first one applies", plain(id))),
        ReviewError::Invalid(_) => Failure::new(ErrorCode::InvalidInput, error.to_string()),
        ReviewError::Unavailable(_) => unreadable(error.to_string()),
    }
}

fn correct(
    args: &CorrectArgs,
    review_queue: Option<&dyn ReviewQueue>,
    library: &Library,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let review = find(&args.id, review_queue)?;
    let data = Value::Object(correct_data(args, &review)?);
    // A missing module cannot be used to check the correction.
    if let Ok(module) = library.module(&review.module) {
        let found = review.correction_faults(&module, &data);
        if !found.is_empty() {
            let failure = Failure::from_violations(ErrorCode::InvalidInput, &found);
            return Err(failure.suggest("A correction must be a valid answer of the module"));
        }
    }
    decide(&args.id, Verdict::Correct, Some(data), &args.how, review_queue, printer)?;
    Ok(Exit::Good)
}

/// Returns the correct `data`: the typed object, or typed members merged over the answer.
fn correct_data(args: &CorrectArgs, review: &Review) -> Result<Map<String, Value>, Failure> {
    let invalid = |why: String| Failure::new(ErrorCode::InvalidInput, why);
    let text = match (&args.data, &args.file) {
        (Some(text), _) => Some(text.clone()),
        (None, Some(path)) => Some(read_text(Some(path))?),
        (None, None) => None,
    };
    let mut members = match text {
        Some(text) => match cognitive_contract::json::parse(&text) {
            Ok(Value::Object(members)) => members,
            Ok(_) => return Err(invalid("the right `data` must be an object".to_owned())),
            Err(error) => return Err(invalid(format!("the right `data` is not JSON: {}", error.message))),
        },
        None => {
            let data = review.envelope.as_ref().and_then(|envelope| envelope.get("data"));
            data.and_then(Value::as_object).cloned().unwrap_or_default()
        }
    };
    for entry in &args.set {
        let (name, typed) = entry
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| invalid(format!("expected `key=value`, found: `{}`", plain(entry))))?;
        let value = serde_json::from_str(typed).unwrap_or_else(|_| Value::String(typed.to_owned()));
        members.insert(name.to_owned(), value);
    }
    Ok(members)
}

fn export(
    args: &ReviewExportArgs,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let Some(review_queue) = review_queue else {
        printer.err("no decisions yet");
        return Ok(Exit::Good);
    };
    let form = match args.form {
        ReviewExportForm::Decisions => ReviewExport::Decisions,
        ReviewExportForm::Cases => ReviewExport::Cases,
    };
    let module = args.module.as_deref();
    if let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) {
        let count = export_to(path, review_queue, form, module)?;
        printer.err(format!("{} written to `{}`", count_text(count, "line"), path.display()));
        return Ok(Exit::Good);
    }
    let mut any = false;
    let mut take = |line: Value| {
        any = true;
        printer.print_line(line.to_string());
        printer.stdout_loss().is_none()
    };
    review_queue.export(form, module, &mut take).map_err(unreadable)?;
    if !any {
        printer.err("no decisions to export yet");
    }
    Ok(Exit::Good)
}

/// Writes all or nothing: a partial export would look complete.
fn export_to(
    path: &Path,
    review_queue: &dyn ReviewQueue,
    form: ReviewExport,
    module: Option<&str>,
) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(ErrorCode::InvalidReference, format!("cannot write `{}`: {error}", path.display()))
    };
    let mut writer = BufWriter::new(platform::create_private_file(path).map_err(failed)?);
    let (mut count, mut written) = (0, Ok(()));
    let mut take = |line: Value| {
        count += 1;
        written = writeln!(writer, "{line}");
        written.is_ok()
    };
    let read = review_queue.export(form, module, &mut take).map_err(unreadable);
    let done = read.and_then(|()| written.and_then(|()| writer.flush()).map_err(failed));
    if done.is_err() {
        fs::remove_file(path).map_err(failed)?;
    }
    done.map(|()| count)
}

/// The output of `--json`: all decisions together, and each module and model separately.
#[derive(serde::Serialize)]
struct CalibrationReports {
    #[serde(flatten)]
    report: CalibrationReport,
    models: Vec<ModelCalibration>,
}

fn stats(
    args: &ReviewStatsArgs,
    review_queue: Option<&dyn ReviewQueue>,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let module = args.module.as_deref();
    let report = review_queue
        .map(|review_queue| review_queue.calibration(module))
        .transpose()
        .map_err(unreadable)?
        .unwrap_or_default();
    let models = review_queue
        .map(|review_queue| review_queue.calibrations(module))
        .transpose()
        .map_err(unreadable)?
        .unwrap_or_default();
    if args.json {
        printer.json(&CalibrationReports { report, models });
    } else if models.is_empty() {
        printer.err("no decisions yet");
    } else {
        tables::calibrations(&models, printer);
    }
    Ok(Exit::Good)
}
