//! `cogn mcp`: serves modules as agent tools over the standard streams. Only the protocol goes to stdout; notices go to
//! stderr. It also starts without a usable model: then every run reports the reason.

use std::path::PathBuf;
use std::sync::Arc;

use cognitive_contract::{ErrorCode, Failure};
use cognitive_library::Library;
use cognitive_mcp::{Admission, AdmissionFuture, Extensions, McpBackend, McpServer, ToolSurface};
use cognitive_runtime::stages::prompt::estimated_tokens;
use cognitive_runtime::{Host, RunOptions};
use cognitive_setup::stores::Stores;
use cognitive_setup::{async_runtime, wiring};
use serde_json::{Value, json};

use super::mcp_install::{InstallArgs, install};
use super::{fail, validate};
use crate::args::provider::ProviderArgs;
use crate::printer::{Exit, FAINT, Printer};
use crate::project;
use crate::text_table::TextTable;

/// Options of `mcp`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    action: Option<McpAction>,
    /// Tools that clients see: `all` modules, `search` (four tools that find and run modules), or names of modules
    /// separated by commas; by default `all` up to 12 modules
    #[arg(long, value_name = "WHICH")]
    tools: Option<String>,
    /// Print the tokens that the list of tools adds to every request of a client; starts no server
    #[arg(long)]
    cost: bool,
    /// Print JSON
    #[arg(long, requires = "cost")]
    json: bool,
    /// Serve the project in this folder; other relative paths start there, too
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    folder: Option<PathBuf>,
    /// Do not record runs
    #[arg(long)]
    no_audit: bool,
    #[command(flatten)]
    provider: ProviderArgs,
}

#[derive(Debug, clap::Subcommand)]
enum McpAction {
    /// Write this server into the configuration of a client, after showing the difference
    Install(InstallArgs),
}

/// Serves the client that started this process, until it closes the streams.
pub fn mcp(args: &McpArgs, printer: &Printer) -> Exit {
    if let Some(McpAction::Install(args)) = &args.action {
        return install(args, printer);
    }
    // Clients start their servers in a folder of their own.
    if let Some(folder) = &args.folder
        && let Err(error) = std::env::set_current_dir(folder)
    {
        let message = format!("cannot enter the folder `{}`: {error}", folder.display());
        return fail(
            &Failure::new(ErrorCode::InvalidReference, message).suggest("Check `--folder`"),
            printer,
        );
    }
    let library = &wiring::library();
    let surface = args.tools.as_deref().map_or_else(ToolSurface::default, ToolSurface::from);
    if let ToolSurface::Named(names) = &surface
        && let Some(failure) = names.iter().find_map(|name| library.find(name).err())
    {
        return fail(&failure, printer);
    }
    let backend = match AgentBackend::open(args, library) {
        Ok(backend) => backend,
        Err(failure) => return fail(&failure, printer),
    };
    let server = McpServer::new(Arc::new(backend), surface);
    if args.cost {
        return cost(&server, args.json, printer);
    }
    let runtime = match async_runtime::on_all_cores() {
        Ok(runtime) => runtime,
        Err(failure) => return fail(&failure, printer),
    };
    let outcome = runtime.block_on(cognitive_mcp::serve_stdio(server));
    // A blocked read from stdin must not keep the process from ending.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => Exit::Good,
        Err(reason) => {
            let hint = "MCP clients start this command; `cogn mcp install` configures one";
            printer.error(&format!("no client connected: {reason}"), Some(hint));
            Exit::Bad
        }
    }
}

/// Prints the token cost of `tools/list`.
fn cost(server: &McpServer, as_json: bool, printer: &Printer) -> Exit {
    let listed = server.tools_as_json();
    let tools = listed.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
    let costs: Vec<(String, u64)> = tools
        .iter()
        .map(|tool| {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            (name.to_owned(), estimated_tokens(&tool.to_string()))
        })
        .collect();
    let total: u64 = costs.iter().map(|(_, tokens)| tokens).sum();
    if as_json {
        let each: Vec<Value> =
            costs.iter().map(|(name, tokens)| json!({ "name": name, "tokens": tokens })).collect();
        printer.json(&json!({ "tools": each, "total": total }));
        return Exit::Good;
    }
    let rows = costs.iter().map(|(name, tokens)| vec![name.clone(), tokens.to_string()]);
    printer.table(&TextTable::new(["tool", "tokens"]).right(&[1]).with(rows));
    printer.print_line(format!("{FAINT}about {total} tokens in every request of a client{FAINT:#}"));
    Exit::Good
}

/// The modules and settings that the user's agents can access.
struct AgentBackend {
    host: Arc<Host>,
    library: Library,
    options: RunOptions,
}

impl AgentBackend {
    fn open(args: &McpArgs, library: &Library) -> Result<Self, Failure> {
        let builder = project::runtime(library, &args.provider)?.with_audit(!args.no_audit);
        let builder = builder.stores_by(|settings| Stores::open_or_warn(settings, false));
        // Downloads nothing: a client times out long before a model has arrived.
        let runtime = builder.build()?;
        if let Some(failure) = runtime.unavailable() {
            let hint = failure.suggestion().map(|hint| format!(". {hint}")).unwrap_or_default();
            Printer.warning(&format!("runs will fail: {}{hint}", failure.message()));
        }
        runtime.notices().iter().for_each(|line| Printer.warning(line));
        Ok(Self { host: runtime.host(), library: library.clone(), options: runtime.run_options() })
    }
}

impl McpBackend for AgentBackend {
    fn host(&self) -> &Host {
        &self.host
    }

    fn admit<'a>(&'a self, _: &'a Extensions) -> AdmissionFuture<'a> {
        Box::pin(std::future::ready(Ok(Admission::new(self.options.clone()))))
    }

    fn findings(&self, name: &str) -> Result<Value, Failure> {
        validate::findings(&self.library, name)
    }
}
