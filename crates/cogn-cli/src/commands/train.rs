//! `cogn train MODULE --cases FILE`: trains decisions of an embedded model on labelled cases, and saves the result in
//! the module folder. The weights of the model do not change. A module without a folder needs `--output`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cognitive_contract::ports::Example;
use cognitive_contract::run_settings::flags;
use cognitive_contract::trained_model::{
    TrainedHead, TrainedModel, TrainingCase, TrainingProgress, TrainingReport, WantedValue,
};
use cognitive_contract::{Enforcement, ErrorCode, Failure, Module, RunSettings};
use cognitive_library::Library;
use cognitive_runtime::host::RunInput;
use cognitive_setup::training::{TrainingInput, train as train_model};
use cognitive_setup::{async_runtime, out_file, wiring};
use cognitive_testing::eval::LabelledCase;
use serde_json::{Value, json};

use super::cases::{CaseArgs, case_bar};
use super::fail;
use super::hand_over::rescue;
use crate::args::candidates;
use crate::args::provider::ProviderArgs;
use crate::printer::{Exit, FAINT, Printer, plain};
use crate::project;
use crate::pull_progress::TerminalProgress;
use crate::text_table::TextTable;

/// A value with fewer cases is reported as rare.
const RARE: usize = 5;

/// Options of `train`.
#[derive(Debug, clap::Args)]
pub struct TrainArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    #[command(flatten)]
    cases: CaseArgs,
    /// Write the result to this file instead of the folder `trained` of the module
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The provider: only `embedded` can be trained
    #[arg(long, short, value_name = "NAME", add = candidates::providers(), help_heading = "Model")]
    provider: Option<String>,
    /// The embedded model: a name such as `qwen-0.5b` or a GGUF file, also as `embedded/qwen-0.5b`
    #[arg(long, short, value_name = "MODEL", help_heading = "Model")]
    model: Option<String>,
    /// Timeout of the download of its weights, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = flags::seconds, help_heading = "Model")]
    timeout: Option<Duration>,
    /// Do not download weights, as with `COGN_OFFLINE=1`
    #[arg(long, help_heading = "Model")]
    no_pull: bool,
}

/// Trains the model and prints the result.
pub fn train(args: &TrainArgs, library: &Library, printer: &Printer) -> Exit {
    let cases = args.cases.refuse_as_output(args.output.as_deref()).and_then(|()| args.cases.read());
    let cases = match cases {
        Ok(cases) => cases,
        Err(failure) => {
            let _always_bad = fail(&failure, printer);
            return Exit::Usage;
        }
    };
    let done = library.load(&args.module).and_then(|module| {
        // Checks the destination before an hour of training.
        let folder = place(args, &module)?;
        let (examples, lessons) = lessons(&module, &cases)?;
        let mut report = learn(args, library, &module, &examples, &lessons, printer)?;
        check(&report)?;
        // The same weights under another name: their earlier result is replaced.
        let same = |known: &&TrainedModel| known.weights_sha256 == report.trained.weights_sha256;
        if let Some(known) = module.trained.iter().find(same) {
            report.trained.model.clone_from(&known.model);
        }
        let path = folder.map(|folder| folder.join(format!("{}.json", report.trained.model)));
        let path = args.output.clone().or(path).unwrap_or_default();
        write(&report.trained, &path, printer)?;
        Ok((report, path))
    });
    match done {
        Ok((report, path)) => show(args, &report, &path, printer),
        Err(failure) if failure.code() == ErrorCode::StreamInterrupted => Exit::Cancelled,
        Err(failure) => fail(&failure, printer),
    }
}

/// Returns the destination folder, unless a file was named.
fn place(args: &TrainArgs, module: &Module) -> Result<Option<PathBuf>, Failure> {
    if args.output.is_some() {
        return Ok(None);
    }
    let Some(folder) = &module.folder else {
        let message = format!("cannot train a bundled module: `{}`", args.module);
        return Err(Failure::new(ErrorCode::InvalidInput, message)
            .suggest("Name a file with `--output`, or train a copy of the module in your own folder"));
    };
    let place = folder.join("trained");
    if place.is_symlink() {
        let message = format!("`{}` is a link, and links are not followed", place.display());
        return Err(Failure::new(ErrorCode::InvalidInput, message).suggest("Replace it with a folder"));
    }
    Ok(Some(place))
}

/// Refuses to write an unusable result. An older file is kept.
fn check(report: &TrainingReport) -> Result<(), Failure> {
    if report.trained.heads.is_empty() {
        let why = |(path, why): (&String, &String)| format!("`{path}`: {why}");
        let whys: Vec<String> = report.left_out.iter().map(why).collect();
        let whys = if whys.is_empty() { "no case expects a decision".to_owned() } else { whys.join("; ") };
        return Err(Failure::new(ErrorCode::InvalidInput, format!("training failed: {whys}"))
            .suggest("Expect a text at the path of a value with `x-decide`, in at least 30 cases"));
    }
    let written = serde_json::to_value(&report.trained).map_err(|error| error.to_string());
    written.and_then(|written| TrainedModel::from_value(&written)).map(drop).map_err(|why| {
        Failure::new(ErrorCode::InternalError, format!("the trained weights are not usable: {why}"))
    })
}

/// Returns the cases as a model would get them, and the examples of the module.
fn lessons(module: &Module, cases: &[LabelledCase]) -> Result<(Vec<Example>, Vec<TrainingCase>), Failure> {
    let mut examples = Vec::new();
    let mut lessons = Vec::new();
    for case in cases {
        let input = RunInput::Json(case.input.clone());
        let preview =
            cognitive_runtime::preview(module, &input, Enforcement::Full, None).map_err(|failure| {
                let message = format!("invalid input of case `{}`: {}", case.id, failure.message());
                Failure::new(ErrorCode::InvalidInput, message)
            })?;
        examples = preview.examples;
        let wanted = trainable_parts(case.expect.source(), module.contract.data().schema());
        lessons.push(TrainingCase { input: preview.input, wanted });
    }
    Ok((examples, lessons))
}

/// Returns the trainable parts of an expectation: a text, one of several texts, and absence.
fn trainable_parts(expect: &Value, data: &Value) -> BTreeMap<String, WantedValue> {
    let mut found = BTreeMap::new();
    for (name, value) in expect.as_object().into_iter().flatten() {
        let path = name.strip_prefix("data.").unwrap_or(name);
        let node = path.split('.').try_fold(data, |node, name| node.get("properties")?.get(name));
        want(path, value, node, &mut found);
    }
    found
}

/// Records the expectation at a path, which `node` of the schema describes. In an exact object, as in exported reviews,
/// a missing member means absence.
fn want(path: &str, value: &Value, node: Option<&Value>, found: &mut BTreeMap<String, WantedValue>) {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let learned = match (value, value.get("$in"), value.get("$absent"), value.get("$exact")) {
        (Value::String(_), ..) => Some(WantedValue::OneOf(text(value).into_iter().collect())),
        (_, Some(Value::Array(texts)), ..) => {
            texts.iter().map(text).collect::<Option<Vec<_>>>().map(WantedValue::OneOf)
        }
        (_, _, Some(Value::Bool(true)), _) => Some(WantedValue::Nothing),
        (.., Some(Value::Object(exact))) => {
            let members = node.and_then(|node| node.get("properties")?.as_object());
            for (name, node) in members.into_iter().flatten() {
                let below = format!("{path}.{name}");
                match exact.get(name) {
                    Some(Value::String(text)) => {
                        found.insert(below, WantedValue::OneOf(vec![text.clone()]));
                    }
                    Some(Value::Object(_)) => {
                        let value = json!({ "$exact": exact.get(name) });
                        want(&below, &value, Some(node), found);
                    }
                    Some(_) => {}
                    None => drop(found.insert(below, WantedValue::Nothing)),
                }
            }
            None
        }
        _ => None,
    };
    found.extend(learned.map(|learned| (path.to_owned(), learned)));
}

fn learn(
    args: &TrainArgs,
    library: &Library,
    module: &Module,
    examples: &[Example],
    cases: &[TrainingCase],
    printer: &Printer,
) -> Result<TrainingReport, Failure> {
    // Training runs no module, so it has no options of runs.
    let typed = ProviderArgs {
        provider: args.provider.clone(),
        model: args.model.clone(),
        run: RunSettings { timeout: args.timeout, ..RunSettings::default() },
        no_pull: args.no_pull,
        ..ProviderArgs::default()
    };
    let builder = project::runtime(library, &typed)?.for_module(&module.manifest.name);
    let settings = builder.settings()?;
    let screen = TerminalProgress::new(printer, false);
    let bar = case_bar(printer, cases.len());
    let is_stopped = Arc::new(AtomicBool::new(false));
    let _listening = listen(&is_stopped)?;
    let wish = TrainingInput {
        settings: &settings,
        module,
        examples,
        cases,
        progress: &|progress| match progress {
            TrainingProgress::Read(count) => bar.set_position(count as u64),
            TrainingProgress::Learned(done, of) => bar.set_message(format!("trained {done} of {of}")),
        },
        stop: &|| is_stopped.load(Ordering::Relaxed),
    };
    let report = train_model(&wish, &wiring::environment, Some(screen.fetch()));
    bar.finish_and_clear();
    report
}

/// Handles Ctrl-C while the returned runtime exists.
fn listen(is_stopped: &Arc<AtomicBool>) -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = async_runtime::on_all_cores()?;
    let is_stopped = Arc::clone(is_stopped);
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            is_stopped.store(true, Ordering::Relaxed);
        }
    });
    Ok(runtime)
}

/// Saves the result. If the file cannot be written, it is saved elsewhere, because training takes long.
fn write(trained: &TrainedModel, path: &Path, printer: &Printer) -> Result<(), Failure> {
    let broken = |error: std::io::Error| {
        Failure::new(ErrorCode::InternalError, format!("cannot write `{}`: {error}", path.display()))
            .suggest("Name another file with `--output`")
    };
    let text = serde_json::to_string_pretty(trained).map_err(|error| broken(error.into()))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = folder
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| out_file::write(path, format!("{text}\n").as_bytes()));
    written.map_err(|error| {
        rescue("the training result", &text, printer);
        broken(error)
    })
}

fn show(args: &TrainArgs, report: &TrainingReport, path: &Path, printer: &Printer) -> Exit {
    let heads = &report.trained.heads;
    if args.json {
        let head = |head: &TrainedHead| json!({ "cases": head.cases, "right_unseen": head.right });
        let heads: BTreeMap<&String, Value> = heads.iter().map(|(path, each)| (path, head(each))).collect();
        printer.json(&json!({
            "model": report.trained.model,
            "file": path,
            "learned": heads,
            "classes": report.classes,
            "left_out": report.left_out,
            "too_long": report.too_long,
        }));
        return Exit::Good;
    }
    let mut table = TextTable::new(["DECISION", "CASES", "RIGHT WHILE UNSEEN", "FROM"]).right(&[1, 2]);
    for (path, head) in heads {
        let from = head.reads.as_ref().map_or_else(
            || "the scores of the model".to_owned(),
            |reads| format!("its state after {} layers", reads.layer),
        );
        table.push(vec![path.clone(), head.cases.to_string(), head.right.to_string(), from]);
    }
    printer.table(&table);
    let mut table = TextTable::new(["DECISION", "VALUE", "CASES", "RIGHT WHILE UNSEEN"]).right(&[2, 3]);
    for (path, result) in report.classes.iter().flat_map(|(path, all)| all.iter().map(move |one| (path, one)))
    {
        let (cases, right) = (result.cases.to_string(), result.right.to_string());
        table.push(vec![path.clone(), plain(&result.class), cases, right]);
    }
    if !report.classes.is_empty() {
        printer.print_line("");
        printer.table(&table);
        printer.print_line("");
    }
    for (path, result) in report.classes.iter().flat_map(|(path, all)| all.iter().map(move |one| (path, one)))
    {
        if result.cases < RARE {
            let (class, cases) = (plain(&result.class), result.cases);
            printer.warning(&format!("`{path}`: {cases} cases of `{class}` are too few to recognise it"));
        }
    }
    for (path, why) in &report.left_out {
        printer.warning(&format!("training failed for `{path}`: {why}"));
    }
    if report.too_long > 0 {
        printer.warning(&format!("{} cases are too long for the model and were skipped", report.too_long));
    }
    printer.print_line(path.display().to_string());
    printer.err(format!("{FAINT}measure it on cases outside the training: `cogn eval`{FAINT:#}"));
    Exit::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reviewers_corrected_is_learned_from_like_what_was_written_by_hand() {
        let data = json!({ "properties": { "label": {}, "found": { "properties": {
            "person": {}, "place": {}, "count": {}, "more": { "properties": { "date": {} } } } } } });
        let one = |text: &str| WantedValue::OneOf(vec![text.to_owned()]);
        let written = json!({ "label": "a", "data.found.person": { "$in": ["Ada", "Ada L."] },
            "found.place": { "$absent": true }, "found.count": 3 });
        let learned = trainable_parts(&written, &data);
        assert_eq!(learned["label"], one("a"));
        assert_eq!(learned["found.person"], WantedValue::OneOf(vec!["Ada".to_owned(), "Ada L.".to_owned()]));
        assert_eq!((&learned["found.place"], learned.len()), (&WantedValue::Nothing, 3));
        let exported =
            json!({ "found": { "$exact": { "person": "Ada", "count": 3, "more": { "date": "today" } } } });
        let learned = trainable_parts(&exported, &data);
        assert_eq!((&learned["found.person"], &learned["found.place"]), (&one("Ada"), &WantedValue::Nothing));
        assert_eq!((&learned["found.more.date"], learned.len()), (&one("today"), 3));
    }
}
