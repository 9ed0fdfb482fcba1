//! Runs cases with the recorded reply, with a model, or with a model whose reply is recorded.
//! Calls a model only if the caller passed one for that purpose. Loads each module once.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use cognitive_contract::policy::{Caller, invocation_refusal};
use cognitive_contract::ports::{ModuleSource, NullSink};
use cognitive_contract::recorded_reply::dialect_place;
use cognitive_contract::{ErrorCode, Failure, Module, RecordedReply};
use cognitive_library::{Folder, Library, formats, load};
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, ReplyRecorder, RunOptions, RunRequest, SeenReply};
use serde_json::Value;

use super::accepted_answer::{AcceptedExpectation, propose};
use super::case::{ExpectedFile, GoldenCase, Script, cases, no_expectation};
use super::coverage::Coverage;
use super::file;
use super::report::{GoldenReport, GoldenResult, GoldenStatus, ModuleReport, ModuleTrouble};
use crate::expect::accept::AcceptedAnswers;

/// A module to test.
#[derive(Debug, Clone)]
pub struct TestedFolder {
    /// The display name.
    pub name: String,
    /// Its files.
    pub folder: Folder,
}

/// The source of the replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplySource {
    /// The reply files of the cases.
    #[default]
    Recorded,
    /// A model.
    Live,
    /// A model; its replies are recorded next to the cases.
    Record,
}

/// The options of a test run.
#[derive(Debug, Clone, Default)]
pub struct GoldenOptions {
    /// The source of the replies.
    pub source: ReplySource,
    /// Set to measure coverage of the passing cases.
    pub coverage: bool,
    /// Set to accept unexpected answers as the new expectation; selects which answers.
    pub accept: Option<AcceptedAnswers>,
    /// The library with the modules that a tested module is composed of.
    pub library: Library,
}

/// The host that asks models, and the options of its runs.
#[derive(Clone)]
pub struct LiveHost {
    /// The host. Its modules are replaced by the tested ones.
    pub host: Host,
    /// The options of each run, such as its time limit.
    pub options: RunOptions,
    /// Set if the model was chosen for these very runs: it then answers for the tested module, whatever is configured for it.
    pub is_chosen: bool,
}

impl LiveHost {
    /// The host for the cases of one module.
    fn host_for(&self, modules: TestedModule) -> Host {
        let name = modules.tested.manifest.name.clone();
        let mut host = self.host.clone();
        host.modules = Arc::new(modules);
        if self.is_chosen { host.for_runs_of(&name, host.models.clone()) } else { host }
    }
}

/// The source of the replies of a case, with the host that asks for them.
#[derive(Clone)]
pub enum Answers {
    /// The reply file of the case.
    Recorded,
    /// A model.
    Live(Box<LiveHost>),
    /// A model; its reply is recorded next to the case.
    Record(Box<LiveHost>),
}

impl Answers {
    /// Pairs a source with the host it needs; E4001 if it is missing.
    pub fn new(source: ReplySource, host: Option<LiveHost>) -> Result<Self, Failure> {
        let host = host.map(Box::new).ok_or_else(|| {
            Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured")
                .suggest("Leave out `--live` and `--record` to replay the recorded replies")
        });
        match source {
            ReplySource::Recorded => Ok(Self::Recorded),
            ReplySource::Live => host.map(Self::Live),
            ReplySource::Record => host.map(Self::Record),
        }
    }
}

/// Runs the cases of all modules, one after the other.
pub async fn run(
    subjects: &[TestedFolder],
    options: &GoldenOptions,
    host: Option<LiveHost>,
) -> Result<GoldenReport, Failure> {
    let answers = Answers::new(options.source, host)?;
    let mut report = GoldenReport::default();
    for subject in subjects {
        report.modules.push(run_module(subject, options, &answers).await);
    }
    Ok(report)
}

/// Runs all cases with recorded replies, for synchronous callers.
pub fn run_recorded(subjects: &[TestedFolder], options: &GoldenOptions) -> Result<GoldenReport, Failure> {
    let options = GoldenOptions { source: ReplySource::Recorded, ..options.clone() };
    finish(run(subjects, &options, None)).unwrap_or_else(|| {
        Err(Failure::new(ErrorCode::InternalError, "a recorded reply waited for an event"))
    })
}

/// Polls once: a recorded reply never waits, so one poll completes the run.
fn finish<T>(run: impl Future<Output = T>) -> Option<T> {
    match std::pin::pin!(run).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

async fn run_module(subject: &TestedFolder, options: &GoldenOptions, answers: &Answers) -> ModuleReport {
    let TestedFolder { name, folder } = subject;
    let module = match load(folder) {
        Ok(module) => Arc::new(module),
        Err(error) => return ModuleReport::unusable(name, folder.display(), &error.into_failure()),
    };
    let mut report = ModuleReport::new(name, folder.display());
    for case in cases(folder) {
        report.cases.push(run_case(&module, folder, &case, answers, options).await);
    }
    if report.cases.is_empty() {
        report.trouble = Some(ModuleTrouble::NoTests);
    }
    if options.coverage {
        let files = formats::read(folder).map(|parts| parts.schemas).unwrap_or_default();
        let passing = report.cases.iter().filter(|case| case.has_passed());
        let envelopes: Vec<&Value> = passing.filter_map(|case| case.envelope.as_ref()).collect();
        report.coverage = Some(Coverage::measure(&module, &files, &envelopes));
    }
    report
}

/// Runs one case. Never fails: errors are part of the result.
pub async fn run_case(
    module: &Arc<Module>,
    folder: &Folder,
    case: &GoldenCase,
    answers: &Answers,
    options: &GoldenOptions,
) -> GoldenResult {
    let started = Instant::now();
    let mut result = match case.read(folder, &module.manifest.name) {
        Ok(script) => judge(module, folder, case, script, answers, options).await,
        Err(why) => GoldenResult::new(&case.name, GoldenStatus::Broken(why)),
    };
    result.elapsed = started.elapsed();
    result
}

async fn judge(
    module: &Arc<Module>,
    folder: &Folder,
    case: &GoldenCase,
    script: Script,
    answers: &Answers,
    options: &GoldenOptions,
) -> GoldenResult {
    let Script { input, expected, replies } = script;
    if expected.is_none() && options.accept.is_none() {
        return GoldenResult::new(&case.name, GoldenStatus::Broken(no_expectation(case)));
    }
    let recorded_for: Vec<String> = replies.keys().cloned().collect();
    let modules = TestedModule { tested: Arc::clone(module), others: options.library.clone() };
    let (host, seen, run) = match answers {
        Answers::Recorded => {
            let (replay, seen) = ReplyRecorder::from_replies(replies);
            (Host::new(Arc::new(modules), Arc::new(replay)), seen, RunOptions::default())
        }
        Answers::Live(live) | Answers::Record(live) => {
            let (host, seen) = live.host_for(modules).with_recording();
            (host, seen, live.options.clone())
        }
    };
    let envelope = answer(&host, module, input, run).await;
    let (judged, not_accepted) = verdict(case, expected.as_ref(), &envelope, options);
    let seen = seen.all();
    let mut recorded = false;
    let status = match answers {
        Answers::Live(_) => judged,
        // An input that is refused before any model is asked needs no reply.
        Answers::Recorded if seen.keys().all(|name| recorded_for.contains(name)) => judged,
        Answers::Recorded => GoldenStatus::NotRecorded,
        Answers::Record(_) => match record(folder, case, &module.manifest.name, &seen) {
            Ok(kept) => {
                recorded = kept;
                judged
            }
            Err(why) => GoldenStatus::Broken(format!("the reply was not recorded: {why}")),
        },
    };
    let mut result = GoldenResult::new(&case.name, status);
    result.unmentioned =
        expected.as_ref().map(|expected| unmentioned_warnings(expected, &envelope)).unwrap_or_default();
    result.not_accepted = not_accepted;
    result.recorded = recorded;
    result.envelope = Some(envelope);
    result
}

/// Returns the codes of the warnings of an answer, each once, if the expectation does not mention warnings. (D-24)
fn unmentioned_warnings(expected: &ExpectedFile, envelope: &Value) -> Vec<String> {
    let mentions = expected.value.pointer("/meta/warnings").is_some()
        || expected.value.as_object().is_some_and(|members| {
            members
                .keys()
                .any(|name| name.starts_with("meta.warnings") || name.starts_with("$.meta.warnings"))
        });
    let warnings = envelope.pointer("/meta/warnings").and_then(Value::as_array).filter(|_| !mentions);
    let mut codes: Vec<String> = Vec::new();
    for code in warnings.into_iter().flatten().filter_map(|warning| warning.get("code")?.as_str()) {
        if !codes.iter().any(|known| known == code) {
            codes.push(code.to_owned());
        }
    }
    codes
}

/// Compares an envelope with the expectation. Also returns why it was not accepted, if acceptance was
/// requested.
fn verdict(
    case: &GoldenCase,
    expected: Option<&ExpectedFile>,
    envelope: &Value,
    options: &GoldenOptions,
) -> (GoldenStatus, Option<String>) {
    let differences = expected.map(|expected| expected.expectation.differences(envelope));
    if differences.as_ref().is_some_and(Vec::is_empty) {
        return (GoldenStatus::Passed, None);
    }
    let failed = differences.map_or_else(|| GoldenStatus::Broken(no_expectation(case)), GoldenStatus::Failed);
    match options.accept.map(|which| propose(case, expected, envelope, which)) {
        None => (failed, None),
        Some(Ok(new)) => (GoldenStatus::Accepted(new), None),
        Some(Err(why)) => (failed, Some(why)),
    }
}

/// Writes the accepted expectations, after they were shown. Returns the number of files; the error names the
/// first that cannot be written.
pub fn write_accepted(subjects: &[TestedFolder], report: &GoldenReport) -> Result<usize, String> {
    let mut written = 0;
    for (subject, module) in subjects.iter().zip(&report.modules) {
        for case in &module.cases {
            if let GoldenStatus::Accepted(AcceptedExpectation { path, after, .. }) = &case.status {
                file::write_in(&subject.folder, path, after)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// Records the model's reply to each module. Returns whether a model was asked at all.
fn record(
    folder: &Folder,
    case: &GoldenCase,
    own: &str,
    seen: &BTreeMap<String, SeenReply>,
) -> Result<bool, String> {
    if seen.values().any(|seen| *seen == SeenReply::Unfinished) {
        return Err("it did not finish".to_owned());
    }
    for (module, seen) in seen {
        if let SeenReply::Reply(reply) = seen {
            keep(folder, &case.reply_of(module, own), reply)?;
        }
    }
    Ok(!seen.is_empty())
}

/// Writes a reply with its dialect. Removes the dialect of an earlier recording.
fn keep(folder: &Folder, path: &str, reply: &RecordedReply) -> Result<(), String> {
    file::write_in(folder, path, &reply.text)?;
    match (dialect_place(path), reply.dialect_file()) {
        (Some(place), Some(text)) => file::write_in(folder, &place, &text),
        (Some(place), None) => file::remove_in(folder, &place),
        (None, _) => Ok(()),
    }
}

async fn answer(host: &Host, module: &Module, input: Value, mut options: RunOptions) -> Value {
    // A case is about the module, not about who may run it.
    if invocation_refusal(&module.manifest, Caller::User).is_some() {
        options.caller = Caller::Agent;
    }
    let request =
        RunRequest { module: module.manifest.name.as_str().into(), input: RunInput::Json(input), options };
    let envelope = cognitive_runtime::run(host, request, &mut NullSink).await;
    serde_json::to_value(envelope).unwrap_or_default()
}

/// The tested module, which is already loaded, and the library with its parts.
struct TestedModule {
    tested: Arc<Module>,
    others: Library,
}

impl ModuleSource for TestedModule {
    fn module(&self, name: &str) -> Result<Arc<Module>, Failure> {
        if name == self.tested.manifest.name {
            return Ok(Arc::clone(&self.tested));
        }
        self.others.module(name)
    }
}

#[cfg(test)]
mod tests;
