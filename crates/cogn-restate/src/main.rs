//! The program `cogn-restate`: parses flags and environment, and runs a worker. Prints its address to stderr,
//! and nothing to stdout.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use cogn::{Failure, Runtime};
use cogn_restate::{DurableWorker, ListenOptions, WorkerOffer, listen, serve, shutdown_signal};

/// Runs Cognitive Modules for a Restate server: each module is a service, each composition a workflow, each
/// session an object.
///
/// Modules, model, keys and limits come from the environment and the configuration, as for `cogn run`.
/// `cogn deploy restate` registers the worker with the server.
#[derive(Debug, Parser)]
#[command(name = "cogn-restate", version)]
struct WorkerArgs {
    /// The address to listen on. There is no authentication: allow only the Restate server to connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: SocketAddr,
    /// Allow other workers on this machine to listen on the same address; the system distributes connections
    #[arg(long)]
    share_address: bool,
    /// The most concurrent runs per connection of the server; a lower number spreads runs over more workers
    #[arg(long, value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs_per_connection: u32,
    /// A folder of modules, searched before all other places; may be repeated
    #[arg(long, value_name = "FOLDER")]
    modules: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match start(&WorkerArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("error: {}", failure.message()));
            if let Some(hint) = failure.suggestion() {
                say(&format!("hint: {hint}"));
            }
            ExitCode::from(2)
        }
    }
}

fn start(args: &WorkerArgs) -> Result<(), Failure> {
    let mut builder = Runtime::builder().with_env();
    for folder in &args.modules {
        builder = builder.modules(folder);
    }
    let runtime = builder.build()?;
    runtime.notices().iter().for_each(|notice| say(&format!("warning: {notice}")));
    // A worker that can answer nothing would take runs and fail them.
    if let Some(reason) = runtime.unavailable() {
        return Err(reason.clone());
    }
    let worker = Arc::new(DurableWorker::new(runtime));
    let offer = WorkerOffer::for_worker(&worker);
    offer.left_out.iter().for_each(|reason| say(&format!("warning: skipped: {reason}")));
    let mut options = ListenOptions::at(args.listen);
    (options.shared, options.runs_per_connection) = (args.share_address, args.runs_per_connection);
    cognitive_setup::async_runtime::on_all_cores()?.block_on(async {
        let listener = listen(&options).map_err(|error| {
            Failure::config_fault(format!("cannot listen on {}: {error}", options.address))
                .suggest("Choose another address with `--listen`")
        })?;
        let place = listener.local_addr().unwrap_or(options.address);
        say(&format!("listening on http://{place}, {} services", offer.services.len()));
        serve(listener, offer.endpoint, &options, shutdown_signal()).await;
        Ok(())
    })
}

/// Prints a line to stderr. A closed stderr does not end the worker.
fn say(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
