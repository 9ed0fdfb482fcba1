//! `cogn deploy restate`: registers the worker `cogn-restate` with a Restate server, and shows the services that the
//! server found.

use clap::Subcommand;
use cognitive_contract::Failure;
use cognitive_net::{Deployment, DeploymentRequest, register_deployment};
use cognitive_setup::async_runtime;
use serde_json::{Value, json};

use super::fail;
use crate::printer::{Exit, FAINT, GOOD, HEAD, NOTE, Printer};
use crate::text_table::TextTable;

/// Options of `deploy`.
#[derive(Debug, clap::Args)]
pub struct DeployArgs {
    #[command(subcommand)]
    to: DeployTarget,
}

#[derive(Debug, Subcommand)]
enum DeployTarget {
    /// Register the worker `cogn-restate` with a Restate server
    Restate(RestateArgs),
}

/// Options of `deploy restate`.
#[derive(Debug, clap::Args)]
struct RestateArgs {
    /// The admin interface of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9070")]
    admin: String,
    /// The address at which the server reaches the worker
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9080")]
    service: String,
    /// Replace an earlier registration of the same address, even if some of its services are gone
    #[arg(long)]
    force: bool,
    /// Show what would be registered; registers nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Registers the deployment.
pub fn deploy(args: &DeployArgs, printer: &Printer) -> Exit {
    let DeployTarget::Restate(args) = &args.to;
    match register(args) {
        Ok(deployment) if args.json => {
            printer.json(&as_json(&deployment, args));
            Exit::Good
        }
        Ok(deployment) => {
            show(&deployment, args, printer);
            Exit::Good
        }
        Err(failure) => fail(&failure, printer),
    }
}

fn register(args: &RestateArgs) -> Result<Deployment, Failure> {
    let mut request = DeploymentRequest::new(&args.admin, &args.service);
    (request.force, request.dry_run) = (args.force, args.dry_run);
    async_runtime::on_this_thread_and_others()?.block_on(register_deployment(&request))
}

fn show(deployment: &Deployment, args: &RestateArgs, printer: &Printer) {
    let rows = deployment.services.iter().map(|service| {
        let name = format!("{NOTE}{}{NOTE:#}", service.name);
        vec![name, service.kind.clone(), service.revision.to_string(), service.handlers.join(" ")]
    });
    let table =
        TextTable::new(["SERVICE", "KIND", "REVISION", "HANDLERS"]).right(&[2]).optional_columns(&[3, 2]);
    printer.table(&table.with(rows));
    let word = if args.dry_run { "would be registered" } else { "registered" };
    let (count, id) = (deployment.services.len(), &deployment.id);
    let services = if count == 1 { "service" } else { "services" };
    printer.err(format!("{GOOD}{word}{GOOD:#} {HEAD}{count} {services}{HEAD:#} {FAINT}as {id}{FAINT:#}"));
}

fn as_json(deployment: &Deployment, args: &RestateArgs) -> Value {
    let service = |service: &cognitive_net::DeployedService| {
        json!({
            "name": service.name, "kind": service.kind, "revision": service.revision, "handlers": service.handlers,
        })
    };
    let services: Vec<Value> = deployment.services.iter().map(service).collect();
    json!({ "id": deployment.id, "registered": !args.dry_run, "services": services })
}
