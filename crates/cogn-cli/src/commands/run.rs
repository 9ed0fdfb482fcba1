//! `cogn run MODULE`: takes an input and prints one envelope on stdout.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use cognitive_contract::ports::{Event, EventSink, ModuleSource, NullSink};
use cognitive_contract::trace::{PartState, Trace};
use cognitive_contract::{Enforcement, Envelope, ErrorCode, Failure};
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::host::{ModuleRef, RunInput};
use cognitive_runtime::{Clock, Host, RunContext, RunOptions, RunRequest, SpanParent, Unavailable, preview};
use cognitive_setup::collector::Collector;
use cognitive_setup::settings::{SettingOverrides, Settings};
use cognitive_setup::stores::Stores;
use cognitive_setup::{Runtime, WeightsDownload, async_runtime, embedded_model, wiring};
use cognitive_store::DROPPING;

use super::hand_over::hand_over;
use super::stop::StopSignal;
use super::stream::{self, StreamForm};
use super::trace::{self, Keeper};
use super::{fail, media_out, reader};
use crate::args::candidates;
use crate::args::input::InputArgs;
use crate::args::media::attach;
use crate::args::provider::ProviderArgs;
use crate::args::repeat::RepeatArgs;
use crate::args::reply::{REPLAY, ReplyArgs};
use crate::output_paths::{NamedPath, refuse_collisions};
use crate::printer::{Exit, FAINT, Printer};
use crate::pull_progress::TerminalProgress;
use crate::{platform, process_limits, project, view};

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that can be typed")]
pub struct RunArgs {
    /// Name of an installed module, or path of a folder
    #[arg(add = candidates::modules())]
    module: String,
    #[command(flatten)]
    input: InputArgs,
    /// File or URL for the input member that takes media; repeatable
    #[arg(long, value_name = "FILE|URL", conflicts_with = "args", help_heading = "Input")]
    media: Vec<String>,
    /// Show a readable card; the default in a terminal
    #[arg(long, conflicts_with_all = ["pretty", "json"], help_heading = "Answer")]
    view: bool,
    /// Print the envelope as one line of JSON; the default in a pipe
    #[arg(long, conflicts_with = "pretty", help_heading = "Answer")]
    json: bool,
    /// Print the envelope as indented JSON
    #[arg(long, help_heading = "Answer")]
    pretty: bool,
    /// Print the answer while it arrives: one chunk per line, or as readable text
    #[arg(
        long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true,
        default_missing_value = "ndjson", conflicts_with_all = ["pretty", "view", "json", "until"],
        help_heading = "Answer"
    )]
    stream: Option<StreamForm>,
    /// With `--stream`: fail with E4010 if the answer cannot be streamed
    #[arg(long, requires = "stream", help_heading = "Answer")]
    require_streaming: bool,
    /// Also write the envelope to a file
    #[arg(long, short, value_name = "FILE", help_heading = "Answer")]
    output: Option<PathBuf>,
    /// Write media of the answer to files in this folder instead of printing them
    #[arg(long, value_name = "DIR", conflicts_with = "stream", help_heading = "Answer")]
    media_out: Option<PathBuf>,
    /// Show every module run on stderr, with its start, duration and cost
    #[arg(
        long, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "tree",
        help_heading = "Answer"
    )]
    trace: Option<trace::TraceForm>,
    /// Send traces to this collector, as OTLP in JSON over HTTP; such as `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL", help_heading = "Answer")]
    otlp: Option<String>,
    /// Do not enforce the module's schemas; the envelope contract still holds
    #[arg(long, help_heading = "Answer")]
    no_validate: bool,
    #[command(flatten)]
    repeat: RepeatArgs,
    /// The user whose context is read and stored; none by default
    #[arg(long, value_name = "ID", help_heading = "Context")]
    user: Option<String>,
    /// The tenant of the user, if tenants are used
    #[arg(long, value_name = "ID", help_heading = "Context")]
    tenant: Option<String>,
    /// The session whose context is read and stored
    #[arg(long, value_name = "ID", help_heading = "Context")]
    session: Option<String>,
    #[command(flatten)]
    provider: ProviderArgs,
    #[command(flatten)]
    reply: ReplyArgs,
    /// Follow the `@call`s of the prompt. This is always done; the flag is for scripts of other runtimes
    #[arg(long, short = 's', hide = true)]
    subagent: bool,
}

/// The format of an envelope on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnvelopeForm {
    Card,
    Line,
    Indented,
}

impl EnvelopeForm {
    /// Returns the output format; the default is a card on a terminal and one line in a pipe.
    fn from_args(args: &RunArgs, printer: &Printer) -> Self {
        match (args.pretty, args.json, args.view) {
            (true, ..) => Self::Indented,
            (_, true, _) => Self::Line,
            (.., true) => Self::Card,
            _ if printer.is_read_by_people() => Self::Card,
            _ => Self::Line,
        }
    }
}

/// Runs the module and prints the envelope. The exit code distinguishes success and failure; 128 plus the number of a
/// signal means that the signal cancelled the run.
pub fn run(args: &RunArgs, library: &Library, printer: &Printer) -> Exit {
    process_limits::take_limits_as_errors();
    let named = [
        NamedPath::read("the file of the input", args.input.named_file()),
        NamedPath::read("`--reply`", args.reply.path()),
        NamedPath::write("`-o`", args.output.as_deref()),
        NamedPath::write("`--media-out`", args.media_out.as_deref()),
    ];
    if let Err(failure) = refuse_collisions(named) {
        let _always_bad = fail(&failure, printer);
        return Exit::Usage;
    }
    let (collector, prepared) = match Collector::open(args.otlp.as_deref()) {
        Ok(collector) => {
            let prepared = prepare(args, library, collector.as_ref());
            (collector, prepared)
        }
        Err(failure) => (None, Err(failure)),
    };
    let audit = prepared.as_ref().ok().and_then(|prepared| prepared.runtime.stores().audit.clone());
    let exit = answer(args, prepared, printer);
    if audit.is_some_and(|audit| audit.drop_counts().owners > 0) {
        printer.warning(DROPPING);
    }
    // Last, so that a slow collector cannot delay the answer.
    if let Some(collector) = collector {
        report_lost(collector.deliver(), printer);
    }
    exit
}

fn report_lost(spans: u64, printer: &Printer) {
    match spans {
        0 => {}
        1 => printer.warning("1 span was lost: the collector did not accept it"),
        lost => printer.warning(&format!("{lost} spans were lost: the collector did not accept them")),
    }
}

fn answer(args: &RunArgs, prepared: Result<PreparedRun, Failure>, printer: &Printer) -> Exit {
    // Before a run, Ctrl-C can only interrupt the download of weights.
    let unavailable = prepared.as_ref().ok().and_then(|prepared| prepared.runtime.unavailable());
    let unfetched = unavailable
        .is_some_and(|failure| failure.code() == ErrorCode::StreamInterrupted)
        .then_some(StopSignal::Interrupt);
    let prepared = prepared.map(|PreparedRun { runtime, request }| (runtime.host(), request));
    let (mut envelope, cancelled, trace) = match (prepared, args.stream) {
        (prepared, Some(form)) => stream::run(prepared, form, &args.module, answer_reader(args), printer),
        (Ok((host, request)), None) => execute(&host, request, args, printer),
        (Err(failure), None) => (failure.into_envelope(), None, None),
    };
    let cancelled = cancelled.or(unfetched);
    // Before anything is shown: a card, a line and a file all say where the media are.
    let unwritten = args
        .media_out
        .as_deref()
        .map(|folder| media_out::store(&mut envelope, folder, args.output.as_deref()));
    let unwritten = unwritten.unwrap_or_default();
    for message in &unwritten {
        printer.error(
            message,
            Some("The media item stays in the envelope; name another folder with `--media-out`"),
        );
    }
    let text = as_text(args, &envelope);
    let form = EnvelopeForm::from_args(args, printer);
    if args.stream.is_none() {
        show(args, form, (&envelope, &text), printer);
    }
    if let (Some(form), Some(trace)) = (args.trace, &trace) {
        trace::show(trace, form, printer);
    }
    // A card or plain text is not the whole envelope.
    let shown = match args.stream {
        Some(stream) => stream != StreamForm::Text,
        None => form != EnvelopeForm::Card,
    };
    let handed_over = hand_over(&text, args.output.as_deref(), shown, printer);
    match (cancelled, envelope.ok() && unwritten.is_empty() && handed_over) {
        (Some(signal), _) => signal.exit(),
        (None, true) => Exit::Good,
        (None, false) => Exit::Bad,
    }
}

/// The destination of the answer. With an output file or media files, the run continues even if stdout is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerReader {
    Stdout,
    Files,
}

fn answer_reader(args: &RunArgs) -> AnswerReader {
    if args.output.is_none() && args.media_out.is_none() { AnswerReader::Stdout } else { AnswerReader::Files }
}

fn as_text(args: &RunArgs, envelope: &Envelope) -> String {
    let text =
        if args.pretty { serde_json::to_string_pretty(envelope) } else { serde_json::to_string(envelope) };
    text.unwrap_or_default()
}

fn show(args: &RunArgs, form: EnvelopeForm, (envelope, text): (&Envelope, &str), printer: &Printer) {
    if form == EnvelopeForm::Card {
        for line in view::card(&args.module, envelope, printer.width()) {
            printer.print_line(line);
        }
    } else {
        printer.json_text(text);
        if printer.for_people() && embedded_model::has_embedded_answer(envelope) {
            printer.err(format!("{FAINT}{}{FAINT:#}", embedded_model::HONESTY));
        }
    }
}

/// A runtime, and the run of the command line.
struct PreparedRun {
    runtime: Runtime,
    request: RunRequest,
}

fn prepare(args: &RunArgs, library: &Library, collector: Option<&Collector>) -> Result<PreparedRun, Failure> {
    let modules = Arc::new(ModuleCache::new(library.clone()));
    let input = input(args, &modules).unwrap_or_else(RunInput::Unreadable);
    let runtime = start(args, library, &modules, &input)?;
    explain_choices(args, library, runtime.settings());
    runtime.notices().iter().for_each(|line| Printer.warning(line));
    let mut options = options(args, &runtime);
    // Last, because the clock of the spans starts here.
    let model = wiring::model(runtime.settings());
    options.spans = collector.map(|collector| Arc::new(SpanParent::new(collector.sink()).asking_for(model)));
    let request = RunRequest { module: ModuleRef::from(&args.module), input, options };
    Ok(PreparedRun { runtime, request })
}

/// Starts the runtime. A model or a flag that cannot be used is reported by the run, which leaves a record like any other.
fn start(
    args: &RunArgs,
    library: &Library,
    modules: &Arc<ModuleCache>,
    input: &RunInput,
) -> Result<Runtime, Failure> {
    let named = args.user.is_some() || args.tenant.is_some() || args.session.is_some();
    let builder = project::runtime(library, &args.provider)?
        .shared_modules(Arc::clone(modules) as Arc<dyn ModuleSource>)
        .for_module(project::own_name(&**modules, &args.module))
        .stores_by(move |settings| Stores::open_or_warn(settings, named))
        .one_by_one();
    let without_flags = builder.clone().overrides(SettingOverrides::default());
    // A run that would fail before its call should not trigger a download.
    let before = |stores: &Stores| {
        let (clock, options) = (Clock::new(), caller(args));
        let memory = RunContext::new(stores.context.as_deref(), &clock, &options);
        preview(&*modules.module(&args.module)?, input, enforcement(args), Some(&memory)).map(drop)
    };
    let download = WeightsDownload { progress: &TerminalProgress::new(&Printer, false), before: &before };
    let built =
        args.reply.answer(builder, &args.provider).and_then(|builder| builder.build_with(Some(download)));
    built.or_else(|failure| {
        let unavailable = Unavailable::new("none", failure.clone());
        // Named, because the model of the environment or of a file may be the cause.
        without_flags.provider_name(REPLAY).provider(unavailable).build().map_err(|_| failure)
    })
}

/// With `--verbose`, prints the module folder, the provider and the store.
fn explain_choices(args: &RunArgs, library: &Library, settings: &Settings) {
    if let Ok(found) = library.find(&args.module) {
        Printer.detail("module", found.folder.display());
    }
    Printer.detail("provider", settings.provider.name());
    if let Some(model) = wiring::model(settings) {
        Printer.detail("model", model);
    }
    if let Some(store) = &settings.store {
        Printer.detail("recorded in", cognitive_store::Store::display_path(store).display());
    }
}

/// Returns the typed input with its media.
fn input(args: &RunArgs, modules: &ModuleCache) -> Result<RunInput, Failure> {
    if args.reply.reads_stdin() && args.input.reads_stdin() {
        let failure = Failure::new(ErrorCode::InvalidInput, "cannot read both input and reply from stdin");
        return Err(failure.suggest("Write one of them to a file"));
    }
    // A module that fails to load is reported later, by the run itself.
    let module = args.input.has_members().then(|| modules.module(&args.module).ok()).flatten();
    if args.media.is_empty() {
        return args.input.gather(module.as_deref());
    }
    // Media alone are a valid input, so stdin is not read.
    let given = if args.input.is_given() {
        args.input.gather(module.as_deref())?
    } else {
        RunInput::Json(serde_json::Value::Object(serde_json::Map::new()))
    };
    attach(&*modules.module(&args.module)?, given, &args.media)
}

fn enforcement(args: &RunArgs) -> Enforcement {
    if args.no_validate { Enforcement::EnvelopeOnly } else { Enforcement::Full }
}

/// The owner of the context that the run reads and stores.
fn caller(args: &RunArgs) -> RunOptions {
    let mut options = RunOptions::default();
    options.user.clone_from(&args.user);
    options.tenant.clone_from(&args.tenant);
    options.session.clone_from(&args.session);
    options
}

fn options(args: &RunArgs, runtime: &Runtime) -> RunOptions {
    let settings = runtime.settings();
    let mut asked = settings.asked;
    asked.enforcement = args.no_validate.then_some(Enforcement::EnvelopeOnly);
    if args.stream.is_some() && asked.or(settings.general).timeout.is_none() {
        asked.timeout = Some(stream::MAX_STREAM);
    }
    let mut options = caller(args).with_settings(asked).with_warnings(runtime.run_options().warnings);
    options.require_streaming = args.require_streaming;
    options
}

/// Runs the module until it ends, a signal arrives or stdout loses its reader. Dropping the run closes its connection.
fn execute(
    host: &Host,
    request: RunRequest,
    args: &RunArgs,
    printer: &Printer,
) -> (Envelope, Option<StopSignal>, Option<Trace>) {
    let runtime = match async_runtime::on_this_thread() {
        Ok(runtime) => runtime,
        Err(failure) => return (failure.into_envelope(), None, None),
    };
    runtime.block_on(async {
        let mut progress = RunSpinner::new(printer);
        let mut silent = NullSink;
        let sink: &mut dyn EventSink = match &mut progress {
            Some(progress) => progress,
            None => &mut silent,
        };
        let cancelled = Cell::new(None);
        let stop = async {
            tokio::select! {
                () = reader::reader_gone(printer), if answer_reader(args) == AnswerReader::Stdout => reader::reader_gone_failure(),
                signal = platform::stop_signal() => {
                    cancelled.set(Some(signal));
                    signal.failure()
                }
            }
        };
        let mut keeper = Keeper::new(sink);
        let envelope = match args.repeat.repeat() {
            Some(repeat) => cognitive_runtime::repeat_until(host, request, &repeat, &mut keeper, stop).await,
            None => cognitive_runtime::run_until(host, request, &mut keeper, stop).await,
        };
        (envelope, cancelled.get(), keeper.into_trace())
    })
}

/// A spinner with stage and elapsed time, on a terminal only.
struct RunSpinner(indicatif::ProgressBar);

impl RunSpinner {
    fn new(printer: &Printer) -> Option<Self> {
        printer.for_people().then(|| {
            let style = indicatif::ProgressStyle::with_template("{spinner} {msg} {elapsed}");
            let bar = indicatif::ProgressBar::new_spinner();
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            Self(bar)
        })
    }
}

impl EventSink for RunSpinner {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Stage(stage) => self.0.set_message(stage.as_str()),
            Event::Part(part) if part.state == PartState::Started => self.0.set_message(part.path.to_owned()),
            Event::Finished(_) => self.0.finish_and_clear(),
            _ => {}
        }
    }
}

impl Drop for RunSpinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
