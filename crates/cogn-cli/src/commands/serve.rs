//! `cogn serve`: serves modules over HTTP, until Ctrl-C or SIGTERM. Refuses a public address without a key.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, SystemTime};

use cognitive_contract::media::UploadStore;
use cognitive_contract::{Capabilities, ErrorCode, Failure};
use cognitive_http::config::{AccessLog, DEFAULT_RUNS_PER_MINUTE, ModuleFilter, ToolSurface};
use cognitive_http::{AccessRecord, App, ServerConfig};
use cognitive_library::find::ModuleOrigin;
use cognitive_library::{Library, ModuleCache, bundled_modules};
use cognitive_setup::collector::Collector;
use cognitive_setup::serve_config::ServeConfig;
use cognitive_setup::stores::Stores;
use cognitive_setup::{Runtime, async_runtime, media, wiring};
use tokio::net::TcpListener;

pub use super::serve_args::ServeArgs;
use super::{fail, server_keys, shared_state, studio_parts, validate};
use crate::platform::{ServerSignal, ServerSignals};
use crate::printer::{BAD, Chatter, Exit, FAINT, GOOD, NOTE, Printer};
use crate::pull_progress::TerminalProgress;
use crate::{allocator, process_limits, project};

/// The maximum number of access log lines that wait to be written. Without it, a log that is not read would fill the
/// memory.
const MAX_WAITING_LINES: usize = 4_096;
/// The time that the process waits for the last of them. Without it, a log that is not read would block the exit.
const FAREWELL: Duration = Duration::from_secs(2);
/// The default address and port. Other machines cannot reach this address, so that it needs no key.
const DEFAULT_HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const DEFAULT_PORT: u16 = 8000;
/// The maximum number of connections per client address, so that no client of a public server occupies all of them.
const DEFAULT_PER_ADDRESS: usize = 256;
/// Below this number of connections, a warning about the limit of open files is printed. A server that has only slightly
/// fewer than configured needs none.
const FEW_CONNECTIONS: usize = 1_000;

/// The minimum interval between checks of the files of a module: faster than a user can save and retry.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until a signal arrives.
pub fn serve(args: &ServeArgs, library: &Library, printer: &Printer) -> Exit {
    if args.check {
        return check(args, printer);
    }
    serve_then(args, library, printer, &Listening::default())
}

/// The options for the address of a server.
#[derive(Default)]
pub(super) struct Listening {
    /// True if another port may be used when the default one is taken and none was named.
    pub(super) any_port: bool,
    /// Called with the address of the page when the server listens.
    pub(super) then: Option<fn(&str)>,
}

/// Serves, with a callback for when the server listens.
pub(super) fn serve_then(
    args: &ServeArgs,
    library: &Library,
    printer: &Printer,
    listening: &Listening,
) -> Exit {
    process_limits::take_limits_as_errors();
    // A log that is read by a program has only JSON lines, warnings and errors included.
    let is_log = Chatter::for_process() != Chatter::Quiet && !Printer.for_people();
    printer.log_as_json(is_log && args.typed_config().access_log != Some(false));
    let prepared = prepare(args, library, printer).and_then(|prepared| {
        let is_silent = prepared.serve.access_log == Some(false) || Chatter::for_process() == Chatter::Quiet;
        printer.log_as_json(is_log && !is_silent);
        let log = if is_silent { None } else { Some(start_log()?) };
        Ok((prepared, log))
    });
    let (ServeParts { runtime: models, mut config, serve }, log) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return fail(&failure, printer),
    };
    let collector = match Collector::open(serve.otlp.as_deref()) {
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
    config.complaints = Some(shared_state::complaints());
    if let Some(address) = &serve.shared {
        match runtime.block_on(shared_state::connect(address)) {
            Ok(state) => config.shared = Some(state),
            Err(failure) => return fail(&failure, printer),
        }
    }
    // The runtime is dropped here, with every task that could still write to the log.
    let address = address(&serve);
    let any_port = listening.any_port && serve.port.is_none();
    let app = App::new(models.host(), config);
    let outcome = runtime.block_on(async {
        let listener = match cognitive_http::listen(address) {
            Err(error) if any_port && error.kind() == std::io::ErrorKind::AddrInUse => {
                cognitive_http::listen(SocketAddr::new(address.ip(), 0))?
            }
            other => other?,
        };
        listen(listener, app, collector, (args, &serve, printer), listening.then).await
    });
    drop(runtime);
    // A pipe without a reader must not keep the process from ending.
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
            printer.error(&format!("cannot listen on {address}: {error}"), Some("Choose another `--port`"));
            Exit::Bad
        }
    }
}

/// Health check: good if a server that was started with the same settings accepts work.
fn check(args: &ServeArgs, printer: &Printer) -> Exit {
    let decided = project::config()
        .and_then(|file| ServeConfig::decide(args.typed_config(), &file.serve, &wiring::environment));
    let address = match decided {
        Ok(serve) => address(&serve),
        Err(failure) => return fail(&failure, printer),
    };
    match cognitive_http::check_ready(address) {
        Ok(()) => {
            printer.err("ready");
            Exit::Good
        }
        Err(error) => {
            let hint = "Use the `--host` and `--port` of the running server";
            printer.error(&format!("no server is ready on {address}: {error}"), Some(hint));
            Exit::Bad
        }
    }
}

fn address(serve: &ServeConfig) -> SocketAddr {
    SocketAddr::new(serve.host.unwrap_or(DEFAULT_HOST), serve.port.unwrap_or(DEFAULT_PORT))
}

async fn listen(
    listener: TcpListener,
    app: App,
    collector: Option<Collector>,
    (args, serve, printer): (&ServeArgs, &ServeConfig, &Printer),
    then: Option<fn(&str)>,
) -> std::io::Result<()> {
    let address = listener.local_addr()?;
    // The signal handlers are installed before the server reports that it listens.
    let mut signals = ServerSignals::install()?;
    let running = app.clone();
    let stop = async {
        while signals.next().await == ServerSignal::Reload {
            reload(&running, args, serve, printer);
        }
    };
    printer.err(format!(
        "{GOOD}listening{GOOD:#} on {NOTE}http://{address}{NOTE:#}, {FAINT}docs at /docs{FAINT:#}"
    ));
    if let Some(then) = then {
        then(&format!("http://{address}/"));
    }
    let sending = collector.map(Collector::start);
    tokio::select! {
        () = cognitive_http::serve(app, listener, stop) => {}
        () = allocator::release_memory() => {}
    }
    if let Some(sending) = sending {
        sending.stop().await;
    }
    Ok(())
}

/// Reads the keys and the limits per client again, for SIGHUP. A faulty file changes nothing, so that all old keys stay
/// valid after a mistake.
fn reload(app: &App, args: &ServeArgs, before: &ServeConfig, printer: &Printer) {
    let decided = project::config()
        .and_then(|file| ServeConfig::decide(args.typed_config(), &file.serve, &wiring::environment));
    let serve = match &decided {
        Ok(serve) => {
            let (rate, streams) = client_limits(serve);
            app.replace_limits(rate, streams);
            serve
        }
        Err(failure) => {
            printer.alarm(&format!("the limits were not reloaded: {}", failure.message()));
            before
        }
    };
    match server_keys::keys(serve, printer) {
        Ok(keys) => {
            let count = keys.len();
            if app.replace_keys(keys) {
                printer.err(format!("{GOOD}reloaded{GOOD:#} the keys: {count}"));
            } else {
                printer.alarm("the keys were not reloaded: a server with keys needs at least one, restart it to change that");
            }
        }
        Err(failure) => printer.alarm(&format!("the keys were not reloaded: {}", failure.message())),
    }
}

/// The parts that a server needs before it listens.
struct ServeParts {
    runtime: Runtime,
    config: ServerConfig,
    serve: ServeConfig,
}

fn prepare(args: &ServeArgs, library: &Library, printer: &Printer) -> Result<ServeParts, Failure> {
    let file = project::config()?;
    let serve = ServeConfig::decide(args.typed_config(), &file.serve, &wiring::environment)?;
    let modules = ModuleCache::new(library.clone()).with_check_interval(LOOK);
    let builder =
        project::runtime(library, &args.provider)?.module_source(modules).with_audit(!args.no_audit);
    let settings = builder.settings()?;
    let mut config = ServerConfig::default();
    config.keys = server_keys::keys(&serve, printer)?;
    let address = address(&serve).ip();
    if config.keys.is_empty() && !address.is_loopback() {
        let message = format!("other machines can reach {address}, and no API key is configured");
        return Err(Failure::new(ErrorCode::PermissionDenied, message)
            .suggest("Set `COGNITIVE_API_KEY` or name a file with `--keys`, or listen on 127.0.0.1"));
    }
    config.offers = offered_modules(&serve, library)?;
    config.tools = serve.tools.as_deref().map_or_else(ToolSurface::default, ToolSurface::from);
    let validated = library.clone();
    config.findings = Some(Arc::new(move |name: &str| validate::findings(&validated, name)));
    limit(&mut config, &serve, printer)?;
    config.model = wiring::model(&settings).map(str::to_owned);
    let typed = args.provider.overrides();
    studio_parts::add(&mut config, &serve, (&settings, &typed, &file), library, printer)?;
    let uploads = media::uploads(&settings.media, wiring::home())?;
    if let Some(uploads) = uploads.as_ref().filter(|_| serve.shared.is_some()) {
        uploads.note_other_servers();
    }
    let known = Capabilities::default().supported_transports;
    let transports = transports(known, serve.transports.as_deref())?;
    let screen = TerminalProgress::new(printer, false);
    let runtime = builder
        .uploads(uploads.clone())
        .stores_by(|settings| Ok((Stores::open_for_server(settings, |reason| Printer.alarm(&reason))?, None)))
        .tune(move |host| host.capabilities.supported_transports.clone_from(&transports))
        .build_with(Some(screen.download()))?
        .usable()?;
    runtime.notices().iter().for_each(|line| printer.warning(line));
    (config.archive, config.reviews) = (runtime.stores().archive.clone(), runtime.stores().review.clone());
    config.uploads = uploads.map(|uploads| Arc::new(uploads) as Arc<dyn UploadStore>);
    Ok(ServeParts { runtime, config, serve })
}

/// Returns the limits of runs a minute and of streams of one client.
fn client_limits(serve: &ServeConfig) -> (u32, usize) {
    let streams = ServerConfig::default().streams_per_client;
    (serve.rate.unwrap_or(DEFAULT_RUNS_PER_MINUTE), serve.streams.unwrap_or(streams))
}

/// Sets the limits of the server.
fn limit(config: &mut ServerConfig, serve: &ServeConfig, printer: &Printer) -> Result<(), Failure> {
    let origins = serve.cors.iter().flatten();
    config.cors = origins.map(|given| cognitive_http::origin(given)).collect::<Result<_, _>>()?;
    config.connections = process_limits::connections(config.connections);
    if config.connections < FEW_CONNECTIONS {
        let most = config.connections;
        printer.alarm(&format!(
            "the limit of open files allows {most} connections at once; `ulimit -n` raises it"
        ));
    }
    (config.runs_per_minute, config.streams_per_client) = client_limits(serve);
    // An explicit limit also applies to local callers.
    config.limit_local_callers = serve.rate.is_some();
    let per_address = if address(serve).ip().is_loopback() { 0 } else { DEFAULT_PER_ADDRESS };
    config.connections_per_address = serve.per_address.unwrap_or(per_address);
    config.body_limit = serve.max_body_mb.map_or(config.body_limit, |size| size.saturating_mul(1 << 20));
    config.grace = serve.grace_seconds.map_or(config.grace, Duration::from_secs);
    config.drain = serve.drain_seconds.map_or(config.drain, Duration::from_secs);
    Ok(())
}

/// Returns the transports that are offered: the named ones, or all.
fn transports(mut known: Vec<String>, named: Option<&[String]>) -> Result<Vec<String>, Failure> {
    let Some(named) = named else { return Ok(known) };
    if let Some(other) = named.iter().find(|word| !known.contains(word)) {
        let failure = Failure::config_fault(format!("unknown transport in `serve.transports`: `{other}`"));
        return Err(failure.suggest(format!("Use one of: {}", known.join(", "))));
    }
    known.retain(|word| named.contains(word));
    Ok(known)
}

/// Returns the offered modules: the named ones, which must exist, or all, or all user modules.
fn offered_modules(serve: &ServeConfig, library: &Library) -> Result<Option<ModuleFilter>, Failure> {
    if let Some(names) = &serve.modules {
        for name in names {
            library.find(name)?;
        }
        let names: HashSet<String> = names.iter().cloned().collect();
        return Ok(Some(Arc::new(move |name: &str| names.contains(name))));
    }
    if serve.bundled != Some(false) {
        return Ok(None);
    }
    let library = library.clone();
    // Only names of bundled modules need a lookup, because a user module may shadow them.
    Ok(Some(Arc::new(move |name: &str| {
        !bundled_modules::names().any(|known| known == name)
            || library.find(name).is_ok_and(|found| found.origin != ModuleOrigin::Bundled)
    })))
}

fn no_thread(error: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::InternalError, format!("cannot start a thread: {error}"))
}

/// Starts a thread that writes the access log, so that a slow reader cannot block requests. Lines that do not fit are
/// dropped, and their number is logged. The returned receiver disconnects when everything is written.
fn start_log() -> Result<(AccessLog, Receiver<()>), Failure> {
    let (lines, waiting) = sync_channel::<String>(MAX_WAITING_LINES);
    let lost = Arc::new(AtomicUsize::new(0));
    let missed = Arc::clone(&lost);
    let (working, done) = sync_channel::<()>(0);
    let write = move || {
        let _working = working;
        for line in waiting {
            if Printer.logs_as_json() {
                Printer.log_line(&line);
            } else {
                Printer.err(line);
            }
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
    Ok((Arc::new(log), done))
}

/// A line of the access log for programs.
#[derive(serde::Serialize)]
struct LogLine<'a> {
    time: String,
    level: &'static str,
    #[serde(flatten)]
    record: &'a AccessRecord,
}

/// Formats a line per answer: text on a terminal, JSON everywhere else.
fn line(record: &AccessRecord) -> String {
    if !Printer.for_people() {
        let time = cognitive_store::timestamp(SystemTime::now());
        return serde_json::to_string(&LogLine { time, level: "info", record }).unwrap_or_default();
    }
    let AccessRecord { method, path, status, client, latency_ms, .. } = record;
    let style = if *status < 400 { GOOD } else { BAD };
    format!("{style}{status}{style:#} {method} {path} {FAINT}{client} {latency_ms} ms{FAINT:#}")
}
