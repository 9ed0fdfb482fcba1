//! `cogn batch MODULE ROWS -o OUTPUT`: runs a module on every row of a file and writes one line for each. An
//! interrupted batch resumes with the same command.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cognitive_batch::{
    AnswerTarget, BatchLimits, BatchPlan, BatchStop, BatchSummary, PostPlan, RowFile, RowFormat, RowMapping,
    StopHandle,
};
use cognitive_contract::money::Money;
use cognitive_contract::{ErrorCode, Failure, Module};
use cognitive_library::Library;
use cognitive_setup::stores::Stores;
use cognitive_setup::{RuntimeBuilder, async_runtime, wiring};
use serde_json::{Map, Value};

use super::batch_screen::{self, BatchScreen};
use super::fail;
use crate::args::candidates;
use crate::args::provider::ProviderArgs;
use crate::args::reply::ReplyArgs;
use crate::output_paths::{NamedPath, refuse_collisions};
use crate::printer::{Exit, Printer};
use crate::pull_progress::TerminalProgress;
use crate::{platform, process_limits, project};

/// Options of `batch`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub struct BatchArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    /// File of rows: `.jsonl`, `.csv`, `.tsv` or `.parquet`
    #[arg(value_hint = clap::ValueHint::FilePath)]
    rows: PathBuf,
    /// Output file, `.jsonl` or `.parquet`; a folder beside it holds the progress until the batch is complete
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Write failed rows to this file, as JSON Lines
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    failed: Option<PathBuf>,
    /// Keep the order of the rows; the output appears at the end
    #[arg(long, help_heading = "Output")]
    ordered: bool,
    /// Write the input beside each answer
    #[arg(long, help_heading = "Output")]
    with_input: bool,
    /// Discard the progress of an earlier process and start again
    #[arg(long, help_heading = "Output")]
    restart: bool,
    /// Column with the id of a row; written to the output, not sent to the model
    #[arg(long, value_name = "COLUMN", help_heading = "Rows")]
    id: Option<String>,
    /// Send only these columns, each as a member of the input; repeatable
    #[arg(long, value_name = "MEMBER=COLUMN", value_parser = pair, help_heading = "Rows")]
    map: Vec<(String, String)>,
    /// Set an input member for all rows, as JSON or text; repeatable
    #[arg(long, value_name = "MEMBER=VALUE", value_parser = pair, help_heading = "Rows")]
    fixed: Vec<(String, String)>,
    /// Run every row, even if inputs are equal
    #[arg(long, help_heading = "Rows")]
    no_dedupe: bool,
    /// Maximum number of rows in flight (32); reduced if the service is slow or limits the rate. With the batch
    /// endpoint, maximum number of pending rows (5000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50_000), help_heading = "Limits")]
    concurrency: Option<u32>,
    /// Maximum number of retries of a row after a transient failure, made at the end
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Limits")]
    retries: u32,
    /// Stop before all rows together need more tokens than this
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_total_tokens: Option<u64>,
    /// Start no row after this time, such as `90s`, `30m` or `8h`
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Limits")]
    max_time: Option<Duration>,
    /// Use the batch endpoint of the service: answers within a day, at half the price (openai, anthropic, gemini)
    #[arg(long, help_heading = "Batch endpoint")]
    provider_batch: bool,
    /// Interval between status requests to the batch endpoint
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time, help_heading = "Batch endpoint")]
    poll: Duration,
    /// Show the pending rows and their maximum cost; calls no model and writes nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    provider: ProviderArgs,
    #[command(flatten)]
    reply: ReplyArgs,
}

impl BatchArgs {
    fn at_once(&self) -> u32 {
        self.concurrency.unwrap_or(if self.provider_batch { 5000 } else { 32 })
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses `90s`, `30m`, `8h`, `2d`; a number alone is in seconds.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.char_indices().find(|(_, letter)| !letter.is_ascii_digit()) {
        Some((at, _)) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit.trim() {
        "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        "d" => Some(86_400),
        _ => None,
    };
    let time = number.parse::<u64>().ok().zip(seconds).and_then(|(number, unit)| number.checked_mul(unit));
    time.map(Duration::from_secs).ok_or_else(|| "expected a time such as `90s`, `30m` or `8h`".to_owned())
}

/// Runs the rows and prints the result.
pub fn batch(args: &BatchArgs, library: &Library, printer: &Printer) -> Exit {
    process_limits::take_limits_as_errors();
    if let Err(failure) = distinct_files(args) {
        let _always_bad = fail(&failure, printer);
        return Exit::Usage;
    }
    let done = if args.dry_run { dry_run(args, library, printer) } else { run(args, library, printer) };
    done.unwrap_or_else(|failure| fail(&failure, printer))
}

fn run(args: &BatchArgs, library: &Library, printer: &Printer) -> Result<Exit, Failure> {
    let rows = row_file(&args.rows)?;
    let target = target(args)?;
    let (builder, limit) = builder(args, library)?;
    let screen = TerminalProgress::new(printer, false);
    // Before a model is fetched that has no batch endpoint.
    let posts = posts(args, &builder)?;
    // The output is the record of a batch. A million rows would evict everything else from the audit, so runs are
    // recorded only if that is required.
    let builder = builder.stores_by(|settings| {
        if settings.audit_required {
            Stores::open_or_warn(settings, false)
        } else {
            Ok((Stores::default(), None))
        }
    });
    let runtime = builder.build_with(Some(screen.download()))?.usable()?;
    runtime.notices().iter().for_each(|line| printer.warning(line));
    let plan = BatchPlan {
        name: args.module.clone(),
        module: runtime.modules().module(&args.module)?,
        options: runtime.run_options(),
        host: runtime.into_host(),
        rows,
        mapping: mapping(args),
        target,
        limits: BatchLimits {
            concurrency: usize::try_from(args.at_once()).unwrap_or(1),
            max_cost: limit,
            max_tokens: args.max_total_tokens,
            max_time: args.max_time,
            retries: args.retries,
        },
        dedupe: !args.no_dedupe,
        restart: args.restart,
        posts,
    };
    let Some(summary) = execute_batch(plan, printer)? else { return Ok(Exit::Cancelled) };
    if args.json {
        printer.json(&summary);
    } else {
        for line in batch_screen::summary(&summary, printer) {
            printer.print_line(line);
        }
    }
    Ok(exit(&summary))
}

/// A finished batch is good even if rows failed, because a failed row is an answer. An unfinished batch is bad.
fn exit(summary: &BatchSummary) -> Exit {
    match summary.stopped {
        BatchStop::Finished => Exit::Good,
        BatchStop::Interrupted => Exit::Cancelled,
        BatchStop::MaxCost | BatchStop::MaxTokens | BatchStop::MaxTime | BatchStop::Provider => Exit::Bad,
    }
}

/// Returns `None` if the user did not even wait for the rows in flight.
fn execute_batch(plan: BatchPlan, printer: &Printer) -> Result<Option<BatchSummary>, Failure> {
    let runtime = async_runtime::on_all_cores()?;
    let stop = StopHandle::default();
    let screen = BatchScreen::new(printer);
    let (seen, stopping) = (screen.clone(), stop.clone());
    runtime.block_on(async move {
        // On a thread of the runtime, because this one would have to be woken for each row.
        let mut batch =
            tokio::spawn(async move { cognitive_batch::run(plan, &stopping, |at| seen.show(at)).await });
        let outcome = tokio::select! {
            done = &mut batch => Some(done),
            _ = platform::stop_signal() => {
                stop.stop();
                screen.note("stopping: rows in flight finish; press Ctrl-C again to stop at once");
                tokio::select! {
                    done = &mut batch => Some(done),
                    _ = platform::stop_signal() => None,
                }
            }
        };
        screen.clear();
        match outcome {
            None => {
                batch.abort();
                Ok(None)
            }
            Some(Ok(summary)) => summary.map(Some),
            Some(Err(_)) => Err(Failure::new(ErrorCode::InternalError, "the batch ended unexpectedly")),
        }
    })
}

fn dry_run(args: &BatchArgs, library: &Library, printer: &Printer) -> Result<Exit, Failure> {
    let rows = row_file(&args.rows)?;
    if args.output.is_some() {
        target(args)?;
    }
    let (builder, limit) = builder(args, library)?;
    let is_batch = args.provider_batch;
    let builder = builder.for_estimates().tune(move |host| {
        if is_batch {
            host.prices = Arc::new(host.prices.for_posts());
        }
    });
    let runtime = builder.build()?;
    let host = runtime.host();
    let module: Arc<Module> = host.modules.module(&args.module)?;
    let estimate = cognitive_batch::estimate(&rows, &mapping(args), &host, &module, &runtime.run_options())?;
    if args.json {
        printer.json(&estimate);
    } else {
        for line in batch_screen::estimate(&estimate) {
            printer.print_line(line);
        }
    }
    let is_within = limit.is_none_or(|limit| estimate.at_most.is_some_and(|most| most <= limit));
    Ok(if is_within { Exit::Good } else { Exit::Bad })
}

/// Returns the runtime to build, and the cost limit of all rows together. A configured limit applies to each run.
fn builder(args: &BatchArgs, library: &Library) -> Result<(RuntimeBuilder, Option<Money>), Failure> {
    let mut typed = args.provider.clone();
    let limit = typed.run.max_cost.take();
    let builder = project::runtime(library, &typed)?.for_module(project::own_name(library, &args.module));
    Ok((args.reply.answer(builder, &typed)?, limit))
}

fn posts(args: &BatchArgs, builder: &RuntimeBuilder) -> Result<Option<PostPlan>, Failure> {
    if !args.provider_batch {
        return Ok(None);
    }
    let service = wiring::batch_service(&builder.settings()?, &wiring::environment)?;
    Ok(Some(PostPlan { service, poll: args.poll }))
}

/// Refuses files that would be written twice or over what is read, before any of them is opened.
fn distinct_files(args: &BatchArgs) -> Result<(), Failure> {
    let output = args.output.as_deref();
    let work = output.map(AnswerTarget::work_folder);
    refuse_collisions([
        NamedPath::read("the file of rows", Some(&args.rows)),
        NamedPath::read("`--reply`", args.reply.path()),
        NamedPath::write("`-o`", output),
        NamedPath::write("`--failed`", args.failed.as_deref()),
        NamedPath::folder("the progress of the batch", work.as_deref()),
    ])
}

fn row_file(path: &Path) -> Result<RowFile, Failure> {
    let format = RowFormat::from_path(path)
        .ok_or_else(|| unknown_format(path, "`.jsonl`, `.csv`, `.tsv` or `.parquet`"))?;
    Ok(RowFile { path: path.to_owned(), format })
}

fn target(args: &BatchArgs) -> Result<AnswerTarget, Failure> {
    let path = args.output.clone().unwrap_or_default();
    let format = RowFormat::from_path(&path).filter(|format| *format != RowFormat::Csv);
    let format = format.ok_or_else(|| unknown_format(&path, "`.jsonl` or `.parquet`"))?;
    let failed = args.failed.clone();
    if let Some(failed) =
        failed.as_deref().filter(|failed| RowFormat::from_path(failed) != Some(RowFormat::JsonLines))
    {
        return Err(unknown_format(failed, "`.jsonl`"));
    }
    Ok(AnswerTarget { path, format, failed, ordered: args.ordered, with_input: args.with_input })
}

fn unknown_format(path: &Path, expected: &str) -> Failure {
    let message = format!("unknown file format: `{}`", path.display());
    Failure::new(ErrorCode::InvalidInput, message).suggest(format!("Use a name that ends in {expected}"))
}

fn mapping(args: &BatchArgs) -> RowMapping {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
    let fixed: Map<String, Value> =
        args.fixed.iter().map(|(name, text)| (name.clone(), value(text))).collect();
    RowMapping { id: args.id.clone(), members: args.map.clone(), fixed }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: BatchArgs,
    }

    fn typed(words: &str) -> Result<BatchArgs, clap::Error> {
        Typed::try_parse_from(words.split(' ')).map(|typed| typed.args)
    }

    #[test]
    fn rows_and_an_output_are_needed_and_times_are_times() {
        assert!(typed("batch m r.csv -o o.jsonl --max-time 8h --max-cost 5 --map text=body --id n").is_ok());
        assert!(typed("batch m r.csv --dry-run").is_ok());
        for wrong in
            ["batch m", "batch m r.csv", "batch m r.csv -o o --max-time soon", "batch m r.csv -o o --map x"]
        {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
        assert_eq!((time("90").unwrap().as_secs(), time("2m").unwrap().as_secs()), (90, 120));
    }

    #[test]
    fn a_file_whose_name_says_nothing_is_refused_before_anything_runs() {
        for (words, hint) in [("batch m r.txt -o o.jsonl", ".csv"), ("batch m r.csv -o o.csv", ".parquet")] {
            let args = typed(words).unwrap();
            let refused = row_file(&args.rows).and_then(|_| target(&args)).unwrap_err();
            assert!(refused.suggestion().unwrap().contains(hint), "{words}: {refused:?}");
        }
    }
}
