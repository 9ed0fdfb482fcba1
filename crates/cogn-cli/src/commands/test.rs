//! `cogn test`: runs the golden tests of modules, from recorded replies or against a model.
//! Judges nothing itself; the exit code is bad if any test failed.

use std::path::{Path, PathBuf};

use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::{Library, ModuleOrigin};
use cognitive_setup::stores::Stores;
use cognitive_setup::{async_runtime, env_vars, out_file, wiring};
use cognitive_testing::golden::{
    self, AcceptedAnswers, GoldenCase, GoldenOptions, GoldenReport, LiveHost, ModuleReport, ReplySource,
    TestedFolder,
};

use super::fail;
use super::test_report::{self, ReportLook};
use crate::args::modules::ModulesArgs;
use crate::args::provider::ProviderArgs;
use crate::output_paths::{NamedPath, refuse_collisions};
use crate::printer::{Chatter, Exit, Printer};
use crate::project;
use crate::pull_progress::TerminalProgress;
use crate::watch;

/// The files that a module is made of, besides its tests.
const MODULE_FILES: [&str; 3] = ["module.yaml", "prompt.md", "schema.json"];

/// Options of `test`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that people type")]
pub struct TestArgs {
    #[command(flatten)]
    modules: ModulesArgs,
    /// Call the model and record its replies beside the cases, each with its schema dialect
    #[arg(long)]
    record: bool,
    /// Call the model instead of replaying recorded replies
    #[arg(long)]
    live: bool,
    /// Accept different answers as the new expectations, after showing the difference
    #[arg(long, conflicts_with = "live")]
    accept: bool,
    /// With `--accept`: also accept a failed run where a success was expected
    #[arg(long, requires = "accept")]
    accept_failures: bool,
    /// Show which parts of the contract the passing cases cover
    #[arg(long)]
    coverage: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "json",
        help = "Also write a JUnit report for a build server"
    )]
    junit: Option<PathBuf>,
    #[command(flatten)]
    provider: ProviderArgs,
    /// Test again whenever a file of a module changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["record", "live", "accept", "json", "junit"])]
    watch: bool,
}

/// Runs the tests; the exit code is bad if any failed, or if a module cannot be tested. A module without tests is
/// skipped (FMT-002). With `--verbose`, prints times and the envelope of every failed case.
pub fn test(args: &TestArgs, library: &Library, printer: &Printer) -> Exit {
    if args.accept && in_ci(&wiring::environment) {
        let hint = "Accept on your own machine, review the difference and commit the files";
        printer.error("`--accept` is disabled in CI (`CI` is set)", Some(hint));
        return Exit::Usage;
    }
    if args.watch {
        watch::repeat(library, &args.modules.names(library).unwrap_or_default(), printer, || {
            let _ = once(args, library, printer);
        });
        return Exit::Good;
    }
    once(args, library, printer)
}

fn once(args: &TestArgs, library: &Library, printer: &Printer) -> Exit {
    let (subjects, missing) = match args.modules.names(library) {
        Ok(names) => subjects(&names, library),
        Err(failure) => return fail(&failure, printer),
    };
    let source = match (args.record, args.live) {
        (true, _) => ReplySource::Record,
        (false, true) => ReplySource::Live,
        (false, false) => ReplySource::Recorded,
    };
    let named = match source {
        ReplySource::Recorded => args.provider.refuse_without("`--live` or `--record`"),
        ReplySource::Record | ReplySource::Live => Ok(()),
    };
    if let Err(failure) = named.and_then(|()| distinct_files(args, &subjects)) {
        let _always_bad = fail(&failure, printer);
        return Exit::Usage;
    }
    let options = GoldenOptions {
        source,
        coverage: args.coverage,
        accept: args.accept.then_some(if args.accept_failures {
            AcceptedAnswers::Failures
        } else {
            AcceptedAnswers::Successes
        }),
        library: library.clone(),
    };
    let mut report = match run(args, &subjects, options) {
        Ok(report) => report,
        Err(failure) => {
            let verdict = fail(&failure, printer);
            return if failure.code() == ErrorCode::StreamInterrupted { Exit::Cancelled } else { verdict };
        }
    };
    report.modules.extend(missing);
    if args.json {
        printer.json(&report.to_value());
    } else {
        let look = ReportLook {
            verbose: Chatter::for_process() == Chatter::Verbose,
            signs: printer.is_read_by_people(),
        };
        for line in test_report::lines(&report, look) {
            printer.print_line(line);
        }
    }
    // The changes are printed before they are written.
    if let Err(message) = golden::write_accepted(&subjects, &report) {
        printer.error(&message, None);
        return Exit::Bad;
    }
    if let Some(path) = &args.junit
        && let Err(message) = write_junit(path, &report)
    {
        printer.error(&message, None);
        return Exit::Bad;
    }
    if report.holds() { Exit::Good } else { Exit::Bad }
}

/// Refuses a report in the place of a file of a module that is tested: `--record` and `--accept` write such files too.
fn distinct_files(args: &TestArgs, subjects: &[TestedFolder]) -> Result<(), Failure> {
    let Some(report) = &args.junit else { return Ok(()) };
    for (folder, root) in
        subjects.iter().filter_map(|subject| Some((&subject.folder, subject.folder.path()?)))
    {
        let used = golden::cases(folder).into_iter().flat_map(GoldenCase::files);
        for file in MODULE_FILES.map(str::to_owned).into_iter().chain(used) {
            let path = root.join(file);
            refuse_collisions([
                NamedPath::read("a file of the module", Some(&path)),
                NamedPath::write("`--junit`", Some(report)),
            ])?;
        }
    }
    Ok(())
}

/// Returns whether this is a build server: `CI` is set, and not to `false` or `0`.
fn in_ci(environment: &dyn Fn(&str) -> Option<String>) -> bool {
    environment(env_vars::BUILD_SERVER).is_some_and(|value| !["false", "0"].contains(&value.trim()))
}

/// Replayed replies never wait; a model needs a provider and a runtime to wait in.
fn run(args: &TestArgs, subjects: &[TestedFolder], options: GoldenOptions) -> Result<GoldenReport, Failure> {
    if options.source == ReplySource::Recorded {
        return golden::run_recorded(subjects, &options);
    }
    let host = live_host(args, &options.library)?;
    let runtime = async_runtime::on_this_thread()?;
    // Downloading weights may have replaced the signal handler, so the signal must be handled here.
    runtime.block_on(async {
        tokio::select! {
            report = golden::run(subjects, &options, Some(host)) => report,
            _ = tokio::signal::ctrl_c() => {
                Err(Failure::cancellation("the tests were cancelled by the user"))
            }
        }
    })
}

/// The host that asks models for the cases. The audit is for the work of people, not for tests.
fn live_host(args: &TestArgs, library: &Library) -> Result<LiveHost, Failure> {
    let screen = TerminalProgress::new(&Printer, false);
    // No module has this name: the flags are options of these runs, whatever module runs.
    let builder = project::runtime(library, &args.provider)?.for_module("").one_by_one();
    // A cache of modules would hide a change while files are watched.
    let builder = builder.module_source(library.clone()).stores(Stores::default());
    let asked = builder.build_with(Some(screen.download()))?.usable()?;
    let is_chosen = args.provider.overrides().names_model();
    Ok(LiveHost { options: asked.run_options(), host: asked.into_host(), is_chosen })
}

fn write_junit(path: &Path, report: &GoldenReport) -> Result<(), String> {
    out_file::write(path, golden::to_junit(report).as_bytes())
        .map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

/// Returns the requested modules, and a report for each missing one.
fn subjects(names: &[String], library: &Library) -> (Vec<TestedFolder>, Vec<ModuleReport>) {
    let mut subjects = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        match library.find(name) {
            Ok(found) => subjects.push(TestedFolder {
                name: if found.origin == ModuleOrigin::Path {
                    folder_label(name, library)
                } else {
                    found.name
                },
                folder: found.folder,
            }),
            Err(failure) => missing.push(ModuleReport::unusable(name, String::new(), &failure)),
        }
    }
    (subjects, missing)
}

/// Returns the name of a folder in the library, or the path as typed.
fn folder_label(path: &str, library: &Library) -> String {
    let known = library.list().into_iter().find(|found| found.folder.display() == path);
    known.map_or_else(|| path.to_owned(), |found| found.name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        args: TestArgs,
    }

    fn typed(words: &str) -> Result<TestArgs, clap::Error> {
        Typed::try_parse_from(words.split(' ')).map(|typed| typed.args)
    }

    #[test]
    fn a_module_or_all_of_them() {
        assert!(typed("test summarizer").is_ok());
        assert!(typed("test a ./b --coverage --junit out.xml").is_ok());
        assert!(typed("test --all --json --record").is_ok());
        assert!(typed("test").is_ok(), "one's own modules");
        assert!(typed("test a --record --accept --accept-failures").is_ok());
        for wrong in [
            "test a --live --accept",
            "test a --accept-failures",
            "test a --all",
            "test a --json --junit out.xml",
            "test a --watch --live",
            "test a --watch --accept",
        ] {
            assert!(typed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_model_is_asked_only_where_there_is_one() {
        for words in ["test a --live --provider nobody", "test a --record --provider nobody"] {
            let args = typed(words).unwrap();
            let source = if args.record { ReplySource::Record } else { ReplySource::Live };
            let failure = run(&args, &[], GoldenOptions { source, ..GoldenOptions::default() }).unwrap_err();
            assert_eq!(failure.message(), "unknown provider: `nobody`");
        }
        assert!(run(&typed("test a").unwrap(), &[], GoldenOptions::default()).unwrap().holds());
    }

    #[test]
    fn a_module_that_is_not_there_is_a_failure_like_others() {
        let names = ["summarizer", "no-such-module"].map(str::to_owned);
        let (subjects, missing) = subjects(&names, &Library::default());
        assert_eq!((subjects.len(), missing.len()), (1, 1));
        let report = GoldenReport { modules: missing };
        let text = test_report::lines(&report, ReportLook::default()).join("\n");
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.starts_with("no-such-module cannot be tested: module not found"), "{text}");
        assert!(text.ends_with("0 passed, 1 failed, 0 skipped"), "{text}");
    }

    #[test]
    fn a_junit_report_is_written_or_the_reason_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.xml");
        let args = typed("test summarizer").unwrap();
        let (subjects, _) = subjects(&["summarizer".to_owned()], &Library::default());
        let report = run(&args, &subjects, GoldenOptions::default()).unwrap();
        write_junit(&path, &report).unwrap();
        assert!(
            std::fs::read_to_string(path).unwrap().contains("<testsuite name=\"summarizer\" tests=\"3\"")
        );
        let message = write_junit(&dir.path().join("no/out.xml"), &report).unwrap_err();
        assert!(message.starts_with("cannot write `"), "{message}");
    }
}
