//! `cogn serve`: modules over HTTP, until Ctrl-C or SIGTERM. Opens to the world only with a key.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use cogn::collector::Collector;
use cogn::embedded::EmbeddedUse;
use cogn::media::MediaAccess;
use cogn::settings::Settings;
use cogn::stores::Stores;
use cogn::wiring::HostParts;
use cogn::{async_runtime, env_vars, media, wiring};
use cognitive_contract::media::UploadStore;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_http::config::AccessLog;
use cognitive_http::{AccessRecord, ApiKey, App, ServerConfig};
use cognitive_library::{Library, ModuleCache};
use cognitive_runtime::Host;

use super::fail;
use crate::args::provider::ProviderArgs;
use crate::printer::{BAD, Chatter, Exit, FAINT, GOOD, NOTE, Printer};
use crate::pull_progress::TerminalProgress;
use crate::{allocator, platform, process_limits, project};

/// Lines of the access log that may wait to be written.
const MAX_WAITING_LINES: usize = 4_096;
/// How long the process waits for the last of them.
const FAREWELL: Duration = Duration::from_secs(2);
/// Connections of one address to a server that others can reach.
const DEFAULT_PER_ADDRESS: usize = 256;
/// Below this many connections an operator is told that the limit of open files is low.
const FEW_CONNECTIONS: usize = 1_000;

/// How often the files of a module are looked at, at most. Nobody saves and asks faster than this.
const LOOK: Duration = Duration::from_millis(100);

/// Options of `serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// The address to listen on; any but a loopback address needs a key
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,
    /// File with keys, one `NAME KEY` per line; besides the one in `COGNITIVE_API_KEY`
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// A web origin that may call from a browser; may be given more than once
    #[arg(long, value_name = "ORIGIN")]
    cors: Vec<String>,
    /// Runs per minute and client; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 60)]
    rate: u32,
    /// Streams at once per client; 0 is no limit
    #[arg(long, value_name = "N", default_value_t = 4)]
    streams: usize,
    /// Connections at once per address; 0 is no limit. By default 256, or no limit on a loopback address
    #[arg(long, value_name = "N")]
    per_address: Option<usize>,
    /// Maximum size of a request body, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 2)]
    max_body: usize,
    /// Seconds that a model call goes on without its client; 0 ends it at once
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    grace: u64,
    /// Seconds that open streams may take when the server stops
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    drain: u64,
    /// Transports for streams, repeated or separated by commas; all by default
    #[arg(long, value_name = "WAY", value_enum, value_delimiter = ',')]
    transport: Vec<Transport>,
    /// Send traces to this collector, as OTLP in JSON over HTTP; such as `http://127.0.0.1:4318`
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Do not record runs; by default the server does not start if it cannot record them
    #[arg(long)]
    no_audit: bool,
    /// Start nothing: ask the server that runs on this address and port whether it takes work
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    provider: ProviderArgs,
}

/// A way to carry a stream (STREAM-018).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    /// Server-sent events
    Sse,
    /// `GET /ws`
    Websocket,
    /// One JSON object per line
    Ndjson,
}

impl Transport {
    fn word(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Websocket => "websocket",
            Self::Ndjson => "ndjson",
        }
    }
}

/// Serves until somebody stops it.
pub fn serve(args: &ServeArgs, library: &Library, printer: &Printer) -> Exit {
    if args.check {
        return check(SocketAddr::new(args.host, args.port), printer);
    }
    process_limits::take_limits_as_errors();
    let prepared = prepare(args, library, printer).and_then(|prepared| Ok((prepared, start_log()?)));
    let ((host, mut config), log) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return fail(&failure, printer),
    };
    let collector = match Collector::open(args.otlp.as_deref()) {
        Ok(collector) => collector,
        Err(failure) => return fail(&failure, printer),
    };
    config.spans = collector.as_ref().map(Collector::sink);
    let writer = log.map(|(log, writer)| {
        config.log = Some(log);
        writer
    });
    let runtime = match async_runtime::on_all_cores() {
        Ok(runtime) => runtime,
        Err(failure) => return fail(&failure, printer),
    };
    // The runtime goes here, and with it whoever could still write to the log.
    let outcome = runtime.block_on(listen(args, host, config, collector, printer));
    drop(runtime);
    // A pipe that nobody reads must not keep the process from ending.
    let written =
        writer.is_none_or(|done| done.recv_timeout(FAREWELL) == Err(RecvTimeoutError::Disconnected));
    match outcome {
        Ok(()) => {
            if written {
                printer.err("stopped");
            }
            Exit::Good
        }
        Err(error) => {
            let address = SocketAddr::new(args.host, args.port);
            printer.error(&format!("cannot listen on {address}: {error}"), Some("Choose another `--port`"));
            Exit::Bad
        }
    }
}

/// For health checks: good if a server takes work there.
fn check(address: SocketAddr, printer: &Printer) -> Exit {
    match cognitive_http::ask_ready(address) {
        Ok(()) => {
            printer.err("ready");
            Exit::Good
        }
        Err(error) => {
            let hint = "Name the `--host` and `--port` that the server was started with";
            printer.error(&format!("no server is ready on {address}: {error}"), Some(hint));
            Exit::Bad
        }
    }
}

async fn listen(
    args: &ServeArgs,
    host: Host,
    config: ServerConfig,
    collector: Option<Collector>,
    printer: &Printer,
) -> std::io::Result<()> {
    let listener = cognitive_http::listen(SocketAddr::new(args.host, args.port))?;
    let address = listener.local_addr()?;
    // The signals are taken over before anybody is told that the server is there.
    let stop = platform::server_stop()?;
    printer.err(format!(
        "{GOOD}listening{GOOD:#} on {NOTE}http://{address}{NOTE:#}, {FAINT}docs at /docs{FAINT:#}"
    ));
    let sending = collector.map(Collector::start);
    tokio::select! {
        () = cognitive_http::serve(App::new(host, config), listener, stop) => {}
        () = allocator::give_back() => {}
    }
    if let Some(sending) = sending {
        sending.stop().await;
    }
    Ok(())
}

fn prepare(args: &ServeArgs, library: &Library, printer: &Printer) -> Result<(Host, ServerConfig), Failure> {
    let mut settings =
        Settings::resolve(&args.provider.overrides(), &project::config()?, &wiring::environment, "")?;
    if args.no_audit {
        (settings.audit_enabled, settings.store) = (false, None);
    }
    let keys = keys(args, printer)?;
    if keys.is_empty() && !args.host.is_loopback() {
        let message =
            format!("{} can be reached from other machines, and no API key is configured", args.host);
        return Err(Failure::new(ErrorCode::PermissionDenied, message)
            .suggest("Set `COGNITIVE_API_KEY` or name a file with `--keys`, or listen on 127.0.0.1"));
    }
    let provider = wiring::provider(
        &settings,
        &wiring::environment,
        EmbeddedUse::Server,
        Some(TerminalProgress::new(printer, false).fetch()),
    )?;
    let stores = match Stores::open(&settings, true) {
        Ok(stores) => stores.in_background(|reason| Printer.alarm(&reason))?,
        Err(reason) if settings.audit_enabled => {
            return Err(Failure::misconfigured(format!("runs cannot be recorded: {reason}"))
                .suggest("Set `HOME` or `COGNITIVE_DB`, or start it with `--no-audit` to record nothing"));
        }
        Err(reason) => {
            printer.alarm(&format!("context is not stored: {reason}"));
            Stores::default()
        }
    };
    let uploads = media::uploads(&settings.media, wiring::home())?;
    let parts = HostParts {
        modules: Arc::new(ModuleCache::new(library.clone()).looking_every(LOOK)),
        provider,
        stores,
        media: MediaAccess { uploads: uploads.clone(), document_reader: Some(project::this_program()) },
    };
    let mut host = wiring::host(&settings, parts)?;
    if !args.transport.is_empty() {
        let named = |word: &String| args.transport.iter().any(|transport| transport.word() == word.as_str());
        host.capabilities.supported_transports.retain(named);
    }
    let mut config = ServerConfig::default();
    config.keys = keys;
    config.uploads = uploads.map(|uploads| Arc::new(uploads) as Arc<dyn UploadStore>);
    config.cors = args.cors.iter().map(|given| cognitive_http::origin(given)).collect::<Result<_, _>>()?;
    let wanted = config.connections;
    config.connections = process_limits::connections(wanted);
    if config.connections < FEW_CONNECTIONS {
        let most = config.connections;
        printer.alarm(&format!(
            "the limit of open files leaves room for {most} connections at once; `ulimit -n` raises it"
        ));
    }
    config.runs_per_minute = args.rate;
    config.streams_per_client = args.streams;
    let per_address = if args.host.is_loopback() { 0 } else { DEFAULT_PER_ADDRESS };
    config.connections_per_address = args.per_address.unwrap_or(per_address);
    config.body_limit = args.max_body.saturating_mul(1 << 20);
    config.call_timeout = settings.timeout;
    config.early_stop = settings.early_stop;
    config.max_calls = settings.max_calls;
    config.model = wiring::model(&settings).map(str::to_owned);
    config.grace = Duration::from_secs(args.grace);
    config.drain = Duration::from_secs(args.drain);
    Ok((host, config))
}

fn no_thread(error: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("cannot start a thread: {error}"))
}

/// The access log, written by a thread of its own: whoever reads it slowly must not hold up those who serve. Lines that do
/// not fit are counted, and the number is said. What is given back ends when everything is written.
fn start_log() -> Result<Option<(AccessLog, Receiver<()>)>, Failure> {
    // With `--quiet` there is no access log.
    if Chatter::of_this_process() == Chatter::Quiet {
        return Ok(None);
    }
    let (lines, waiting) = sync_channel::<String>(MAX_WAITING_LINES);
    let lost = Arc::new(AtomicUsize::new(0));
    let missed = Arc::clone(&lost);
    let (working, done) = sync_channel::<()>(0);
    let write = move || {
        let _working = working;
        for line in waiting {
            Printer.err(line);
            let missed = missed.swap(0, Ordering::Relaxed);
            if missed > 0 {
                Printer
                    .warning(&format!("{missed} lines of the log were dropped: they were not read in time"));
            }
        }
    };
    std::thread::Builder::new().name("access-log".to_owned()).spawn(write).map_err(no_thread)?;
    let log = move |record: &AccessRecord| {
        if lines.try_send(line(record)).is_err() {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    };
    Ok(Some((Arc::new(log), done)))
}

/// One line per answer: for people on a terminal, JSON everywhere else.
fn line(record: &AccessRecord) -> String {
    if !Printer.for_people() {
        return serde_json::to_string(record).unwrap_or_default();
    }
    let AccessRecord { method, path, status, client, latency_ms, .. } = record;
    let style = if *status < 400 { GOOD } else { BAD };
    format!("{style}{status}{style:#} {method} {path} {FAINT}{client} {latency_ms} ms{FAINT:#}")
}

/// The key of the environment and those of the file.
fn keys(args: &ServeArgs, printer: &Printer) -> Result<Vec<ApiKey>, Failure> {
    let mut keys = Vec::new();
    if let Some(key) = wiring::environment(env_vars::SERVER_KEY) {
        keys.push(key_named("default", &key)?);
    }
    let Some(path) = &args.keys else { return Ok(keys) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(ErrorCode::InvalidReference, format!("cannot read `{}`: {error}", path.display()))
    })?;
    if platform::others_can_read(path) {
        let path = path.display();
        printer.alarm(&format!(
            "others on this machine can read the keys in `{path}`; `chmod 600 {path}` prevents it"
        ));
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, key) = line.split_once(char::is_whitespace).ok_or_else(|| {
            let message = format!("line {} of `{}` is not `NAME KEY`", number + 1, path.display());
            Failure::new(ErrorCode::InvalidInput, message)
        })?;
        keys.push(key_named(name, key.trim())?);
    }
    Ok(keys)
}

fn key_named(name: &str, key: &str) -> Result<ApiKey, Failure> {
    ApiKey::new(name, key).ok_or_else(|| {
        Failure::new(ErrorCode::InvalidInput, format!("the key `{name}` is too short"))
            .suggest("A key has at least 16 characters; `openssl rand -hex 24` makes one")
    })
}
