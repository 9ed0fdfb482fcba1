//! `cogn run MODULE`: input in, one envelope on stdout.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use clap::ValueEnum;
use cognitive_contract::ports::NullSink;
use cognitive_contract::{Enforcement, Envelope, ErrorCode, Failure};
use cognitive_library::Library;
use cognitive_runtime::host::RunInput;
use cognitive_runtime::{Host, Replay, RunOptions, RunRequest};

use crate::printer::{Exit, Printer};

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Name of an installed module, or path of a folder
    module: String,
    /// File with the JSON input; `-` or nothing reads stdin
    file: Option<PathBuf>,
    /// The JSON input itself
    #[arg(long, short, value_name = "JSON", conflicts_with_all = ["file", "args"])]
    input: Option<String>,
    /// Free text instead of JSON; no input schema judges it
    #[arg(long, short, value_name = "TEXT", conflicts_with = "file")]
    args: Option<String>,
    /// Who answers
    #[arg(long, value_enum)]
    provider: Option<ProviderName>,
    /// For `--provider replay`: the file with the saved reply, `-` for stdin
    #[arg(long, value_name = "FILE", required_if_eq("provider", "replay"))]
    reply: Option<PathBuf>,
    /// Do not enforce the module's schemas; the envelope contract still holds
    #[arg(long)]
    no_validate: bool,
    /// Take no liberties with the model's syntax
    #[arg(long)]
    strict_parse: bool,
    /// Indent the envelope
    #[arg(long)]
    pretty: bool,
    /// Write the envelope to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProviderName {
    /// A saved model reply, fed through the whole pipeline
    Replay,
}

/// Runs and prints the envelope; the exit code says whether it is a success.
pub fn run(args: &RunArgs, library: &Library, printer: &Printer) -> Exit {
    let envelope = match prepare(args, library) {
        Ok((host, request)) => finish(cognitive_runtime::run(&host, request, &mut NullSink)),
        Err(failure) => failure.into_envelope(),
    };
    let exit = if envelope.ok() { Exit::Good } else { Exit::Bad };
    let text =
        if args.pretty { serde_json::to_string_pretty(&envelope) } else { serde_json::to_string(&envelope) };
    let text = text.unwrap_or_else(|error| format!("{{\"ok\":false,\"error\":\"{error}\"}}"));
    match &args.output {
        None => printer.out(text),
        Some(path) => {
            if let Err(error) = fs::write(path, text + "\n") {
                printer.error(&format!("cannot write `{}`: {error}", path.display()), None);
                return Exit::Bad;
            }
        }
    }
    exit
}

fn prepare(args: &RunArgs, library: &Library) -> Result<(Host, RunRequest), Failure> {
    let provider = match args.provider {
        Some(ProviderName::Replay) => Replay::text(read_text(args.reply.as_deref())?),
        None => {
            let failure = Failure::new(ErrorCode::ProviderUnavailable, "no provider is configured");
            return Err(failure.suggest("Replay a saved reply: `--provider replay --reply FILE`"));
        }
    };
    let input = match (&args.args, &args.input) {
        (Some(text), _) => RunInput::Text(text.clone()),
        (None, Some(text)) => RunInput::Raw(text.clone()),
        (None, None) => RunInput::Raw(read_text(args.file.as_deref())?),
    };
    let enforcement = if args.no_validate { Enforcement::EnvelopeOnly } else { Enforcement::Full };
    let options = RunOptions { enforcement, strict_parse: args.strict_parse, ..RunOptions::default() };
    let request = RunRequest { module: args.module.clone(), input, options };
    Ok((Host::new(Arc::new(library.clone()), Arc::new(provider)), request))
}

fn read_text(path: Option<&Path>) -> Result<String, Failure> {
    let path = path.filter(|path| path.as_os_str() != "-");
    let read = match path {
        Some(path) => fs::read_to_string(path),
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).map(|_| text)
        }
    };
    read.map_err(|error| {
        let name = path.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{name}`: {error}"))
    })
}

/// A saved reply never waits, so one poll is the whole run.
fn finish(run: impl Future<Output = Envelope>) -> Envelope {
    let mut run = std::pin::pin!(run);
    match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(envelope) => envelope,
        Poll::Pending => {
            Failure::new(ErrorCode::InternalError, "the provider waits for nothing").into_envelope()
        }
    }
}
