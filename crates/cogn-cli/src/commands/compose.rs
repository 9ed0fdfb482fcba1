//! `cogn compose plan MODULE`: what a module is made of, in which versions, and what would run.
//! Asks no model. A composition that could not run is told with the code that a run would have.

use cognitive_library::{Library, ModuleLoadError, load};
use cognitive_runtime::compose::{Overview, OverviewEdge, overview};

use super::fail;
use crate::printer::{DOUBT, Exit, FAINT, HEAD, Printer, table};

/// Options of `compose`.
#[derive(Debug, clap::Args)]
pub struct ComposeArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the parts of a module and what would run
    Plan(PlanArgs),
}

#[derive(Debug, clap::Args)]
struct PlanArgs {
    /// Name of an installed module, or path of a folder
    module: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print a Mermaid graph
    #[arg(long, conflicts_with = "json")]
    mermaid: bool,
}

/// Prints the plan.
pub fn compose(args: &ComposeArgs, library: &Library, printer: &Printer) -> Exit {
    let Action::Plan(args) = &args.action;
    let found = library.find(&args.module);
    let module = found.and_then(|found| load(&found.folder).map_err(ModuleLoadError::into_failure));
    let overview = match module.and_then(|module| overview(library, &module)) {
        Ok(overview) => overview,
        Err(failure) => return fail(&failure, printer),
    };
    if args.json {
        printer.json(&overview);
    } else if args.mermaid {
        printer.out(overview.mermaid().trim_end());
    } else {
        show(&overview, printer);
    }
    Exit::Good
}

fn show(overview: &Overview, printer: &Printer) {
    let runs = if overview.runs.is_empty() { "nothing".to_owned() } else { overview.runs.join(", ") };
    let row = |name: &str, value: String| vec![format!("{FAINT}{name}{FAINT:#}"), value];
    let facts = [
        row("pattern", overview.pattern.to_owned()),
        row("runs first", runs),
        row("answer from", overview.answer.to_owned()),
        row("time", format!("{} ms", overview.timeout_ms)),
        row("depth", overview.depth.to_string()),
        row("model calls", format!("at least {}", overview.calls)),
    ];
    printer.out(format!("{HEAD}{}{HEAD:#}", overview.module));
    for line in table(&facts) {
        printer.out(format!("  {line}"));
    }
    for member in overview.modules.iter().filter(|member| !member.needs.is_empty()) {
        printer.out(format!("\n{HEAD}{} {}{HEAD:#} needs", member.name, member.version));
        for line in table(&member.needs.iter().map(cells).collect::<Vec<_>>()) {
            printer.out(format!("  {line}"));
        }
    }
}

fn cells(edge: &OverviewEdge) -> Vec<String> {
    let version = edge.version.clone().unwrap_or_else(|| format!("{DOUBT}not there{DOUBT:#}"));
    let fallback = edge.fallback.as_ref().map(|name| format!("else {name}")).unwrap_or_default();
    let optional = if edge.optional { "optional" } else { "" };
    vec![edge.name.clone(), version, optional.to_owned(), fallback]
}
