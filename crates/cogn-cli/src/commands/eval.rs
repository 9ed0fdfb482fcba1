//! `cogn eval MODULE --cases FILE`: measures accuracy and speed of a module on labelled cases.
//! A wrong answer is only counted; `--min-accuracy` turns a low share into a failure.

use std::path::PathBuf;

use cognitive_contract::Failure;
use cognitive_library::Library;
use cognitive_setup::stores::Stores;
use cognitive_setup::{async_runtime, out_file};
use cognitive_testing::eval::{self, Evaluation, EvaluationPlan, LabelledCase};

use super::cases::{CaseArgs, case_bar};
use super::eval_report;
use super::fail;
use super::hand_over::rescue;
use crate::args::candidates;
use crate::args::provider::ProviderArgs;
use crate::printer::{Exit, Printer, StdoutLoss};
use crate::project;
use crate::pull_progress::TerminalProgress;

/// Options of `eval`.
#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    #[command(flatten)]
    cases: CaseArgs,
    /// Maximum number of cases in flight
    #[arg(long, value_name = "N", default_value_t = 1)]
    concurrency: usize,
    /// Exit 1 if the accuracy is below this, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_accuracy: Option<f64>,
    /// Write every case with its envelope to a file, one per line
    #[arg(long, short, alias = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    provider: ProviderArgs,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Runs the cases and prints the result.
pub fn eval(args: &EvalArgs, library: &Library, printer: &Printer) -> Exit {
    let cases = args.cases.refuse_as_output(args.output.as_deref()).and_then(|()| args.cases.read());
    let cases = match cases {
        Ok(cases) => cases,
        Err(failure) => {
            let _always_bad = fail(&failure, printer);
            return Exit::Usage;
        }
    };
    let report = match run(args, cases, library, printer) {
        Ok(Some(report)) => report,
        Ok(None) => return Exit::Cancelled,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        printer.json(&report.to_value());
    } else {
        for line in eval_report::lines(&report, printer.width()) {
            printer.print_line(line);
        }
    }
    if !write_cases(args, &report, printer) {
        return Exit::Bad;
    }
    let enough = args.min_accuracy.is_none_or(|least| report.accuracy.share >= least);
    if enough { Exit::Good } else { Exit::Bad }
}

/// Writes every case with its envelope to the named file. If neither a file nor a reader got the answers, they are
/// saved: each call was paid for.
fn write_cases(args: &EvalArgs, report: &Evaluation, printer: &Printer) -> bool {
    let failed = args.output.as_ref().and_then(|path| {
        let error = out_file::write(path, report.case_lines().as_bytes()).err()?;
        Some(format!("cannot write `{}`: {error}", path.display()))
    });
    if let Some(message) = &failed {
        printer.error(message, None);
    }
    let unread = args.output.is_none() && matches!(printer.stdout_loss(), Some(StdoutLoss::Broken(_)));
    if failed.is_some() || unread {
        rescue("every case with its envelope", report.case_lines().trim_end(), printer);
    }
    failed.is_none()
}

/// Returns `None` if the user pressed Ctrl-C.
fn run(
    args: &EvalArgs,
    cases: Vec<LabelledCase>,
    library: &Library,
    printer: &Printer,
) -> Result<Option<Evaluation>, Failure> {
    let screen = TerminalProgress::new(printer, false);
    // The audit is for real work, not for measurements.
    let builder = project::runtime(library, &args.provider)?.one_by_one().stores(Stores::default());
    let builder = builder.for_module(project::own_name(library, &args.module));
    let measured = builder.build_with(Some(screen.download()))?.usable()?;
    // A missing rung would change the measurement, so it is reported.
    measured.notices().iter().for_each(|line| printer.warning(line));
    let progress = case_bar(printer, cases.len());
    let plan = EvaluationPlan {
        module: args.module.clone(),
        options: measured.run_options(),
        host: measured.into_host(),
        cases,
        concurrency: args.concurrency,
    };
    let runtime = async_runtime::on_this_thread()?;
    let bar = progress.clone();
    let done = move |_: &eval::CaseOutcome| bar.inc(1);
    let outcome = runtime.block_on(async {
        tokio::select! {
            report = eval::run(plan, done) => report.map(Some),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    });
    progress.finish_and_clear();
    outcome
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: EvalArgs,
    }

    fn typed(words: &str) -> Result<EvalArgs, clap::Error> {
        Typed::try_parse_from(words.split(' ')).map(|typed| typed.args)
    }

    #[test]
    fn a_module_and_its_cases_are_needed_and_shares_are_shares() {
        assert!(typed("eval m --cases c.jsonl --limit 3 --concurrency 2 --min-accuracy 0.8 --json").is_ok());
        for wrong in
            ["eval", "eval m", "eval m --cases c --min-accuracy 80", "eval m --cases c --min-accuracy x"]
        {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_bad_line_is_named_before_anything_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.jsonl");
        std::fs::write(&path, "{\"input\": {}, \"expect\": {\"ok\": true}}\n{\"input\": {}}\n").unwrap();
        let args = typed(&format!("eval m --cases {}", path.display())).unwrap();
        let failure = args.cases.read().unwrap_err();
        assert!(failure.message().ends_with("line 2: `expect` is required"), "{}", failure.message());
        let missing = typed("eval m --cases no-such-file.jsonl").unwrap();
        assert!(missing.cases.read().unwrap_err().message().starts_with("cannot read `no-such-file.jsonl`"));
    }
}
